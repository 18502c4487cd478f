"""Parquet files of unknown origin."""

from functools import cache


@cache
def read_faults() -> tuple[type[BaseException], ...]:
    """Return the exceptions that reading a damaged Parquet file can raise.

    Among them are panics of polars, and UnicodeDecodeError for names of columns.
    """
    from polars.exceptions import PanicException, PolarsError

    return (OSError, ValueError, PolarsError, PanicException)
