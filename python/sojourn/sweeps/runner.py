"""Execution of many runs (a campaign): those of a sweep, a paper or an evaluation.

Each run is measured when it completes, and a store keeps the rows of finished runs.

The cache key of a run is a hash of the canonical scenario (with its seed), the engine (version and
hash of its sources) and the measure. Runs that the store already has are not repeated, so an
interrupted campaign can be continued.
"""

import hashlib
import inspect
import json
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from sojourn import _sojourn
from sojourn._sojourn import ParsedScenario
from sojourn._util.progress import Meter, visible
from sojourn._util.units import bps_of, seconds
from sojourn.engines.simulate import run_each
from sojourn.result.result import SCHEMA, Result
from sojourn.scenario.load import Scenario, parse
from sojourn.sweeps.store import Store
from sojourn.sweeps.writer import RowWriter

if TYPE_CHECKING:
    import polars as pl

Labels: TypeAlias = Mapping[str, str | int | float | bool]
Row: TypeAlias = dict[str, Any]
Measure: TypeAlias = Callable[[Result], Mapping[str, Any]]
"""Function of a result that returns the columns of a row: numbers, strings or lists of numbers.

It must be defined at module level, so that other processes can import it. A change of functions
outside sojourn that it calls does not change the cache key.
"""

RUN_COLUMNS = ("key", "engine", "axes", "measured", "seed")
"""Columns of every row besides its labels (listed in `axes`) and measured columns (listed in
`measured`; null if there was no value)."""

Finished: TypeAlias = Callable[[int, Mapping[str, Any]], None]

Work: TypeAlias = Callable[[Sequence[tuple[ParsedScenario, Measure]]], list[tuple[Row, int]]]
"""Function that executes a chunk of runs and returns the columns and packet count of each."""


@dataclass(frozen=True)
class Run:
    """Run of a campaign: its labels in tables and figures, its scenario with seed, its measure."""

    labels: Labels
    scenario: Scenario | Mapping[str, Any] | ParsedScenario
    measure: Measure


@dataclass(frozen=True)
class CampaignResult:
    """Result of a campaign: one row per run, in order, and its cost.

    `executed` runs were executed, the others were in the store. Their links sent `packets` packets
    in `wall_s` seconds of wall-clock time. `damaged` lists parts of the store that are unreadable.
    """

    rows: list[Row]
    executed: int
    packets: int
    wall_s: float
    damaged: tuple[str, ...]


@dataclass(frozen=True)
class _Job:
    """Run to execute: its index, simulated duration and predicted wall-clock time."""

    index: int
    scenario: ParsedScenario
    measure: Measure
    simulated_s: float
    predicted_s: float


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


