"""Traffic sources that are written in Python: same bytes as Rust, and clear errors."""

import json
import math
import pickle
import runpy
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sojourn as sj
from conftest import Command
from examples import my_source
from sojourn.scenario.draft import parse
from support.pages import blocks
from test_custom_control import raw, raw_of

CASE: dict[str, Any] = {
    "duration": "20s",
    "sample": "1s",
    "packet_log": True,
    "links": {"up": {"rate": "2mbit", "delay": "5ms", "qdisc": "pie"}},
    "flows": [
        {"name": "one", "count": 3, "path": ["up"], "rtt": "uniform(20ms, 40ms)"},
        {"name": "bulk", "path": ["up"], "rtt": "40ms"},
    ],
    "changes": [{"at": "2s", "join": ["one"]}, {"at": "15s", "leave": ["one"]}],
}

PAIRS: list[tuple[Any, Any]] = [
    (sj.source.Cbr(), my_source.MyCbr()),
    (
        sj.source.Cbr(rate="300kbit", packet="1001B", start="uniform(0s, 1s)", stop="9s"),
        my_source.MyCbr(rate="300kbit", packet="1001B", start="uniform(0s, 1s)", stop="9s"),
    ),
    (
        sj.source.Poisson(interval="uniform(0s, 90ms)", size="uniform(5kB, 15kB)", stop="12s"),
        my_source.MyFlows(interval="90ms", stop="12s"),
    ),
]


def with_source(case: dict[str, Any], source: Any, **more: Any) -> dict[str, Any]:
    """Return a case whose first flows have this source."""
    first, *others = case["flows"]
    return {**case, "flows": [{**first, "source": source, **more}, *others]}


@pytest.mark.parametrize("tcp", [None, "cubic"])
@pytest.mark.parametrize(("rust", "python"), PAIRS, ids=repr)
def test_a_source_in_python_gives_the_bytes_of_rust(tcp: Any, rust: Any, python: Any) -> None:
    """Datagrams, writes and connections have the same times and sizes as the built-in ones."""
    more = {"tcp": tcp} if tcp else {}
    ours = raw(with_source(CASE, python, **more))
    theirs = raw(with_source(CASE, rust, **more))
    assert ours == theirs
    assert raw(with_source(CASE, python.replace(compiled=True), **more)) == theirs
    assert all(flow["goodput_bps"] > 10_000 for flow in ours[0]["flows"])


SMALL = {**CASE, "duration": "3s", "changes": []}


class Random(sj.TrafficSource):
    """Sends at random, and keeps state of every kind."""

    mean: sj.Duration = "10ms"

    def start(self) -> None:
        self.sizes: list[int] = []

    def next_arrival(self, flow: Any) -> Any:
        self.sizes.append(100 + len(self.sizes) % 900)
        return flow.now + 2 * self.mean * flow.random(), self.sizes[-1]


class Flows(Random):
    """The same sizes, each on a new connection."""

    connections = True


@pytest.mark.parametrize("source", [Random(), Flows(mean="30ms")], ids=repr)
def test_runs_repeat_and_forks_continue(source: Any) -> None:
    """The same seed gives the same bytes: again, in steps, in a fork, and from a pickle."""
    case = with_source(SMALL, source)
    whole = raw(case)
    assert whole == raw(case)
    assert whole != raw({**case, "seed": 2})
    parsed = pickle.loads(pickle.dumps(parse(case)))
    assert json.loads(parsed.simulate()[0])["flows"] == whole[0]["flows"]
    sim = sj.Simulation(case)
    sim.run_until("1s")
    fork = sim.fork()
    expected = sj.simulate(case)
    for one in (sim, fork):
        while not one.ended:
            one.step("70ms")
        result = one.result()
        for kind in ("flows", "links", "packet_log", "fct"):
            assert result.frame(kind).equals(expected.frame(kind), null_equal=True)


def test_the_scenario_and_a_notebook_show_the_parameters() -> None:
    """Parameters of the class, and parameters of every source."""
    source = Random(mean="20ms", start="1s")
    tree = sj.Simulation(with_source(SMALL, source)).scenario["flows"][0]
    assert "tcp" not in tree
    assert (tree["source"]["mean"], tree["source"]["start"]) == ("20ms", "1s")
    page = source._repr_html_() or ""
    for text in ("Random", "20ms", "10ms", "Start time.", "auto"):
        assert text in page
    flow = sj.Simulation(with_source(SMALL, Flows())).scenario["flows"][0]
    assert flow["tcp"]["name"] == "cubic"


