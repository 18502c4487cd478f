"""Runs that fail: the others go on, failures are recorded, listed, and repeated alone."""

import json
import os
import signal
import subprocess
import time
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import sojourn as sj
from sojourn.evaluation import run as evaluation_run
from sojourn.recommendation import objective
from sojourn.sweeps.failures import LISTED, Failure, fault_of, listed
from sojourn.sweeps.runner import Run, campaign
from sojourn.sweeps.spec import make_sweep, run_sweep
from sojourn.sweeps.store import FAILED, Store
from support.processes import children, is_alive, wait_until_gone
from support.sweep_cases import CASE, RAISES, SEEDS, command, csv, failed_seeds, failing, ran


def test_a_failing_run_does_not_end_a_sweep(tmp_path: Path) -> None:
    """Exit code 1, a line for each failure; the next call repeats the failures only."""
    file, out = failing(tmp_path), tmp_path / "out"
    done = ran("sweep", file, "--trust", "--out", out)
    assert done.returncode == 1, done.stderr
    seeds = failed_seeds(out)
    assert 0 < len(seeds) < SEEDS
    head, *lines = done.stderr.splitlines()
    assert head == (
        f"sojourn: {len(seeds)} of {2 * SEEDS} runs failed; the others are in {out}, the same "
        "command repeats only those that failed"
    )
    assert len(lines) == len(seeds)
    for line, seed in zip(lines, seeds, strict=True):
        assert f"qdisc=own, seed {seed}: ValueError: unlucky (own.py:13, in on_enqueue" in line
    runs = 2 * SEEDS - len(seeds)
    assert f"{runs} of {2 * SEEDS} runs made, {len(seeds)} failed" in done.stdout
    again = json.loads(ran("sweep", file, "--trust", "--out", out, "--json").stdout)
    assert (again["runs"], again["made"]) == (runs, 0)
    assert sorted(one["seed"] for one in again["failed"]) == seeds
    assert set(sj.results(out, failed=True)["failure_attempt"]) == {2}
    # The cause is mended: only the failed runs are executed, and none is reported any more.
    (tmp_path / "fails").unlink()
    done = ran("sweep", file, "--trust", "--out", out)
    assert done.returncode == 0, done.stderr
    assert f"{len(seeds)} of {2 * SEEDS} runs made, " in done.stdout
    assert ran("results", out).stderr == ""
    with pytest.raises(sj.InputError, match="no failed runs"):
        sj.results(out, failed=True)
    ran("sweep", file, "--trust", "--out", tmp_path / "whole")
    assert csv(out) == csv(tmp_path / "whole")


def test_tables_and_figures_leave_failed_runs_out_and_say_so(tmp_path: Path) -> None:
    """Also other programs that read the parts."""
    file, out = failing(tmp_path), tmp_path / "out"
    ran("sweep", file, "--trust", "--out", out)
    runs = 2 * SEEDS - len(failed_seeds(out))
    message = f"sojourn: {out}: {2 * SEEDS - runs} failed runs are left out"
    shown = ran("results", out, "--by", "qdisc")
    assert (shown.returncode, shown.stderr.startswith(message)) == (0, True)
    drawn = ran("plot", out, "--y", "utilisation", "--x", "qdisc", "--out", tmp_path / "a.png")
    assert (drawn.returncode, drawn.stderr.startswith(message)) == (0, True), drawn.stderr
    assert sj.results(out).height == runs
    assert pl.read_parquet(f"{out}/*.parquet").height == runs
    assert len(pd.read_parquet(out)) == runs
    why = ran("results", out, "--failed", "--where", f"seed={failed_seeds(out)[0]}")
    assert "unlucky (own.py:13" in why.stdout, why.stderr
    assert not list(Store(out / FAILED).directory.glob("_sweep-*"))


