"""Property tests of congestion controls that are written in Python."""

import json
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from sojourn import _sojourn
from sojourn.custom import border
from sojourn.custom import check_state as state
from sojourn.custom.control import CongestionControl
from sojourn.custom.telemetry import LinkTelemetry

LINK = {"rate": "10mbit", "delay": "5ms", "qdisc": "droptail(limit=50p)"}

TRANSFERS = 3
"""Number of transfers on the lossy link."""

LEAST_USE = 0.1
"""Least utilisation of an idle link of 10 Mbit/s with a round trip of 40 ms."""

MOST_DROPPED = 0.2
"""Largest share of the packets that may be dropped where only this control sends."""

MSS = 1460

KINDS: dict[str, dict[str, Any]] = {
    "bulk": {"duration": "10s", "links": {"up": LINK}},
    "loss": {"duration": "1000s", "links": {"up": {**LINK, "loss": 0.03}}},
    "timeouts": {
        "duration": "20s",
        "links": {"up": {**LINK, "rate": "1mbit", "qdisc": "droptail(limit=3p)", "loss": 0.05}},
    },
    "marks": {"duration": "10s", "links": {"up": {**LINK, "qdisc": "red(ecn=true)"}}},
}
"""Lines on which the control is examined."""


class Runs:
    """Runs of a control on several lines, each made when it is first needed."""

    def __init__(self, one: CongestionControl, packets: int) -> None:
        self.one = one
        self.packets = packets
        self.kinds = list(KINDS)
        self._runs: dict[str, dict[str, Any]] = {}

    def case(self, kind: str) -> dict[str, Any]:
        """Return a scenario."""
        tcp = self.one._table()
        flow = {"name": "one", "count": 2, "path": ["up"], "rtt": "40ms", "tcp": tcp}
        if kind == "loss":
            size = f"{self.packets * MSS}B"
            flow["count"] = 1
            flow["source"] = {"name": "transfers", "size": size, "number": TRANSFERS}
        if kind == "marks":
            flow["tcp"] = {**tcp, "ecn": True}
        return {**KINDS[kind], "sample": "1s", "packet_log": True, "flows": [flow]}

    def parsed(self, kind: str) -> _sojourn.ParsedScenario:
        """Return a parsed scenario."""
        return _sojourn.ParsedScenario(json.dumps(self.case(kind)))

    def run(self, kind: str) -> dict[str, Any]:
        """Return the columns of the run on a line."""
        if kind not in self._runs:
            self._runs[kind] = self.again(kind)
        return self._runs[kind]

    def again(self, kind: str) -> dict[str, Any]:
        """Run on a line; return the columns, and the summary as a column of bytes."""
        summary, columns = self.parsed(kind).simulate()
        return {state.SUMMARY: np.frombuffer(summary.encode(), np.uint8), **columns}

    def summary(self, kind: str) -> dict[str, Any]:
        """Return the summary of the run on a line."""
        tree: dict[str, Any] = json.loads(self.run(kind)[state.SUMMARY].tobytes())
        return tree


def _acts(runs: Runs) -> str:
    for kind in KINDS:
        runs.run(kind)
    return ""


def _repeats(runs: Runs) -> str:
    return state.differs(list(KINDS), runs.run, runs.again)


