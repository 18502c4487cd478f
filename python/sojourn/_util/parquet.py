"""Parquet files of unknown origin."""

import io
from functools import cache
from pathlib import Path

from sojourn._sojourn import InputError

TABLE_BYTES = 8 * 10**9
"""Largest size of a Parquet table in memory, with 8 bytes per value."""


@cache
def read_faults() -> tuple[type[BaseException], ...]:
    """Return the exceptions that reading a damaged Parquet file can raise.

    Among them are panics of polars, and UnicodeDecodeError for names of columns.
    """
    from polars.exceptions import PanicException, PolarsError

    return (OSError, ValueError, PolarsError, PanicException)


def check_table(path: Path, table: Path | bytes) -> None:
    """Raise InputError if a Parquet table is too large, without reading its values.

    A damaged table is not refused here.
    """
    import polars as pl

    source = io.BytesIO(table) if isinstance(table, bytes) else table
    try:
        columns = len(pl.read_parquet_schema(source))
        rows = pl.scan_parquet(source).select(pl.len()).collect().item()
    except read_faults():
        return
    if 8 * rows * columns > TABLE_BYTES:
        size = f"{rows} rows of {columns} columns"
        raise InputError(f"{path}: {size}, more than {TABLE_BYTES / 1e9:g} GB in memory")
