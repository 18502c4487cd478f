"""Processor time of the runs of a paper, measured when they are made.

`costs.json`, next to the store of the runs, has the time of each run by its key. The report has the
sum of each experiment.
"""

import json
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sojourn._util.files import write_text
from sojourn._util.units import bps_of, seconds
from sojourn.result.result import Result
from sojourn.scenario.draft import canonical
from sojourn.sweeps.runner import Measure, Row, Run, identity
from sojourn_lab.reproduction.paper import Experiment, Paper, claims_about

FILE = "costs.json"

_before = threading.local()
"""Processor time of each thread at the end of its last run, in seconds."""


class Timed:
    """Measure of a run that also records the processor time of the run, in seconds.

    A thread of a campaign makes its runs one after the other, so a run takes what its thread used
    since the end of the run before.
    """

    def __init__(self, measure: Measure) -> None:
        self.measure, self.identity = measure, identity(measure)
        self.core_s: float | None = None

    def __call__(self, result: Result) -> Mapping[str, Any]:
        """Measure a run."""
        measured = self.measure(result)
        now = time.thread_time()
        self.core_s = now - getattr(_before, "core_s", 0.0)
        _before.core_s = now
        return measured


def timed(runs: Sequence[Run]) -> list[Run]:
    """Return the runs with measures that record their time."""
    return [Run(one.labels, one.scenario, Timed(one.measure)) for one in runs]


def by_key(store: Path | None, runs: Sequence[Run], rows: Sequence[Row]) -> dict[str, float]:
    """Return the time of each run by its key, and add the new ones to the file next to `store`."""
    new = {
        str(row["key"]): round(run.measure.core_s, 4)
        for run, row in zip(runs, rows, strict=True)
        if isinstance(run.measure, Timed) and run.measure.core_s is not None
    }
    if store is None:
        return new
    path = store.with_name(FILE)
    try:
        known = {str(key): float(value) for key, value in json.loads(path.read_text()).items()}
    except (OSError, ValueError, AttributeError):
        known = {}
    if new:
        write_text(path, json.dumps(known | new, indent=0) + "\n")
    return known | new


def by_experiment(
    runs: Mapping[str, Sequence[Run]], rows: Sequence[Row], times: Mapping[str, float]
) -> dict[str, float]:
    """Return the time of the runs of each experiment, in seconds of one core.

    Runs without a recorded time count as the mean of the others. Experiments without any recorded
    time are left out.
    """
    sums, first = {}, 0
    for name, group in runs.items():
        keys = {str(row["key"]) for row in rows[first : first + len(group)]}
        first += len(group)
        each = [times[key] for key in keys if key in times]
        if each:
            sums[name] = round(sum(each) * len(keys) / len(each), 4)
    return sums


class Times(NamedTuple):
    """Expected processor time of a figure and the claims about it, in seconds of one core."""

    quick_s: float
    full_s: float


def written(core_s: float) -> str:
    """Write a processor time in seconds or minutes."""
    return f"{core_s:.0f} s" if core_s < 100 else f"{core_s / 60:.0f} min"


def expected(paper: Paper, core_s: Mapping[str, float]) -> dict[str, Times]:
    """Return the time of each figure from the measured time of the experiments in full mode.

    The time of quick mode is the same part of it as the simulated work.
    """
    full, quick = paper.experiments(True), paper.experiments(False)
    shares = {name: _work(quick[name]) / _work(full[name]) for name in core_s if name in full}
    times = {}
    for figure in paper.figures:
        names = {*figure.needs}
        names |= {need for one in claims_about(paper, [figure]) for need in one.every_need}
        known = sorted(names & shares.keys())
        if known:
            whole = sum(core_s[name] for name in known)
            part = sum(core_s[name] * shares[name] for name in known)
            times[figure.number] = Times(part, whole)
    return times


def _work(one: Experiment) -> float:
    """Return the simulated bits of the slowest links, to which the time is about proportional."""
    total = 0.0
    for _, tree in one.points:
        parsed = canonical(tree)
        slowest = min(bps_of(link["rate"]) for link in parsed["links"].values())
        total += seconds(parsed["duration"]) * slowest
    return total * one.seeds
