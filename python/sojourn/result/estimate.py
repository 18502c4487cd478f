"""Estimates: the value of a cell, its interval, and the runs and values that both stand on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sojourn._util.units import short, with_half
from sojourn.result.statistics import Interval, interval, paired

Values = Sequence[float | None]
"""Value of each run, None where a run has none."""

ENDS_ALIKE = 1e-6
"""Largest difference of the two halves of an interval that is shown as one, as a share of it."""


@dataclass(frozen=True)
class Estimate:
    """Estimate of a quantity from several runs.

    Attributes
    ----------
    value : float or None
        The estimate; None if no run has a value.
    low, high : float or None
        Ends of the 95 % interval; None if there is none.
    runs : int
        Number of runs (or pairs of runs) with a value.
    asked : int
        Number of runs (or pairs of runs) in all, with and without a value.
    noun : str
        What is counted: "run" or "pair".
    values : int or None
        Number of values of all runs, for a percentile of them.
    needed : int or None
        Number of values that the value or the interval needs, if there are fewer.
    """

    value: float | None
    low: float | None
    high: float | None
    runs: int
    asked: int
    noun: str = "run"
    values: int | None = None
    needed: int | None = None

    @property
    def notes(self) -> list[str]:
        """Number of values, or of runs, if there are too few, like "1 of 20 runs"."""
        if self.needed is not None and self.runs:
            return [f"{self.values} of {self.needed} values"]
        return [f"{self.runs} of {self.asked} {self.noun}s"] * (self.runs < self.asked)

    def times(self, scale: float) -> "Estimate":
        """Return the estimate in another unit."""
        value, low, high = (
            None if one is None else one * scale for one in (self.value, self.low, self.high)
        )
        return replace(self, value=value, low=low, high=high)

    def text(self, alone: Callable[[float], str] = short) -> str:
        """Return the cell of a table: the value, its interval, and the notes in parentheses.

        A value without interval is formatted by `alone`.
        """
        body, inside = "-" if self.value is None else alone(self.value), []
        if self.value is not None and self.low is not None and self.high is not None:
            below, above = self.value - self.low, self.high - self.value
            body = with_half(self.value, (below + above) / 2, alone)
            if abs(above - below) > ENDS_ALIKE * (above + below):
                body, *_ = body.split(" ± ")
                inside.append(f"{short(self.low)} to {short(self.high)}")
        inside += self.notes
        return f"{body} ({', '.join(inside)})" if inside else body


EVENTS = 20
"""Number of events (lost packets, timeouts, transfers) that the interval of their mean needs.

With fewer the distribution of the mean is too skewed for Student's t.
"""


def mean_of(values: Values, events: Values | None = None) -> Estimate:
    """Return the mean over the runs that have a value, with its interval (Student's t).

    `events` are the numbers of events of each run that the values count or are a share of. There is
    no interval below `EVENTS` of them, unless all values are equal.
    """
    known = [value for value in values if value is not None]
    estimate = _estimate(interval(known), len(known), len(values), "run")
    if events is None or len(set(known)) < 2:
        return estimate
    if sum(value for value in events if value is not None) < EVENTS:
        return without_interval(estimate)
    return estimate


def without_interval(estimate: Estimate) -> Estimate:
    """Return an estimate without its interval."""
    return replace(estimate, low=None, high=None)


def difference_of(ours: Values, theirs: Values) -> Estimate:
    """Return the mean of `ours` - `theirs` over the pairs that have both values.

    The i-th values of both are from runs with the same seed.
    """
    both = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None]
    pairs = np.array(both, dtype=float).reshape(-1, 2)
    return _estimate(paired(pairs[:, 0], pairs[:, 1]), len(both), len(ours), "pair")


def _estimate(mean: Interval, runs: int, total: int, noun: str) -> Estimate:
    if not runs:
        return Estimate(None, None, None, 0, total, noun)
    if runs < 2:
        return Estimate(mean.mean, None, None, runs, total, noun)
    return Estimate(mean.mean, mean.low, mean.high, runs, total, noun)
