"""Queries to many servers: figures 18, 19 and 20 of DCTCP (`dctcp.py`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import sojourn as sj
from sojourn_lab.studies.dctcp_set_up import (
    DYNAMIC,
    NIC,
    Table,
    cell,
    dctcp,
    links,
    mean,
    port,
    results,
    rows,
    share,
    tcp,
)

FIRST = 5
"""Queries that are left out: new connections have windows that fit nothing yet."""

SERVERS = (2, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 60)


@dataclass(frozen=True)
class Setting:
    """A sender and a buffer: of `limit`, or dynamic if that is 4MB."""

    sender: Mapping[str, Any]
    limit: str = "100p"
    source: Table = field(default_factory=lambda: {"persistent": True})
    late_ms: float = 10
    """A query that takes longer had a timeout: without one it takes less than 10 ms."""

    def scenario(self, servers: int, seed: int, queries: int) -> Table:
        """Return `queries` of 1 MB in all, one after the other, to `servers`."""
        hosts = [(f"server-{i}", NIC) for i in range(servers)]
        source = {"name": "incast", "size": f"{1_000_000 // servers}B", "number": queries}
        flow = {"name": "query", "count": servers, "path": ["server-{i}", "client"]}
        flow |= {"rtt": "100us", "tcp": self.sender, "source": source | self.source}
        qdisc = port(self.sender, self.limit)
        tree: Table = {"duration": "1000s", "seed": seed, "flows": [flow]}
        tree["links"] = links("1gbit", [("client", qdisc), *hosts])
        if self.limit == "4MB":
            tree["switches"] = {"rack": DYNAMIC | {"ports": ["client"]}}
        return tree


def completion_ms(result: sj.Result) -> np.ndarray[Any, Any]:
    """Return the completion times of queries after the first ones of each client."""
    order = np.argsort(result.queries["start_s"], kind="stable")
    client = np.asarray(result.queries["flow"])[order]
    took = np.asarray(result.queries["duration_s"])[order] * 1e3
    return np.concatenate([took[client == one][FIRST:] for one in np.unique(client)])


@dataclass(frozen=True)
class Queries:
    """Per seed: mean and 95 % quantile of completion times, and the share with a timeout."""

    mean_ms: list[float]
    late_ms: list[float]
    timeouts: list[float]


def measured(runs: Sequence[sj.Result], late_ms: float = 10) -> Queries:
    """Return the measures of runs with different seeds."""
    times = [completion_ms(run) for run in runs]
    return Queries(
        [float(one.mean()) for one in times],
        [float(np.percentile(one, 95)) for one in times],
        [float((one > late_ms).mean()) for one in times],
    )


STATIC = {
    "TCP, 300 ms": Setting(tcp("300ms")),
    "TCP, 10 ms": Setting(tcp()),
    "DCTCP, 300 ms": Setting(dctcp("300ms")),
    "DCTCP, 10 ms": Setting(dctcp()),
}
SHARED = {"TCP, 10 ms": Setting(tcp(), "4MB"), "DCTCP, 10 ms": Setting(dctcp(), "4MB")}
NEW = {"persistent": False}
CAUSES = {
    "DCTCP, buffer of 100 packets": Setting(dctcp()),
    "new connection for each query": Setting(dctcp(), source=NEW),
    "new connections, initial window of 3": Setting(dctcp(initial_window="3p"), source=NEW),
    "new connections, initial window of 10": Setting(dctcp(initial_window="10p"), source=NEW),
    "sender of RFC 8257, without RACK": Setting(dctcp(profile="rfc")),
    "new connections, alpha starts at 0": Setting(dctcp(alpha=0), source=NEW),
    "buffer of 80 packets": Setting(dctcp(), "80p"),
    "buffer of 60 packets": Setting(dctcp(), "60p"),
}
Curves = dict[str, dict[int, Queries]]


def curves(
    settings: Mapping[str, Setting],
    seeds: int,
    servers: Sequence[int] = SERVERS,
    queries: int = 100,
) -> Curves:
    """Run every setting with every number of servers."""
    return {
        label: {
            count: measured(
                results([one.scenario(count, s, queries + FIRST) for s in range(1, seeds + 1)]),
                one.late_ms,
            )
            for count in servers
        }
        for label, one in settings.items()
    }


def completion_table(measures: Curves) -> str:
    """Return mean completion times, a row per number of servers."""
    counts = list(next(iter(measures.values())))
    head = ["servers", *(f"{label}: ms | timeouts, %" for label in measures)]
    text = rows(
        head,
        [
            [
                str(count),
                *(
                    f"{cell(one[count].mean_ms)} | {share(one[count].timeouts)}"
                    for one in measures.values()
                ),
            ]
            for count in counts
        ],
    )
    lines = text.split("\n")
    return "\n".join([lines[0], "|---" * (1 + 2 * len(measures)) + "|", *lines[2:]])


def cause_table(measures: Curves) -> str:
    """Return the shares of queries with timeouts, a column per number of servers."""
    counts = list(next(iter(measures.values())))
    body = [[label, *(share(one[n].timeouts) for n in counts)] for label, one in measures.items()]
    return rows(["queries with timeouts, %", *(f"{n} servers" for n in counts)], body)


def all_to_all(sender: Table, seed: int, queries: int, source: Table, hosts: int = 41) -> Table:
    """Return the scenario of figure 20: each host asks all others for 25 kB each."""
    ports = [f"switch-h{i}" for i in range(hosts)]
    nics = [(f"h{i}-switch", NIC) for i in range(hosts)]
    flows = [
        {
            "name": f"query-{i}",
            "count": hosts - 1,
            "path": [[f"h{j}-switch", f"switch-h{i}"] for j in range(hosts) if j != i],
            "rtt": "100us",
            "tcp": sender,
            "source": {"name": "incast", "size": "25kB", "number": queries, **source},
        }
        for i in range(hosts)
    ]
    return {
        "duration": "1000s",
        "seed": seed,
        "links": links("1gbit", [*nics, *((one, port(sender, "4MB")) for one in ports)]),
        "switches": {"rack": DYNAMIC | {"ports": ports}},
        "flows": flows,
    }


def every_host(seeds: int, queries: int = 30) -> dict[str, Queries]:
    """Run figure 20 with persistent and with new connections."""
    return {
        f"{label}, {kind} connections": measured(
            results(
                [
                    all_to_all(sender, s, queries + FIRST, {"persistent": kind == "persistent"})
                    for s in range(1, seeds + 1)
                ]
            )
        )
        for kind in ("persistent", "new")
        for label, sender in (("TCP", tcp()), ("DCTCP", dctcp()))
    }


def every_host_table(measures: dict[str, Queries]) -> str:
    """Return the table of figure 20."""
    body = [
        [label, cell(one.mean_ms), cell(one.late_ms), f"{100 * mean(one.timeouts):.1f}"]
        for label, one in measures.items()
    ]
    return rows(["sender", "mean, ms", "95 %, ms", "queries with timeouts, %"], body)
