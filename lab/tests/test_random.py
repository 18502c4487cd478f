"""Random scenarios with simulated TCP and the kernel's: rules of the comparison, and recordings."""

import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from live_link import require
from sojourn.live.kernel_config import available, plan
from sojourn.scenario.draft import canonical, parse
from sojourn_lab.validation.random import __main__ as random_main
from sojourn_lab.validation.random import live, records, virtual
from sojourn_lab.validation.random.agreement import Row, agreeing, spread, without_difference
from sojourn_lab.validation.random.causes import Cause, causes, tags
from sojourn_lab.validation.random.compare import compare
from sojourn_lab.validation.random.draw import (
    CONTROLS,
    NAMES,
    PRESETS,
    Scenario,
    controls,
    draw,
    named,
)
from sojourn_lab.validation.random.measure import Numbers, measure
from sojourn_lab.validation.random.replay import FLOORS, replay
from sojourn_lab.validation.random.simulate import simulate


def numbers(**values: float) -> Numbers:
    """Return the numbers of a run of 10,000 packets."""
    return {"packets": 10_000, **values}


def test_a_scenario_depends_on_seed_and_number_alone() -> None:
    """Each of 200 is a valid scenario, and every part of the draw occurs."""
    drawn = [draw("1", number) for number in range(200)]
    assert drawn[7] == draw("1", 7) != draw("2", 7)
    for scenario in drawn:
        parse(scenario)
    ups = [scenario["links"]["up"] for scenario in drawn]
    assert 0.35 < sum("loss" in up for up in ups) / 200 < 0.55
    assert 0.08 < sum("down" in scenario["links"] for scenario in drawn) / 200 < 0.22
    assert {c for scenario in drawn for c in controls(scenario)} == set(CONTROLS)
    sources = {flow["source"]["name"] for scenario in drawn for flow in scenario["flows"]}
    assert sources == {"bulk", "transfers", "cbr"}


def test_other_names_of_the_same_controls() -> None:
    """Only the names change."""
    scenario = draw("1", 3)
    for names in NAMES.values():
        for flow, other in zip(scenario["flows"], named(scenario, names)["flows"], strict=True):
            assert {**flow, "tcp": 0} == {**other, "tcp": 0}
            assert other["tcp"]["name"] in names.values()


def test_limit_least_difference_and_error_are_all_exceeded() -> None:
    """11 % of goodput differ if the runs are alike, not if they scatter by as much."""
    ours, theirs = [numbers(goodput=10.0)] * 6, [numbers(goodput=11.1)] * 2
    assert compare(ours, theirs)["goodput"].differs
    assert not compare(ours, [numbers(goodput=10.9)] * 2)["goodput"].differs
    scattered = [numbers(goodput=g) for g in (9.0, 9.4, 9.8, 10.2, 10.6, 11.0)]
    assert not compare(scattered, theirs)["goodput"].differs
    few = compare([numbers(timeouts=1)] * 6, [numbers(timeouts=4)] * 2)["timeouts"]
    assert few.size > 1
    assert not few.differs, "three timeouts are below the least difference"


def test_error_of_a_difference() -> None:
    """Welch's, with the floor of 0.02 for a share, and the larger spread for two live runs."""
    ours = [numbers(share=s) for s in (0.4, 0.5, 0.6)]
    theirs = [numbers(share=0.7), numbers(share=0.7)]
    expected = math.sqrt(0.1**2 / 3 + 0.1**2 / 2 + 0.02**2)
    assert compare(ours, theirs)["share"].error == pytest.approx(expected)


def test_no_loss_and_much_loss_differ() -> None:
    """There is no ratio, but the size is infinite."""
    c = compare([numbers(loss=0.0)] * 6, [numbers(loss=5.0)] * 2)["loss"]
    assert c.differs
    assert c.log_ratio is None


