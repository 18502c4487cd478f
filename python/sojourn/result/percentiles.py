"""Percentiles over the values of several runs together, with intervals that resample whole runs.

Values of one run depend on each other, so that an interval from single values would be too narrow.
An end of the interval is a value that Student's t does not reject as the percentile: the numbers of
values below it, one per run, do not differ from the expected ones. Woodruff, "Confidence intervals
for medians and other position measures", Journal of the American Statistical Association 47, 1952,
with runs as the sampled units. `make coverage` measures how often these intervals hold.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sojourn.result.distribution import RESOLUTION, Distribution, Integers, cumulated, middles_s
from sojourn.result.estimate import Estimate
from sojourn.result.statistics import Array, quantile, share_beyond

BEYOND = 10
"""Number of values beyond a percentile that its interval needs."""

RUNS = 3
"""Number of runs that an interval needs."""

Runs = Sequence[Distribution | None]
"""Distribution of each run, None or empty where a run has no values."""


def values_for_value(percent: float) -> int:
    """Return the number of values that carry a percentile: with fewer it is the extreme one."""
    share = share_beyond(percent)
    return math.ceil(1 / share - 1e-9) if share > 0 else 1


def values_for_interval(percent: float) -> int | None:
    """Return the number of values that the interval of a percentile needs; None if none does."""
    share = share_beyond(percent)
    return math.ceil(BEYOND / share - 1e-9) if share > 0 else None


def percentile_of(runs: Runs, percent: float) -> Estimate:
    """Return a percentile over the values of all runs together, by nearest rank, in seconds.

    There is no value below `values_for_value` values, and no interval below `RUNS` runs or
    `values_for_interval` values.
    """
    known = [one for one in runs if one is not None and one.number]
    number = sum(one.number for one in known)
    least, enough = values_for_value(percent), values_for_interval(percent)
    if number < least:
        return Estimate(None, None, None, len(known), len(runs), values=number, needed=least)
    bins, counts = cumulated(known)
    value = float(middles_s(bins)[_rank(counts, percent)])
    estimate = Estimate(value, None, None, len(known), len(runs), values=number)
    if enough is None or len(runs) < RUNS:
        return estimate
    ends = _ends(bins, counts, percent) if number >= enough and len(known) >= RUNS else None
    low, high = ends or (None, None)
    needed = enough if number < enough else None
    return Estimate(value, low, high, len(known), len(runs), values=number, needed=needed)


def percentile_difference_of(ours: Runs, theirs: Runs, percent: float) -> Estimate:
    """Return the difference of two percentiles over the pairs of runs in which both have values.

    The interval combines both intervals, with the correlation of the pairs. Zou and Donner,
    "Construction of confidence limits about effect measures", Statistics in Medicine 27, 2008.
    """
    both = [(a, b) for a, b in zip(ours, theirs, strict=True) if a and b and a.number and b.number]
    a, b = (percentile_of([pair[side] for pair in both], percent) for side in (0, 1))
    fewer = a if (a.values or 0) <= (b.values or 0) else b
    estimate = replace(fewer, value=None, low=None, high=None, asked=len(ours), noun="pair")
    if a.value is None or b.value is None:
        return estimate
    gap = a.value - b.value
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return replace(estimate, value=gap)
    shared = _correlation([pair[0] for pair in both], [pair[1] for pair in both], percent)

    def reach(mine: float, other: float) -> float:
        return math.sqrt(max(0.0, mine**2 + other**2 - 2 * shared * mine * other))

    low = gap - reach(a.value - a.low, b.high - b.value)
    high = gap + reach(a.high - a.value, b.value - b.low)
    return replace(estimate, value=gap, low=low, high=high)


def _rank(counts: Array, percent: float) -> int:
    """Return the index of the bin of a percentile by nearest rank; `counts` are cumulated."""
    total = counts.sum(axis=0)
    return int(np.searchsorted(total, max(1.0, math.ceil(percent / 100 * total[-1] - 1e-9))))


def _excess(counts: Array, percent: float) -> Array:
    """Return, per run and bin, the number of values up to it above the expected one."""
    return np.asarray(counts - percent / 100 * counts[:, -1:], dtype=float)


def _ends(bins: Integers, counts: Array, percent: float) -> tuple[float, float] | None:
    """Return both ends of the interval, at the edges of bins; None if an end is open."""
    excess = _excess(counts, percent)
    mean = excess.mean(axis=0)
    limit = quantile(len(counts) - 1) * excess.std(axis=0, ddof=1) / len(counts) ** 0.5
    low = int(np.argmax(mean >= -limit))
    high = int(np.max(np.flatnonzero(mean <= limit), initial=-1)) + 1
    if high == len(bins):
        return None
    first, last = middles_s(bins[[low, high]])
    return float(first * (1 - RESOLUTION)), float(last * (1 + RESOLUTION))


def _correlation(
    ours: Sequence[Distribution], theirs: Sequence[Distribution], percent: float
) -> float:
    """Return the correlation over runs of the numbers of values below both percentiles."""
    columns = []
    for runs in (ours, theirs):
        _, counts = cumulated(runs)
        columns.append(_excess(counts, percent)[:, _rank(counts, percent)])
    a, b = columns
    return float(np.corrcoef(a, b)[0, 1]) if min(a.std(), b.std()) > 0 else 0.0
