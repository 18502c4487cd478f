"""What Ctrl-C and requests to end (SIGTERM, SIGHUP) do to a command of ours.

While the command or a link starts, they end the process at once: nothing of a link outlives the
descriptors of its process, so there is nothing to clean up, and an exception in the middle of an
import may be lost or reported as something else.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Literal

OWN_NETWORK = "SOJOURN_OWN_NETWORK"
"""The variable that is set where a link was started anew in a network of its own."""

CODE = 128
"""With the number of a signal added, the exit code of what it ended, as the shell has it."""


def _there(*names: str) -> tuple[signal.Signals, ...]:
    return tuple(signal.Signals[name] for name in names if hasattr(signal, name))


TO_COMMAND = _there("SIGINT", "SIGQUIT")
"""Signals that the terminal sends to the command in the foreground as well."""
TO_END = _there("SIGTERM", "SIGHUP")
"""Requests to end, which only this process gets."""


def end_at_once(number: int, _: FrameType | None) -> None:
    """End the process: a signal handler for the time before it has anything to lose."""
    said = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    os.write(2, f"sojourn: {said}\n".encode())
    os._exit(CODE + number)


class Requests:
    """The signals that a link gets: they end it while it starts, later they are the command's."""

    def __init__(self) -> None:
        self.state: Literal["starting", "opening", "running", "ending"] = "starting"
        """What the link does: it opens what shows it, the command runs, the report is due."""
        self.to_end: list[int] = []
        """Requests to end that came while it opened or the command ran."""

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.state == "starting" or (self.state == "ending" and number in TO_END):
            end_at_once(number, frame)
        elif number in TO_END or self.state == "opening":
            self.to_end.append(number)


@contextmanager
def requests() -> Iterator[Requests]:
    """Handle the signals of a link until the end of the block; those that are ignored stay so."""
    made = Requests()
    wanted = [n for n in (*TO_COMMAND, *TO_END) if signal.getsignal(n) != signal.SIG_IGN]
    before = {n: signal.signal(n, made.handle) for n in wanted}
    try:
        yield made
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def take_terminal() -> None:
    """Put the group of this process into the foreground of its terminal."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
    try:
        os.tcsetpgrp(0, os.getpgrp())
    except OSError:
        pass  # it is gone
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def held_back() -> Iterator[None]:
    """Block the signals of the terminal; processes started here begin with them blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, TO_COMMAND)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
