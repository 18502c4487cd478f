"""Confidence intervals of means and of differences of means."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

Array = npt.NDArray[np.float64]

LEVEL = 0.95
"""Confidence level."""


@dataclass(frozen=True)
class Compared:
    """Means of ns-2 and of ours with half the width of their intervals (NaN for a single run)."""

    theirs: float
    theirs_half: float
    ours: float
    ours_half: float
    half: float

    @property
    def difference(self) -> float:
        """Mean of ours minus mean of ns-2."""
        return self.ours - self.theirs


def quantile(df: float) -> float:
    """Return half the width of a confidence interval in standard errors."""
    return float(student.ppf(0.5 + LEVEL / 2, df))


def half_width(values: Array) -> float:
    """Return half the width of the confidence interval of the mean of `values`."""
    n = len(values)
    return quantile(n - 1) * float(values.std(ddof=1)) / n**0.5 if n > 1 else float("nan")


def compare(theirs: Array, ours: Array) -> Compared:
    """Compare two samples of independent runs (Welch).

    A single run has no spread of its own: ours is taken in its place, so the interval is the one in
    which one more run of ours would lie.
    """
    n, m = len(theirs), len(ours)
    b = float(ours.var(ddof=1))
    if n == 1:
        half = quantile(m - 1) * (b * (1 + 1 / m)) ** 0.5
    else:
        half = _satterthwaite((float(theirs.var(ddof=1)) / n, n - 1), (b / m, m - 1))
    return Compared(
        float(theirs.mean()), half_width(theirs), float(ours.mean()), half_width(ours), half
    )


def compare_with_known_spread(known: Array, few: Array) -> Compared:
    """Compare a few runs with many of the same program, using the scatter of the latter for both.

    Three runs can by chance lie so close together that an interval from them alone says too much.
    """
    n, m = len(few), len(known)
    half = quantile(m - 1) * float(known.std(ddof=1)) * (1 / n + 1 / m) ** 0.5
    return Compared(
        float(known.mean()), half_width(known), float(few.mean()), half_width(few), half
    )


def compare_with_one_set(theirs: Array, ours: Array) -> Compared:
    """Compare runs that share one random set with `ours`, a row of runs for each of many sets.

    Their mean is off by what their set is off, as much as ours are from set to set; that spread is
    estimated from ours (analysis of variance in one way) and widens the interval. A single run of
    theirs is taken to have the spread that ours have within a set.
    """
    sets, runs = ours.shape
    means = ours.mean(axis=1)
    between = float(means.var(ddof=1))  # of the means of sets, chance within a set included
    within = float(ours.var(axis=1, ddof=1).mean())
    of_sets = max(0.0, between - within / runs)
    n = len(theirs)
    own = (float(theirs.var(ddof=1)) / n, n - 1) if n > 1 else (within, sets * (runs - 1))
    half = _satterthwaite(own, (between / sets + of_sets, sets - 1))
    return Compared(
        float(theirs.mean()), half_width(theirs), float(means.mean()), half_width(means), half
    )


def compare_in_pairs(theirs: Array, ours: Array) -> Compared:
    """Compare two samples whose i-th runs share a random set."""
    half = half_width(ours - theirs)
    return Compared(
        float(theirs.mean()), half_width(theirs), float(ours.mean()), half_width(ours), half
    )


def _satterthwaite(*parts: tuple[float, int]) -> float:
    """Return half the interval of a difference from its variance components and their freedoms."""
    variance = sum(v for v, _ in parts)
    below = sum(v**2 / df for v, df in parts)
    if below == 0.0:  # also where the squares of what varies in the last digit are
        return 0.0
    freedom = variance**2 / below
    return quantile(freedom) * float(variance**0.5)
