"""Search for the last value at which a requirement is met: bracketing by doubling, bisection.

The search assumes that the requirement is met on one side of a limit. It looks for three limits
with the same runs: of the estimate, and of both ends of its interval.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import TypeAlias

from sojourn.sweeps.grid import Grid


class Find(Enum):
    """Direction of the answer: the largest or the smallest value that meets the requirement."""

    LARGEST = 1
    SMALLEST = -1

    @property
    def other(self) -> "Find":
        """The opposite direction."""
        return Find(-self.value)


@dataclass(frozen=True)
class Verdict:
    """Judgement of one value.

    `is_met` is about the estimates. `is_sure` is True if the whole intervals of all needs are on
    their good side, and `is_out` if the whole interval of a need is on its bad side. Both are False
    without an interval of each need (`has_interval`).
    """

    is_met: bool
    is_sure: bool
    is_out: bool
    has_interval: bool = True


@dataclass(frozen=True)
class Limits:
    """Result of a search, in places of the grid.

    Attributes
    ----------
    find : Find
        Direction of the answer.
    value : int or None
        Last place that meets the requirement; None if no place does.
    beyond : int or None
        Next place, which does not meet it; None if the range ends at `value`.
    sure : int or None
        Last place whose whole interval meets it.
    possible : int or None
        Last place whose interval does not exclude it.
    odd : tuple of (int, int), optional
        A place that meets the requirement and one that does not, in the wrong order.
    """

    find: Find
    value: int | None
    beyond: int | None
    sure: int | None
    possible: int | None
    odd: tuple[int, int] | None = None


Search: TypeAlias = Generator[int, Verdict, Limits]
"""Search: yields the next place to judge, receives its verdict, returns the limits."""


@dataclass
class _Range:
    """Places that may be judged, and the verdicts so far."""

    grid: Grid
    first: int
    last: int
    known: dict[int, Verdict] = field(default_factory=dict)

    def judge(self, place: int) -> Generator[int, Verdict, Verdict]:
        """Return the verdict on a place, which is judged once."""
        if place not in self.known:
            self.known[place] = yield place
        return self.known[place]

    def away(self, place: int, up: bool) -> int:
        """Return the place of double the number, or of half of it, within the range."""
        number = self.grid.number(place)
        if up:
            return min(self.last, max(place + 1, self.grid.place(2 * number)))
        return max(self.first, min(place - 1, self.grid.place(number / 2)))


def search(
    grid: Grid, first: int, last: int, start: int, guess: Find, *, is_stated: bool
) -> Search:
    """Search from `first` to `last`, beginning at `start`.

    With `is_stated` the direction is `guess`; otherwise the other one is tried if the range has no
    limit in it.
    """
    span = _Range(grid, first, last)
    limits = yield from _directed(span, start, guess)
    no_limit = limits.value is None or limits.beyond is None
    if no_limit and not is_stated:
        other = yield from _directed(span, start, guess.other)
        if other.value is not None and other.beyond is not None:
            limits = other
    return limits


def _directed(span: _Range, start: int, find: Find) -> Search:
    """Search the limit in one direction: of the estimate, then of both ends of its interval."""
    met = yield from _edge(span, start, find, lambda one: one.is_met)
    value, beyond = met
    if value is None:
        return Limits(find, None, beyond, None, None, _odd(span.known, find))
    sure = possible = None
    if any(one.has_interval for one in span.known.values()):
        sure, _ = yield from _edge(span, value, find, lambda one: one.is_sure, until=value)
        possible, _ = yield from _edge(span, value, find, lambda one: not one.is_out)
    if beyond is not None:
        # Values further away show a requirement that is met in several places.
        up = find is Find.LARGEST
        yield from span.judge(span.away(beyond, up))
        yield from span.judge(span.away(value, not up))
    return Limits(find, value, beyond, sure, possible, _odd(span.known, find))


def _edge(
    span: _Range,
    start: int,
    find: Find,
    holds: Callable[[Verdict], bool],
    until: int | None = None,
) -> Generator[int, Verdict, tuple[int | None, int | None]]:
    """Return the last place at which `holds`, and the next one; None beyond an end of the range.

    Verdicts so far narrow the range before any other place is judged. With `until`, only places up
    to it count, and the last change of `holds` among them; otherwise the first one.
    """
    up = find is Find.LARGEST
    end, far_end = (span.last, span.first) if up else (span.first, span.last)
    good, bad = _bracket(span.known, find, holds, until)
    if bad is None and good is not None and good == until:
        return good, None
    if good is None and bad is None:
        good, bad = (start, None) if holds((yield from span.judge(start))) else (None, start)
    while bad is None and good != end:
        place = span.away(good if good is not None else start, up)
        if holds((yield from span.judge(place))):
            good = place
        else:
            bad = place
    while good is None and bad is not None and bad != far_end:
        place = span.away(bad, not up)
        if holds((yield from span.judge(place))):
            good = place
        else:
            bad = place
    if good is None or bad is None:
        return good, bad
    while abs(bad - good) > 1:
        middle = (good + bad) // 2
        if holds((yield from span.judge(middle))):
            good = middle
        else:
            bad = middle
    return good, bad


def _bracket(
    known: Mapping[int, Verdict],
    find: Find,
    holds: Callable[[Verdict], bool],
    until: int | None,
) -> tuple[int | None, int | None]:
    """Return the neighbours, among the judged places, between which `holds` ends.

    If it holds everywhere, or nowhere, one of them is None. `until` is described in `_edge`.
    """
    ordered = sorted(known, reverse=find is Find.SMALLEST)
    if until is not None:
        ordered = ordered[: ordered.index(until) + 1]
        if holds(known[until]):
            return until, None
    pairs = list(pairwise(ordered))
    for good, bad in pairs if until is None else reversed(pairs):
        if holds(known[good]) and not holds(known[bad]):
            return good, bad
    if not ordered:
        return None, None
    return (ordered[-1], None) if holds(known[ordered[-1]]) else (None, ordered[0])


def _odd(known: Mapping[int, Verdict], find: Find) -> tuple[int, int] | None:
    """Return a place that meets the requirement beyond one that does not, if noise is no reason.

    With intervals, both must be certain.
    """
    has_interval = any(one.has_interval for one in known.values())
    failed: int | None = None
    for place in sorted(known, reverse=find is Find.SMALLEST):
        one = known[place]
        if failed is not None and (one.is_sure if has_interval else one.is_met):
            return place, failed
        if failed is None and (one.is_out if has_interval else not one.is_met):
            failed = place
    return None
