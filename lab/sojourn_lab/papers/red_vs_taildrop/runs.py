"""Constants, network, traffic and disciplines of `red_vs_taildrop`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sojourn._util.units import bps_of, bytes_of, seconds
from sojourn_lab.reproduction.constants import Constants

Table = dict[str, Any]

NAMES = {"td": "Tail Drop", "red": "REDstd", "gred": "GREDstd", "opt": "REDopt"}
"""Disciplines, in the order of all figures."""

FTPS = (16, 32, 64, 128, 256)
SESSIONS = (800, 1000, 1200, 1400)

ACTIVE = {800: 40, 1000: 60, 1200: 137, 1400: 1060}
"""By sessions: mean number of open connections under Tail Drop with 300 packets over 5000 s; median
of six runs (experiment `first`). REDopt is configured for this number of flows."""

PATH = ["access-{i}", "trunk", "bottleneck"]
"""Links from host {i} to the receivers."""

SIMULATED: Table = {"name": "sack", "profile": "ns2", "receive_window": "10000p"}
"""ns-2's Sack1: an ack for every packet."""

TESTBED: Table = {
    "name": "sack",
    "profile": "rfc",
    "packet": "1514B",
    "initial_window": "2p",
    "rto_min": "200ms",
    "rto_initial": "3s",
    "delayed_ack": True,
}
"""Linux of 2001, as far as known: delayed acks, an initial window of two packets."""

SECOND_CURVE: Table = {
    "in_min_th": 3 / 20,
    "in_max_th": 13 / 20,
    "in_max_p": 0.02,
}
"""RIO's curve for packets in profile, thresholds as shares of the buffer. The curve for all others
is REDstd's."""


@dataclass(frozen=True)
class SetUp(Constants):
    """Constants of testbed and simulation, except for the loads, which the figures vary."""

    rate: str = "10mbit"
    """Rate of the bottleneck."""
    delay: str = "100ms"
    """Delay of the bottleneck, one way; acks have none."""
    access_delays: tuple[str, ...] = ("20ms", "40ms", "60ms", "80ms")
    """Delay of each host's access link, one way; there are as many hosts."""
    access_rate: str = "100mbit"
    """Rate of the access links and of the trunk."""
    access_limit: str = "1000p"
    """Buffer of the access links and of the trunk."""
    udp_rate: str = "250kbit"
    """Rate of each host's CBR source."""
    udp_packet: str = "573B"
    """Size of the CBR sources' packets."""
    packet: str = "1514B"
    """Size of TCP's packets; in the simulated FTPs, the mean."""
    rto_min: str = "200ms"
    """Minimum retransmission timeout in the testbed."""
    min_th: float = 3 / 20
    """Lower threshold of REDstd and GREDstd, as a share of the buffer."""
    max_th: float = 13 / 20
    """Upper threshold of REDstd and GREDstd, as a share of the buffer."""
    max_p: float = 0.1
    """Drop probability of REDstd and GREDstd at the upper threshold."""
    w_q: float = 0.002
    """Weight of one arrival in the average of REDstd and GREDstd."""
    wait: str = "bernoulli"
    """Spacing of the drops of all RED variants."""
    object_size: str = "12kB"
    """Mean size of a web object."""
    objects: float = 4.0
    """Mean number of objects of a web page."""
    page_gap: str = "50s"
    """Mean time between the pages of a web user."""
    warmup: str = "100s"
    """Time at the start of a run that is not counted."""

    @property
    def hosts(self) -> range:
        """Numbers of the hosts."""
        return range(len(self.access_delays))

    @property
    def rtt_s(self) -> float:
        """Mean base round-trip time of the hosts, s."""
        mean = sum(seconds(one) for one in self.access_delays) / len(self.access_delays)
        return mean + seconds(self.delay)


DEFAULT = SetUp()
"""The set-up of all pages."""


