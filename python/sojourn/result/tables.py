"""Parquet tables of a result: read them, and check columns, types, names and values."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief, shown, why
from sojourn._util.lazy import Lazy
from sojourn._util.parquet import check_table, read_faults
from sojourn.result.result import FATES, SCHEMA, Array

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")

Kind: TypeAlias = Literal["name", "float", "count", "flag"]

TRANSFERS: dict[str, Kind] = {
    "flow": "name", "start_s": "float", "duration_s": "float", "startup_s": "float",
    "bytes": "count",
}  # fmt: skip
"""Columns of fct.parquet."""

QUERIES: dict[str, Kind] = {"flow": "name", "start_s": "float", "duration_s": "float"}
"""Columns of queries.parquet."""

DELAYS: dict[str, Kind] = {
    "kind": "name", "name": "name", "value_s": "float", "count": "count",
}  # fmt: skip
"""Columns of delays.parquet."""

PACKETS: dict[str, Kind] = {
    "link": "name", "flow": "name", "arrived_s": "float", "left_s": "float",
    "size_bytes": "count", "class": "count", "marked": "flag", "fate": "name",
}  # fmt: skip
"""Columns of packet_log.parquet."""

SERIES: dict[str, Kind] = {"kind": "name", "name": "name", "time_s": "float"}
"""First columns of series.parquet and group_series.parquet; the others depend on the kind."""

OF_KIND = {
    "link": (
        "queue_bytes", "queue_packets", "sojourn_s", "utilisation", "dropped_packets",
        "arrived_packets", "departed_packets", "departed_bytes", "dropped_full_packets",
        "dropped_early_packets", "dropped_late_packets", "marked_packets",
    ),
    "flow": ("delivered_bytes", "received_bytes"),
    "group": ("delivered_bytes", "received_bytes"),
}  # fmt: skip
"""Columns of the series of each kind. Others, like `cwnd_packets`, may be absent."""

LONGEST_S = 1e10
"""Largest time, in seconds; a scenario is shorter."""

GAUGE = "gauge_"
"""Beginning of the columns with variables of a discipline or a congestion control."""


def metadata(path: Path) -> dict[str, str]:
    """Return the metadata that `Result.save` wrote into a table.

    Raises InputError if the file cannot be read, or its columns have the meaning of another schema.
    """
    with _reading(path):
        entries = pl.read_parquet_metadata(path)
    if (schema := entries.get("sojourn.schema")) != SCHEMA:
        what = "is missing" if schema is None else f"{shown(schema)} is not {shown(SCHEMA)}"
        raise InputError(f"{path}: metadata sojourn.schema: {what}")
    return entries


def transfers(
    path: Path, prefix: str, columns: Mapping[str, Kind], flows: Sequence[str]
) -> dict[str, Array]:
    """Read a table with one row per transfer or query, as columns `PREFIX/COLUMN`.

    Flows become indices into `flows`.
    """
    frame = read(path, columns)
    return {f"{prefix}/{name}": _column(path, frame, name, {"flow": flows}) for name in columns}


def packet_log(path: Path, links: Sequence[str], flows: Sequence[str]) -> dict[str, Array]:
    """Read the packet logs of all links, as columns `packet_log/LINK/COLUMN`."""
    frame = read(path, PACKETS)
    _column(path, frame, "link", {"link": links})
    columns = {}
    for link in links:
        rows = frame.filter(frame["link"].cast(str) == link)
        for name in PACKETS:
            if name != "link":
                column = _column(path, rows, name, {"flow": flows, "fate": FATES})
                kept = column.astype(np.uint8) if name == "fate" else column
                columns[f"packet_log/{link}/{name}"] = kept
    return columns


def delays(path: Path, names: Mapping[str, Sequence[str]]) -> dict[str, Array]:
    """Read the distributions of delays, as columns `KIND/NAME/COLUMN`.

    `names` has the names that each kind may have.
    """
    frame = read(path, DELAYS)
    columns: dict[str, Array] = {}
    for kind, name in frame.select("kind", "name").unique(maintain_order=True).iter_rows():
        if name not in names.get(kind, ()):
            raise InputError(f"{path}: column name: {shown(name)} does not belong to the result")
        rows = frame.filter((pl.col("kind") == kind) & (pl.col("name") == name))
        for what in ("value_s", "count"):
            columns[f"{kind}/{name}/{what}"] = _column(path, rows, what, {})
    return columns


def series(path: Path, names: Mapping[str, Sequence[str]]) -> dict[str, Array]:
    """Read the series in a file, as columns `series/time_s` and `KIND/NAME/COLUMN`.

    `names` has the names of each kind that the file must have. A column that a link or flow does
    not have is null there.
    """
    frame = read(path, SERIES)
    for name in frame.columns[len(SERIES) :]:
        if not frame[name].dtype.is_numeric() and len(frame):
            raise InputError(f"{path}: column {brief(name)}: is not a column of numbers")
    columns: dict[str, Array] = {}
    names_by_kind: dict[str, list[str]] = {kind: [] for kind in names}
    for kind, name in frame.select("kind", "name").unique(maintain_order=True).iter_rows():
        if kind not in names:
            raise InputError(f"{path}: column kind: {shown(kind)} does not belong to the result")
        names_by_kind[kind].append(name)
        rows = frame.filter((pl.col("kind") == kind) & (pl.col("name") == name))
        time_s = rows["time_s"].to_numpy().copy()
        if not np.array_equal(columns.setdefault("series/time_s", time_s), time_s):
            raise InputError(f"{path}: column time_s: the times of {brief(name)} are others")
        for what, column in _values(path, rows, kind):
            columns[f"{kind}s/{name}/{what}"] = column
    for kind, expected in names.items():
        if len(frame) and sorted(names_by_kind[kind]) != sorted(expected):
            raise InputError(f"{path}: column name: the result has other {kind}s")
    if not (np.diff(columns.get("series/time_s", np.empty(0))) > 0).all():
        raise InputError(f"{path}: column time_s: does not ascend")
    return columns


def _values(path: Path, rows: "pl.DataFrame", kind: str) -> Iterator[tuple[str, Array]]:
    """Yield the columns of one link, flow or group."""
    for what in OF_KIND[kind]:
        is_mean = what == "sojourn_s"  # null without packets
        if what not in rows.columns or (not is_mean and rows[what].null_count()):
            raise InputError(f"{path}: column {what}: is missing for a {kind}")
    for what in rows.columns[len(SERIES) :]:
        column = rows[what]
        # NaN (mean of no packets) was saved as null; a column of nulls belongs to other kinds.
        if column.null_count() == len(column) and not (kind == "link" and what == "sojourn_s"):
            continue
        if column.dtype.is_float():
            column = column.cast(pl.Float64).fill_null(np.nan)
            if not what.startswith(GAUGE) and column.is_infinite().any():
                raise InputError(f"{path}: column {brief(what)}: has a number that is not finite")
        elif column.null_count() or not column.dtype.is_unsigned_integer():
            raise InputError(f"{path}: column {brief(what)}: has values that are not counts")
        into = f"gauge/{what.removeprefix(GAUGE)}" if what.startswith(GAUGE) else what
        yield into, column.to_numpy().copy()


def read(path: Path, columns: Mapping[str, Kind]) -> "pl.DataFrame":
    """Read a Parquet file.

    Raises
    ------
    InputError
        If it cannot be read, one of `columns` is missing or of another type, or a value is missing
        or not finite. The message names the file and the column.
    """
    check_table(path, path)
    with _reading(path):
        frame = pl.read_parquet(path, glob=False, hive_partitioning=False)
    for name, kind in columns.items():
        if name not in frame.columns:
            raise InputError(f"{path}: column {name}: is missing")
        column = frame[name]
        dtype = column.dtype
        fits = {
            "name": dtype in (pl.String, pl.Enum, pl.Categorical),
            "float": dtype == pl.Float64,
            "count": dtype.is_unsigned_integer(),
            "flag": dtype == pl.Boolean,
        }[kind]
        if len(column) and not fits:
            raise InputError(f"{path}: column {name}: {brief(str(dtype))} is not its type")
        if column.null_count():
            raise InputError(f"{path}: column {name}: has a row without a value")
        if kind == "float" and len(column) and not column.is_between(0, LONGEST_S).all():
            raise InputError(f"{path}: column {name}: has a value that is not a time")
    return frame


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Convert the errors of reading a Parquet file to an InputError about it."""
    if path.is_dir():
        raise InputError(f"{path}: is a directory")
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: {why(error)}") from None
    except read_faults() as error:
        reason = brief(str(error).partition("\n")[0])
        raise InputError(f"{path}: is not a table of a result: {reason}") from None


def _column(
    path: Path, frame: "pl.DataFrame", name: str, words: Mapping[str, Sequence[str]]
) -> Array:
    """Return a column; names become indices into `words`."""
    if name not in words:
        column: Array = frame[name].to_numpy().copy()
        return column
    place = {word: i for i, word in enumerate(words[name])}
    try:
        return np.array([place[word] for word in frame[name]], dtype=np.uint32)
    except KeyError as error:
        raise InputError(
            f"{path}: column {name}: {shown(error.args[0])} does not belong to the result"
        ) from None
