"""Delays of time-stamped datagrams do not depend on the wall clock."""

import select
import socket
import sys
import time

import pytest

from sojourn.live import sockets

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="requires time stamps of Linux")


@pytest.mark.parametrize("step_s", [-3600, -1, 1, 3600])
@pytest.mark.parametrize("when", ["sent", "taken"])
def test_setting_the_clock_changes_no_delay(
    step_s: int, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither between sending and arrival, nor between arrival and reading."""
    clock = time.time_ns

    def stepped() -> int:
        return clock() + step_s * 1_000_000_000

    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        sink.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
        sink.bind(("127.0.0.1", 0))
        sender.connect(sink.getsockname())
        start = time.monotonic_ns()
        with monkeypatch.context() as at_sending:
            at_sending.setattr(time, "time_ns", stepped if when == "sent" else clock)
            sockets.send_datagram(sender, 200)
        select.select([sink], [], [], 60)
        if when == "taken":
            monkeypatch.setattr(time, "time_ns", stepped)
        datagram = sockets.take_datagram(sink)
        elapsed = time.monotonic_ns() - start
    assert datagram is not None
    _, size, took_ns = datagram
    assert size == 200 - 28
    assert 0 <= took_ns <= elapsed
