"""A bar on the terminal for runs that last; nothing when piped, nothing for short ones."""

import threading
import time
from types import TracebackType
from typing import Any, Self

PATIENCE_S = 1.0
"""How long a run may take before it shows a bar."""


class Meter:
    """Follows `runs` runs of `simulated_s` seconds each; thread-safe.

    The bar shows simulated time over all runs, and the time that is left.
    """

    def __init__(self, runs: int, simulated_s: float, shown: bool) -> None:
        self._shares = [0.0] * runs
        self._simulated_s = simulated_s
        self._shown = shown
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._shown = False
            if self._bar is not None:
                self._bar.stop()

    def tell(self, run: int, share: float) -> None:
        """Note that `run` has come to `share` of its simulated time."""
        if not self._shown:
            return
        with self._lock:
            self._shares[run] = share
            if time.monotonic() - self._started < PATIENCE_S or not self._shown:
                return
            if self._bar is None:
                self._start()
            self._bar.update(self._task, completed=sum(self._shares) * self._simulated_s)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.completed:.1f} of {task.total:.0f} s simulated"),
            BarColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        total = self._simulated_s * len(self._shares)
        self._task = self._bar.add_task("", total=total)
        self._bar.start()
