"""Set-ups of ns-2 as scenarios: topologies, queues and TCPs, as documented.

All flows have the profile `ns2`. Each sender has its own access link, so that its bursts reach the
bottleneck spread out in time. ACKs cross the links of receiver and sender and the other direction
of the bottleneck: if all packets take the same time, these microseconds determine the interleaving
of the flows. Where ns-2's limits have another meaning than ours, ours are set to admit the same
packets: its DropTail drops a packet that would make the queue reach the limit.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Table = dict[str, Any]

NIC = {"name": "droptail", "limit": "49p"}
"""Queue of links that are not studied: ns-2's default limit of 50, which holds 49."""

WIDE = {"name": "droptail", "limit": "99999p"}
"""A queue that never fills."""

RTT_SETS = 10
"""Number of sets of propagation times in our runs of the first file."""


def tail(limit: str, ns2: int) -> Table:
    """Return ns-2's DropTail of limit `ns2`, in the unit that `limit` ends with."""
    return {"name": "droptail", "limit": f"{ns2 - 1}{limit}"}


def flow(name: str, path: Sequence[str], packet: int, tcp: str = "newreno", **more: Any) -> Table:
    """Return a bulk flow that starts in the first ten seconds."""
    return {
        "name": name,
        "path": path,
        "source": {"name": "bulk", "start": "uniform(0s, 10s)"},
        "tcp": {
            "name": tcp,
            "profile": "ns2",
            "packet": f"{packet}B",
            "receive_window": "10000p",
        },
        **more,
    }


def cbr(name: str, path: Sequence[str], packet: int, bps: float, jitter: float = 0.5) -> Table:
    """Return a constant-rate flow with ns-2's `random_`."""
    source = {"name": "cbr", "rate": f"{bps:.0f}bit", "packet": f"{packet}B", "jitter": jitter}
    return {"name": name, "path": path, "source": source | {"start": "uniform(0s, 10s)"}}


def link(rate: str, delay: str = "0s", qdisc: Mapping[str, Any] = NIC) -> Table:
    """Return a link."""
    return {"rate": rate, "delay": delay, "qdisc": qdisc}


def scenario(duration: str, warmup: str, seed: int, links: Table, flows: list[Table]) -> Table:
    """Return a scenario."""
    return {"duration": duration, "warmup": warmup, "seed": seed, "links": links, "flows": flows}


def propagation(seed: int, n: int) -> list[float]:
    """Return the propagation times of `n` flows, in seconds, in the set that belongs to `seed`."""
    return list(np.random.default_rng(seed % RTT_SETS).uniform(0.040, 0.200, n))


def ftp_only_aqm(q: str, qmax: int) -> Table:
    """Return an AQM as configured in the HRED paper, with ns-2's parameters."""
    red = {
        "limit": f"{qmax + 499}B",  # ns-2 looks at the queue before the packet is added
        "min_th": f"{qmax // 4}B",
        "max_th": f"{qmax // 2}B",
        "w_q": 0.002,
        "max_p": 0.1,
        "gentle": "two_max_th",
        "wait": "yes",
        "byte_mode": "mean",
        "spare_short": True,
        "packet": "500B",
    }
    reference = f"{3 * qmax // 8}B"
    aqms: dict[str, Table] = {
        "RED": {"name": "red"} | red,
        "ARED": {"name": "ared", "stale_gentle": True} | red,
        "PI": {
            "name": "pi",
            "limit": f"{qmax + 499}B",
            "q_ref": reference,
            "flows": 100,
            "rtt": "200ms",
            "w": 160,
            "packet": "500B",
            "byte_mode": True,
        },
        "REM": {
            "name": "rem",
            "limit": f"{qmax - 1}B",  # a packet that would make the queue reach the limit is lost
            "b_star": reference,
            "period": "1ms",
            "gamma": 0.001,
            "phi": 1.001,
            "alpha": 0.1,
            "packet": "500B",
            "byte_mode": True,
        },
        "AVQ": {"name": "avq", "limit": f"{qmax}B", "gamma": 1, "packet": "500B"},
    }
    return aqms[q]


