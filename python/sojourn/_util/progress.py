"""Progress bar of runs that take longer than a second, in a terminal or a notebook.

It shows the simulated time, packets per second of wall-clock time, and the remaining time.
"""

import sys
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from sojourn._util.units import figures

PATIENCE_S = 1.0
"""Time until the bar appears."""

BAR = 10, 40
"""Smallest and largest width of the bar, in columns of the terminal."""

REST = len(" , left 10:00:00") + 1
"""Columns for the remaining time and the gaps."""

NOTEBOOK_S = 0.2
"""Shortest time between two changes of the bar in a notebook."""


def visible() -> bool:
    """Return True if a progress bar can be shown: on a terminal, or in a Jupyter notebook."""
    return sys.stderr.isatty() or _notebook() is not None


def _notebook() -> Any:
    """Return the module IPython.display if this is the kernel of a notebook, else None.

    A kernel has loaded IPython, so nothing is imported.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return sys.modules.get("IPython.display") if hasattr(shell, "kernel") else None


class NotebookBar:
    """Progress bar as an output of the running cell, which is empty before and after."""

    def __init__(self, display: Any) -> None:
        self._html = display.HTML
        self._output = display.display(display.HTML(""), display_id=True)
        self._next_s = 0.0

    def update(self, share: float, text: str) -> None:
        """Show that a `share` (0 to 1) of the work is done."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + NOTEBOOK_S
        bar = f'<progress value="{share:.3f}" max="1" style="width:16em"></progress>'
        self._output.update(self._html(f"<div>{bar} {text}</div>"))

    def stop(self) -> None:
        """Clear the output."""
        self._output.update(self._html(""))


class Meter:
    """Progress of several runs, shown as one bar. Thread-safe.

    Parameters
    ----------
    simulated_s : sequence of float
        Duration of each run, in simulated seconds.
    shown : bool
        False disables the bar.
    work : sequence of float, optional
        Expected cost of each run in any unit, from which the remaining time is estimated. The
        default is `simulated_s`.
    word : str, optional
        Verb of the bar, like "simulated".
    """

    def __init__(
        self,
        simulated_s: Sequence[float],
        shown: bool,
        work: Sequence[float] | None = None,
        word: str = "simulated",
    ) -> None:
        self._shares = [0.0] * len(simulated_s)
        self._packets = [0] * len(simulated_s)
        self._simulated_s = simulated_s
        self._work = simulated_s if work is None else work
        self._past_s, self._past_work, self._sent, self._done = 0.0, 0.0, 0, 0
        self._shown, self._word = shown, word
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._column: Any = None
        self._cell: NotebookBar | None = None

    def __enter__(self) -> Self:
        display = _notebook() if self._shown else None
        if display is not None:  # here, in the thread of the cell
            self._cell = NotebookBar(display)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._shown = False
            for bar in (self._bar, self._cell):
                if bar is not None:
                    bar.stop()

    def update(self, run: int, share: float, packets: int) -> None:
        """Record that `run` has reached `share` of its duration (0 to 1) with so many packets."""
        if not self._shown:
            return
        with self._lock:
            gone = share - self._shares[run]
            self._past_s += gone * self._simulated_s[run]
            self._past_work += gone * self._work[run]
            self._sent += packets - self._packets[run]
            self._done += share >= 1 > self._shares[run]
            self._shares[run], self._packets[run] = share, packets
            if time.monotonic() - self._started < PATIENCE_S or not self._shown:
                return
            if self._cell is not None:
                self._cell.update(self._past_work / sum(self._work), self.text())
                return
            if self._bar is None:
                self._start()
            text = self.text(self._bar.console.width - BAR[0] - REST)
            free = self._bar.console.width - len(text) - REST
            self._column.bar_width = min(BAR[1], max(BAR[0], free))
            self._bar.update(self._task, completed=self._past_work, text=text)

    def text(self, width: int | None = None) -> str:
        """Return the text of the bar: simulated time, packets per second, finished runs.

        In a narrow terminal the first ones are left out: the text has at most `width` characters
        if its last part fits.
        """
        elapsed = time.monotonic() - self._started
        parts = [f"{self._past_s:.1f} of {sum(self._simulated_s):.0f} s {self._word}"]
        if elapsed > 0 < self._sent:
            parts.append(f"{amount(self._sent / elapsed)} packets/s")
        if len(self._shares) > 1:
            parts.append(f"{self._done} of {len(self._shares)} runs")
        while width is not None and len(parts) > 1 and len(", ".join(parts)) > width:
            del parts[0]
        return ", ".join(parts)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._column = BarColumn()
        self._bar = Progress(
            self._column,
            TextColumn("{task.fields[text]}, left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=sum(self._work), text="")
        self._bar.start()


class Steps(Meter):
    """Progress of steps of about equal length, like the trials of a search.

    Parameters
    ----------
    count : int
        Number of steps.
    noun : str
        What they are, in the plural.
    shown : bool
        False disables the bar.
    """

    def __init__(self, count: int, noun: str, shown: bool) -> None:
        super().__init__([1.0] * count, shown)
        self._noun = noun

    def step(self) -> None:
        """Record that the next step is finished."""
        if self._done < len(self._shares):
            self.update(self._done, 1.0, 0)

    def text(self, width: int | None = None) -> str:
        """Return the text of the bar: the steps that are done."""
        return f"{self._done} of {len(self._shares)} {self._noun}"


def amount(number: float) -> str:
    """Format a large number with an SI prefix: 1.23 M."""
    for scale, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= scale:
            return f"{figures(number / scale)}{letter}"
    return f"{number:.0f}"