def test_in_other_processes_and_sweeps() -> None:
    """A class of a test reaches another process; a sweep takes objects."""
    case = with_source(SMALL, Random())
    axes = {"flows.one.source": [Random(), Random(mean="20ms"), "cbr"]}
    here = sj.sweep(case, axes=axes)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(raw_of, parse(case)).result() == raw(case)[0]
        assert here.equals(sj.sweep(case, axes=axes, executor=pool))
    assert here["flows.one.source"].n_unique() == 3


def test_on_the_command_line(sojourn: Command) -> None:
    """A file and a class are the name of a source."""
    source = "examples/my_source.py:Game(pause=1s, start=2s)"
    command = ["run", "examples/home-uplink.toml", "--json", "--set", "duration=12s"]
    status, out, error = sojourn(*command, "--set", f"flows.call.source={source}")
    assert status == 0, error
    call = json.loads(out)["scenario"]["flows"][2]["source"]
    assert call["name"] == "examples/my_source.py:Game"
    assert (call["pause"], call["start"], call["update"]) == ("1s", "2s", "33ms")


MISUSE: dict[str, tuple[Any, Any, str]] = {
    "the past": (lambda flow: (flow.now - 1, 100), ValueError, "is not before the previous"),
    "a negative time": (lambda flow: (-5, 100), ValueError, "time is -5 ns, and now is "),
    "nan": (lambda flow: (float("nan"), 100), ValueError, "time is nan ns"),
    "infinite time": (lambda flow: (float("inf"), 100), ValueError, "time is inf ns"),
    "huge time": (lambda flow: (10**30, 100), ValueError, "time is 1000000000"),
    "text as time": (lambda flow: ("5ms", 100), TypeError, "time is '5ms', must be a number"),
    "size 0": (lambda flow: (flow.now + 10**6, 0), ValueError, "size is 0, allowed: 1 to 65535"),
    "huge size": (lambda flow: (flow.now + 10**6, 10**6), ValueError, "size is 1000000, allowed"),
    "negative size": (lambda flow: (flow.now + 10**6, -1), ValueError, "size is -1, allowed"),
    "a flag": (lambda flow: (flow.now + 10**6, True), TypeError, "size is True, must be a number"),
    "one number": (lambda flow: flow.now + 10**6, TypeError, "must return .time, size."),
    "three numbers": (lambda flow: (1, 2, 3), TypeError, r"returned \(1, 2, 3\), must return"),
    "a text": (lambda flow: "ab", TypeError, "returned 'ab', must return"),
    "no progress": (lambda flow: (flow.now, 100), ValueError, "time does not advance"),
    "an exception": (lambda flow: (flow.now, 1 // 0), ZeroDivisionError, "division|modulo"),
    "unknown attribute": (lambda flow: (flow.time, 1), AttributeError, "time"),
    "a set attribute": (lambda flow: setattr(flow, "now", 5), AttributeError, "now"),
}


@pytest.mark.parametrize("connections", [False, True])
@pytest.mark.parametrize("kind", MISUSE)
def test_misuse_ends_the_run_with_its_line(kind: str, connections: bool) -> None:
    """Nonsense is refused with the simulated time at which it was returned."""
    action, error, text = MISUSE[kind]

    class Misuse(sj.TrafficSource):
        def start(self) -> None:
            self.good = 100

        def next_arrival(self, flow: Any) -> Any:
            self.good -= 1
            if self.good > 0:
                return flow.now + 1_000_000, 100
            if kind == "huge size" and connections:
                return flow.now + 1, 10**12 + 1
            return action(flow)

    Misuse.connections = connections
    if kind == "huge size" and connections:
        text = "size is 1000000000001, allowed: 1 to 1000000000000 bytes"
    elif kind == "size 0" and connections:
        text = "size is 0, allowed"
    with pytest.raises(error, match=text) as caught:
        sj.simulate(with_source(SMALL, Misuse()))
    (note,) = caught.value.__notes__
    assert "in next_arrival of " in note
    assert note.endswith(", at 0.099 s of simulated time")


class Everything(sj.TrafficSource):
    """Uses what Numba compiles: arrays, helpers, constants, None, and fractions."""

    mean: sj.Duration = "3ms"
    ends: int = 400
    SIZES = (100, 1200)

    def start(self) -> None:
        self.sent = 0
        self.share = 0.25
        self.counts = np.zeros(2, np.int64)

    def gap(self, flow: Any) -> Any:
        return -self.mean * math.log(1 - flow.random())

    def next_arrival(self, flow: Any) -> Any:
        if self.sent >= self.ends:
            return None
        self.sent += 1
        kind = 1 if flow.random() < self.share else 0
        self.counts[kind] += 1
        if self.counts[0] % 7 == 0:
            return flow.now, 100
        return flow.now + self.gap(flow), self.SIZES[kind] + 0.5


class EverythingElse(Everything):
    """The same as connections, which end with a variable that may be None."""

    connections = True

    def next_arrival(self, flow: Any) -> Any:
        self.sent += 1
        arrival = None
        if self.sent < self.ends:
            arrival = (flow.now + self.gap(flow), 10_000)
        return arrival


@pytest.mark.parametrize("source", [Everything(), Everything(ends=0), EverythingElse()], ids=repr)
def test_compiled_and_plain_give_the_same_bytes(source: Any) -> None:
    """Also in steps and forks."""
    compiled = source.replace(compiled=True)
    whole = raw(with_source(SMALL, compiled))
    assert whole == raw(with_source(SMALL, source))
    assert whole != raw(with_source({**SMALL, "seed": 2}, compiled)) or source.ends == 0
    sim = sj.Simulation(with_source(SMALL, compiled))
    sim.run_until("700ms")
    fork = sim.fork()
    sim.run_until("2s")
    while not fork.ended:
        fork.step("90ms")
    expected = sj.simulate(with_source(SMALL, compiled)).frame("flows")
    assert fork.result().frame("flows").equals(expected)
    assert sim.run().frame("flows").equals(expected)


class Misuses(sj.TrafficSource):
    """Is wrong after a while, in code that Numba compiles."""

    how: int = 0

    def next_arrival(self, flow: Any) -> Any:
        if flow.now < 500_000_000:
            return flow.now + 1_000_000 * (1 + flow.random()), 100
        if self.how == 0:
            return flow.now - 0.5 - flow.random(), 100
        if self.how == 1:
            return flow.now, 0
        if self.how == 2:
            return flow.now + 1, 70_000
        if self.how == 3:
            return math.nan, 100
        if self.how == 4:
            return 1e30, 100
        if self.how == 5:
            return flow.now // (flow.now - flow.now), 100
        if self.how == 6 and flow.random() > 0.0:
            raise RuntimeError("by chance")
        if self.how == 7:
            return flow.now, math.inf
        return flow.now, 100


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("how", "text"),
    [
        (0, "time is 5.*, and now is 5.*: the time of an arrival is not before"),
        (1, "size is 0, allowed: 1 to 65535 bytes"),
        (2, "size is 70000, allowed: 1 to 65535 bytes"),
        (3, "time is nan ns"),
        (4, r"time is 1e\+30 ns"),
        (5, "division|modulo"),
        (6, "by chance"),
        (7, "size is inf, allowed"),
        (8, "100000 arrivals at the same time"),
    ],
)
def test_misuse_raises_the_same_exception_if_compiled(how: int, text: str, compiled: bool) -> None:
    """The plain method is called with the same state and random numbers, and raises."""
    with pytest.raises(Exception, match=text) as caught:
        sj.simulate(with_source(SMALL, Misuses(how=how, compiled=compiled), count=1))
    note = caught.value.__notes__[0]
    assert note.startswith("in next_arrival of ")
    assert ", at 0.5" in note
    if how in (5, 6):
        assert any(entry.name == "next_arrival" for entry in caught.traceback)


class Lists(sj.TrafficSource):
    """Has state that is not a number."""

    def start(self) -> None:
        self.sizes = [1, 2]

    def next_arrival(self, flow: Any) -> Any:
        return None


class Unknown(Lists):
    """Reads what a flow does not have."""

    def start(self) -> None:
        pass

    def next_arrival(self, flow: Any) -> Any:
        return flow.time, 1


class Sets(Unknown):
    """Sets what cannot be set."""

    def next_arrival(self, flow: Any) -> Any:
        flow.now += 1
        return flow.now, 1


class Texts(Unknown):
    """Calls what Numba does not know."""

    def next_arrival(self, flow: Any) -> Any:
        return flow.now + len(json.dumps({"now": flow.now})), 1


class One(Unknown):
    """Returns one number."""

    def next_arrival(self, flow: Any) -> Any:
        return flow.now


class Flag(Unknown):
    """Returns a flag as size."""

    def next_arrival(self, flow: Any) -> Any:
        return flow.now, True


class Three(Unknown):
    """Returns three numbers."""

    def next_arrival(self, flow: Any) -> Any:
        return flow.now, 1, 2


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Lists, "self.sizes is of type list, allowed"),
        (Unknown, r"test_custom_source.py:\d+: flow has no time"),
        (Sets, r"test_custom_source.py:\d+: flow.now cannot be set"),
        (Texts, r"test_custom_source.py:\d+: .*in next_arrival.; without compiled it runs"),
        (One, r"next_arrival returns int64, allowed: \(time, size\) or None"),
        (Flag, "next_arrival returns .*bool.*, allowed"),
        (Three, "next_arrival returns .*, allowed"),
    ],
)
def test_what_numba_cannot_compile_is_refused_with_its_line(kind: Any, text: str) -> None:
    """The plain object is accepted."""
    kind()
    with pytest.raises(sj.InputError, match=text):
        kind(compiled=True)


