"""Recommendation for a line: `sojourn recommend` and `sojourn.recommend`."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import check_device, near, shown
from sojourn._util.lazy import Lazy
from sojourn._util.progress import Steps, visible
from sojourn._util.public import public
from sojourn.recommendation import line as lines
from sojourn.recommendation import script
from sojourn.recommendation.configuration import Setting, write
from sojourn.recommendation.confirmation import CANDIDATES, confirmed, gain, label, means
from sojourn.recommendation.line import HELD_OUT, LOADS, Line, Table
from sojourn.recommendation.link_layer import LinkLayer, layer_of
from sojourn.recommendation.objective import FORMULAS, OBJECTIVES, Objective, objective_of
from sojourn.recommendation.search import (
    RUNGS,
    Trial,
    run,
    search,
    settings,
    ties,
)
from sojourn.recommendation.settings import ALWAYS, candidates, default, in_linux
from sojourn.result.statistics import Interval
from sojourn.scenario.save import to_toml

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")

SEED_STEP = 20
"""Distance of the seeds of two answers, which so have no run in common."""

SEEDS = range(8, 13)
"""Seeds of the final test, from the answer's."""

GRID_SEED = 13
"""Seed of the test of the range, from the answer's."""

RANGE_LOADS = ("light", "heavy")
"""Loads of the test of the range."""

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
        Mean facts in the final test, by label: the recommended one, `PRESENT`, and the defaults of
        cake, fq_codel and dualpi2.
    gains : dict
        Cost of the other label minus the cost of the recommendation, with its interval. If it is
        above 0, the recommendation is better.
    ties : list of dict
        Settings that the search cannot distinguish from the best one, without the answer.
    deviation : str
        Why the answer has a parameter that is not a default, or why it has none.
    wins : list of dict
        Tests of the range: `rtt_s`, `load`, and the gain over each other label.
    tried : list of Trial
        All trials, the best first.
    layer : LinkLayer or None
        The link layer of the commands.
    """

    line: Line
    qdisc: Table
    objective: str
    table: Mapping[str, Mapping[str, float]]
    gains: Mapping[str, Interval]
    ties: Sequence[Table]
    deviation: str
    wins: Sequence[Mapping[str, Any]]
    tried: Sequence[Trial]
    layer: LinkLayer | None = None

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
        tables: dict[str, Table] = {}
        for name in ("down", "up"):
            tables[name] = lines.installed(self.line, self.qdisc, name, shaped=self.line.shaped)
            if name in self.line.traces:
                tables[name]["trace"] = self.line.traces[name].table()
        return tables

    def scenario(self) -> Table:
        """Return the scenario of the line with the answer in both directions, at its usual load."""
        shaped = self.line.shaped
        return lines.scenario(self.line, self.qdisc, load=1.0, seed=1, shaped=shaped)

    def commands(self, dev: str = "eth0", ifb: str | None = None, *, undo: bool = False) -> str:
        """Return the shell commands for both directions, or those that undo them.

        They can be run again. If one fails, the device keeps its default queue. `ifb` is the
        device for the download; the default is a name of its own.

        Raises InputError if Linux has no qdisc for the discipline, or a name is not a device's.
        """
        check_device("dev", dev)
        ifb = check_device("ifb", script.ifb_name(dev) if ifb is None else ifb)
        if undo:
            return "\n".join(script.undo(dev, ifb, shaped=self.line.shaped))
        commands = script.install(self.line, self.qdisc, dev, ifb, self.layer)
        return "\n".join([VARYING, *commands] if self.line.traces else commands)

    def configuration(self, form: str = "shell", dev: str = "eth0") -> str:
        """Return the setting in a format: "shell", "sqm", "networkd", "routeros" and others.

        Comments name what the format cannot say. Raises InputError if the format is unknown or
        cannot shape, or Linux has no qdisc for the discipline.
        """
        check_device("dev", dev)
        ifb = check_device("ifb", script.ifb_name(dev))
        setting = Setting(self.line, self.qdisc, dev, ifb, self.layer)
        lines = write(setting, form)
        return "\n".join([VARYING, *lines] if self.line.traces and form == "shell" else lines)

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
            "ties": [dict(one) for one in self.ties],
            "deviation": self.deviation,
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
    objective: str | Objective | None = None,
    only: str | None = None,
    buffer: str = "1000p",
    shaper: bool | None = None,
    link_layer: str | None = None,
    seed: int = 1,
    jobs: int | None = None,
    progress: bool = False,
    trust: bool = False,
) -> Recommendation:
    """Recommend a discipline with parameters for a line, by simulation.

    The answer is the setting with the fewest words that are not defaults within 5 % of the best
    one. A parameter other than the default is kept only if it gains more than that on loads,
    round-trip times and seeds of a second test.

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
        "home", "office", "server", "datacentre", "calls", "games", "throughput" or "fairness"; or a
        function of the facts of a run (`sojourn.recommendation.objective.Facts`) that returns a
        cost. The default is the one of the traffic, for a file "home".
    only : str, optional
        "linux" for disciplines that Linux has, or names like "codel,pie". The default is all.
    buffer : str, optional
        Buffer of the present queue, a drop-tail queue at the rate of the line: packets, bytes, or a
        time like "100ms" at the rate of each direction.
    shaper : bool, optional
        True to shape to 95 % of the line, so that the queue forms where the discipline is. The
        default is True for home and office, False for server, datacentre and traces.
    link_layer : str, optional
        Link layer, like "docsis" or "adsl-pppoe-llc", whose overhead the commands have.
    seed : int, optional
        Seed of the search. Searches with different seeds have no run in common.
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
        If an argument is invalid, or no discipline is left.
    """
    question = prepare(
        down, up, rtt, traffic, objective=objective, only=only, buffer=buffer, shaper=shaper,
        link_layer=link_layer, seed=seed, trust=trust,
    )  # fmt: skip
    return answer(question, jobs=jobs, progress=progress)


@dataclass(frozen=True)
class Question:
    """Validated question: the line, names of disciplines, objective, seed, link layer."""

    line: Line
    names: list[str]
    objective: str | Objective
    seed: int
    layer: LinkLayer | None = None


def prepare(
    down: str,
    up: str,
    rtt: str,
    traffic: str,
    *,
    objective: str | Objective | None = None,
    only: str | None = None,
    buffer: str = "1000p",
    shaper: bool | None = None,
    link_layer: str | None = None,
    seed: int = 1,
    trust: bool = False,
) -> Question:
    """Return a validated question. `recommend` has the same parameters."""
    if not callable(objective):
        objective = objective_of(objective, traffic.lower().replace("center", "centre"))
    if isinstance(objective, str) and objective not in OBJECTIVES:
        hint = near(objective, OBJECTIVES)
        raise InputError(f"--for: unknown objective {shown(objective)}{hint}")
    if not 0 <= seed <= 2**32 - 1:
        raise InputError(f"--seed: {seed} is out of range, allowed: 0 to {2**32 - 1}")
    names, layer = candidates(only), layer_of(link_layer)
    line = lines.make(down, up, rtt, traffic, buffer=buffer, shaper=shaper, trust=trust)
    if layer is not None and not line.shaped:
        raise InputError("--link-layer: has no effect without a shaper; omit it, or give --shaper")
    return Question(line, names, objective, seed, layer)


def answer(
    question: Question, *, jobs: int | None = None, progress: bool = False
) -> Recommendation:
    """Search, and test the answer; `jobs` and `progress` as in `recommend`."""
    line, objective = question.line, question.objective
    cost = OBJECTIVES[objective] if isinstance(objective, str) else objective
    count = len(RUNGS) * len(settings(line, question.names))
    with Steps(count, "settings", progress and visible()) as steps:
        first = SEED_STEP * question.seed
        tried = search(line, question.names, cost, seed=first, jobs=jobs, step=steps.step)
    rtts = _rtts(line)
    # At most: four settings at two loads, five labels, and these at each place of the range.
    tests = (1 + CANDIDATES) * len(HELD_OUT) + (2 + len(ALWAYS)) * (
        1 + len(rtts) * len(RANGE_LOADS)
    )
    with Steps(tests, "final tests", progress and visible()) as steps:

        def test(qdisc: Table, at: Sequence[tuple[float, int]], **how: Any) -> Any:
            facts = run(line, qdisc, at, jobs=jobs, **how)
            steps.step()
            return facts

        best, why = confirmed(line, tried, cost, first, test)
        at = [(load, first + s) for load in HELD_OUT.values() for s in SEEDS]
        others = _others(line, best)
        ours = label(best)
        facts = {ours: test(best, at)}
        for name, (qdisc, shaped) in others.items():
            facts[name] = test(qdisc, at, shaped=shaped)
        wins = _range(rtts, best, others, cost, first + GRID_SEED, test)
    gains = {name: gain(facts[ours], facts[name], cost) for name in others}
    table = {name: means(known) for name, known in facts.items()}
    named = objective if isinstance(objective, str) else "custom"
    equal = [one for one in ties(line, tried) if one != best]
    return Recommendation(line, best, named, table, gains, equal, why, wins, tried, question.layer)


def _others(line: Line, best: Table) -> dict[str, tuple[Table, bool]]:
    """Return what the answer is compared with: discipline, and True if it is shaped."""
    tables: dict[str, tuple[Table, bool]] = {
        PRESENT: ({"name": "droptail", "limit": line.buffer}, False)
    }
    for name in ALWAYS:
        usual = default(name, line)
        if best != usual:
            tables[name] = (usual, line.shaped)
    return tables


def _rtts(line: Line) -> list[float]:
    """Return the round-trip times (s) of the test of the range, also outside of it."""
    low, high = line.rtt_s
    return sorted({low / 2, low, math.sqrt(low * high), high, 2 * high})


def _range(
    rtts: Sequence[float],
    best: Table,
    others: Mapping[str, tuple[Table, bool]],
    cost: Objective,
    seed: int,
    test: Callable[..., Sequence[Mapping[str, float]]],
) -> list[dict[str, Any]]:
    """Return the gain at single round-trip times and loads; `test` runs a discipline."""
    rows = []
    for rtt_s in rtts:
        for name in RANGE_LOADS:
            at = [(LOADS[name], seed)]
            pair = (rtt_s, rtt_s)
            ours = fmean(map(cost, test(best, at, rtt_s=pair)))
            gains = {
                other: fmean(map(cost, test(q, at, shaped=shaped, rtt_s=pair))) - ours
                for other, (q, shaped) in others.items()
            }
            rows.append({"rtt_s": rtt_s, "load": name, **gains})
    return rows
