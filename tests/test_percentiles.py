"""Percentiles over the values of several runs: values, bins, intervals, and refusals."""

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sojourn as sj
from conftest import EXAMPLES, Command
from sojourn import metrics
from sojourn.metrics.overview import rows
from sojourn.result.distribution import RESOLUTION, Distribution, middles_s
from sojourn.result.percentiles import (
    percentile_difference_of,
    percentile_of,
    values_for_interval,
    values_for_value,
)
from sojourn.scenario.draft import Draft
from sojourn.sweeps import estimates


def exponential(runs: int, number: int, mean_s: float = 1.0, seed: int = 1) -> list[Distribution]:
    """Return distributions of random delays."""
    rng = np.random.default_rng(seed)
    return [Distribution.of(mean_s * rng.exponential(size=number)) for _ in range(runs)]


def test_bins_are_those_of_the_simulator() -> None:
    """128 per doubling, nanoseconds below; the form in stored rows is exact."""
    values_s = np.concatenate([np.arange(300) * 1e-9, np.geomspace(1e-6, 1e4, 500)])
    distribution = Distribution.of(values_s)
    assert distribution.number == 800
    assert np.abs(middles_s(distribution.bins)[:128] * 1e9 - np.arange(128)).max() < 1e-6
    for value in values_s[128:]:
        (middle,) = middles_s(Distribution.of([value]).bins)
        assert abs(middle / value - 1) <= RESOLUTION * 1.001
    again = Distribution.parse(distribution.text())
    assert np.array_equal(again.bins, distribution.bins)
    assert np.array_equal(again.counts, distribution.counts)
    for damaged in ("x", "1:2,3", "5:1,-2:1", "1:2,0:1"):
        with pytest.raises(ValueError, match=r"distribution|invalid literal"):
            Distribution.parse(damaged)
    result = sj.simulate(Draft.read(EXAMPLES / "home-uplink.toml"))
    link, call = result.links["bottleneck"], result.flows["call"]
    for key, record, name in (
        ("sojourn/bottleneck", link, "sojourn"), ("delay/call", call, "delay"),
    ):  # fmt: skip
        for percent in (50, 95, 99):
            pooled = percentile_of([result.distributions[key]], percent)
            assert pooled.value == pytest.approx(record[f"{name}_p{percent}_s"], rel=RESOLUTION)
    assert result.distributions["sojourn/bottleneck"].number == link.departed_packets
    assert result.distributions["delay/call"].number == call.received_packets


def test_values_of_all_runs_are_pooled() -> None:
    """The 99th percentile of all values, not the mean of each run's largest of 37."""
    runs = exponential(60, 37)
    estimate = percentile_of(runs, 99)
    assert estimate.value is not None
    assert estimate.value == pytest.approx(-math.log(0.01), rel=0.1)
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low < -math.log(0.01) < estimate.high
    largest = np.mean([middles_s(one.bins[-1:])[0] for one in runs])
    assert largest < 0.95 * estimate.value
    assert (estimate.runs, estimate.asked, estimate.values, estimate.needed) == (
        60,
        60,
        60 * 37,
        None,
    )


def test_a_percentile_needs_values() -> None:
    """One beyond it for a value, ten beyond it and three runs for an interval."""
    assert [values_for_value(p) for p in (50, 95, 99, 99.9, 1, 100)] == [2, 20, 100, 1000, 100, 1]
    assert [values_for_interval(p) for p in (50, 95, 99, 100)] == [20, 200, 1000, None]
    few = percentile_of(exponential(2, 37), 99)
    assert (few.value, few.text()) == (None, "- (74 of 100 values)")
    some = percentile_of(exponential(5, 37), 99)
    assert some.value is not None
    assert (some.low, some.notes) == (None, ["185 of 1000 values"])
    gone = percentile_of([*exponential(29, 37), None], 99)
    assert gone.low is not None
    assert gone.notes == ["29 of 30 runs"]
    assert percentile_of(exponential(2, 5000), 99).low is None
    assert percentile_of([None, None], 99).text() == "- (0 of 2 runs)"
    single = percentile_of(exponential(1, 200), 99)
    assert (single.low, single.notes) == (None, [])