def gap(n: float, set_up: SetUp = DEFAULT) -> float:
    """Return max_th - min_th (packets) of REDopt's model for `n` flows.

    As `red_opt` in sojourn-aqm: 0.02158 of the packets in flight in a round trip, plus 0.567 per
    flow, plus 85. The round trip includes the mean queue, which is 0.8 of this.
    """
    in_flight = bps_of(set_up.rate) / 8 / bytes_of(set_up.packet) * set_up.rtt_s
    return (0.02158 * in_flight + 0.567 * n + 85) / (1 - 0.8 * 0.02158)


def room(n: float, set_up: SetUp = DEFAULT) -> int:
    """Return the common buffer (packets) of all disciplines for `n` flows, from the model."""
    return round(2 * gap(n, set_up))


def law(
    q: str, n: int, *, limit: int = 0, acks: int = 1, set_up: SetUp = DEFAULT, **more: Any
) -> Table:
    """Return a discipline for `n` flows whose receivers ack every `acks`-th packet.

    Its buffer is `limit` packets, or the `room` for `n`.
    """
    limit = limit or room(n, set_up)
    buffer: Table = {"limit": f"{limit}p"}
    if q == "td":
        return {"name": "droptail", **buffer}
    buffer |= {"packet": set_up.packet, "wait": set_up.wait}
    if q == "opt":
        rtt = f"{round(set_up.rtt_s * 1e6)}us"
        udp = f"{round(bps_of(set_up.udp_rate) * len(set_up.hosts))}bit"
        model = {"flows": n, "rtt": rtt, "udp_rate": udp, "delayed_acks": acks == 2}
        return {"name": "red_opt", **buffer, **model, **more}
    ends = {
        "min_th": f"{round(limit * set_up.min_th)}p",
        "max_th": f"{round(limit * set_up.max_th)}p",
    }
    red: Table = {**buffer, **ends, "max_p": set_up.max_p, "w_q": set_up.w_q}
    if q == "rio":
        own = {key: f"{round(limit * SECOND_CURVE[key])}p" for key in ("in_min_th", "in_max_th")}
        return {"name": "rio", **red, **own, "in_max_p": SECOND_CURVE["in_max_p"], **more}
    return {"name": "red", **red, "gentle": {"red": "none", "gred": "buffer"}[q], **more}


def network(
    qdisc: Mapping[str, Any],
    tcp: Sequence[Table],
    duration_s: int,
    jitter: float = 0,
    set_up: SetUp = DEFAULT,
) -> Table:
    """Return the scenario: the hosts' TCP flows and CBR sources over the bottleneck."""
    wide = {"name": "droptail", "limit": set_up.access_limit}
    links: Table = {
        f"access-{i}": {"rate": set_up.access_rate, "delay": delay, "qdisc": wide}
        for i, delay in enumerate(set_up.access_delays)
    }
    links["trunk"] = {"rate": set_up.access_rate, "qdisc": wide}
    links["bottleneck"] = {"rate": set_up.rate, "delay": set_up.delay, "qdisc": dict(qdisc)}
    cbr: Table = {"name": "cbr", "rate": set_up.udp_rate, "packet": set_up.udp_packet}
    cbr |= {"start": "uniform(0s, 10s)", **({"jitter": jitter} if jitter else {})}
    udp = {"name": "udp", "count": len(set_up.hosts), "path": PATH, "source": cbr}
    gauges = {} if qdisc["name"] == "droptail" else {"sample": "1s", "sample_flows": False}
    times = {"duration": f"{duration_s}s", "warmup": set_up.warmup}
    return {**times, **gauges, "links": links, "flows": [*tcp, udp]}


def ftp(name: str, host: int, count: int, tcp: Table) -> Table:
    """Return FTPs of one host that start in the first ten seconds."""
    path = [link.replace("{i}", str(host)) for link in PATH]
    source = {"name": "bulk", "start": "uniform(0s, 10s)"}
    return {"name": name, "count": count, "path": path, "source": source, "tcp": tcp}


