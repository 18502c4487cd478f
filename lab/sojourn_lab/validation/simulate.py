"""Run scenarios on all cores and reduce each result to the requested numbers."""

import sys
from collections.abc import Callable, Sequence

import numpy as np

import sojourn as sj
from sojourn_lab.validation.cases import Case, Metric
from sojourn_lab.validation.statistics import (
    Array,
    Compared,
    compare,
    compare_in_pairs,
    compare_with_one_set,
)
from sojourn_lab.validation.systems import RTT_SETS, Table

BATCH = 16
"""Number of results in memory at a time."""

LOGGED_BATCH = 2
"""The same for results with a packet log, which take hundreds of megabytes each."""


def simulate(scenarios: Sequence[Table], numbers: Sequence[Callable[[sj.Result], float]]) -> Array:
    """Return a row of numbers per scenario."""
    rows: list[list[float]] = []
    batch = LOGGED_BATCH if any("packet_log" in scenario for scenario in scenarios) else BATCH
    for first in range(0, len(scenarios), batch):
        results = sj.simulate_many(scenarios[first : first + batch])
        rows += [[number(result) for number in numbers] for result in results]
    return np.array(rows)


def simulated(case: Case, seeds: int | None = None) -> dict[str, Array]:
    """Run a case with its seeds, or the first `seeds` of them; return each metric by run."""
    print(f"{case.file.name} {case.file.changed}: {case.name}", file=sys.stderr)
    chosen = case.seeds if case.file.rtts == "the same" else list(range(case.file.seeds))
    scenarios = [case.file.scenario(seed, case.key) for seed in chosen[:seeds]]
    columns = simulate(scenarios, [m.ours for m in case.file.metrics]).T
    return {m.column: c for m, c in zip(case.file.metrics, columns, strict=True)}


def compared(case: Case, metric: Metric, ours: Array) -> Compared:
    """Compare the results of sojourn with ns-2's."""
    theirs = case.theirs(metric)
    whole = len(ours) % RTT_SETS == 0
    if case.file.rtts == "one set" and whole:
        return compare_with_one_set(theirs, _by_set(ours))
    if case.file.rtts == "the same" and whole:
        return compare_in_pairs(_by_set(theirs).mean(axis=1), _by_set(ours).mean(axis=1))
    return compare(theirs, ours)


def _by_set(runs: Array) -> Array:
    """Return a row per set of propagation times: runs i and i + RTT_SETS share one."""
    return runs.reshape(-1, RTT_SETS).T


def verdict(metric: Metric, c: Compared) -> str:
    """Return "agrees", "close" or "differs"."""
    if abs(c.difference) <= c.half:
        return "agrees"
    return "close" if abs(c.difference) <= metric.tolerance(c.theirs) else "differs"
