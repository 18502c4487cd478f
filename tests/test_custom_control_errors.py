"""Congestion controls in Python that misuse the API: clear errors."""

import json
from typing import Any, ClassVar

import pytest

import sojourn as sj
from examples import my_control
from test_custom_control import LINK, SMALL, with_tcp

NONSENSE = {
    "nan": (float("nan"), "cwnd is nan, allowed: 1460"),
    "infinite": (float("inf"), "cwnd is inf, allowed"),
    "zero": (0, "cwnd is 0, allowed"),
    "negative": (-1, "cwnd is -1, allowed"),
    "less than a segment": (1459, "cwnd is 1459, allowed"),
    "huge": (2**41, "cwnd is 2199023255552, allowed"),
    "very huge": (10**400, "cwnd is 1000"),
    "a flag": (True, "cwnd is True, must be a number"),
    "text": ("10p", "cwnd is '10p', must be a number"),
    "nothing": (None, "cwnd is None, must be a number"),
}


COMPILES = ("nan", "infinite", "zero", "negative", "less than a segment", "huge", "a flag")
"""Values of types that Numba knows."""


@pytest.mark.parametrize(
    ("kind", "compiled"),
    [*((kind, False) for kind in NONSENSE), *((kind, True) for kind in COMPILES)],
)
def test_nonsense_is_refused_where_it_is_set(kind: str, compiled: bool) -> None:
    """A window that makes no sense raises at once, with the simulated time."""
    value, text = NONSENSE[kind]

    class Nonsense(sj.CongestionControl):
        def on_ack(self, tcp: Any) -> None:
            tcp.cwnd = value

    with pytest.raises((TypeError, ValueError)) as caught:
        sj.simulate(with_tcp(SMALL, Nonsense(compiled=compiled)))
    assert text in str(caught.value)
    (note,) = caught.value.__notes__
    assert "in on_ack of " in note
    assert "s of simulated time" in note
    assert any(entry.name == "on_ack" for entry in caught.traceback)


def negative_rate(tcp: Any) -> None:
    """Set a rate below 0."""
    tcp.pacing_rate = -1


def window_after_loss(tcp: Any) -> None:
    """Set what the sender sets."""
    tcp.cwnd = 10 * tcp.mss


def acked(tcp: Any) -> None:
    """Set what cannot be set."""
    tcp.acked = 1


def typing_error(tcp: Any) -> None:
    """Set an unknown attribute."""
    tcp.cwdn = 1


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (negative_rate, "pacing_rate is -1, allowed: 1 to 1e14 bit/s"),
        (window_after_loss, "cwnd can be set in on_ack, on_delivered, "),
        (acked, "acked"),
        (typing_error, "cwdn"),
        (lambda tcp: 5, "returned 5, must return None"),
        (lambda tcp: 1 // 0, "division"),
    ],
)
def test_misuse_in_on_loss_is_refused(action: Any, text: str) -> None:
    """Other misuse has one clear answer each."""

    class Misuse(sj.CongestionControl):
        def on_ack(self, tcp: Any) -> None:
            tcp.cwnd += tcp.acked

        def on_loss(self, tcp: Any) -> Any:
            return action(tcp)

    with pytest.raises(Exception, match=text) as caught:
        sj.simulate(with_tcp(SMALL, Misuse(pacing=True)))
    assert "in on_loss of " in caught.value.__notes__[0]


class Misuses(sj.CongestionControl):
    """Fails on the first loss, in code that Numba compiles."""

    how: int = 0

    def on_ack(self, tcp: Any) -> None:
        tcp.cwnd += tcp.acked

    def on_loss(self, tcp: Any) -> None:
        if self.how == 0:
            tcp.cwnd = 10 * tcp.mss
        elif self.how == 1:
            tcp.pacing_rate = 1e6
        elif self.how == 2:
            tcp.ssthresh = tcp.flight // (tcp.flight - tcp.flight)
        else:
            tcp.ssthresh = tcp.rtt


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("how", "text"),
    [
        (0, "cwnd can be set in on_ack, on_delivered, "),
        (1, "pacing_rate needs pacing=True"),
        (2, "division|modulo"),
        (3, "ssthresh is None, must be a number"),
    ],
)
def test_misuse_raises_the_same_exception_if_compiled(how: int, text: str, compiled: bool) -> None:
    """The plain method is called with the same values, and raises."""
    with pytest.raises(Exception, match=text) as caught:
        sj.simulate(with_tcp(SMALL, Misuses(how=how, compiled=compiled)))
    assert "in on_loss of " in caught.value.__notes__[0]
    assert any(entry.name == "on_loss" for entry in caught.traceback)


