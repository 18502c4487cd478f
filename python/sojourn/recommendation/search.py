"""Search for a setting: every default and round deviation, by rungs of more loads and seeds."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from sojourn.recommendation.line import LOADS, Line, Table, scenario
from sojourn.recommendation.objective import Measured, Objective
from sojourn.recommendation.settings import ALWAYS, changed, default, deviations, rank
from sojourn.result.statistics import quantile
from sojourn.sweeps.runner import Run, campaign

RUNGS = (
    (("usual", 0),),
    (("light", 0), ("heavy", 0)),
    (("usual", 1), ("light", 1), ("heavy", 1)),
    (("usual", 2), ("light", 2), ("heavy", 2)),
)
"""Loads and seeds (counted from the seed of the search) of each rung."""

BEHIND = (0.5, 0.2, 0.1)
"""Cost by which a default may be behind the best setting after each rung but the last."""

SLACK = (0.15, 0.0, -0.03)
"""Cost by which a deviation may be behind the best default after each rung but the last.

At the end it must be ahead by more than `TIE`; costs of single runs differ by about 0.1.
"""

TIE = 0.05
"""Costs that differ by less are equal: 5 % of the product of responsiveness and goodput."""


@dataclass(frozen=True)
class Trial:
    """Setting that was tried: its parameters, its facts and costs by run.

    `stopped` is True if it did not reach the last rung.
    """

    qdisc: Table
    facts: tuple[Mapping[str, float], ...]
    costs: tuple[float, ...]
    stopped: bool

    @property
    def cost(self) -> float:
        """Mean cost of the runs."""
        return fmean(self.costs)

    def behind(self, other: "Trial") -> float:
        """Return the mean cost minus the cost of another trial, over the runs that both made."""
        return fmean(a - b for a, b in zip(self.costs, other.costs, strict=False))

    def is_behind(self, other: "Trial") -> bool:
        """Return True if the mean cost exceeds another one by more than `TIE`, and not by chance.

        Half of the 95 % interval of the difference is taken off, from the differences at each load:
        costs of a slow line, whose calls lose packets, differ by 0.5 between seeds.
        """
        each = [a - b for a, b in zip(self.costs, other.costs, strict=False)]
        by_load = [each[n :: len(LOADS)] for n in range(len(LOADS))]
        freedom = len(each) - len(LOADS)
        if freedom < 1:
            return fmean(each) > TIE
        squares = sum((one - fmean(same)) ** 2 for same in by_load for one in same)
        half = quantile(freedom) * math.sqrt(squares / freedom / len(each))
        return fmean(each) - half > TIE


def search(
    line: Line,
    names: Sequence[str],
    objective: Objective,
    *,
    seed: int,
    jobs: int | None = None,
    step: Callable[[], object] = lambda: None,
) -> list[Trial]:
    """Try every setting of disciplines, and return all trials, the best first.

    After each rung, settings that can no longer win stop: defaults that are far behind, except the
    disciplines of `ALWAYS`, and deviations that do not gain over the best default. `step` is called
    after each setting of a rung.
    """
    going = settings(line, names)
    usual = {n for n, qdisc in enumerate(going) if not changed(qdisc, line)}
    always = {n for n in usual if going[n]["name"] in ALWAYS}
    facts: dict[int, list[Mapping[str, float]]] = {n: [] for n in range(len(going))}
    at = dict(enumerate(going))
    for k, rung in enumerate(RUNGS):
        points = [(LOADS[load], seed + s) for load, s in rung]
        for n, qdisc in at.items():
            facts[n] += run(line, qdisc, points, jobs=jobs)
            step()
        if k == len(BEHIND):
            break
        costs = {n: fmean(map(objective, facts[n])) for n in at}
        best = min(costs.values())
        reference = min((cost for n, cost in costs.items() if n in usual), default=best)
        most = {n: best + BEHIND[k] if n in usual else reference + SLACK[k] for n in at}
        at = {n: qdisc for n, qdisc in at.items() if costs[n] <= most[n] or n in always}
    trials = [
        Trial(qdisc, tuple(facts[n]), tuple(map(objective, facts[n])), n not in at)
        for n, qdisc in enumerate(going)
    ]
    return sorted(trials, key=lambda one: (one.stopped, one.cost))


def settings(line: Line, names: Sequence[str]) -> list[Table]:
    """Return every setting to try: defaults, then deviations."""
    usual = [default(name, line) for name in names]
    return usual + [one for name in names for one in deviations(name, line)]


def close(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that reached the last rung and are not clearly behind the best one.

    If all stopped, these are the trials that are not clearly behind the first.
    """
    whole = [one for one in trials if not one.stopped] or list(trials)
    return [one for one in whole if not one.is_behind(whole[0])]


def simplest(line: Line, trials: Sequence[Trial]) -> Trial:
    """Return the trial with the fewest changed words among those that are close to the best one.

    Trials with equally many words are in the order of `settings.rank`, then by cost.
    """
    return min(close(trials), key=lambda one: (*rank(one.qdisc, line), one.cost))


def ties(line: Line, trials: Sequence[Trial]) -> list[Table]:
    """Return the settings that equal the best one, those with the fewest words first.

    They are within `TIE` of it, or behind it by chance.

    Settings that stopped are compared over the runs that they made, if these have every load.
    """
    near = close(trials)
    best = near[0]
    enough = min(len(best.costs), 1 + len(RUNGS[1]))
    equal = [
        one
        for one in trials
        if one in near or (len(one.costs) >= enough and one.behind(best) <= TIE)
    ]
    order = sorted(equal, key=lambda one: (*rank(one.qdisc, line), one.cost))
    return [one.qdisc for one in order]


def run(
    line: Line,
    qdisc: Mapping[str, Any],
    at: Sequence[tuple[float, int]],
    *,
    shaped: bool | None = None,
    rtt_s: tuple[float, float] | None = None,
    jobs: int | None = None,
) -> list[Mapping[str, float]]:
    """Return the facts of a discipline at some loads and seeds."""
    with_shaper = line.shaped if shaped is None else shaped
    measure = Measured(line.down_bps, line.up_bps, fmean(rtt_s or line.rtt_s))
    chosen = ", ".join(f"{key}={value}" for key, value in qdisc.items() if key != "name")
    name = f"{qdisc['name']}({chosen})" if chosen else qdisc["name"]
    runs = [
        Run(
            {"qdisc": name, "load": load},
            scenario(line, qdisc, load=load, seed=seed, shaped=with_shaper, rtt_s=rtt_s),
            measure,
        )
        for load, seed in at
    ]
    rows = campaign(runs, jobs=jobs).complete().rows
    return [{key: row[key] for key in json.loads(row["measured"])} for row in rows]
