"""Confidence intervals: means, paired differences, percentiles, batch means of one long run.

Student's quantile and the binomial distribution are implemented here, because SciPy would add 140
MB and a second of import time for these two. tests/test_statistics.py compares them with SciPy.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

LEVEL = 0.95
"""Confidence level of every interval."""

BATCHES = 20
"""Number of batches of one long run (at least 20, each much longer than a round-trip time)."""


@dataclass(frozen=True)
class Interval:
    """Mean and half the width of its 95 % confidence interval (NaN for a single value)."""

    mean: float
    half: float

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.mean + self.half


@cache
def quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t: the half width of an interval in standard errors.

    `freedom` is the number of degrees of freedom, at least 1.
    """
    v = freedom
    log_density = math.lgamma((v + 1) / 2) - math.lgamma(v / 2) - math.log(math.pi * v) / 2
    # The probability is concave in t, so Newton's method ascends to the root from the quantile of
    # the normal distribution, which is below it.
    t, before = NormalDist().inv_cdf(0.5 + LEVEL / 2), 0.0
    while t > before:
        before = t
        slope = 2 * math.exp(log_density - (v + 1) / 2 * math.log1p(t * t / v))
        t += (LEVEL - _within(t, v)) / slope
    return before


def _within(t: float, v: int) -> float:
    """Return the probability that Student's t with `v` degrees of freedom is within -t to t.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    angle = math.atan2(t, math.sqrt(v))
    sine, cosine = math.sin(angle), math.cos(angle)
    even = v % 2 == 0
    j = np.arange(1.0, v // 2 if even else (v - 1) // 2)
    ratios = (2 * j - 1) / (2 * j) if even else 2 * j / (2 * j + 1)
    series = 1 + float(np.cumprod(ratios * cosine**2).sum())
    if even:
        return sine * series
    return (angle + (sine * cosine * series if v > 1 else 0.0)) * 2 / math.pi


def half_width(values: npt.ArrayLike) -> float:
    """Return half the width of the interval of the mean of independent `values` (Student's t).

    NaN for fewer than two values.
    """
    x = np.asarray(values, dtype=float)
    return quantile(len(x) - 1) * float(x.std(ddof=1)) / len(x) ** 0.5 if len(x) > 1 else np.nan


def interval(values: npt.ArrayLike) -> Interval:
    """Return the mean of independent `values` with its interval (Student's t)."""
    x = np.asarray(values, dtype=float)
    return Interval(float(x.mean()) if len(x) else float("nan"), half_width(x))


def paired(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> Interval:
    """Return the mean of `ours` - `theirs` with its interval.

    The i-th values of both are from runs with the same seed.
    """
    return interval(np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float))


def separate(ours: Mapping[int, float], theirs: Mapping[int, float]) -> bool:
    """Return True if the means of two samples, given by seed, differ with 95 % confidence.

    If the samples share two or more seeds, the test is that the interval of the paired differences
    excludes zero; otherwise, that the intervals of the two means do not overlap. The result is
    False if a sample has a single value.
    """
    both = [seed for seed in ours if seed in theirs]
    if len(both) > 1:
        gap = paired([ours[seed] for seed in both], [theirs[seed] for seed in both])
        return gap.low > 0 or gap.high < 0
    a, b = interval([*ours.values()]), interval([*theirs.values()])
    return a.high < b.low or b.high < a.low


def share_beyond(percent: float) -> float:
    """Return the share of values on the shorter side of a percentile: 0.01 for 1 and for 99."""
    return min(percent, 100 - percent) / 100


def runs_for_interval(percent: float) -> int | None:
    """Return the number of values that `percentile` needs for an interval; None if no number does.

    The largest (or smallest) value must be beyond the percentile with a probability of 97.5 %.
    """
    share = share_beyond(percent)
    return math.ceil(math.log((1 - LEVEL) / 2) / math.log1p(-share)) if share > 0 else None


def percentile(values: npt.ArrayLike, percent: float) -> tuple[float, float, float]:
    """Return a percentile of independent `values` and both ends of its interval.

    The ends are values themselves, by the exact binomial distribution of their ranks, for any
    distribution of the values. They are NaN for fewer than `runs_for_interval` values.
    """
    x = np.sort(np.asarray(values, dtype=float))
    n, needed = len(x), runs_for_interval(percent)
    value = float(np.percentile(x, percent)) if n else np.nan
    if needed is None or n < needed:
        return value, np.nan, np.nan
    below = _binomial(n, percent / 100)
    tail = (1 - LEVEL) / 2
    # Number of values below the percentile: at least `low` and less than `high`.
    low = int(np.searchsorted(below, tail, side="right"))
    high = int(np.searchsorted(below, 1 - tail, side="left")) + 1
    return value, float(x[low - 1]), float(x[high - 1])


def _binomial(n: int, p: float) -> Array:
    """Return the probabilities of at most 0, 1, ..., n successes in `n` trials."""
    k = np.arange(n + 1)
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    log_ways = log_factorials[n] - log_factorials - log_factorials[::-1]
    return np.asarray(np.cumsum(np.exp(log_ways + k * math.log(p) + (n - k) * math.log1p(-p))))


def mser5(series: npt.ArrayLike) -> int:
    """Return the number of values at the start of `series` that are warm-up, by MSER-5.

    The series is averaged in groups of five. The cut is the one that minimises the standard error
    of the mean of the remaining groups, up to half of the series; a cut at half means that the
    series is too short.

    White, "An effective truncation heuristic for bias reduction in simulation output",
    Simulation 69(6), 1997.
    """
    x = np.asarray(series, dtype=float)
    means = x[: len(x) // 5 * 5].reshape(-1, 5).mean(axis=1)
    n = len(means)
    if n < 4:
        return 0
    # Sums from each index to the end give all variances in one pass.
    left = np.arange(n, 0, -1, dtype=float)
    centred = means - means.mean()
    sums = np.cumsum(centred[::-1])[::-1]
    squares = np.cumsum((centred**2)[::-1])[::-1]
    error = np.maximum(squares - sums**2 / left, 0.0) / left**2
    return 5 * int(np.argmin(error[: n // 2 + 1]))


def batch_means(series: npt.ArrayLike, batches: int = BATCHES) -> Interval:
    """Return the mean of one long stationary `series` with its interval, by batch means.

    Neighbouring values are correlated, so an interval from single values would be too narrow. The
    means of long batches are nearly independent.

    Raises
    ------
    ValueError
        If there are fewer values than batches.
    """
    x = np.asarray(series, dtype=float)
    if len(x) < batches:
        raise ValueError(f"{len(x)} values are too few for {batches} batches")
    return interval([part.mean() for part in np.array_split(x, batches)])
