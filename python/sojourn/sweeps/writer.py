"""Background writer: batches rows and appends them to a store.

Writing a part takes some milliseconds of CPU time for any number of rows, as much as a short run.
Parts are therefore written at intervals that are long compared with the writing. A kill loses the
rows of the last interval.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from sojourn.sweeps.store import Store

INTERVAL_S = 0.1, 1.0
"""Minimum and maximum interval between two parts."""

INTERVAL_FACTOR = 20
"""Ratio of the interval to the time that the last part took, within `INTERVAL_S`."""


class RowWriter:
    """Thread that writes rows. Leaving the context waits until all are written.

    It calls `written` with rows that are on disk.
    """

    def __init__(
        self,
        store: Store | None,
        written: Callable[[Sequence[Mapping[str, Any]]], object] = lambda _: None,
    ) -> None:
        self._store = store
        self._written = written
        self._waiting: list[Mapping[str, Any]] = []
        self._change = threading.Condition()
        self._over = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._write, name="sojourn-writer", daemon=True)

    def __enter__(self) -> Self:
        if self._store is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._store is None:
            return
        with self._change:
            self._over = True
            self._change.notify()
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error
        if error is None:
            self._store.tidy()

    def append(self, row: Mapping[str, Any]) -> None:
        """Queue a row for writing. Raises the exception of an earlier write, if any."""
        if self._store is None:
            return
        with self._change:
            if self._error is not None:
                raise self._error
            self._waiting.append(row)
            if len(self._waiting) == 1:  # the writer sleeps only without rows
                self._change.notify()

    def _write(self) -> None:
        assert self._store is not None
        next_s = 0.0
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._over)
                left_s = max(0.0, next_s - time.monotonic())
                self._change.wait_for(lambda: self._over, timeout=left_s)
                rows, self._waiting = self._waiting, []
                if not rows:
                    return
            started_s = time.monotonic()
            try:
                self._store.put(rows)
                self._written(rows)
            except BaseException as error:  # raised again by the next `append`, or on exit
                with self._change:
                    self._error = error
                return
            least_s, most_s = INTERVAL_S
            took_s = time.monotonic() - started_s
            next_s = started_s + min(most_s, max(least_s, INTERVAL_FACTOR * took_s))
