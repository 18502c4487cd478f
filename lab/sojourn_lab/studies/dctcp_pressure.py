"""Queries next to long flows: table 2 and figure 21 of DCTCP (`dctcp.py`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import sojourn as sj
from sojourn import metrics
from sojourn_lab.studies.dctcp_queues import long_flows
from sojourn_lab.studies.dctcp_set_up import (
    DYNAMIC,
    NIC,
    Table,
    cell,
    dctcp,
    links,
    port,
    results,
    rows,
    share,
    tcp,
)

SERVERS = range(1, 11)
OTHERS = range(11, 44)
"""Hosts with long flows; host 0 asks the servers."""


@dataclass(frozen=True)
class Setting:
    """Sender of all flows, number of long flows, buffer, and the connections of queries."""

    sender: Mapping[str, Any]
    long: int = 66
    alpha: float = 0.21
    limit: str = "4MB"
    source: Table = field(default_factory=dict)

    def scenario(self, seed: int, seconds: float = 0.9) -> Table:
        """Return the scenario of one run; queries start at 200 ms."""
        ports = [f"switch-h{i}" for i in range(44)]
        nics = [f"h{i}-switch" for i in range(44)]
        qdisc = port(self.sender, self.limit)
        query: Table = {
            "name": "query",
            "count": len(SERVERS),
            "path": [[nics[i], ports[0]] for i in SERVERS],
            "return_path": [[nics[0], ports[i]] for i in SERVERS],
            "source": {"name": "incast", "size": "100kB", "start": "200ms", **self.source},
        }
        pairs = [self._pair(j) for j in range(self.long)]
        bulk: Table = {
            "name": "long",
            "count": self.long,
            "path": [[nics[a], ports[b]] for a, b in pairs],
            "return_path": [[nics[b], ports[a]] for a, b in pairs],
            "source": {"name": "bulk", "start": "uniform(0s, 10ms)"},
        }
        flows = [flow | {"tcp": self.sender} for flow in (query, bulk) if flow["count"]]
        return {
            "duration": f"{seconds}s",
            "warmup": "200ms",
            "seed": seed,
            "links": links("1gbit", [*((n, NIC) for n in nics), *((p, qdisc) for p in ports)]),
            "switches": {"rack": DYNAMIC | {"alpha": self.alpha, "ports": ports}},
            "flows": flows,
        }

    def _pair(self, flow: int) -> tuple[int, int]:
        """Return sender and receiver of a long flow: each host has two of each."""
        here = flow % len(OTHERS)
        there = (here + 1 + flow // len(OTHERS)) % len(OTHERS)
        return OTHERS[here], OTHERS[there]


@dataclass(frozen=True)
class Times:
    """Per seed: 50, 95 and 99 % quantiles of completion times, and the share of timeouts."""

    median_ms: list[float]
    late_ms: list[float]
    latest_ms: list[float]
    timeouts: list[float]


def times(runs: list[sj.Result]) -> Times:
    """Return the completion times of queries; without a timeout they are below 10 ms."""
    took = [metrics.query_completion_s(run) * 1e3 for run in runs]
    low, late, latest = ([float(np.percentile(x, p)) for x in took] for p in (50, 95, 99))
    return Times(low, late, latest, [float((x > 10).mean()) for x in took])


NEW = {"persistent": False}
KEPT = {"persistent": True}
SETTINGS = {
    "DCTCP without long flows": Setting(dctcp(), 0, source=KEPT),
    "DCTCP": Setting(dctcp(), source=KEPT),
    "TCP without long flows": Setting(tcp(), 0, source=KEPT),
    "TCP": Setting(tcp(), source=KEPT),
    "TCP, new connections": Setting(tcp(), source=NEW),
    "the same, 33 long flows": Setting(tcp(), 33, source=NEW),
    "the same, without SACK": Setting(tcp(name="newreno"), source=NEW),
    "the same, Reno of RFC 5681": Setting(tcp(name="reno"), source=NEW),
    "the same, clock of 10 ms": Setting(tcp(tick="10ms"), source=NEW),
    "the same, acks delayed by 5 ms": Setting(tcp(delayed_ack_timeout="5ms"), source=NEW),
    "the same, alpha 0.05": Setting(tcp(), alpha=0.05, source=NEW),
    "the same, alpha 16 and 700 kB a port": Setting(tcp(), 66, 16, "700kB", NEW),
    "the same, timeout of 40 ms": Setting(tcp("40ms"), source=NEW),
    "the same, Reno of Linux, window of 10": Setting(
        dctcp(name="reno", initial_window="10p"), source=NEW
    ),
}
"""Table 2 in four rows; then new connections, and one setting changed at a time."""


def pressure(seeds: int, settings: Mapping[str, Setting] = SETTINGS) -> dict[str, Times]:
    """Run table 2, and its settings one at a time."""
    return {
        label: times(results([one.scenario(seed) for seed in range(1, seeds + 1)]))
        for label, one in settings.items()
    }


def pressure_table(measures: Mapping[str, Times]) -> str:
    """Return the table of completion times of queries."""
    body = [
        [label, cell(one.median_ms), cell(one.late_ms), cell(one.latest_ms), share(one.timeouts)]
        for label, one in measures.items()
    ]
    head = ["sender", "50 %, ms", "95 %, ms", "99 %, ms", "queries with timeouts, %"]
    return rows(head, body)


def behind(sender: Table, seed: int, source: Table) -> Table:
    """Return the scenario of figure 21: 20 kB again and again, next to two long flows."""
    tree = long_flows(2, sender, port(sender, "700kB"), seed)
    tree["links"] |= links("1gbit", [("host-short", NIC)])
    short = {"name": "short", "path": ["host-short", "port"], "rtt": "100us", "tcp": sender}
    short["source"] = {"name": "incast", "start": "200ms", "size": "20kB", **source}
    tree["flows"].append(short)
    return tree | {"duration": "1.2s"}


def build_up(seeds: int) -> dict[str, Times]:
    """Run figure 21 with persistent and with new connections."""
    return {
        f"{label}, {kind}": times(
            results([behind(sender, seed, source) for seed in range(1, seeds + 1)])
        )
        for label, sender in (("DCTCP", dctcp()), ("TCP", tcp()))
        for kind, source in (("persistent connection", KEPT), ("new connections", NEW))
    }


def build_up_table(measures: Mapping[str, Times]) -> str:
    """Return the table of completion times of short transfers."""
    body = [[label, cell(one.median_ms), cell(one.late_ms)] for label, one in measures.items()]
    return rows(["sender", "50 %, ms", "95 %, ms"], body)
