"""Property tests for disciplines that are written in Python: `check`."""

import copy
import json
import pickle
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn.custom import border
from sojourn.custom.aqm import DROP, DROP_HEAD, MARK, PASS, Aqm

RATE_BPS = 8_000_000
"""Rate of the link in the tests: 1 us per byte."""

LIMIT = 50
"""Buffer size in the tests, packets."""

GROWTH = 2.0
"""Largest ratio of the sizes of the state after many packets and after a quarter of them."""

FLOOR_BYTES = 4000
"""Size of a state that is never too large."""

KINDS = {
    "light": (0.1, False),
    "overload": (1.5, False),
    "flood": (20.0, False),
    "pauses": (0.9, True),
}
"""Kinds of traffic: load of the link, and whether it pauses."""

Fate: TypeAlias = dict[str, Any]
"""Columns of a run: arrivals, and the fate of each packet."""


@dataclass(frozen=True)
class Check:
    """Result of one test: the property, and why it does not hold (empty if it does)."""

    name: str
    failure: str = ""


@dataclass(frozen=True)
class Checks:
    """Results of the property tests of a class; true if all properties hold."""

    discipline: str
    checks: tuple[Check, ...]

    def __bool__(self) -> bool:
        return not self.failed

    @property
    def failed(self) -> tuple[Check, ...]:
        """Failed tests."""
        return tuple(one for one in self.checks if one.failure)

    def __repr__(self) -> str:
        width = max((len(one.name) for one in self.checks), default=0)
        lines = [
            f"  {one.name:{width}}  {f'FAILS: {one.failure}' if one.failure else 'holds'}"
            for one in self.checks
        ]
        return "\n".join([f"{self.discipline}:", *lines])


def check(discipline: type[Aqm] | Aqm, *, packets: int = 1000) -> Checks:
    """Run the property tests that every discipline of sojourn passes on one written in Python.

    The tests send light, heavy and irregular traffic through a link and examine the fate of every
    packet: conservation, order, buffer limit, marks on ECN-capable packets only, same seed same
    results. They also examine the state: its size, and whether it can be copied.

    Parameters
    ----------
    discipline : type or Aqm
        A subclass of `Aqm`, or an object of one with its parameters.
    packets : int, optional
        Number of packets per test.

    Returns
    -------
    Checks
        One result per property; true if all hold. Its text is a table.

    Raises
    ------
    InputError
        If the class cannot be built with its parameters.

    Examples
    --------
    >>> import sojourn as sj
    >>> class TailDrop(sj.Aqm):
    ...     def on_enqueue(self, packet, queue):
    ...         return sj.DROP if queue.packets > 20 else sj.PASS
    >>> bool(sj.check(TailDrop))
    True
    """
    one = discipline() if isinstance(discipline, type) else discipline
    if not isinstance(one, Aqm):
        raise InputError(f"{type(one).__name__} is not a subclass of sojourn.Aqm")
    tests: dict[str, Callable[[_Runs], str]] = {
        "makes valid decisions": _decides,
        "conserves packets": _conserves,
        "keeps their order": _orders,
        "keeps the buffer limit": _limits,
        "marks only ECN-capable packets": _marks,
        "repeats with the same seed": _repeats,
        "draws from queue.random() only": _draws,
        "lets packets go": _passes,
        "has a bounded state": _bounded,
        "can be copied": _copies,
    }
    runs, found = _Runs(one, packets), []
    for name, test in tests.items():
        try:
            failure = test(runs)
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
        found.append(Check(name, failure))
        if failure and test is _decides:
            break  # all others would fail for this reason
    return Checks(repr(one), tuple(found))


class _Runs:
    """Runs of a discipline with several kinds of traffic, each made when it is first needed."""

    def __init__(self, one: Aqm, packets: int) -> None:
        self.one = one
        self.packets = packets
        self._made: dict[str, Fate] = {}

    def all(self) -> Iterator[Fate]:
        """Return the runs with all kinds of traffic."""
        return (self.run(kind) for kind in KINDS)

    def run(self, kind: str) -> Fate:
        """Return the run with traffic of a kind."""
        if kind not in self._made:
            self._made[kind] = self.again(kind)
        return self._made[kind]

    def again(self, kind: str, *, ecn: bool = True) -> Fate:
        """Send traffic through a link; return the arrivals and the fate of each packet."""
        load, pauses = KINDS[kind]
        sent = _traffic(load, self.packets, pauses=pauses)
        table = json.dumps({**self.one._table(), "limit": f"{LIMIT}p", "ecn": ecn})
        arrivals = (sent["t"], sent["flow"], sent["size"], sent["ecn"])
        fate = _sojourn.replay(*arrivals, table, f"{RATE_BPS}bit", None, None, None)
        return {**sent, **fate}


def _traffic(load: float, packets: int, *, pauses: bool) -> Fate:
    """Return Poisson arrivals at `load` times the rate of the link; with pauses of a minute."""
    rng = np.random.default_rng(7)
    size = rng.integers(40, 1500, packets)
    gaps_ns = rng.exponential(770 * 8e9 / RATE_BPS / load, packets)
    if pauses:
        gaps_ns[rng.random(packets) < 0.01] = 6e10
    return {
        "t": np.cumsum(gaps_ns).astype(np.int64),
        "flow": rng.integers(0, 5, packets).astype(np.uint32),
        "size": size.astype(np.uint32),
        "ecn": rng.integers(0, 4, packets).astype(np.uint8),
    }


def _decides(runs: _Runs) -> str:
    try:
        list(runs.all())
    except Exception as error:
        notes = "; ".join(getattr(error, "__notes__", ()))
        text = f"{type(error).__name__}: {error}"
        return f"{text} ({notes})" if notes else text
    return ""


