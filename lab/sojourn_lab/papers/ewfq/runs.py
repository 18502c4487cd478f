"""Networks and queues of the paper on EWFQ; the docstring of `ewfq` has our choices."""

from collections.abc import Callable, Mapping
from typing import Any

from sojourn._util.units import bytes_of, seconds
from sojourn.metrics import goodput_bps, tcp_goodput_bps
from sojourn.result.result import FATES, Result

Tree = dict[str, Any]

UDP_HEADER_BYTES = 28

TCP: Tree = {"name": "newreno", "profile": "ns2", "packet": "1000B", "receive_window": "10000p"}
TIMES: Tree = {"duration": "200s", "warmup": "50s"}
NETWORKS: dict[str, tuple[list[int], str, str, str]] = {
    "Uniform": ([10, 10, 1], "5mbit", "10mbit", "3330kbit"),
    "Varied": ([50, 100, 1], "5mbit", "10mbit", "3330kbit"),
    "Five": ([2, 20, 100, 200, 50], "10mbit", "2500kbit", "2500kbit"),
}
"""Access delays in ms (the last is the UDP source's); rates of bottleneck, access links, UDP."""


def ewfq(name: str, kb: float) -> Tree:
    """Return EWFQ with `kb` kB for all classes; the last class is unresponsive."""
    n = len(NETWORKS[name][0])
    own = {"flows": n, "by": "class", "expected": n, "responsive": [1] * (n - 1) + [0]}
    rtt = "500ms" if name == "Five" else "250ms"
    return {"name": "ewfq", **own, "rtt": rtt, "limit": f"{kb * 1000:.0f}B"}


def wfq(name: str, kb: float, shares: tuple[float, ...] = (), more: int = 0) -> Tree:
    """Return WFQ with a buffer per class: even parts of `kb`, or `shares` (both in kB).

    Each buffer has `more` additional bytes.
    """
    n = len(NETWORKS[name][0])
    limits = [f"{share * 1000 + more:.0f}B" for share in shares or [kb / n] * n]
    own = {"flows": n, "by": "class", "limits": limits, "full": "arrival"}
    return {"name": "wfq", **own, "limit": f"{2 * kb * 1000 + n * more:.0f}B"}


def shared(name: str, kb: float, qdisc: str) -> Tree:
    """Return another scheduler with a queue per class and one buffer; the longest queue drops."""
    own = {"flows": len(NETWORKS[name][0]), "by": "class", "limit": f"{kb * 1000:.0f}B"}
    return {"name": qdisc, **own} | ({"quantum": "1000B"} if qdisc == "drr" else {})


SCHEMES: dict[str, Callable[[str, float], Tree]] = {
    "ewfq": ewfq,
    "wfq": wfq,
    "wfq_varied": lambda name, kb: wfq(name, kb, (15, 5, 10)),
    "wfq_shared": lambda name, kb: shared(name, kb, "wfq"),
    "drr": lambda name, kb: shared(name, kb, "drr"),
    "fq_codel": lambda name, kb: {"name": "fq_codel", "limit": f"{kb * 1000:.0f}B"},
    "afd": lambda name, kb: {"name": "afd", "flows": 64, "limit": f"{kb * 1000:.0f}B"},
    "scfq": lambda name, kb: wfq(name, kb) | {"name": "scfq"},
    "ns2_fq": lambda name, kb: wfq(name, kb, more=1000) | {"name": "scfq"},
}
"""Functions that return the discipline of the bottleneck for a network and a buffer in kB.

`ns2_fq` is equivalent to ns-2's Queue/FQ: self-clocked, and the packet at the head of each queue
does not count towards its buffer."""


