"""Execution of a campaign: the runs of a sweep, a paper or an evaluation.

Each run is measured when it completes, and a store keeps the rows of finished runs.

The cache key of a run is a hash of the canonical scenario (with its seed), the engine (version and
hash of its sources) and the measure. Runs that the store already has are not repeated, so an
interrupted campaign can be continued.
"""

import hashlib
import inspect
import json
import re
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Self, TypeAlias

import msgspec

from sojourn import _sojourn
from sojourn._sojourn import ParsedScenario
from sojourn._util.progress import Meter, visible
from sojourn._util.units import bps_of, counted, seconds
from sojourn.result.result import SCHEMA
from sojourn.scenario.draft import parse
from sojourn.scenario.keys import Scenario
from sojourn.sweeps.claims import Claims
from sojourn.sweeps.execution import OverExecutor, Work, over_threads, work
from sojourn.sweeps.failures import COLUMNS as FAILURE_COLUMNS
from sojourn.sweeps.failures import Failure, Fault, RunError, error_of
from sojourn.sweeps.store import Store
from sojourn.sweeps.work_queue import Job, Memory, WorkQueue
from sojourn.sweeps.work_queue import Measure as Measure
from sojourn.sweeps.work_queue import Row as Row
from sojourn.sweeps.writer import RowWriter

Labels: TypeAlias = Mapping[str, str | int | float | bool]

RUN_COLUMNS = ("key", "engine", "axes", "measured", "seed")
"""Columns of every row besides its labels (listed in `axes`) and measured columns (listed in
`measured`; null if there was no value)."""


CODE = "code"
"""Column of runs with classes in Python: the hashes of their sources, separated by spaces."""

HASHES = re.compile(r'"source":"([0-9a-f]{16})"')
"""Hashes of sources of classes in a canonical scenario (`sojourn.custom.identity`)."""


@dataclass(frozen=True)
class Run:
    """Run of a campaign: its labels in tables and figures, its scenario with seed, its measure."""

    labels: Labels
    scenario: Scenario | Mapping[str, Any] | ParsedScenario
    measure: Measure


@dataclass(frozen=True)
class CampaignResult:
    """Result of a campaign: one row per run, in order, without failed runs, and its cost.

    `executed` runs were executed with success; the others were in the store, or another process
    executed them. Links sent `packets` packets in `wall_s` seconds of wall-clock time. `damaged`
    lists parts of the store that are unreadable. `failed` has the failed runs by their index.
    `store` is the directory that keeps the rows.
    """

    rows: list[Row]
    executed: int
    packets: int
    wall_s: float
    damaged: tuple[str, ...]
    failed: Mapping[int, Failure] = field(default_factory=dict)
    store: Path | None = None

    def error(self, partial: Any = None) -> RunError | None:
        """Return the exception about the failed runs, if there are any."""
        if not self.failed:
            return None
        failures = list(self.failed.values())
        return error_of(failures, len(self.rows) + len(failures), self.store, partial)

    def complete(self) -> Self:
        """Return this result. Raises RunError if runs failed."""
        if (error := self.error()) is not None:
            raise error
        return self


class _Link(msgspec.Struct):
    rate: str


class _Outline(msgspec.Struct):
    """Part of a canonical scenario that a campaign needs."""

    seed: int
    duration: str
    links: dict[str, _Link]


@dataclass(frozen=True)
class Engine:
    """Engine that executes runs. Its name is part of cache keys and rows.

    `work` executes a chunk of runs in a worker of an executor. With `realtime`, a run takes its
    duration in wall-clock time.
    """

    name: str
    work: Work
    realtime: bool = False


PACKET_S = 250e-9
"""Approximate time to simulate a packet and its ACK; used only to order and group runs."""


