"""Execution of the jobs of a campaign, in threads of this process or by an executor."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from queue import SimpleQueue
from typing import Any, TypeAlias

from sojourn._sojourn import ParsedScenario
from sojourn._util.progress import Meter
from sojourn._util.workers import WorkerDiedError
from sojourn.engines.simulate import run_each
from sojourn.result.result import Result
from sojourn.sweeps.failures import Fault, RunError, fault_of
from sojourn.sweeps.work_queue import Job, Measure, Row, WorkQueue

Outcome: TypeAlias = tuple[Row, int] | Fault
"""Columns and packet count of a run, or the reason of its failure."""

Work: TypeAlias = Callable[[Sequence[tuple[ParsedScenario, Measure]]], list[Outcome]]
"""Function that executes a chunk of runs in a worker of an executor."""

Finished: TypeAlias = Callable[[Job, Mapping[str, Any]], None]
Failed: TypeAlias = Callable[[Job, Fault], None]

LARGE = 1000
"""Number of chunks submitted at a time to an executor whose number of workers is unknown."""

CLUSTER_S = 10.0
"""Time between two questions for the number of workers of a cluster, in seconds."""


def work(chunk: Sequence[tuple[ParsedScenario, Measure]]) -> list[Outcome]:
    """Execute runs in the simulator: the work of a worker of an executor."""

    def one(scenario: ParsedScenario, measure: Measure) -> tuple[Row, int]:
        counted = [0]

        def count(_: float, sent: int) -> None:
            counted[0] = sent

        result = Result(*scenario.simulate(count))
        return dict(measure(result)), counted[0]

    return [attempt(one, scenario, measure) for scenario, measure in chunk]


def attempt(
    one: Callable[[ParsedScenario, Measure], tuple[Row, int]],
    scenario: ParsedScenario,
    measure: Measure,
) -> Outcome:
    """Execute a run; an exception becomes the reason of its failure."""
    try:
        return one(scenario, measure)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also SystemExit of a class of the user, and panics of Rust
        return fault_of(error)


def over_threads(
    queue: WorkQueue,
    pending: Sequence[Job],
    finished: Finished,
    failed: Failed,
    meter: Meter,
    jobs: int | None,
) -> int:
    """Execute the jobs of a queue in threads of this process; return the number of packets."""
    place = {job.index: n for n, job in enumerate(pending)}
    return run_each(
        [job.scenario for job in pending],
        lambda n, result: dict(pending[n].measure(result)),
        lambda n, row: finished(pending[n], row),
        meter,
        jobs,
        failed=lambda n, error: failed(pending[n], fault_of(error)),
        order=(place[job.index] for job in queue.jobs()),
    )


class OverExecutor:
    """Execution of the jobs of a queue in chunks by an executor.

    If a worker dies, each run of its chunk is repeated alone, once. A run whose worker dies again
    has failed.
    """

    def __init__(
        self, executor: Executor, work: Work, finished: Finished, failed: Failed, meter: Meter
    ) -> None:
        self._executor, self._work = executor, work
        self._finished, self._failed, self._meter = finished, failed, meter
        self._width = Width(executor)
        self._flying: dict[Future[list[Outcome]], list[Job]] = {}
        self._alone: deque[Job] = deque()
        self._repeated: dict[int, Fault] = {}

    def run(self, queue: WorkQueue, pending: Sequence[Job]) -> int:
        """Execute the jobs of a queue; return the number of packets."""
        place = {job.index: n for n, job in enumerate(pending)}
        over: SimpleQueue[Future[list[Outcome]]] = SimpleQueue()
        total = 0
        try:
            while True:
                self._submit(queue, over)
                if not self._flying:
                    return total
                future = over.get()
                chunk = self._flying.pop(future)
                for job, outcome in zip(chunk, self._outcomes(future, chunk), strict=False):
                    packets = 0
                    if isinstance(outcome, Fault):
                        self._failed(job, outcome)
                    else:
                        row, packets = outcome
                        self._finished(job, row)
                    total += packets
                    self._meter.update(place[job.index], 1.0, packets)
        finally:
            for future in self._flying:
                future.cancel()

    def _submit(self, queue: WorkQueue, over: SimpleQueue[Future[list[Outcome]]]) -> None:
        """Submit chunks until all workers have one, and one is waiting for each."""
        while len(self._flying) < self._width.chunks():
            chunk = [self._alone.popleft()] if self._alone else queue.chunk()
            if not chunk:
                return
            sent = [(job.scenario, job.measure) for job in chunk]
            try:
                future = self._executor.submit(self._work, sent)
            except (BrokenExecutor, RuntimeError) as error:
                raise self._lost(error) from None
            self._flying[future] = chunk
            future.add_done_callback(over.put)

    def _outcomes(self, future: "Future[list[Outcome]]", chunk: list[Job]) -> list[Outcome]:
        """Return the outcomes of a chunk; none if its runs are to be repeated."""
        try:
            return future.result()
        except (BrokenExecutor, CancelledError) as error:
            raise self._lost(error) from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a worker died, or the chunk could not be transferred
            if type(error).__module__.startswith("distributed.comm"):
                raise self._lost(error) from None
            fault = _fault_of_worker(error)
            first = self._repeated.get(chunk[0].index) if len(chunk) == 1 else None
            if first:
                # If a worker dies while Dask reads from it, Dask has another error for it.
                return [first if first.kind == "WorkerDied" else fault]
        self._repeated |= {job.index: fault for job in chunk}
        self._alone.extend(chunk)
        return []

    def _lost(self, error: BaseException) -> RunError:
        """Return the exception about an executor that executes nothing more."""
        kind = type(self._executor)
        if kind.__module__.startswith("distributed"):
            return RunError("the scheduler of the Dask cluster is lost")
        reason = " ".join(str(error).split()) or type(error).__name__
        return RunError(f"the executor {kind.__name__} executes nothing more: {reason}")


def _fault_of_worker(error: BaseException) -> Fault:
    """Return the reason why a worker gave no outcome of a run."""
    kind = type(error).__name__
    if kind == "KilledWorker":  # of Dask, which repeats a task some times
        return Fault("WorkerDied", "the worker process died, also when the run was repeated")
    message = " ".join(str(error).split())
    return Fault("WorkerDied" if isinstance(error, WorkerDiedError) else kind, message)


class Width:
    """Number of chunks that are submitted to an executor at a time: two for each worker.

    Runs of chunks that are not submitted are left to other processes with the same store.
    """

    def __init__(self, executor: Executor) -> None:
        self._workers: int | None = getattr(executor, "_max_workers", None)
        self._client: Any = getattr(executor, "_client", None)
        self._next_s = 0.0

    def chunks(self) -> int:
        """Return the largest number of chunks."""
        if hasattr(self._client, "nthreads") and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + CLUSTER_S
            try:
                self._workers = max(1, sum(self._client.nthreads().values()))
            except (OSError, RuntimeError, AttributeError, CancelledError):
                self._workers = self._workers or None  # the next result tells what is wrong
        return LARGE if self._workers is None else 2 * self._workers