def test_all_runs_may_fail(tmp_path: Path) -> None:
    """One line says so, and --force removes the failures of another scenario."""
    fails = 'pass\n        if Path({!r}, "fails").exists():\n            {}'
    file, out = failing(tmp_path, fails.format(str(tmp_path), RAISES), seeds=2), tmp_path / "out"
    file.write_text(file.read_text().replace('tail = "droptail", ', ""))
    done = ran("sweep", file, "--trust", "--out", out)
    assert (done.returncode, done.stdout) == (1, "")
    assert "2 of 2 runs failed" in done.stderr
    shown = ran("results", out)
    assert shown.returncode == 2
    assert "all runs failed" in shown.stderr
    (tmp_path / "case.json").write_text(json.dumps({**CASE, "duration": "1s"}))
    (tmp_path / "fails").unlink()
    assert ran("sweep", file, "--trust", "--out", out, "--force").returncode == 0
    assert ran("results", out).stderr == ""


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        ("os._exit(3)", "WorkerDied: the worker process ended with exit code 3"),
        ("os.kill(os.getpid(), 11)", "WorkerDied: the worker process was killed by SIGSEGV"),
    ],
)
def test_the_death_of_a_worker_is_a_failure_of_its_run(
    tmp_path: Path, fails: str, message: str
) -> None:
    """The same seeds fail as with an exception, and the others have the same rows."""
    file = failing(tmp_path, fails)
    done = ran("sweep", file, "--trust", "--out", tmp_path / "out", "--processes", "--jobs", 2)
    assert done.returncode == 1
    seeds = failed_seeds(tmp_path / "out")
    assert done.stderr.count(message) == len(seeds)
    raising = tmp_path / "raising"
    raising.mkdir()
    ran("sweep", failing(raising), "--trust", "--out", raising / "out")
    assert failed_seeds(raising / "out") == seeds
    measured = [sj.results(one / "out").drop("key", "code") for one in (tmp_path, raising)]
    assert measured[0].equals(measured[1])


def test_workers_end_with_a_killed_sweep(tmp_path: Path) -> None:
    """Nothing of it remains."""
    file = failing(tmp_path, seeds=5000)
    line = command("sweep", file, "--trust", "--out", tmp_path / "out", "--processes", "--jobs", 2)
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        while not list((tmp_path / "out").glob("*.parquet")):
            time.sleep(0.05)
        below = children(running.pid)
        assert len(below) >= 2
        running.kill()
    wait_until_gone(below)
    assert not any(map(is_alive, below))


