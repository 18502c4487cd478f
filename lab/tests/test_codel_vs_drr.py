"""The paper on CoDel and DRR: its future work, and claims with a part for each statement."""

from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn_lab import papers
from sojourn_lab.papers.codel_vs_drr import future
from sojourn_lab.papers.codel_vs_drr.claims import SETTINGS
from sojourn_lab.papers.codel_vs_drr.runs import NAMES, SetUp, dumbbell, measure
from sojourn_lab.reproduction.claims import Overlay
from sojourn_lab.reproduction.parts import Part

SHORT = SetUp(duration="12s", warmup="2s")


def _judged(claim: str, experiment: str, rows: list[dict[str, Any]]) -> list[Part]:
    rule = next(one for one in papers.find("codel-vs-drr").claims if one.id == claim)
    assert rule.check is not None
    return list(rule.check({experiment: pl.DataFrame(rows)}))


def test_drops_by_mtu_are_judged_by_discipline() -> None:
    """CoDel's falling drops fail, DRR's rising ones hold: neither hides the other."""
    drops = {("codel", 500): 36, ("codel", 1500): 26, ("drr", 500): 4, ("drr", 1500): 6}
    rows = [
        {"qdisc": qdisc, "mtu": mtu, "seed": seed, "drops_per_s": mean + 0.1 * seed}
        for (qdisc, mtu), mean in drops.items()
        for seed in (-1, 0, 1)
    ]
    codel, drr = (_judged(claim, "mtu", rows) for claim in ("004-C12", "004-C15"))
    assert [part.result for part in codel] == ["fails"] * 3
    assert [part.result for part in drr] == ["holds"] * 3
    assert [part.is_number for part in drr] == [True, True, False]


def test_delay_in_the_queue_alone_is_less_by_the_path() -> None:
    """The setting reads the sojourn time: less by transmission and propagation."""
    tree = dumbbell(SHORT.codel, 10, set_up=SHORT)
    row = measure(sj.simulate(tree | {"seed": 1}))
    setting = next(one for one in SETTINGS if one.name == "delay in the queue alone")
    change = setting.replaces["bandwidth"]
    assert not isinstance(change, Overlay)
    (alone,) = change(pl.DataFrame([row])).iter_rows(named=True)
    for end in ("low", "high"):
        path = row[f"data_{end}_s"] - alone[f"data_{end}_s"]
        assert path == pytest.approx(0.010 + 1000 * 8 / 10e6, abs=1e-6)


def test_lossy_link_costs_goodput_and_loses_calls() -> None:
    """At 3 % of loss the FTPs do not fill the link; a call crosses it with little delay."""
    clean, bad = (
        future.measure_lossy(sj.simulate(future.lossy(SHORT.codel, 10, loss, SHORT) | {"seed": 1}))
        for loss in (0.0, 0.03)
    )
    assert bad["goodput_mbps"] < 0.8 * clean["goodput_mbps"]
    assert bad["wait_mean_s"] < clean["wait_mean_s"]
    call = future.measure_call(sj.simulate(future.with_calls(SHORT.drr, 10, SHORT) | {"seed": 1}))
    assert 0 <= call["lost"] < 20
    assert 0 <= call["median_s"] <= call["p99_s"] < 0.1


def test_every_point_of_the_future_work_is_distinct() -> None:
    """Each experiment has both disciplines of the paper at every point."""
    for name, one in future.experiments(False, SHORT).items():
        labels = [tuple(sorted(label.items())) for label, _ in one.points]
        assert len(set(labels)) == len(labels), name
        assert {label["qdisc"] for label, _ in one.points} >= set(NAMES)
