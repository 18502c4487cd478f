"""Claims of a paper, and the rules that judge them. The rules are fixed before the runs.

A claim has parts. Each part is a measured number or relation. A claim `holds` if all of its n parts
do, `holds in k of n` if k do, `does not hold` if none does, and is `not testable` without parts.
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
"""Rows of each experiment, by its name: labels, seed, measured values."""

Kind: TypeAlias = Literal["holds", "holds in k of n", "does not hold", "not testable"]

KINDS: tuple[Kind, ...] = ("holds", "holds in k of n", "does not hold", "not testable")
"""Kinds of verdict, best first."""

WITHIN = 0.20
"""Relative tolerance of a stated number, unless a claim says otherwise."""


class NoRunsError(KeyError):
    """Runs that a claim or a figure needs do not exist."""


@dataclass(frozen=True)
class Part:
    """One part of a claim: `stated` by the paper, `measured` here.

    `value` is the measured mean with its interval, if the part is a number. `ns2` is the result of
    ns-2 in the same experiment, if known.
    """

    what: str
    stated: str
    measured: str
    holds: bool
    value: Interval | None = None
    ns2: str = ""

    def beside(self, ns2: str) -> "Part":
        """Return this part with the result of ns-2."""
        return replace(self, ns2=ns2)


@dataclass(frozen=True)
class Claim:
    """A claim: its id, its content in our words, and the figure that it is about.

    `stated` is the number or relation of the paper. `how` describes the measurement and its
    tolerance. `check` measures it, from the experiments in `needs`. Without `check` the claim is
    not testable, and `how` gives the reason.
    """

    id: str
    says: str
    figure: str
    stated: str
    how: str
    check: Callable[[Runs], Sequence[Part]] | None = None
    needs: Sequence[str] = ()


def verdict(parts: Sequence[Part]) -> str:
    """Return the verdict on a claim with these parts, such as `holds in 2 of 3`."""
    if not parts:
        return "not testable"
    held = sum(part.holds for part in parts)
    if held == len(parts):
        return "holds"
    return f"holds in {held} of {len(parts)}" if held else "does not hold"


def kind(judged: str) -> Kind:
    """Return the kind of a verdict: the verdict without its numbers."""
    exact: dict[str, Kind] = {one: one for one in KINDS}
    return exact.get(judged, "holds in k of n")


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

    The part holds if the relative difference is at most `within`, or, if `points` is given, if the
    absolute difference is at most `points`. `values` are multiplied by `scale` first.
    """
    found = interval(np.asarray(values, dtype=float) * scale)
    room = abs(stated) * within if points is None else points
    holds = abs(found.mean - stated) <= room * (1 + 1e-9)  # the limit itself holds
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
    """Compare `less` with `more` in pairs: holds if the interval of the difference is above 0.

    Both arrays are over the same seeds. The measured text has both means and the difference.
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
    """Compare two means: holds if they differ by at most the share `within` of the second."""
    a, b = np.asarray(ours, dtype=float) * scale, np.asarray(theirs, dtype=float) * scale
    gap = paired(a, b) if len(a) == len(b) else Interval(float(a.mean() - b.mean()), math.nan)
    both = f"{short(float(a.mean()))} against {_with(short(float(b.mean())), unit)}"
    holds = abs(gap.mean) <= within * abs(float(b.mean()))
    stated = f"equal (within {100 * within:g} %)"
    return Part(what, stated, f"{both}; difference {told(gap, unit)}", holds, gap)


def shape(what: str, holds: bool, measured: str, stated: str = "so") -> Part:
    """Return a part for a relation that is not a single number, with its verdict and evidence."""
    return Part(what, stated, measured, bool(holds))


def told(value: Interval, unit: str = "") -> str:
    """Write a mean with its interval."""
    return _with(with_half(value.mean, value.half), unit)


def _with(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text


def values(frame: "pl.DataFrame", column: str, **labels: Any) -> npt.NDArray[Any]:
    """Return a column of the runs with these labels, in the order of their seeds.

    Raises NoRunsError if there are none: a claim that measures nothing is an error.
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
    """Return the mean over seeds of a column of the runs with these labels."""
    return float(np.mean(values(frame, column, **labels)))
