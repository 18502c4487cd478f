"""Property tests of traffic sources that are written in Python."""

import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from sojourn import _sojourn
from sojourn.custom import border
from sojourn.custom import check_state as state
from sojourn.custom.source import TrafficSource

PACKETS = 20_000
"""Number of full packets that the link can send in a run."""

SHORTEST_NS, LONGEST_NS = 1_000_000, 86_400_000_000_000
"""Shortest and longest run."""

RATES_BPS = (8_000, 10_000_000_000)
"""Lowest and highest rate of the link."""


class Runs:
    """Runs of a source over UDP and TCP, each made when it is first needed."""

    def __init__(self, one: TrafficSource, packets: int) -> None:
        self.one = one
        self.packets = packets
        self._runs: dict[str, dict[str, Any]] = {}
        self._duration_ns = 0
        self.kinds = ["connections"] if one.connections else ["datagrams", "writes"]

    @property
    def duration_ns(self) -> int:
        """Time in which the source makes about `packets` arrivals."""
        if self._duration_ns == 0:
            driver = _Driver(self.one)
            with suppress(Exception):  # the engine says better what is wrong
                driver.ask(self.packets)
            self._duration_ns = min(max(2 * driver.now, SHORTEST_NS), LONGEST_NS)
        return self._duration_ns

    def parsed(self, kind: str) -> _sojourn.ParsedScenario:
        """Return a parsed scenario: two flows of the source on a link."""
        table = self.one._table()
        source = {key: value for key, value in table.items() if key not in ("start", "stop")}
        flow = {"name": "one", "count": 2, "path": ["up"], "rtt": "20ms", "source": source}
        if kind == "writes":
            flow["tcp"] = "newreno"
        rate = int(np.clip(PACKETS * 12_000 / (self.duration_ns / 1e9), *RATES_BPS))
        case = {
            "duration": f"{self.duration_ns}ns",
            "packet_log": True,
            "links": {"up": {"rate": f"{rate}bit", "delay": "1ms"}},
            "flows": [flow],
        }
        return _sojourn.ParsedScenario(json.dumps(case))

    def run(self, kind: str) -> dict[str, Any]:
        """Return the columns of the run of a kind."""
        if kind not in self._runs:
            self._runs[kind] = self.again(kind)
        return self._runs[kind]

    def again(self, kind: str) -> dict[str, Any]:
        """Run; return the columns, and the summary as a column of bytes."""
        summary, columns = self.parsed(kind).simulate()
        return {state.SUMMARY: np.frombuffer(summary.encode(), np.uint8), **columns}


def _arrives(runs: Runs) -> str:
    for kind in runs.kinds:
        runs.run(kind)
    return ""


def _repeats(runs: Runs) -> str:
    return state.differs(runs.kinds, runs.run, runs.again)


def _draws(runs: Runs) -> str:
    driver = _Driver(runs.one)
    driver.ask(runs.packets // 4)
    return state.own_generator(driver.source, "flow.random()")


def _sends(runs: Runs) -> str:
    driver = _Driver(runs.one)
    driver.ask(1)
    return "" if driver.arrivals else "the first call of next_arrival returns None"


def _advances(runs: Runs) -> str:
    driver = _Driver(runs.one)
    driver.ask(2 * runs.packets)
    before = driver.now
    driver.ask(2 * runs.packets)
    if driver.now > before or driver.ended:
        return ""
    return f"{2 * runs.packets} arrivals have the same time, {driver.now} ns"


def _bounded(runs: Runs) -> str:
    driver = _Driver(runs.one)
    return state.grows(driver.source, driver.ask, runs.packets, "arrivals")


def _copies(runs: Runs) -> str:
    failures = (state.copies(runs.parsed(kind), runs.duration_ns // 2) for kind in runs.kinds)
    return next((failure for failure in failures if failure), "")


TESTS: dict[str, Callable[[Runs], str]] = {
    "makes valid arrivals": _arrives,
    "sends data": _sends,
    "advances in time, or ends": _advances,
    "repeats with the same seed": _repeats,
    "draws from flow.random() only": _draws,
    "has a bounded state": _bounded,
    "can be copied": _copies,
}
"""Tests by the property that they examine. If the first fails, all others would."""


class _Flow:
    """Flow as a source sees it."""

    def __init__(self) -> None:
        self.now = 0
        self.random = random.Random(3).random


class _Driver:
    """Asks an object for one arrival after the other."""

    def __init__(self, one: TrafficSource) -> None:
        self.source: Any = border.running_part(one)
        self.flow = _Flow()
        self.arrivals = 0
        self.ended = False

    @property
    def now(self) -> int:
        """Time of the last arrival, ns."""
        return self.flow.now

    def ask(self, number: int) -> None:
        """Ask for up to this many arrivals."""
        for _ in range(number):
            arrival = None if self.ended else self.source.next_arrival(self.flow)
            if arrival is None:
                self.ended = True
                return
            self.flow.now = int(arrival[0])
            self.arrivals += 1
