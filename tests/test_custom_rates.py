"""Controls in Python that read delivery rate samples.

BBR in Python, plain and compiled, sends the same packets as the built-in one in profile rfc.
"""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from examples.my_bbr import Bbr
from sojourn import _sojourn
from sojourn.custom.layouts import OF_RATES
from sojourn.scenario.draft import parse
from test_custom_control import raw, without_gauges


class Drawn(Bbr):
    """BBR that begins to probe in a given phase."""

    first: float = 0.0

    def draw(self, tcp: Any) -> Any:
        return self.first


def draw_of(name: str, seed: int = 1) -> float:
    """Return the number in [0, 1) with which a built-in BBR starts (`Pcg` in Rust)."""
    words = []
    for lane in (0, 1):
        word = 0xCBF29CE484222325
        text = b"".join(number.to_bytes(8, "little") for number in (lane, seed))
        for byte in text + f"flows.{name}.tcp".encode():
            word = (word ^ byte) * 0x100000001B3 % 2**64
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            word = (word ^ word >> 33) * factor % 2**64
        words.append(word ^ word >> 33)
    state = (words[1] << 64 | words[0] | 1) * 0x2360ED051FC65DA44385DF649FCCF645 % 2**128
    mixed, turn = state >> 64 ^ state % 2**64, state >> 122
    bits = (mixed >> turn | mixed << 64 - turn) % 2**64
    return (bits >> 11) / 2**53


LINK = {"rate": "10mbit", "delay": "5ms", "qdisc": "droptail(limit=50p)"}


def flows(link: dict[str, Any], sources: list[Any], duration: str = "25s") -> dict[str, Any]:
    """Return flows with these sources on a link."""
    each = [
        {"name": f"f{i}", "path": ["up"], "rtt": f"{40 + 13 * i}ms", "source": source}
        for i, source in enumerate(sources)
    ]
    keys = {"duration": duration, "warmup": "1s", "sample": "500ms", "packet_log": True}
    return {**keys, "links": {"up": {**LINK, **link}}, "flows": each}


TINY = {"rate": "1mbit", "qdisc": "droptail(limit=3p)", "loss": 0.05}

CASES = {
    "bulk": flows({}, ["bulk", {"name": "bulk", "start": "3s"}]),
    "losses": flows({"loss": 0.01}, ["bulk", "bulk"]),
    "timeouts": flows(TINY, ["bulk", "bulk", "bulk"], "40s"),
    "application": flows(
        {"loss": 0.001},
        [
            {"name": "cbr", "rate": "2mbit"},
            {"name": "onoff", "rate": "20mbit", "on": "300ms", "off": "2s"},
            {"name": "cbr", "rate": "20kbit", "packet": "300B"},
        ],
        "40s",
    ),
    "transfers": flows({}, [{"name": "transfers", "size": "40kB", "number": 50}, "bulk"]),
}

OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "without delayed acks": {"delayed_ack": False, "cwnd_gain": 2.5, "probe_rtt": "300ms"},
    "rack": {"rack": True},
}


def with_each(case: dict[str, Any], tcp: Any) -> dict[str, Any]:
    """Return a case whose flows have the TCP of their names."""
    return {**case, "flows": [{**flow, "tcp": tcp(flow["name"])} for flow in case["flows"]]}


# With "rack", the built-in one takes the losses of 20 % of "timeouts" for a policer.
@pytest.mark.parametrize(
    ("options", "name"),
    [pair for pair in product(OPTIONS, CASES) if pair != ("rack", "timeouts")],
)
def test_bbr_in_python_gives_the_bytes_of_rust(options: str, name: str) -> None:
    """Every packet, statistic and series is the same; native code has the same state, too."""
    values = OPTIONS[options]
    rust = {"name": "bbr", "profile": "rfc", **values}
    expected = raw(with_each(CASES[name], lambda _: rust))
    plain = raw(with_each(CASES[name], lambda flow: Drawn(first=draw_of(flow), **values)))
    assert without_gauges(plain) == without_gauges(expected)
    native = with_each(
        CASES[name], lambda flow: Drawn(first=draw_of(flow), compiled=True, **values)
    )
    assert raw(native) == plain
    counts = {"losses": "retransmitted_packets", "timeouts": "timeouts"}
    if name in counts:
        assert sum(flow[counts[name]] for flow in expected[0]["flows"]) > 10


def test_all_states_were_compared() -> None:
    """Startup, Drain, ProbeBw with several phases and ProbeRtt occur, and idle restarts."""
    result = sj.simulate(with_each(CASES["application"], lambda _: Reads()))
    series = result.frame("group_series")
    assert max(series["gauge_restarts"]) > 5
    bulk = sj.simulate({**with_each(CASES["bulk"], lambda _: Bbr()), "sample": "20ms"})
    assert {0, 1, 2, 3} == set(bulk.flows["f0"].series.gauge_mode)
    assert len(set(bulk.flows["f0"].series.gauge_phase)) == 8


