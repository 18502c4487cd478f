"""The paper on EWFQ: its networks are the fairness study's, its rules are as documented."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import sojourn as sj
from sojourn_lab import papers
from sojourn_lab.papers.ewfq import runs as ewfq
from sojourn_lab.reproduction.judging import verdict
from sojourn_lab.reproduction.parts import Part
from sojourn_lab.studies import fairness

SHORT = {"duration": "8s", "warmup": "2s"}


@pytest.mark.parametrize("name", ["Varied", "Five"])
@pytest.mark.parametrize("scheme", ["ewfq", "wfq"])
def test_networks_are_those_of_the_study(name: str, scheme: str) -> None:
    """Two independent implementations (by class, by flow number) give the same goodputs."""
    qdisc = fairness.ewfq(name, 30) if scheme == "ewfq" else fairness.wfq(name, 30)
    theirs = sj.simulate(fairness.network(name, qdisc, 1) | SHORT)
    ours = ewfq.measure(sj.simulate(ewfq.network(name, scheme, 30, times=SHORT) | {"seed": 1}))
    each = fairness.goodputs(theirs)
    assert [ours[f"s{i + 1}"] for i in range(len(each))] == pytest.approx(list(each), rel=1e-12)
    assert ours["jain"] == pytest.approx(fairness.jain(each), rel=1e-12)


def test_many_tcps_of_a_source_are_one_class() -> None:
    """The bandwidth of a source is the sum over its TCPs; every source gets some."""
    tree = ewfq.network("Five", "wfq", 90, members=5, times=SHORT)
    result = sj.simulate({**tree, "seed": 1})
    measured = ewfq.measure(result)
    assert set(measured) == {"s1", "s2", "s3", "s4", "s5", "jain", "total"}
    mine = [flow["goodput_bps"] for flow in result.flows.values() if flow["group"] == "s1"]
    assert len(mine) == 5
    assert measured["s1"] == pytest.approx(sum(mine) / 0.96 / 1e6)
    assert all(0.5 < measured[f"s{i}"] < 2.51 for i in range(1, 6))


def _judged(claim: str, rows: list[dict[str, Any]]) -> list[Part]:
    rule = next(one for one in papers.find("ewfq").claims if one.id == claim)
    assert rule.check is not None
    return list(rule.check({name: pl.DataFrame(rows) for name in rule.needs}))


def _sweep(index: dict[str, float], total: dict[str, float]) -> list[dict[str, Any]]:
    return [
        {"qdisc": qdisc, "kb": kb, "seed": seed, "jain": 1 - index[qdisc] / kb + seed * 1e-6,
         "total": total[qdisc]}
        for qdisc in ("ewfq", "wfq")
        for kb in (5, 10, 30, 60, 90, 120, 150)
        for seed in (1, 2, 3)
    ]  # fmt: skip


def test_five_times_the_buffer_is_found() -> None:
    """C10 holds, and half of C7, if WFQ's unfairness is five times EWFQ's at every size."""
    rows = _sweep({"ewfq": 0.0999, "wfq": 0.4994}, {"ewfq": 9.9, "wfq": 9.9})
    assert verdict(_judged("002-C10", rows)) == "holds"
    assert [part.result for part in _judged("002-C7", rows)] == ["fails", "holds"]
    never = _judged("002-C10", _sweep({"ewfq": 0.1, "wfq": 0.1}, {"ewfq": 9.9, "wfq": 9.8}))
    assert [part.result for part in never] == ["holds", "holds", "fails"]
    assert never[2].value is not None
    assert math.isnan(never[2].value.mean)


def test_indices_have_four_digits() -> None:
    """All of them are near 1, and the tolerance is 0.005."""
    rows = [{"network": "Uniform", "qdisc": "ewfq", "seed": n, "jain": 0.9949} for n in (1, 2)]
    (part,) = _judged("002-C1", rows)
    assert (part.stated, part.measured, part.result) == ("0.9999", "0.9949 ± 0.0000", "fails")
    assert np.isclose(part.value.mean if part.value else 0, 0.9949)


@pytest.mark.parametrize(
    ("even", "uneven", "holds"),
    [(1.0, 0.9963, True), (1.0, 0.9999, False), (0.9997, 0.9940, True), (0.9990, 0.9963, False)],
)
def test_unfairness_is_compared_as_a_ratio(even: float, uneven: float, holds: bool) -> None:
    """An unfairness many times smaller or larger than the stated one does not agree."""
    rows = [
        {"network": "Uniform", "qdisc": qdisc, "seed": n, "jain": jain}
        for qdisc, jain in (("wfq", even), ("wfq_varied", uneven))
        for n in (1, 2)
    ]
    assert all(part.result == "holds" for part in _judged("002-C2", rows)) == holds
