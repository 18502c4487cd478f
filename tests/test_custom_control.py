"""Congestion controls that are written in Python: same bytes as Rust, and clear errors."""

import json
import pickle
import runpy
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import sojourn as sj
from conftest import Command
from examples import my_control
from sojourn import _sojourn
from sojourn.scenario.draft import parse
from support.pages import blocks

LINK = {"rate": "10mbit", "delay": "5ms", "qdisc": "droptail(limit=30p)"}

CASES: dict[str, dict[str, Any]] = {
    "bulk": {
        "duration": "20s",
        "sample": "1s",
        "packet_log": True,
        "links": {"up": LINK},
        "flows": [{"name": "one", "count": 3, "path": ["up"], "rtt": "40ms"}],
    },
    "timeouts": {
        "duration": "30s",
        "sample": "1s",
        "packet_log": True,
        "links": {"up": {**LINK, "rate": "1mbit", "qdisc": "droptail(limit=3p)", "loss": 0.03}},
        "flows": [{"name": "one", "count": 6, "path": ["up"], "rtt": "100ms"}],
    },
    "cross traffic": {
        "duration": "20s",
        "sample": "500ms",
        "packet_log": True,
        "links": {"up": {**LINK, "qdisc": "red"}},
        "flows": [
            {"name": "one", "count": 2, "path": ["up"], "rtt": "30ms"},
            {"name": "cbr", "source": "cbr(rate=4mbit)", "path": ["up"]},
        ],
    },
}

PAIRS: list[tuple[Any, Any]] = [
    ("newreno", my_control.MyNewReno()),
    ("sack", my_control.MyReno()),
    (
        sj.tcp.Sack(rack=True, prr=True, pacing=True, ecn=True),
        my_control.MyReno(rack=True, prr=True, pacing=True, ecn=True),
    ),
]


def with_tcp(case: dict[str, Any], tcp: Any) -> dict[str, Any]:
    """Return a case whose first flows have this TCP."""
    first, *others = case["flows"]
    return {**case, "flows": [{**first, "tcp": tcp}, *others]}


