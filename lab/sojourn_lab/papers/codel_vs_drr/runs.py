"""Scenarios and the measure of `codel_vs_drr`."""

from dataclasses import dataclass, replace
from typing import Any

from sojourn._util.units import bps_of, bytes_of, seconds
from sojourn.result.result import Result
from sojourn_lab.reproduction.constants import Constants
from sojourn_lab.reproduction.paper import Experiment, Point

RATES = (2, 4, 10, 100)
MTUS = (500, 1000, 1500)
COUNTS = (2, 4, 8, 16, 32)
NAMES = {"codel": "CoDel", "drr": "DRR"}

CODEL: dict[str, Any] = {"name": "codel", "variant": "ns2_v1", "limit": "1000p"}
DRR: dict[str, Any] = {"name": "drr", "limit": "25kB", "quantum": "250B", "flows": 10}
FQ_CODEL: dict[str, Any] = {"name": "fq_codel", "limit": "1000p"}

CHANGES: dict[str, dict[str, Any]] = {
    "1 FTP each way": {"ftps": 1},
    "2 FTPs each way": {"ftps": 2},
    "8 FTPs each way": {"ftps": 8},
    "2 FTPs, RTT 10 ms": {"ftps": 2, "rtt": "10ms"},
    "RTT 2 ms": {"rtt": "2ms"},
    "window of 20": {"window": "20p"},
    "no CBR": {"cbr": 0.0},
}
"""Settings that the paper does not state, other than ours, as changes of the set-up."""


@dataclass(frozen=True)
class SetUp(Constants):
    """Constants of the dumbbell, except for the rate and the MTU, which the figures vary."""

    ftps: int = 4
    """FTPs in each direction."""
    packet: str = "1000B"
    """Size of the FTPs' packets, where the MTU is not varied."""
    window: str = "10000p"
    """Receiver's window of the FTPs."""
    rtt: str = "40ms"
    """Base round-trip time: a quarter is the delay of the bottleneck in each direction."""
    cbr: float = 0.1
    """Rate of the CBR flow in each direction, as a share of the bottleneck's; 0 for none."""
    cbr_packet: str = "500B"
    """Size of the CBR flow's packets, if the MTU is not smaller."""
    mtu_rate: str = "2mbit"
    """Rate of the bottleneck in the MTU scenario."""
    duration: str = "100s"
    """Duration of a run."""
    warmup: str = "10s"
    """Time at the start of a run that is not counted."""
    codel_target: str = "5ms"
    """Target of CoDel."""
    codel_interval: str = "100ms"
    """Interval of CoDel."""
    codel_limit: str = "1000p"
    """Buffer of CoDel."""
    drr_limit: str = "25kB"
    """Buffer of DRR, for all flows."""
    drr_quantum: str = "250B"
    """Quantum of DRR."""
    drr_buckets: int = 10
    """Hash buckets of DRR."""

    @property
    def mtu_mbps(self) -> int | float:
        """Rate of the bottleneck in the MTU scenario, in Mbit/s."""
        mbps = bps_of(self.mtu_rate) / 1e6
        return int(mbps) if mbps.is_integer() else mbps

    @property
    def codel(self) -> dict[str, Any]:
        """CoDel of the figures."""
        times = {"target": self.codel_target, "interval": self.codel_interval}
        return {**CODEL, **times, "limit": self.codel_limit}

    @property
    def drr(self) -> dict[str, Any]:
        """DRR of the figures."""
        own = {"limit": self.drr_limit, "quantum": self.drr_quantum, "flows": self.drr_buckets}
        return {**DRR, **own}


OURS = SetUp()
"""Our set-up."""


def dumbbell(
    qdisc: dict[str, Any], rate: float, mtu: int | None = None, set_up: SetUp = OURS
) -> dict[str, Any]:
    """Return the scenario: FTPs and a CBR flow in each direction over `rate` Mbit/s."""
    mtu = bytes_of(set_up.packet) if mtu is None else mtu
    delay_us = seconds(set_up.rtt) * 1e6 / 4
    links, declared = {}, []
    for way, other in (("forward", "backward"), ("backward", "forward")):
        links[way] = {"rate": f"{rate}mbit", "delay": f"{delay_us:.0f}us", "qdisc": qdisc}
        declared.append(
            {
                "name": f"ftp-{way}",
                "count": set_up.ftps,
                "path": [way],
                "return_path": [other],
                "rtt": set_up.rtt,
                "source": {"name": "bulk", "start": "uniform(0s, 1s)"},
                "tcp": {
                    "name": "newreno",
                    "profile": "ns2",
                    "packet": f"{mtu}B",
                    "receive_window": set_up.window,
                },
            }
        )
        udp: dict[str, Any] = {
            "name": "cbr",
            "rate": f"{rate * set_up.cbr * 1000:g}kbit",
            "packet": f"{min(bytes_of(set_up.cbr_packet), mtu)}B",
        }
        udp |= {"jitter": 0.5, "start": "uniform(0s, 1s)"}
        if set_up.cbr:
            declared.append({"name": f"cbr-{way}", "path": [way], "source": udp})
    times = {"duration": set_up.duration, "warmup": set_up.warmup}
    return {**times, "links": links, "flows": declared, "packet_log": True}


