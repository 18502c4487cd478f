"""Statistics of few values, computed by hand or from tables."""

import math

import numpy as np
import pytest

from sojourn.result import statistics
from sojourn.result.statistics import (
    batch_means,
    half_width,
    interval,
    mser5,
    paired,
    percentile,
    quantile,
    runs_for_interval,
    separate,
)


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Forget the quantiles of other tests, so that each test computes its own."""
    quantile.cache_clear()


@pytest.mark.parametrize(
    ("freedom", "factor"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (10, 2.228),
     (30, 2.042), (120, 1.980)],
)  # fmt: skip
def test_quantiles_are_those_of_the_tables(freedom: int, factor: float) -> None:
    """97.5 % of Student's t, to four digits."""
    assert quantile(freedom) == pytest.approx(factor, abs=5.1e-4)


def test_the_quantiles_of_one_and_two_have_formulas() -> None:
    """tan(0.475 pi) of Cauchy's distribution; 2 a sqrt(2 / (1 - a^2)) / 2 with a = 0.95."""
    assert quantile(1) == pytest.approx(math.tan(0.475 * math.pi), rel=1e-12)
    assert quantile(2) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)), rel=1e-12)


@pytest.mark.parametrize("freedom", [1, 2, 3, 10, 30, 1000, 100_000])
def test_digits_double_with_each_step_of_newton(
    freedom: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 10 steps to the last digit; with another slope than t's it takes dozens."""
    within, steps = statistics._within, list[float]()

    def counted(t: float, v: int) -> float:
        steps.append(t)
        assert len(steps) <= 10
        return within(t, v)

    monkeypatch.setattr(statistics, "_within", counted)
    assert quantile(freedom) == max(steps)


def test_an_interval_of_two_values_has_one_degree_of_freedom() -> None:
    """1 and 3: deviation sqrt(2), standard error 1."""
    estimate = interval([1.0, 3.0])
    assert estimate.mean == 2.0
    assert estimate.half == pytest.approx(math.tan(0.475 * math.pi))
    assert (estimate.low, estimate.high) == (2.0 - estimate.half, 2.0 + estimate.half)
    assert math.isnan(half_width([1.0]))
    assert math.isnan(interval([]).mean)
    assert interval([5.0]).mean == 5.0
    assert paired([5.0, 7.0], [1.0, 2.0]).mean == 4.5


def test_the_interval_of_a_median_needs_six_values() -> None:
    """All six are on one side of the median with 2 / 64 = 0.031, all five with 2 / 32 = 0.063."""
    assert percentile([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 50) == (3.5, 1.0, 6.0)
    value, low, high = percentile([1.0, 2.0, 3.0, 4.0, 5.0], 50)
    assert (value, math.isnan(low), math.isnan(high)) == (3.0, True, True)
    assert percentile([7.0], 50)[0] == 7.0
    assert math.isnan(percentile([], 50)[0])


def test_an_interval_has_at_most_two_and_a_half_percent_outside_on_each_side() -> None:
    """Of ten values at most one is below the median with 11 / 1024, at most two with 56 / 1024."""
    assert percentile(np.arange(1.0, 11), 50) == (5.5, 2.0, 9.0)
    # Of nine: at most one with 10 / 512 = 0.0195, at most two with 46 / 512.
    assert percentile(np.arange(9.0, 0, -1), 50) == (5.0, 2.0, 8.0)
    # All 36 values are below the 90th percentile with 0.9^36 = 0.0225, all 35 with 0.0250316.
    assert [runs_for_interval(percent) for percent in (10, 90)] == [36, 36]
    assert percentile(np.arange(36.0), 90)[2] == 35.0
    assert math.isnan(percentile(np.arange(35.0), 90)[2])
    # All 368 are below the 99th percentile with 0.99^368 = 0.0248: the largest is the upper end.
    assert percentile(np.arange(368.0), 99)[2] == 367.0
    assert percentile(np.arange(368.0), 1)[1] == 0.0
    assert runs_for_interval(0) is None
    assert math.isnan(percentile(np.arange(99.0), 100)[1])


def test_equal_means_are_not_separate() -> None:
    """By pairs without a difference, and by intervals that touch; one shared seed is no pair."""
    assert not separate({1: 5.0, 2: 7.0}, {1: 5.0, 2: 7.0})
    assert not separate({1: 5.0, 2: 5.0}, {3: 5.0, 4: 5.0})
    assert separate({1: 10.0, 2: 10.1}, {1: 90.0, 3: 90.1})
    assert separate({1: 90.0, 2: 90.1}, {1: 10.0, 3: 10.1})


def of_groups(*means: float) -> list[float]:
    """Return a series of five equal values for each mean."""
    return [mean for mean in means for _ in range(5)]


def test_mser_minimises_the_error_of_what_is_left() -> None:
    """The sum of squares over the square of the number, for each cut up to half."""
    assert mser5(of_groups(9, 0, 0, 0)) == 5
    assert mser5(of_groups(9, 9, 0, 0)) == 10
    assert mser5(of_groups(0, 0, 0, 0)) == 0
    # Cuts of three of four groups would have no error, but are more than half.
    assert mser5(of_groups(9, 5, 1, 0)) == 10
    assert mser5(of_groups(9, 9, 0)) == 0, "fewer than four groups"
    assert mser5(of_groups(0.25, 0, 0, 0)) == 5
    # 6.41 / 36 from the start, 4 / 25 after the first group, 2.75 / 16 after the second.
    assert mser5(of_groups(1.7, 1, -1, 1, -1, 0)) == 5
    # 6 / 36 from the start, 4.8 / 25 after the first group, 4 / 16 after the second.
    assert mser5(of_groups(1, 3, 1, 3, 1, 3)) == 0
    assert mser5([*of_groups(9, 0, 0, 0), 50, 50, 50, 50]) == 5, "an incomplete group is left out"
    # Groups average their five values.
    assert mser5([50, -50, 0, 0, 0] * 4) == 0
    assert mser5([45, 0, 0, 0, 0, *of_groups(0, 0, 0)]) == 5


def test_batches_are_averaged() -> None:
    """20 batches unless asked otherwise; as many values as batches are enough."""
    x = np.arange(40.0)
    halves = np.arange(0.5, 40, 2)
    assert batch_means(x).mean == 19.5
    assert batch_means(x).half == pytest.approx(half_width(halves))
    assert batch_means([1.0, 2.0, 5.0, 6.0], 2).half == pytest.approx(half_width([1.5, 5.5]))
    assert batch_means([1.0, 2.0], 2).mean == 1.5
    with pytest.raises(ValueError, match="1 values are too few for 2 batches"):
        batch_means([1.0], 2)