def testbed(n: int, set_up: SetUp = DEFAULT) -> list[Table]:  # noqa: PT028
    """Return `n` FTPs as in the testbed, an equal part of them on each host."""
    tcp = TESTBED | {"packet": set_up.packet, "rto_min": set_up.rto_min}
    each = n // len(set_up.hosts)
    return [ftp(f"ftp-{host}", host, each, tcp) for host in set_up.hosts]


def two_way(tree: Table, flows: Sequence[Table]) -> Table:
    """Return the scenario with as many FTPs from the receivers to the hosts.

    The link back has the bottleneck's rate, discipline and buffer. The acks of both directions
    queue behind the data of the other.
    """
    bottleneck = tree["links"]["bottleneck"]
    forward = [{**one, "return_path": ["back"]} for one in flows]
    backward = [
        {**one, "name": one["name"].replace("ftp", "back"), "path": ["back"],
         "return_path": one["path"]}
        for one in flows
    ]  # fmt: skip
    links = {**tree["links"], "back": {"rate": bottleneck["rate"], "qdisc": bottleneck["qdisc"]}}
    return {**tree, "links": links, "flows": [*forward, *backward, tree["flows"][-1]]}


def shared_medium(tree: Table, set_up: SetUp = DEFAULT) -> Table:
    """Return the scenario with a bottleneck that the acks share with the data.

    Its delay moves to the access links, so that acks still have none.
    """
    links = dict(tree["links"])
    for i, delay in enumerate(set_up.access_delays):
        delay_us = round(1e6 * (seconds(delay) + seconds(set_up.delay)))
        links[f"access-{i}"] = {**links[f"access-{i}"], "delay": f"{delay_us}us"}
    links["bottleneck"] = {**links["bottleneck"], "delay": "0s"}
    *flows, udp = tree["flows"]
    return {
        **tree,
        "links": links,
        "flows": [*({**one, "return_path": ["bottleneck"]} for one in flows), udp],
    }


def in_profile(tree: Table) -> Table:
    """Return the scenario with every second flow of each host, and every second CBR, in profile."""
    flows = []
    for one in tree["flows"]:
        paths = [[link.replace("{i}", str(i)) for link in one["path"]] for i in range(one["count"])]
        half = one["count"] // 2
        if one["name"] == "udp":
            every = [
                {**one, "name": f"udp-{i}", "count": 1, "path": path, "class": i % 2}
                for i, path in enumerate(paths)
            ]
        else:
            every = [{**one, "name": f"{one['name']}-out", "count": one["count"] - half}]
            every += [{**one, "name": f"{one['name']}-in", "count": half, "class": 1}]
        flows += every
    return {**tree, "flows": flows}


def simulated(n: int, set_up: SetUp = DEFAULT) -> list[Table]:
    """Return `n` FTPs as in ns-2: packet sizes spread evenly, 1400 to 1628 bytes by default."""
    golden = (math.sqrt(5) - 1) / 2
    least = bytes_of(set_up.packet) - 114
    sizes = [least + math.floor(229 * (i * golden % 1)) for i in range(n)]
    hosts = len(set_up.hosts)
    return [
        ftp(f"ftp-{i}", i % hosts, 1, {**SIMULATED, "packet": f"{size}B"})
        for i, size in enumerate(sizes)
    ]


def web(sessions: int, set_up: SetUp = DEFAULT, **more: Any) -> list[Table]:
    """Return web users; each object has its own connection."""
    source: Table = {
        "name": "web",
        "sessions": sessions,
        "start": "uniform(0s, 10s)",
        "first": f"uniform(0s, {set_up.page_gap})",
        "pages": "auto",
        "page_gap": f"pareto(mean={set_up.page_gap}, shape=2)",
        "overlap": True,
        "objects": f"pareto(mean={set_up.objects:g}, shape=1.2)",
        "object_gap": "pareto(mean=500ms, shape=1.5)",
        "size": f"pareto(mean={set_up.object_size}, shape=1.2)",
        "most": 30_000,
        **more,
    }
    tcp = {**SIMULATED, "packet": set_up.packet}
    return [{"name": "web", "count": len(set_up.hosts), "path": PATH, "source": source, "tcp": tcp}]
