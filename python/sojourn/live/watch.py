"""Status display of a live link: below the command's output, on another terminal, or in a file.

On the terminal of the command the status lines are at the bottom, below a scroll region for the
command's output, so that neither overwrites the other. Each update is one write, which saves the
cursor first and restores it last.
"""

import math
import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from sojourn._sojourn import InputError
from sojourn._util import units
from sojourn._util.files import check_file, open_device, open_new
from sojourn._util.inputs import why
from sojourn.live.link import Rows

WINDOW_S = 1.0
"""Window of rates and percentiles, in seconds (see `_sojourn.Pump`)."""

NAME, COLUMNS = 4, (("sent", 10), ("queue", 15), ("delay 50 %", 10), ("99 %", 8))
"""Width of the column of names; headers and widths of the columns of numbers."""
EVENTS = (("drops/s", 7), ("marks/s", 7))
GAP = "  "

ROWS_MIN = 10
"""Smallest number of terminal rows for status lines."""

SAVE, RESTORE = "\x1b7", "\x1b8"
"""Save and restore the cursor (DECSC, DECRC)."""


_WHOLE = f"{SAVE}\x1b[r{RESTORE}"
"""Reset the scroll region to the whole terminal, and keep the cursor, which DECSTBM moves."""


class View(Protocol):
    """A place that shows the latest state of a link."""

    def show(self, latest: "Latest") -> None:
        """Show the state."""

    def close(self) -> None:
        """Restore the terminal, or finish the file."""


class Latest:
    """Rows of the last second, of both directions."""

    def __init__(self) -> None:
        self.time_s = 0.0
        self._rows: dict[str, deque[dict[str, float]]] = {}
        self._step_s = 0.1

    def take(self, rows: Rows) -> bool:
        """Add new rows; return True if there are rows of every direction."""
        for name, columns in rows.items():
            kept = self._rows.setdefault(name, deque())
            lists = {key: values.tolist() for key, values in columns.items()}
            for values in zip(*lists.values(), strict=True):
                kept.append(dict(zip(lists, values, strict=True)))
            if len(kept) > 1:
                self._step_s = kept[-1]["time_s"] - kept[-2]["time_s"]
            while kept and kept[0]["time_s"] <= kept[-1]["time_s"] - WINDOW_S + self._step_s / 2:
                if len(kept) == 1:
                    break
                kept.popleft()
        if not self._rows or not all(self._rows.values()):
            return False
        self.time_s = max(kept[-1]["time_s"] for kept in self._rows.values())
        return True

    def lines(self, width: int) -> list[str]:
        """Return a header and a line per direction, each at most `width` characters."""
        heads = [f"{head:>{size}}" for head, size in (*COLUMNS, *EVENTS)]
        header = GAP.join([f"{'':{NAME}}", *heads])
        return [line[:width] for line in (header, *(self.line(name, width) for name in self._rows))]

    def line(self, name: str, width: int) -> str:
        """Return the line of a direction: numbers, then the variables of the qdisc that fit."""
        kept = self._rows[name]
        last, took_s = kept[-1], len(kept) * self._step_s

        def per_second(key: str) -> float:
            return sum(row[key] for row in kept) / took_s

        numbers = (
            units.rate(8 * per_second("departed_bytes")),
            f"{last['queue_packets']:.0f} p, {last['queue_bytes'] / 1e3:.0f} kB",
            _or_dash(last["sojourn_p50_s"]),
            _or_dash(last["sojourn_p99_s"]),
            f"{per_second('dropped_packets'):.0f}",
            f"{per_second('marked_packets'):.0f}",
        )
        sizes = [size for _, size in (*COLUMNS, *EVENTS)]
        cells = [f"{number:>{size}}" for number, size in zip(numbers, sizes, strict=True)]
        line = GAP.join([f"{name:{NAME}}", *cells])
        for variable in _variables(last):
            if len(line) + len(GAP) + len(variable) > width:
                break
            line += GAP + variable
        return line


def _variables(row: Mapping[str, float]) -> Iterator[str]:
    """Yield the variables of a discipline with their values."""
    for key, value in row.items():
        if key.startswith("gauge/"):
            yield f"{key.removeprefix('gauge/')} {value:.3g}"


def _or_dash(seconds: float) -> str:
    return "-" if math.isnan(seconds) else units.duration(seconds)