def test_spread_and_counts_of_two_scenarios() -> None:
    """Rms of the log ratio: one of two is off by a factor e^0.2."""
    same = compare([numbers(goodput=10.0)] * 2, [numbers(goodput=10.0)] * 2)
    more = compare([numbers(goodput=10.0)] * 2, [numbers(goodput=10 * math.exp(0.2))] * 2)
    rows = [Row(draw("1", 0), same), Row(draw("1", 1), more)]
    assert spread(rows, "goodput")[0] == pytest.approx(0.2 / math.sqrt(2))
    assert agreeing(rows, "goodput") == (1, 2)
    assert without_difference(rows) == 1


def test_numbers_of_a_run() -> None:
    """The numbers of a hand-written summary."""
    flow = {"group": "a", "sent_packets": 90, "retransmitted_packets": 9, "timeouts": 1}
    flows = [
        {**flow, "goodput_bps": 1e6, "completed": 3, "fct_mean_s": 0.1},
        {**flow, "goodput_bps": 3e6, "completed": 1, "fct_mean_s": 0.5},
    ]
    up = {"loss_rate": 0.1, "mark_rate": 0, "sojourn_mean_s": 0.01, "sojourn_p99_s": None}
    down = {"arrived_packets": 100, "loss_rate": 0.2}
    links = {"up": {**up, "arrived_packets": 200}, "down": down}
    measured = measure({"flows": flows, "links": links})
    assert measured["goodput"] == 4
    assert measured["fct"] == pytest.approx(200)
    assert measured["jain"] == pytest.approx(16 / 2 / 10)
    assert measured["share"] is None
    assert (measured["retx"], measured["timeouts"]) == (10, 2)
    assert (measured["acks"], measured["ack_loss"], measured["p99"]) == (0.5, 20, 0)


def test_late_runs_do_not_count(tmp_path: Path) -> None:
    """Late packets, late applications, or packets that the kernel dropped."""
    good = {"late_share": 0, "application_p99_s": 0.001, "failed": ""}
    good |= {"kernel_dropped_packets": 0, "refused_packets": 0}
    assert live.punctual(good)
    for bad in ({"late_share": 0.02}, {"application_p99_s": 0.1}, {"kernel_dropped_packets": 1}):
        assert not live.punctual(good | bad)
    record = {"scenario": draw("1", 0), "seed": 1, "numbers": numbers(goodput=1.2345678)}
    path = tmp_path / "record.jsonl"
    written = [{**record, "punctual": flag} for flag in (True, False)]
    assert list(records.append(path, written)) == written
    assert list(records.read(path)) == written[:1]
    [short] = records.compact(records.read(path))
    assert short["numbers"]["goodput"] == 1.2346


def test_recordings_are_small_and_replayed_within_the_floors() -> None:
    """Below 300 kB. A share below its floor is a change of the simulated TCP to look into."""
    assert records.RECORDED.stat().st_size < 300_000
    rows = replay()
    for metric, floor in FLOORS.items():
        agree, having = agreeing(rows, metric)
        differing = [row.scenario["name"] for row in rows if metric in row.differing]
        assert agree >= floor * having, f"{metric}: {differing} differ"


def test_a_kernel_in_user_mode_that_fails_leaves_an_error() -> None:
    """Its record has no numbers, and does not count."""
    record = virtual.run(Path("/bin/false"), draw("1", 0), 1)
    assert "did not run the script" in record["error"]
    assert "numbers" not in record


def test_a_cause_names_scenarios_or_a_class() -> None:
    """A class is a set of tags and of metrics that differ."""
    scenario = draw("1", 0)
    differing = compare([numbers(goodput=10.0)] * 6, [numbers(goodput=20.0)] * 2)
    row = Row(scenario, differing)
    some = sorted(tags(scenario))[:2]
    assert Cause("a", "", scenarios=[scenario["name"]]).explains(row)
    assert Cause("a", "", tags=some, metrics=["goodput", "loss"]).explains(row)
    assert not Cause("a", "", tags=some, metrics=["loss"]).explains(row)
    assert not Cause("a", "", tags=[*some, "no such tag"], metrics=["goodput"]).explains(row)
    assert not Cause("a", "", tags=some).explains(row)