def measure(result: Result) -> dict[str, Any]:
    """Keep delays in the queue and from node to node, and drops per second, of one direction.

    `data_` columns are over the data packets of the FTPs alone; the others are over all packets,
    acks and CBR included.
    """
    import numpy as np

    link, described = result.links["forward"], result.scenario["links"]["forward"]
    log = link.packet_log
    warmup_s, end_s = (seconds(result.scenario[key]) for key in ("warmup", "duration"))
    sent = (log.fate == 0) & (log.arrived_s >= warmup_s)
    waited = (log.left_s - log.arrived_s)[sent]
    node = (
        waited + log.size_bytes[sent] * 8 / bps_of(described["rate"]) + seconds(described["delay"])
    )
    ftps = [n for n, flow in enumerate(result.flows) if flow.startswith("ftp-forward")]
    data = np.isin(log.flow[sent], ftps)
    low, high = np.percentile(node, [5, 95])
    data_low, data_high = np.percentile(node[data], [5, 95])
    wait_low, wait_high = np.percentile(waited[data], [5, 95])
    return {
        "wait_mean_s": float(waited.mean()),
        "wait_max_s": float(waited.max()),
        "node_low_s": float(low),
        "node_high_s": float(high),
        "node_std_s": float(node.std()),
        "data_low_s": float(data_low),
        "data_high_s": float(data_high),
        "data_least_s": float(node[data].min()),
        "data_most_s": float(node[data].max()),
        "data_wait_s": float(waited[data].mean()),
        "data_wait_low_s": float(wait_low),
        "data_wait_high_s": float(wait_high),
        "data_std_s": float(node[data].std()),
        "drops_per_s": link.dropped_packets / (end_s - warmup_s),
        "utilisation": link.utilisation,
    }


def scenarios(full: bool, set_up: SetUp = OURS) -> dict[str, Experiment]:
    """Return the two scenarios of the paper, the settings varied, and other disciplines."""
    seeds, some = (10, 3) if full else (3, 2)
    both = (("codel", set_up.codel), ("drr", set_up.drr))
    extra = (
        *both,
        ("drr1000p", {**set_up.drr, "limit": "1000p"}),
        ("drr100kB", {**set_up.drr, "limit": "100kB"}),
        ("fq_codel", FQ_CODEL),
    )
    counts, slow = COUNTS if full else COUNTS[::2], set_up.mtu_mbps
    changes = {what: replace(set_up, **how) for what, how in CHANGES.items()}
    rates: list[Point] = [
        ({"qdisc": name, "rate": rate}, dumbbell(qdisc, rate, set_up=set_up))
        for name, qdisc in both
        for rate in RATES
    ]
    sizes: list[Point] = [
        ({"qdisc": name, "mtu": mtu}, dumbbell(qdisc, slow, mtu, set_up))
        for name, qdisc in both
        for mtu in MTUS
    ]
    changed: list[Point] = [
        ({"what": what, "qdisc": name, "rate": rate}, dumbbell(qdisc, rate, set_up=how))
        for what, how, chosen in (
            *((what, how, both) for what, how in changes.items()),
            ("other queues", set_up, extra[2:]),
        )
        for name, qdisc in chosen
        for rate in RATES
    ]
    changed_sizes: list[Point] = [
        ({"what": what, "qdisc": name, "mtu": mtu}, dumbbell(qdisc, rate, mtu, how))
        for what, rate, how in (
            *((w, slow, h) for w, h in changes.items()),
            ("4 Mbit/s", 4, set_up),
        )
        for name, qdisc in both
        for mtu in MTUS
    ]
    many: list[Point] = [
        ({"qdisc": name, "flows": n}, dumbbell(qdisc, 10, set_up=replace(set_up, ftps=n)))
        for name, qdisc in extra
        for n in counts
    ]
    return {
        "bandwidth": Experiment(rates, measure, seeds),
        "mtu": Experiment(sizes, measure, seeds),
        "changed": Experiment(changed, measure, some),
        "changed mtu": Experiment(changed_sizes, measure, some),
        "flows": Experiment(many, measure, some),
    }
