"""Lines of the scorecard: means with intervals, and differences from drop-tail by seed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from sojourn._util.units import short, with_half
from sojourn.evaluation.cases import CASES, RTT_CASES, Case, Question
from sojourn.result.statistics import half_width, paired, separate

if TYPE_CHECKING:
    import polars as pl

Stands = Literal["better", "worse", "no difference", "too few seeds", ""]

CAREFUL = 0.01
"""Differences below this share of the reference count as none."""


@dataclass(frozen=True)
class Answer:
    """Answer of a discipline: its values by seed, and its comparison with drop-tail.

    `difference` and `half` are the mean difference and half its 95 % interval, in the unit of the
    question; NaN for drop-tail. `best` is True if no other discipline is better with 95 %
    confidence.
    """

    values: Mapping[int, float]
    stands: Stands
    difference: float
    half: float
    best: bool

    @property
    def mean(self) -> float:
        """Mean over seeds; NaN without a value."""
        return fmean(self.values.values()) if self.values else math.nan

    @property
    def text(self) -> str:
        """Mean with half its 95 % interval."""
        values = [*self.values.values()]
        return with_half(self.mean, half_width(values), short) if values else "-"


@dataclass(frozen=True)
class Line:
    """Line of the scorecard."""

    case: Case
    variant: str
    rate: str
    question: Question
    answers: Mapping[str, Answer]

    def tree(self) -> dict[str, Any]:
        """Return the line as data for JSON."""
        return {
            "case": self.case.id,
            "section": self.case.section,
            "weight": self.case.weight,
            "title": self.case.title,
            "variant": self.variant,
            "rate": self.rate,
            "asked": self.question.asked,
            "unit": self.question.unit,
            "better": self.question.better,
            "answers": {
                label: {
                    "mean": _number(one.mean),
                    "half": _number(half_width([*one.values.values()])),
                    "seeds": len(one.values),
                    "stands": one.stands,
                    "difference": _number(one.difference),
                    "difference_half": _number(one.half),
                    "best": one.best,
                }
                for label, one in self.answers.items()
            },
        }

    def records(self) -> list[dict[str, Any]]:
        """Return the line as rows of a frame, one per discipline."""
        tree = self.tree()
        answers = tree.pop("answers")
        return [{**tree, "qdisc": label, **answer} for label, answer in answers.items()]


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def lines_of(rows: "pl.DataFrame", qdiscs: Sequence[str]) -> list[Line]:
    """Return the lines of the rows of an evaluation, in the order of the suite."""
    import polars as pl

    usual = rows.filter(pl.col("target") == 1.0)
    lines = []
    for rate in usual["rate"].unique(maintain_order=True).to_list():
        for case in CASES:
            mine = usual.filter((pl.col("case") == case.id) & (pl.col("rate") == rate))
            if not len(mine):
                continue
            for variant, part in _variants(case, mine):
                for question in case.questions:
                    values = {one: _values(part, one, question) for one in qdiscs}
                    values = {label: known for label, known in values.items() if known}
                    if values:
                        answers = _answers(values, question, qdiscs[0])
                        lines.append(Line(case, variant, rate, question, answers))
    return lines


def _variants(case: Case, rows: "pl.DataFrame") -> "list[tuple[str, pl.DataFrame]]":
    """Return the variants of a case with their rows; round-trip times are one variant."""
    if case.id in RTT_CASES:
        return [("", rows)]
    names = rows["variant"].unique(maintain_order=True).to_list()
    return [(name, rows.filter(rows["variant"] == name)) for name in names]


def _values(rows: "pl.DataFrame", qdisc: str, question: Question) -> dict[int, float]:
    """Return the values of a question by seed."""
    import polars as pl

    mine = rows.filter(pl.col("qdisc") == qdisc)
    if question.column == "rtt_bias":
        return _rtt_bias(mine)
    if question.column not in mine.columns:
        return {}
    pairs = zip(mine["seed"].to_list(), mine[question.column].to_list(), strict=True)
    return {seed: value * question.scale for seed, value in pairs if value is not None}


def _rtt_bias(rows: "pl.DataFrame") -> dict[int, float]:
    """Return, by seed, how far from 1 the goodput ratios are: a geometric mean, 1 or more."""
    ratios: dict[int, list[float]] = {}
    pairs = zip(rows["seed"].to_list(), rows["rtt_ratio"].to_list(), strict=True)
    for seed, ratio in pairs:
        if ratio:
            ratios.setdefault(seed, []).append(abs(math.log(ratio)))
    return {seed: math.exp(fmean(logs)) for seed, logs in ratios.items()}


def _cost(value: float, question: Question) -> float:
    """Return a number that is smaller for better values."""
    if question.better == "one":
        return abs(math.log(value)) if value > 0 else math.inf
    return value if question.better == "less" else -value


def _answers(
    values: Mapping[str, Mapping[int, float]], question: Question, reference: str
) -> dict[str, Answer]:
    costs = {
        label: {seed: _cost(value, question) for seed, value in known.items()}
        for label, known in values.items()
    }
    answers = {}
    for label, known in values.items():
        stands: Stands = ""
        difference, half = math.nan, math.nan
        if label != reference and reference in values:
            both = [seed for seed in known if seed in values[reference]]
            gap = paired([known[s] for s in both], [values[reference][s] for s in both])
            difference, half = gap.mean, gap.half
            stands = _stands(costs[label], costs[reference], known, values[reference])
        beaten = any(
            other != label
            and separate(costs[other], costs[label])
            and fmean(costs[other].values()) < fmean(costs[label].values())
            for other in costs
        )
        best = not beaten and len(known) > 1
        answers[label] = Answer(known, stands, difference, half, best)
    return answers


def _stands(
    ours: Mapping[int, float],
    theirs: Mapping[int, float],
    values: Mapping[int, float],
    reference: Mapping[int, float],
) -> Stands:
    """Compare a discipline with drop-tail by the interval of the paired differences."""
    if len(ours) < 2 or len(theirs) < 2:
        return "too few seeds"
    gap = abs(fmean(values.values()) - fmean(reference.values()))
    if not separate(ours, theirs) or gap <= CAREFUL * abs(fmean(reference.values())):
        return "no difference"
    return "better" if fmean(ours.values()) < fmean(theirs.values()) else "worse"
