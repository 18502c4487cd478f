"""Mutants of files: of the tree of a JSON or TOML file, of the table of a Parquet file."""

import io
import json
import random
import tomllib
from pathlib import Path

import polars as pl

from mutation import altered, grafted, toml


def trees(path: Path, raw: bytes, seed: int) -> bytes:
    """Return a mutant of a JSON or TOML file: of its tree, or else of its bytes."""
    if seed % 3 == 0:
        return altered(raw, seed)
    text = raw.decode()
    if path.suffix == ".toml":
        return toml(grafted(tomllib.loads(text), seed)).encode(errors="replace")
    return json.dumps(grafted(json.loads(text), seed), indent=2, default=str).encode()


def frames(path: Path, raw: bytes, seed: int) -> bytes:
    """Return a mutant of a Parquet file: of its columns, values and metadata, or of its bytes."""
    if path.suffix != ".parquet":
        return trees(path, raw, seed)
    if seed % 3 == 0:
        return altered(raw, seed)
    rng = random.Random(seed)
    known = pl.read_parquet_metadata(io.BytesIO(raw))
    meta = {key: value for key, value in known.items() if key.startswith("sojourn.")}
    if meta and rng.random() < 0.2:
        key = rng.choice(list(meta))
        meta[key] = rng.choice(("", "{", "[]", "[5]", "null", "2", "[" * 5000))
        if rng.random() < 0.3:
            del meta[key]
    out = io.BytesIO()
    try:
        _reframed(pl.read_parquet(io.BytesIO(raw)), rng).write_parquet(out, metadata=meta)
    except pl.exceptions.PolarsError:  # two columns of a name, a cast that polars does not have
        return altered(raw, seed)
    return out.getvalue()


def _reframed(frame: pl.DataFrame, rng: random.Random) -> pl.DataFrame:
    """Return a frame with a change of a column or of the rows."""
    name = rng.choice(frame.columns)
    column, n = frame[name], len(frame)
    values = column.to_list()
    match rng.randrange(8):
        case 0:
            return frame.drop(name)
        case 1:
            kinds = (pl.String, pl.Float64, pl.Int64, pl.Float32, pl.UInt8, pl.Boolean, pl.Date)
            kind = rng.choice(kinds)
            return frame.with_columns(column.cast(pl.String).cast(kind, strict=False))
        case 2:
            values = [None] * n
        case 3 if n:
            for _ in range(3):
                values[rng.randrange(n)] = None
        case 4 if n and column.dtype.is_numeric():
            extreme = (float("inf"), float("nan"), -1e300, 1e300, -1.0)
            values[rng.randrange(n)] = rng.choice(extreme if column.dtype.is_float() else (0, 9))
        case 5:
            return frame.rename({name: rng.choice(("x", "", "kind", "axes", "a\x1b[2J"))})
        case 6:
            return rng.choice((frame[::-1], frame[:0], frame[:1], pl.concat([frame, frame])))
        case _:
            words = ("up", "f", "nobody", "", "[5]", '["x"]', "{", "\x1b[2J")
            values = [rng.choice(words) for _ in range(n)]
            return frame.with_columns(pl.Series(name, values, dtype=pl.String))
    return frame.with_columns(pl.Series(name, values, dtype=column.dtype))
