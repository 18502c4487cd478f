"""Search for a discipline and its parameters: Optuna's TPE with successive halving."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn._util.progress import Steps, visible
from sojourn._util.units import seconds
from sojourn.recommendation.line import LOADS, Line, Table, scenario
from sojourn.recommendation.objective import Measured, Objective
from sojourn.sweeps.runner import Run, campaign

RUNGS = ((("usual", 1),), (("light", 1), ("heavy", 1)), (("usual", 2), ("light", 2), ("heavy", 2)))
"""Loads and seeds of each rung: a trial that is behind stops before the next one."""

TUNED = ("target", "interval", "quantum")
"""Parameters that are searched, where a discipline has them."""

RANGES = {"target": (0.02, 0.6), "interval": (0.3, 4.0)}
"""Ranges of times as multiples of the longest round-trip time."""

TARGET_MAX = 0.5
"""Largest target as a share of the interval: CoDel's target is the acceptable minimum over it."""

QUANTUM = (300, 6000)
"""Range of quanta in bytes."""


@dataclass(frozen=True)
class Trial:
    """Discipline that was tried: its parameters, its facts by run, its mean cost.

    `stopped` is True if it did not reach the last rung.
    """

    qdisc: Table
    facts: tuple[Mapping[str, float], ...]
    cost: float
    stopped: bool


def candidates(only: str | None) -> list[str]:
    """Return the disciplines to try: all, those that Linux has ("linux"), or a list of names.

    Raises InputError for an unknown name, or if none is left.
    """
    specs = json.loads(_sojourn.specs())["disciplines"]
    names = [spec["name"] for spec in specs]
    if only in (None, "all"):
        return names
    if only == "linux":
        return [name for name in names if in_linux(name)]
    known = {alias: spec["name"] for spec in specs for alias in (spec["name"], *spec["aliases"])}
    chosen = []
    for part in str(only).split(","):
        name = part.strip().lower().replace("-", "_")
        if not name:
            continue
        if name not in known:
            raise InputError(f"--only: unknown discipline {shown(part)}{near(name, known)}")
        chosen.append(known[name])
    if not chosen:
        raise InputError("--only: no discipline is left; write linux, all, or names like codel,pie")
    return chosen


def in_linux(name: str) -> bool:
    """Return True if one qdisc of Linux does what a discipline does, without a tree of classes."""
    from sojourn import tc

    try:
        nearest = tc.translate(name, "10mbit")
    except InputError:
        return False
    return not any("class" in lost for lost in nearest["lost"])


def search(
    line: Line,
    names: Sequence[str],
    objective: Objective,
    *,
    trials: int,
    seed: int,
    jobs: int | None = None,
    progress: bool = False,
) -> list[Trial]:
    """Try disciplines and parameters, and return all trials, the best first.

    Each discipline is tried with its defaults first. Raises InputError if Optuna is missing.
    """
    try:
        import optuna
    except ImportError:
        raise InputError("recommend requires Optuna: pip install optuna") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=len(names))
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=2)
    study = optuna.create_study(sampler=sampler, pruner=pruner)
    for name in names:
        usual = {f"{name}.{key}": value for key, value in _usual(name, line).items()}
        study.enqueue_trial({"qdisc": name, **usual})
    tried: list[Trial] = []

    def try_one(trial: Any) -> float:
        name = trial.suggest_categorical("qdisc", list(names))
        qdisc = _suggested(trial, name, line)
        facts: list[Mapping[str, float]] = []
        costs: list[float] = []
        for step, rung in enumerate(RUNGS):
            part = run(line, qdisc, [(LOADS[load], s) for load, s in rung], jobs=jobs)
            facts += part
            costs += [objective(one) for one in part]
            trial.report(fmean(costs), step + 1)
            last = step == len(RUNGS) - 1
            if not last and trial.should_prune():
                tried.append(Trial(qdisc, tuple(facts), fmean(costs), True))
                raise optuna.TrialPruned
        tried.append(Trial(qdisc, tuple(facts), fmean(costs), False))
        return fmean(costs)

    count = max(trials, len(names))
    with Steps(count, "trials", progress and visible()) as steps:
        study.optimize(
            try_one,
            n_trials=count,
            show_progress_bar=False,
            callbacks=[lambda study, trial: steps.step()],
        )
    return sorted(tried, key=lambda one: (one.stopped, one.cost))


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
    measure = Measured(with_shaper)
    settings = ", ".join(f"{key}={value}" for key, value in qdisc.items() if key != "name")
    name = f"{qdisc['name']}({settings})" if settings else qdisc["name"]
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


def with_ecn(name: str) -> bool:
    """Return True if a discipline has the parameter `ecn`."""
    return "ecn" in parameters(name)


def parameters(name: str) -> dict[str, Table]:
    """Return the parameters of a discipline by name."""
    for spec in json.loads(_sojourn.specs())["disciplines"]:
        if spec["name"] == name:
            return {one["name"]: one for one in spec["params"]}
    raise KeyError(name)


def _ranges(name: str, line: Line) -> dict[str, tuple[float, float]]:
    """Return the ranges of the tuned parameters: times in s, quantum in bytes."""
    ranges: dict[str, tuple[float, float]] = {}
    for key, spec in parameters(name).items():
        if key not in TUNED:
            continue
        if key == "quantum":
            ranges[key] = QUANTUM
        elif str(spec["kind"]).startswith("duration") and _is_time(str(spec["value"])):
            low, high = (share * line.rtt_s[1] for share in RANGES[key])
            usual = seconds(spec["value"])
            ranges[key] = max(5e-6, min(low, usual)), max(high, usual)
    return ranges


def _is_time(value: str) -> bool:
    return value[:1].isdigit() and value.endswith("s")


def _usual(name: str, line: Line) -> dict[str, float]:
    """Return the defaults of the tuned parameters."""
    known = parameters(name)
    values = {}
    for key in _ranges(name, line):
        text = str(known[key]["value"])
        values[key] = float(text.removesuffix("B")) if key == "quantum" else seconds(text)
    return values


def _suggested(trial: Any, name: str, line: Line) -> Table:
    """Return the discipline that Optuna suggests; defaults are left out."""
    qdisc: Table = {"name": name}
    usual = _usual(name, line)
    interval_s = math.inf
    for key, (low, high) in sorted(_ranges(name, line).items()):  # the interval first
        value = trial.suggest_float(f"{name}.{key}", low, high, log=True)
        if key == "interval":
            interval_s = value
        elif key == "target":
            value = min(value, TARGET_MAX * interval_s)
        if abs(value - usual[key]) <= 1e-6 * usual[key]:
            continue
        qdisc[key] = f"{round(value)}B" if key == "quantum" else _time(value)
    if line.traffic == "datacentre" and with_ecn(name):
        qdisc["ecn"] = True
    return qdisc


def _time(value_s: float) -> str:
    """Return a time with two significant digits, in the unit that tc shows."""
    digits = -math.floor(math.log10(value_s)) + 1
    rounded = round(value_s, digits)
    return f"{rounded * 1e3:g}ms" if rounded >= 1e-3 else f"{max(1, round(rounded * 1e6))}us"
