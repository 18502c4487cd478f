"""Parts of a claim: measured numbers and relations, and the rules that decide whether they hold.

Every comparison of measured values looks at the 95 % interval over seeds. A part

- `holds` if the interval satisfies the statement,
- `fails` if the whole interval contradicts it,
- is `undecided` if the interval straddles the limit,
- is `not testable` without an interval, as with a single seed.

A part is a *number* if the paper states its value, and a *relation* otherwise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sojourn._util.units import short as short
from sojourn._util.units import with_half
from sojourn.result.statistics import Interval, interval, paired

Result: TypeAlias = Literal["holds", "fails", "undecided", "not testable"]

WITHIN = 0.20
"""Relative tolerance of a stated number, unless a claim says otherwise."""

POINTS = 3.0
"""Tolerance in percentage points of shares, utilisations, goodputs and normalised queues: a fifth
of a utilisation of 98 % would accept more than the link carries."""

ROUNDING = 1 + 1e-9
"""Factor on tolerances: the limit itself holds."""


@dataclass(frozen=True)
class Part:
    """One part of a claim: `stated` by the paper, `measured` here.

    `value` is the measured mean, or the difference that decides, with its interval. `ns2` is the
    result of ns-2 in the same experiment, if known. `brief` is `measured` without the interval, for
    the table at the top of a page. `case` is the case of the claim, such as a sender, that the part
    is about.
    """

    what: str
    stated: str
    measured: str
    result: Result
    value: Interval | None = None
    ns2: str = ""
    brief: str = ""
    is_number: bool = False
    case: str = ""

    def with_ns2(self, ns2: str) -> "Part":
        """Return this part with the result of ns-2."""
        return replace(self, ns2=ns2)


def result_of(value: Interval, holds: bool, fails: bool) -> Result:
    """Return the result of a part from its interval and what the interval satisfies.

    A missing mean (no value in some run) fails, a missing interval (one seed) is not testable.
    """
    if math.isnan(value.mean):
        return "fails"
    if math.isnan(value.half):
        return "not testable"
    return "holds" if holds else "fails" if fails else "undecided"


def number(
    what: str,
    values: npt.ArrayLike,
    stated: float,
    *,
    unit: str = "",
    within: float = WITHIN,
    points: float | None = None,
    scale: float = 1.0,
) -> Part:
    """Compare the mean of `values` over seeds with a stated number, both in `unit`.

    The tolerance is the share `within` of the number, or `points` if given. The part holds if the
    mean is within the tolerance and half the width of the interval is not larger than it: a mean so
    uncertain agrees by luck. It fails if the whole interval is outside the tolerance. `values` are
    multiplied by `scale` first. For a value without random error see `exact`.
    """
    value = _interval(values, scale)
    room = (abs(stated) * within if points is None else points) * ROUNDING
    holds = abs(value.mean - stated) <= room and value.half <= room
    fails = value.low > stated + room or value.high < stated - room
    result = result_of(value, holds, fails)
    return _part(what, _with(short(stated), unit), value, unit, result, is_number=True)


def exact(what: str, value: float, stated: float, *, unit: str = "", within: float) -> Part:
    """Compare a computed value, which has no random error, with a stated number."""
    close = abs(value - stated) <= abs(stated) * within * ROUNDING
    result: Result = "holds" if close else "fails"
    measured, wanted = _with(short(value), unit), _with(short(stated), unit)
    point = Interval(value, 0.0)
    return Part(what, wanted, measured, result, point, brief=measured, is_number=True)


def bound(
    what: str,
    values: npt.ArrayLike,
    relation: Literal["<", ">"],
    limit: float,
    *,
    unit: str = "",
    scale: float = 1.0,
) -> Part:
    """Compare `values` over seeds with a bound: holds if the whole 95 % interval respects it."""
    value = _interval(values, scale)
    below = value.high < limit, value.low >= limit
    above = value.low > limit, value.high <= limit
    result = result_of(value, *(below if relation == "<" else above))
    return _part(what, f"{relation} {_with(short(limit), unit)}", value, unit, result)


def order(
    what: str, less: npt.ArrayLike, more: npt.ArrayLike, *, unit: str = "", scale: float = 1.0
) -> Part:
    """Compare `less` with `more` in pairs: holds if the interval of the difference is above 0.

    Both arrays are over the same seeds. The measured text has both means and the difference.
    """
    a, b = np.asarray(less, dtype=float) * scale, np.asarray(more, dtype=float) * scale
    if not len(a):
        return Part(what, "less", "no value in any run", "not testable", brief="no value")
    gap = paired(b, a)
    both = f"{short(float(a.mean()))} against {_with(short(float(b.mean())), unit)}"
    measured = f"{both}; difference {with_interval(gap, unit)}"
    result = result_of(gap, gap.low > 0, gap.high <= 0)
    return Part(what, "less", measured, result, gap, brief=both)


def equal(
    what: str,
    ours: npt.ArrayLike,
    theirs: npt.ArrayLike,
    *,
    within: float = 0.0,
    points: float | None = None,
    unit: str = "",
    scale: float = 1.0,
) -> Part:
    """Compare two means: holds if the whole interval of the difference is within a tolerance.

    The tolerance is the share `within` of the second mean, or `points` in `unit`. The difference is
    paired by seed. The part fails if the whole interval is outside the tolerance.
    """
    a, b = np.asarray(ours, dtype=float) * scale, np.asarray(theirs, dtype=float) * scale
    n = min(len(a), len(b))  # the same first seeds
    gap = paired(a[:n], b[:n])
    both = f"{short(float(a.mean()))} against {_with(short(float(b.mean())), unit)}"
    room = (within * abs(float(b.mean())) if points is None else points) * ROUNDING
    inside = max(abs(gap.low), abs(gap.high)) <= room
    result = result_of(gap, inside, gap.low > room or gap.high < -room)
    size = f"{100 * within:g} %" if points is None else _with(short(points), unit)
    measured = f"{both}; difference {with_interval(gap, unit)}"
    return Part(what, f"equal (within {size})", measured, result, gap, brief=both)


def monotone(
    what: str,
    steps: Sequence[npt.ArrayLike],
    sign: Literal[1, -1] = 1,
    *,
    unit: str = "",
    scale: float = 1.0,
) -> Part:
    """Compare each array with the next, in pairs: holds if all rise (or, sign -1, all fall).

    The interval of every difference is on the right side of 0. The part fails if the whole interval
    of any difference is on the wrong side. The measured text has the means and the smallest
    difference.
    """
    each = [np.asarray(one, dtype=float) * scale for one in steps]
    gaps = [paired(sign * b, sign * a) for a, b in pairwise(each)]
    missing = [gap for gap in gaps if math.isnan(gap.mean)]
    wrong = [gap for gap in gaps if gap.high <= 0]
    least = min(
        missing or wrong or gaps, key=lambda gap: gap.mean if math.isnan(gap.half) else gap.low
    )
    means = ", ".join(short(float(one.mean())) for one in each)
    measured = f"{_with(means, unit)}; smallest step {with_interval(least, unit)}"
    stated = "rises at every step" if sign > 0 else "falls at every step"
    brief = f"{short(float(each[0].mean()))} to {_with(short(float(each[-1].mean())), unit)}"
    result = result_of(least, least.low > 0, bool(wrong))
    return Part(what, stated, measured, result, least, brief=brief)


def shape(
    what: str, holds: bool | None, measured: str, stated: str = "so", *, undecided: bool = False
) -> Part:
    """Return a part for a relation that is not a single number, with its result and evidence.

    If `holds` is None, the part is undecided, or without `undecided` not testable.
    """
    result: Result = "undecided" if undecided else "not testable"
    if holds is not None:
        result = "holds" if holds else "fails"
    return Part(what, stated, measured, result, brief=measured)


def with_interval(value: Interval, unit: str = "") -> str:
    """Write a mean with its interval."""
    if math.isnan(value.mean):
        return "no value in some run"
    return _with(with_half(value.mean, value.half), unit)


def _interval(values: npt.ArrayLike, scale: float) -> Interval:
    return interval(np.asarray(values, dtype=float) * scale)


def _part(
    what: str, stated: str, value: Interval, unit: str, result: Result, *, is_number: bool = False
) -> Part:
    brief = "no value" if math.isnan(value.mean) else _with(short(value.mean), unit)
    measured = with_interval(value, unit)
    return Part(what, stated, measured, result, value, brief=brief, is_number=is_number)


def _with(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text
