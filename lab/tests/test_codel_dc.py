"""CoDel in data centres: model, gains, growth between two times, measures, and set-up."""

import polars as pl
import pytest

import sojourn
from sojourn_lab.papers.codel_dc import model, open_facts, open_question, rules_flows, runs, series
from sojourn_lab.papers.codel_dc.runs import SPREAD_NS, queries, switch
from sojourn_lab.papers.codel_dc.set_up import BASE, CODEL, SetUp


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
    assert series.model(ratio) == pytest.approx(paper, abs=1e-5)
    assert series.by_time(ratio) == pytest.approx(over_time, abs=1e-4)


def test_the_best_gain_is_that_of_the_means() -> None:
    """Gains are paired by seed: (1 - 6/8) and (1 - 8/16) at 1; at 2 only one seed is better."""
    rows = [
        ("other", 1, 1, 8.0), ("other", 1, 2, 16.0), ("other", 2, 1, 10.0), ("other", 2, 2, 10.0),
        ("ours", 1, 1, 6.0), ("ours", 1, 2, 8.0), ("ours", 2, 1, 4.0), ("ours", 2, 2, 9.5),
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["scheme", "x", "seed", "afct_s"], orient="row")
    place, gains = series.best(frame, "ours", "other", "x")
    assert place == 1
    assert gains.tolist() == [25.0, 50.0]


def test_growth_between_two_times() -> None:
    """The count at a time is the last sample's up to it; before the first sample it is 0."""
    row = {"scheme": "red", "seed": 1, "time_ms": [101.0, 102.0, 103.0], "aqm": [1.0, 5.0, 6.0]}
    frame = pl.DataFrame([row])
    assert rules_flows._between(frame, "aqm", "red", 100, 102.5).tolist() == [5.0]
    assert rules_flows._between(frame, "aqm", "red", 101, 103).tolist() == [5.0]
    assert rules_flows._between(frame, "aqm", "red", 102, 110).tolist() == [1.0]


def test_server_links_are_equal_unless_spread() -> None:
    """When spread, no two of 128 servers, nor the long flow, send in the same phase of 8 us."""
    for spread, phases in (0, 1), (SPREAD_NS, 129):
        law, source = CODEL, queries(10)
        tree = switch(law, 128, source, "1s", spread_ns=spread, long_ns=spread // 2)
        delays = [link["delay"] for name, link in tree["links"].items() if name.startswith("nic-")]
        assert len({int(delay.removesuffix("ns")) % 8000 for delay in delays}) == phases


@pytest.mark.parametrize("target_us", [0, 30, 75, 150, 225, 300])
def test_equations_2_to_6_give_equation_7(target_us: float) -> None:
    """Below X round trips the mean throughput is halfway to full, above it is full."""
    ours = model.formulas(target_us)
    full = (BASE.bdp + ours["smallest"]) / (2 * BASE.bdp)
    share = (full * ours["below"] + ours["above"]) / (ours["below"] + ours["above"])
    assert share == pytest.approx(ours["utilisation"])


def test_equations_2_to_6_at_half_a_round_trip() -> None:
    """1 Gbit/s, 300 us, packets of 1000 B: 37.5 packets; the target adds 18.75."""
    ours = model.formulas(150)
    assert ours["largest"] == pytest.approx(56.25)
    assert ours["smallest"] == pytest.approx(28.125)
    assert ours["below"] == pytest.approx(9.375)
    assert ours["above"] == pytest.approx(18.75)


def test_all_queries_are_the_first_queries() -> None:
    """With as many queries as ns-2 made, the first are all; with fewer there is no value."""
    for number in (runs.FIRST, runs.FIRST - 1):
        source = queries(10, number=number)
        tree = {**switch(CODEL, 4, source, "500ms"), **runs.SAMPLED, "seed": 1}
        measured = runs.of_answers(sojourn.simulate(tree))
        assert measured["queries"] == number
        expected = measured["afct_s"] if number == runs.FIRST else None
        assert measured["first_afct_s"] == expected


def test_gains_of_pi_are_the_simulator_s() -> None:
    """The simulator computes the same gains from flows and round-trip time."""
    law = open_question.laws()["pi"]
    rule = {name: value for name, value in law.items() if name not in "ab"}
    rule |= {"flows": 1, "rtt": "600us"}
    trees = [{**switch(one, 8, queries(100), "200ms"), "seed": 1} for one in (law, rule)]
    first, second = (sojourn.simulate(tree).links["port"] for tree in trees)
    assert first.dropped_early_packets > 0
    assert first.queue_mean_packets == pytest.approx(second.queue_mean_packets, rel=1e-9)


def test_packets_are_dropped_where_each_discipline_starts() -> None:
    """CoDel drops no packet that waited for less than 300 us, 37 packets of 8 us."""
    tree = switch(CODEL, 8, queries(100), "200ms") | runs.FINE | {"packet_log": True, "seed": 1}
    measured = model.of_drops(sojourn.simulate(tree))
    assert measured["drops"] > 0
    assert measured["queue"] >= 37
    assert measured["average"] is None


def test_the_constants_scale_the_traffic() -> None:
    """Twice the rate halves the gaps at the same load; packets of 540 B have 500 of payload."""
    other = SetUp(rate="2gbit", packet="540B")
    assert queries(3, other)["size"] == "1500B"
    slower, faster = (runs.poisson(50, one)["interval"] for one in (BASE, SetUp(rate="2gbit")))
    assert (slower, faster) == ("exponential(800000ns)", "exponential(400000ns)")
    assert other.bdp == pytest.approx(300e-6 * 2e9 / 8 / 540)
    assert open_question.laws(SetUp(delay="150us"))["rem"]["period"] == "600us"


def test_who_is_faster_than_codel() -> None:
    """By paired intervals: REM is always faster, PI always slower, Blue sometimes either."""
    rows = [
        {"scheme": s, "kB": 10, "seed": seed, "afct_s": value}
        for s, each in {
            "codel": (5e-3, 6e-3, 7e-3), "rem": (4e-3, 5.01e-3, 6e-3),
            "pi": (6e-3, 7.01e-3, 8e-3), "blue": (4e-3, 7e-3, 7e-3),
        }.items()
        for seed, value in enumerate(each, 1)
    ]  # fmt: skip
    frame = pl.DataFrame(rows)
    codel = pl.col("scheme") == "codel"
    there = {"incast": frame.filter(codel), "other AQMs": frame.filter(~codel)}
    names = {"rem": "REM", "pi": "PI", "blue": "Blue"}
    assert open_facts.compared(0, 10, True, names)(there) == "REM 5 ms"
    assert open_facts.compared(0, 10, False, names)(there) == "PI 7 ms"
