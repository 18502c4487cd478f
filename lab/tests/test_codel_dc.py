"""CoDel in data centres: the model, gains, growth between two times, and the server links."""

import polars as pl
import pytest

from sojourn_lab.papers.codel_dc import rules
from sojourn_lab.papers.codel_dc import runs as codel_dc
from sojourn_lab.papers.codel_dc.runs import SPREAD_NS


@pytest.mark.parametrize(
    ("ratio", "paper", "over_time"),
    [
        (0.0, 0.75, 0.75),
        (0.1, 0.81591, 0.8176),
        (0.25, 0.8875, 0.8929),
        (0.5, 23 / 24, 0.9643),
        (0.75, 0.99107, 0.9932),
        (1.0, 1.0, 1.0),
        (3.0, 1.0, 1.0),
    ],
)
def test_utilisation_of_a_sawtooth(ratio: float, paper: float, over_time: float) -> None:
    """The expected values were computed by hand from the sawtooth of one TCP flow."""
    assert codel_dc.model(ratio) == pytest.approx(paper, abs=1e-5)
    assert codel_dc.by_time(ratio) == pytest.approx(over_time, abs=1e-4)


def test_the_best_gain_is_that_of_the_means() -> None:
    """Gains are paired by seed: (1 - 6/8) and (1 - 8/16) at 1; at 2 only one seed is better."""
    rows = [
        ("other", 1, 1, 8.0), ("other", 1, 2, 16.0), ("other", 2, 1, 10.0), ("other", 2, 2, 10.0),
        ("ours", 1, 1, 6.0), ("ours", 1, 2, 8.0), ("ours", 2, 1, 4.0), ("ours", 2, 2, 9.5),
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["scheme", "x", "seed", "afct_s"], orient="row")
    place, gains = codel_dc.best(frame, "ours", "other", "x")
    assert place == 1
    assert gains.tolist() == [25.0, 50.0]


def test_growth_between_two_times() -> None:
    """The count at a time is the last sample's up to it; before the first sample it is 0."""
    row = {"scheme": "red", "seed": 1, "time_ms": [101.0, 102.0, 103.0], "aqm": [1.0, 5.0, 6.0]}
    frame = pl.DataFrame([row])
    assert rules._between(frame, "aqm", "red", 100, 102.5).tolist() == [5.0]
    assert rules._between(frame, "aqm", "red", 101, 103).tolist() == [5.0]
    assert rules._between(frame, "aqm", "red", 102, 110).tolist() == [1.0]


def test_server_links_are_equal_unless_spread() -> None:
    """When spread, no two of 128 servers, nor the long flow, send in the same phase of 8 us."""
    for spread, phases in (0, 1), (SPREAD_NS, 129):
        law, source = codel_dc.CODEL, codel_dc.queries(10)
        tree = codel_dc.switch(law, 128, source, "1s", spread_ns=spread, long_ns=spread // 2)
        delays = [link["delay"] for name, link in tree["links"].items() if name.startswith("nic-")]
        assert len({int(delay.removesuffix("ns")) % 8000 for delay in delays}) == phases
