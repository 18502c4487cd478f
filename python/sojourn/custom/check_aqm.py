"""Property tests of disciplines that are written in Python."""

import copy
import json
import random
from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from sojourn import _sojourn
from sojourn.custom import border
from sojourn.custom import check_state as state
from sojourn.custom.aqm import DROP, DROP_HEAD, MARK, PASS, Aqm

RATE_BPS = 8_000_000
"""Rate of the link in the tests: 1 us per byte."""

LIMIT = 50
"""Buffer size in the tests, packets."""

KINDS = {
    "light": (0.1, False),
    "overload": (1.5, False),
    "flood": (20.0, False),
    "pauses": (0.9, True),
}
"""Kinds of traffic: load of the link, and whether it pauses."""

Fate: TypeAlias = dict[str, Any]
"""Columns of a run: arrivals, and the fate of each packet."""


class Runs:
    """Runs of a discipline with several kinds of traffic, each made when it is first needed."""

    def __init__(self, one: Aqm, packets: int) -> None:
        self.one = one
        self.packets = packets
        self.kinds = [*KINDS, "simulation"]
        self._runs: dict[str, Fate] = {}

    def all(self) -> Iterator[Fate]:
        """Return the runs with all kinds of traffic."""
        return (self.run(kind) for kind in KINDS)

    def run(self, kind: str) -> Fate:
        """Return the run with traffic of a kind, or the simulation with recorded state."""
        if kind not in self._runs:
            known = kind in KINDS
            self._runs[kind] = self.again(kind) if known else self._simulation()
        return self._runs[kind]

    def again(self, kind: str, *, ecn: bool = True) -> Fate:
        """Send traffic through a link; return the arrivals and the fate of each packet."""
        load, pauses = KINDS[kind]
        sent = _traffic(load, self.packets, pauses=pauses)
        table = json.dumps({**self.one._table(), "limit": f"{LIMIT}p", "ecn": ecn})
        arrivals = (sent["t"], sent["flow"], sent["size"], sent["ecn"])
        fate = _sojourn.replay(*arrivals, table, f"{RATE_BPS}bit", None, None, None)
        return {**sent, **fate}

    def _simulation(self) -> Fate:
        """Return the columns of a simulation with TCP that records the state."""
        link = {"rate": f"{RATE_BPS}bit", "delay": "5ms", "qdisc": self.one._table()}
        flow = {"name": "one", "count": 3, "path": ["up"], "rtt": "40ms"}
        case = {"duration": "5s", "sample": "10ms", "links": {"up": link}, "flows": [flow]}
        return _sojourn.ParsedScenario(json.dumps(case)).simulate()[1]


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


def _decides(runs: Runs) -> str:
    list(runs.all())
    return ""


def _conserves(runs: Runs) -> str:
    for fate in runs.all():
        sent, dropped = fate["t_deq_ns"] >= 0, fate["t_drop_ns"] >= 0
        if (sent == dropped).any():
            return f"{int((sent == dropped).sum())} packets are not sent or dropped exactly once"
        early = np.where(sent, fate["t_deq_ns"], fate["t_drop_ns"]) < fate["t"]
        if early.any():
            return f"{int(early.sum())} packets leave before they arrive"
    return ""


def _orders(runs: Runs) -> str:
    for fate in runs.all():
        left = fate["t_deq_ns"]
        if (np.diff(left[left >= 0]) < 0).any():
            return "a packet leaves before an earlier one"
    return ""


def _limits(runs: Runs) -> str:
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


def _marks(runs: Runs) -> str:
    fate = runs.run("overload")
    if (fate["marked"] & (fate["ecn"] == 0)).any():
        return "a packet that is not ECN-capable is marked"
    if runs.again("overload", ecn=False)["marked"].any():
        return "a packet is marked although ecn is False"
    return ""


def _repeats(runs: Runs) -> str:
    return state.differs(list(KINDS), runs.run, runs.again)


def _draws(runs: Runs) -> str:
    driver = _Driver(runs.one)
    driver.send(runs.packets // 4)
    return state.own_generator(driver.aqm, "queue.random()")


def _passes(runs: Runs) -> str:
    sent = (runs.run("light")["t_deq_ns"] >= 0).mean()
    if sent < 0.5:
        return f"{100 * sent:.0f} % of the packets pass a link that is 10 % utilised"
    return ""


def _bounded(runs: Runs) -> str:
    driver = _Driver(runs.one)
    return state.grows(driver.aqm, driver.send, runs.packets, "packets")


def _copies(runs: Runs) -> str:
    packets, driver = runs.packets, _Driver(runs.one)
    driver.send(packets // 2)
    clone = copy.deepcopy(driver)
    again = copy.deepcopy(driver)
    expected = clone.send(packets // 2)
    if driver.send(packets // 2) != expected or again.send(packets // 2) != expected:
        return "a copy continues differently: copies share state, or copy.deepcopy omits some"
    return ""


TESTS: dict[str, Callable[[Runs], str]] = {
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
"""Tests by the property that they examine. If the first fails, all others would."""


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
