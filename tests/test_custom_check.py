"""Property tests of congestion controls and sources in Python.

`test_custom_aqm.py` has the tests of disciplines.
"""

import math
import random
import threading
from typing import Any, ClassVar

import pytest

import sojourn as sj
from examples import my_control, my_source


class Grows(sj.CongestionControl):
    """Base of controls that grow as Reno does."""

    def on_ack(self, tcp: Any) -> None:
        tcp.cwnd += min(tcp.acked, tcp.mss) if tcp.cwnd < tcp.ssthresh else tcp.mss // 10


class SetsNothing(Grows):
    """Sets a window that is not a number."""

    def on_ack(self, tcp: Any) -> None:
        tcp.cwnd = tcp.cwnd * math.nan


class SetsTooLittle(Grows):
    """Sets a window of less than a segment after a loss."""

    def on_loss(self, tcp: Any) -> None:
        tcp.ssthresh = tcp.mss / 2


class PacesAtInfinity(Grows):
    """Sets an infinite pacing rate."""

    def on_established(self, tcp: Any) -> None:
        tcp.pacing_rate = math.inf


class FailsAfterTimeout(Grows):
    """Raises an exception in a method that is seldom called."""

    def on_timeout(self, tcp: Any) -> None:
        raise RuntimeError("no timeout is expected")


class Returns(Grows):
    """Returns the window in place of setting it."""

    def on_ack(self, tcp: Any) -> Any:
        return tcp.cwnd + tcp.acked


class DrawsElsewhere(Grows):
    """Draws from the random numbers of Python."""

    def on_loss(self, tcp: Any) -> None:
        tcp.ssthresh = max(2 * tcp.mss, tcp.flight * random.random())


class HasGenerator(Grows):
    """Has a random number generator of its own."""

    def start(self) -> None:
        self._rng = random.Random(1)


class SharesState(Grows):
    """Has its state in the class, so that all flows share it."""

    seen: ClassVar[list[int]] = []

    def on_loss(self, tcp: Any) -> None:
        self.seen.append(tcp.now)
        tcp.ssthresh = (2 + len(self.seen) % 5) * tcp.mss


