"""Runs on real packets, several at once, each in its own process.

A run at 10 Mbit/s needs a tenth to a quarter of a core, so a machine can run several at once. Each
row of results has the lateness of packets and applications, and the warnings of its run.
"""

import json
import multiprocessing
import os
from collections.abc import Sequence
from multiprocessing.synchronize import Event
from pathlib import Path

from sojourn import _sojourn
from sojourn._sojourn import ParsedScenario
from sojourn._util.units import seconds
from sojourn._util.workers import Workers
from sojourn.live import netdev
from sojourn.live.emulate import emulate
from sojourn.live.kernel_config import plan
from sojourn.result.result import Result
from sojourn.scenario.draft import canonical, parse
from sojourn.sweeps import runner
from sojourn.sweeps.execution import Outcome, attempt
from sojourn.sweeps.runner import CampaignResult, Engine, Run, keys_of
from sojourn.sweeps.store import Store
from sojourn.sweeps.work_queue import Measure, Row, known_runs

JOBS = 6
"""Default number of runs at once."""

LATENESS = ("lateness_p99_s", "application_p99_s")
"""Columns of lateness: of packets written, and of application events."""

FIDELITY = (*LATENESS, "warnings", "warned")
"""Columns of runs on real packets only: `warnings` is a number, `warned` has their texts."""

_stop: Event | None = None
"""In a worker process: set to stop its run."""


def kernel() -> str:
    """Return the name and release of the kernel whose TCP and UDP run."""
    system = os.uname()
    return f"{system.sysname} {system.release}"


def live() -> Engine:
    """Return the engine for real packets. Its cache key names this build and the kernel."""
    return Engine(f"{_sojourn.engine()} live {os.uname().release}", work, realtime=True)


def check(runs: Sequence[Run]) -> None:
    """Check that this machine can run `runs`.

    Raises
    ------
    InputError
        If the kernel does not support a scenario, or a program is missing.
    NoRightError
        If the process may not create network devices.
    """
    for run in runs:
        plan(canonical(run.scenario))
    netdev.check_tools()
    netdev.check_right()


def expected_s(
    runs: Sequence[Run], *, store: str | Path | None = None, jobs: int | None = None
) -> float:
    """Return the time that `emulate_all` needs for the same arguments, in seconds.

    That is the duration of the runs that the store does not have, divided by the number of runs at
    once; at least the longest one.
    """
    texts = [parse(run.scenario).canonical() for run in runs]
    engine = live()
    keys = keys_of(texts, runs, engine)
    known = {} if store is None else known_runs(Store(store).news(set(keys)))
    lengths = {
        key: seconds(json.loads(text)["duration"])
        for key, text in zip(keys, texts, strict=True)
        if key not in known
    }
    return max(sum(lengths.values()) / (jobs or JOBS), max(lengths.values(), default=0.0))


def emulate_all(
    runs: Sequence[Run],
    *,
    store: str | Path | None = None,
    jobs: int | None = None,
    progress: bool = False,
) -> CampaignResult:
    """Run all `runs` that `store` does not have, on real packets.

    After an error or Ctrl-C, the finished runs are in the store.

    Parameters
    ----------
    runs
        The runs, each a scenario with its metrics.
    store
        Directory of the store; None keeps nothing.
    jobs
        Number of runs at once; `JOBS` by default.
    progress
        True shows a progress bar on a terminal.

    Returns
    -------
    CampaignResult
        A row of results per run.

    Raises
    ------
    InputError, NoRightError
        See `check`.
    """
    check(runs)
    # Threads would share one interpreter; forked processes would inherit locks.
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    most = min(jobs or JOBS, max(1, len(runs)))
    with Workers(most, _begin, (stop,)) as pool:
        try:
            return runner.campaign(
                runs, store=store, executor=pool, progress=progress, engine=live()
            )
        finally:
            stop.set()


def work(chunk: Sequence[tuple[ParsedScenario, Measure]]) -> list[Outcome]:
    """Run scenarios one after the other; return the outcome of each."""

    def one(parsed: ParsedScenario, measure: Measure) -> tuple[Row, int]:
        result = emulate(parsed, progress=_goes_on)
        packets = int(result.summary["live"]["delivered_packets"])
        return {**measure(result), **fidelity(result)}, packets

    return [attempt(one, parsed, measure) for parsed, measure in chunk]


def fidelity(result: Result) -> Row:
    """Return the columns `FIDELITY` of a run."""
    live = result.summary["live"]
    warnings = live["warnings"]
    row: Row = {key: live[key] for key in LATENESS}
    return row | {"warnings": len(warnings), "warned": "; ".join(warnings)}


def _goes_on(_: float) -> bool:
    return _stop is None or not _stop.is_set()


def _begin(stop: Event) -> None:
    """Initialise a worker."""
    global _stop
    _stop = stop
