"""Confidence intervals: means, paired differences, percentiles, batch means of one long run.

Student's quantile and the bootstrap are implemented here, because SciPy would add 140 MB and a
second of import time for these two. tests/test_statistics.py compares them with SciPy.
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

SAMPLES = 9999
"""Number of bootstrap samples."""

NUMBERS_AT_ONCE = 5_000_000
"""Largest number of values of bootstrap samples in memory at the same time."""


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


def percentile(values: npt.ArrayLike, percent: float, seed: int = 1) -> tuple[float, float, float]:
    """Return a percentile of independent `values` and both ends of its interval (bootstrap).

    The ends are percentiles over 9999 samples with replacement; `seed` makes them reproducible.
    They are NaN for a single value.
    """
    x = np.asarray(values, dtype=float)
    n = len(x)
    if n < 2:
        return (float(x[0]) if n else np.nan), np.nan, np.nan
    rng = np.random.default_rng(seed)
    rows = max(1, NUMBERS_AT_ONCE // n)
    drawn = [
        np.percentile(x[rng.integers(0, n, (min(rows, SAMPLES - i), n))], percent, axis=1)
        for i in range(0, SAMPLES, rows)
    ]
    low, high = np.percentile(np.concatenate(drawn), [50 - 50 * LEVEL, 50 + 50 * LEVEL])
    return float(np.percentile(x, percent)), float(low), float(high)


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
