"""Runs of one scenario on several threads: the same bytes, refused values, stops."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn.scenario.draft import parse

TREE = sj.fat_tree(4, rate="1gbit", delay="50us", duration="20ms", sample="5ms", packet_log=True)
"""Scenario that can be divided."""

AQM = '''\
import threading

import sojourn as sj

seen = set()


class Watched(sj.Aqm):
    """Discipline that notes the threads that call it."""

    def on_enqueue(self, packet, queue):
        seen.add(threading.get_ident())
        return sj.PASS
'''


def same(one: sj.Result, other: sj.Result) -> None:
    """Assert that two results are equal in every byte of the summary and in every column."""
    assert json.dumps(one.summary) == json.dumps(other.summary)
    for table in ("links", "flows", "series", "group_series", "packet_log", "fct"):
        assert one.frame(table).equals(other.frame(table), null_equal=True), table


@pytest.fixture(scope="module")
def expected() -> sj.Result:
    """Return the result of one thread."""
    return sj.simulate(TREE, threads=1)


def test_the_scenario_is_divided() -> None:
    """Otherwise the other tests would compare one thread with itself."""
    parsed = parse(TREE)
    assert [_sojourn.Simulation(parsed, count).parts for count in (1, 2, 3)] == [1, 2, 3]


@pytest.mark.parametrize("threads", [2, 3, "auto"])
def test_the_result_does_not_depend_on_the_threads(threads: Any, expected: sj.Result) -> None:
    """The summary and every column, packet log and series included."""
    same(sj.simulate(TREE, threads=threads), expected)


def test_steps_on_two_threads(expected: sj.Result) -> None:
    """Steps, forks and looks at links give the result of one run on one thread."""
    sim = sj.Simulation(TREE, threads=2)
    link = next(iter(sim.links))
    while not sim.ended:
        sim.step("3ms")
        assert sim.links[link].rate_bps == 1e9
        sim = sim.fork()
    assert sim._compiled.parts == 2
    same(sim.result(), expected)


def test_a_flow_added_on_two_threads() -> None:
    """A simulation that is made again has the number of threads of the first."""
    results = []
    for threads in (1, 2):
        sim = sj.Simulation(TREE, threads=threads)
        sim.run_until("5ms")
        sim.add_flow({**sim.scenario["flows"][0], "name": "late"})
        assert sim._compiled.parts == threads
        results.append(sim.run())
    same(*results)


@pytest.mark.parametrize("threads", [0, -1, 1025, 10**30, 1.5, True, None, "2", "many", [2]])
def test_other_values_are_refused(threads: Any) -> None:
    """The message has the field, the value and what is allowed, in Python and on the command."""
    allowed = 'is not "auto" or a whole number from 1 to 1024'
    for run in (sj.simulate, sj.Simulation):
        with pytest.raises(InputError) as refusal:
            run(TREE, threads=threads)
        assert str(refusal.value).startswith("threads: ")
        assert str(refusal.value).endswith(allowed)


@pytest.mark.parametrize("text", ["0", "-1", "1025", "9" * 30, "1.5", "", "many", "two"])
def test_the_command_refuses_other_values(text: str) -> None:
    """Exit code 2 and one line."""
    done = command("run", "fat_tree", f"--threads={text}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "--threads: " in done.stderr
    assert text[:20] in done.stderr
    assert "a whole number from 1 to 1024" in done.stderr


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    program = [sys.executable, "-m", "sojourn", *arguments]
    return subprocess.run(program, capture_output=True, text=True, check=False)


def test_the_command_prints_the_same_on_every_number_of_threads(tmp_path: Path) -> None:
    """Its JSON, and the tables of the folder of the run."""
    file = tmp_path / "tree.toml"
    sj.save_scenario(TREE.replace(duration="5ms"), file)
    outputs, tables = set(), []
    for threads in ("1", "2", "3", "auto"):
        out = tmp_path / threads
        done = command("run", str(file), "--json", "--threads", threads, "--out", str(out))
        assert done.returncode == 0, done.stderr
        outputs.add(done.stdout)
        tables.append({path.name: pl.read_parquet(path) for path in out.glob("*.parquet")})
    assert len(outputs) == 1
    assert tables[0]
    for table in tables[1:]:
        assert table.keys() == tables[0].keys()
        assert all(frame.equals(tables[0][name]) for name, frame in table.items())


def test_threads_of_real_packets_are_refused(tmp_path: Path) -> None:
    """There is nothing to divide."""
    done = command("run", "home_uplink", "--engine", "live", "--threads", "2")
    assert done.returncode == 2
    assert done.stderr == "sojourn: --threads: has no effect with --engine live\n"


def test_a_discipline_in_python_has_one_thread(tmp_path: Path) -> None:
    """It is called by the thread of the caller, and the result is the same."""
    file = tmp_path / "watched.py"
    file.write_text(AQM)
    case = sj.fat_tree(4, duration="2ms", qdisc=f"{file}:Watched")
    assert sj.Simulation(case, trust=True, threads=2)._compiled.parts == 1
    one, two = (sj.simulate(case, trust=True, threads=threads) for threads in (1, 2))
    same(one, two)
    called_by = {t for m in list(sys.modules.values()) for t in getattr(m, "seen", ())}
    assert called_by == {threading.get_ident()}


def test_an_error_in_a_discipline_in_python_ends_a_run_on_two_threads(tmp_path: Path) -> None:
    """The exception reaches the caller."""
    file = tmp_path / "failing.py"
    file.write_text(AQM.replace("return sj.PASS", "raise ZeroDivisionError('later')"))
    case = sj.fat_tree(4, duration="2ms", qdisc=f"{file}:Watched")
    with pytest.raises(ZeroDivisionError, match="later"):
        sj.simulate(case, trust=True, threads=2)


def test_progress_stops_a_run_on_two_threads() -> None:
    """A callable that returns False; an exception in it ends the run as well."""
    long = sj.fat_tree(4, rate="1gbit", delay="50us", duration="100s")
    shares: list[float] = []

    def stop(share: float) -> bool:
        shares.append(share)
        return len(shares) < 5

    with pytest.raises(KeyboardInterrupt):
        sj.simulate(long, threads=2, progress=stop)
    assert shares == sorted(shares)
    assert shares[-1] < 0.5

    def fail(share: float) -> bool:
        raise ZeroDivisionError(share)

    with pytest.raises(ZeroDivisionError):
        sj.simulate(long, threads=2, progress=fail)


def test_ctrl_c_stops_a_run_on_two_threads() -> None:
    """The command ends with the exit code of an interrupted command."""
    program = (
        "import os, signal, threading, sojourn as sj\n"
        "case = sj.fat_tree(4, rate='1gbit', delay='50us', duration='100s')\n"
        "threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    sj.simulate(case, threads=2)\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "interrupted\n"


def test_a_stopped_step_on_two_threads_can_be_continued(expected: sj.Result) -> None:
    """The state after a stop is exact."""
    sim = sj.Simulation(TREE, threads=2)
    calls = 0

    def stop(share: float, packets: int) -> bool:
        nonlocal calls
        calls += 1
        return calls % 2 == 0

    stops = 0
    while not sim.ended:
        try:
            sim.run_until("20ms", progress=stop)
        except KeyboardInterrupt:
            stops += 1
    assert stops
    same(sim.result(), expected)


def test_many_scenarios_at_once_have_one_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps and comparisons use the cores for runs, not for threads of a run."""
    from sojourn.engines import simulate

    counts = []

    class Parsed:
        """Scenario that notes the arguments of its run."""

        def __init__(self, parsed: Any) -> None:
            self.parsed = parsed

        def simulate(self, *arguments: Any) -> Any:
            counts.append(len(arguments))
            return self.parsed.simulate(*arguments)

    parsed = [Parsed(parse(TREE)) for _ in range(2)]
    results: Any = simulate.run_parsed(parsed, [0.02, 0.02])  # type: ignore[arg-type]
    assert counts == [1, 1], "only a progress function"
    same(*results)
