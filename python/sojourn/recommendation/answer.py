"""Recommendation for a line: `sojourn recommend` and `sojourn.recommend`."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from sojourn import tc
from sojourn._sojourn import InputError
from sojourn._util.inputs import check_device, near, shown
from sojourn._util.lazy import Lazy
from sojourn._util.progress import Steps, visible
from sojourn._util.public import public
from sojourn.recommendation import line as lines
from sojourn.recommendation.line import HELD_OUT, LOADS, SHAPED, Line, Table
from sojourn.recommendation.objective import FORMULAS, OBJECTIVES, Objective
from sojourn.recommendation.search import Trial, candidates, in_linux, run, search
from sojourn.result.statistics import Interval, interval
from sojourn.scenario.keys import Link
from sojourn.scenario.save import to_toml

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")

SEEDS = tuple(range(101, 107))
"""Seeds of the final test."""

FINALISTS = 3
"""Trials that take part in the final test."""

GRID_SEEDS = (201, 202)
"""Seeds of the test of the range."""

PRESENT = "drop-tail today"
"""Label of the present default: drop-tail at the rate of the line."""


VARYING = """\
# The rate varies, so no shaper can keep the queue here: install this at the sending end of each
# direction, on a device that holds packets back until the radio takes them."""
"""Comment on the commands for a line with a trace."""


@public
@dataclass(frozen=True)
class Recommendation:
    """Answer for a line.

    Attributes
    ----------
    line : Line
        The line that was asked about.
    qdisc : dict
        The recommended discipline with its parameters.
    objective : str
        Name of the objective, or "custom".
    table : dict
        Mean facts in the final test, by label: the recommended one, `PRESENT`, fq_codel.
    gains : dict
        Cost of the other label minus the cost of the recommendation, with its interval. If it is
        above 0, the recommendation is better.
    wins : list of dict
        Tests of the range: `rtt_s`, `load`, and the gain over each other label.
    tried : list of Trial
        All trials, the best first.
    """

    line: Line
    qdisc: Table
    objective: str
    table: Mapping[str, Mapping[str, float]]
    gains: Mapping[str, Interval]
    wins: Sequence[Mapping[str, Any]]
    tried: Sequence[Trial]

    def frame(self) -> "pl.DataFrame":
        """Return everything tried: one row per discipline and run."""
        import polars as pl

        return pl.DataFrame(
            [
                {
                    "trial": n,
                    "qdisc": trial.qdisc["name"],
                    "parameters": json.dumps(trial.qdisc),
                    "cost": trial.cost,
                    "stopped": trial.stopped,
                    "run": k,
                    **facts,
                }
                for n, trial in enumerate(self.tried)
                for k, facts in enumerate(trial.facts)
            ],
            infer_schema_length=None,
        )

    def links(self) -> dict[str, Table]:
        """Return both directions as links of a scenario."""
        share = SHAPED if self.line.shaped else 1.0
        rates = {"down": self.line.down_bps, "up": self.line.up_bps}
        tables: dict[str, Table] = {}
        for name, bps in rates.items():
            tables[name] = {"rate": f"{round(bps * share / 1e3)}kbit", "qdisc": dict(self.qdisc)}
            if name in self.line.traces:
                tables[name]["trace"] = self.line.traces[name].table()
        return tables

    def commands(self, dev: str = "eth0", ifb: str = "ifb0") -> str:
        """Return the commands of tc for both directions.

        Raises InputError if Linux has no qdisc for the discipline, or a name is not a device's.
        """
        check_device("dev", dev)
        check_device("ifb", ifb)
        links = self.links()
        if not self.line.shaped:
            lines = tc.export(self.qdisc, dev=dev, rate=links["up"]["rate"])
            return f"{VARYING}\n{lines}" if self.line.traces else lines
        return "\n".join(
            [
                f"# upload: egress of {dev}",
                tc.export(Link(**links["up"]), dev=dev),
                f"# download: ingress of {dev}, through {ifb}",
                f"ip link add {ifb} type ifb && ip link set {ifb} up",
                f"tc qdisc replace dev {dev} handle ffff: ingress",
                f"tc filter replace dev {dev} parent ffff: protocol all prio 1 matchall action "
                f"mirred egress redirect dev {ifb}",
                tc.export(Link(**links["down"]), dev=ifb),
            ]
        )

    def toml(self) -> str:
        """Return both links as TOML of a scenario."""
        return to_toml({"links": self.links()}).strip()

    def summary(self) -> dict[str, Any]:
        """Return the answer as data for JSON."""
        return {
            "qdisc": dict(self.qdisc),
            "links": self.links(),
            "tc": self.commands().splitlines() if in_linux(self.qdisc["name"]) else None,
            "objective": self.objective,
            "formula": FORMULAS.get(self.objective),
            "table": {label: dict(facts) for label, facts in self.table.items()},
            "gains": {
                label: {"mean": one.mean, "low": one.low, "high": one.high}
                for label, one in self.gains.items()
            },
            "wins": [dict(one) for one in self.wins],
            "tried": len(self.tried),
        }


