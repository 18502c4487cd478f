"""Every share in metrics, sweeps and comparisons lies between 0 and 1."""

import inspect
from typing import Any

import numpy as np
import pytest

import sojourn as sj
from sojourn import metrics
from sojourn.metrics.overview import groups
from sojourn.sweeps.columns import Standard

SHARES = {
    name: metric
    for name, metric in metrics.METRICS.items()
    if metric.unit.startswith("share") or metric.unit == "probability" or name.endswith("_ratio")
}

GAINS = {"afct_improvement"}
"""A gain is relative to another run, and negative where there is a loss."""


def overload(qdisc: str, seed: int) -> dict[str, Any]:
    """A queue that is full at the end of the warm-up, and few arrivals after it."""
    flood = {"name": "cbr", "rate": "3mbit", "packet": "700B", "stop": "1005ms"}
    web = {"name": "transfers", "size": "pareto(mean=20kB, shape=1.5)", "gap": "50ms"}
    return {
        "duration": "4s", "warmup": "1s", "sample": "20ms", "packet_log": True, "seed": seed,
        "links": {"l": {"rate": "1mbit", "delay": "5ms", "loss": 0.05,
                        "qdisc": {"name": qdisc, "limit": "300p"}}},
        "flows": [
            {"name": "flood", "count": 3, "path": ["l"], "source": flood},
            {"name": "few", "path": ["l"], "source": {"name": "cbr", "rate": "20kbit"}},
            {"name": "web", "count": 2, "path": ["l"], "rtt": "40ms", "source": web,
             "tcp": "newreno"},
        ],
    }  # fmt: skip


@pytest.mark.parametrize("qdisc", ["droptail", "red", "codel", "pie", "fq_codel", "sfq", "cobalt"])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_share_lies_between_0_and_1(qdisc: str, seed: int) -> None:
    """Metrics of every kind, with every group, and the columns of sweeps and comparisons."""
    result = sj.simulate(overload(qdisc, seed))
    for name, metric in SHARES.items():
        if name in GAINS:
            continue
        takes = inspect.signature(metric.function).parameters
        for group in ("flood", "few", "web") if "group" in takes else (None,):
            arguments = {"link": "l"} if "link" in takes else {}
            arguments |= {"group": group} if group else {}
            value = metric.function(result, **arguments)
            values = np.atleast_1d(np.asarray(value if value is not None else [], dtype=float))
            values = values[~np.isnan(values)]
            assert np.all((values >= 0) & (values <= 1 + 1e-12)), (name, arguments, values)
    row = Standard("l")(result)
    shares = [value for key, value in row.items() if key.endswith(("_rate", "utilisation", "jain"))]
    shares += [group.loss_rate() for group in groups(result) if group.udp]
    assert len(shares) > 5
    assert all(value is None or 0 <= value <= 1 + 1e-12 for value in shares), row


def test_shares_are_of_the_packets_that_arrive_after_the_warm_up() -> None:
    """Recounted from the packets: the queue of the warm-up does not count."""
    result = sj.simulate(overload("codel", 1))
    log = result.links["l"].packet_log
    came = log["arrived_s"] >= 1
    dropped = log["fate"] > 0
    assert (dropped & ~came & (log["left_s"] > 1)).sum() > 50, "CoDel drops the queue of 1 s"
    link = result.links["l"]
    assert link.arrived_packets == came.sum()
    assert link.dropped_packets == (dropped & came).sum()
    assert link.loss_rate == (dropped & came).sum() / came.sum()
    assert result.links["l"].series["dropped_packets"].sum() == dropped.sum()
