"""Disciplines in Python that Numba compiles decide like the same class without it."""

from typing import Any

import numpy as np
import pytest

import sojourn as sj
from examples import my_aqm
from test_custom_aqm import CASES, PAIRS, SMALL, raw, run


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("rust", "python"), PAIRS, ids=lambda one: repr(one))
def test_compiled_codel_and_pie_give_the_bytes_of_rust(name: str, rust: Any, python: Any) -> None:
    """Same packets, statistics and series as Rust; gauges as without Numba."""
    summary, columns = raw(CASES[name], rust)
    ours, of_python = raw(CASES[name], python.replace(compiled=True))
    assert ours == summary
    for key in set(columns) & set(of_python):
        assert columns[key].tobytes() == of_python[key].tobytes(), key
    plain = raw(CASES[name], python)[1]
    assert plain.keys() == of_python.keys()
    assert all(plain[key].tobytes() == of_python[key].tobytes() for key in plain)


class Table(sj.Aqm):
    """Has a table, a constant, an exception, and a method of its own."""

    size: int = 8
    fails_at: int = 1 << 40
    SHARE = 0.25

    def start(self) -> None:
        self.counts = np.zeros(16, np.int64)
        self.last = 0.0
        self.seen = False

    def flow_of(self, packet: Any) -> Any:
        return packet.flow % self.size

    def on_enqueue(self, packet: Any, queue: Any) -> Any:
        flow = self.flow_of(packet)
        self.counts[flow] += 1
        self.seen = True
        self.last = queue.random()
        if self.counts[flow] >= self.fails_at:
            self.counts[100] = 1
        return sj.DROP if self.last < self.SHARE / 10 else sj.PASS


def test_tables_constants_and_methods_are_compiled() -> None:
    """Arrays are copied with the state; flags and numbers are gauges."""
    case = {**SMALL, "sample": "100ms"}
    plain, compiled = raw(case, Table()), raw(case, Table(compiled=True))
    assert plain[0] == compiled[0]
    assert all(plain[1][key].tobytes() == compiled[1][key].tobytes() for key in plain[1])
    assert plain[1]["links/up/gauge/seen"][-1] == 1.0
    assert sj.check(Table(compiled=True))
    for kind in (my_aqm.HeadDrop, my_aqm.MyCoDel, my_aqm.MyPie):
        checks = sj.check(kind(compiled=True))
        assert checks, checks


def test_an_exception_in_native_code_is_raised_with_its_traceback() -> None:
    """The plain method raises it again, from the same state."""
    with pytest.raises(IndexError) as raised:
        run(SMALL, Table(compiled=True, fails_at=100))
    assert raised.traceback[-1].name == "on_enqueue"
    assert "of simulated time" in raised.value.__notes__[0]
    assert run(SMALL, "codel").links["up"].departed_packets > 1000


class FailsByChance(sj.Aqm):
    """Raises an exception that depends on a random number."""

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        first = queue.random()
        if queue.random() < 0.01 and first > 0.9:
            raise RuntimeError("by chance")
        return sj.PASS


@pytest.mark.parametrize("compiled", [False, True])
def test_an_exception_by_chance_is_raised_again(compiled: bool) -> None:
    """The plain method has the random numbers that native code has drawn."""
    with pytest.raises(RuntimeError, match="by chance") as raised:
        run({**SMALL, "duration": "20s"}, FailsByChance(compiled=compiled))
    assert raised.traceback[-1].name == "on_dequeue"


class Sized(sj.Aqm):
    """Has a state of another size for each parameter, and decisions that can be invalid."""

    decides_at_enqueue = True

    size: int = 8
    decision: int = 0

    def start(self) -> None:
        self.table = np.zeros(self.size, np.int64)

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        self.table[8] += 1
        return self.decision


def test_an_exception_has_the_state_of_its_own_queue() -> None:
    """Queues of one class can have states of different sizes."""
    sized = {f"l{size:02}": Sized(compiled=True, size=size) for size in (8, 16)}
    links = {name: {"rate": "10mbit", "qdisc": qdisc} for name, qdisc in sized.items()}
    flow = {"name": "bulk", "path": list(links), "rtt": "20ms"}
    with pytest.raises(IndexError):
        sj.simulate({**SMALL, "links": links, "flows": [flow]})


@pytest.mark.parametrize(
    ("decision", "text"),
    [(sj.DROP, "decides_at_enqueue is True, so only on_enqueue"), (7, "returned 7, allowed: PASS")],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_invalid_decisions_are_the_same_exceptions(
    decision: int, text: str, compiled: bool
) -> None:
    """Compiled and plain classes raise the same exception."""
    with pytest.raises(TypeError, match=text):
        run(SMALL, Sized(compiled=compiled, size=9, decision=decision))


class UsesList(sj.Aqm):
    """Has a list."""

    def start(self) -> None:
        self.seen: list[int] = []


class UsesText(sj.Aqm):
    """Does what Numba cannot."""

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        return sj.DROP if str(packet).startswith("x") else sj.PASS


class UsesColour(sj.Aqm):
    """Reads an attribute that packets do not have."""

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        return packet.colour


class UsesUnknown(sj.Aqm):
    """Reads an attribute that is not in the state."""

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        return self.count  # type: ignore[attr-defined]


class ReturnsNumber(sj.Aqm):
    """Returns a number with a fraction."""

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        return packet.sojourn / 2


class SetsSize(sj.Aqm):
    """Sets what cannot be set."""

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        packet.size = 3
        return sj.PASS


class UsesAddress(sj.Aqm):
    """Reads the address of the generator."""

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        return queue._rng


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (UsesList, "self.seen is of type list, allowed: int, float, bool, numpy array"),
        (UsesText, "without compiled it runs as plain Python"),
        (UsesColour, "packet has no colour"),
        (UsesUnknown, "self.count is not assigned in start"),
        (ReturnsNumber, "on_dequeue returns float64, allowed: PASS"),
        (SetsSize, "packet.size cannot be set"),
        (UsesAddress, "queue._rng is not for use"),
    ],
)
def test_refusals_name_the_line(kind: type[sj.Aqm], text: str) -> None:
    """The message has file and line, and the class still runs without Numba."""
    with pytest.raises(sj.InputError) as raised:
        run(SMALL, kind(compiled=True))
    message = str(raised.value)
    assert message.startswith("links.up.qdisc.compiled: ")
    assert text in message
    assert kind is UsesList or "test_custom_native.py:" in message
    assert kind()  # it is valid without Numba