def test_runs_are_the_sampled_units() -> None:
    """Values that differ between runs, not within them, give a wide interval."""
    rng = np.random.default_rng(3)
    levels = rng.uniform(1, 2, 11)
    runs = [Distribution.of(level * rng.uniform(0.999, 1.001, 1000)) for level in levels]
    estimate = percentile_of(runs, 50)
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.high - estimate.low > 0.2
    mixed = Distribution.of(np.concatenate([levels] * 1000))
    same = percentile_of([mixed] * 10, 50)
    assert same.low is not None
    assert same.high is not None
    assert same.high - same.low < 0.2


def test_differences_of_percentiles() -> None:
    """Of pairs with values on both sides; equal runs do not differ."""
    ours, theirs = exponential(20, 500, 2.0), exponential(20, 500, 1.0, seed=2)
    gap = percentile_difference_of(ours, theirs, 95)
    assert gap.low is not None
    assert gap.high is not None
    assert gap.low < -math.log(0.05) < gap.high
    assert gap.noun == "pair"
    none = percentile_difference_of(ours, ours, 95)
    assert none.value == 0
    assert none.low is not None
    assert none.low <= 0
    partly = percentile_difference_of([None, *ours[1:]], theirs, 95)
    assert (partly.runs, partly.asked) == (19, 20)
    assert percentile_difference_of([None], theirs[:1], 95).value is None


def test_tables_show_pooled_percentiles(tmp_path: Path, sojourn: Command) -> None:
    """`compare` and `results` agree; a percentile with too few values is refused."""
    case = Draft.read(EXAMPLES / "home-uplink.toml").tree | {"duration": "20s"}
    runs = sj.compare(case, ["droptail", "codel"], seeds=4, out=f"{tmp_path}/out")
    table = {(row.like.of, row.like.what): row for row in rows(runs, "bottleneck")}
    frame = sj.results(f"{tmp_path}/out")
    of = frame.filter(pl.col("qdisc") == "codel")
    for row, name in (
        (table["bottleneck", "queueing delay, 99 %"], "sojourn_p99_s"),
        (table["call", "one-way delay, 99 %"], "call.delay_p99_s"),
        (table["short (2)", "completion time, 99 %"], "short.fct_p99_s"),
    ):
        assert row.estimates[1] == estimates.of(of, name).times(1e3)
    took = [metrics.completion_times_s(one, "short") for one in runs["codel"]]
    number = sum(map(len, took))
    assert number < 100
    note = f"- ({number} of 100 values)"
    assert table["short (2)", "completion time, 99 %"].texts[1] == note
    _, out, _ = sojourn("results", f"{tmp_path}/out", "--metric", "short.fct_p99")
    assert note in out
    _, out, _ = sojourn("results", f"{tmp_path}/out", "--metric", "short.jain")
    assert "±" not in out
    _, out, _ = sojourn("results", f"{tmp_path}/out", "--percentile", "95")
    assert "- (4 of 20 values)" in out


def test_metrics_that_are_percentiles_are_pooled_too() -> None:
    """With their arguments; percentiles of single runs have no interval."""
    case = Draft.read(EXAMPLES / "home-uplink.toml").tree | {"duration": "20s"}
    chosen = [
        "queueing_delay_percentile_s",
        {"name": "fct_percentile_s", "percent": 80, "group": "short"},
        "jain_index",
    ]
    frame = sj.sweep(case, {"bottleneck.qdisc": ["codel"]}, seeds=4, metrics=chosen)
    pooled = estimates.of(frame, "queueing_delay_percentile_s")
    assert pooled == estimates.of(frame, "sojourn_p99_s")
    assert pooled.low is not None
    of_transfers = estimates.of(frame, "fct_percentile_s(group=short,percent=80)")
    assert of_transfers.values == frame["short.completed"].sum()
    assert estimates.of(frame, "jain_index").low is None
    bad = frame.with_columns(sojourn_values=pl.lit("1:x"))
    with pytest.raises(sj.InputError, match="sojourn_values: is not a column of distributions"):
        estimates.of(bad, "sojourn_p99_s")


def test_rare_events_have_no_interval() -> None:
    """A mean of 0.4 timeouts over five runs stands on two."""
    rare = pl.DataFrame({"f.timeouts": [0, 0, 1, 1, 0]})
    assert estimates.of(rare, "f.timeouts").text() == "0.4"
    assert estimates.of(rare * 20, "f.timeouts").low is not None
    shares = pl.DataFrame({"loss_rate": [0.0, 0.1, 0.2], "dropped_packets": [0, 3, 6]})
    assert estimates.of(shares, "loss_rate").low is None
    many = shares.with_columns(pl.col("dropped_packets") * 10)
    assert estimates.of(many, "loss_rate").low is not None
