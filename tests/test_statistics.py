"""Statistics against worked examples and known distributions."""

import numpy as np
import pytest

import sojourn as sj
from sojourn.result.statistics import (
    batch_means,
    interval,
    mser5,
    paired,
    percentile,
    quantile,
    runs_for_interval,
    separate,
)
from sojourn.result.steady_state import steady


def test_interval_is_students() -> None:
    """Tabulated factors: 2.776 for five runs, 2.262 for ten."""
    for n, factor in ((5, 2.776), (10, 2.262), (20, 2.093)):
        x = np.arange(n, dtype=float)
        estimate = interval(x)
        assert estimate.mean == x.mean()
        assert estimate.half == pytest.approx(factor * x.std(ddof=1) / n**0.5, rel=3e-4)
        assert estimate.high - estimate.low == pytest.approx(2 * estimate.half)
    assert np.isnan(interval([1.0]).half)


def test_quantiles_and_binomial_ranks_are_those_of_scipy() -> None:
    """Student's t for even and odd degrees of freedom; ranks for several numbers of values."""
    from scipy.stats import binom, t

    for freedom in (*range(1, 60), 99, 100, 999, 1000, 99_999):
        assert quantile(freedom) == pytest.approx(t.ppf(0.975, freedom), rel=1e-10)
    for percent in (2, 10, 50, 95, 99):
        for n in (6, 10, 57, 400, 5000):
            _, low, high = percentile(np.arange(1, n + 1), percent)
            share = percent / 100
            # The largest rank with at most 2.5 % below, the smallest with at most 2.5 % above.
            ranks = np.arange(1, n + 1)
            lows = ranks[binom.cdf(ranks - 1, n, share) <= 0.025]
            highs = ranks[binom.sf(ranks - 1, n, share) <= 0.025]
            if len(lows) and len(highs):
                assert (low, high) == (lows[-1], highs[0])
            else:
                assert np.isnan([low, high]).all()


def test_intervals_have_their_coverage() -> None:
    """2,000 times five normal values: 95 %, within three standard errors."""
    rng = np.random.default_rng(1)
    held = [abs(f.mean) <= f.half for f in (interval(rng.normal(size=5)) for _ in range(2000))]
    assert abs(np.mean(held) - 0.95) < 3 * (0.95 * 0.05 / 2000) ** 0.5


def test_pairing_removes_the_variance_between_seeds() -> None:
    """A difference of 1 among seeds that differ by tens."""
    seeds = np.array([10.0, 50.0, 90.0, 20.0])
    estimate = paired(seeds + 1 + np.array([0.1, -0.1, 0.1, -0.1]), seeds)
    assert estimate.mean == pytest.approx(1.0)
    assert estimate.half < 0.2


def test_samples_that_share_two_seeds_are_compared_by_seed() -> None:
    """Each time 1 more: certain by pairs, although the two means differ less than their errors."""
    ours, theirs = {1: 10.0, 2: 110.0}, {1: 9.0, 2: 109.0}
    assert separate(ours, theirs)
    assert separate(theirs, ours)
    assert not separate(ours, {1: 9.0, 3: 109.0}), "one seed in common: by the intervals"
    assert separate({1: 10.0, 2: 10.1}, {3: 90.0, 4: 90.1})
    assert separate({3: 90.0, 4: 90.1}, {1: 10.0, 2: 10.1})
    assert not separate({1: 10.0, 2: 11.0}, {1: 11.0, 2: 10.0})
    assert not separate({1: 10.0}, {1: 90.0})


def test_percentiles_need_values() -> None:
    """An interval of the median needs 6 values, one of the 99th percentile 368."""
    assert [runs_for_interval(p) for p in (50, 5, 95, 99, 100)] == [6, 72, 72, 368, None]
    value, low, high = percentile(np.arange(6.0), 50)
    assert (value, low, high) == (2.5, 0.0, 5.0)
    assert np.isnan(percentile(np.arange(5.0), 50)[1])
    assert np.isnan(percentile([], 50)[0])


def test_mser_cuts_only_the_warm_up() -> None:
    """A start far off that decays in 200 values; white noise; a series that only rises."""
    rng = np.random.default_rng(3)
    noise = rng.normal(size=4000)
    decaying = 20 * np.exp(-np.arange(4000) / 50)
    assert 150 <= mser5(noise + decaying) <= 600
    assert mser5(noise) <= 1000
    assert mser5(np.arange(4000.0)) == 2000  # half, which says: too short
    assert mser5([1.0, 2.0]) == 0


def test_batch_means_cover_correlated_values() -> None:
    """An autoregressive series: intervals of batches contain its mean, naive ones do not."""
    rng = np.random.default_rng(4)
    batched, single = [], []
    for _ in range(200):
        x = np.zeros(4000)
        steps = rng.normal(size=4000)
        for i in range(1, 4000):
            x[i] = 0.95 * x[i - 1] + steps[i]
        estimate = batch_means(x)
        batched.append(abs(estimate.mean) <= estimate.half)
        single.append(abs(x.mean()) <= interval(x).half)
    assert np.mean(batched) > 0.85
    assert np.mean(single) < 0.5
    with pytest.raises(ValueError, match="too few"):
        batch_means([1.0] * 19)


def test_the_steady_state_of_a_run() -> None:
    """A long flow fills its buffer slowly: the cut is reported, the mean is of a later window."""
    case = {
        "duration": "60s",
        "sample": "20ms",
        "links": {"up": {"rate": "5mbit", "delay": "5ms", "qdisc": {"name": "codel"}}},
        "flows": [{"name": "bulk", "count": 4, "path": ["up"], "rtt": "60ms"}],
    }
    queue, throughput = steady(sj.simulate(case))
    assert queue.cut_s == throughput.cut_s  # the warm-up is one of the link
    assert (queue.link, queue.what, queue.unit) == ("up", "queue", "bytes")
    assert 0 <= queue.cut_s < 30
    later = sj.simulate({**case, "warmup": "30s"}).links["up"]
    assert queue.mean.low <= later.queue_mean_bytes <= queue.mean.high
    assert throughput.mean.mean == pytest.approx(5 * later.utilisation, rel=0.02)
    with pytest.raises(sj.InputError, match="too few"):
        steady(sj.simulate({**case, "duration": "10s"}))
    with pytest.raises(sj.InputError, match="sample"):
        steady(sj.simulate({k: v for k, v in case.items() if k != "sample"}))
