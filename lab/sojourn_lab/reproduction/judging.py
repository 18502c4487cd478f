"""Verdicts on claims, in our set-up and with each setting, by the rules of `rules.md`."""

import json
import math
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
    "not judged",
]

KINDS: tuple[Kind, ...] = get_args(Kind)
"""Kinds of verdict: the verdict without its numbers and names."""

OURS = "our set-up"
"""Name of our set-up."""

NOT_JUDGED = "not judged by a quick run"
"""Verdict of a quick run whose intervals are too wide."""


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
    """A claim with its measured parts, in our set-up and with each setting by name.

    `quick` is True for few seeds and short runs.
    """

    claim: Claim
    parts: Sequence[Part]
    tried: Mapping[str, Tried] = field(default_factory=dict)
    quick: bool = False

    @property
    def verdict(self) -> str:
        """The verdict, such as `holds in 5 of 6`."""
        base = verdict(self.parts, self.claim.how)
        if self.quick and self._unsure(kind(base)):
            return NOT_JUDGED
        if base == "holds":
            counted = [name for name in self.settings if self._tells(name)]
            held = sum(verdict(self.tried[name].parts) == "holds" for name in counted)
            return f"holds (in {held + 1} of {len(counted) + 1} settings)" if counted else base
        cases = self.cases
        others = [name for name, parts in cases.items() if verdict(parts) != "holds"]
        if cases and 2 * len(others) <= len(cases):
            return f"holds except with {' and '.join(others)}"
        return f"depends on {self.best}" if self.best else base

    def _unsure(self, base: Kind) -> bool:
        """Return True if longer runs with more seeds may give another verdict than `base`."""
        unsure = any(
            part.result in ("undecided", "not testable")
            or (part.value is not None and math.isnan(part.value.mean))
            for part in self.parts
        )
        return unsure and base in ("undecided", "not testable", "does not hold")

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
    def cases(self) -> dict[str, list[Part]]:
        """Parts by the case that they are about; empty if the claim has no cases."""
        cases: dict[str, list[Part]] = {}
        for part in self.parts:
            cases.setdefault(part.case, []).append(part)
        return cases if "" not in cases else {}

    @property
    def settings(self) -> list[str]:
        """Names of the settings that can decide: judged on all parts."""
        return [name for name, one in self.tried.items() if len(one.parts) >= len(self.parts)]

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


@dataclass(frozen=True)
class SetUpCount:
    """Numbers of claims that hold, wholly and in part, in one set-up.

    `judged` of the claims are judged with it; the others count as in our set-up.
    """

    name: str
    hold: int
    in_part: int
    judged: int


def set_ups(claims: Sequence[Judged]) -> list[SetUpCount]:
    """Return the counts of our set-up and of each setting applied to all claims, best first."""

    def counts(name: str) -> SetUpCount:
        kinds = [one.kind_with(name) for one in claims]
        judged = [one for one in claims if name in (OURS, *one.settings)]
        return SetUpCount(name, kinds.count("holds"), kinds.count("holds in"), len(judged))

    names = dict.fromkeys([OURS, *(name for one in claims for name in one.settings)])
    return sorted(map(counts, names), key=lambda one: (-one.hold, -one.in_part))


def judge(claim: Claim, runs: Runs, *, quick: bool = False) -> Judged:
    """Measure the parts of a claim in our set-up, and with each setting."""
    if claim.check is None:
        return Judged(claim, [], quick=quick)
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
    return Judged(claim, parts, tried, quick)


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
