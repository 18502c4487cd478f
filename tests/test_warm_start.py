"""Warm starts: runs and sweeps that continue from a saved state."""

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn._sojourn import InputError
from sojourn._util.workers import Workers
from sojourn.sweeps.store import Store
from support.sweep_cases import ran

CASE: dict[str, Any] = {
    "name": "warm",
    "duration": "6s",
    "warmup": "1s",
    "seed": 3,
    "links": {"up": {"rate": "5mbit", "delay": "5ms", "qdisc": "codel", "loss": 0.001}},
    "flows": [
        {"name": "bulk", "count": 2, "path": ["up"], "rtt": "30ms", "tcp": "cubic"},
        {"name": "web", "count": 3, "path": ["up"], "rtt": "uniform(20ms, 30ms)", "source": "web"},
    ],
}

AXES = {"up.qdisc.target": ["1ms", "5ms", "20ms"], "up.rate": ["4mbit", "5mbit"]}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Save the state at 4 s."""
    path = tmp_path / "warm.snapshot"
    simulation = sj.Simulation(CASE)
    simulation.run_until("4s")
    simulation.save(path)
    return path


def edited(**keys: Any) -> dict[str, Any]:
    """Return the case with keys of the link."""
    return {**CASE, "links": {"up": {**CASE["links"]["up"], **keys}}}


def test_a_run_equals_a_run_from_the_start_of_its_scenario(state: Path) -> None:
    """Without a difference that is the uninterrupted run, measured from the state on."""
    same = sj.simulate(CASE, warm_from=state)
    assert same.summary == sj.simulate({**CASE, "warmup": "4s"}).summary
    changed = sj.simulate({**edited(qdisc="codel(target=20ms)"), "seed": 8}, warm_from=state)
    assert changed.scenario["warm_from"] == {"at": "4s", "seed": 3}
    assert changed.scenario["warmup"] == "4s"
    assert [change["at"] for change in changed.scenario["changes"]] == ["4s"]
    assert changed.summary == sj.simulate(changed.scenario).summary
    assert changed.links["up"].sojourn_p99_s > same.links["up"].sojourn_p99_s
    in_memory = sj.Simulation.load(state)
    assert sj.simulate(CASE, warm_from=in_memory).summary == same.summary
    assert in_memory.now == 4


def test_a_later_warmup_and_another_duration_apply(state: Path) -> None:
    """The measurement starts at the later one of warm-up and state."""
    case = {**CASE, "warmup": "5s", "duration": "9s"}
    warm = sj.simulate(case, warm_from=state)
    assert warm.summary == sj.simulate(case).summary


def rows_of(executor: Any = None, **more: Any) -> Any:
    """Return the table of a sweep."""
    return sj.sweep(CASE, AXES, seeds=2, executor=executor, **more)


def test_threads_processes_and_a_cluster_give_the_same_rows(state: Path) -> None:
    """Each run has the result of `simulate`."""
    rows = rows_of(warm_from=state)
    assert len(rows) == 12
    assert rows.n_unique("sojourn_p99_s") == 12
    first = rows.row(0, named=True)
    case = edited(qdisc="codel(target=1ms)", rate="4mbit")
    assert first["sojourn_p99_s"] == sj.simulate(case, warm_from=state).links["up"].sojourn_p99_s
    with Workers(2) as executor:
        assert rows_of(executor, warm_from=state).equals(rows)
    distributed: Any = importlib.import_module("distributed")
    with (
        distributed.LocalCluster(n_workers=2, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert rows_of(client.get_executor(), warm_from=state).equals(rows)


def test_a_time_stands_for_the_state_of_the_scenario_then(state: Path) -> None:
    """A sweep from 4 s on has the rows of a sweep from the file."""
    assert rows_of(warm_from="4s").equals(rows_of(warm_from=state))


def test_the_command_continues_a_store_and_keeps_it_apart(state: Path, tmp_path: Path) -> None:
    """A repetition makes no run; runs from the start are other runs."""
    (tmp_path / "case.json").write_text(json.dumps(CASE))
    text = 'scenario = "case.json"\nseeds = 2\n[axes]\n"up.qdisc.target" = ["1ms", "9ms"]\n'
    (tmp_path / "cold.toml").write_text(text)
    (tmp_path / "warm.toml").write_text(f'warm_from = "{state.name}"\n{text}')
    out = ("--out", tmp_path / "runs")
    assert "4 of 4 runs made" in ran("sweep", tmp_path / "warm.toml", *out).stdout
    assert "0 of 4 runs made" in ran("sweep", tmp_path / "warm.toml", *out).stdout
    from_time = ran("sweep", tmp_path / "cold.toml", "--warm-from", "4s", *out)
    assert "0 of 4 runs made" in from_time.stdout, from_time.stderr
    cold = ran("sweep", tmp_path / "cold.toml", *out)
    assert "holds the runs of a sweep of another scenario" in cold.stderr
    assert "0 of 4 runs made" in ran("sweep", tmp_path / "warm.toml", *out).stdout
    rows = Store(tmp_path / "runs").rows()
    own = ran("run", tmp_path / "case.json", "--warm-from", state, "--json")
    assert json.loads(own.stdout)["scenario"]["warmup"] == "4s"
    assert len(rows) == 4


def refused(work: Callable[[], object]) -> str:
    """Return the message of a refusal."""
    with pytest.raises(InputError) as error:
        work()
    return str(error.value)


def test_what_cannot_change_is_refused(state: Path, tmp_path: Path) -> None:
    """The message has the path, both values, what is allowed, and the point of a sweep."""

    def run(case: Any, source: Any = state) -> str:
        return refused(lambda: sj.simulate(case, warm_from=source))

    def sweep(axes: Any, source: Any = state) -> str:
        return refused(lambda: sj.sweep(CASE, axes, warm_from=source))

    allowed = (
        "a warm start can change seed, duration, warmup, and of links rate, delay, impairments and "
        "parameters of the discipline"
    )
    more = sweep({"bulk.count": [2, 4]})
    assert more == (
        f"flows.bulk.count: is 4, and 2 in the warm state; {allowed} (at bulk.count = 4)"
    )
    assert sweep({"up.qdisc": ["codel", "pie"]}).startswith(
        'links.up.qdisc.name: is "pie", and "codel" in the warm state; '
    )
    assert run(edited(jitter="1ms")).startswith("links.up: has no wire in this simulation: ")
    assert run({**CASE, "sample": "1s"}).startswith('sample: is "1s", and is not set in the warm')
    assert run({**CASE, "duration": "4s"}) == (
        "duration: 4s is not after the time of the warm state, 4s"
    )
    assert run(CASE, 4).startswith("warm_from: 4 is not a file, nor a simulation")
    assert run(CASE, "4s") == 'warm_from: "4s" is a time: only a sweep can start there'
    assert run(CASE, "none") == "none: no such file or directory"
    assert sweep(AXES, "7s") == "warm_from: 7s is after the end at 6s"
    assert sweep(AXES, "6s") == "the run of the warm state ended at 6s"
    other = tmp_path / "other"
    other.write_bytes(b"text")
    assert run(CASE, other) == f"{other}: snapshot: is not a snapshot of sojourn"
    (tmp_path / "case.json").write_text(json.dumps({**CASE, "duration": "3s"}))
    done = ran("run", tmp_path / "case.json", "--warm-from", state)
    assert f"{tmp_path / 'case.json'}: duration: 3s is not after the time" in done.stderr
    live = ran("run", tmp_path / "case.json", "--warm-from", state, "--engine", "live")
    assert "--warm-from: has no effect with --engine live" in live.stderr


class Counting(sj.Aqm):
    """Drop every n-th packet."""

    n: int = 50

    def start(self) -> None:
        """Set the state."""
        self.count = 0

    def on_enqueue(self, packet: Any, queue: Any) -> int:
        """Decide."""
        self.count += 1
        return sj.DROP if self.count % self.n == 0 else sj.PASS


class Keeps(Counting):
    """Keep an object that cannot be saved."""

    def start(self) -> None:
        """Set the state."""
        super().start()
        self.path = Path("x")


def test_classes_in_python_keep_their_state_when_the_seed_changes(tmp_path: Path) -> None:
    """Their attributes are not random numbers; a file that names them requires trust."""
    case = edited(qdisc=Counting())
    simulation = sj.Simulation(case)
    simulation.run_until("2s")
    warm = sj.simulate({**edited(qdisc=Counting(n=20)), "seed": 9}, warm_from=simulation)
    cold = sj.simulate(warm.scenario)
    assert warm.summary == cold.summary
    past = {"at": "2s", "seed": 3}
    kept = sj.simulate({**edited(qdisc=Keeps()), "seed": 9, "warm_from": past, "warmup": "2s"})
    assert kept.flows == sj.simulate({**case, "seed": 9}, warm_from=simulation).flows
    script = "import sys, sojourn as sj\nsj.simulate(sys.argv[1], warm_from=sys.argv[2])\n"
    own = f"{Path(__file__).parent.parent / 'examples/my_aqm.py'}:HeadDrop"
    (tmp_path / "own.json").write_text(json.dumps(edited(qdisc=own)))
    simulation = sj.Simulation(tmp_path / "own.json", trust=True)
    simulation.run_until("1s")
    simulation.save(tmp_path / "warm")
    (tmp_path / "case.json").write_text(json.dumps(CASE))
    words = [sys.executable, "-c", script, str(tmp_path / "case.json"), str(tmp_path / "warm")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "is Python code that" in done.stderr
    assert "it runs only with --trust" in done.stderr


def test_seeds_without_randomness_after_the_state_give_a_warning() -> None:
    """The advice is another one than for runs from the start."""
    flow = {"name": "f", "count": 2, "path": ["up"], "rtt": "uniform(20ms, 60ms)"}
    case = {"duration": "3s", "links": {"up": {"rate": "2mbit"}}, "flows": [flow]}
    with pytest.warns(sj.ScenarioWarning, match="nothing is random after the warm state, so"):
        rows = sj.sweep(case, {"up.delay": ["1ms", "2ms"]}, seeds=2, warm_from="2s")
    assert rows["goodput_bps"].n_unique() == 2
