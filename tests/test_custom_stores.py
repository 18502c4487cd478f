"""Compiled classes have the results of plain Python, or are refused."""

from typing import Any

import numpy as np
import pytest

import sojourn as sj


class Sums(sj.Aqm):
    """Starts with an int and adds fractions to it."""

    def start(self) -> None:
        self.d = 0

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        self.d += packet.sojourn / 3e9
        return sj.PASS


class Halves(sj.CongestionControl):
    """Assigns a fraction to an int in a method that a hook calls."""

    def start(self) -> None:
        self.share = 0

    def on_ack(self, tcp: Any) -> None:
        self.note()
        tcp.cwnd += tcp.acked

    def note(self) -> None:
        """Store a fraction."""
        self.share = 0.9 * self.share + 0.1  # type: ignore[assignment]


class Unpacks(sj.TrafficSource):
    """Assigns a fraction in an assignment of two values."""

    def start(self) -> None:
        self.gap, self.size = 0, 100

    def next_arrival(self, flow: Any) -> Any:
        self.size, self.gap = 200, 1e6 * flow.random()
        return flow.now + self.gap, self.size


class Changes(sj.Aqm):
    """Changes a parameter to a fraction."""

    target: sj.Duration = "5ms"

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        self.target = 0.5 * self.target
        return sj.PASS


class Counts(sj.Aqm):
    """Assigns a number to a bool."""

    def start(self) -> None:
        self.dropping = False

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        self.dropping = queue.packets
        return sj.PASS


class Loops(sj.Aqm):
    """Uses a field as a loop variable."""

    def start(self) -> None:
        self.i = 0

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        for self.i in range(3):
            pass
        return sj.PASS


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Sums, "Sums.d is an int, and this value is a float: write self.d = 0.0 in start, or int"),
        (Halves, "Halves.share is an int, and this value is a float: write self.share = 0.0 in"),
        (Unpacks, "Unpacks.gap is an int, and this value is a float: write self.gap = 0.0 in"),
        (Changes, "Changes.target is an int, and this value is a float: write int(...) here"),
        (Counts, "Counts.dropping is a bool, and this value is of type int64: write self.dropping"),
        (Loops, "self.i is a loop variable, use a local one"),
    ],
)
def test_a_value_that_its_field_cannot_hold_is_refused(kind: Any, text: str) -> None:
    """The message has class, field and line, and the plain class is accepted."""
    assert not sj.check(kind(), packets=100).checks[0].failure
    try:
        message = sj.check(kind(compiled=True), packets=100).checks[0].failure
    except sj.InputError as error:  # controls and sources are compiled when they are built
        message = str(error)
    assert text in message
    assert "test_custom_stores.py:" in message


class Mixes(sj.Aqm):
    """Assigns values that their fields can hold, in all forms of assignment."""

    def start(self) -> None:
        self.mean = 0.0
        self.calls, self.last = 0, -1
        self.odd = False
        self.sizes = np.zeros(4)

    def on_enqueue(self, packet: Any, queue: Any) -> Any:
        self.mean += (packet.size - self.mean) / 8
        self.calls += 1
        self.last, self.odd = packet.size, self.calls % 2 == 1
        self.sizes[self.calls % 4] = 0.5 * packet.size
        self.last = int(0.5 * self.last)
        busy = self.odd and self.sizes.mean() + self.last > self.mean
        return sj.DROP if busy and queue.packets > 20 else sj.PASS


class Wraps(sj.Aqm):
    """Has a product that needs more than 64 bits."""

    def start(self) -> None:
        self.x = 12345

    def on_enqueue(self, packet: Any, queue: Any) -> Any:
        self.x = self.x * 6364136223846793005 % 1_000_000_007
        return sj.DROP if self.x % 10 == 0 else sj.PASS


def test_a_check_compares_native_code_with_plain_python() -> None:
    """Only compiled objects have this test."""
    assert sj.check(Mixes(compiled=True))
    assert sj.check(Wraps)
    (failed,) = sj.check(Wraps(compiled=True)).failed
    assert failed.name == "runs like plain Python"
    assert "dropped differs from plain Python at index " in failed.failure
