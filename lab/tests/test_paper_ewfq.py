"""The paper on EWFQ: its networks are the fairness study's, its rules are as documented."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import sojourn as sj
from sojourn_lab import papers
from sojourn_lab.papers.ewfq import measurement, shares
from sojourn_lab.papers.ewfq import runs as ewfq
from sojourn_lab.papers.ewfq.experiments import JUDGED
from sojourn_lab.reproduction.judging import verdict
from sojourn_lab.reproduction.parts import Part
from sojourn_lab.studies import fairness

SHORT = {"duration": "8s", "warmup": "2s"}
SET_UP = ewfq.SetUp(duration="8s", warmup="2s")


@pytest.mark.parametrize("name", ["Varied", "Five"])
@pytest.mark.parametrize("scheme", ["ewfq", "wfq"])
def test_networks_are_those_of_the_study(name: str, scheme: str) -> None:
    """Two independent implementations (by class, by flow number) give the same goodputs."""
    qdisc = fairness.ewfq(name, 30) if scheme == "ewfq" else fairness.wfq(name, 30)
    theirs = sj.simulate(fairness.network(name, qdisc, 1) | SHORT)
    ours = ewfq.measure(sj.simulate(ewfq.network(name, scheme, 30, SET_UP) | {"seed": 1}))
    each = fairness.goodputs(theirs)
    assert [ours[f"s{i + 1}"] for i in range(len(each))] == pytest.approx(list(each), rel=1e-12)
    assert ours["jain"] == pytest.approx(fairness.jain(each), rel=1e-12)


def test_many_tcps_of_a_source_are_one_class() -> None:
    """The bandwidth of a source is the sum over its TCPs; every source gets some."""
    tree = ewfq.network("Five", "wfq", 90, replace(SET_UP, tcps=5))
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
        for kb in JUDGED["wfq"]
        for seed in (1, 2, 3)
    ]  # fmt: skip


def test_five_times_the_buffer_is_found() -> None:
    """C10 holds, and half of C7, if WFQ's unfairness is five times EWFQ's at every size."""
    rows = _sweep({"ewfq": 0.0999, "wfq": 0.4994}, {"ewfq": 9.9, "wfq": 9.9})
    assert verdict(_judged("002-C10", rows)) == "holds"
    assert [part.result == "holds" for part in _judged("002-C7", rows)] == [False, True]
    never = _judged("002-C10", _sweep({"ewfq": 0.1, "wfq": 0.1}, {"ewfq": 9.9, "wfq": 9.8}))
    assert [part.result == "holds" for part in never] == [True, True, False]
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


def test_index_at_its_limit_is_undecided() -> None:
    """The mean misses the limit, and the interval reaches into the tolerance."""
    rows = [
        {"network": "Uniform", "qdisc": "ewfq", "seed": n, "jain": jain}
        for n, jain in enumerate((0.9990, 0.9998, 0.9999))
    ]
    (part,) = _judged("002-C1", rows)
    assert part.result == "undecided"


def test_weights_scale_shares_and_index() -> None:
    """A class of twice the weight has about twice the bandwidth; the index is over the ratios."""
    tree = ewfq.network("Uniform", "wfq", 30, SET_UP, (1.0, 2.0, 1.0))
    assert tree["links"]["bottleneck"]["qdisc"]["limits"] == ["7500B", "15000B", "7500B"]
    measured = ewfq.measure(sj.simulate(tree | {"seed": 1}))
    assert measured["s2"] / measured["s1"] == pytest.approx(2, rel=0.1)
    assert measured["jain"] > 0.99
    x = np.array([measured["s1"], measured["s2"] / 2, measured["s3"]])
    assert measured["jain"] == pytest.approx(x.sum() ** 2 / (3 * (x**2).sum()))


def test_detection_grows_with_the_square_of_the_size() -> None:
    """Without hits it grows with the size, with one hit with its square."""
    rows = [
        {"n": n, "k": k, "seed": seed, "found": 1 - math.exp(-8 * (0.6 / n) ** (k + 1))}
        for n in measurement.CLASSES
        for k in (0, 1)
        for seed in (1, 2)
    ]
    runs = {"detection": pl.DataFrame(rows)}
    assert measurement.exponent(runs, k=0) == pytest.approx([1, 1])
    assert [part.result for part in measurement.square(runs)] == ["holds"]
    linear = pl.DataFrame(rows).filter(pl.col("k") == 0).with_columns(k=pl.lit(1))
    assert [part.result for part in measurement.square({"detection": linear})] == ["fails"]


def test_found_classes_bound_the_missed_ones() -> None:
    """All classes of the Uniform network are found in large buffers: none is missed."""
    set_up = replace(SET_UP, node_buffer="60kB")
    tree = ewfq.network("Uniform", "ewfq", 60, replace(set_up, every_byte=True))
    sampled = {"packet_log": True, "sample": "10ms", "sample_flows": False, "seed": 1}
    measured = measurement.measure_intervals(sj.simulate(tree | sampled))
    assert measured["found"] == pytest.approx(3)
    assert measured["least"] == measured["most"] == 0
    assert 0 <= measured["occupied_low"] < measured["occupied_high"] <= 100


@pytest.mark.parametrize("scheme", list(shares.SHORT_SCHEMES))
def test_short_flows_complete(scheme: str) -> None:
    """Flows arrive at the stated load, and complete; drops are shares of their packets."""
    tree = shares.with_short_flows(scheme, 90, SET_UP)
    measured = shares.measure_short(sj.simulate(tree | {"seed": 1}))
    assert measured["flows"] == pytest.approx(6 * 1e6 / (shares.SHORT_PACKETS * 960 * 8), rel=0.4)
    assert 0.08 < measured["mean_s"] <= measured["p95_s"]
    assert measured["early"] == 0
    tight = shares.measure_short(sj.simulate(shares.with_short_flows(scheme, 10, SET_UP)))
    assert tight["full"] > measured["full"] or scheme not in ("ewfq", "wfq")
