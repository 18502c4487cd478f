"""Survival of conclusions: the senders with which each one survives, and the size of its effect."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from sojourn._util.units import short
from sojourn_lab.papers.today.rules import Compared
from sojourn_lab.papers.today.senders import NAMES, THEN, TODAY
from sojourn_lab.reproduction.claims import Claim, NoRunsError, Runs

OURS = "(not in the paper)"
"""Statement of claims that are ours, about today's disciplines."""


@dataclass(frozen=True)
class Survival:
    """The parts of a conclusion, by sender."""

    claim: Claim
    parts: Mapping[str, Sequence[Compared]]

    def senders(self, holds: bool | None) -> list[str]:
        """Return the senders with which all parts hold (True), some fails (False), or neither."""
        return [one for one, parts in self.parts.items() if one in TODAY and _all(parts) is holds]

    def named(self, holds: bool | None) -> str:
        """Return these senders as a text; with k of n parts unless all hold."""
        chosen = self.senders(holds)
        if holds and len(chosen) == len([one for one in self.parts if one in TODAY]) > 1:
            return "all"
        each = (NAMES[one] + ("" if holds else f" ({count(self.parts[one])})") for one in chosen)
        return ", ".join(each) or "none"

    def effect(self, holds: bool) -> str:
        """Return the effect in the parts that hold, or in those that do not."""
        every = [part for one, parts in self.parts.items() if one in TODAY for part in parts]
        return effects(part for part in every if (part.result == "holds") is holds)


def of(claim: Claim, runs: Runs, who: Sequence[str] = tuple(NAMES)) -> Survival:
    """Return the parts of a claim with each of the senders that ran."""
    check: Any = claim.check
    parts: dict[str, list[Compared]] = {}
    for one in who:
        try:
            parts[one] = list(check(runs, who=(one,)))
        except NoRunsError:
            continue
    return Survival(claim, {one: own for one, own in parts.items() if own})


def _all(parts: Sequence[Compared]) -> bool | None:
    """Return True if all parts hold, False if one fails, None if some are undecided."""
    results = {part.result for part in parts}
    return False if "fails" in results else True if results == {"holds"} else None


def count(parts: Sequence[Compared]) -> str:
    """Return how many of the parts hold."""
    return f"{sum(part.result == 'holds' for part in parts)} of {len(parts)}"


def effects(parts: Iterable[Compared]) -> str:
    """Return the range of each quantity's effects over the parts as a text."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    for part in parts:
        if math.isfinite(part.effect):
            groups.setdefault((part.quantity, part.size, part.unit), []).append(part.effect)
    return "; ".join(_range(*of, each) for of, each in groups.items())


def _range(quantity: str, size: str, unit: str, each: Sequence[float]) -> str:
    sign = "+" if size == "difference" else ""
    low, high = (_signed(one, sign) for one in (min(each), max(each)))
    both = low if low == high else f"{low} to {high}"
    times = "x " if size == "times" else ""
    return f"{quantity} {times}{both}{f' {unit}' if unit else ''}"


def _signed(value: float, sign: str) -> str:
    text = short(value)
    return f"+{text}" if sign and value > 0 and float(text) else text


def verdicts(claims: Sequence[Claim], runs: Runs) -> pl.DataFrame:
    """Return the table: conclusion, senders, effects, and where the evidence is."""
    rows = []
    for claim in claims:
        one = of(claim, runs)
        rows.append(
            [
                claim.says,
                *(one.named(holds) for holds in (True, None, False)),
                one.effect(True) or "none",
                one.effect(False) or "none",
                f"{claim.id}, figure {claim.figure}",
            ]
        )
    heads = ["conclusion", "survives with", "undecided with", "does not survive with"]
    heads += ["effect where it holds", "effect where it does not", "evidence"]
    return pl.DataFrame(rows, schema=heads, orient="row")


def by_sender(claims: Sequence[Claim], runs: Runs) -> pl.DataFrame:
    """Return the table: parts that hold, for each conclusion and sender."""
    rows = []
    for claim in claims:
        parts = of(claim, runs).parts
        each = (count(parts[one]) if one in parts else "" for one in NAMES)
        rows.append([f"{claim.id}: {claim.says}", *each])
    return pl.DataFrame(rows, schema=["conclusion", *NAMES.values()], orient="row")


def facts(claims: Sequence[Claim]) -> dict[str, Callable[[Runs], str]]:
    """Return the facts ID-senders and ID-then (parts with the paper's TCP) for each claim."""
    every: dict[str, Callable[[Runs], str]] = {}
    for claim in claims:
        every[f"{claim.id}-senders"] = partial(_senders, claim)
        every[f"{claim.id}-then"] = partial(_with_then, claim)
    return every


def _senders(claim: Claim, runs: Runs) -> str:
    """Return the senders with which a conclusion survives, and the others if there are any."""
    one = of(claim, runs, TODAY)
    if not one.senders(holds=True):
        text = "with none of the senders"
    else:
        text = f"with {one.named(True).replace('all', 'all senders')}"
    others = (("undecided with", None), ("not with", False))
    return "; ".join([text, *(f"{w} {one.named(h)}" for w, h in others if one.senders(h))])


def _with_then(claim: Claim, runs: Runs) -> str:
    return count(of(claim, runs, (THEN,)).parts.get(THEN, []))