class Lists(sj.CongestionControl):
    """Has state that is not a number."""

    def start(self) -> None:
        self.acked: list[int] = []

    def on_ack(self, tcp: Any) -> None:
        self.acked.append(tcp.acked)


class Unknown(sj.CongestionControl):
    """Reads what a connection does not have."""

    def on_ack(self, tcp: Any) -> None:
        tcp.cwnd += tcp.ackd


class Texts(sj.CongestionControl):
    """Calls what Numba does not know."""

    def on_ack(self, tcp: Any) -> None:
        tcp.cwnd += len(json.dumps({"flight": tcp.flight}))


class Returns(sj.CongestionControl):
    """Returns a number."""

    def on_ack(self, tcp: Any) -> Any:
        return tcp.cwnd


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Lists, "self.acked is of type list, allowed"),
        (Unknown, r"test_custom_control_errors.py:\d+: tcp has no ackd, did you mean .acked.\?"),
        (Texts, r"test_custom_control_errors.py:\d+: .*in on_ack.; without compiled it runs"),
        (Returns, "on_ack returns int64, allowed: None"),
    ],
)
def test_what_numba_cannot_compile_is_refused_with_its_line(kind: Any, text: str) -> None:
    """The plain object is accepted."""
    kind()
    with pytest.raises(sj.InputError, match=text):
        kind(compiled=True)


def test_a_connection_cannot_be_kept() -> None:
    """A connection that was kept can neither be changed outside of a call nor be copied."""
    kept: list[Any] = []

    class Keeps(sj.CongestionControl):
        def on_ack(self, tcp: Any) -> None:
            self.tcp = tcp
            kept[:] = [tcp]

    sim = sj.Simulation(with_tcp(SMALL, Keeps()))
    sim.run_until("1s")
    with pytest.raises(AttributeError, match="can be set in on_ack"):
        kept[0].cwnd = 5000
    with pytest.raises(RuntimeError, match=r"random\(\) works only in"):
        kept[0].random()
    with pytest.raises(TypeError, match="Connection"):
        sim.fork()


class NoAck(sj.CongestionControl):
    """Defines no on_ack."""


class Raises(sj.CongestionControl):
    """Fails before a connection."""

    def start(self) -> None:
        raise ValueError("no state")

    def on_ack(self, tcp: Any) -> None:
        pass


class Packet(sj.CongestionControl):
    """Has a parameter that every TCP has."""

    packet: sj.Bytes = "1500B"

    def on_ack(self, tcp: Any) -> None:
        pass


class Odd(sj.CongestionControl):
    """Names no algorithm of loss recovery."""

    recovery: ClassVar[str] = "magic"

    def on_ack(self, tcp: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: my_control.DelayTarget(targt="5ms"), 'unknown parameter "targt", did you mean'),
        (lambda: my_control.DelayTarget(target="5"), "DelayTarget.target: "),
        (lambda: my_control.MyReno(profile="ns2"), "not available in profile ns2"),
        (lambda: my_control.MyReno(hystart=True), "hystart: not supported"),
        (NoAck, "NoAck has no on_ack"),
        (Raises, "no state"),
        (Packet, "packet: every TCP has a parameter of this name"),
        (Odd, 'recovery: is "magic", allowed: sack, newreno, reno, tahoe'),
    ],
)
def test_invalid_classes_and_parameters_are_refused(make: Any, text: str) -> None:
    """A class that cannot run is refused when the object is made."""
    with pytest.raises(sj.InputError) as caught:
        make()
    assert text in str(caught.value)


def test_pacing_needs_a_pacer_and_a_discipline_is_no_control() -> None:
    """A rate without a pacer, and a class of another kind, are refused."""

    class Paced(sj.CongestionControl):
        def on_ack(self, tcp: Any) -> None:
            tcp.pacing_rate = 1e6

    with pytest.raises(AttributeError, match="pacing_rate needs pacing=True"):
        sj.simulate(with_tcp(SMALL, Paced()))
    with pytest.raises(sj.InputError, match=r'has no CongestionControl "HeadDrop"'):
        sj.simulate(with_tcp(SMALL, "examples/my_aqm.py:HeadDrop"))
    with pytest.raises(sj.InputError, match=r'has no Aqm "DelayTarget"'):
        sj.simulate(
            {**SMALL, "links": {"up": {**LINK, "qdisc": "examples/my_control.py:DelayTarget"}}}
        )
