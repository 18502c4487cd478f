"""Intervals of sweeps contain the truth as often as they say, on stored runs of 300 seeds.

`make coverage` measures it over 1,000 fresh seeds.
"""

import numpy as np
import polars as pl
import pytest

from sojourn.result.statistics import half_width, percentile, runs_for_interval
from sojourn.sweeps import estimates
from sojourn_lab import ROOT
from sojourn_lab.reports.interval_coverage import (
    HALF,
    MEANS,
    NO_INTERVAL,
    PERCENTILES,
    QDISCS,
    batches,
    of_columns,
    of_differences,
    of_percentiles,
    of_until,
)

COUNT = 400
"""Number of batches."""

LEAST = 0.93 - 2 * (0.95 * 0.05 / COUNT) ** 0.5
"""Smallest coverage: two standard errors of `COUNT` batches below the 1,000 fresh seeds'."""


@pytest.fixture(scope="module")
def rows() -> dict[str, pl.DataFrame]:
    """Return the stored runs by discipline."""
    every = pl.read_parquet(ROOT / "lab/vectors/coverage.parquet")
    return {name: every.filter(pl.col("qdisc") == name) for name in QDISCS}


@pytest.mark.parametrize("size", [5, 20])
@pytest.mark.parametrize("qdisc", QDISCS)
def test_every_interval_that_is_shown_covers(
    qdisc: str, size: int, rows: dict[str, pl.DataFrame]
) -> None:
    """Means, shares, counts and percentiles, with few and with many seeds."""
    shares = of_columns(rows[qdisc], [*MEANS, *PERCENTILES], size, COUNT)
    low = {name: one for name, one in shares.items() if one[1] > HALF and one[0] < LEAST}
    assert not low
    assert sum(share > 0.9 for _, share in shares.values()) >= 12  # most are shown


def test_differences_cover(rows: dict[str, pl.DataFrame]) -> None:
    """Of means and of percentiles, paired by seed."""
    names = ["loss_rate", "short.fct_mean_s", "sojourn_p50_s", "sojourn_p99_s", "call.delay_p99_s"]
    shares = of_differences(rows, names, 10, COUNT)
    assert {name: one for name, one in shares.items() if one < LEAST} == {}


def test_a_stopping_rule_keeps_the_coverage(rows: dict[str, pl.DataFrame]) -> None:
    """It starts with 20 seeds; with 5 the coverage was 0.79 to 0.89."""
    for qdisc, name in (("codel", "short.fct_mean_s"), ("codel", "sojourn_p99_s")):
        covered, seeds = of_until(rows[qdisc], name, 0.05, COUNT)
        assert covered >= LEAST
        assert 20 <= seeds < 60


def test_skewed_means_have_no_interval(rows: dict[str, pl.DataFrame]) -> None:
    """Student's t covers less than 0.93 of the means of Jain's index: there is none."""
    low = []
    for qdisc in QDISCS:
        for name in NO_INTERVAL:
            _, shown = of_columns(rows[qdisc], [name], 5, COUNT)[name]
            assert shown == 0
            truth = float(np.mean(rows[qdisc][name].to_numpy()))
            some = [batch[name].to_numpy() for batch in batches(rows[qdisc], 5, COUNT)]
            low.append(np.mean([abs(one.mean() - truth) <= half_width(one) for one in some]))
    assert min(low) < 0.92


def test_percentiles_of_runs_cover_or_are_refused() -> None:
    """95 % needs 72 runs; the bootstrap covered 0.21 with 5."""
    for percent in (5, 50, 90, 95):
        size = runs_for_interval(percent) or 0
        assert 0.93 <= of_percentiles(percent, size, 2000) <= 0.985
        _, low, high = percentile(np.arange(float(size - 1)), percent)
        assert np.isnan(low)
        assert np.isnan(high)
    assert runs_for_interval(95) == 72
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0, 5.0] * 5})
    assert estimates.of(frame[:5], "x", 95).text() == "- (5 of 20 values)"
    assert estimates.of(frame, "x", 95).text() == "5 (25 of 72 values)"
