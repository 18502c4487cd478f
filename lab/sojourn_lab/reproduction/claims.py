"""Claims of a paper, and the rules that judge them. The rules are fixed before the runs.

A claim has parts. Each part is a measured number or relation. The verdict follows from the n parts,
k of which hold:

- `holds`: all parts hold.
- `holds in k of n`: at least half of the parts hold.
- `holds except with CASE`: all parts hold in some of the cases that the claim covers, such as the
  senders. CASE names the others.
- `depends on SETTING`: more of the claim holds with SETTING, which is another value of something
  that the paper does not state.
- `does not hold`: fewer than half of the parts hold.
- `not testable (why)`: no part could be judged, for example because there is a single seed.

Every comparison of measured values looks at 95 % intervals over seeds, so a part with one seed is
not testable.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from sojourn._util.units import short as short
from sojourn._util.units import with_half
from sojourn.result.statistics import Interval, interval, paired

if TYPE_CHECKING:
    import polars as pl

Runs: TypeAlias = Mapping[str, "pl.DataFrame"]
"""Rows of each experiment, by its name: labels, seed, measured values."""

Kind: TypeAlias = Literal[
    "holds", "holds in", "holds except with", "depends on", "does not hold", "not testable"
]

KINDS: tuple[Kind, ...] = get_args(Kind)
"""Kinds of verdict: the verdict without its numbers and names."""

RANK: Mapping[str, int] = {"holds": 2, "holds in": 1, "does not hold": 0}
"""Rank of the verdicts in one set-up, best last."""

WITHIN = 0.20
"""Relative tolerance of a stated number, unless a claim says otherwise."""

POINTS = 3.0
"""Tolerance in percentage points of shares, utilisations, goodputs and normalised queues: a fifth
of a utilisation of 98 % would accept more than the link carries."""


class NoRunsError(KeyError):
    """Runs that a claim or a figure needs do not exist."""


@dataclass(frozen=True)
class Part:
    """One part of a claim: `stated` by the paper, `measured` here.

    `holds` is None if the part is not testable. `value` is the measured mean with its interval, if
    the part is a number. `ns2` is the result of ns-2 in the same experiment, if known. `brief` is
    `measured` without the interval, for the table at the top of a page.
    """

    what: str
    stated: str
    measured: str
    holds: bool | None
    value: Interval | None = None
    ns2: str = ""
    brief: str = ""

    def with_ns2(self, ns2: str) -> "Part":
        """Return this part with the result of ns-2."""
        return replace(self, ns2=ns2)


@dataclass(frozen=True)
class Setting:
    """A value, other than ours, of something that the paper does not state.

    `apply` returns the runs with this value in place of the base's. `needs` are the experiments
    that it reads in addition to the claim's. `case` is True if the setting is one of the cases that
    the claim itself covers, such as a sender.
    """

    name: str
    apply: Callable[[Runs], Runs]
    needs: Sequence[str] = ()
    case: bool = False


@dataclass(frozen=True)
class Claim:
    """A claim: its id, its content in our words, and the figure that it is about.

    `stated` is the number or relation of the paper. `how` describes the measurement and its
    tolerance. `check` measures it, from the experiments in `needs`. Without `check` the claim is
    not testable, and `how` gives the reason. `settings` are other values of what the paper leaves
    open; `why` says in at most ten words why the claim does not hold wholly.
    """

    id: str
    says: str
    figure: str
    stated: str
    how: str
    check: Callable[[Runs], Sequence[Part]] | None = None
    needs: Sequence[str] = ()
    settings: Sequence[Setting] = ()
    why: str = ""

    @property
    def every_need(self) -> tuple[str, ...]:
        """Names of all experiments that judging this claim reads."""
        return (*self.needs, *(name for one in self.settings for name in one.needs))


@dataclass(frozen=True)
class Judged:
    """A claim with its measured parts, in our set-up and with each other setting.

    `control` has, for each setting, the parts in our set-up from the same seeds and points: with
    fewer of them a claim may hold by chance.
    """

    claim: Claim
    parts: Sequence[Part]
    varied: Mapping[str, Sequence[Part]] = field(default_factory=dict)
    control: Mapping[str, Sequence[Part]] = field(default_factory=dict)

    @property
    def best(self) -> str:
        """Name of the setting with which most of the claim holds, and more than without it."""
        return max(self.varied, key=self._gain)

    def _gain(self, name: str) -> tuple[bool, tuple[int, float]]:
        there = _merit(self.varied[name])
        return there[0] > max(_merit(self.parts)[0], _merit(self.control[name])[0]), there

    @property
    def verdict(self) -> str:
        """The verdict, such as `holds in 5 of 6`."""
        base = verdict(self.parts, self.claim.how)
        if not self._decides:
            return base
        failing = [name for name in self._cases if verdict(self.varied[name]) != "holds"]
        if self.best in self._cases and self.best not in failing:
            return f"holds except with {' and '.join(failing)}"
        return f"depends on {self.best}"

    @property
    def count(self) -> str:
        """Number of parts that hold, and with the setting that the verdict names."""
        if not self.parts:
            return ""
        here = _count(self.parts)
        if kind(self.verdict) != "depends on":
            return here
        return f"{here}; with it {_count(self.varied[self.best])}"

    @property
    def _decides(self) -> bool:
        """True if more of the claim holds with the best setting than without it."""
        base = kind(verdict(self.parts))
        return bool(self.varied) and base in RANK and base != "holds" and self._gain(self.best)[0]

    @property
    def _cases(self) -> list[str]:
        """Names of the varied settings that are cases of the claim."""
        return [one.name for one in self.claim.settings if one.case and one.name in self.varied]


def judge(claim: Claim, runs: Runs) -> Judged:
    """Measure the parts of a claim in our set-up and, unless all hold there, with each setting."""
    parts = list(claim.check(runs)) if claim.check else []
    varied: dict[str, list[Part]] = {}
    control: dict[str, list[Part]] = {}
    if claim.check and kind(verdict(parts)) != "holds":
        for one in claim.settings:
            try:
                changed = one.apply(runs)
                own = list(claim.check(changed)), list(claim.check(_same_points(runs, changed)))
            except NoRunsError:  # quick mode omits some settings
                continue
            varied[one.name], control[one.name] = own
    return Judged(claim, parts, varied, control)


def _same_points(runs: Runs, changed: Runs) -> Runs:
    """Return the runs in our set-up at the points and seeds that a setting ran."""
    import json

    matched = {}
    for name, frame in runs.items():
        matched[name] = frame
        if name in changed and changed[name] is not frame:
            keys = [*json.loads(frame["axes"][0]), "seed"]
            matched[name] = frame.join(changed[name].select(keys), on=keys, how="semi")
    return matched


def verdict(parts: Sequence[Part], why: str = "") -> str:
    """Return the verdict on a claim with these parts in one set-up.

    `why` is the reason if there are no parts.
    """
    tested = [part for part in parts if part.holds is not None]
    if not parts or not tested:
        reason = "one seed" if parts else why
        return f"not testable ({reason})" if reason else "not testable"
    bad = [part for part in parts if not part.holds]
    if not bad:
        return "holds"
    if 2 * (len(parts) - len(bad)) < len(parts):
        return "does not hold"
    return f"holds in {_count(parts)}"


def kind(judged: str) -> Kind:
    """Return the kind of a verdict: the verdict without its numbers and names."""
    for one in sorted(KINDS, key=len, reverse=True):
        if judged.startswith(one):
            return one
    raise ValueError(f"not a verdict: {judged!r}")


def _count(parts: Sequence[Part]) -> str:
    return f"{sum(part.holds is True for part in parts)} of {len(parts)}"


def _merit(parts: Sequence[Part]) -> tuple[int, float]:
    held = sum(part.holds is True for part in parts)
    return RANK.get(kind(verdict(parts)), -1), held / max(1, len(parts))


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
    absolute difference is at most `points`; and if half the width of the interval is not larger
    than this tolerance, since a mean so uncertain agrees by luck. `values` are multiplied by
    `scale` first. For a value without random error see `exact`.
    """
    value = _interval(values, scale)
    room = (abs(stated) * within if points is None else points) * (1 + 1e-9)
    close = abs(value.mean - stated) <= room  # the limit itself holds
    holds = _if_seeds(value, close and value.half <= room)
    return _part(what, _with(short(stated), unit), value, unit, holds)