class _StatusLines:
    """Status lines in the last rows of the command's terminal.

    After a resize only the part below the cursor is cleared. Terminals move their content in
    different ways, but the status lines are always below the cursor.
    """

    def __init__(self, fd: int, lines: int) -> None:
        self._fd, self._n = fd, lines
        self._size = os.get_terminal_size(fd)
        if self._size.lines < ROWS_MIN or os.environ.get("TERM", "dumb") == "dumb":
            os.close(fd)
            raise InputError(
                f"--watch: requires a terminal with at least {ROWS_MIN} rows and TERM set; "
                "otherwise use --watch-to FILE|TTY"
            )
        self._write(self._reserve())

    def _reserve(self) -> str:
        """Return the sequence that makes room below the cursor and sets the scroll region."""
        return "\n" * self._n + f"\x1b[{self._n}A{SAVE}{self._region()}{RESTORE}"

    def _region(self) -> str:
        return f"\x1b[1;{self._size.lines - self._n}r"

    def show(self, latest: Latest) -> None:
        """Write the lines, and the scroll region, which the command may have changed."""
        parts = []
        size = os.get_terminal_size(self._fd)
        if size != self._size:
            self._size = size
            parts.append(f"{_WHOLE}\x1b[0J{self._reserve()}")
        top = size.lines - self._n + 1
        parts += [SAVE, self._region(), "\x1b[0m"]
        # Leave the last column free: some terminals wrap after it.
        for i, line in enumerate(latest.lines(size.columns - 1)):
            shade = "\x1b[7m" if i == 0 else ""
            parts.append(f"\x1b[{top + i};1H{shade}\x1b[2K{line}\x1b[0m")
        parts.append(RESTORE)
        self._write("".join(parts))

    def close(self) -> None:
        """Clear the lines and reset the scroll region."""
        top = self._size.lines - self._n + 1
        with suppress(OSError):
            if os.get_terminal_size(self._fd) == self._size:
                self._write(f"{SAVE}\x1b[{top};1H\x1b[0m\x1b[0J{RESTORE}{_WHOLE}")
            else:  # the position after a resize is unknown, but it is below the cursor
                self._write(f"{_WHOLE}\x1b[0J")
        os.close(self._fd)

    def _write(self, text: str) -> None:
        _write_all(self._fd, text)


class _Screen:
    """A terminal that shows only the state of the link."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        _write_all(fd, "\x1b[H\x1b[2J")

    def show(self, latest: Latest) -> None:
        """Overwrite the previous state."""
        columns = os.get_terminal_size(self._fd).columns
        shown = [f"sojourn link, {latest.time_s:.0f} s", "", *latest.lines(columns - 1)]
        _write_all(self._fd, "\x1b[H" + "".join(f"{line}\x1b[K\r\n" for line in shown) + "\x1b[J")

    def close(self) -> None:
        """Add a last line; the last state stays visible."""
        _write_all(self._fd, "the link has ended\x1b[K\r\n")
        os.close(self._fd)


class _Lines:
    """A file with a line per direction and second."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._next_s = WINDOW_S
        self._headed = False
        self._unwritten: list[str] = []

    def show(self, latest: Latest) -> None:
        """Write the lines of the last second."""
        header, *lines = latest.lines(sys.maxsize)
        self._unwritten = [] if self._headed else [f"{'time':>8}{GAP}{header}"]
        self._unwritten += [f"{latest.time_s:6.1f} s{GAP}{line}" for line in lines]
        if latest.time_s > self._next_s - 1e-6:
            self._next_s = latest.time_s + WINDOW_S
            self._write()

    def _write(self) -> None:
        _write_all(self._fd, "".join(f"{line}\n" for line in self._unwritten))
        self._headed, self._unwritten = True, []

    def close(self) -> None:
        """Write the last state, if it is not written yet."""
        self._write()
        os.close(self._fd)


def _write_all(fd: int, text: str) -> None:
    """Write `text`, or nothing if the write would block or the reader is gone.

    A slow terminal must not delay the link. After a partial write the rest is written, blocking if
    necessary, since an escape sequence must be complete.
    """
    data = text.encode(errors="backslashreplace")
    with suppress(OSError):
        sent = os.write(fd, data)
        if sent < len(data):
            os.set_blocking(fd, True)
            while sent < len(data):
                sent += os.write(fd, data[sent:])
            os.set_blocking(fd, False)


def check(watch: bool, to: Path | None, *, shell: bool) -> None:
    """Check the options --watch and --watch-to.

    Parameters
    ----------
    watch
        True if --watch is given.
    to
        Value of --watch-to.
    shell
        True if the command is an interactive shell.

    Raises
    ------
    InputError
        If the options contradict each other, or the place cannot show the state.
    """
    if watch and to is not None:
        raise InputError("--watch-to: cannot be combined with --watch: choose one of them")
    if watch and shell:
        raise InputError("--watch: requires a COMMAND; for a shell, use --watch-to FILE|TTY")
    if watch and not sys.stderr.isatty():
        raise InputError(
            "--watch: requires standard error to be a terminal; otherwise use --watch-to FILE|TTY"
        )
    if to is None:
        return
    if to.exists() and stat.S_ISCHR((mode := to.stat()).st_mode):
        own = [os.fstat(fd).st_rdev for fd in (0, 1, 2) if os.isatty(fd)]
        if mode.st_rdev in own or to == Path("/dev/tty"):
            raise InputError(f"--watch-to: {to} is the terminal of the command: use --watch")
    elif not (to.exists() and stat.S_ISFIFO(to.stat().st_mode)):
        check_file(to)


@contextmanager
def watching(to: Path | None) -> Iterator[Callable[[Rows], None]]:
    """Yield the function that shows new rows: in `to`, or on standard error if it is None."""
    view, latest = _view(to), Latest()

    def show(rows: Rows) -> None:
        if latest.take(rows):
            with suppress(OSError):  # the terminal was closed
                view.show(latest)

    try:
        yield show
    finally:
        view.close()


def _view(to: Path | None) -> View:
    """Open the place that shows the state."""
    if to is None:
        return _StatusLines(_terminal(2), lines=3)
    try:
        fd = open_device(to, os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise InputError(f"--watch-to: {to}: {why(error)}") from None
    if fd is None:
        with open_new(to) as file:
            fd = os.dup(file.fileno())
    return _Screen(fd) if os.isatty(fd) else _Lines(fd)


def _terminal(fd: int) -> int:
    """Open the terminal `fd` again, non-blocking."""
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return os.dup(fd)