class Reads(Bbr):
    """Checks what it sees."""

    def start(self) -> None:
        super().start()  # type: ignore[no-untyped-call]
        self.sum = self.samples = self.empty = self.restarts = 0
        self.limited = self.rounds = 0
        self._end = 0

    def on_rate_sample(self, tcp: Any) -> None:
        self.sum += tcp.acked
        assert tcp.delivered >= self.sum  # a part of a segment gives no sample
        assert tcp.lost == tcp.newly_lost == 0
        self.restarts += tcp.idle_restart
        self.limited += tcp.is_app_limited
        if tcp.acked:
            self.samples += 1
            assert 0 <= tcp.prior_delivered < tcp.delivered
            rate = 8e9 * (tcp.delivered - tcp.prior_delivered) / tcp.interval
            assert tcp.delivery_rate == pytest.approx(rate)
            if tcp.prior_delivered >= self._end:
                self._end, self.rounds = tcp.delivered, self.rounds + 1
        else:
            self.empty += 1
            assert (tcp.prior_delivered, tcp.delivery_rate, tcp.interval) == (0, None, 0)
        super().on_rate_sample(tcp)  # type: ignore[no-untyped-call]
        assert tcp.app_limited or self.mode != 3


def test_samples_continue_in_forks_and_snapshots(tmp_path: Path) -> None:
    """A bulk flow has a sample per ack, is limited in ProbeRtt only, and counts rounds."""
    case = {**flows({}, ["bulk"], "12s"), "packet_log": False}
    case["flows"][0]["tcp"] = Reads()
    whole = sj.simulate(case)
    series = whole.frame("group_series")
    last = {name: series[f"gauge_{name}"][-1] for name in ("rounds", "limited", "restarts", "sum")}
    assert last["restarts"] == 0
    assert 0 < last["limited"] < 50
    assert 150 < last["rounds"] < 300
    assert last["sum"] == pytest.approx(12 * 10e6 / 8 * 1460 / 1500, rel=0.06)
    simulation = sj.Simulation(case)
    simulation.run_until("3s")
    for _ in range(100):
        simulation.step("7ms")
    simulation.save(tmp_path / "state")
    for one in (simulation.fork(), sj.Simulation.load(tmp_path / "state", trust=True)):
        assert one.run().summary == whole.summary


def test_the_class_sets_the_default_of_pacing() -> None:
    """`pacing = True` in the class; the parameter changes it, and acks are delayed as usual."""
    case = flows({}, ["bulk"])
    for tcp, paced in ((Bbr(), True), (Bbr(pacing=False), False), (Silent(), False)):
        case["flows"][0]["tcp"] = tcp
        table = parse(case).canonical()
        assert f'"pacing":{str(paced).lower()}' in table
        assert '"delayed_ack":true' in table
    with pytest.raises(sj.InputError, match='pacing: is "yes", allowed: True, False'):
        type("Odd", (Silent,), {"pacing": "yes", "__module__": __name__})()


class Silent(sj.CongestionControl):
    """Reads or sets what it did not ask for."""

    rate: bool = True

    def start(self) -> None:
        self.sum = 0.0

    def on_ack(self, tcp: Any) -> None:
        tcp.cwnd += tcp.acked
        if self.rate:
            self.sum += tcp.delivered
        else:
            tcp.app_limited = True


class Limits(Silent):
    """Limits itself where it cannot."""

    rate: bool = False

    def on_rate_sample(self, tcp: Any) -> None:
        pass


def test_samples_need_their_method() -> None:
    """The error names the method, in plain Python when it runs, if compiled before."""
    case = flows({}, ["bulk"], "2s")
    text = "delivered needs the method on_rate_sample in the class"
    case["flows"][0]["tcp"] = Silent()
    with pytest.raises(AttributeError, match=text) as caught:
        sj.simulate(case)
    assert "in on_ack of " in caught.value.__notes__[0]
    with pytest.raises(sj.InputError, match=rf"test_custom_rates.py:\d+: tcp.{text}"):
        Silent(compiled=True)
    for compiled in (False, True):
        case["flows"][0]["tcp"] = Limits(compiled=compiled)
        with pytest.raises(AttributeError, match="app_limited can be set in on_rate_sample only"):
            sj.simulate(case)


def test_app_limited_can_only_be_set() -> None:
    """It ends by itself."""

    class Ends(Bbr):
        def on_rate_sample(self, tcp: Any) -> None:
            tcp.app_limited = False

    case = flows({}, ["bulk"], "2s")
    case["flows"][0]["tcp"] = Ends()
    with pytest.raises(ValueError, match="app_limited is False, allowed: True"):
        sj.simulate(case)


def test_the_border_has_the_documented_attributes() -> None:
    """The view of a connection has an attribute for each field of a sample."""
    assert set(OF_RATES) < {name for name in dir(_sojourn.Connection) if name[0] != "_"}


def test_property_tests() -> None:
    """`sj.check` makes rate samples, and compares native code with plain Python."""
    checks = sj.check(Bbr(compiled=True), packets=400)
    assert checks, str(checks)
