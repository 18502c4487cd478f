"""Files of a live link: its series, with the columns of a simulation, and its packet logs."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sojourn import _sojourn
from sojourn._util.files import naming, open_new, parquet, replacing
from sojourn.live.link import Rows
from sojourn.result.result import SCHEMA, Array

ENDINGS = (".jsonl", ".parquet")
"""Suffixes of a log: .jsonl is written as rows arrive, .parquet when the link ends."""

ONLY_SHOWN = ("sojourn_p50_s", "sojourn_p99_s")
"""Columns that are shown but not written, since a simulation has none of that name."""


@contextmanager
def logging(
    path: Path, links: Mapping[str, Any], command: Sequence[str]
) -> Iterator[Callable[[Rows], None]]:
    """Open the log `path` and yield the function that appends rows.

    Parameters
    ----------
    path
        Name of the file; its suffix is one of `ENDINGS`.
    links
        Canonical links, by direction; stored in the metadata of a Parquet file.
    command
        Command line, stored likewise.
    """
    if path.suffix.lower() == ".jsonl":
        with naming(path), open_new(path) as file:

            def write(rows: Rows) -> None:
                for name, columns in rows.items():
                    for row in _dicts(name, columns):
                        file.write(f"{json.dumps(row, allow_nan=False)}\n".encode())
                file.flush()

            yield write
        return
    kept: list[Rows] = []
    try:
        yield kept.append
    finally:
        _write_parquet(path, kept, links, command)


def write_packet_logs(directory: Path, packet_logs: Rows) -> None:
    """Write the packet log of each direction as a CSV file for `sojourn replay`."""
    import polars as pl

    for name, columns in packet_logs.items():
        frame = pl.DataFrame(dict(columns)).with_row_index("i")
        t_us = (pl.col("t_ns") // 1000).cast(pl.String) + "."
        t_us += (pl.col("t_ns") % 1000).cast(pl.String).str.zfill(3)
        frame = frame.select(
            "i",
            t_us.alias("t_us"),
            *("flow", "size_B", "ecn"),
            *(pl.col(flag).cast(pl.UInt8) for flag in ("dropped", "marked")),
        )
        with replacing(directory / f"{name}.csv") as file:
            file.write(frame.write_csv().encode())


def _dicts(name: str, columns: Mapping[str, Array]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a direction."""
    lists = {key: values.tolist() for key, values in _columns(columns).items()}
    for values in zip(*lists.values(), strict=True):
        numbers = (None if isinstance(v, float) and math.isnan(v) else v for v in values)
        yield {"kind": "link", "name": name, **dict(zip(lists, numbers, strict=True))}


def _columns(columns: Mapping[str, Array]) -> dict[str, Array]:
    """Return the columns of a log under their names there."""
    return {
        key.replace("gauge/", "gauge_"): values
        for key, values in columns.items()
        if key not in ONLY_SHOWN
    }


def _write_parquet(
    path: Path, kept: Sequence[Rows], links: Mapping[str, Any], command: Sequence[str]
) -> None:
    """Write all rows as one table, the rows of `up` first."""
    import polars as pl

    frames = [
        pl.DataFrame(_columns(columns)).select(
            pl.lit("link").alias("kind"), pl.lit(name).alias("name"), pl.all()
        )
        for name in links
        for rows in kept
        if len((columns := rows[name])["time_s"])
    ]
    frame = pl.concat(frames, how="diagonal") if frames else pl.DataFrame({"kind": [], "name": []})
    metadata = {
        "sojourn.schema": SCHEMA,
        "sojourn.version": _sojourn.version(),
        "sojourn.links": json.dumps(links),
        "sojourn.command": json.dumps(list(command)),
    }
    with replacing(path) as file:
        file.write(
            parquet(frame.with_columns(pl.col(pl.Float64).fill_nan(None)), metadata=metadata)
        )