def _conserves(runs: _Runs) -> str:
    for fate in runs.all():
        sent, dropped = fate["t_deq_ns"] >= 0, fate["t_drop_ns"] >= 0
        if (sent == dropped).any():
            return f"{int((sent == dropped).sum())} packets are not sent or dropped exactly once"
        early = np.where(sent, fate["t_deq_ns"], fate["t_drop_ns"]) < fate["t"]
        if early.any():
            return f"{int(early.sum())} packets leave before they arrive"
    return ""


def _orders(runs: _Runs) -> str:
    for fate in runs.all():
        left = fate["t_deq_ns"]
        if (np.diff(left[left >= 0]) < 0).any():
            return "a packet leaves before an earlier one"
    return ""


def _limits(runs: _Runs) -> str:
    fate = runs.run("flood")
    left = np.where(fate["t_deq_ns"] >= 0, fate["t_deq_ns"], fate["t_drop_ns"])
    kept = left > fate["t"]
    # At equal times packets leave before others arrive.
    changes = [(t, 1) for t in fate["t"][kept]] + [(t, 0) for t in left[kept]]
    held = most = 0
    for _, arrives in sorted(changes):
        held += 1 if arrives else -1
        most = max(most, held)
    return f"the queue has {most} packets of {LIMIT}" if most > LIMIT else ""


def _marks(runs: _Runs) -> str:
    fate = runs.run("overload")
    if (fate["marked"] & (fate["ecn"] == 0)).any():
        return "a packet that is not ECN-capable is marked"
    if runs.again("overload", ecn=False)["marked"].any():
        return "a packet is marked although ecn is False"
    return ""


def _repeats(runs: _Runs) -> str:
    before = random.getstate(), np.random.get_state()
    try:
        for kind in KINDS:
            random.seed(1)
            np.random.seed(1)
            again = runs.again(kind)
            for name, column in runs.run(kind).items():
                if name not in again or column.tobytes() != again[name].tobytes():
                    hint = "it depends on something besides its arguments"
                    return f"{name} differs between two runs: {hint}"
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
    return ""


def _draws(runs: _Runs) -> str:
    packets, driver = runs.packets, _Driver(runs.one)
    driver.send(packets // 4)
    kinds = (random.Random, np.random.Generator, np.random.RandomState)
    for name, value in vars(driver.aqm).items():
        if isinstance(value, kinds):
            return f"self.{name} is a random number generator of its own; use queue.random()"
    return ""


def _passes(runs: _Runs) -> str:
    sent = (runs.run("light")["t_deq_ns"] >= 0).mean()
    if sent < 0.5:
        return f"{100 * sent:.0f} % of the packets pass a link that is 10 % utilised"
    return ""


def _bounded(runs: _Runs) -> str:
    packets, driver = runs.packets, _Driver(runs.one)
    driver.send(packets)
    before = driver.state_bytes()
    driver.send(3 * packets)
    after = driver.state_bytes()
    if after > max(GROWTH * before, FLOOR_BYTES):
        return f"the state grows from {before} bytes to {after} with {4 * packets} packets"
    return ""


def _copies(runs: _Runs) -> str:
    packets, driver = runs.packets, _Driver(runs.one)
    driver.send(packets // 2)
    clone = copy.deepcopy(driver)
    again = copy.deepcopy(driver)
    expected = clone.send(packets // 2)
    if driver.send(packets // 2) != expected or again.send(packets // 2) != expected:
        return "a copy continues differently: copies share state, or copy.deepcopy omits some"
    return ""


class _Driver:
    """FIFO queue in Python that asks an object for decisions, at 1.2 times the rate of its link."""

    def __init__(self, one: Aqm) -> None:
        self.aqm = border.running(one, RATE_BPS)
        self.rng = random.Random(3)
        self.waiting: deque[SimpleNamespace] = deque()
        self.now = 0
        self.free_at = 0

    def send(self, packets: int) -> list[Any]:
        """Send packets; return all decisions."""
        decisions: list[Any] = []
        for _ in range(packets):
            self.now += int(self.rng.expovariate(1.2) * 770_000)
            self._serve(decisions)
            ecn = self.rng.randrange(4)
            size = self.rng.randrange(40, 1500)
            packet = SimpleNamespace(
                size=size, flow=ecn, hash=ecn, class_=0, ecn=ecn, markable=False,
                arrived=self.now, sojourn=0,
            )  # fmt: skip
            decision = self._ask("on_enqueue", self.now, packet)
            decisions.append(decision)
            if decision == DROP_HEAD and self.waiting:
                self.waiting.popleft()
            if decision not in (MARK, DROP) and len(self.waiting) < LIMIT:
                self.waiting.append(packet)
        return decisions

    def state_bytes(self) -> int:
        """Return the size of the pickled state."""
        return len(pickle.dumps(self.aqm._state()))

    def _serve(self, decisions: list[Any]) -> None:
        while self.waiting and self.free_at <= self.now:
            now = max(self.free_at, self.waiting[0].arrived)
            packet = self.waiting[0]
            packet.sojourn = now - packet.arrived
            decision = self._ask("on_dequeue", now, packet)
            decisions.append(decision)
            self.waiting.popleft()
            if decision in (None, PASS):
                self.free_at = now + packet.size * 1000

    def _ask(self, method: str, now: int, packet: SimpleNamespace) -> Any:
        queue = SimpleNamespace(
            now=now,
            packets=len(self.waiting),
            bytes=sum(one.size for one in self.waiting),
            random=self.rng.random,
        )
        update = getattr(self.aqm, "on_update", None)
        if update is not None:
            update(queue)
        ask = getattr(self.aqm, method, None)
        return None if ask is None else ask(packet, queue)