def test_a_source_may_end() -> None:
    """After None nothing is sent; a source may send nothing at all."""

    class Three(sj.TrafficSource):
        number: int = 3

        def start(self) -> None:
            self.left = self.number

        def next_arrival(self, flow: Any) -> Any:
            self.left -= 1
            return (flow.now + 1e6, 1000) if self.left >= 0 else None

    for number in (0, 3):
        for more in ({}, {"tcp": "newreno"}):
            sim = sj.Simulation(with_source(SMALL, Three(number=number), count=1, **more))
            sim.run()
            sent = 1000 * number if more else 972 * number
            assert sim.flows["one"].delivered_bytes == sent


def test_a_flow_cannot_be_kept() -> None:
    """A flow that was kept can neither draw numbers outside of a call nor be copied."""
    kept: list[Any] = []

    class Keeps(sj.TrafficSource):
        def next_arrival(self, flow: Any) -> Any:
            self.flow = flow
            kept[:] = [flow]
            return flow.now + 1_000_000, 100

    sim = sj.Simulation(with_source(SMALL, Keeps()))
    sim.run_until("1s")
    with pytest.raises(RuntimeError, match=r"random\(\) works only in next_arrival"):
        kept[0].random()
    with pytest.raises(TypeError, match="Arrivals"):
        sim.fork()