def ftp_only(seed: int, q: str, n: int, qmax: int, tcp: str, access: str = "100mbit") -> Table:
    """Set up `hred_ftp_only.csv`: long flows over 45 Mbit/s, RTTs uniform on 40 to 200 ms.

    The propagation times are one of `RTT_SETS` sets; ns-2's set is not known. An empty
    `access` omits the access links.
    """
    rtts = propagation(seed, n)
    qdisc = tail("B", qmax) if q == "DropTail" else ftp_only_aqm(q, qmax)
    links = {"bottleneck": link("45mbit", "10ms", qdisc), "back": link("45mbit", "10ms", WIDE)}
    flows = []
    for i in range(n):
        path = ["bottleneck"]
        if access:
            links[f"access-{i}"] = link(access)
            links[f"home-{i}"] = link(access)
            path = [f"access-{i}", "bottleneck"]
        rtt = f"{rtts[i] * 1e9:.0f}ns"
        back = ["back", f"home-{i}"] if access else ["back"]
        flows.append(flow(f"ftp-{i}", path, 500, NAMES[tcp], return_path=back, rtt=rtt))
    return scenario("200s", "150s", seed, links, flows)


NAMES = {"Newreno": "newreno", "Sack1": "sack"}
"""Names of TCPs in ns-2 and in sojourn."""


def bulk_data(seed: int, q: str, n: int, buf: int, tcp: str, trunk: bool = False) -> Table:
    """Set up `td_red_ftp.csv`: SACK and four CBR sources over 10 Mbit/s from four hosts.

    The description says that runs last 500 s, but losses per event, loss rate and rate of the file
    are consistent only with 200 s: 13,754 events of 3.78 losses are 21.8 % of 202 s of arrivals.
    `trunk` puts one more link of 100 Mbit/s between the access links and the bottleneck.
    """
    red = {
        "name": "red",
        "limit": f"{buf}p",
        "min_th": f"{buf * 3 // 20}p",
        "max_th": f"{buf * 13 // 20}p",
        "w_q": 0.002,
        "max_p": 0.1,
        "gentle": "two_max_th" if q == "GRED" else "none",
        "wait": "yes",
        "spare_short": True,
        "packet": "500B",  # ns-2's default; only an idle time would ask for it
    }
    links = {
        "bottleneck": link("10mbit", "50ms", tail("p", buf) if q == "TD" else red),
        "back": link("10mbit", "50ms", WIDE),
    }
    if trunk:
        links |= {"trunk": link("100mbit", qdisc=WIDE), "trunk-home": link("100mbit", qdisc=WIDE)}
    sizes = np.random.default_rng(seed).integers(1400, 1628, n, endpoint=True)
    flows = []
    for host in range(4):
        delay = 10 * (host + 1)
        links[f"access-{host}"] = link("100mbit", f"{delay}ms")
        links[f"receiver-{host}"] = link("100mbit", "100us")
        links |= {f"up-{host}": link("100mbit"), f"home-{host}": link("100mbit")}
        back = [f"up-{host}", "back", *(["trunk-home"] if trunk else []), f"home-{host}"]
        path = [f"access-{host}", *(["trunk"] if trunk else []), "bottleneck", f"receiver-{host}"]
        flows.append(cbr(f"cbr-{host}", path, 573, 250_000))
        for i in range(host, n, 4):
            rtt = f"{(2 * (delay + 50) * 1000) + 200}us"
            ftp = flow(f"ftp-{i}", path, int(sizes[i]), NAMES[tcp], return_path=back, rtt=rtt)
            flows.append(ftp)
    return scenario("300s", "100s", seed, links, flows)