class Remembers(Grows):
    """Keeps every ack."""

    def start(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def on_ack(self, tcp: Any) -> None:
        super().on_ack(tcp)
        self.seen.append((tcp.now, tcp.acked))


class StaysSmall(Grows):
    """Never opens its window."""

    def on_ack(self, tcp: Any) -> None:
        tcp.cwnd = tcp.mss


class IgnoresLosses(Grows):
    """Sends more after a loss."""

    def on_ack(self, tcp: Any) -> None:
        tcp.cwnd += 10 * tcp.acked

    def on_loss(self, tcp: Any) -> None:
        tcp.ssthresh = min(10_000 * tcp.mss, 2 * tcp.cwnd)


class Stalls(Grows):
    """Stops after a while."""

    def start(self) -> None:
        self.acks = 0

    def on_ack(self, tcp: Any) -> None:
        super().on_ack(tcp)
        self.acks += 1
        tcp.pacing_rate = 1.0 if self.acks > 150 else None


class HasLock(Grows):
    """Has state that cannot be copied."""

    def start(self) -> None:
        self._lock = threading.Lock()


class SharesCopies(Grows):
    """Has copies that share its state."""

    def start(self) -> None:
        self.count = 0

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def on_loss(self, tcp: Any) -> None:
        self.count += 1
        tcp.ssthresh = (2 + self.count % 7) * tcp.mss


ACTS = "sets valid windows and rates"
CONTROLS: dict[Any, tuple[str, str]] = {
    SetsNothing: (ACTS, "ValueError: cwnd is nan, allowed: 1460"),
    SetsTooLittle: (ACTS, "ssthresh is 730.0, allowed: 1460 (one segment, mss)"),
    PacesAtInfinity: (ACTS, "pacing_rate is inf, allowed: 1 to 1e14 bit/s, or None (in on_est"),
    FailsAfterTimeout: (ACTS, "RuntimeError: no timeout is expected (in on_timeout of "),
    Returns: (ACTS, "must return None and set attributes"),
    DrawsElsewhere: ("repeats with the same seed", "differs between two runs"),
    HasGenerator: ("draws from tcp.random() only", "self._rng is a random number generator"),
    SharesState: ("repeats with the same seed", "differs between two runs"),
    Remembers: ("has a bounded state", "the state grows from "),
    StaysSmall: ("uses an idle link", "two flows use 3."),
    IgnoresLosses: ("reacts to losses", " % of their packets at a full buffer"),
    Stalls: ("transfers all data on a lossy link", "0 of 3 transfers of 0.584 MB end within"),
    HasLock: ("can be copied", "cannot pickle '_thread.lock' object (in a copy of "),
    SharesCopies: ("can be copied", "copies share state"),
}


@pytest.mark.parametrize("kind", CONTROLS, ids=lambda kind: kind.__name__)
def test_a_misbehaving_control_has_a_clear_answer(kind: Any) -> None:
    """Each kind of misbehaviour fails the test that is meant for it, with a reason."""
    name, text = CONTROLS[kind]
    options = {"pacing": True} if kind in (PacesAtInfinity, Stalls) else {}
    checks = sj.check(kind(**options), packets=400)
    assert not checks
    failures = {one.name: one.failure for one in checks.failed}
    assert text in failures.get(name, ""), checks


@pytest.mark.parametrize(
    "one",
    [
        my_control.MyReno,
        my_control.MyNewReno(compiled=True),
        my_control.DelayTarget(target="5ms"),
        my_control.DelayTarget(compiled=True, pacing=True),
    ],
    ids=repr,
)
def test_examples_of_controls_pass(one: Any) -> None:
    """The examples have all properties, plain and compiled."""
    checks = sj.check(one)
    assert checks, checks
    compiled = "compiled=True" in repr(one)
    assert len(checks.checks) == 8 + compiled
    assert "transfers all data on a lossy link  holds" in repr(checks)


class Sends(sj.TrafficSource):
    """Base of sources that send every 10 ms."""

    def start(self) -> None:
        self.sent = 0

    def next_arrival(self, flow: Any) -> Any:
        self.sent += 1
        return flow.now + 10_000_000, 500


class GoesBack(Sends):
    """Returns a time in the past."""

    def next_arrival(self, flow: Any) -> Any:
        time, size = super().next_arrival(flow)
        return (time if self.sent < 50 else flow.now - 1), size


class IsNowhere(Sends):
    """Returns a time that is not a number."""

    def next_arrival(self, flow: Any) -> Any:
        return flow.now * math.nan, 500


class SendsNothing(Sends):
    """Returns a size of 0."""

    def next_arrival(self, flow: Any) -> Any:
        return flow.now + 1_000_000, 0


class SendsTooMuch(Sends):
    """Returns a size that no datagram has."""

    def next_arrival(self, flow: Any) -> Any:
        return flow.now + 1_000_000, 100_000


class ReturnsTime(Sends):
    """Returns the time alone."""

    def next_arrival(self, flow: Any) -> Any:
        return flow.now + 1_000_000


class Fails(Sends):
    """Raises an exception after a while."""

    def next_arrival(self, flow: Any) -> Any:
        arrival = super().next_arrival(flow)
        if self.sent > 30:
            raise RuntimeError("no more")
        return arrival


class StandsStill(Sends):
    """Sends everything at once."""

    def next_arrival(self, flow: Any) -> Any:
        return flow.now, 500


class Converges(Sends):
    """Sends ever faster, so that its times have a limit."""

    def next_arrival(self, flow: Any) -> Any:
        self.sent += 1
        return flow.now + 1e9 * 0.5**self.sent, 500


class Silent(Sends):
    """Sends nothing."""

    def next_arrival(self, flow: Any) -> Any:
        return None


class DrawsSizes(Sends):
    """Draws from the random numbers of Python."""

    def next_arrival(self, flow: Any) -> Any:
        return flow.now + 1_000_000, random.randint(100, 1000)


class DrawsTimes(Sends):
    """Has a random number generator of its own."""

    def start(self) -> None:
        self._rng = random.Random(1)

    def next_arrival(self, flow: Any) -> Any:
        return flow.now + 1_000_000 * self._rng.random(), 100


class SharesSizes(Sends):
    """Has its state in the class, so that all flows share it."""

    seen: ClassVar[list[int]] = []

    def next_arrival(self, flow: Any) -> Any:
        self.seen.append(1)
        return flow.now + 1_000_000, 100 + len(self.seen) % 1009


class KeepsTimes(Sends):
    """Keeps every time."""

    def start(self) -> None:
        self.times: list[int] = []

    def next_arrival(self, flow: Any) -> Any:
        self.times.append(flow.now)
        return flow.now + 1_000_000, 100


class LocksArrivals(Sends):
    """Has state that cannot be copied."""

    def start(self) -> None:
        super().start()
        self._lock = threading.Lock()


class SharesArrivals(Sends):
    """Has copies that share its state."""

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def next_arrival(self, flow: Any) -> Any:
        self.sent += 1
        return flow.now + 1_000_000, 100 + self.sent


ARRIVES = "makes valid arrivals"
SOURCES: dict[Any, tuple[str, str]] = {
    GoesBack: (ARRIVES, "the time of an arrival is not before the previous arrival"),
    IsNowhere: (ARRIVES, "ValueError: time is nan ns"),
    SendsNothing: (ARRIVES, "ValueError: size is 0, allowed: 1 to 65535 bytes (in next_arrival"),
    SendsTooMuch: (ARRIVES, "ValueError: size is 100000, allowed: 1 to 65535 bytes"),
    ReturnsTime: (ARRIVES, "must return (time, size) in ns and bytes, or None"),
    Fails: (ARRIVES, "RuntimeError: no more (in next_arrival of "),
    StandsStill: (ARRIVES, "100000 arrivals at the same time: time does not advance"),
    Converges: (ARRIVES, "100000 arrivals at the same time: time does not advance"),
    Silent: ("sends data", "the first call of next_arrival returns None"),
    DrawsSizes: ("repeats with the same seed", "differs between two runs"),
    DrawsTimes: ("draws from flow.random() only", "self._rng is a random number generator"),
    SharesSizes: ("repeats with the same seed", "differs between two runs"),
    KeepsTimes: ("has a bounded state", "the state grows from "),
    LocksArrivals: ("can be copied", "cannot pickle '_thread.lock' object (in a copy of "),
    SharesArrivals: ("can be copied", "copies share state"),
}


@pytest.mark.parametrize("kind", SOURCES, ids=lambda kind: kind.__name__)
def test_a_misbehaving_source_has_a_clear_answer(kind: Any) -> None:
    """Each kind of misbehaviour fails the test that is meant for it, with a reason."""
    name, text = SOURCES[kind]
    checks = sj.check(kind, packets=400)
    assert not checks
    failures = {one.name: one.failure for one in checks.failed}
    assert text in failures.get(name, ""), checks


class Ends(Sends):
    """Sends three packets."""

    def next_arrival(self, flow: Any) -> Any:
        return super().next_arrival(flow) if self.sent < 3 else None


class Rare(Sends):
    """Sends an hour apart."""

    def next_arrival(self, flow: Any) -> Any:
        return flow.now + 3_600_000_000_000, 500


@pytest.mark.parametrize(
    "one",
    [
        my_source.MyCbr(start="1s", stop="3s"),
        my_source.MyFlows,
        my_source.MyFlows(compiled=True),
        my_source.Game(compiled=True),
        Ends,
        Rare,
    ],
    ids=repr,
)
def test_examples_of_sources_pass(one: Any) -> None:
    """Sources that end and sources that are rare have all properties, too."""
    checks = sj.check(one)
    assert checks, checks
    compiled = "compiled=True" in repr(one)
    assert len(checks.checks) == 7 + compiled


def test_other_things_are_refused() -> None:
    """The message names the kinds, and least numbers."""
    for wrong in (5, sj.CoDel(), sj.Aqm, object):
        with pytest.raises(sj.InputError, match=r"not a subclass of one of: sojourn\.Aqm, "):
            sj.check(wrong)
    with pytest.raises(sj.InputError, match="packets is 3, allowed: at least 100"):
        sj.check(my_control.MyReno, packets=3)
