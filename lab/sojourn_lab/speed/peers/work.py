"""Work that several simulators can do: a scenario of sojourn, and the same flows as a list.

A line of the list has six numbers: sender, receiver, path of the data, path of the acks, start in
ns, and packets of data (0: no end). A path is the number of a core switch; in a pod, of an
aggregation switch; on one edge switch, 0.
"""

import bisect
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import sojourn as sj
from sojourn_lab.speed import workloads

K = 8
"""Number of ports of a switch of the fat tree."""

PAYLOAD = 1460
"""Payload of a packet of 1500 bytes."""

WEB_SEARCH = (
    (0, 0.0), (10_000, 0.15), (20_000, 0.2), (30_000, 0.3), (50_000, 0.4), (80_000, 0.53),
    (200_000, 0.6), (1_000_000, 0.7), (2_000_000, 0.8), (5_000_000, 0.9), (10_000_000, 0.97),
    (30_000_000, 1.0),
)  # fmt: skip
"""Size in bytes and cumulative probability; Alizadeh et al., "Data Center TCP", SIGCOMM 2010."""

SETTINGS: dict[str, Any] = {"rto_min": "250ms", "initial_ssthresh": "100p", "delayed_ack": False}
"""Settings of csg-htsim's TCP."""

NEWRENO = sj.tcp.NewReno(**SETTINGS)
DCTCP = sj.tcp.Dctcp(**SETTINGS, alpha=0, profile="rfc")

MARKING = sj.CoDel(target="1s", interval="10s", ce_threshold="72us", limit="400kB", ecn=True)
"""Marks data that waited for more than 90 kB, and drops nothing while the buffer is not full.

RED with a threshold of 90 kB drops acks above it, since they are not ECN-capable.
"""


@dataclass(frozen=True)
class Work:
    """A scenario and its list of flows.

    `acks` is "direct" (a delay of 0) or "links". `queues` of csg-htsim are the "same" as in the
    scenario, or its "own".
    """

    scenario: sj.Scenario
    tcp: str
    acks: str
    us: int
    flows: str
    queues: str = "same"


@dataclass(frozen=True)
class Transfer:
    """A transfer: index of its pair of hosts, start in ns, and payload in bytes."""

    pair: int
    start_ns: int
    size: int


def permutation(*, ms: float, acks: str, queues: str = "same") -> Work:
    """Return bulk transfers of NewReno from each host to another, 100 packets per queue."""
    us = round(ms * 1e3)
    case = sj.fat_tree(K, qdisc=sj.DropTail(limit="100p"), tcp=NEWRENO, duration=f"{us}us")
    flows = typed_flows(case)
    if acks == "direct":
        flows = [flow.replace(return_path=[]) for flow in flows]
    lines = [line(*ends(flow), 0, 0) for flow in flows]
    return Work(case.replace(flows=flows), "newreno", acks, us, "".join(lines), queues)


def web_search(*, transfers: int, acks: str, shifts: int = 8, load: float = 0.5) -> Work:
    """Return web-search transfers of DCTCP with marks above 90 kB.

    Each host sends to `shifts` others. The simulated time ends 5 ms after the last start.
    """
    direct = acks == "direct"
    hosts = K**3 // 4
    rng = random.Random(1)
    distances = rng.sample(range(1, hosts), shifts)
    pairs = [(host, (host + distance) % hosts) for distance in distances for host in range(hosts)]
    rate = load * 10 / 8 / workloads.WEB_SEARCH_MEAN * hosts
    drawn = draw(rng, transfers, len(pairs), rate)
    used = sorted({transfer.pair for transfer in drawn})
    us = drawn[-1].start_ns // 1000 + 5000
    case = sj.fat_tree(
        K, pairs=[pairs[n] for n in used], qdisc=workloads.THRESHOLD if direct else MARKING,
        tcp=DCTCP, duration=f"{us}us",
    )  # fmt: skip
    flows = []
    lines = []
    for n, flow in zip(used, typed_flows(case), strict=True):
        own = [transfer for transfer in drawn if transfer.pair == n]
        source = sj.source.Trace(
            time_s=[transfer.start_ns / 1e9 for transfer in own],
            size_bytes=[transfer.size for transfer in own],
        )
        flow = flow.replace(return_path=[]) if direct else flow
        flows.append(flow.replace(source=source))
        lines += [line(*ends(flow), t.start_ns, -(-t.size // PAYLOAD)) for t in own]
    return Work(case.replace(flows=flows), "dctcp", acks, us, "".join(lines))


def draw(rng: random.Random, number: int, pairs: int, rate: float) -> list[Transfer]:
    """Draw transfers at random times, `rate` per ns, between random pairs."""
    times = accumulate(rng.expovariate(rate) for _ in range(number))
    return [
        Transfer(rng.randrange(pairs), round(time), size_at(rng.random(), WEB_SEARCH))
        for time in times
    ]


def size_at(probability: float, points: Sequence[tuple[int, float]]) -> int:
    """Return the size at a cumulative probability, at least 1; between points it is linear."""
    after = bisect.bisect_left(points, probability, lo=1, key=lambda point: point[1])
    (low, below), (high, above) = points[after - 1 : after + 1]
    return max(round(low + (high - low) * (probability - below) / (above - below)), 1)


def typed_flows(case: sj.Scenario) -> list[sj.Flow]:
    """Return the flows of a scenario that has them as objects."""
    return [flow for flow in case.flows if isinstance(flow, sj.Flow)]


def ends(flow: sj.Flow) -> tuple[int, int, int, int]:
    """Return sender, receiver, and the paths of the data and of the acks."""
    path, back = list(flow.path or ()), list(flow.return_path or ())
    hosts = re.fullmatch(r"h(\d+)-e.* .*-h(\d+)", " ".join(path))
    assert hosts, "a path leads from host to host"
    return int(hosts[1]), int(hosts[2]), path_index(path), path_index(back)


def path_index(links: Sequence[str]) -> int:
    """Return the number of a path among the equal paths of its ends."""
    for kind, modulus in (("c", K * K), ("a", K // 2)):
        for link in links:
            end = link.split("-")[1]
            if end.startswith(kind):
                return int(end[1:]) % modulus
    return 0


def line(*numbers: int) -> str:
    """Return a line of the list of flows."""
    return " ".join(map(str, numbers)) + "\n"
