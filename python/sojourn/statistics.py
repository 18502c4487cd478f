"""Intervals of means, of differences between paired runs, of percentiles, and from one long run.

Student's quantiles and the bootstrap are SciPy's.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

LEVEL = 0.95
"""How often an interval holds the truth."""

BATCHES = 20
"""Into how many batches one long run is cut (at least 20, each much longer than a round trip)."""


@dataclass(frozen=True)
class Interval:
    """A mean, and half the width of its interval (NaN for a single value)."""

    mean: float
    half: float

    @property
    def low(self) -> float:
        """The lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """The upper end."""
        return self.mean + self.half


def quantile(freedom: float) -> float:
    """Give the factor of a standard error that spans half an interval (Student's t)."""
    from scipy.stats import t

    return float(t.ppf(0.5 + LEVEL / 2, freedom))


def half_width(values: npt.ArrayLike) -> float:
    """Give half the interval of the mean of independent `values` (Student's t); NaN for one."""
    x = np.asarray(values, dtype=float)
    return quantile(len(x) - 1) * float(x.std(ddof=1)) / len(x) ** 0.5 if len(x) > 1 else np.nan


def interval(values: npt.ArrayLike) -> Interval:
    """Give the mean of independent `values` and its interval (Student's t)."""
    x = np.asarray(values, dtype=float)
    return Interval(float(x.mean()) if len(x) else float("nan"), half_width(x))


def paired(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> Interval:
    """Give the mean of `ours` - `theirs` and its interval; the i-th of both had the same seed."""
    return interval(np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float))


def separate(ours: Mapping[int, float], theirs: Mapping[int, float]) -> bool:
    """Return True if the means of two samples, each by seed, differ at the level of 95 %.

    Where two or more seeds are in both, the interval of the paired differences excludes zero;
    otherwise the intervals of the two means do not overlap. One value never separates.
    """
    both = [seed for seed in ours if seed in theirs]
    if len(both) > 1:
        gap = paired([ours[seed] for seed in both], [theirs[seed] for seed in both])
        return gap.low > 0 or gap.high < 0
    a, b = interval([*ours.values()]), interval([*theirs.values()])
    return a.high < b.low or b.high < a.low


def percentile(values: npt.ArrayLike, percent: float, seed: int = 1) -> tuple[float, float, float]:
    """Give a percentile of independent `values` and the ends of its interval, by the bootstrap.

    The ends are percentiles of those of 9999 samples drawn from `values`; the same seed draws the
    same ones. A single value has no interval: NaN.
    """
    from scipy.stats import bootstrap

    x = np.asarray(values, dtype=float)
    if len(x) < 2:
        return (float(x[0]) if len(x) else np.nan), np.nan, np.nan

    def of(samples: Array, axis: int = -1) -> Array:
        return np.asarray(np.percentile(samples, percent, axis=axis))

    rng = np.random.default_rng(seed)
    found = bootstrap((x,), of, confidence_level=LEVEL, method="percentile", rng=rng)
    ends = found.confidence_interval
    return float(np.percentile(x, percent)), float(ends.low), float(ends.high)


def mser5(series: npt.ArrayLike) -> int:
    """Give how many values at the start of `series` are warm-up, by MSER-5 (White, 1997).

    Of means of five values, so many are cut that the standard error of the mean of the rest is
    least; never more than half (a cut beyond that says that the series is too short).
    """
    x = np.asarray(series, dtype=float)
    means = x[: len(x) // 5 * 5].reshape(-1, 5).mean(axis=1)
    n = len(means)
    if n < 4:
        return 0
    # Sums from each place to the end give all variances in one pass.
    left = np.arange(n, 0, -1, dtype=float)
    centred = means - means.mean()
    sums = np.cumsum(centred[::-1])[::-1]
    squares = np.cumsum((centred**2)[::-1])[::-1]
    error = np.maximum(squares - sums**2 / left, 0.0) / left**2
    return 5 * int(np.argmin(error[: n // 2 + 1]))


def batch_means(series: npt.ArrayLike, batches: int = BATCHES) -> Interval:
    """Give the mean of one long stationary `series` and its interval, by means of batches.

    Values beside one another are alike, so an interval from single values would be too narrow; the
    means of long batches are nearly independent. Raises ValueError if there are fewer values than
    batches.
    """
    x = np.asarray(series, dtype=float)
    if len(x) < batches:
        raise ValueError(f"{len(x)} values are too few for {batches} batches")
    return interval([part.mean() for part in np.array_split(x, batches)])
