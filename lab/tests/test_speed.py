"""Benchmarks of topologies: workloads, table, and counted instructions."""

import pytest

from sojourn.scenario.draft import canonical
from sojourn_lab.speed import instructions, topologies, workloads
from sojourn_lab.speed.workloads import Cost


def cost(run_s: float) -> Cost:
    """Return the cost of a run of a million packet-hops."""
    return Cost(hops=1_000_000, read_s=0.1, run_s=run_s, read_kb=5_000, run_kb=9_000)


@pytest.mark.parametrize("name", workloads.SMALL)
def test_small_workloads_are_valid_and_recorded(name: str) -> None:
    """Each has two lengths, and a recorded number of instructions."""
    build, short, long = workloads.SMALL[name]
    assert short < long
    assert canonical(build(short))["links"] == canonical(build(long))["links"]
    assert instructions.read_hops(instructions.RECORDED_HOPS.read_text())[name] > 0


def test_incast_shares_the_link_of_each_client() -> None:
    """A query has a server per leaf, and all answers share the last two links."""
    tree = canonical(workloads.leaf_spine(3, clients=2, ms=1))
    assert tree["flows"][1]["count"] == 3
    assert tree["flows"][1]["path"] == ["h1x{i}-l{i}", "l{i}-s1", "s1-rack", "rack-c1"]
    assert tree["flows"][1]["return_path"] == ["c1-rack", "rack-s1", "s1-l{i}", "l{i}-h1x{i}"]


def test_tables_compare_with_the_first_row() -> None:
    """S1 is the reference of the benchmark."""
    costs = {"S1": cost(0.1), "star": cost(0.2)}
    assert "| star | 1.00 M | 5.00 | 0.50 | 200 | 0.10 | 9 |" in topologies.table(costs)


def test_counts_above_the_tolerance_fail() -> None:
    """A count may exceed the recorded one by TOLERANCE."""
    assert not instructions.exceeds("hop", 105, 100)
    assert instructions.exceeds("hop", 106, 100)


def test_events_of_cachegrind_are_read() -> None:
    """Totals are read by the names of their events."""
    text = "desc: D1 cache\nevents: Ir Bcm\nfn=main\n1 5 2\nsummary: 50 20\n"
    assert instructions.cache_events(text) == {"Ir": 50, "Bcm": 20}
