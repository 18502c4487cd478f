"""The pool of worker processes: deaths, results that cannot be sent, and the end of the parent."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sojourn._util.workers import PR_SET_PDEATHSIG, WorkerDiedError, Workers
from support.processes import is_alive, wait_until_gone


def double(x: int) -> int:
    """Return twice the argument."""
    return 2 * x


def die(code: int) -> None:
    """End the process: with an exit code, or by a signal if it is negative."""
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code)


class OddError(Exception):
    """An exception that can be pickled but not read back."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


def fail(kind: str) -> Any:
    """Raise, or return something that cannot be pickled."""
    if kind == "lock":
        return threading.Lock()
    raise OddError(1, 2) if kind == "odd" else SystemExit(3) if kind == "exit" else ValueError("no")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (3, "ended with exit code 3"),
        (-signal.SIGSEGV, "killed by SIGSEGV"),
        (-signal.SIGKILL, "killed by SIGKILL, perhaps for lack of memory"),
    ],
)
def test_a_death_fails_one_call_only(code: int, message: str) -> None:
    """The calls before, during and after it have their results."""
    with Workers(2) as pool:
        before = [pool.submit(double, n) for n in range(5)]
        death = pool.submit(die, code)
        after = [pool.submit(double, n) for n in range(5, 10)]
        assert [one.result(60) for one in before + after] == [2 * n for n in range(10)]
        with pytest.raises(WorkerDiedError, match=message):
            death.result(60)


def test_exceptions_reach_the_caller() -> None:
    """Also of results and exceptions that cannot be sent."""
    with Workers(1) as pool:
        with pytest.raises(ValueError, match="no"):
            pool.submit(fail, "plain").result(60)
        with pytest.raises(RuntimeError, match="OddError: 1 and 2"):
            pool.submit(fail, "odd").result(60)
        with pytest.raises(RuntimeError, match="cannot pickle"):
            pool.submit(fail, "lock").result(60)
        with pytest.raises(SystemExit):
            pool.submit(fail, "exit").result(60)
        with pytest.raises(Exception, match="pickle"):
            pool.submit(lambda: 1)
        assert pool.submit(double, 4).result(60) == 8
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(double, 1)


def test_waiting_calls_can_be_cancelled_and_running_ones_killed() -> None:
    """`kill` does not wait for a call of a minute."""
    pool = Workers(1)
    running, waiting = pool.submit(time.sleep, 60), pool.submit(double, 1)
    while not running.running():
        time.sleep(0.01)
    pool.kill()
    assert waiting.cancelled()
    with pytest.raises(WorkerDiedError, match="SIGKILL"):
        running.result(30)


PARENT = """
import os, sys, time
sys.path.insert(0, {tests!r})
from sojourn._util.workers import Workers
import test_workers
if __name__ == "__main__":
    pool = Workers(2, test_workers.{initial})
    busy = pool.submit(test_workers.pause, 600)
    idle = pool.submit(os.getpid)
    print(idle.result(), flush=True)
    time.sleep(600)
"""


def nothing() -> None:
    """Leave the worker as it is."""


def disarm() -> None:
    """Make the kernel not end this process with its parent, as outside Linux."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 0)


def pause(time_s: float) -> None:
    """Print the process and sleep."""
    print(os.getpid(), flush=True)
    time.sleep(time_s)


@pytest.mark.parametrize("initial", ["nothing", "disarm"])
def test_workers_end_when_the_parent_is_killed(tmp_path: Path, initial: str) -> None:
    """A busy one and an idle one, with the help of the kernel and without it."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT.format(tests=str(Path(__file__).parent), initial=initial))
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        assert all(is_alive(pid) for pid in workers)
        parent.kill()
    wait_until_gone(workers)
