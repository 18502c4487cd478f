"""Processes of a test: children, the wait for their end, and a port for a server."""

import socket
import time
from contextlib import suppress
from pathlib import Path


def children(pid: int) -> list[int]:
    """Return the child processes of a process, of all its threads."""
    processes: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread or process has ended
            processes += map(int, path.read_text().split())
    return processes


def is_alive(pid: int) -> bool:
    """Return True if a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pids: list[int]) -> None:
    """Wait until all processes have ended; a test that hangs fails by the limit of a minute."""
    end_s = time.monotonic() + 60
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < end_s, "a worker outlives its parent"
        time.sleep(0.05)


def free_port() -> int:
    """Return a port of this machine that nobody uses."""
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        port: int = any_port.getsockname()[1]
        return port