def network(
    name: str,
    scheme: str,
    kb: float,
    *,
    tcp: Mapping[str, Any] = {},
    udp: Mapping[str, Any] = {},
    law: Mapping[str, Any] = {},
    times: Mapping[str, Any] = TIMES,
    access: str = "100000p",
    members: int = 1,
) -> Tree:
    """Return the scenario of a network with `scheme` and `kb` kB at its bottleneck.

    The keywords change parameters of the TCPs, of the UDP source and of the discipline (`law`), the
    times, the buffer of the access links, and the number of TCPs per source.
    """
    delays, rate, speed, udp_rate = NETWORKS[name]
    qdisc = SCHEMES[scheme](name, kb) | dict(law)
    links: Tree = {"bottleneck": {"rate": rate, "delay": "1ms", "qdisc": qdisc}}
    flows = []
    for i, delay in enumerate(delays):
        wide = {"name": "droptail", "limit": access}
        links[f"access-{i}"] = {"rate": speed, "delay": f"{delay}ms", "qdisc": wide}
        flow: Tree = {"name": f"s{i + 1}", "class": i, "path": [f"access-{i}", "bottleneck"]}
        if i == len(delays) - 1:
            cbr = {"name": "cbr", "rate": udp_rate, "packet": "1000B", "jitter": 0.5}
            flow["source"] = cbr | dict(udp)
        else:
            flow |= {"tcp": TCP | dict(tcp), "rtt": f"{2 * (delay + 2)}ms", "count": members}
            flow["source"] = {"name": "bulk", "start": "uniform(0s, 1s)"}
        flows.append(flow)
    return {**times, "links": links, "flows": flows}


