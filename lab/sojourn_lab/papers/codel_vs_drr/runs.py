"""Scenarios and the measure of `codel_vs_drr`."""

from typing import Any

from sojourn._util.units import bps_of, seconds
from sojourn.result.result import Result
from sojourn_lab.reproduction.paper import Experiment, Point

RATES = (2, 4, 10, 100)
MTUS = (500, 1000, 1500)
COUNTS = (2, 4, 8, 16, 32)
NAMES = {"codel": "CoDel", "drr": "DRR"}

CODEL: dict[str, Any] = {"name": "codel", "variant": "ns2_v1", "limit": "1000p"}
DRR: dict[str, Any] = {"name": "drr", "limit": "25kB", "quantum": "250B", "flows": 10}
WIDE_DRR: dict[str, Any] = {**DRR, "limit": "1000p"}
NS2_DRR: dict[str, Any] = {**DRR, "limit": "100kB"}
FQ_CODEL: dict[str, Any] = {"name": "fq_codel", "limit": "1000p"}

CHANGES: dict[str, dict[str, Any]] = {
    "1 FTP each way": {"flows": 1},
    "2 FTPs each way": {"flows": 2},
    "8 FTPs each way": {"flows": 8},
    "2 FTPs, RTT 10 ms": {"flows": 2, "rtt_ms": 10},
    "RTT 2 ms": {"rtt_ms": 2},
    "window of 20": {"window": 20},
    "no CBR": {"cbr": 0.0},
}
"""Settings that the paper does not state, other than ours, as keywords of `dumbbell`."""


def dumbbell(
    qdisc: dict[str, Any],
    rate: int,
    mtu: int = 1000,
    flows: int = 4,
    window: int = 10_000,
    rtt_ms: int = 40,
    cbr: float = 0.1,
) -> dict[str, Any]:
    """Return the scenario: FTPs and a CBR flow in each direction over `rate` Mbit/s.

    `cbr` is the share of the rate that the CBR flow sends.
    """
    links, declared = {}, []
    for way, other in (("forward", "backward"), ("backward", "forward")):
        links[way] = {"rate": f"{rate}mbit", "delay": f"{rtt_ms * 250}us", "qdisc": qdisc}
        declared.append(
            {
                "name": f"ftp-{way}",
                "count": flows,
                "path": [way],
                "return_path": [other],
                "rtt": f"{rtt_ms}ms",
                "source": {"name": "bulk", "start": "uniform(0s, 1s)"},
                "tcp": {
                    "name": "newreno",
                    "profile": "ns2",
                    "packet": f"{mtu}B",
                    "receive_window": f"{window}p",
                },
            }
        )
        udp: dict[str, Any] = {
            "name": "cbr",
            "rate": f"{rate * cbr * 1000:g}kbit",
            "packet": f"{min(500, mtu)}B",
        }
        udp |= {"jitter": 0.5, "start": "uniform(0s, 1s)"}
        if cbr:
            declared.append({"name": f"cbr-{way}", "path": [way], "source": udp})
    times = {"duration": "100s", "warmup": "10s"}
    return {**times, "links": links, "flows": declared, "packet_log": True}


def measure(result: Result) -> dict[str, Any]:
    """Keep delays in the queue and from node to node, and drops per second, of one direction.

    `data_` columns are over the data packets of the FTPs alone; the others are over all packets,
    acks and CBR included.
    """
    import numpy as np

    link, described = result.links["forward"], result.scenario["links"]["forward"]
    log = link.packet_log
    sent = (log.fate == 0) & (log.arrived_s >= 10)
    waited = (log.left_s - log.arrived_s)[sent]
    node = (
        waited + log.size_bytes[sent] * 8 / bps_of(described["rate"]) + seconds(described["delay"])
    )
    ftps = [n for n, flow in enumerate(result.flows) if flow.startswith("ftp-forward")]
    data = np.isin(log.flow[sent], ftps)
    low, high = np.percentile(node, [5, 95])
    data_low, data_high = np.percentile(node[data], [5, 95])
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
        "data_std_s": float(node[data].std()),
        "drops_per_s": link.dropped_packets / 90,
        "utilisation": link.utilisation,
    }


def scenarios(full: bool) -> dict[str, Experiment]:
    """Return the two scenarios of the paper, the settings varied, and other disciplines."""
    seeds, some = (10, 3) if full else (3, 2)
    both = (("codel", CODEL), ("drr", DRR))
    extra = (*both, ("drr1000p", WIDE_DRR), ("drr100kB", NS2_DRR), ("fq_codel", FQ_CODEL))
    counts = COUNTS if full else COUNTS[::2]
    rates: list[Point] = [
        ({"qdisc": name, "rate": rate}, dumbbell(qdisc, rate))
        for name, qdisc in both
        for rate in RATES
    ]
    sizes: list[Point] = [
        ({"qdisc": name, "mtu": mtu}, dumbbell(qdisc, 2, mtu))
        for name, qdisc in both
        for mtu in MTUS
    ]
    changed: list[Point] = [
        ({"what": what, "qdisc": name, "rate": rate}, dumbbell(qdisc, rate, **how))
        for what, how, chosen in (
            *((what, how, both) for what, how in CHANGES.items()),
            ("other queues", {}, extra[2:]),
        )
        for name, qdisc in chosen
        for rate in RATES
    ]
    changed_sizes: list[Point] = [
        ({"what": what, "qdisc": name, "mtu": mtu}, dumbbell(qdisc, rate, mtu, **how))
        for what, rate, how in (*((w, 2, h) for w, h in CHANGES.items()), ("4 Mbit/s", 4, {}))
        for name, qdisc in both
        for mtu in MTUS
    ]
    many: list[Point] = [
        ({"qdisc": name, "flows": n}, dumbbell(qdisc, 10, flows=n))
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
