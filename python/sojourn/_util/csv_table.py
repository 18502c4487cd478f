"""CSV tables: read columns as text, and convert them to numbers with range checks."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief, shown
from sojourn._util.reading import bytes_of_file, text_of, unpacked

if TYPE_CHECKING:
    import polars as pl


def read_table(path: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> "pl.DataFrame":
    """Read the columns `needed` and `optional` of a CSV file, gzipped or not, as text.

    Raises InputError if the file cannot be read, is not a table, or lacks a column of `needed`.
    """
    import polars as pl

    text = text_of(path, unpacked(path, bytes_of_file(path)))
    try:
        head = next(csv.reader([text.lstrip().partition("\n")[0]]), [])
    except csv.Error as error:
        raise InputError(f"{path}: row 0: {error}") from None
    header = [name.strip() for name in head]
    for name in (*needed, *optional):
        if header.count(name) > 1:
            raise InputError(f"{path}: column {name} is given twice")
    try:
        table = pl.read_csv(text.encode(), infer_schema=False)
    except pl.exceptions.PolarsError as error:
        first = str(error).strip().partition("\n")[0]
        raise InputError(f"{path}: this is not a table: {brief(first)}") from None
    # Of columns whose names differ by blanks, one that is not asked for may be there twice.
    there = {name.strip(): name for name in reversed(table.columns)}
    table = table.select(pl.col(name).alias(short) for short, name in reversed(there.items()))
    for name in needed:
        if name not in table.columns:
            columns = ", ".join(brief(column) for column in table.columns[:20])
            raise InputError(f"{path}: column {name} is missing (there are: {columns})")
    return table.select([name for name in (*needed, *optional) if name in table.columns])


def numbers(
    path: Path, table: "pl.DataFrame", column: str, lo: float, hi: float, *, whole: bool = True
) -> npt.NDArray[Any]:
    """Return a column as numbers from `lo` to `hi`.

    Raises InputError for the first invalid value, with the number of its row (from 1).
    """
    import polars as pl

    texts = table[column].str.strip_chars()
    values = texts.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    good = (values >= lo) & (values <= hi)
    if whole:
        good &= np.mod(np.where(good, values, 0), 1) == 0
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        kind = "whole number" if whole else "number"
        text = texts[row]
        value = "nothing" if text is None else shown(text)
        raise InputError(
            f"{path}: row {row + 1}, column {column}: {value} is not a {kind} from {lo:.0f} "
            f"to {hi:.0f}"
        )
    return values
