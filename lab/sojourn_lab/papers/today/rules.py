"""Rules that the questions share: parts of claims with their sender and the size of an effect."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from sojourn.result.statistics import interval, paired
from sojourn_lab.papers.today.senders import NAMES, TODAY, there
from sojourn_lab.reproduction.claims import Runs, values
from sojourn_lab.reproduction.parts import Part, bound, equal, order, short, with_interval

if TYPE_CHECKING:
    import polars as pl

PAIRS = "Paired by seed; the 95 % interval of the difference is above 0."
ALL = "Each sender and mixture has parts of its own."

Size = Literal["times", "difference", "value"]


@dataclass(frozen=True)
class Compared(Part):
    """A part about one sender, with its effect: of what `quantity`, its size, and its unit.

    `size` says whether `effect` is a ratio (ours to the other's), a difference, or a value.
    """

    sender: str = ""
    quantity: str = ""
    effect: float = float("nan")
    size: Size = "value"
    unit: str = ""


@dataclass(frozen=True)
class At:
    """Place of a part: its sender, the rest of its name, the quantity, and the unit.

    Samples are multiplied by `scale` to have this unit.
    """

    sender: str
    what: str
    quantity: str
    unit: str = ""
    scale: float = 1.0

    @property
    def name(self) -> str:
        """Name of the part."""
        return f"{NAMES[self.sender]}{', ' if self.what else ''}{self.what}"

    def part(self, part: Part, effect: float, size: Size) -> Compared:
        """Return a part with the effect."""
        own = {one.name: getattr(part, one.name) for one in fields(Part)}
        own["case"] = NAMES[self.sender]
        unit = self.unit if size != "times" else ""
        return Compared(
            **own, sender=self.sender, quantity=self.quantity, effect=effect, size=size, unit=unit
        )


def less(at: At, ours: npt.ArrayLike, theirs: npt.ArrayLike) -> Compared:
    """Return the part: ours is less, in pairs. Its effect is the ratio of the means."""
    part = order(at.name, ours, theirs, unit=at.unit, scale=at.scale)
    return at.part(part, _ratio(ours, theirs), "times")


def more(at: At, ours: npt.ArrayLike, theirs: npt.ArrayLike) -> Compared:
    """Return the part: ours is more, in pairs. Its effect is the difference of the means."""
    part = order(at.name, theirs, ours, unit=at.unit, scale=at.scale)
    return at.part(replace(part, stated="more"), _difference(at, ours, theirs), "difference")


def same(at: At, ours: npt.ArrayLike, theirs: npt.ArrayLike, slack: float) -> Compared:
    """Return the part: the whole interval of the difference is within `slack`."""
    part = equal(at.name, ours, theirs, points=slack, unit=at.unit, scale=at.scale)
    return at.part(part, _difference(at, ours, theirs), "difference")


def not_worse(
    at: At, ours: npt.ArrayLike, theirs: npt.ArrayLike, slack: float, sign: int = 1
) -> Compared:
    """Return the part: ours is at most `slack` below theirs (sign -1: above), in pairs."""
    a, b = (np.asarray(one, dtype=float) * at.scale for one in (ours, theirs))
    part = bound(at.name, sign * (a - b), ">", -slack, unit=at.unit)
    end = f" {at.unit}" if at.unit else ""
    both = f"{short(float(a.mean()))} against {short(float(b.mean()))}{end}"
    side = "below" if sign > 0 else "above"
    part = replace(
        part,
        stated=f"at most {short(slack)}{end} {side}",
        measured=f"{both}; difference {with_interval(paired(a, b), at.unit)}",
        brief=both,
    )
    return at.part(part, float((a - b).mean()), "difference")


def below(at: At, samples: npt.ArrayLike, limit: float) -> Compared:
    """Return the part: the whole interval of a mean is below `limit`."""
    part = bound(at.name, samples, "<", limit, unit=at.unit, scale=at.scale)
    return at.part(part, _mean(at, samples), "value")


def inside(at: At, samples: npt.ArrayLike, low: float, high: float) -> Compared:
    """Return the part: the whole interval of a mean is within two bounds, both in the unit."""
    each = [
        bound(at.name, samples, ">", low, unit=at.unit, scale=at.scale),
        bound(at.name, samples, "<", high, unit=at.unit, scale=at.scale),
    ]
    worst = min(each, key=lambda one: ("fails", "undecided").index(one.result)
                if one.result in ("fails", "undecided") else 2)  # fmt: skip
    end = f" {at.unit}" if at.unit else ""
    part = replace(worst, stated=f"{short(low)} to {short(high)}{end}")
    return at.part(part, _mean(at, samples), "value")


def _mean(at: At, samples: npt.ArrayLike) -> float:
    return interval(np.asarray(samples, dtype=float) * at.scale).mean


def _difference(at: At, ours: npt.ArrayLike, theirs: npt.ArrayLike) -> float:
    a, b = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    return float((a.mean() - b.mean()) * at.scale) if len(a) else float("nan")


def _ratio(ours: npt.ArrayLike, theirs: npt.ArrayLike) -> float:
    a, b = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    return float(a.mean() / b.mean()) if len(a) and b.mean() else float("nan")


def mean_text(frame: "pl.DataFrame", column: str, scale: float = 1.0, **labels: Any) -> str:
    """Return a mean over the seeds that have a value as a text; empty if none has."""
    known = values(frame, column, **labels).astype(float)
    known = known[np.isfinite(known)]
    return short(scale * float(known.mean())) if len(known) else ""


def by_sender(
    experiment: str,
    column: str,
    unit: str,
    scale: float = 1.0,
    who: Sequence[str] = TODAY,
    **labels: Any,
) -> Callable[[Runs], str]:
    """Return the fact: the means with these senders, by name, at these labels."""

    def fact(runs: Runs) -> str:
        frame = runs[experiment]
        end = f" {unit}" if unit else ""
        each = []
        for one in there(frame, who):
            mean = mean_text(frame, column, scale, sender=one, **labels)
            each.append(f"{mean}{end} with {NAMES[one]}" if mean else f"none with {NAMES[one]}")
        return ", ".join(each)

    return fact


def one(
    experiment: str, column: str, unit: str, scale: float = 1.0, **labels: Any
) -> Callable[[Runs], str]:
    """Return the fact: one mean over seeds, with its unit."""

    def fact(runs: Runs) -> str:
        end = f" {unit}" if unit else ""
        return f"{mean_text(runs[experiment], column, scale, **labels)}{end}"

    return fact
