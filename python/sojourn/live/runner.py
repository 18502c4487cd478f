"""Many runs on real packets: several at once, each in a process of its own, in real time.

A run with 10 Mbit/s takes a tenth to a quarter of a core, so several fit on a machine. Each row
tells how late packets and applications were in its run, and what speaks against its numbers.
"""

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import wait
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from sojourn import _sojourn
from sojourn.live import netdev
from sojourn.live.emulate import emulate
from sojourn.live.kernel_config import plan
from sojourn.live.signals import TO_COMMAND, held_back
from sojourn.result.result import Result
from sojourn.scenario.load import to_json
from sojourn.sweeps import runner
from sojourn.sweeps.runner import Engine, Made, Measure, Row, Run

JOBS = 6
"""How many runs are played at once unless it is said."""

LATENESS = ("lateness_p99_s", "application_p99_s")
"""What is kept of how late a run was: packets written, and what applications did."""

FIDELITY = (*LATENESS, "warnings", "warned")
"""The columns that rows of real packets have more than others: `warnings` counts, `warned` says."""

_stop: Event | None = None
"""In a worker: set when its run is to end."""


def kernel() -> str:
    """Name the kernel whose TCP and UDP are played."""
    told = os.uname()
    return f"{told.sysname} {told.release}"


def live() -> Engine:
    """Give the engine of real packets: ours and the kernel's together make the numbers."""
    return Engine(f"{_sojourn.engine()} live {os.uname().release}", work, realtime=True)


def check(runs: Sequence[Run]) -> None:
    """Raise InputError for what this kernel cannot play, NoRightError where it may not be."""
    for run in runs:
        plan(json.loads(_sojourn.canonical(to_json(run.scenario))))
    netdev.check_tools()
    netdev.check_right()


def emulate_all(
    runs: Sequence[Run],
    *,
    store: str | Path | None = None,
    jobs: int | None = None,
    progress: bool = False,
) -> Made:
    """Play all `runs` that `store` lacks, `jobs` at once, and give a row for each.

    As `campaign.campaign`: what was finished when an error or a Ctrl-C came is in the store.
    """
    check(runs)
    # Threads of this process would share an interpreter, and its forks their locks.
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    most = min(jobs or JOBS, max(1, len(runs)))
    with _Workers(most, context, _begin, (stop,)) as pool:
        try:
            return runner.campaign(
                runs, store=store, executor=pool, progress=progress, engine=live()
            )
        finally:
            stop.set()


class _Workers(ProcessPoolExecutor):
    """Processes that Ctrl-C does not reach before `_begin` has run in them.

    The terminal sends it to them as well. While they import modules it would end them with a
    traceback.
    """

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        """Submit a call; this starts a process if there are too few, which inherits the mask."""
        with held_back():
            return super().submit(*args, **kwargs)


def work(chunk: Sequence[tuple[str, Measure]]) -> list[tuple[Row, int]]:
    """Play runs one after the other: what is kept of each, and how many packets came."""
    done = []
    for text, measure in chunk:
        result = emulate(json.loads(text), progress=_goes_on)
        packets = int(result.summary["live"]["delivered_packets"])
        done.append(({**measure(result), **fidelity(result)}, packets))
    return done


def fidelity(result: Result) -> Row:
    """Tell how far the numbers of a run can be trusted."""
    told = result.summary["live"]
    warnings = told["warnings"]
    row: Row = {key: told[key] for key in LATENESS}
    return row | {"warnings": len(warnings), "warned": "; ".join(warnings)}


def _goes_on(_: float) -> bool:
    return _stop is None or not _stop.is_set()


def _begin(stop: Event) -> None:
    """Make ready a worker: its parent alone ends it, at a Ctrl-C or by ending itself."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, TO_COMMAND)
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    """End this process when its parent has gone; its networks go with it."""
    wait([sentinel])
    os._exit(1)