def campaign(
    runs: Sequence[Run],
    *,
    store: str | Path | Store | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: bool = False,
    engine: Engine | None = None,
) -> CampaignResult:
    """Execute all runs that the store does not have.

    All scenarios are validated before the first run starts. A run that fails is recorded, and the
    others go on; the next call repeats it. After Ctrl-C, finished runs are in the store.

    Parameters
    ----------
    runs : sequence of Run
        The runs.
    store : str, Path or Store, optional
        Store of finished runs. Processes that use it at the same time share the runs.
    executor : concurrent.futures.Executor, optional
        Executor for the runs. The default is threads of this process.
    jobs : int, optional
        Number of threads. The default is the number of cores.
    progress : bool, optional
        True shows a progress bar on a terminal and in a notebook.
    engine : Engine, optional
        Engine of the runs. The default is the simulator; any other one requires an executor.

    Returns
    -------
    CampaignResult
        One row per run, in order: the labels, the columns `RUN_COLUMNS`, and the measured columns.

    Raises
    ------
    InputError
        If a scenario is invalid, or the store cannot be read or written.
    RunError
        If the executor is lost.
    ValueError
        If `engine` is given without an executor.
    """
    if engine is not None and executor is None:
        raise ValueError("an engine other than the simulator requires an executor")
    started = time.monotonic()
    _take_interrupts()
    opened = store if isinstance(store, Store) or store is None else Store(store)
    one = _Campaign(runs, engine or simulator(), opened)
    packets = one.execute(executor, jobs, progress)
    return CampaignResult(
        [row for row in one.rows if row is not None],
        one.executed,
        packets,
        time.monotonic() - started,
        () if opened is None else tuple(opened.damaged),
        one.failures,
        None if opened is None else opened.directory,
    )


class _Campaign:
    """Campaign while it runs: its jobs, rows and failures."""

    def __init__(self, runs: Sequence[Run], engine: Engine, store: Store | None) -> None:
        self._runs, self._engine, self._store = runs, engine, store
        parsed = [parse(run.scenario) for run in runs]
        texts = [one.canonical() for one in parsed]
        self._keys = keys_of(texts, runs, engine)
        self._codes = [" ".join(sorted(set(HASHES.findall(text)))) for text in texts]
        read = msgspec.json.Decoder(_Outline).decode
        self._outlines = [read(text) for text in texts]
        self._memory = Memory(store, set(self._keys))
        # Equal runs are executed once.
        first = dict(zip(reversed(self._keys), reversed(range(len(runs))), strict=True))
        self.pending = [
            _job(i, key, parsed[i], self._outlines[i], runs[i].measure, engine)
            for key, i in first.items()
            if key not in self._memory.known
        ]
        self.rows: list[Row | None] = [None] * len(runs)
        self.failures: dict[int, Failure] = {}
        self.executed = 0

    def execute(self, executor: Executor | None, jobs: int | None, progress: bool) -> int:
        """Execute the pending runs; return the number of packets."""
        pending = self.pending
        word = "run on real packets" if self._engine.realtime else "simulated"
        meter = Meter(
            [job.simulated_s for job in pending],
            progress and visible(),
            [job.predicted_s for job in pending],
            word,
        )
        with ExitStack() as stack:
            claims = None
            if self._store is not None and pending:
                stack.enter_context(self._store.writing())
                claims = stack.enter_context(Claims(self._store.directory))

            def written(rows: Sequence[Mapping[str, Any]]) -> None:
                if claims is not None:
                    claims.release(str(row["key"]) for row in rows)

            self._writer = stack.enter_context(RowWriter(self._store, written))
            self._failures = stack.enter_context(RowWriter(self._memory.failures, written))
            stack.enter_context(meter)
            place = {job.index: n for n, job in enumerate(pending)}
            queue = WorkQueue(
                pending, self._memory, claims, lambda job: meter.update(place[job.index], 1.0, 0)
            )
            over = None
            if executor is not None:
                work = self._engine.work
                over = OverExecutor(executor, work, self._finished, self._failed, meter)
            packets = 0
            while True:
                if over is None:
                    packets += over_threads(
                        queue, pending, self._finished, self._failed, meter, jobs
                    )
                else:
                    try:
                        packets += over.run(queue, pending)
                    except RunError as error:
                        raise self._continued(error) from None
                if not queue.wait():
                    break
            self._collect()
        return packets

    def _continued(self, error: RunError) -> RunError:
        """Return an exception about the executor that also names the finished runs."""
        if self._store is None:
            return error
        done = sum(key in self._memory.known for key in self._keys)
        kept = f"{done} of {counted(len(self._keys), 'run')} are in {self._store.directory}"
        return RunError(f"{error.args[0]}; {kept}, the same command continues")

    def _finished(self, job: Job, measured: Mapping[str, Any]) -> None:
        i = job.index
        self._memory.known[job.key] = [(dict(self._runs[i].labels), dict(measured))]
        self.rows[i] = row = self._row(i, measured)
        self.executed += 1
        self._writer.append(row)

    def _failed(self, job: Job, fault: Fault) -> None:
        attempt = 1 + self._memory.failed.get(job.key, (0, fault))[0]
        self._memory.failed[job.key] = attempt, fault
        values = (fault.kind, fault.message, attempt)
        row = self._row(job.index, dict(zip(FAILURE_COLUMNS, values, strict=True)))
        self._failures.append(row)

    def _collect(self) -> None:
        """Complete the rows by rows of the store and of equal runs with other labels."""
        known = self._memory.known
        for i, (key, run) in enumerate(zip(self._keys, self._runs, strict=True)):
            if self.rows[i] is not None:
                continue
            labels = dict(run.labels)
            if key not in known:
                _, fault = self._memory.failed[key]
                self.failures[i] = Failure(labels, self._outlines[i].seed, *fault)
                continue
            measured = next((f for names, f in known[key] if names == labels), None)
            self.rows[i] = row = self._row(i, known[key][0][1] if measured is None else measured)
            if measured is None:  # the same run with other labels
                known[key].append((labels, known[key][0][1]))
                self._writer.append(row)

    def _row(self, i: int, measured: Mapping[str, Any]) -> Row:
        labels = self._runs[i].labels
        names = _names(tuple(labels)), _names(tuple(measured))
        of_run = (self._keys[i], self._engine.name, *names, self._outlines[i].seed)
        code = {CODE: self._codes[i]} if self._codes[i] else {}
        return {**labels, **dict(zip(RUN_COLUMNS, of_run, strict=True)), **code, **measured}


