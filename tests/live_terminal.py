"""Pseudo-terminal for tests: runs a command and records its output."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress


class Terminal:
    """Master side of a pseudo-terminal, and the command that runs in it."""

    def __init__(self, line: Sequence[str], environment: Mapping[str, str], columns: int) -> None:
        self._fd, theirs = pty.openpty()
        self.written = b""
        self.resize(columns, 24)

        def own() -> None:
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            line, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, preexec_fn=own
        )
        os.close(theirs)

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of the terminal."""
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        """Send keys to the command."""
        os.write(self._fd, keys.encode())

    def read(self, until: Callable[[bytes], bool]) -> None:
        """Read output until `until` is true of it, the command ends, or a minute has passed."""
        deadline = time.monotonic() + 60
        while not until(self.written) and time.monotonic() < deadline:
            if select.select([self._fd], [], [], 0.1)[0]:
                try:
                    self.written += os.read(self._fd, 65_536)
                except OSError:  # no process has the terminal open any more
                    return

    def until(self, text: str) -> None:
        """Read until the output contains `text`."""
        self.read(lambda written: text.encode() in written)
        assert text.encode() in self.written, self.written.decode(errors="replace")

    def end(self) -> int:
        """Read to the end of the output; return the exit code."""
        self.read(lambda _: False)
        return self.process.wait(60)

    def close(self) -> None:
        """Kill the command if it still runs."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self._fd)


@contextmanager
def terminal(
    line: Sequence[str], environment: Mapping[str, str], columns: int = 80
) -> Iterator[Terminal]:
    """Run a command in a new pseudo-terminal."""
    opened = Terminal(line, environment, columns)
    try:
        yield opened
    finally:
        opened.close()
