"""Disciplines that are written in Python: same decisions as Rust, everywhere a name is allowed."""

import inspect
import json
import pickle
import random
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar

import pytest

import sojourn as sj
from conftest import Command
from examples import my_aqm
from sojourn.scenario.draft import parse

EXAMPLES = "examples/my_aqm.py"

CASES: dict[str, dict[str, Any]] = {
    "bulk": {
        "duration": "20s",
        "sample": "1s",
        "packet_log": True,
        "links": {"up": {"rate": "10mbit", "delay": "5ms"}},
        "flows": [{"name": "bulk", "count": 4, "path": ["up"], "rtt": "40ms"}],
    },
    "overload": {
        "duration": "10s",
        "sample": "100ms",
        "packet_log": True,
        "links": {"up": {"rate": "2mbit"}},
        "flows": [
            {"name": "flood", "source": "cbr(rate=3mbit)", "path": ["up"]},
            {"name": "bulk", "path": ["up"], "rtt": "100ms", "tcp": "cubic"},
        ],
    },
    "marks and pauses": {
        "duration": "20s",
        "sample": "500ms",
        "packet_log": True,
        "links": {"up": {"rate": "5mbit", "delay": "10ms"}},
        "flows": [
            {"name": "marked", "count": 3, "path": ["up"], "rtt": "30ms", "tcp": "cubic(ecn=true)"},
            {"name": "web", "source": "onoff(rate=2mbit)", "path": ["up"]},
        ],
    },
}

PAIRS: list[tuple[Any, Any]] = [
    (sj.CoDel(), my_aqm.MyCoDel()),
    (sj.CoDel(target="20ms", ecn=True), my_aqm.MyCoDel(target="20ms", ecn=True)),
    (sj.CoDel(limit="20p"), my_aqm.MyCoDel(limit="20p")),
    (sj.Pie(), my_aqm.MyPie()),
    (sj.Pie(ecn=True, target="30ms"), my_aqm.MyPie(ecn=True, target="30ms")),
]


def run(case: dict[str, Any], qdisc: Any) -> sj.Result:
    """Simulate a case with a discipline."""
    (link,) = case["links"].values()
    return sj.simulate({**case, "links": {"up": {**link, "qdisc": qdisc}}})


