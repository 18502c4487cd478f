"""Controls in Python that read the fraction of marks.

DCTCP in Python, plain and compiled, sends the same packets as the built-in one.
"""

from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from examples.my_dctcp import Dctcp
from sojourn.scenario.draft import parse
from test_custom_control import raw, with_tcp, without_gauges

TIMERS = {"rto_min": "5ms", "tick": "10us", "delayed_ack_timeout": "500us"}


def bulk(qdisc: str, loss: float = 0.0, count: int = 4) -> dict[str, Any]:
    """Return flows that share a link of a data centre."""
    link = {"rate": "1gbit", "delay": "10us", "qdisc": qdisc, "loss": loss}
    source = {"name": "bulk", "start": "uniform(0s, 1ms)"}
    flow = {"name": "f", "count": count, "path": ["up"], "rtt": "100us", "source": source}
    keys = {"duration": "200ms", "warmup": "20ms", "sample": "10ms", "packet_log": True}
    return {**keys, "links": {"up": link}, "flows": [flow]}


def transfers() -> dict[str, Any]:
    """Return short transfers next to flows without ECN."""
    case = bulk("red(ecn=true, limit=60p)")
    source = {"name": "poisson", "interval": "2ms", "size": "exponential(100kB)"}
    other = {"name": "other", "path": ["up"], "rtt": "200us", "tcp": "sack"}
    return {**case, "flows": [{**case["flows"][0], "source": source}, other]}


CASES = {
    "marks": bulk("step_mark(k=20p, limit=1000p)"),
    "minimum window": bulk("step_mark(k=5p, limit=1000p)", count=40),
    "losses": bulk("step_mark(k=30p, limit=32p)", loss=0.001, count=8),
    "timeouts": bulk("step_mark(k=1p, limit=4p)", loss=0.02, count=12),
    "transfers": transfers(),
}

OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "without delayed acks": {"delayed_ack": False},
    "accurate feedback": {"ecn_feedback": "accurate", "g": 0.25},
    "rack": {"rack": True, "prr": True, "pacing": True},
    "without ecn": {"ecn": False},
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("options", OPTIONS)
def test_dctcp_in_python_gives_the_bytes_of_rust(options: str, name: str) -> None:
    """Every packet, statistic and series is the same; native code has the same state, too."""
    values = {**TIMERS, **OPTIONS[options]}
    expected = raw(with_tcp(CASES[name], {"name": "dctcp", "profile": "rfc", **values}))
    plain = raw(with_tcp(CASES[name], Dctcp(**values)))
    assert without_gauges(plain) == without_gauges(expected)
    assert raw(with_tcp(CASES[name], Dctcp(**values, compiled=True))) == plain
    counts = {"losses": "retransmitted_packets", "timeouts": "timeouts"}
    if name in counts:
        assert sum(flow[counts[name]] for flow in expected[0]["flows"]) > 20
    marked = expected[0]["links"]["up"]["marked_packets"]
    assert (marked > 100) == ("ecn" not in OPTIONS[options])


class Reads(sj.CongestionControl):
    """Checks what it sees."""

    wanted: float = 0.3

    def start(self) -> None:
        self.acked = 0
        self.marked = 0
        self.delivered = 0
        self.feedbacks = 0
        self.una = 1

    def on_ecn_feedback(self, tcp: Any) -> None:
        assert tcp.marked in (0, tcp.acked)
        assert self.una + tcp.acked == tcp.snd_una <= tcp.snd_nxt
        assert tcp.random() < 1
        self.una = tcp.snd_una
        self.acked += tcp.acked
        self.marked += tcp.marked
        self.feedbacks += 1
        tcp.cwnd = 100 * tcp.mss

    def on_ack(self, tcp: Any) -> None:
        assert tcp.marked == 0
        assert tcp.cwnd == 100 * tcp.mss

    def on_mark(self, tcp: Any) -> None:
        assert tcp.marked > 0

    def on_delivered(self, tcp: Any) -> None:
        self.delivered += tcp.acked
        assert tcp.marked in (0, tcp.acked)


@pytest.mark.parametrize("delayed", [False, True])
def test_marked_bytes_are_those_of_the_packets(tmp_path: Path, delayed: bool) -> None:
    """Each marked packet counts once, also after it was kept in a fork and in a snapshot."""
    link = {"rate": "10mbit", "delay": "1ms", "qdisc": "step_mark(k=5p, limit=1000p)"}
    source = {"name": "transfers", "size": "1MB", "number": 1}
    flow = {"name": "f", "path": ["up"], "rtt": "20ms", "source": source}
    case = {"duration": "3s", "sample": "1s", "links": {"up": link}, "flows": [flow]}
    case = with_tcp(case, Reads(delayed_ack=delayed))
    whole = sj.simulate(case)
    series = whole.frame("group_series")
    last = {name: series[f"gauge_{name}"][-1] for name in ("acked", "marked", "delivered")}
    assert last["acked"] == last["delivered"] == 1_000_000
    marked = whole.links["up"].marked_packets
    assert abs(last["marked"] - 1460 * marked) < 1460  # the last packet is shorter
    assert 300 < marked < 680
    assert (series["gauge_feedbacks"][-1] < 650) == delayed
    simulation = sj.Simulation(case)
    simulation.run_until("300ms")
    simulation.save(tmp_path / "state")
    for one in (simulation.fork(), sj.Simulation.load(tmp_path / "state", trust=True)):
        assert one.run().summary == whole.summary


def test_defaults_are_those_of_dctcp() -> None:
    """ECN is on, with the exact echo; both can be changed."""
    case = bulk("step_mark")
    for tcp, ecn, feedback in (
        (Dctcp(), "true", "rfc8257"),
        (Dctcp(ecn_feedback="accurate"), "true", "accurate"),
        (Dctcp(ecn=False), "false", "rfc8257"),
        (Silent(), "false", "rfc3168"),
    ):
        table = parse(with_tcp(case, tcp)).canonical()
        assert f'"ecn":{ecn}' in table
        assert f'"ecn_feedback":"{feedback}"' in table


class Silent(sj.CongestionControl):
    """Reads marks without the method that they need."""

    def start(self) -> None:
        self.sum = 0

    def on_ack(self, tcp: Any) -> None:
        self.count(tcp)

    def count(self, tcp: Any) -> None:
        self.sum += tcp.marked


def test_marks_need_their_method() -> None:
    """The error names the method, in plain Python when it runs, if compiled before."""
    text = "marked needs the method on_ecn_feedback in the class"
    with pytest.raises(AttributeError, match=text) as caught:
        sj.simulate(with_tcp(bulk("step_mark"), Silent()))
    assert "in on_ack of " in caught.value.__notes__[0]
    with pytest.raises(sj.InputError, match=rf"test_custom_marks.py:\d+: tcp.{text}"):
        Silent(compiled=True)
    with pytest.raises(TypeError, match='no hook "on_ecn_feedbak", did you mean "on_ecn_feedback"'):
        type("Near", (Dctcp,), {"on_ecn_feedbak": lambda self, tcp: None})


def test_property_tests() -> None:
    """`sj.check` reports marks as well, and compares native code with plain Python."""
    checks = sj.check(Dctcp(compiled=True), packets=400)
    assert checks, str(checks)
