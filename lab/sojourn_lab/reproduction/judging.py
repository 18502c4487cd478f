"""Rules of the verdicts on claims, in our set-up and with each setting. Fixed before the runs.

A claim has n parts, k of which hold. Its verdict in one set-up:

- `holds`: all parts hold.
- `holds in k of n`: at least half of the parts hold, and at least one fails.
- `does not hold`: fewer than half of the parts hold, even if all undecided ones did.
- `undecided`: the undecided parts decide between two of these verdicts.
- `not testable (why)`: no part could be judged, for example because there is a single seed.

Every claim is also judged with each setting that concerns it, and in our set-up at the seeds and
points of the setting (the control): with fewer of them a claim may hold, or not, by chance. A
setting that judges fewer parts than the claim has decides nothing.

- `holds (in k of n settings)`: the claim holds in our set-up, which is one of the n. Settings
  with the same verdict as their control, other than `holds`, are not counted: they have too few
  seeds.
- `depends on SETTING`: with SETTING more parts hold than in our set-up and in the control, and at
  least half.
- `holds except with CASE`: all parts hold in some of the cases that the claim covers, such as the
  senders. CASE names the others.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from sojourn_lab.reproduction.claims import Claim, NoRunsError, Runs
from sojourn_lab.reproduction.parts import Part

Kind: TypeAlias = Literal[
    "holds",
    "holds in",
    "holds except with",
    "depends on",
    "undecided",
    "does not hold",
    "not testable",
]

KINDS: tuple[Kind, ...] = get_args(Kind)
"""Kinds of verdict: the verdict without its numbers and names."""

OURS = "as chosen"
"""Name of our set-up."""


@dataclass(frozen=True)
class Count:
    """Numbers of parts by result."""

    hold: int
    fail: int
    undecided: int
    of: int

    def __str__(self) -> str:
        open_ones = f", {self.undecided} undecided" if self.undecided else ""
        return f"{self.hold} of {self.of}{open_ones}" if self.of else ""

    @property
    def share(self) -> float:
        """Share of the parts that hold."""
        return self.hold / max(1, self.of)


def count(parts: Sequence[Part]) -> Count:
    """Count the results of parts; one that is not testable is neither of the three."""
    results = [part.result for part in parts]
    hold, fail, undecided = (results.count(one) for one in ("holds", "fails", "undecided"))
    return Count(hold, fail, undecided, len(results))


@dataclass(frozen=True)
class Tried:
    """Parts of a claim with a setting, and the control: our set-up at its seeds and points."""

    parts: Sequence[Part]
    control: Sequence[Part]

    @property
    def kinds(self) -> tuple[Kind, Kind]:
        """Kinds of verdict with the setting and of the control."""
        return kind(verdict(self.parts)), kind(verdict(self.control))


@dataclass(frozen=True)
class Judged:
    """A claim with its measured parts, in our set-up and with each setting by name."""

    claim: Claim
    parts: Sequence[Part]
    tried: Mapping[str, Tried] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """The verdict, such as `holds in 5 of 6`."""
        base = verdict(self.parts, self.claim.how)
        if base == "holds":
            counted = [name for name in self.settings if self._tells(name)]
            held = sum(verdict(self.tried[name].parts) == "holds" for name in counted)
            return f"holds (in {held + 1} of {len(counted) + 1} settings)" if counted else base
        cases = {name: verdict(self.tried[name].parts) for name in self.cases}
        failing = [name for name, with_it in cases.items() if with_it != "holds"]
        if failing and len(failing) < len(cases):
            return f"holds except with {' and '.join(failing)}"
        return f"depends on {self.best}" if self.best else base

    def shown(self, is_number: bool | None = None) -> str:
        """Return the number of parts that hold, and with the setting that the verdict names.

        Only numbers, or only relations, are counted if `is_number` is given.
        """

        def text(parts: Sequence[Part]) -> str:
            return str(count([p for p in parts if is_number in (None, p.is_number)]))

        here = text(self.parts)
        if not here or kind(self.verdict) != "depends on":
            return here
        return f"{here}; with it {text(self.tried[self.best].parts)}"

    @property
    def best(self) -> str:
        """Name of the setting on which the claim depends; empty if there is none."""
        ours = count(self.parts)
        gains = [name for name in self.settings if self._gains(name, ours)]
        if not gains or ours.hold == ours.of:
            return ""
        return max(gains, key=lambda name: count(self.tried[name].parts).share)

    def _gains(self, name: str, ours: Count) -> bool:
        """Return True if more parts hold with a setting than without it, and at least half."""
        there, control = count(self.tried[name].parts), count(self.tried[name].control)
        return there.share >= 0.5 and there.share > max(ours.share, control.share)

    @property
    def cases(self) -> list[str]:
        """Names of the tried settings that are cases of the claim."""
        return [one.name for one in self.claim.settings if one.case and one.name in self.tried]

    @property
    def settings(self) -> list[str]:
        """Names of the settings that can decide: not cases, and judged on all parts."""
        cases = self.cases
        return [
            name
            for name, one in self.tried.items()
            if name not in cases and len(one.parts) >= len(self.parts)
        ]

    def _tells(self, name: str) -> bool:
        """Return True if a setting tells whether a claim that holds also holds with it."""
        there, control = self.tried[name].kinds
        return there == "holds" or there != control

    def kind_with(self, name: str) -> Kind:
        """Return the kind of verdict in a set-up, by its name.

        It is the kind in our set-up if the setting does not cover the claim, or changes nothing
        compared with the control.
        """
        if name in self.settings:
            there, control = self.tried[name].kinds
            if there != control:
                return there
        return kind(verdict(self.parts))


def judge(claim: Claim, runs: Runs) -> Judged:
    """Measure the parts of a claim in our set-up, and with each setting."""
    if claim.check is None:
        return Judged(claim, [])
    parts = list(claim.check(runs))
    tried: dict[str, Tried] = {}
    for one in claim.settings:
        try:
            changed = one.apply(runs, claim)
            control = list(claim.check(_same_points(runs, changed)))
            there = list(claim.check(changed))
        except NoRunsError:  # quick mode omits some settings
            continue
        if _texts(there) != _texts(control):  # it affects the claim
            tried[one.name] = Tried(there, control)
    return Judged(claim, parts, tried)


def _texts(parts: Sequence[Part]) -> list[tuple[str, str, str]]:
    return [(part.what, part.measured, part.result) for part in parts]


def _same_points(runs: Runs, changed: Runs) -> Runs:
    """Return the runs in our set-up at the points and seeds that a setting ran."""
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
    counted = count(parts)
    held, of = counted.hold, counted.of
    if not counted.hold + counted.fail + counted.undecided:
        reason = "one seed" if parts else why
        return f"not testable ({reason})" if reason else "not testable"
    most = of - counted.fail  # if all parts held that do not fail
    if held == of:
        return "holds"
    if 2 * most < of:
        return "does not hold"
    if most == of or 2 * held < of:
        return "undecided"
    return f"holds in {held} of {of}"


def kind(judged: str) -> Kind:
    """Return the kind of a verdict: the verdict without its numbers and names."""
    for one in sorted(KINDS, key=len, reverse=True):
        if judged.startswith(one):
            return one
    raise ValueError(f"not a verdict: {judged!r}")