def exact(what: str, value: float, stated: float, *, unit: str = "", within: float) -> Part:
    """Compare a computed value, which has no random error, with a stated number."""
    holds = abs(value - stated) <= abs(stated) * within * (1 + 1e-9)
    measured = _with(short(value), unit)
    return Part(
        what, _with(short(stated), unit), measured, holds, Interval(value, 0.0), brief=measured
    )


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
    inside = value.high < limit if relation == "<" else value.low > limit
    stated = f"{relation} {_with(short(limit), unit)}"
    return _part(what, stated, value, unit, _if_seeds(value, inside))


def order(
    what: str, less: npt.ArrayLike, more: npt.ArrayLike, *, unit: str = "", scale: float = 1.0
) -> Part:
    """Compare `less` with `more` in pairs: holds if the interval of the difference is above 0.

    Both arrays are over the same seeds. The measured text has both means and the difference.
    """
    a, b = np.asarray(less, dtype=float) * scale, np.asarray(more, dtype=float) * scale
    if not len(a):
        return Part(what, "less", "no value in any run", None, brief="no value")
    gap = paired(b, a)
    both = f"{short(float(a.mean()))} against {_with(short(float(b.mean())), unit)}"
    measured = f"{both}; difference {with_interval(gap, unit)}"
    return Part(what, "less", measured, _if_seeds(gap, gap.low > 0), gap, brief=both)


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
    paired by seed.
    """
    a, b = np.asarray(ours, dtype=float) * scale, np.asarray(theirs, dtype=float) * scale
    n = min(len(a), len(b))  # the same first seeds
    gap = paired(a[:n], b[:n])
    both = f"{short(float(a.mean()))} against {_with(short(float(b.mean())), unit)}"
    room = within * abs(float(b.mean())) if points is None else points
    holds = _if_seeds(gap, max(abs(gap.low), abs(gap.high)) <= room * (1 + 1e-9))
    size = f"{100 * within:g} %" if points is None else _with(short(points), unit)
    measured = f"{both}; difference {with_interval(gap, unit)}"
    return Part(what, f"equal (within {size})", measured, holds, gap, brief=both)


def monotone(
    what: str,
    steps: Sequence[npt.ArrayLike],
    sign: Literal[1, -1] = 1,
    *,
    unit: str = "",
    scale: float = 1.0,
) -> Part:
    """Compare each array with the next, in pairs: holds if all rise (or, sign -1, all fall).

    The interval of every difference is on the right side of 0. The measured text has the means and
    the smallest difference.
    """
    each = [np.asarray(one, dtype=float) * scale for one in steps]
    gaps = [paired(sign * b, sign * a) for a, b in pairwise(each)]
    least = min(gaps, key=lambda gap: gap.mean if math.isnan(gap.half) else gap.low)
    means = ", ".join(short(float(one.mean())) for one in each)
    measured = f"{_with(means, unit)}; smallest step {with_interval(least, unit)}"
    stated = "rises at every step" if sign > 0 else "falls at every step"
    brief = f"{short(float(each[0].mean()))} to {_with(short(float(each[-1].mean())), unit)}"
    return Part(what, stated, measured, _if_seeds(least, least.low > 0), least, brief=brief)


def shape(what: str, holds: bool | None, measured: str, stated: str = "so") -> Part:
    """Return a part for a relation that is not a single number, with its verdict and evidence."""
    return Part(what, stated, measured, None if holds is None else bool(holds), brief=measured)


def with_interval(value: Interval, unit: str = "") -> str:
    """Write a mean with its interval."""
    if math.isnan(value.mean):
        return "no value in some run"
    return _with(with_half(value.mean, value.half), unit)


def overlay(
    base: str, varied: str, *, only: Sequence[str] = (), **labels: Any
) -> Callable[[Runs], Runs]:
    """Return the `apply` of a setting whose runs are the rows of `varied` with these labels.

    They replace the rows of the experiment `base` that have the same labels otherwise; what a
    setting does not affect is taken from `base`. Only seeds that both have remain, so that all
    comparisons stay paired, and only those values of the axes `only` that ran with the setting.
    """

    def apply(runs: Runs) -> Runs:
        import json

        import polars as pl

        whole, rows = runs[base], runs[varied]
        for name, value in labels.items():
            rows = rows.filter(pl.col(name) == value)
        if not len(rows):
            raise NoRunsError(f"no runs with {labels}")
        axes = json.loads(whole["axes"][0])
        for axis in only:
            whole = whole.filter(pl.col(axis).is_in(rows[axis].unique().to_list()))
        kept = whole.join(rows.select(axes), on=axes, how="anti")
        both = set(rows["seed"]) & (set(kept["seed"]) or set(rows["seed"]))
        columns = [name for name in whole.columns if name in rows.columns]
        merged = pl.concat([kept.select(columns), rows.select(columns)], how="diagonal_relaxed")
        return {**runs, base: merged.filter(pl.col("seed").is_in(sorted(both)))}

    return apply


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
    column_values: npt.NDArray[Any] = chosen.sort("seed")[column].to_numpy()
    return column_values


def mean(frame: "pl.DataFrame", column: str, **labels: Any) -> float:
    """Return the mean over seeds of a column of the runs with these labels."""
    return float(np.mean(values(frame, column, **labels)))


def _interval(values: npt.ArrayLike, scale: float) -> Interval:
    return interval(np.asarray(values, dtype=float) * scale)


def _if_seeds(value: Interval, holds: bool) -> bool | None:
    """Return None for a single seed: it has no interval."""
    return None if math.isnan(value.half) and not math.isnan(value.mean) else bool(holds)


def _part(what: str, stated: str, value: Interval, unit: str, holds: bool | None) -> Part:
    brief = "no value" if math.isnan(value.mean) else _with(short(value.mean), unit)
    return Part(what, stated, with_interval(value, unit), holds, value, brief=brief)


def _with(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text
