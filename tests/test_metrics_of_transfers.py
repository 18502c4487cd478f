"""Metrics of transfers on columns made by hand, against values computed by hand."""

import numpy as np
import pytest

import sojourn as sj
from hand_made import result_with, transfers
from sojourn import metrics


def test_completion_times() -> None:
    """Transfers that start in the warm-up of 10 s do not count."""
    r = result_with(transfers([(2, 5, 9, 100), (2, 20, 3, 100), (2, 30, 1, 100), (2, 40, 2, 100)]))
    assert metrics.completion_times_s(r).tolist() == [1, 2, 3]
    assert metrics.afct_s(r) == 2
    assert metrics.afct_s(r, "ftp") is None
    assert metrics.fct_percentile_s(r, 50) == 2
    assert metrics.fct_percentile_s(r, 67) == 3
    assert metrics.fct_percentile_s(r, 99, "ftp") is None
    slow = result_with(transfers([(2, 20, 5, 100)]))
    assert metrics.afct_improvement(r, slow) == pytest.approx(0.6)
    assert metrics.afct_improvement(slow, result_with()) is None


def test_slowdown() -> None:
    """8 Mbit/s, 20 ms one way, 100 ms both ways, packets of 1040 B with 1000 B of payload.

    10 packets: a handshake of 100 ms and 48 us, its ack of 40 us, 20 ms, and 10.4 ms at the rate of
    the link. On an open connection no handshake counts, and a shorter wait for one only as far as
    it was.
    """
    rows = transfers(
        [(2, 50, 0.3, 10_000), (2, 20, 0.260976, 10_000), (2, 30, 0.0608, 10_000),
         (2, 40, 0.0608, 9_001)]
    )  # fmt: skip
    r = result_with({**rows, "fct/startup_s": np.array([0.1196, 0.13, 0, 0])})
    short = 0.02 + (9 * 1040 + 41) * 8 / 8e6
    expected = [2, 2, 0.0608 / short, 0.3 / 0.130488]
    assert np.allclose(metrics.slowdowns(r), expected)
    assert metrics.slowdown_mean(r) == pytest.approx(np.mean(expected))
    assert metrics.slowdown_mean(r, "web", (0, 10_000)) == pytest.approx(expected[2])
    assert metrics.slowdown_mean(r, "web", (1e4, 1e9)) == pytest.approx((4 + expected[3]) / 3)
    assert metrics.slowdown_mean(r, "web", (1e6, 1e9)) is None


def test_query_completion() -> None:
    """The last answer of each query: by the query table, else by start time."""
    rows = [(0, 20, 1.0, 9), (1, 20, 3.0, 9), (0, 30, 2.0, 9), (1, 30, 0.5, 9)]
    assert metrics.query_completion_s(result_with(transfers(rows))).tolist() == [3, 2]
    queries = {"query/flow": [0, 0, 2, 0], "query/start_s": [30, 20, 40, 5.0],
            "query/duration_s": [2, 3, 4, 5.0]}  # fmt: skip
    both = result_with({**transfers(rows), **queries})
    assert metrics.query_completion_s(both).tolist() == [3, 2, 4]
    assert metrics.query_completion_s(both, "ftp").tolist() == [3, 2]


def test_timeouts() -> None:
    """Summed over groups that have a TCP."""
    of = {"ftp": ([0, 2, 1], [1, 0, 0]), "web": ([1, 1, 0], [0, 0, 4])}
    columns = {}
    for group, (stalled, expired) in of.items():
        columns[f"groups/{group}/stalled_flows"] = stalled
        columns[f"groups/{group}/timeouts"] = expired
    r = result_with(columns)
    assert metrics.flows_in_timeout(r).tolist() == [1, 3, 1]
    assert metrics.flows_in_timeout(r, "ftp").tolist() == [0, 2, 1]
    assert metrics.timeouts_over_time(r).tolist() == [1, 0, 4]
    with pytest.raises(KeyError, match="no stalled_flows"):
        metrics.flows_in_timeout(r, "call")


def test_startup_times() -> None:
    """Ascending, for flows started after the warm-up; one round trip without loss."""
    columns = {**transfers([(0, 5.0, 1.0, 9), (0, 20.0, 2.0, 9), (0, 30.0, 1.5, 9)]),
               "fct/startup_s": np.array([0.7, 0.2, 0.1])}  # fmt: skip
    assert metrics.startup_times_s(result_with(columns)).tolist() == [0.1, 0.2]
    flow = sj.Flow(name="f", path=["up"], rtt="50ms", source=sj.Transfers(size="9kB", number=4))
    links = {"up": sj.Link(rate="1gbit")}
    result = sj.simulate(sj.Scenario(duration="9s", links=links, flows=[flow]))
    assert metrics.startup_times_s(result, "f") == pytest.approx([0.05] * 4, abs=1e-6)


def test_unfinished_transfers() -> None:
    """Transfers of one second each, one after the other: two finish in 2.5 s."""
    source = sj.Transfers(size="1MB", start="0s", gap="0s")
    flow = sj.Flow(name="f", path=["up"], rtt="10ms", source=source)
    case = sj.Scenario(duration="2.5s", links={"up": sj.Link(rate="8mbit")}, flows=[flow])
    result = sj.simulate(case)
    assert (result.flows["f"].completed, metrics.unfinished_transfers(result, "f")) == (2, 1)
    ended = flow.replace(source=source.replace(number=2))
    assert metrics.unfinished_transfers(sj.simulate(case.replace(flows=[ended]))) == 0
    later = flow.replace(source=source.replace(start="9s"))
    assert metrics.unfinished_transfers(sj.simulate(case.replace(flows=[later]))) == 0
    assert metrics.unfinished_transfers(result_with(), "web") == 0
