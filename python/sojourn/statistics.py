"""Intervals: of means, and of differences between paired runs. The quantiles are SciPy's."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

LEVEL = 0.95
"""How often an interval holds the truth."""


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