@public
def recommend(
    down: str,
    up: str,
    rtt: str,
    traffic: str = "home",
    *,
    objective: str | Objective = "balance",
    only: str | None = None,
    buffer: str = "1000p",
    shaper: bool | None = None,
    trials: int = 60,
    seed: int = 1,
    jobs: int | None = None,
    progress: bool = False,
    trust: bool = False,
) -> Recommendation:
    """Recommend a discipline with parameters for a line, by simulation.

    Parameters
    ----------
    down, up : str
        Rates of the line, like "50mbit"; or the file of a trace for a rate that varies (CSV with
        t_s and rate_bps, or delivery opportunities as Mahimahi has them), which repeats.
    rtt : str
        Round-trip time, or a range like "20ms..120ms".
    traffic : str, optional
        "home", "office", "server", "datacentre", or the file of a scenario with links called up and
        down, whose flows are used.
    objective : str or callable, optional
        "balance", "calls", "games", "throughput" or "fairness"; or a function of the facts of a run
        (`sojourn.recommendation.objective.Facts`) that returns a cost.
    only : str, optional
        "linux" for disciplines that Linux has, or names like "codel,pie". The default is all.
    buffer : str, optional
        Buffer of the present queue, a drop-tail queue at the rate of the line: packets, bytes, or a
        time like "100ms" at the rate of each direction.
    shaper : bool, optional
        True to shape to 95 % of the line, so that the queue forms where the discipline is. The
        default is True for home and office, False for server, datacentre and traces.
    trials : int, optional
        Number of trials; at least one for each discipline.
    seed : int, optional
        Seed of the search.
    jobs : int, optional
        Number of threads. The default is the number of cores.
    progress : bool, optional
        True shows a progress bar on a terminal and in a notebook.
    trust : bool, optional
        True if Python code that the file of the traffic names may run. The default refuses it.

    Returns
    -------
    Recommendation
        The answer, with everything tried.

    Raises
    ------
    InputError
        If an argument is invalid, no discipline is left, or Optuna is missing.
    """
    question = prepare(
        down, up, rtt, traffic, objective=objective, only=only, buffer=buffer, shaper=shaper,
        trials=trials, seed=seed, trust=trust,
    )  # fmt: skip
    return answer(question, jobs=jobs, progress=progress)


@dataclass(frozen=True)
class Question:
    """Validated question: the line, names of disciplines, objective, size of the search."""

    line: Line
    names: list[str]
    objective: str | Objective
    trials: int
    seed: int


def prepare(
    down: str,
    up: str,
    rtt: str,
    traffic: str,
    *,
    objective: str | Objective = "balance",
    only: str | None = None,
    buffer: str = "1000p",
    shaper: bool | None = None,
    trials: int = 60,
    seed: int = 1,
    trust: bool = False,
) -> Question:
    """Return a validated question. `recommend` has the same parameters."""
    if isinstance(objective, str) and objective not in OBJECTIVES:
        hint = near(objective, OBJECTIVES)
        raise InputError(f"--for: unknown objective {shown(objective)}{hint}")
    for name, value, least, most in (("trials", trials, 1, 10_000), ("seed", seed, 0, 2**32 - 1)):
        if not least <= value <= most:
            raise InputError(f"--{name}: {value} is out of range, allowed: {least} to {most}")
    names = candidates(only)
    line = lines.make(down, up, rtt, traffic, buffer=buffer, shaper=shaper, trust=trust)
    return Question(line, names, objective, trials, seed)