def raw(scenario: Any) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return summary and columns of a run as Rust returns them, without the scenario."""
    text, columns = parse(scenario).simulate()
    summary = json.loads(text)
    del summary["scenario"]
    return summary, {name: column.tobytes() for name, column in columns.items()}


def without_gauges(run: tuple[dict[str, Any], dict[str, bytes]]) -> Any:
    """Return what `raw` returns without the state of controls."""
    summary, columns = run
    of_links = ("links/", "series/", "packet_log/", "fct/")
    kept = {k: v for k, v in columns.items() if k.startswith(of_links) or "/gauge/" not in k}
    return summary, kept


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("rust", "python"), PAIRS, ids=lambda one: repr(one))
def test_reno_in_python_gives_the_bytes_of_rust(name: str, rust: Any, python: Any) -> None:
    """Reno in Python sends the same packets at the same times as the built-in one."""
    ours, theirs = raw(with_tcp(CASES[name], python)), raw(with_tcp(CASES[name], rust))
    assert without_gauges(ours) == theirs
    assert "groups/one/gauge/counted" in ours[1]
    assert sum(flow["retransmitted_packets"] for flow in ours[0]["flows"] if "timeouts" in flow) > 5
    if name == "timeouts":
        assert sum(flow["timeouts"] for flow in ours[0]["flows"]) > 5


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("rust", "python"), PAIRS, ids=lambda one: repr(one))
def test_compiled_reno_gives_the_bytes_of_rust(name: str, rust: Any, python: Any) -> None:
    """So does native code."""
    compiled = raw(with_tcp(CASES[name], python.replace(compiled=True)))
    assert without_gauges(compiled) == raw(with_tcp(CASES[name], rust))
    assert compiled == raw(with_tcp(CASES[name], python))


SMALL = {**CASES["bulk"], "duration": "3s", "packet_log": False}


class Random(sj.CongestionControl):
    """Grows at random, and keeps state of every kind."""

    step: sj.Bytes = "1kB"
    recovery: ClassVar[str] = "sack"

    def start(self) -> None:
        self.seen: list[float] = []
        self.log: dict[str, int] = {}

    def on_established(self, tcp: Any) -> None:
        self.log["established"] = tcp.now
        tcp.pacing_rate = 5e6

    def on_ack(self, tcp: Any) -> None:
        self.seen.append(tcp.random())
        assert 40_000_000 <= tcp.min_rtt <= tcp.srtt
        assert tcp.acked > 0
        if self.seen[-1] < 0.5:
            tcp.cwnd += self.step
        tcp.pacing_rate = None if self.seen[-1] < 0.5 else 2e6

    def on_recovered(self, tcp: Any) -> None:
        tcp.cwnd = 10 * tcp.mss


def test_runs_repeat_and_forks_continue() -> None:
    """The same seed gives the same bytes: again, in steps, in a fork, and from a pickle."""
    case = with_tcp(SMALL, Random(pacing=True))
    whole = raw(case)
    assert whole == raw(case)
    assert whole != raw({**case, "seed": 2})
    parsed = pickle.loads(pickle.dumps(parse(case)))
    assert json.loads(parsed.simulate()[0])["flows"] == whole[0]["flows"]
    sim = sj.Simulation(case)
    sim.run_until("1s")
    fork = sim.fork()
    for one in (sim, fork):
        one.run_until("3s")
        assert one.result().frame("flows").equals(sj.simulate(case).frame("flows"))


class Everything(sj.CongestionControl):
    """Uses all that a connection has, in code that Numba compiles."""

    step: sj.Bytes = "1kB"
    share: float = 0.6

    def start(self) -> None:
        self.least = 0
        self.marks = 0
        self.calls = 0

    def on_established(self, tcp: Any) -> None:
        tcp.pacing_rate = 5e6

    def on_ack(self, tcp: Any) -> None:
        self.calls += 1
        if tcp.rtt is not None:
            self.least = tcp.rtt if self.least == 0 else min(self.least, tcp.rtt)
        if tcp.srtt is None or tcp.min_rtt is None:
            return
        if tcp.after_timeout or not tcp.window_was_full:
            tcp.cwnd += 0.5 * tcp.acked
        elif tcp.random() < 0.5 or tcp.srtt > 2 * tcp.min_rtt:
            tcp.cwnd = self.grown(tcp)
        if tcp.pacing_rate is None:
            tcp.pacing_rate = 3e6 + tcp.now % 1000
        elif self.calls % 7 == 0:
            tcp.pacing_rate = None
        else:
            tcp.pacing_rate *= 1.01

    def grown(self, tcp: Any) -> Any:
        return tcp.cwnd + self.step * tcp.acked / tcp.cwnd

    def on_loss(self, tcp: Any) -> None:
        tcp.ssthresh = max(self.share * tcp.flight, 2 * tcp.mss)

    def on_mark(self, tcp: Any) -> None:
        self.marks += 1
        tcp.ssthresh = max(tcp.ssthresh, 3 * tcp.mss)

    def on_recovered(self, tcp: Any) -> None:
        tcp.cwnd = max(tcp.ssthresh, 4 * tcp.mss)


def test_compiled_and_plain_give_the_same_bytes() -> None:
    """Also in forks, in steps, after timeouts and with marks."""
    for case in CASES.values():
        links = {"up": {**case["links"]["up"], "qdisc": "red(ecn=true)"}}
        case = {**case, "links": links, "duration": "10s"}
        options: dict[str, Any] = {"pacing": True, "ecn": True}
        plain, compiled = Everything(**options), Everything(**options, compiled=True)
        whole = raw(with_tcp(case, plain))
        assert whole == raw(with_tcp(case, compiled))
        sim = sj.Simulation(with_tcp(case, compiled))
        sim.run_until("3s")
        fork = sim.fork()
        sim.run_until("5s")
        while not fork.ended:
            fork.step("700ms")
        expected = sj.simulate(with_tcp(case, compiled)).frame("flows")
        assert fork.result().frame("flows").equals(expected)
        assert sim.run().frame("flows").equals(expected)


class Counts(sj.CongestionControl):
    """Has state of every kind."""

    def start(self) -> None:
        self.acks = 0
        self.share = 0.0
        self.seen = False
        self._hidden = 1
        self.turns_bad = -1

    def on_ack(self, tcp: Any) -> None:
        tcp.cwnd += min(tcp.acked, tcp.mss)
        self.acks += 1
        self.share = 1 / self.acks
        self.seen = True


class Names(sj.CongestionControl):
    """Reno whose state has names that the library might use."""

    def start(self) -> None:
        self._state = self._start = 0

    def on_ack(self, tcp: Any) -> None:
        """Grow by a segment per round trip."""
        self._state += tcp.acked
        if self._state >= tcp.cwnd:
            self._state -= tcp.cwnd
            tcp.cwnd += tcp.mss


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_the_state_may_have_any_names(compiled: bool) -> None:
    """A connection that opens again starts with a new state; a fork continues."""
    case = with_tcp({**SMALL, "duration": "4s"}, Names(compiled=compiled))
    case["flows"][0]["source"] = "transfers(size=100kB,gap=50ms)"
    sim = sj.Simulation(case)
    sim.run_until("2s")
    fork = sim.fork()
    for one in (sim, fork):
        one.run_until("4s")
        assert one.result().frame("flows").equals(sj.simulate(case).frame("flows"))


@pytest.mark.parametrize("compiled", [False, True])
def test_state_is_recorded_in_series_and_shown(compiled: bool) -> None:
    """Numbers that `start` assigns are series of flows and groups, and gauges while it runs."""
    case = with_tcp(SMALL, Counts(compiled=compiled))
    result = sj.simulate(case)
    flows = [result.flows[f"one.{i}"].series for i in range(3)]
    assert {name for name in flows[0] if "gauge" in name} == {
        "gauge_acks", "gauge_share", "gauge_seen", "gauge_turns_bad",
    }  # fmt: skip
    group = result.frame("group_series")
    acks = np.mean([flow.gauge_acks for flow in flows], axis=0)
    assert group["gauge_acks"].to_list() == pytest.approx(acks)
    assert acks[-1] > acks[0] > 10
    assert flows[0].gauge_share[-1] == 1 / flows[0].gauge_acks[-1]
    assert set(flows[0].gauge_seen) == {1.0}
    few = sj.simulate({**case, "sample_flows": False})
    assert few.frame("group_series").equals(group)

    sim = sj.Simulation(case)
    assert sim.flows["one"].gauges == {"acks": 0, "share": 0, "seen": 0, "turns_bad": -1}
    sim.run_until("2s")
    each = [sim.flows[f"one.{i}"].gauges["acks"] for i in range(3)]
    assert sim.flows["one"].gauges["acks"] == pytest.approx(sum(each) / 3)
    assert min(each) > 10
    sim.sample()
    assert sim.frame("flows")["gauge/acks"].to_list() == [sim.flows["one"].gauges["acks"]]
    assert "acks" in (sim._repr_html_() or "")
    for table in ("group_series", "flows", "series"):
        assert sim.run().frame(table).equals(result.frame(table), null_equal=True)
    assert (
        "gauges"
        not in (sj.Simulation(with_tcp(SMALL, "cubic"))._repr_html_() or "").split("flows", 1)[1]
    )


def test_series_with_state_are_saved_and_loaded(tmp_path: Path) -> None:
    """Parquet files keep the state of controls."""
    result = sj.simulate(with_tcp(SMALL, Counts()))
    result.save(tmp_path / "run")
    again = sj.load_result(tmp_path / "run")
    assert again.frame("group_series").equals(result.frame("group_series"), null_equal=True)
    assert (again.flows["one.1"].series.gauge_acks == result.flows["one.1"].series.gauge_acks).all()


def test_a_gauge_that_is_no_number_any_more_ends_the_run() -> None:
    """As for disciplines."""

    class Turns(Counts):
        def on_ack(self, tcp: Any) -> None:
            super().on_ack(tcp)
            self.turns_bad = "bad"  # type: ignore[assignment]

    with pytest.raises(TypeError, match="turns_bad was a number at the start and is now 'bad'"):
        sj.simulate(with_tcp(SMALL, Turns()))
    sim = sj.Simulation(with_tcp({**SMALL, "sample": "3s"}, Turns()))
    sim.run_until("1s")
    with pytest.raises(TypeError, match="turns_bad was a number"):
        sim.flows["one"]


def test_a_notebook_shows_the_parameters() -> None:
    """Parameters of the class, and given ones of all TCPs."""
    page = my_control.DelayTarget(target="4ms", rack=True)._repr_html_() or ""
    assert "DelayTarget" in page
    for text in ("4ms", "10ms", "gain", "rack", "Parameter of every TCP."):
        assert text in page


def test_the_pacing_rate_limits_the_sender() -> None:
    """A flow sends at the rate that its control sets, not faster."""

    class Paced(sj.CongestionControl):
        rate: sj.Rate = "2mbit"

        def on_established(self, tcp: Any) -> None:
            tcp.pacing_rate = self.rate

        def on_ack(self, tcp: Any) -> None:
            tcp.cwnd += tcp.acked

    flows = json.loads(parse(with_tcp(SMALL, Paced(pacing=True))).simulate()[0])["flows"]
    for flow in flows:
        assert 1.8e6 < flow["goodput_bps"] < 2.05e6


def test_in_other_processes() -> None:
    """A scenario with a class of a test reaches another process."""
    case = with_tcp(SMALL, Random(pacing=True))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(raw_of, parse(case)).result() == raw(case)[0]


def test_sweeps_over_controls() -> None:
    """Processes and threads give the same rows; classes and names can be mixed."""
    mine = my_control.DelayTarget(target="20ms", rack=True)
    axes = {"flows.one.tcp": [my_control.MyReno(), mine, "cubic"]}
    here = sj.sweep(SMALL, axes=axes)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        there = sj.sweep(SMALL, axes=axes, executor=executor)
    assert here.equals(there)
    assert here["flows.one.tcp"].n_unique() == 3
    assert here["goodput_bps"].n_unique() == 3


def test_real_packets_are_refused() -> None:
    """A live link does not wait for Python."""
    for key, value, what in (
        ("tcp", my_control.MyReno(), "congestion control"),
        ("source", "examples/my_source.py:Game", "traffic source"),
    ):
        case = {**SMALL, "flows": [{"name": "one", "path": ["up"], key: value}]}
        text = f"one.{key}: a {what} that is written in Python runs in the simulator only"
        with pytest.raises(sj.InputError, match=text):
            _sojourn.Network(0, 0, parse(case))


def test_code_of_the_page_runs(tmp_path: Path) -> None:
    """The block of docs/how-to/your-own-control.md runs, uses the link, and repeats few packets."""
    page = tmp_path / "page.py"
    page.write_text("\n".join(blocks("python", "docs/how-to/your-own-control.md")))
    names = runpy.run_path(str(page))
    mine = names["result"].flows["mine"]
    assert mine.goodput_bps > 18e6  # of 20
    assert mine.retransmitted_packets < 0.05 * mine.sent_packets
    case = names["result"].scenario
    compiled = with_tcp(case, names["Aimd"](factor=0.8, compiled=True))
    assert sj.simulate(compiled).frame("flows").equals(names["result"].frame("flows"))


def raw_of(parsed: Any) -> dict[str, Any]:
    """Run a parsed scenario; return its summary."""
    summary: dict[str, Any] = json.loads(parsed.simulate()[0])
    del summary["scenario"]
    return summary


def test_on_the_command_line(sojourn: Command) -> None:
    """A file and a class are the name of a TCP."""
    tcp = "examples/my_control.py:DelayTarget(target=3ms)"
    command = ["run", "examples/home-uplink.toml", "--json", "--set", "duration=12s"]
    status, out, _ = sojourn(*command, "--set", f"flows.upload.tcp={tcp}")
    assert status == 0
    (upload, *_) = json.loads(out)["scenario"]["flows"]
    assert upload["tcp"]["name"] == "examples/my_control.py:DelayTarget"
    assert upload["tcp"]["target"] == "3ms"
    assert upload["tcp"]["gain"] == 1
