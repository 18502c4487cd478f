"""Estimates: the value of a cell, its interval, and the runs and values that both stand on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
        Number of runs (or pairs of runs) of which it was asked.
    noun : str
        What is counted: "run" or "pair".
    """

    value: float | None
    low: float | None
    high: float | None
    runs: int
    asked: int
    noun: str = "run"

    @property
    def note(self) -> str:
        """Number of runs if some have no value, like "1 of 20 runs"; otherwise empty."""
        return f"{self.runs} of {self.asked} {self.noun}s" if self.runs < self.asked else ""

    def text(self, alone: Callable[[float], str] = short) -> str:
        """Return the cell of a table: the value, its interval, and the note in parentheses.

        A value without interval is formatted by `alone`.
        """
        body, inside = "-" if self.value is None else alone(self.value), []
        if self.value is not None and self.low is not None and self.high is not None:
            below, above = self.value - self.low, self.high - self.value
            body = with_half(self.value, (below + above) / 2, alone)
            if abs(above - below) > ENDS_ALIKE * (above + below):
                body, *_ = body.split(" ± ")
                inside.append(f"{short(self.low)} to {short(self.high)}")
        inside += [self.note] if self.note else []
        return f"{body} ({', '.join(inside)})" if inside else body


def mean_of(values: Values) -> Estimate:
    """Return the mean over the runs that have a value, with its interval (Student's t)."""
    known = [value for value in values if value is not None]
    return _estimate(interval(known), len(known), len(values), "run")


def difference_of(ours: Values, theirs: Values) -> Estimate:
    """Return the mean of `ours` - `theirs` over the pairs that have both values.

    The i-th values of both are from runs with the same seed.
    """
    both = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None]
    pairs = np.array(both, dtype=float).reshape(-1, 2)
    return _estimate(paired(pairs[:, 0], pairs[:, 1]), len(both), len(ours), "pair")


def _estimate(found: Interval, runs: int, asked: int, noun: str) -> Estimate:
    if not runs:
        return Estimate(None, None, None, 0, asked, noun)
    if runs < 2:
        return Estimate(found.mean, None, None, runs, asked, noun)
    return Estimate(found.mean, found.low, found.high, runs, asked, noun)
