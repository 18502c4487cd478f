"""Set-up, networks and queues of the paper on EWFQ; the docstring of `ewfq` has our choices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sojourn._util.units import bytes_of, seconds
from sojourn.metrics import goodput_bps, tcp_goodput_bps
from sojourn.result.result import FATES, Result
from sojourn_lab.reproduction.constants import Constants

Tree = dict[str, Any]

UDP_HEADER_BYTES = 28

NETWORKS: dict[str, tuple[list[int], int, str]] = {
    "Uniform": ([10, 10, 1], 5, "10mbit"),
    "Varied": ([50, 100, 1], 5, "10mbit"),
    "Five": ([2, 20, 100, 200, 50], 10, "2500kbit"),
}
"""Access delays in ms (the last is the UDP source's); rate of the bottleneck in Mbit/s; rate of the
access links."""


@dataclass(frozen=True)
class SetUp(Constants):
    """Constants of the networks: what the paper does not state, and EWFQ's parameters."""

    tcp: str = "newreno"
    """Congestion control of the TCPs."""
    profile: str = "ns2"
    """Details of the TCPs: ns2 (an ack per packet) or rfc (delayed acks, bytes)."""
    limited_transmit: bool = True
    """Limited transmit of the TCPs."""
    window: str = "10000p"
    """Receiver's window of the TCPs."""
    packet: str = "1000B"
    """Size of all packets, headers included."""
    tcps: int = 1
    """TCPs of each source."""
    udp_rate: str = "3330kbit"
    """Rate of the UDP source in the networks with three sources."""
    five_udp_rate: str = "2500kbit"
    """Rate of the UDP source in the network with five sources."""
    udp_jitter: float = 0.5
    """Jitter of the gaps between UDP packets, as a share of the gap."""
    access_buffer: str = "100000p"
    """Buffer of the access links."""
    duration: str = "200s"
    """Duration of a run."""
    warmup: str = "50s"
    """Time at the start of a run that is not counted."""
    node_buffer: str = "30kB"
    """Buffer of the networks with three sources."""
    wfq: str = "wfq"
    """Scheduler with separate buffers."""
    head_counts: bool = True
    """True if the packet at the head of a class counts towards the buffer of its class."""
    rtt_o: str = "250ms"
    """EWFQ's RTT_o in the networks with three sources."""
    five_rtt_o: str = "500ms"
    """EWFQ's RTT_o in the network with five sources."""
    mfair_gain: float = 1.0
    """Scale of the step of EWFQ's m_fair."""
    k: int = 1
    """Hits in the cache after which EWFQ measures a class."""
    every_byte: bool = False
    """True if EWFQ samples every byte."""
    q_target: float = 0.5
    """EWFQ's target of the queue, as a share of the buffer."""
    udp_responsive: bool = False
    """True if EWFQ takes the UDP class for responsive."""
    credit: bool = True
    """True if EWFQ credits a class that it finds the bytes before its first sample."""

    @property
    def node_kb(self) -> float:
        """Buffer of the networks with three sources, in kB."""
        return bytes_of(self.node_buffer) / 1000

    @property
    def agent(self) -> Tree:
        """The TCPs."""
        own: Tree = {"name": self.tcp, "profile": self.profile, "packet": self.packet}
        more = {} if self.limited_transmit else {"limited_transmit": False}
        return own | {"receive_window": self.window} | more


OURS = SetUp()
"""Our set-up."""

TCP = OURS.agent


def ewfq(name: str, kb: float, set_up: SetUp, n: int) -> Tree:
    """Return EWFQ with `kb` kB for `n` classes; the class of the UDP source is unresponsive."""
    udp = len(NETWORKS[name][0]) - 1
    responsive = [int(i != udp or set_up.udp_responsive) for i in range(n)]
    own: Tree = {"flows": n, "by": "class", "expected": n, "responsive": responsive}
    own |= {"limit": f"{kb * 1000:.0f}B", "mfair_gain": set_up.mfair_gain, "k": set_up.k}
    own["rtt"] = set_up.five_rtt_o if name == "Five" else set_up.rtt_o
    if set_up.every_byte:
        own |= {"k": 0, "p": 1.0}
    if set_up.q_target != 0.5:
        own["q_target"] = f"{max(1, set_up.q_target * kb * 1000):.0f}B"
    if not set_up.credit:
        own["credit"] = False
    return {"name": "ewfq", **own}


def wfq(kb: float, set_up: SetUp, shares: Sequence[float]) -> Tree:
    """Return WFQ with a buffer per class: `kb` kB in parts that are proportional to `shares`."""
    more = 0 if set_up.head_counts else bytes_of(set_up.packet)
    limits = [f"{kb * 1000 * one / sum(shares) + more:.0f}B" for one in shares]
    own: Tree = {"flows": len(shares), "by": "class", "limits": limits, "full": "arrival"}
    return {"name": set_up.wfq, **own, "limit": f"{2 * kb * 1000 + len(shares) * more:.0f}B"}


def queue(
    scheme: str, name: str, kb: float, set_up: SetUp, n: int, weights: Sequence[float] = ()
) -> Tree:
    """Return the discipline of the bottleneck for `n` classes and a buffer of `kb` kB."""
    limit = f"{kb * 1000:.0f}B"
    shared = {"flows": n, "by": "class", "limit": limit}
    weighted = {"weights": list(weights)} if weights else {}
    match scheme:
        case "ewfq":
            return ewfq(name, kb, set_up, n) | weighted
        case "wfq":
            return wfq(kb, set_up, list(weights) or [1] * n) | weighted
        case "wfq_varied":
            return wfq(kb, set_up, (15, 5, 10)) | weighted
        case "wfq_shared":
            return {"name": "wfq", **shared} | weighted
        case "drr":
            return {"name": "drr", **shared, "quantum": set_up.packet}
        case "afd":
            return {"name": "afd", "flows": 64, "limit": limit}
        case _:
            return {"name": scheme, "limit": limit}


def network(
    name: str,
    scheme: str,
    kb: float,
    set_up: SetUp = OURS,
    weights: Sequence[float] = (),
    more: int = 0,
) -> Tree:
    """Return the scenario of a network with `scheme` and `kb` kB at its bottleneck.

    The classes have `weights`; the discipline has room for `more` further classes.
    """
    delays, rate, speed = NETWORKS[name]
    qdisc = queue(scheme, name, kb, set_up, len(delays) + more, weights)
    links: Tree = {"bottleneck": {"rate": f"{rate}mbit", "delay": "1ms", "qdisc": qdisc}}
    flows = []
    for i, delay in enumerate(delays):
        wide = {"name": "droptail", "limit": set_up.access_buffer}
        links[f"access-{i}"] = {"rate": speed, "delay": f"{delay}ms", "qdisc": wide}
        flow: Tree = {"name": f"s{i + 1}", "class": i, "path": [f"access-{i}", "bottleneck"]}
        if i == len(delays) - 1:
            sends = set_up.five_udp_rate if name == "Five" else set_up.udp_rate
            flow["source"] = {"name": "cbr", "rate": sends, "packet": set_up.packet,
                              "jitter": set_up.udp_jitter}  # fmt: skip
        else:
            flow |= {"tcp": set_up.agent, "rtt": f"{2 * (delay + 2)}ms", "count": set_up.tcps}
            flow["source"] = {"name": "bulk", "start": "uniform(0s, 1s)"}
        flows.append(flow)
    times = {"duration": set_up.duration, "warmup": set_up.warmup}
    return {**times, "links": links, "flows": flows}


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

AS_CHOSEN = "as chosen"
LOW_UDP = {f"UDP of {kbits} kbit/s": kbits for kbits in (250, 500)}
CHANGES: dict[str, dict[str, Any]] = {
    "SACK": {"tcp": "sack"},
    "Reno": {"tcp": "reno"},
    "Tahoe": {"tcp": "tahoe"},
    "TCP of the RFCs (delayed acks, bytes)": {"profile": "rfc"},
    "receiver's window of 20": {"window": "20p"},
    "packets of 500 B": {"packet": "500B"},
    "5 TCPs per source": {"tcps": 5},
    "10 TCPs per source": {"tcps": 10},
    **{
        what: {"udp_rate": f"{kbits}kbit", "five_udp_rate": f"{kbits}kbit"}
        for what, kbits in LOW_UDP.items()
    },
    "UDP of its share, evenly spaced": {
        "udp_rate": "1667kbit", "five_udp_rate": "2mbit", "udp_jitter": 0.0
    },
    "150 s, all counted": {"duration": "150s", "warmup": "0s"},
    "ns-2's FQ (self-clocked, a packet more each)": {"wfq": "scfq", "head_counts": False},
    "step of m_fair / 1000": {"mfair_gain": 0.001},
    "every byte counted (k = 0, p = 1)": {"every_byte": True},
    "no credit for missed bytes": {"credit": False},
    "RTT_o four times as long": {"rtt_o": "1s", "five_rtt_o": "2s"},
    "q_target a tenth of the buffer": {"q_target": 0.1},
    "UDP taken for responsive": {"udp_responsive": True},
}  # fmt: skip
"""Other values of what the paper does not state, as changes of the set-up."""

QUICK_CHANGES = (
    "10 TCPs per source",
    "UDP of 250 kbit/s",
    "150 s, all counted",
    "ns-2's FQ (self-clocked, a packet more each)",
    "step of m_fair / 1000",
)
"""The changes in quick mode."""

EWFQ_ONLY = {"mfair_gain", "every_byte", "credit", "rtt_o", "q_target", "udp_responsive"}
WFQ_ONLY = {"wfq", "head_counts"}


def touches(scheme: str, change: str) -> bool:
    """Return True if a change affects `scheme`: some affect only EWFQ, some only WFQ."""
    other = WFQ_ONLY if scheme == "ewfq" else EWFQ_ONLY
    return not set(CHANGES[change]) & other


MEMBERS = (1, 2, 4, 8)
"""TCPs in a class, for C12."""


def measure(result: Result) -> dict[str, Any]:
    """Keep the goodput of each source in Mbit/s, with headers, their total, and Jain's index.

    With weights, the index is over the goodputs divided by the weights.
    """
    each: dict[str, Any] = {}
    for flow in result.scenario["flows"]:
        name = flow["name"]
        if "tcp" in flow:
            each[name] = tcp_goodput_bps(result, name, wire=True) / 1e6
        else:
            size = bytes_of(flow["source"]["packet"])
            each[name] = goodput_bps(result, name) * size / (size - UDP_HEADER_BYTES) / 1e6
    listed = str(result.scenario["links"]["bottleneck"]["qdisc"].get("weights", "1")).split()
    weights = [float(one) for one in (*listed, *listed[-1:] * len(each))]
    x = [one / weight for one, weight in zip(each.values(), weights, strict=False)]
    jain = sum(x) ** 2 / (len(x) * sum(one * one for one in x))
    return {**each, "jain": jain, "total": sum(each.values())}


def measure_losses(result: Result) -> dict[str, Any]:
    """Keep the shares of the packets of s4 dropped by a full buffer and dropped early."""
    log = result.links["bottleneck"].packet_log
    counted = log.arrived_s >= seconds(result.scenario["warmup"])
    fate = log.fate[counted & (log["class"] == 3)]
    return {why: float((fate == FATES.index(why)).mean()) for why in ("full", "early")}


def one_class(n: int, window: int, probability: float, set_up: SetUp = OURS) -> Tree:
    """Return `n` TCPs over a fast link that loses packets with a `probability`; RTT 100 ms.

    `window` is the fair share of the class in packets per round trip.
    """
    link = {"rate": f"{window * 4}mbit", "delay": "10ms", "loss": min(1.0, probability)}
    return _lone(link | {"qdisc": {"name": "droptail", "limit": "100000p"}}, n, set_up)


def tiny_queue(window: int, set_up: SetUp = OURS) -> Tree:
    """Return one TCP over a link of `window` packets per round trip, with a 1-packet buffer."""
    rate = window * bytes_of(set_up.packet) * 8 * 10 // 1000
    link = {"rate": f"{rate}kbit", "delay": "10ms"}
    return _lone(link | {"qdisc": {"name": "droptail", "limit": "1p"}}, 1, set_up)


def _lone(link: Tree, n: int, set_up: SetUp) -> Tree:
    flow: Tree = {"name": "tcp", "count": n, "path": ["link"], "rtt": "100ms", "tcp": set_up.agent}
    flow["source"] = {"name": "bulk", "start": "uniform(0s, 1s)"}
    times = {"duration": set_up.duration, "warmup": set_up.warmup}
    return {**times, "links": {"link": link}, "flows": [flow]}


def measure_lone(result: Result) -> dict[str, Any]:
    """Keep the goodput of the TCPs in packets per round trip of 100 ms, and the loss rate."""
    rate = tcp_goodput_bps(result, "tcp", wire=True)
    bits = 8 * bytes_of(result.scenario["flows"][0]["tcp"]["packet"])
    return {"window": rate * 0.1 / bits, "loss": result.links["link"].loss_rate}
