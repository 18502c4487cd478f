"""Slowdowns over the size of transfers, in bins of equal counts, as HPCC's scripts make them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sojourn._sojourn import InputError
from sojourn._util.inputs import shown
from sojourn._util.lazy import Lazy
from sojourn._util.public import public
from sojourn.result.result import Result
from sojourn.result.transfers import Definition, fct_table

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")

PERCENTS = (50, 95, 99)
"""Percentiles of a bin."""

BINS_MAX = 1000
"""Largest number of bins."""


@public
def slowdown_bins(
    results: Result | Sequence[Result],
    group: str | None = None,
    definition: Definition = "hpcc",
    bins: int = 20,
) -> "pl.DataFrame":
    """Return percentiles of the slowdown over the size of transfers.

    Transfers are sorted by size and divided into bins of as many transfers each.

    Parameters
    ----------
    results : Result or sequence of Result
        One run, or several (other seeds) whose transfers are put together.
    group : str, optional
        Group of flows; by default all.
    definition : {"alone", "hpcc", "pfabric", "homa"}, optional
        Definition of the slowdown, see `fct_table`.
    bins : int, optional
        Number of bins, up to 1000. Without as many transfers, there is a bin for each.

    Returns
    -------
    polars.DataFrame
        Columns `size_bytes` (the largest in the bin), `count`, `p50`, `p95` and `p99`. A percentile
        is the value at the place n p of the n sorted values, rounded down, counted from 0.

    Raises
    ------
    InputError
        As for `fct_table`, or if `bins` is out of range.
    """
    if not isinstance(bins, int) or not 1 <= bins <= BINS_MAX:
        raise InputError(f"bins: {shown(bins)} is no whole number from 1 to {BINS_MAX}")
    runs = [results] if isinstance(results, Result) else list(results)
    tables = [fct_table(one, group, definition).select("bytes", "slowdown") for one in runs]
    frame = pl.concat(tables).sort("bytes", "slowdown")
    size, slowdown = frame["bytes"].to_numpy(), frame["slowdown"].to_numpy()
    edges = [k * len(frame) // bins for k in range(bins + 1)]
    rows = []
    for start, end in pairwise(edges):
        if start == end:
            continue
        ordered = np.sort(slowdown[start:end])
        values = [float(ordered[int((end - start) * p / 100)]) for p in PERCENTS]
        rows.append((int(size[end - 1]), end - start, *values))
    names = {"size_bytes": pl.UInt64, "count": pl.UInt64}
    return pl.DataFrame(rows, names | {f"p{p}": pl.Float64 for p in PERCENTS}, orient="row")
