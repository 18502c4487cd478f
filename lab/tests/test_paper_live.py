"""Papers on real packets: stored rows, their keys, the report. Bounds are physical."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from live_link import ENVIRONMENT
from sojourn import InputError, _sojourn
from sojourn.live import runner
from sojourn.live.kernel_config import plan
from sojourn.scenario.draft import canonical
from sojourn.sweeps.runner import key_of
from sojourn.sweeps.store import Store
from sojourn_lab import papers
from sojourn_lab.papers import hred
from sojourn_lab.papers.hred import common, live_runs, measures
from sojourn_lab.reproduction import live as reproduction_live
from sojourn_lab.reproduction import paper, report
from sojourn_lab.reproduction import run as reproduction_run
from sojourn_lab.reproduction.paper import Experiment, Paper, Point
from support.processes import children


def short(full: bool) -> dict[str, Experiment]:
    """Return an experiment of two runs of two seconds."""
    assert not full
    points: list[Point] = []
    for name in ("red", "hred"):
        tree = common.gateway(common.scheme(name, 50), 4, 2, 0.5, tcp=live_runs.LINUX)
        points.append(({"qdisc": name, "flows": 4}, tree))
    return {"testbed": Experiment(points, measures.steady, 1)}


@pytest.fixture
def one(monkeypatch: pytest.MonkeyPatch) -> Paper:
    """Return a paper with short runs on real packets."""
    monkeypatch.setattr(hred, "live", short)
    return papers.find("hred")


@pytest.mark.live(tun=True)
def test_rows_keys_and_report(one: Paper, tmp_path: Path) -> None:
    """Live and simulated rows have different keys; a second call runs nothing."""
    store = tmp_path / "runs"
    outcome = reproduction_run.run(one, full=False, store=store, engine="live")
    assert outcome.campaign.executed == len(outcome.campaign.rows) == 2
    live, simulated = outcome.runs["testbed"], outcome.runs["testbed simulated"]
    assert live["engine"].unique().to_list() == [runner.live().name]
    assert simulated["engine"].unique().to_list() == [_sojourn.engine()]
    assert os.uname().release in outcome.engine
    assert not set(live["key"]) & set(simulated["key"])
    assert len(Store(store).rows()) == 4
    for row in live.iter_rows(named=True):
        assert 0 < row["mean"] < 1
        assert 0 < row["utilisation"] <= 1
        assert row["lateness_p99_s"] > 0
        assert row["warnings"] == len(row["warned"].split("; ")) * bool(row["warned"])
    assert "warned" not in simulated.columns
    assert reproduction_live.expected_s(one, full=False, store=store) == 0
    again = reproduction_run.run(one, full=False, store=store, engine="live")
    assert again.campaign.executed == 0
    assert again.campaign.rows == outcome.campaign.rows
    assert [figure.number for figure in again.figures] == ["live", "13a", "13b", "13c", "13d"]
    # The claims on losses and on AVQ need more disciplines than RED and HRED.
    assert [judged.claim.id for judged in again.claims] == ["003-C21"]
    assert again.emulated is not None
    assert again.emulated.numbers["left_out"] == ["003-C19", "003-C22"]
    _is_whole(again, tmp_path)


def _is_whole(outcome: paper.Outcome, place: Path) -> None:
    report.write_report(outcome, place)
    page = (place / "report.md").read_text()
    data = (place / "data.md").read_text()
    first = next(line for line in page.splitlines() if line.startswith("These runs use real"))
    assert runner.kernel() in first
    assert "lasted 2 s" in first
    assert "100 times as long" in first
    assert "mean queue, kB: live | mean queue, kB: simulated" in data
    assert "--engine live" in page
    assert "(simulated)" not in page + data.split("## Set-up")[0]
    assert ">simulated<" not in (place / "report.html").read_text().split("<svg")[0]
    assert (place / "figures/figure-13a.png").stat().st_size > 10_000
    claims = json.loads((place / "claims.json").read_text())
    assert claims["live"]["runs"] == 2
    assert claims["engine"] == runner.live().name


def test_the_time_of_runs_is_known_before(
    one: Paper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is their duration, divided by the number of runs at once; printed before they start."""
    runs = short(full=False)["testbed"].runs()
    assert runner.expected_s(runs) == 2, "at least the longest"
    assert runner.expected_s(runs, jobs=1) == 4
    assert reproduction_live.expected_s(one, full=False, store=tmp_path) == 2
    monkeypatch.setattr(reproduction_live, "SHORT_S", 1.0)
    monkeypatch.setattr(runner, "check", lambda runs: None)

    def stop(*_: object, **__: object) -> None:
        raise InputError("stopped before the runs")

    monkeypatch.setattr(reproduction_live, "campaign", stop)
    with pytest.raises(InputError, match="stopped before"):
        reproduction_live.run(one, full=False, store=tmp_path, progress=True)
    assert capsys.readouterr().err == (
        "sojourn: hred: runs on real packets take 2 s, after their simulated counterparts\n"
    )


