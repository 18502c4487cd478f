"""Many runs: each made once, measured at once, and kept in a store if there is one.

A run is known by a hash of its canonical scenario (with its seed), of what gives the numbers (the
version and the sources it was built from) and of what measures it. One that the store has already
is not made again, so a campaign that was interrupted goes on, and a second one is instant.
"""

import hashlib
import inspect
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

from sojourn import _sojourn
from sojourn._util.progress import Meter
from sojourn._util.units import bps_of, seconds
from sojourn.result.result import SCHEMA, Result
from sojourn.scenario.load import Scenario, to_json
from sojourn.sweeps.store import Store
from sojourn.sweeps.writer import Keeper

if TYPE_CHECKING:
    import polars as pl

Labels: TypeAlias = Mapping[str, str | int | float | bool]
Row: TypeAlias = dict[str, Any]
Measure: TypeAlias = Callable[[Result], Mapping[str, Any]]
"""What is kept of a run: numbers, words, or lists of numbers by name. A function of a module, so
that other processes find it; what it calls outside of sojourn is not seen when it changes."""

OWN = ("key", "engine", "axes", "measured", "seed")
"""The columns that every row has beside its labels (named in `axes`) and what was measured (named
in `measured`: of what was measured and had no value, the column is null)."""

Finished: TypeAlias = Callable[[int, Mapping[str, Any]], None]

Work: TypeAlias = Callable[[Sequence[tuple[str, Measure]]], list[tuple[Row, int]]]
"""Makes a chunk of runs: what is kept of each, and the packets that were sent."""


@dataclass(frozen=True)
class Run:
    """A scenario (with its seed), what it is called in tables and figures, and what is kept of it.

    With `measure`, what it finds is kept.
    """

    labels: Labels
    scenario: Scenario | Mapping[str, Any]
    measure: Measure


@dataclass(frozen=True)
class Made:
    """What a campaign gave: a row for each run, in order, and what it took.

    `made` runs were not in the store; their links sent `packets` packets in `wall_s` seconds.
    """

    rows: list[Row]
    made: int
    packets: int
    wall_s: float
    damaged: tuple[str, ...]


@dataclass(frozen=True)
class _Job:
    """A run that is to be made: its place, its simulated seconds, and what it may take here."""

    place: int
    text: str
    measure: Measure
    simulated_s: float
    predicted_s: float


@dataclass(frozen=True)
class Engine:
    """What makes runs: its name stands in their keys and rows, so rows of two are never mixed.

    `work` makes a chunk of them where an executor calls it. In `realtime`, a run takes as long as
    it says.
    """

    name: str
    work: Work
    realtime: bool = False


CHUNK_S = 1.0
"""How long a chunk of runs should take that goes to an executor as one."""

PACKET_S = 250e-9
"""What a packet takes, with its ack: only to tell long runs from short ones."""


def campaign(
    runs: Sequence[Run],
    *,
    store: str | Path | Store | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
    progress: bool = False,
    engine: Engine | None = None,
) -> Made:
    """Make all `runs` that `store` lacks, and give a row for each, in their order.

    A row has the labels, what is in OWN, and what was measured. Runs go over `jobs` threads
    (default: one per core), or over `executor`, anything with the interface of
    concurrent.futures. All scenarios are checked before the first run starts. Ctrl-C, or an error
    in one run, ends all; what was finished is in the store. Another `engine` than the simulator
    takes an executor.
    """
    assert engine is None or executor is not None
    engine = engine or simulator()
    started = time.monotonic()
    _take_interrupts()
    texts = [_sojourn.canonical(to_json(run.scenario)) for run in runs]
    keys = [key_of(text, run.measure, engine) for text, run in zip(texts, runs, strict=True)]
    kept = store if isinstance(store, Store) or store is None else Store(store)
    known = {} if kept is None else known_runs(kept.rows())
    first = dict(zip(reversed(keys), reversed(range(len(keys))), strict=True))
    asked = [_job(i, texts[i], runs[i], engine) for key, i in first.items() if key not in known]
    rows: list[Row] = []

    def row(i: int, found: Mapping[str, Any]) -> Row:
        labels = dict(runs[i].labels)
        seed = json.loads(texts[i])["seed"]
        own = (keys[i], engine.name, json.dumps([*labels]), json.dumps([*found]), seed)
        return {**labels, **dict(zip(OWN, own, strict=True)), **found}

    writing = kept.writing() if kept is not None and asked else nullcontext()
    with writing, Keeper(kept) as keeper:

        def finished(i: int, found: Mapping[str, Any]) -> None:
            known[keys[i]] = [(dict(runs[i].labels), dict(found))]
            keeper.keep(row(i, found))

        # The longest first, so that no core is left with one at the end.
        asked.sort(key=lambda job: (-job.predicted_s, job.place))
        if executor is None:
            packets = _over_threads(asked, finished, jobs or os.cpu_count() or 1, progress)
        else:
            packets = _over_executor(asked, finished, executor, engine, progress)
        for i, key in enumerate(keys):
            labels = dict(runs[i].labels)
            found = next((f for names, f in known[key] if names == labels), None)
            rows.append(row(i, known[key][0][1] if found is None else found))
            if found is None:  # the same run under another name
                known[key].append((labels, known[key][0][1]))
                keeper.keep(rows[-1])
    damaged = () if kept is None else tuple(kept.damaged)
    return Made(rows, len(asked), packets, time.monotonic() - started, damaged)


