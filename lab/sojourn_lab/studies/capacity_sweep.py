"""Compare `sojourn capacity` with full sweeps of the same values, and write reports/capacity.md.

A sweep runs every value of the grid. The answer of a question is then the last value, from the side
that meets the need, before the first one that fails. `tests/test_capacity.py` has a quick form.
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import polars as pl

import sojourn as sj
from sojourn.sweeps.capacity_plan import make_plan
from sojourn_lab import ROOT

PAGE = ROOT / "reports/capacity.md"
SCENARIO = ROOT / "examples/home-uplink.toml"

SEEDS = 5

SHORT: Mapping[str, Any] = {"duration": "15s", "warmup": "3s"}
"""Shorter than the runs of the example."""


@dataclass(frozen=True)
class Question:
    """Question about the home uplink: key, range, requirement, disciplines."""

    key: str
    between: tuple[Any, Any]
    need: str
    qdiscs: tuple[str, ...]


QUESTIONS = (
    Question("upload.count", (1, 80), "call.delay_p99 < 60ms", ("fq_codel", "cake", "codel")),
    Question("upload.count", (1, 80), "call.loss_rate < 2%", ("codel", "pie")),
    Question("bottleneck.rate", ("1mbit", "99mbit"), "call.delay_p99 < 30ms", ("fq_codel", "pie")),
    Question("bottleneck.rate", ("1mbit", "99mbit"), "call.loss_rate < 1%", ("codel",)),
)


def shortened() -> dict[str, Any]:
    """Return the scenario with short runs."""
    import tomllib

    return {**tomllib.loads(SCENARIO.read_text("utf-8")), **SHORT}


def row(question: Question, qdisc: str, seeds: int = SEEDS) -> dict[str, Any]:
    """Return the answers of the search and of the sweep for a discipline, and their runs."""
    options: dict[str, Any] = {"between": question.between, "seeds": seeds, "qdiscs": qdisc}
    plan = make_plan(shortened(), question.key, question.need, **options)
    start = time.process_time()
    result = sj.capacity(shortened(), question.key, question.need, **options)
    middle = time.process_time()
    values = [plan.grid.value(place) for place in range(plan.first, plan.last + 1)]
    link = next(iter(shortened()["links"]))
    tree = shortened()
    tree["links"][link]["qdisc"] = qdisc
    rows = sj.sweep(tree, {question.key: values}, seeds=seeds)
    (need,) = plan.needs
    met = [
        need.verdict(need.estimate(rows.filter(pl.col(question.key) == value))).is_met
        for value in values
    ]
    (answer,) = result.answers
    return {
        "question": question,
        "qdisc": qdisc,
        "search": answer.value,
        "interval": (answer.low, answer.high),
        "sweep": swept(values, met, answer.find),
        "ends": ends(values, met, answer.find),
        "crossings": sum(a != b for a, b in pairwise(met)),
        "runs": (result.runs, len(values) * seeds),
        "cpu_s": (middle - start, time.process_time() - middle),
    }


def ends(values: Sequence[Any], met: Sequence[bool], find: str) -> list[Any]:
    """Return every value that meets the need where the next one, away from it, fails."""
    step = -1 if find == "smallest" else 1
    pairs = list(zip(values, met, strict=True))[::step]
    return [value for (value, good), (_, after) in pairwise(pairs) if good and not after]


def swept(values: Sequence[Any], met: Sequence[bool], find: str) -> Any:
    """Return the last value that meets the need before the first that fails.

    Without one it is None, or 0 if the values are counts.
    """
    pairs = list(zip(values, met, strict=True))
    if find == "smallest":
        pairs.reverse()
    last = 0 if isinstance(values[0], int) else None
    for value, good in pairs:
        if not good:
            break
        last = value
    return last


def page(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of the page."""
    same = sum(one["search"] == one["sweep"] for one in rows)
    others = [one for one in rows if one["search"] != one["sweep"]]
    near = sum(one["search"] in one["ends"] for one in others)
    runs = [sum(one["runs"][n] for one in rows) for n in range(2)]
    lines = [
        "# `capacity` compared with a full sweep",
        "",
        f"The home uplink of `examples/home-uplink.toml`, with runs of {SHORT['duration']} and",
        f"{SEEDS} seeds. The search answers {same} of {len(rows)} questions as the sweep does,",
        f"with {runs[0]} runs in place of {runs[1]} ({runs[0] / runs[1]:.0%}). Of the others",
        f"{near} of {len(others)} end at another value after which the sweep fails too.",
        "",
        "| key | need | qdisc | search | interval | sweep | crossings | runs | its runs | share |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in rows:
        question = one["question"]
        interval = " to ".join("-" if end is None else str(end) for end in one["interval"])
        share = one["runs"][0] / one["runs"][1]
        cells = (
            f"`{question.key}`", f"`{question.need}`", one["qdisc"], one["search"], interval,
            one["sweep"], one["crossings"], one["runs"][0], one["runs"][1], f"{share:.0%}",
        )  # fmt: skip
        lines.append(f"| {' | '.join('none' if one is None else str(one) for one in cells)} |")
    lines += [
        "",
        "`crossings` counts how often the sweep changes between values that meet the need and",
        "values that do not. With more than one, noise decides near the limit, and the search ends",
        "at one of the crossings.",
        "",
        "<!-- GENERATED by sojourn_lab.studies.capacity_sweep (`make capacity-sweep`). -->",
        "",
    ]
    return lines


def main() -> None:
    """Ask every question, and write the page."""
    os.chdir(ROOT)
    rows = []
    for question in QUESTIONS:
        for qdisc in question.qdiscs:
            rows.append(row(question, qdisc))
            shown = {key: text for key, text in rows[-1].items() if key != "question"}
            print(question.key, question.need, shown, flush=True)
    PAGE.write_text("\n".join(page(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