def test_causes_name_recorded_scenarios() -> None:
    """Each is in the recordings of the repository."""
    names = {scenario["name"] for scenario, _ in records.runs(records.read(records.RECORDED))}
    for cause in causes():
        assert set(cause.scenarios) <= names, cause.title


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="requires a Linux kernel")
@pytest.mark.parametrize("control", CONTROLS)
def test_the_kernel_runs_the_presets(control: str) -> None:
    """The live engine accepts every parameter of a preset."""
    if control not in available():
        pytest.skip(f"this kernel has no {control}")
    scenario = draw("1", 0)
    flows = [{**flow, "tcp": {"name": PRESETS[control]}} for flow in scenario["flows"]]
    assert plan(canonical({**scenario, "flows": flows})).hosts[0].control == control


@pytest.mark.live
def test_a_recorded_scenario_on_this_kernel() -> None:
    """One CUBIC flow and one Reno flow alone: goodput and delay are the simulator's."""
    require(tun=True)
    if os.geteuid():
        pytest.skip("live runs of random scenarios need root")
    scenario = json.loads(json.dumps(draw("1", 0)))
    scenario |= {"duration": "6s", "warmup": "1s"}
    scenario["links"] = {"up": {"rate": "5mbit", "delay": "10ms", "qdisc": {"name": "codel"}}}
    flow = {"count": 1, "path": ["up"], "rtt": "20ms", "source": {"name": "bulk"}}
    scenario["flows"] = [
        {**flow, "name": "a", "tcp": {"name": "linux_cubic"}},
        {**flow, "name": "b", "tcp": {"name": "linux_reno"}},
    ]
    record = live.run(scenario, 1)
    if not record.get("punctual", True):
        pytest.skip(f"the machine is too busy: {record}")
    [ours] = simulate([scenario], 3, jobs=1)
    compared = compare(ours, [record["numbers"]])
    assert not [metric for metric in ("goodput", "loss") if compared[metric].differs]


def test_scenarios_that_differ_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With other seeds; the page has the agreement before and after."""
    wanted: list[tuple[str, int]] = []

    def run_all(pairs: list[tuple[Scenario, int]], jobs: int) -> Iterator[records.Record]:
        for scenario, seed in pairs:
            wanted.append((scenario["name"], seed))
            first = wanted[-1] == ("rs-1", 1)
            values = numbers(goodput=13.0 if first else 10.0)
            yield {"scenario": scenario, "seed": seed, "numbers": values, "punctual": True}

    def simulate(scenarios: list[Scenario], seeds: int, jobs: int) -> list[list[Numbers]]:
        return [[numbers(goodput=9.9 + 0.1 * i) for i in range(seeds)] for _ in scenarios]

    monkeypatch.setattr(random_main, "run_all", run_all)
    monkeypatch.setattr(random_main, "simulate", simulate)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    out, record = tmp_path / "page.md", tmp_path / "record.jsonl"
    options = ["--seed", "s", "--n", "3", "--lives", "1", "--again", "3"]
    monkeypatch.setattr("sys.argv", ["x", *options, "--record", str(record), "--out", str(out)])
    random_main.main()
    assert wanted == [*((f"rs-{i}", 1) for i in range(3)), *(("rs-1", seed) for seed in (2, 3, 4))]
    text = " ".join(out.read_text().split())
    assert "3 of 3 random scenarios have no difference" in text
    assert "ran 1 or 4 times" in text
    assert "differed after one run ran again, with other seeds" in text
    assert "scenarios without a difference were 2 of 3 (`s`)." in text
    random_main.main()
    assert len(wanted) == 6, "all are recorded"