def test_ctrl_c_says_that_the_same_command_continues(tmp_path: Path) -> None:
    """With processes, which the terminal interrupts as well."""
    file, out = failing(tmp_path, seeds=5000), tmp_path / "out"
    running = subprocess.Popen(
        command("sweep", file, "--trust", "--out", out, "--processes", "--jobs", 2),
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while not list(out.glob("*.parquet")):
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    kept = f"finished runs are in {out}, the same command continues"
    assert errors == f"sojourn: interrupted; {kept}\n"


def test_python_gets_an_exception_with_what_is_computed(tmp_path: Path) -> None:
    """A sweep and a comparison, without a folder."""
    failing(tmp_path)
    own = f"{tmp_path}/own.py:Own"
    with pytest.raises(sj.RunError, match="of 24 runs failed\n") as caught:
        sj.sweep(CASE, {"up.qdisc": ["droptail", own]}, seeds=SEEDS)
    failures = caught.value.failures
    assert {one.labels["up.qdisc"] for one in failures} == {own}
    assert caught.value.partial.height == 2 * SEEDS - len(failures)
    with pytest.raises(sj.RunError, match=r"qdisc=own, seed \d+") as compared:
        sj.compare(CASE, f"droptail,own={own}", seeds=SEEDS)
    assert [one.seed for one in compared.value.failures] == [one.seed for one in failures]
    partial = compared.value.partial
    assert [len(results) for results in partial.values()] == [SEEDS, SEEDS - len(failures)]


def test_a_comparison_keeps_and_shows_the_other_runs(tmp_path: Path) -> None:
    """The second call repeats the failed runs only."""
    failing(tmp_path)
    own, out = f"{tmp_path}/own.py:Own", tmp_path / "out"
    line: list[Any] = ["compare", tmp_path / "case.json", "--qdisc", f"droptail,own={own}"]
    line += ["--seeds", SEEDS, "--out", out]
    done = ran(*line)
    assert done.returncode == 1
    assert "utilisation" in done.stdout
    assert "qdisc=own, seed" in done.stderr
    before = {path: path.stat().st_mtime_ns for path in out.glob("*/summary.json")}
    assert SEEDS < len(before) < 2 * SEEDS
    (tmp_path / "fails").unlink()
    assert ran(*line).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(list(out.glob("*/summary.json"))) == 2 * SEEDS


def test_a_stopping_rule_goes_on_without_failed_seeds(tmp_path: Path) -> None:
    """They count as tried, and have no row."""
    failing(tmp_path)
    until = {"metrics": ["sojourn_mean_s"], "relative": 0.0001, "least": 20, "most": 24}
    sweep = make_sweep(CASE, {"up.qdisc": [f"{tmp_path}/own.py:Own", "codel"]}, until=until)
    campaign = run_sweep(sweep, out=tmp_path / "out")
    seeds = {
        name: sorted(row["seed"] for row in campaign.rows if ("own.py" in row["up.qdisc"]) == own)
        for name, own in (("own", True), ("codel", False))
    }
    failed = sorted(one.seed for one in campaign.failed.values())
    assert failed
    assert sorted(seeds["own"] + failed) == list(range(1, 25))


def test_evaluations_and_recommendations_name_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And keep the others."""
    failing(tmp_path)
    own = tmp_path / "own.py"
    own.write_text(own.read_text().replace("queue.random() < 0.3", "True"))
    plan = evaluation_run.prepare([f"{tmp_path}/own.py:Own"], "1mbit", quick=True, only=["A1"])
    with pytest.raises(sj.RunError, match=r"own\.py:Own, .*seed \d+: ValueError: unlucky"):
        evaluation_run.run(plan, out=tmp_path / "out")
    assert len(Store(tmp_path / "out" / "runs").rows()) > 0

    def fails(self: object, result: sj.Result) -> None:
        raise ValueError("no facts")

    monkeypatch.setattr(objective.Measured, "__call__", fails)
    with pytest.raises(sj.RunError, match=r"qdisc=codel, load=\S+, seed 20: ValueError: no facts"):
        sj.recommend("10mbit", "10mbit", "40ms", only="codel")


class Lost(Executor):
    """An executor that is broken from its third call on."""

    calls = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Execute a call at once."""
        self.calls += 1
        future: Future[Any] = Future()
        if self.calls > 2:
            future.set_exception(BrokenExecutor("its machine is gone"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_a_lost_executor_is_one_line_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same call continues."""
    monkeypatch.setattr("sojourn.sweeps.work_queue.CHUNK_S", 0.0)
    axes = {"up.qdisc": ["droptail", "codel"]}
    message = (
        "the executor Lost executes nothing more: its machine is gone; 2 of 8 runs are in "
        f"{tmp_path}, the same command continues"
    )
    with pytest.raises(sj.RunError) as caught:
        sj.sweep(CASE, axes, seeds=4, executor=Lost(), out=tmp_path)
    assert str(caught.value) == message
    assert run_sweep(make_sweep(CASE, axes, seeds=4), out=tmp_path).executed == 6


def test_many_failures_are_grouped() -> None:
    """One line for each point and exception, with some seeds; the rest is counted."""
    at = "(own.py:1, in on_enqueue of own, at {} s of simulated time)"
    many = [Failure({"q": "own"}, n, "ValueError", f"no {at.format(n)}") for n in range(30)]
    assert len(listed(many[:LISTED])) == LISTED
    message = f"q=own, seeds 0, 1, 2, 3, 4 and 25 more: ValueError: no {at.format(0)}"
    assert listed(many) == [message]
    points = [Failure({"q": n}, 1, "ValueError", "no") for n in range(30)]
    last = ["q=19, seed 1: ValueError: no", "and 10 more failed runs"]
    assert listed(points)[LISTED - 1 :] == last


def test_a_fault_has_its_place_in_the_code_of_the_user() -> None:
    """The last frame outside the package; an exception of Rust has none there."""
    results = campaign([Run({"a": 1}, CASE, _bad)])
    assert str(results.failed[0]).startswith("a=1, seed 1: KeyError: 'speed' (test_failed_runs.py:")
    assert fault_of(OSError("no more")) == ("OSError", "no more")


def _bad(_: sj.Result) -> dict[str, float]:
    raise KeyError("speed")