def fair(seed: int, topo: str, q: str, buf: int, nic: Mapping[str, Any] = NIC) -> Table:
    """Set up `drr_wfq_fair3.csv` and `..5.csv`: TCPs and one UDP source from a node each."""
    delays, rate, access, udp = {
        "3u": ([10, 10, 1], "5mbit", "10mbit", 4e6),
        "3v": ([50, 100, 1], "5mbit", "10mbit", 4e6),
        "5": ([2, 20, 100, 200, 50], "10mbit", "2500kbit", 2.5e6),
    }[topo]
    drr = {"name": "drr", "limit": f"{buf}B", "quantum": "1000B"}
    links = {
        "bottleneck": link(rate, "1ms", drr if q == "DRR" else tail("B", buf)),
        "back": link(rate, "1ms", WIDE),
    }
    flows = []
    for i, delay in enumerate(delays):
        name = f"f{i + 1}"
        links[f"access-{name}"] = link(access, f"{delay}ms", nic)
        links[f"receiver-{name}"] = link("10mbit", "1ms")
        path = [f"access-{name}", "bottleneck", f"receiver-{name}"]
        if i == len(delays) - 1:
            flows.append(cbr(name, path, 1000, udp))
        else:
            rtt = f"{2 * (delay + 2)}ms"
            links |= {f"up-{name}": link("10mbit"), f"home-{name}": link(access)}
            back = [f"up-{name}", "back", f"home-{name}"]
            flows.append(flow(name, path, 1000, return_path=back, rtt=rtt))
    return scenario("120s", "20s", seed, links, flows)


def two_way(
    seed: int, mbps: int, mtu: int, buf: int, hosts: bool = False, q: str = "DropTail"
) -> Table:
    """Set up `drr_dumbbell.csv`: five FTPs and a CBR each way, ACKs queue with data.

    The receivers are at the far end of the bottleneck. With `hosts` they are on the hosts from
    which the other direction sends, behind the same access links: the RTTs are then 28 to 60 ms.
    """
    codel = {"name": "codel", "limit": "1000p", "variant": "ns2_v1"}
    qdisc = tail("p", buf) if q == "DropTail" else codel
    links, flows = {}, []
    for way, other in (("forward", "backward"), ("backward", "forward")):
        links[way] = link(f"{mbps}mbit", "10ms", qdisc)
        for i in range(1, 6):
            links[f"{way}-nic-{i}"] = link("1gbit", f"{2 * i}ms")
            links[f"{way}-home-{i}"] = link("1gbit")
            path, back = [f"{way}-nic-{i}", way], [other, f"{way}-home-{i}"]
            rtt: Table = {"rtt": f"{2 * (2 * i + 10)}ms"}
            if hosts:
                del links[f"{way}-home-{i}"]
                links[f"{way}-down-{i}"] = link("1gbit", f"{2 * i}ms")
                path, rtt = [*path, f"{way}-down-{i}"], {}
                back = [f"{other}-nic-{i}", other, f"{other}-down-{i}"]
            flows.append(flow(f"{way}-{i}", path, mtu, return_path=back, **rtt))
        links[f"{way}-nic-cbr"] = link("1gbit", "2ms")
        flows.append(cbr(f"{way}-cbr", [f"{way}-nic-cbr", way], mtu, mbps * 1e5))
    return scenario("100s", "20s", seed, links, flows) | {"packet_log": True}


def one_flow(seed: int, target_ms: float, variant: str = "rfc") -> Table:
    """Set up `codel_target_util.csv`: one SACK flow over 1 Gbit/s under CoDel, RTT 300 us."""
    codel = {
        "variant": variant,
        "name": "codel",
        "target": f"{target_ms * 1000:.0f}us",
        "interval": "750us",
        "limit": "1000p",
    }
    links = {
        "bottleneck": link("1gbit", "75us", codel),
        "back": link("1gbit", "75us", WIDE),
        "access": link("10gbit", "75us", WIDE),
    }
    ftp = flow("ftp", ["access", "bottleneck"], 1000, "sack", return_path=["back"], rtt="300us")
    ftp["source"] = {"name": "bulk", "start": "uniform(0us, 300us)"}
    ftp["tcp"] |= {"rto_min": "10ms", "tick": "100us"}
    return scenario("5s", "1s", seed, links, [ftp]) | {"sample": "1s"}
