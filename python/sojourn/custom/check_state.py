"""Tests that all classes have in common: repetition, random numbers, size of the state, copies."""

import pickle
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sojourn import _sojourn
from sojourn.custom.base import Custom, state_of

GROWTH = 2.0
"""Largest ratio of the sizes of the state after many calls and after a quarter of them."""

FLOOR_BYTES = 4000
"""Size of a state that is never too large."""

SUMMARY = "the summary"
"""Name of the column with the bytes of a summary."""

Run = Mapping[str, Any]
"""Columns of a run by name."""


def text_of(error: Exception) -> str:
    """Return type, message and notes of an exception in one line."""
    notes = "; ".join(getattr(error, "__notes__", ()))
    text = f"{type(error).__name__}: {error}"
    return f"{text} ({notes})" if notes else text


def differs(kinds: Sequence[str], first: Callable[[str], Run], again: Callable[[str], Run]) -> str:
    """Return how a second run of a kind differs from the first; empty if none does."""
    before = random.getstate(), np.random.get_state()
    try:
        for kind in kinds:
            random.seed(1)
            np.random.seed(1)
            second = again(kind)
            for name, column in first(kind).items():
                if name not in second or column.tobytes() != second[name].tobytes():
                    hint = "it depends on something besides its arguments"
                    return f"{name} differs between two runs: {hint}"
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
    return ""


def unlike_plain(compiled: Any, plain: Any) -> str:
    """Return where native code and plain Python differ; empty if nowhere."""
    for kind in compiled.kinds:
        expected = plain.run(kind)
        for name, column in compiled.run(kind).items():
            if name == SUMMARY:  # it has the parameter `compiled`
                continue
            if name not in expected or column.tobytes() != expected[name].tobytes():
                return f"{name} differs from plain Python{_first(column, expected.get(name))}"
    return ""


def _first(column: Any, expected: Any) -> str:
    """Return index and values of the first difference of two columns of numbers."""
    if expected is None or column.shape != expected.shape:
        return ""
    same = (column == expected) | ((column != column) & (expected != expected))
    place = int(np.flatnonzero(~same)[0])
    return f" at index {place}: {column[place]} in place of {expected[place]}"


def own_generator(instance: Custom, allowed: str) -> str:
    """Return which attribute is a random number generator; empty if none is."""
    kinds = (random.Random, np.random.Generator, np.random.RandomState)
    for name, value in vars(instance).items():
        if isinstance(value, kinds):
            return f"self.{name} is a random number generator of its own; use {allowed}"
    return ""


def grows(instance: Custom, work: Callable[[int], Any], calls: int, unit: str) -> str:
    """Return how the state grows with calls of `work`; empty if it is bounded."""
    work(calls)
    before = _bytes_of(instance)
    work(3 * calls)
    after = _bytes_of(instance)
    if after > max(GROWTH * before, FLOOR_BYTES):
        return f"the state grows from {before} bytes to {after} with {4 * calls} {unit}"
    return ""


def _bytes_of(instance: Custom) -> int:
    """Return the size of the pickled state."""
    return len(pickle.dumps(state_of(instance)))


COPIED = "a copy continues differently: copies share state, or copy.deepcopy omits some"


def copies(parsed: _sojourn.ParsedScenario, half_ns: int) -> str:
    """Return how a run differs from its forks at a time; empty if it does not."""
    whole = parsed.simulate()[0]
    sim = _sojourn.Simulation(parsed)
    sim.run_until(f"{half_ns}ns")
    for one in (sim.fork(), sim.fork(), sim):
        one.run_until(f"{one.end_ns}ns")
        if one.result()[0] != whole:
            return COPIED
    return ""