def _take_interrupts() -> None:
    """Put Python's own handler of Ctrl-C back.

    Polars puts one of its own in place when it is imported, which takes a Ctrl-C that comes while
    any thread is in polars, and forgets it where that work is short, as the writing of a row is.
    """
    import polars as pl

    assert pl
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is threading.main_thread() and callable(handler):
        signal.signal(signal.SIGINT, handler)


def simulator() -> Engine:
    """Give the engine that all runs have unless another is named."""
    return Engine(_sojourn.engine(), work)


def key_of(text: str, measure: Measure, engine: Engine | None = None) -> str:
    """Give the hash that a run is known by; `text` is the canonical scenario."""
    name = (engine or simulator()).name
    parts = (name, SCHEMA, identity(measure), text)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def identity(measure: Measure) -> str:
    """Tell what measures: the name of the function and its text, or its own `identity`."""
    own = getattr(measure, "identity", None)
    if own is not None:
        return str(own)
    return f"{measure.__module__}.{measure.__qualname__}\n{inspect.getsource(measure)}"


def known_runs(frame: "pl.DataFrame") -> dict[str, list[tuple[Row, Row]]]:
    """Sort the rows of a store by key: for each, labels and what was measured."""
    known: dict[str, list[tuple[Row, Row]]] = {}
    for row in frame.iter_rows(named=True):
        labels = {name: row[name] for name in json.loads(row["axes"])}
        found = {name: row[name] for name in json.loads(row["measured"])}
        known.setdefault(row["key"], []).append((labels, found))
    return known


def work(chunk: Sequence[tuple[str, Measure]]) -> list[tuple[Row, int]]:
    """Make runs, wherever this is called: what is kept of each, and the packets that were sent."""
    done = []
    for text, measure in chunk:
        counted = [0]

        def count(_: float, sent: int, counted: list[int] = counted) -> None:
            counted[0] = sent

        result = Result(*_sojourn.simulate(text, count))
        done.append((dict(measure(result)), counted[0]))
    return done


def _job(i: int, text: str, run: Run, engine: Engine) -> _Job:
    tree = json.loads(text)
    lasts = seconds(tree["duration"])
    if engine.realtime:
        return _Job(i, text, run.measure, lasts, lasts)
    # What can be sent over the slowest link, in packets of 1000 bytes; 2 ms for the rest.
    slowest = min(bps_of(link["rate"]) for link in tree["links"].values())
    return _Job(i, text, run.measure, lasts, lasts * slowest / 8000 * PACKET_S + 0.002)


def _over_threads(asked: Sequence[_Job], finished: Finished, jobs: int, shown: bool) -> int:
    """Make runs over threads of this process; the engine lets them run at once.

    Nothing here holds a lock where a Ctrl-C can come: `concurrent.futures.as_completed` takes those
    of all futures at its start, and an interrupt there leaves threads waiting for them for ever.
    """
    stop, telling = threading.Event(), threading.Lock()
    packets = [0] * len(asked)
    order = iter(range(len(asked)))
    over: SimpleQueue[BaseException | None] = SimpleQueue()
    with _meter(asked, shown) as meter:

        def one(n: int) -> None:
            job = asked[n]

            def go_on(share: float, sent: int) -> bool:
                packets[n] = sent
                meter.tell(n, share, sent)
                return not stop.is_set()

            found = dict(job.measure(Result(*_sojourn.simulate(job.text, go_on))))
            with telling:
                finished(job.place, found)
            meter.tell(n, 1.0, packets[n])

        def worker() -> None:
            try:
                while not stop.is_set():
                    with telling:
                        n = next(order, None)
                    if n is None:
                        break
                    one(n)
                over.put(None)
            except BaseException as error:
                over.put(error)

        threads = [threading.Thread(target=worker) for _ in range(min(jobs, len(asked)))]
        try:
            for thread in threads:
                thread.start()
            for _ in threads:
                if (error := over.get()) is not None:
                    raise error
        finally:
            stop.set()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
    return sum(packets)


def _over_executor(
    asked: Sequence[_Job], finished: Finished, executor: Executor, engine: Engine, shown: bool
) -> int:
    """Make runs wherever `executor` makes them, in chunks that are worth the way there."""
    total = 0
    chunks: list[list[int]] = []
    filled = CHUNK_S
    for n, job in enumerate(asked):
        if filled + job.predicted_s > CHUNK_S:
            chunks.append([])
            filled = 0.0
        chunks[-1].append(n)
        filled += job.predicted_s
    with _meter(asked, shown, "run on real packets" if engine.realtime else "simulated") as meter:
        futures: dict[Future[list[tuple[Row, int]]], list[int]] = {}
        over: SimpleQueue[Future[list[tuple[Row, int]]]] = SimpleQueue()
        try:
            for chunk in chunks:
                sent = [(asked[n].text, asked[n].measure) for n in chunk]
                futures[executor.submit(engine.work, sent)] = chunk
            for future in futures:
                future.add_done_callback(over.put)
            for _ in futures:
                future = over.get()
                for n, (found, packets) in zip(futures[future], future.result(), strict=True):
                    finished(asked[n].place, found)
                    meter.tell(n, 1.0, packets)
                    total += packets
        finally:
            for future in futures:
                future.cancel()
    return total


def _meter(asked: Sequence[_Job], shown: bool, word: str = "simulated") -> Meter:
    work = [job.predicted_s for job in asked]
    lasting = [job.simulated_s for job in asked]
    return Meter(lasting, shown and sys.stderr.isatty(), work, word)