def changed(name: str, scheme: str, kb: float, change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a network with a change applied; a change of EWFQ's parameters does not affect WFQ."""
    own = {what: value for what, value in change.items() if what not in ("scheme", "law")}
    if scheme == "ewfq" and "law" in change:
        own["law"] = change["law"]
    return network(name, change.get("scheme", scheme), kb, **own)


def touches(scheme: str, change: Mapping[str, Any]) -> bool:
    """Return True if a change affects `scheme`: some affect only EWFQ, some only WFQ."""
    if scheme == "ewfq":
        return "scheme" not in change
    return "law" not in change and (scheme == "wfq" or "scheme" not in change)


NAMES = {
    "ewfq": "EWFQ",
    "wfq": "WFQ, even buffers",
    "wfq_varied": "WFQ, 15/5/10 kB",
    "wfq_shared": "WFQ, shared buffer",
    "drr": "DRR, shared buffer",
    "fq_codel": "FQ-CoDel",
    "afd": "AFD (one FIFO)",
}
OTHERS = ("wfq_shared", "drr", "fq_codel", "afd")
FLOWS = {"s1": "s1, RTT 8 ms", "s2": "s2, 44 ms", "s3": "s3, 204 ms", "s4": "s4, 404 ms",
         "s5": "s5, UDP"}  # fmt: skip

SWEEP_CHANGES: dict[str, dict[str, Any]] = {
    "5 TCPs per source": {"members": 5},
    "10 TCPs per source": {"members": 10},
    "step of m_fair / 1000": {"law": {"mfair_gain": 0.001}},
    "UDP of 2 Mbit/s, evenly spaced": {"udp": {"rate": "2mbit", "jitter": 0.0}},
    "packets of 500 B": {"tcp": {"packet": "500B"}, "udp": {"packet": "500B"}},
    "receiver's window of 20": {"tcp": {"receive_window": "20p"}},
    "150 s, all counted": {"times": {"duration": "150s", "warmup": "0s"}},
}
"""Settings that the paper may have used instead, for the whole sweep."""

AS_CHOSEN = "as chosen"
CHANGES: dict[str, dict[str, Any]] = {
    AS_CHOSEN: {},
    "SACK": {"tcp": {"name": "sack"}},
    "Reno": {"tcp": {"name": "reno"}},
    "Tahoe": {"tcp": {"name": "tahoe"}},
    "TCP of the RFCs (delayed acks, bytes)": {"tcp": {"profile": "rfc"}},
    "packets of 500 B": SWEEP_CHANGES["packets of 500 B"],
    "access links of 50 packets": {"access": "50p"},
    "UDP evenly spaced": {"udp": {"jitter": 0.0}},
    "limited transmit off": {"tcp": {"limited_transmit": False}},
    "600 s, the first 200 not counted": {"times": {"duration": "600s", "warmup": "200s"}},
    "150 s, all counted": SWEEP_CHANGES["150 s, all counted"],
    "step of m_fair / 1000": SWEEP_CHANGES["step of m_fair / 1000"],
    "every byte counted (k = 0, p = 1)": {"law": {"k": 0, "p": 1.0}},
    "RTT_o of 1 s": {"law": {"rtt": "1s"}},
    "q_target a tenth of the buffer": {"law": {"q_target": "1kB"}},
    "UDP taken for responsive": {"law": {"responsive": [1]}},
    "self-clocked fair queueing": {"scheme": "scfq"},
    "ns-2's FQ (self-clocked, a packet more each)": {"scheme": "ns2_fq"},
}
"""One change at a time; `scheme` replaces WFQ."""

QUICK_SETTINGS = (
    "5 TCPs per source",
    "10 TCPs per source",
    "UDP of 2 Mbit/s, evenly spaced",
    "150 s, all counted",
)
QUICK_CHANGES = (
    AS_CHOSEN,
    "SACK",
    "Reno",
    "packets of 500 B",
    "150 s, all counted",
    "step of m_fair / 1000",
    "UDP taken for responsive",
    "ns-2's FQ (self-clocked, a packet more each)",
)
"""The changes in quick mode."""

NODE_CHANGES = QUICK_CHANGES[1:-1]
"""Settings of the claims on the networks with three sources."""

CASES: dict[str, tuple[str, str, float]] = {
    "Varied, EWFQ 30 kB": ("Varied", "ewfq", 30),
    "Varied, WFQ 30 kB": ("Varied", "wfq", 30),
    "Varied, WFQ 15/5/10 kB": ("Varied", "wfq_varied", 30),
    "Five, EWFQ 10 kB": ("Five", "ewfq", 10),
    "Five, WFQ 5 kB": ("Five", "wfq", 5),
}
"""The cases of claims C3, C4 (two), C7 and C5."""

MEMBERS = (1, 2, 4, 8)
"""TCPs in a class, for C12."""


def measure(result: Result) -> dict[str, Any]:
    """Keep the goodput of each source in Mbit/s, with headers, their total, and Jain's index."""
    each: dict[str, Any] = {}
    for flow in result.scenario["flows"]:
        name = flow["name"]
        if "tcp" in flow:
            each[name] = tcp_goodput_bps(result, name, wire=True) / 1e6
        else:
            size = bytes_of(flow["source"]["packet"])
            each[name] = goodput_bps(result, name) * size / (size - UDP_HEADER_BYTES) / 1e6
    x = list(each.values())
    jain = sum(x) ** 2 / (len(x) * sum(one * one for one in x))
    return {**each, "jain": jain, "total": sum(x)}


def measure_losses(result: Result) -> dict[str, Any]:
    """Keep the shares of the packets of s4 dropped by a full buffer and dropped early."""
    log = result.links["bottleneck"].packet_log
    counted = log.arrived_s >= seconds(result.scenario["warmup"])
    fate = log.fate[counted & (log["class"] == 3)]
    return {why: float((fate == FATES.index(why)).mean()) for why in ("full", "early")}


def one_class(n: int, window: int, probability: float) -> Tree:
    """Return `n` TCPs over a fast link that loses packets with a `probability`; RTT 100 ms.

    `window` is the fair share of the class in packets per round trip.
    """
    link = {"rate": f"{window * 4}mbit", "delay": "10ms", "loss": min(1.0, probability)}
    wide = {"name": "droptail", "limit": "100000p"}
    return _lone(link | {"qdisc": wide}, n)


def tiny_queue(window: int) -> Tree:
    """Return one TCP over a link of `window` packets per round trip, with a 1-packet buffer."""
    link = {"rate": f"{window * 80}kbit", "delay": "10ms"}
    return _lone(link | {"qdisc": {"name": "droptail", "limit": "1p"}}, 1)


def _lone(link: Tree, n: int) -> Tree:
    flow: Tree = {"name": "tcp", "count": n, "path": ["link"], "rtt": "100ms", "tcp": TCP}
    flow["source"] = {"name": "bulk", "start": "uniform(0s, 1s)"}
    return {**TIMES, "links": {"link": link}, "flows": [flow]}


def measure_lone(result: Result) -> dict[str, Any]:
    """Keep the goodput of the TCPs in packets per round trip of 100 ms, and the loss rate."""
    rate = tcp_goodput_bps(result, "tcp", wire=True)
    return {"window": rate * 0.1 / 8000, "loss": result.links["link"].loss_rate}