def raw(case: dict[str, Any], qdisc: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return summary and columns of a run as Rust returns them, without what names the AQM."""
    (link,) = case["links"].values()
    parsed = parse({**case, "links": {"up": {**link, "qdisc": qdisc}}})
    text, columns = parsed.simulate()
    summary = json.loads(text)
    del summary["scenario"], summary["links"]["up"]["qdisc"]
    return summary, dict(columns)


def test_the_page_shows_the_examples() -> None:
    """CoDel and PIE as they are in examples/my_aqm.py."""
    page = (Path(__file__).parent.parent / "docs/how-to/your-own-aqm.md").read_text()
    for law in (my_aqm.MyCoDel, my_aqm.MyPie):
        assert f"```python\n{inspect.getsource(law)}```" in page


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("rust", "python"), PAIRS, ids=lambda one: repr(one))
def test_codel_and_pie_in_python_give_the_bytes_of_rust(name: str, rust: Any, python: Any) -> None:
    """CoDel and PIE in Python decide like those in Rust: same packets, statistics, series."""
    summary, columns = raw(CASES[name], rust)
    ours, of_python = raw(CASES[name], python)
    assert ours == summary
    assert summary["links"]["up"]["departed_packets"] > 1000
    shared = set(columns) & set(of_python)
    assert set(columns) - shared == {k for k in columns if "gauge" in k} - shared
    for key in shared:
        assert columns[key].tobytes() == of_python[key].tobytes(), key


def test_examples_pass_the_property_tests() -> None:
    """The examples have all properties, with any parameters."""
    for one in (my_aqm.HeadDrop, my_aqm.MyCoDel, my_aqm.MyPie, my_aqm.MyPie(t_update="1ms")):
        checks = sj.check(one)
        assert checks, checks
        assert len(checks.checks) == 10
        assert "lets packets go" in repr(checks)


SMALL = {
    "duration": "2s",
    "links": {"up": {"rate": "10mbit"}},
    "flows": [{"name": "bulk", "path": ["up"], "rtt": "20ms"}],
}


class Returns(sj.Aqm):
    """Returns nonsense."""

    def on_enqueue(self, packet: Any, queue: Any) -> Any:
        return "maybe"


class ReturnsTrue(sj.Aqm):
    """Returns a flag."""

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        return packet.sojourn > 0


class Raises(sj.Aqm):
    """Raises an exception after a while."""

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        if queue.now > 1_000_000_000:
            raise RuntimeError("no")


class Keeps(sj.Aqm):
    """Never lets a packet go."""

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        return sj.DROP


class Grows(sj.Aqm):
    """Grows without bound, and keeps its arguments."""

    def start(self) -> None:
        self.seen: list[Any] = []

    def on_enqueue(self, packet: Any, queue: Any) -> Any:
        self.seen.append((packet.size, queue.now))


class DrawsElsewhere(sj.Aqm):
    """Draws from the random numbers of Python."""

    def on_enqueue(self, packet: Any, queue: Any) -> Any:
        return sj.DROP if random.random() < 0.1 else sj.PASS


class HasGenerator(sj.Aqm):
    """Has a random number generator of its own."""

    def start(self) -> None:
        self._rng = random.Random(1)

    def on_enqueue(self, packet: Any, queue: Any) -> Any:
        return sj.DROP if self._rng.random() < 0.1 else sj.PASS


class BreaksPromise(sj.Aqm):
    """Drops at dequeue in spite of `decides_at_enqueue`."""

    decides_at_enqueue = True

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        return sj.DROP


class ChangesType(sj.Aqm):
    """Makes a gauge that is not a number."""

    def start(self) -> None:
        self.level = 0

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        self.level = "high"  # type: ignore[assignment]


class Shares(sj.Aqm):
    """Has its state in the class, so that all queues share it."""

    seen: ClassVar[list[int]] = []

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        self.seen.append(queue.now)
        return sj.DROP if len(self.seen) % 7 == 0 else sj.PASS


class NoStart(sj.Aqm):
    """Reads state that `start` does not assign."""

    def on_enqueue(self, packet: Any, queue: Any) -> Any:
        self.count += 1  # type: ignore[attr-defined]


class NoCopy(sj.Aqm):
    """Has state that cannot be copied."""

    def start(self) -> None:
        self._lock = threading.Lock()

    def on_update(self, queue: Any) -> None:
        pass


class SharedCopy(sj.Aqm):
    """Has copies that share its state."""

    def start(self) -> None:
        self.count = 0

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        self.count += 1
        return sj.DROP if self.count % 4 == 0 else sj.PASS


MISBEHAVIOUR: dict[type[sj.Aqm], tuple[str, str]] = {
    Returns: ("makes valid decisions", "returned 'maybe', allowed: PASS, MARK"),
    ReturnsTrue: ("makes valid decisions", "returned False, allowed"),
    Raises: ("makes valid decisions", "RuntimeError: no (in on_dequeue of "),
    Keeps: ("lets packets go", "0 % of the packets pass"),
    Grows: ("has a bounded state", "the state grows from"),
    DrawsElsewhere: ("repeats with the same seed", "dropped differs between two runs"),
    HasGenerator: ("draws from queue.random() only", "self._rng is a random number generator"),
    BreaksPromise: ("makes valid decisions", "decides_at_enqueue is True, so only on_enqueue"),
    ChangesType: (
        "makes valid decisions",
        "self.level was a number at the start and is now 'high'",
    ),
    Shares: ("repeats with the same seed", "differs between two runs"),
    NoStart: ("makes valid decisions", "has no attribute 'count'"),
    SharedCopy: ("can be copied", "copies share state"),
    NoCopy: ("makes valid decisions", "cannot pickle '_thread.lock' object (in a copy of"),
}


@pytest.mark.parametrize("kind", MISBEHAVIOUR, ids=lambda kind: kind.__name__)
def test_misbehaviour_has_a_clear_answer(kind: type[sj.Aqm]) -> None:
    """Each kind of misbehaviour fails the test that is meant for it, with a reason."""
    name, text = MISBEHAVIOUR[kind]
    checks = sj.check(kind, packets=400)
    assert not checks
    failures = {one.name: one.failure for one in checks.failed}
    assert text in failures[name], checks


def test_an_exception_ends_the_run_with_its_traceback_and_the_simulated_time() -> None:
    """An exception is raised as it is, with a note."""
    with pytest.raises(RuntimeError, match=r"^no") as raised:
        run(SMALL, Raises())
    assert raised.traceback[-1].name == "on_dequeue"
    (note,) = raised.value.__notes__
    assert note.startswith("in on_dequeue of ")
    assert ", at 1.00" in note
    # The next run on this thread is not affected.
    assert run(SMALL, "codel").links["up"].departed_packets > 1000
    with pytest.raises(TypeError, match=r"self\.level was a number"):
        run({**SMALL, "sample": "100ms"}, ChangesType())
    with pytest.raises(RuntimeError, match=r"^no"):
        sj.simulate_many([SMALL, {**SMALL, "links": {"up": {"rate": "10mbit", "qdisc": Raises()}}}])


def test_a_packet_that_is_kept_keeps_its_values() -> None:
    """An argument that outlives the call is not reused."""
    kept: list[Any] = []

    class Collects(sj.Aqm):
        def on_enqueue(self, packet: Any, queue: Any) -> None:
            kept.append((packet, packet.arrived, queue, queue.now))

    run(SMALL, Collects())
    assert len(kept) > 1000
    assert all(p.arrived == arrived and q.now == now for p, arrived, q, now in kept)
    with pytest.raises(RuntimeError, match=r"random\(\) works only in on_enqueue"):
        kept[0][2].random()


def test_a_subclass_changes_a_default() -> None:
    """An assignment changes a default, with or without the type."""

    class Fast(my_aqm.MyCoDel):
        target = "1ms"
        interval: sj.Duration = "20ms"

    ours = raw(SMALL, Fast())[0]
    assert ours == raw(SMALL, my_aqm.MyCoDel(target="1ms", interval="20ms"))[0]
    assert ours != raw(SMALL, my_aqm.MyCoDel())[0]


def test_state_is_recorded_in_series() -> None:
    """Numbers that `start` assigns are gauges."""
    columns = raw({**SMALL, "sample": "100ms"}, my_aqm.MyCoDel(target="1ms", interval="20ms"))[1]
    gauges = {name.removeprefix("links/up/gauge/"): column for name, column in columns.items()}
    assert max(gauges["count"]) > 0
    assert not any(name.startswith("_") for name in gauges)


def test_comparisons_and_labels() -> None:
    """Comparisons take objects, and label them by class and parameters."""
    mine = my_aqm.MyCoDel(target="20ms")
    runs = sj.compare(SMALL, {"codel": sj.CoDel(target="20ms"), "mine": mine})
    rust, python = (runs[name][0].summary["links"]["up"] for name in ("codel", "mine"))
    assert {**rust, "qdisc": ""} == {**python, "qdisc": ""}
    labels = list(sj.compare(SMALL, [my_aqm.MyCoDel(), mine, "codel"]))
    assert labels == ["examples.my_aqm:MyCoDel", "examples.my_aqm:MyCoDel(target=20ms)", "codel"]


def test_evaluations_take_objects(tmp_path: Path) -> None:
    """The test suite of RFC 7928 runs on a class; stored runs of it are reused."""
    one = my_aqm.HeadDrop(target="20ms")
    evaluations = [
        sj.evaluate({"mine": one}, quick=True, only=["A1"], out=tmp_path) for _ in range(2)
    ]
    assert [evaluation.made for evaluation in evaluations] == [8, 0]
    rust, python = (evaluations[0].lines[0].answers[name].values for name in ("droptail", "mine"))
    assert rust.keys() == python.keys()
    assert all(python[seed] < 0.2 * rust[seed] for seed in rust)
    assert evaluations[0].rows.equals(evaluations[1].rows)


def test_other_processes_get_the_class_with_the_scenario(tmp_path: Path) -> None:
    """A class of a script is pickled with what it uses."""
    script = tmp_path / "script.py"
    script.write_text(
        "import math, pickle, sys\n"
        "import sojourn as sj\n"
        "SCALE = 2\n"
        "def twice(x):\n    return math.ceil(SCALE * x) if x else thrice(1)\n"
        "def thrice(x):\n    return x + twice(x)\n"
        "class Base(sj.Aqm):\n"
        "    target: sj.Duration = '5ms'\n"
        "    def is_late(self, packet):\n"
        "        return packet.sojourn > twice(self.target)\n"
        "class Mine(Base):\n"
        "    def on_dequeue(self, packet, queue):\n"
        "        return sj.DROP if self.is_late(packet) else sj.PASS\n"
        f"case = {SMALL!r}\n"
        "case['links']['up']['qdisc'] = Mine(target='4ms')\n"
        "from sojourn.scenario.draft import parse\n"
        "parsed = parse(case)\n"
        "pickle.dump((parsed, parsed.simulate()[0]), open(sys.argv[1], 'wb'))\n"
    )
    subprocess.run([sys.executable, script, tmp_path / "parsed"], check=True)
    parsed, expected = pickle.loads((tmp_path / "parsed").read_bytes())
    assert parsed.simulate()[0] == expected
    assert json.loads(expected)["links"]["up"]["dropped_late_packets"] > 0


@pytest.mark.parametrize("how", ["spawn", "fork"])
def test_sweeps_in_processes(how: str) -> None:
    """Processes give the same rows as threads."""
    axes = {"up.qdisc": [my_aqm.HeadDrop(), my_aqm.HeadDrop(target="20ms"), "codel"]}
    here = sj.sweep(SMALL, axes=axes)
    with ProcessPoolExecutor(2, mp_context=get_context(how)) as executor:
        there = sj.sweep(SMALL, axes=axes, executor=executor)
    assert here.equals(there)
    assert here["up.qdisc"].n_unique() == 3


def test_the_command_takes_a_class_of_a_file(sojourn: Command, tmp_path: Path) -> None:
    """FILE.py:CLASS is a discipline; errors show the line of the file."""
    case = tmp_path / "case.json"
    case.write_text(json.dumps(SMALL))
    mine = tmp_path / "mine.py"
    mine.write_text(Path(EXAMPLES).read_text())
    code, out, err = sojourn("compare", case, "--qdisc", f"codel,{mine}:MyCoDel", "--json")
    rust, python = json.loads(out)["runs"].values()
    assert {**rust["links"]["up"], "qdisc": 0} == {**python["links"]["up"], "qdisc": 0}
    mine.write_text("import sojourn as sj\nclass A(sj.Aqm):\n    def start(self):\n        1 / 0\n")
    code, out, err = sojourn("run", case, "--qdisc", f"{mine}:A")
    assert code == 2
    assert "ZeroDivisionError: division by zero" in err
    assert "mine.py, line 4" in err
    mine.write_text(
        "import sojourn as sj\nclass A(sj.Aqm):\n    def on_dequeue(self, p, q):\n        1 / 0\n"
    )
    code, out, err = sojourn("run", case, "--qdisc", f"{mine}:A")
    assert code == 2
    assert "fault in sojourn" not in err
    assert 'mine.py", line 4, in on_dequeue' in err
    assert "of simulated time" in err
    assert "sojourn/engines" not in err


def test_an_edited_class_is_another_discipline(tmp_path: Path) -> None:
    """A scenario names the version of the class."""
    mine = tmp_path / "mine.py"
    text = "import sojourn as sj\nclass A(sj.Aqm):\n    level: int = 5\n"
    mine.write_text(text)
    first = run(SMALL, f"{mine}:A")
    mine.write_text(text.replace("5", "6"))
    second = run(SMALL, f"{mine}:A")
    assert first.scenario != second.scenario
    assert second.scenario["links"]["up"]["qdisc"]["level"] == 6
    # The version that a scenario names is used while the process knows it.
    assert sj.simulate(first.scenario).scenario == first.scenario
    old = json.loads(
        json.dumps(first.scenario).replace(
            first.scenario["links"]["up"]["qdisc"]["source"], "0123456789abcdef"
        )
    )
    with pytest.raises(sj.InputError, match="has changed since this was written"):
        sj.simulate(old)


def test_a_simulation_in_steps_can_be_copied() -> None:
    """A fork has a copy of the object, and continues like the original."""
    link = {"rate": "10mbit", "qdisc": my_aqm.MyPie(target="2ms")}
    case = {**SMALL, "sample": "100ms", "links": {"up": link}}
    whole = sj.simulate(case)
    simulation = sj.Simulation(case)
    simulation.run_until("1s")
    fork = simulation.fork()
    simulation.run_until("2s")
    fork.run_until("2s")
    assert simulation.result().summary == fork.result().summary == whole.summary

    broken = sj.Simulation({**SMALL, "links": {"up": {"rate": "10mbit", "qdisc": Raises()}}})
    broken.run_until("900ms")
    with pytest.raises(RuntimeError, match=r"^no"):
        broken.run_until("2s")
    with pytest.raises(RuntimeError, match="ended with an exception"):
        broken.run_until("2s")