@pytest.mark.parametrize("name", ["hred", "red-vs-taildrop"])
def test_full_runs_have_two_seeds_and_the_options_of_linux(name: str) -> None:
    """The kernel supports all of them, and the simulated counterparts recover losses as it does."""
    for experiment in papers.find(name).live_experiments(full=True).values():
        assert experiment.seeds == 2
        for _, tree in experiment.points:
            scenario = canonical(tree)
            assert plan(scenario).warnings == []
            tcps = [flow["tcp"] for flow in scenario["flows"] if "tcp" in flow]
            assert tcps
            assert all(tcp["rack"] and tcp["prr"] for tcp in tcps)


def test_tail_drop_and_red_run_as_long_as_in_the_paper() -> None:
    """500 s, the first 100 s not counted."""
    points = papers.find("red-vs-taildrop").live_experiments(full=True)["ftp"].points
    times = {(tree["duration"], tree["warmup"]) for _, tree in points}
    assert times == {("500s", "100s")}


@pytest.mark.live(tun=True)
@pytest.mark.parametrize("delay_s", [0.0, 0.1, 0.3, 1.0])
def test_an_interrupt_ends_the_runs(tmp_path: Path, delay_s: float) -> None:
    """Ctrl-C also ends the workers, while they import modules and while they run."""
    line = [sys.executable, "-m", "sojourn", "paper", "run", "hred", "--engine", "live"]
    running = subprocess.Popen(
        [*line, "--out", str(tmp_path), "--figure", "13a", "--jobs", "1"],
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with running:
        while not (workers := _workers(running.pid)):
            assert running.poll() is None
            time.sleep(0.05)
        time.sleep(delay_s)
        os.killpg(running.pid, signal.SIGINT)
        _, messages = running.communicate()
    assert running.returncode == 130
    assert "Traceback" not in messages
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def _workers(pid: int) -> list[int]:
    """Return the worker processes of `pid`."""
    return [one for one in children(pid) if "spawn_main" in _line(one)]


def _line(pid: int) -> str:
    """Return the command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:  # it may end between any check and the reading
        return ""


def test_keys_depend_on_the_engine() -> None:
    """The key of a live row differs from the simulated one, and depends on the kernel."""
    text = "{}"
    names = {key_of(text, measures.steady), key_of(text, measures.steady, runner.live())}
    assert len(names) == 2
    assert key_of(text, measures.steady, runner.live()) in names


@pytest.mark.parametrize("name", [name for name in papers.ids() if papers.find(name).live])
@pytest.mark.parametrize("full", [False, True])
def test_live_experiments_run_on_the_kernel(name: str, full: bool) -> None:
    """Every scenario is supported; experiments, labels and measures are the simulated ones."""
    one = papers.find(name)
    simulated = one.experiments(full)
    for experiment, runs in one.live_experiments(full).items():
        labels = {frozenset(point) for point, _ in simulated[experiment].points}
        assert {frozenset(point) for point, _ in runs.points} == labels
        assert runs.measure is simulated[experiment].measure
        for run in runs.runs():
            assert plan(canonical(run.scenario)).warnings == []


def test_full_mode_omits_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every claim and figure finds its runs (simulated here, to be fast)."""
    for name in papers.ids():
        one = papers.find(name)
        if one.live is None:
            continue
        brief = {
            key: Experiment(
                [
                    (labels, {**tree, "duration": "4s", "warmup": "2s"})
                    for labels, tree in it.points
                ],
                it.measure,
                it.seeds,
            )
            for key, it in one.live_experiments(True).items()
        }
        monkeypatch.setattr(one.module, "live", lambda full, brief=brief: brief)
        monkeypatch.setattr(runner, "check", lambda runs: None)
        monkeypatch.setattr(runner, "emulate_all", _pretend)
        outcome = reproduction_live.run(one, full=True, store=tmp_path / name)
        assert outcome.claims
        assert outcome.emulated is not None
        assert outcome.emulated.numbers["left_out"] == []
        report.write_report(outcome, tmp_path / name)


def _pretend(runs: object, **_: object) -> object:
    """Replace `emulate_all`: simulate, and add the columns of live runs."""
    from dataclasses import replace

    from sojourn.sweeps.runner import campaign

    simulated = campaign(runs)  # type: ignore[arg-type]
    more = {"lateness_p99_s": 2e-4, "application_p99_s": None, "warnings": 1, "warned": "a; b"}
    return replace(simulated, rows=[row | more for row in simulated.rows])


def test_a_paper_without_live_runs_is_refused(tmp_path: Path) -> None:
    """The library names the paper, the command also those that have such runs."""
    with pytest.raises(InputError, match="ewfq has no runs on real packets"):
        reproduction_run.run(papers.find("ewfq"), full=False, store=tmp_path, engine="live")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hred", "--engine", "life"], '--engine: unknown engine "life", did you mean "live"?'),
        (
            ["ewfq", "--engine", "live"],
            "--engine: ewfq has no runs on real packets, allowed: hred, red-vs-taildrop",
        ),
        (["hred", "--engine", "live", "--figure", "3a"], '--figure: no figure "3a" in hred'),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    """A wrong option gives exit code 2 and one line, no traceback."""
    line = [sys.executable, "-m", "sojourn", "paper", "run", *arguments, "--out", str(tmp_path)]
    done = subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
