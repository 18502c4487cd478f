"""Comparisons and searches of a capacity that start from a warm state."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn._sojourn import InputError
from support.sweep_cases import ran

CASE: dict[str, Any] = {
    "duration": "6s",
    "seed": 3,
    "links": {"up": {"rate": "5mbit", "delay": "5ms", "qdisc": "codel", "loss": 0.001}},
    "flows": [
        {"name": "bulk", "count": 2, "path": ["up"], "rtt": "30ms", "tcp": "cubic"},
        {"name": "web", "count": 3, "path": ["up"], "rtt": "uniform(20ms, 30ms)", "source": "web"},
    ],
}

TARGETS = {f"codel(target={ms}ms)": f"{ms}ms" for ms in (1, 20)}

ALLOWED = (
    "a warm start can change seed, duration, warmup, and of links rate, delay, impairments and "
    "parameters of the discipline"
)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Save the state at 4 s."""
    path = tmp_path / "warm.snapshot"
    simulation = sj.Simulation(CASE)
    simulation.run_until("4s")
    simulation.save(path)
    return path


def with_link(**keys: Any) -> dict[str, Any]:
    """Return the case with keys of the link."""
    return {**CASE, "links": {"up": {**CASE["links"]["up"], **keys}}}


def refused(work: Callable[[], object]) -> str:
    """Return the message of a refusal."""
    with pytest.raises(InputError) as error:
        work()
    return str(error.value)


def test_each_run_of_a_comparison_is_the_run_of_its_scenario(state: Path) -> None:
    """Parameters of the discipline and seeds differ; a time and a simulation are states, too."""
    runs = sj.compare(CASE, [*TARGETS], seeds=2, warm_from=state)
    assert list(runs) == [*TARGETS]
    for label, results in runs.items():
        for seed, result in zip((3, 4), results, strict=True):
            single = sj.simulate({**with_link(qdisc=label), "seed": seed}, warm_from=state)
            assert result.summary == single.summary
            assert result.scenario["warmup"] == "4s"
    every = [result.summary["links"] for results in runs.values() for result in results]
    assert all(one != other for k, one in enumerate(every) for other in every[:k])
    for other in ("4s", sj.Simulation.load(state)):
        again = sj.compare(CASE, [*TARGETS], seeds=2, warm_from=other)
        assert again.frame().equals(runs.frame())


def test_a_comparison_continues_in_its_folder_and_not_in_another(
    state: Path, tmp_path: Path
) -> None:
    """A repetition reads its runs; runs from the start are others."""
    (tmp_path / "case.json").write_text(json.dumps(CASE))
    words = ["compare", tmp_path / "case.json", "--qdisc", ",".join(TARGETS), "--json"]
    out = ["--out", tmp_path / "runs"]
    first = ran(*words, *out, "--warm-from", state)
    there = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("summary.json")}
    assert len(there) == 2, first.stderr
    again = ran(*words, *out, "--warm-from", "4s")
    assert json.loads(again.stdout)["table"] == json.loads(first.stdout)["table"]
    assert there == {path: path.stat().st_mtime_ns for path in there}, again.stderr
    cold = ran(*words, *out)
    assert "warm_from is only there" in cold.stderr
    assert json.loads(ran(*words).stdout)["table"] != json.loads(first.stdout)["table"]


def test_a_capacity_is_found_from_a_warm_state(state: Path, tmp_path: Path) -> None:
    """Each value has the runs of a sweep from this state; the store has no cold runs."""
    out = tmp_path / "runs"
    need = "sojourn_mean < 6ms"
    question: dict[str, Any] = {"between": ("4mbit", "20mbit"), "seeds": 2, "out": out}
    first = sj.capacity(CASE, "up.rate", need, warm_from=state, **question)
    (answer,) = first.answers
    rows = sj.sweep(
        CASE, {"up.rate": [probe.value for probe in answer.probes]}, seeds=2, warm_from=state
    )
    for probe in answer.probes:
        of_value = rows.filter(rows["up.rate"] == probe.value)["sojourn_mean_s"]
        assert probe.estimates[0].value == pytest.approx(of_value.mean(), rel=1e-12)
    assert first.executed == first.runs == 2 * len(answer.probes)
    again = sj.capacity(CASE, "up.rate", need, warm_from="4s", **question)
    assert (again.executed, str(again)) == (0, str(first))
    text = refused(lambda: sj.capacity(CASE, "up.rate", need, **question))
    assert "warm_from is only there" in text
    cold = sj.capacity(CASE, "up.rate", need, between=("4mbit", "20mbit"), seeds=2)
    assert [one.estimates for one in cold.answers[0].probes] != [
        one.estimates for one in answer.probes
    ]


def test_what_cannot_change_at_the_state_is_refused(state: Path, tmp_path: Path) -> None:
    """Another discipline and other flows, with the path, both values, and what is allowed."""
    other = f'links.up.qdisc.name: is "pie", and "codel" in the warm state; {ALLOWED}'
    need = "sojourn_mean < 6ms"
    assert refused(lambda: sj.compare(CASE, "codel,pie", warm_from=state)) == f"{other} (with pie)"
    text = refused(lambda: sj.capacity(CASE, "up.rate", need, qdiscs="codel,pie", warm_from=state))
    assert text.startswith(f"{other} (at up.rate = ")
    flows = f"flows.bulk.count: is 3, and 2 in the warm state; {ALLOWED} (at bulk.count = 3)"
    assert refused(lambda: sj.capacity(CASE, "bulk.count", need, warm_from=state)) == flows
    assert refused(lambda: sj.compare(CASE, [*TARGETS], warm_from="7s")) == (
        "warm_from: 7s is after the end at 6s"
    )
    case = tmp_path / "case.json"
    case.write_text(json.dumps(CASE))
    broken = tmp_path / "broken"
    broken.write_bytes(state.read_bytes()[:-1])
    for words, message in (
        (("compare", case, "--qdisc", "codel,pie", "--warm-from", state), f"{case}: {other}"),
        (("compare", case, "--qdisc", "codel", "--warm-from", broken), f"{broken}: snapshot: is"),
        (
            ("capacity", case, "--vary", "bulk.count", "--need", need, "--warm-from", state),
            f"{case}: {flows}",
        ),
    ):
        done = ran(*words)
        assert done.returncode == 2
        assert message in " ".join(done.stderr.split())
