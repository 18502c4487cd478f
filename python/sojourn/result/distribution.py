"""Distributions: distinct values of a run with their counts, and their form in stored rows.

Values are durations in seconds, grouped in bins as in the histograms of Rust: 128 per doubling, so
that a value is right to 0.4 %.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sojourn._sojourn import InputError
from sojourn.result.statistics import Array

Integers: TypeAlias = npt.NDArray[np.int64]

FINE = 7
"""log2 of the number of bins per doubling, as in Rust."""

RESOLUTION = 2.0 ** -(FINE + 1)
"""Largest relative distance of a value from the middle of its bin."""


@dataclass(frozen=True)
class Distribution:
    """Distinct bins in ascending order, and the number of values in each."""

    bins: Integers
    counts: Integers

    @classmethod
    def of(cls, values_s: npt.ArrayLike, counts: npt.ArrayLike | None = None) -> "Distribution":
        """Return the distribution of durations in seconds, each counted once or `counts` times."""
        ns = np.rint(np.asarray(values_s, dtype=float) * 1e9).astype(np.int64)
        octave = np.maximum(np.frexp(ns.astype(float))[1] - 1 - FINE, 0).astype(np.int64)
        # Below 128 ns a bin is a nanosecond; above, 128 bins follow per doubling.
        place = (ns >> octave) + (octave << FINE)
        bins, index = np.unique(place, return_inverse=True)
        weights = np.ones(len(ns)) if counts is None else np.asarray(counts, dtype=float)
        return cls(bins, np.bincount(index, weights, minlength=len(bins)).astype(np.int64))

    @property
    def number(self) -> int:
        """Number of values."""
        return int(self.counts.sum())

    def percentile(self, percent: float) -> float | None:
        """Return a percentile in seconds, by nearest rank, accurate to 0.4 %.

        Parameters
        ----------
        percent : float
            Share of the values that are at most the result, from 0 to 100.

        Returns
        -------
        float or None
            The percentile; None without values.

        Raises
        ------
        InputError
            If `percent` is out of range.
        """
        if not 0 <= percent <= 100:
            raise InputError(f"percent: {percent} is out of range, allowed: 0 to 100")
        if not self.number:
            return None
        rank = max(1, math.ceil(percent / 100 * self.number - 1e-9))
        place = int(np.searchsorted(np.cumsum(self.counts), rank))
        return float(middles_s(self.bins[place : place + 1])[0])

    def text(self) -> str:
        """Return the form in stored rows, "BIN:COUNT,STEP:COUNT,...": each bin by its step."""
        steps = np.diff(self.bins, prepend=0).tolist()
        pairs = zip(steps, self.counts.tolist(), strict=True)
        return ",".join(f"{step}:{count}" for step, count in pairs)

    @classmethod
    def parse(cls, text: str) -> "Distribution":
        """Return the distribution in a stored row. Raises ValueError if it is none."""
        numbers = [int(part) for part in text.replace(":", ",").split(",")] if text else []
        steps, counts = (np.array(numbers[i::2], dtype=np.int64) for i in (0, 1))
        if len(steps) != len(counts) or (len(steps) and (steps[1:] <= 0).any()):
            raise ValueError("is not a distribution")
        return cls(np.cumsum(steps), counts)


def middles_s(bins: Integers) -> Array:
    """Return the middle of each bin in seconds."""
    octave = np.maximum((bins >> FINE) - 1, 0)
    low = (bins - (octave << FINE)) << octave
    ns = low + ((1 << octave) >> 1)
    return np.asarray(ns / 1e9, dtype=float)


def cumulated(runs: Sequence[Distribution]) -> tuple[Integers, Array]:
    """Return the distinct bins of several runs, and the counts up to each, one row per run."""
    bins = np.unique(np.concatenate([one.bins for one in runs]))
    counts = np.zeros((len(runs), len(bins)))
    for row, one in zip(counts, runs, strict=True):
        row[np.searchsorted(bins, one.bins)] = one.counts
    return bins, np.cumsum(counts, axis=1)