def _draws(runs: Runs) -> str:
    driver = _Driver(runs.one)
    driver.ack(runs.packets // 4)
    return state.own_generator(driver.control, "tcp.random()")


def _transfers(runs: Runs) -> str:
    (flow,) = runs.summary("loss")["flows"]
    done = flow["completed"]
    if done < TRANSFERS:
        size = f"{runs.packets * MSS / 1e6:g} MB"
        return f"{done} of {TRANSFERS} transfers of {size} end within 1000 s at 3 % loss"
    return ""


def _uses(runs: Runs) -> str:
    used = runs.summary("bulk")["links"]["up"]["utilisation"]
    if used < LEAST_USE:
        return f"two flows use {100 * used:.1f} % of a link of 10 Mbit/s, round trip 40 ms"
    return ""


def _yields(runs: Runs) -> str:
    dropped = runs.summary("bulk")["links"]["up"]["loss_rate"]
    if dropped > MOST_DROPPED:
        return f"two flows lose {100 * dropped:.0f} % of their packets at a full buffer"
    return ""


def _bounded(runs: Runs) -> str:
    driver = _Driver(runs.one)
    return state.grows(driver.control, driver.ack, runs.packets, "acks")


def _copies(runs: Runs) -> str:
    failures = (state.copies(runs.parsed(kind), 3_000_000_000) for kind in ("bulk", "timeouts"))
    return next((failure for failure in failures if failure), "")


TESTS: dict[str, Callable[[Runs], str]] = {
    "sets valid windows and rates": _acts,
    "repeats with the same seed": _repeats,
    "draws from tcp.random() only": _draws,
    "transfers all data on a lossy link": _transfers,
    "uses an idle link": _uses,
    "reacts to losses": _yields,
    "has a bounded state": _bounded,
    "can be copied": _copies,
}
"""Tests by the property that they examine. If the first fails, all others would."""


class _Driver:
    """Calls the methods of an object as a sender does, with losses and timeouts now and then."""

    def __init__(self, one: CongestionControl) -> None:
        self.control = border.running_part(one)
        rng = random.Random(3)
        self.acks = 0
        self.tcp = SimpleNamespace(
            now=0, cwnd=10 * MSS, ssthresh=1 << 40, mss=MSS, acked=0, flight=10 * MSS,
            rtt=40_000_000, srtt=40_000_000, min_rtt=40_000_000, after_timeout=False,
            window_was_full=True, pacing_rate=None, random=rng.random, packet=MSS + 40, path=1,
            snd_una=1, snd_nxt=1 + 10 * MSS, marked=0, delivered=0, prior_delivered=0,
            delivery_rate=None, interval=0, is_app_limited=False, app_limited=False,
            idle_restart=False, in_fast_recovery=False, lost=0, newly_lost=0,
        )  # fmt: skip
        self._call("on_established")

    def ack(self, number: int) -> None:
        """Acknowledge this many segments."""
        tcp = self.tcp
        for _ in range(number):
            self.acks += 1
            tcp.now += 5_000_000
            tcp.rtt = 40_000_000 + 1_000_000 * (self.acks % 20)
            tcp.acked, tcp.flight = MSS, max(MSS, min(tcp.cwnd, 60 * MSS))
            tcp.snd_una += MSS
            tcp.snd_nxt = tcp.snd_una + tcp.flight
            tcp.marked = MSS if self.acks % 7 == 0 else 0
            self._call("on_ecn_feedback")
            self._call("on_telemetry", self._links())
            self._call("on_ack")
            self._call("on_delivered")
            self._rate_sample()
            self._call("on_rate_sample")
            if self.acks % 50 == 0:
                self._reduce("on_timeout" if self.acks % 400 == 0 else "on_loss")

    def _rate_sample(self) -> None:
        """Set the delivery rate sample of an ack; every 30th is application-limited."""
        tcp = self.tcp
        tcp.delivered += MSS
        tcp.interval = tcp.rtt
        tcp.prior_delivered = max(0, tcp.delivered - tcp.flight)
        tcp.delivery_rate = 8e9 * (tcp.delivered - tcp.prior_delivered) / tcp.interval
        tcp.is_app_limited = tcp.app_limited = tcp.idle_restart = self.acks % 30 == 0
        tcp.in_fast_recovery = self.acks % 50 < 10

    def _reduce(self, method: str) -> None:
        tcp = self.tcp
        tcp.acked, tcp.ssthresh = 0, max(tcp.flight // 2, 2 * MSS)
        self._call(method if hasattr(self.control, method) else "on_loss")
        tcp.cwnd = MSS if method == "on_timeout" else tcp.ssthresh
        self._call("on_recovered")

    def _links(self) -> tuple[LinkTelemetry, ...]:
        """Return the telemetry of two links, of which the second one has a queue."""
        size, rate = self.tcp.packet, 10_000_000
        at, sent = self.tcp.now - 30_000_000, self.acks * size
        queue = size * (self.acks % 20)
        return (
            LinkTelemetry(at, sent, 0, size, 10 * rate),
            LinkTelemetry(at + 5_000_000, sent, queue, size, rate),
        )

    def _call(self, method: str, *arguments: Any) -> None:
        call = getattr(self.control, method, None)
        if call is not None:
            call(self.tcp, *arguments)
        self.tcp.cwnd, self.tcp.ssthresh = int(self.tcp.cwnd), int(self.tcp.ssthresh)