class NoArrival(sj.TrafficSource):
    """Defines no next_arrival."""


class Raises(sj.TrafficSource):
    """Fails before the run."""

    def start(self) -> None:
        raise ValueError("no state")

    def next_arrival(self, flow: Any) -> Any:
        return None


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: my_source.Game(pauses="5ms"), TypeError, "no parameter .*did you mean"),
        (lambda: my_source.Game(pause="5"), sj.InputError, "Game.pause: "),
        (lambda: my_source.Game(start="later"), sj.InputError, "Game.start: "),
        (NoArrival, sj.InputError, "NoArrival has no next_arrival"),
        (Raises, sj.InputError, "no state"),
    ],
)
def test_invalid_classes_and_parameters_are_refused(make: Any, error: Any, text: str) -> None:
    """A class that cannot run is refused when the object is made."""
    with pytest.raises(error, match=text):
        make()


def test_classes_of_other_kinds_are_refused() -> None:
    """A discipline or a control is no source, and a name of a parameter may be in use."""
    for name in ("examples/my_aqm.py:HeadDrop", "examples/my_control.py:DelayTarget"):
        with pytest.raises(sj.InputError, match="has no TrafficSource"):
            sj.simulate(with_source(SMALL, name))
    with pytest.raises(sj.InputError, match='unknown parameter "pauses", did you mean "pause"'):
        sj.simulate(with_source(SMALL, "examples/my_source.py:Game(pauses=1s)"))
    with pytest.raises(TypeError, match="stop: the name is in use"):

        class Stop(sj.TrafficSource):
            stop: sj.Duration = "1s"


def test_code_of_the_page_runs(tmp_path: Path) -> None:
    """The block of docs/how-to/your-own-source.md runs."""
    page = tmp_path / "page.py"
    page.write_text("\n".join(blocks("python", "docs/how-to/your-own-source.md")))
    names = runpy.run_path(str(page))
    flows = [flow for name, flow in names["result"].flows.items() if name.startswith("sensors")]
    assert len(flows) == 5
    for flow in flows:
        assert flow.goodput_bps == pytest.approx(8 * (0.9 * 92 + 0.1 * 1372) / 0.02, rel=0.2)
    case = names["result"].scenario
    source = names["Telemetry"](interval="20ms", compiled=True)
    compiled = {**case, "flows": [{**case["flows"][0], "source": source}, case["flows"][1]]}
    assert sj.simulate(compiled).frame("flows").equals(names["result"].frame("flows"))
