"""Handling of SIGINT (Ctrl-C), SIGQUIT, SIGTERM and SIGHUP.

During the start of the command or of a link, they end the process at once. Nothing of a link
outlives the descriptors of its process, so no cleanup is needed. An exception in the middle of an
import could be lost or reported as something else.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Literal

OWN_NETWORK = "SOJOURN_OWN_NETWORK"
"""Environment variable, set if a link was restarted in a new network (without root)."""

CODE = 128
"""Base of exit codes: a process ended by signal n has 128 + n, as in the shell."""


def _there(*names: str) -> tuple[signal.Signals, ...]:
    return tuple(signal.Signals[name] for name in names if hasattr(signal, name))


TO_COMMAND = _there("SIGINT", "SIGQUIT")
"""Signals that the terminal sends to all processes in the foreground, the command included."""
TO_END = _there("SIGTERM", "SIGHUP")
"""Signals that only this process receives, and passes on."""


def end_at_once(number: int, _: FrameType | None) -> None:
    """Exit with code 128 + n: the signal handler during the start."""
    reason = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    os.write(2, f"sojourn: {reason}\n".encode())
    os._exit(CODE + number)


class Requests:
    """Signals that a link receives; they end it while it starts, and later go to the command."""

    def __init__(self) -> None:
        self.state: Literal["starting", "opening", "running", "ending"] = "starting"
        """State of the link: starting, opening its outputs, running the command, or reporting."""
        self.to_end: list[int] = []
        """Signals received while it opened its outputs or ran the command, to be passed on."""

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.state == "starting" or (self.state == "ending" and number in TO_END):
            end_at_once(number, frame)
        elif number in TO_END or self.state == "opening":
            self.to_end.append(number)


@contextmanager
def requests() -> Iterator[Requests]:
    """Handle the signals of a link for the duration of the block; ignored signals stay ignored."""
    received = Requests()
    wanted = [n for n in (*TO_COMMAND, *TO_END) if signal.getsignal(n) != signal.SIG_IGN]
    before = {n: signal.signal(n, received.handle) for n in wanted}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def take_terminal() -> None:
    """Make the process group of this process the foreground group of its terminal."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
    try:
        os.tcsetpgrp(0, os.getpgrp())
    except OSError:
        pass  # the terminal is gone
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def held_back() -> Iterator[None]:
    """Block SIGINT and SIGQUIT for the duration of the block; started processes inherit this.

    The kernel may hand a signal to another thread, and Python then calls its handler in the main
    thread, whose mask does not help. So the handlers are held back as well.
    """
    held: list[int] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, TO_COMMAND)
    main = threading.current_thread() is threading.main_thread()
    wanted = [n for n in TO_COMMAND if main and signal.getsignal(n) not in (signal.SIG_IGN, None)]
    handlers = {n: signal.signal(n, lambda number, _: held.append(number)) for n in wanted}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for received in held:
            signal.raise_signal(received)
