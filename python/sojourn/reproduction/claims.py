"""Claims of a paper, and how they are judged: by rules that stand before the result is known.

A claim has parts, each a number or a relation that was measured. It `holds` if all parts do,
holds `partly` if some do, `does not hold` if none does, and is `not testable` without any.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sojourn._util.units import short as short
from sojourn._util.units import with_half
from sojourn.result.statistics import Interval, interval, paired

if TYPE_CHECKING:
    import polars as pl

Runs: TypeAlias = Mapping[str, "pl.DataFrame"]
"""The rows of each experiment by its name: labels, seed, and what was measured."""

Verdict: TypeAlias = Literal["holds", "partly", "does not hold", "not testable"]

WITHIN = 0.20
"""How far, relative to it, a stated number may be from ours: the rule of all papers here."""


class NoRunsError(KeyError):
    """A claim or a figure asks for runs that were not made."""


@dataclass(frozen=True)
class Part:
    """One thing that a claim says: `stated` by the paper, `measured` here, and whether it holds.

    `value` is the mean of what was measured with its interval, where it is a number; `ns2` what
    ns-2 gave in the same experiment, where we know.
    """

    what: str
    stated: str
    measured: str
    holds: bool
    value: Interval | None = None
    ns2: str = ""

    def beside(self, ns2: str) -> "Part":
        """Give it with what ns-2 found."""
        return replace(self, ns2=ns2)


@dataclass(frozen=True)
class Claim:
    """A claim: its id, what it says in our words, and the figure it is about.

    `stated` is the number or relation of the paper, `how` tells how it is measured and with which
    tolerance, `check` measures it. Without `check` it is not testable, and `how` says why.
    """

    id: str
    says: str
    figure: str
    stated: str
    how: str
    check: Callable[[Runs], Sequence[Part]] | None = None
    needs: Sequence[str] = ()


def verdict(parts: Sequence[Part]) -> Verdict:
    """Judge a claim by its parts."""
    if not parts:
        return "not testable"
    held = sum(part.holds for part in parts)
    return "holds" if held == len(parts) else "partly" if held else "does not hold"


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

    It holds within `within` of it, relative, or within `points` absolute, where that is given.
    `values` are multiplied by `scale` first.
    """
    found = interval(np.asarray(values, dtype=float) * scale)
    room = abs(stated) * within if points is None else points
    holds = abs(found.mean - stated) <= room * (1 + 1e-9)  # the edge belongs to it
    return Part(what, _with(short(stated), unit), told(found, unit), holds, found)


def bound(
    what: str,
    values: npt.ArrayLike,
    relation: Literal["<", ">"],
    limit: float,
    *,
    unit: str = "",
    scale: float = 1.0,
) -> Part:
    """Compare the mean of `values` over seeds with a bound."""
    found = interval(np.asarray(values, dtype=float) * scale)
    holds = found.mean < limit if relation == "<" else found.mean > limit
    return Part(what, f"{relation} {_with(short(limit), unit)}", told(found, unit), holds, found)


def order(
    what: str, less: npt.ArrayLike, more: npt.ArrayLike, *, unit: str = "", scale: float = 1.0
) -> Part:
    """Ask whether `less` is below `more`, seed by seed: the interval of `more` - `less` is above 0.

    Two arrays over the same seeds. The measured text has both means and the difference.
    """
    a, b = np.asarray(less, dtype=float) * scale, np.asarray(more, dtype=float) * scale
    gap = paired(b, a)
    both = f"{short(float(a.mean()))} against {_with(short(float(b.mean())), unit)}"
    holds = gap.mean > 0 if math.isnan(gap.half) else gap.low > 0
    return Part(what, "less", f"{both}; difference {told(gap, unit)}", holds, gap)


def equal(
    what: str,
    ours: npt.ArrayLike,
    theirs: npt.ArrayLike,
    *,
    within: float,
    unit: str = "",
    scale: float = 1.0,
) -> Part:
    """Ask whether two means differ by no more than the share `within` of the second."""
    a, b = np.asarray(ours, dtype=float) * scale, np.asarray(theirs, dtype=float) * scale
    gap = paired(a, b) if len(a) == len(b) else Interval(float(a.mean() - b.mean()), math.nan)
    both = f"{short(float(a.mean()))} against {_with(short(float(b.mean())), unit)}"
    holds = abs(gap.mean) <= within * abs(float(b.mean()))
    stated = f"equal (within {100 * within:g} %)"
    return Part(what, stated, f"{both}; difference {told(gap, unit)}", holds, gap)


def shape(what: str, holds: bool, measured: str, stated: str = "so") -> Part:
    """State a relation that is no single number: whether it `holds`, and what that rests on."""
    return Part(what, stated, measured, bool(holds))


def told(value: Interval, unit: str = "") -> str:
    """Write a mean with its interval."""
    return _with(with_half(value.mean, value.half), unit)


def _with(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text


def values(frame: "pl.DataFrame", column: str, **labels: Any) -> npt.NDArray[Any]:
    """Give a column of the runs with these labels, in the order of their seeds.

    Raises NoRunsError if there are none: a claim that measures nothing is a fault.
    """
    import polars as pl

    chosen = frame
    for name, value in labels.items():
        chosen = chosen.filter(pl.col(name) == value)
    if not len(chosen):
        raise NoRunsError(f"no runs with {labels}")
    found: npt.NDArray[Any] = chosen.sort("seed")[column].to_numpy()
    return found


def mean(frame: "pl.DataFrame", column: str, **labels: Any) -> float:
    """Give the mean over seeds of a column of the runs with these labels."""
    return float(np.mean(values(frame, column, **labels)))