def _take_interrupts() -> None:
    """Restore Python's handler of SIGINT.

    Polars installs its own handler on import. It takes a Ctrl-C that arrives while any thread
    executes polars code, and loses it if that code is short, such as the writing of a row.
    """
    import polars as pl

    assert pl
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is threading.main_thread() and callable(handler):
        signal.signal(signal.SIGINT, handler)


def simulator() -> Engine:
    """Return the simulator, which is the default engine."""
    return Engine(_sojourn.engine(), work)


def key_of(text: str, measure: Measure, engine: Engine | None = None) -> str:
    """Return the cache key of a run; `text` is the canonical scenario."""
    return _key((engine or simulator()).name, identity(measure), text)


def keys_of(texts: Sequence[str], runs: Sequence[Run], engine: Engine | None = None) -> list[str]:
    """Return the cache key of each run; `texts` are the canonical scenarios."""
    measures = {id(run.measure): run.measure for run in runs}
    names = {number: identity(measure) for number, measure in measures.items()}
    engine = engine or simulator()
    keyed = zip(texts, (names[id(run.measure)] for run in runs), strict=True)
    return [_key(engine.name, name, text) for text, name in keyed]


def _key(engine: str, measure: str, text: str) -> str:
    return hashlib.sha256("\n".join((engine, SCHEMA, measure, text)).encode()).hexdigest()


@lru_cache
def _names(columns: tuple[str, ...]) -> str:
    return json.dumps(columns)


def identity(measure: Measure) -> str:
    """Return the identity of a measure: its `identity`, or the name and source of a function."""
    own = getattr(measure, "identity", None)
    if own is not None:
        return str(own)
    return f"{measure.__module__}.{measure.__qualname__}\n{inspect.getsource(measure)}"


def _job(
    i: int,
    key: str,
    parsed: ParsedScenario,
    outline: _Outline,
    measure: Measure,
    engine: Engine,
) -> Job:
    duration_s = seconds(outline.duration)
    if engine.realtime:
        return Job(i, key, parsed, measure, duration_s, duration_s)
    # CapacityResult of the slowest link in packets of 1000 bytes, and 2 ms of overhead.
    slowest = min(bps_of(link.rate) for link in outline.links.values())
    predicted_s = duration_s * slowest / 8000 * PACKET_S + 0.002
    return Job(i, key, parsed, measure, duration_s, predicted_s)
