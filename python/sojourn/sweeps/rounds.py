"""Rounds of a sweep: its runs, and with a stopping rule more seeds until intervals are narrow."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn._sojourn import ParsedScenario
from sojourn._util.lazy import Lazy
from sojourn.scenario.draft import Table
from sojourn.sweeps import estimates
from sojourn.sweeps.axes import Label
from sojourn.sweeps.columns import Standard
from sojourn.sweeps.failures import Failure
from sojourn.sweeps.rows import check_seeds
from sojourn.sweeps.runner import CampaignResult, Row, Run, campaign
from sojourn.sweeps.shards import Shard
from sojourn.sweeps.store import Store

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")

LEAST = 20
"""Smallest number of seeds of a stopping rule, from its coverage (`make coverage`)."""


@dataclass(frozen=True)
class Until:
    """Stopping rule: add seeds at each point until the intervals of `metrics` (columns) are narrow.

    An interval is narrow if half its width is at most `relative` times the value. Each point has
    `least` to `most` seeds: at least `LEAST`, because a spread that fewer seeds underestimate ends
    the sweep early, with intervals that hold too rarely.
    """

    metrics: tuple[str, ...]
    relative: float
    least: int = 20
    most: int = 100


@dataclass(frozen=True)
class Sweep:
    """Validated sweep.

    It has the canonical base scenario, the names of the axes, the labels and the parsed scenario of
    each point, the seeds, the measure, the stopping rule if there is one, and canonical scenarios
    that together have every value of every axis.
    """

    base: Table
    names: Sequence[str]
    points: Sequence[tuple[Mapping[str, Label], ParsedScenario]]
    seeds: Sequence[int]
    measure: Standard
    until: Until | None = None
    examples: Sequence[Table] = ()


def run_rounds(
    spec: Sweep,
    store: Store | None,
    executor: Executor | None,
    jobs: int | None,
    progress: bool,
    shard: Shard | None,
) -> CampaignResult:
    """Run a sweep, or a shard of it, without the runs that `store` already has.

    A shard has whole points if there is a stopping rule.
    """

    def go(runs: Sequence[Run]) -> CampaignResult:
        outcome = campaign(runs, store=store, executor=executor, jobs=jobs, progress=progress)
        check_seeds(spec.names, outcome.rows, warm="warm_from" in spec.base)
        return outcome

    def run_of(k: int, seed: int) -> Run:
        labels, parsed = spec.points[k]
        return Run(labels, parsed.with_seed(seed), spec.measure)

    part_of = (shard or Shard(1, 1)).part
    if spec.until is None:
        per_point = len(spec.seeds)
        places = (divmod(n, per_point) for n in part_of(len(spec.points) * per_point))
        return go([run_of(k, spec.seeds[n]) for k, n in places])
    every = list(part_of(len(spec.points)))
    # In each round, half as many seeds again at the points whose intervals are too wide.
    until, first = spec.until, spec.seeds[0]
    rows: dict[int, list[Row]] = {k: [] for k in every}
    failed: dict[int, list[Failure]] = {k: [] for k in every}
    executed, packets, wall_s, begun_seeds, count, wide = 0, 0, 0.0, 0, until.least, every
    while True:
        begun = [range(first + begun_seeds, first + count) for _ in wide]
        part = go([run_of(k, seed) for k, seeds in zip(wide, begun, strict=True) for seed in seeds])
        executed, packets, wall_s = (
            executed + part.executed,
            packets + part.packets,
            wall_s + part.wall_s,
        )
        part_rows = iter(part.rows)
        place = 0
        for k, seeds in zip(wide, begun, strict=True):
            for n in range(place, place + len(seeds)):
                if n in part.failed:
                    failed[k].append(part.failed[n])
                else:
                    rows[k].append(next(part_rows))
            place += len(seeds)
        wide = [k for k in wide if not narrow(rows[k], until)]
        if not wide or count >= until.most:
            return CampaignResult(
                [row for k in every for row in rows[k]],
                executed,
                packets,
                wall_s,
                part.damaged,
                dict(enumerate(one for k in every for one in failed[k])),
                part.store,
            )
        begun_seeds = count
        count = min(until.most, count + max(1, count // 2))


def narrow(rows: Sequence[Mapping[str, Any]], until: Until) -> bool:
    """Return True if the interval of every metric is narrow enough."""
    if not rows:  # every run failed
        return False
    frame = pl.DataFrame(rows, infer_schema_length=None)
    for name in until.metrics:
        estimate = estimates.of(frame, name)
        if estimate.value is None or estimate.low is None or estimate.high is None:
            return False
        half = max(estimate.value - estimate.low, estimate.high - estimate.value)
        if not half <= until.relative * abs(estimate.value):
            return False
    return True
