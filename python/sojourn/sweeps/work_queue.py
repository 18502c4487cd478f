"""Runs that a campaign has to execute, shared with other processes that use the same store."""

import json
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from sojourn._sojourn import ParsedScenario
from sojourn.result.result import Result
from sojourn.sweeps.claims import Claims
from sojourn.sweeps.failures import Fault
from sojourn.sweeps.store import FAILED, Store

if TYPE_CHECKING:
    import polars as pl

Row: TypeAlias = dict[str, Any]

Measure: TypeAlias = Callable[[Result], Mapping[str, Any]]
"""Function of a result that returns the columns of a row: numbers, strings or lists of numbers.

It must be defined at module level, so that other processes can import it. A change of functions
outside sojourn that it calls does not change the cache key.
"""

CHUNK_S = 1.0
"""Target wall-clock time of a chunk of runs."""

LOOK_S = 0.1
"""Time between two looks at the runs of other processes."""


@dataclass(frozen=True)
class Job:
    """Run to execute: its index, key, simulated duration and predicted wall-clock time."""

    index: int
    key: str
    scenario: ParsedScenario
    measure: Measure
    simulated_s: float
    predicted_s: float


class Memory:
    """Results and failures of the runs `keys` in a store; without a store, in this campaign.

    `known` has the labels and measured columns of each run by key, `failed` the attempt and reason
    of the last failure.
    """

    def __init__(self, store: Store | None, keys: Collection[str]) -> None:
        self.store, self._keys = store, keys
        self.failures = None if store is None else Store(store.directory / FAILED)
        self.known: dict[str, list[tuple[Row, Row]]] = {}
        self.failed: dict[str, tuple[int, Fault]] = {}
        self.look()

    def look(self) -> None:
        """Add what others have written since the last call."""
        if self.store is None or self.failures is None:
            return
        for key, rows in known_runs(self.store.news(self._keys)).items():
            self.known.setdefault(key, []).extend(rows)
        for row in self.failures.news(self._keys).iter_rows(named=True):
            attempt, key = row["failure_attempt"], row["key"]
            if attempt > self.failed.get(key, (0, None))[0]:
                self.failed[key] = attempt, Fault(row["failure_kind"], row["failure"])


class WorkQueue:
    """Jobs of a campaign, the longest first, so that the cores finish at about the same time.

    Parameters
    ----------
    jobs : sequence of Job
        The runs without a result in `memory`.
    memory : Memory
        The results.
    claims : Claims, optional
        Claims in the store.
    on_found : callable
        Called with each job whose result or failure another process has written meanwhile.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        memory: Memory,
        claims: Claims | None,
        on_found: Callable[[Job], object],
    ) -> None:
        self._jobs = deque(sorted(jobs, key=lambda job: (-job.predicted_s, job.index)))
        self._memory, self._claims, self._on_found = memory, claims, on_found
        self._elsewhere: list[Job] = []
        self._before = {key: attempt for key, (attempt, _) in memory.failed.items()}

    def chunk(self) -> list[Job]:
        """Claim and return jobs that together take about `CHUNK_S`.

        The list is empty if other processes execute the remaining jobs, or none remains.
        """
        chunk: list[Job] = []
        while self._jobs and not chunk:
            filled_s = 0.0
            while self._jobs and (not chunk or filled_s + self._jobs[0].predicted_s <= CHUNK_S):
                job = self._jobs.popleft()
                if self._claims is not None and not self._claims.take(job.key):
                    self._elsewhere.append(job)
                    continue
                chunk.append(job)
                filled_s += job.predicted_s
            self._memory.look()
            chunk = self._open(chunk)
        return chunk

    def jobs(self) -> Iterator[Job]:
        """Yield the jobs of all chunks."""
        while chunk := self.chunk():
            yield from chunk

    def wait(self) -> bool:
        """Wait for the jobs that other processes execute; return False if all are done.

        Return True if a process ended or was interrupted before it executed its jobs.
        """
        while self._elsewhere:
            self._memory.look()
            self._elsewhere = self._open(self._elsewhere)
            assert self._claims is not None
            if any(self._claims.take(job.key) for job in self._elsewhere):
                self._jobs.extend(self._elsewhere)
                self._elsewhere = []
                return True
            if self._elsewhere:
                time.sleep(LOOK_S)
        return False

    def _open(self, jobs: list[Job]) -> list[Job]:
        """Return the jobs without a result of another process; report and release the others.

        A failure counts as a result if it is newer than this campaign.
        """
        memory, left = self._memory, []
        for job in jobs:
            attempt = memory.failed.get(job.key, (0, None))[0]
            if job.key in memory.known or attempt > self._before.get(job.key, 0):
                self._on_found(job)
                if self._claims is not None:
                    self._claims.release([job.key])
            else:
                left.append(job)
        return left


def known_runs(frame: "pl.DataFrame") -> dict[str, list[tuple[Row, Row]]]:
    """Return the labels and measured columns of the rows of a store, by cache key."""
    known: dict[str, list[tuple[Row, Row]]] = {}
    for row in frame.iter_rows(named=True):
        labels = {name: row[name] for name in json.loads(row["axes"])}
        measured = {name: row[name] for name in json.loads(row["measured"])}
        known.setdefault(row["key"], []).append((labels, measured))
    return known