def answer(
    question: Question, *, jobs: int | None = None, progress: bool = False
) -> Recommendation:
    """Search, and test the best candidates; `jobs` and `progress` as in `recommend`."""
    line, objective = question.line, question.objective
    cost = OBJECTIVES[objective] if isinstance(objective, str) else objective
    tried = search(
        line,
        question.names,
        cost,
        trials=question.trials,
        seed=question.seed,
        jobs=jobs,
        progress=progress,
    )
    final = [one for one in tried if not one.stopped][:FINALISTS]
    at = [(load, s) for load in HELD_OUT.values() for s in SEEDS]
    # The best of the finalists is chosen on the first half of the seeds, and judged on the other.
    choice = [one for one in at if one[1] in SEEDS[: len(SEEDS) // 2]]
    judged = [one for one in at if one not in choice]
    rtts = _rtts(line)
    # At most: the answer and two others, at each round-trip time and load.
    tests = len(final) + 3 + 3 * len(rtts) * len(LOADS)
    with Steps(tests, "final tests", progress and visible()) as steps:

        def test(qdisc: Table, at: Sequence[tuple[float, int]], **how: Any) -> Any:
            costs = run(line, qdisc, at, jobs=jobs, **how)
            steps.step()
            return costs

        best = min(final, key=lambda one: fmean(map(cost, test(one.qdisc, choice))))
        others = _others(line, best.qdisc)
        label = _label(best.qdisc)
        facts = {label: test(best.qdisc, judged)}
        for name, (qdisc, shaped) in others.items():
            facts[name] = test(qdisc, judged, shaped=shaped)
        wins = _range(rtts, best.qdisc, others, cost, test)
    gains = {
        name: interval([cost(b) - cost(a) for a, b in zip(facts[label], facts[name], strict=True)])
        for name in others
    }
    table = {name: _means(known) for name, known in facts.items()}
    named = objective if isinstance(objective, str) else "custom"
    return Recommendation(line, best.qdisc, named, table, gains, wins, tried)


def _label(qdisc: Table) -> str:
    from sojourn.scenario.variants import labels

    return labels([qdisc])[0]


def _others(line: Line, best: Table) -> dict[str, tuple[Table, bool]]:
    """Return what the answer is compared with: discipline, and True if it is shaped."""
    tables: dict[str, tuple[Table, bool]] = {
        PRESENT: ({"name": "droptail", "limit": line.buffer}, False)
    }
    usual: Table = {"name": "fq_codel"}
    if line.traffic == "datacentre":
        usual["ecn"] = True
    if best != usual:
        tables["fq_codel"] = (usual, line.shaped)
    return tables


def _means(facts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {key: fmean(one[key] for one in facts) for key in facts[0]}


def _rtts(line: Line) -> list[float]:
    """Return the round-trip times (s) of the test of the range, also outside of it."""
    low, high = line.rtt_s
    return sorted({low / 2, low, math.sqrt(low * high), high, 2 * high})


def _range(
    rtts: Sequence[float],
    best: Table,
    others: Mapping[str, tuple[Table, bool]],
    cost: Objective,
    test: Callable[..., Sequence[Mapping[str, float]]],
) -> list[dict[str, Any]]:
    """Return the gain at single round-trip times and loads; `test` runs a discipline."""
    rows = []
    for rtt_s in rtts:
        for name, load in LOADS.items():
            at = [(load, s) for s in GRID_SEEDS]
            pair = (rtt_s, rtt_s)
            ours = fmean(map(cost, test(best, at, rtt_s=pair)))
            gains = {
                other: fmean(map(cost, test(q, at, shaped=shaped, rtt_s=pair))) - ours
                for other, (q, shaped) in others.items()
            }
            rows.append({"rtt_s": rtt_s, "load": name, **gains})
    return rows