CHUNK_S = 1.0
"""Target wall-clock time of a chunk of runs for an executor."""

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

    All scenarios are validated before the first run starts. An exception in one run, or Ctrl-C,
    stops all of them; finished runs stay in the store.

    Parameters
    ----------
    runs : sequence of Run
        The runs.
    store : str, Path or Store, optional
        Store of finished runs.
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
    ValueError
        If `engine` is given without an executor.
    """
    if engine is not None and executor is None:
        raise ValueError("an engine other than the simulator requires an executor")
    engine = engine or simulator()
    started = time.monotonic()
    _take_interrupts()
    parsed = [parse(run.scenario) for run in runs]
    texts = [one.canonical() for one in parsed]
    keys = keys_of(texts, runs, engine)
    read = msgspec.json.Decoder(_Outline).decode
    outlines = [read(text) for text in texts]
    opened = store if isinstance(store, Store) or store is None else Store(store)
    known = {} if opened is None else known_runs(opened.rows())
    # Index of the first run with each key: equal runs are executed once.
    first_index = dict(zip(reversed(keys), reversed(range(len(keys))), strict=True))
    pending = [
        _job(i, parsed[i], outlines[i], runs[i].measure, engine)
        for key, i in first_index.items()
        if key not in known
    ]
    rows: list[Row] = []
    executed: dict[int, Row] = {}

    def row(i: int, measured: Mapping[str, Any]) -> Row:
        labels = runs[i].labels
        names = _names(tuple(labels)), _names(tuple(measured))
        of_run = (keys[i], engine.name, *names, outlines[i].seed)
        return {**labels, **dict(zip(RUN_COLUMNS, of_run, strict=True)), **measured}

    writing = opened.writing() if opened is not None and pending else nullcontext()
    with writing, RowWriter(opened) as writer:

        def finished(i: int, found: Mapping[str, Any]) -> None:
            known[keys[i]] = [(dict(runs[i].labels), dict(found))]
            executed[i] = row(i, found)
            writer.append(executed[i])

        # The longest runs first, so that the cores finish at about the same time.
        pending.sort(key=lambda job: (-job.predicted_s, job.index))
        if executor is None:
            packets = _over_threads(pending, finished, jobs, progress)
        else:
            packets = _over_executor(pending, finished, executor, engine, progress)
        for i, key in enumerate(keys):
            if i in executed:
                rows.append(executed[i])
                continue
            labels = dict(runs[i].labels)
            found = next((f for names, f in known[key] if names == labels), None)
            rows.append(row(i, known[key][0][1] if found is None else found))
            if found is None:  # the same run with other labels
                known[key].append((labels, known[key][0][1]))
                writer.append(rows[-1])
    damaged = () if opened is None else tuple(opened.damaged)
    return CampaignResult(rows, len(pending), packets, time.monotonic() - started, damaged)


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


def known_runs(frame: "pl.DataFrame") -> dict[str, list[tuple[Row, Row]]]:
    """Return the labels and measured columns of the rows of a store, by cache key."""
    known: dict[str, list[tuple[Row, Row]]] = {}
    for row in frame.iter_rows(named=True):
        labels = {name: row[name] for name in json.loads(row["axes"])}
        found = {name: row[name] for name in json.loads(row["measured"])}
        known.setdefault(row["key"], []).append((labels, found))
    return known


def work(chunk: Sequence[tuple[ParsedScenario, Measure]]) -> list[tuple[Row, int]]:
    """Execute runs in this process; return the columns and packet count of each."""
    done = []
    for scenario, measure in chunk:
        counted = [0]

        def count(_: float, sent: int, counted: list[int] = counted) -> None:
            counted[0] = sent

        result = Result(*scenario.simulate(count))
        done.append((dict(measure(result)), counted[0]))
    return done


def _job(
    i: int, parsed: ParsedScenario, outline: _Outline, measure: Measure, engine: Engine
) -> _Job:
    duration_s = seconds(outline.duration)
    if engine.realtime:
        return _Job(i, parsed, measure, duration_s, duration_s)
    # Capacity of the slowest link in packets of 1000 bytes, and 2 ms of overhead.
    slowest = min(bps_of(link.rate) for link in outline.links.values())
    return _Job(i, parsed, measure, duration_s, duration_s * slowest / 8000 * PACKET_S + 0.002)


def _over_threads(
    pending: Sequence[_Job], finished: Finished, jobs: int | None, shown: bool
) -> int:
    """Execute runs in threads of this process; return the number of packets."""
    with _meter(pending, shown) as meter:
        return run_each(
            [job.scenario for job in pending],
            lambda n, result: dict(pending[n].measure(result)),
            lambda n, found: finished(pending[n].index, found),
            meter,
            jobs,
        )


def _over_executor(
    pending: Sequence[_Job],
    finished: Finished,
    executor: Executor,
    engine: Engine,
    shown: bool,
) -> int:
    """Execute runs in an executor, in chunks of about `CHUNK_S`; return the number of packets."""
    total = 0
    chunks: list[list[int]] = []
    filled = CHUNK_S
    for n, job in enumerate(pending):
        if filled + job.predicted_s > CHUNK_S:
            chunks.append([])
            filled = 0.0
        chunks[-1].append(n)
        filled += job.predicted_s
    with _meter(pending, shown, "run on real packets" if engine.realtime else "simulated") as meter:
        futures: dict[Future[list[tuple[Row, int]]], list[int]] = {}
        finished_futures: SimpleQueue[Future[list[tuple[Row, int]]]] = SimpleQueue()
        try:
            for chunk in chunks:
                sent = [(pending[n].scenario, pending[n].measure) for n in chunk]
                futures[executor.submit(engine.work, sent)] = chunk
            for future in futures:
                future.add_done_callback(finished_futures.put)
            for _ in futures:
                future = finished_futures.get()
                for n, (found, packets) in zip(futures[future], future.result(), strict=True):
                    finished(pending[n].index, found)
                    meter.update(n, 1.0, packets)
                    total += packets
        finally:
            for future in futures:
                future.cancel()
    return total


def _meter(pending: Sequence[_Job], shown: bool, word: str = "simulated") -> Meter:
    work = [job.predicted_s for job in pending]
    lasting = [job.simulated_s for job in pending]
    return Meter(lasting, shown and visible(), work, word)
