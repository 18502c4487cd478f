"""Parts of Linux's loss recovery in scenarios, each compared with a run without it."""

from typing import Any

import numpy as np

import sojourn as sj

SEEDS = range(1, 5)


def run(seed: int, link: dict[str, Any], flow: dict[str, Any], **more: Any) -> sj.Result:
    """Flows of `linux_reno` over one link with a round-trip time of 50 ms."""
    tcp = {"name": "linux_reno", **flow.get("tcp", {})}
    flows = [{"name": "a", "path": ["up"], "rtt": "50ms", **flow, "tcp": tcp}]
    links = {"up": {"delay": "25ms", **link}}
    return sj.simulate({"duration": "16s", "seed": seed, "links": links, "flows": flows} | more)


def test_tail_loss_probes_replace_timeouts_of_flows_with_small_writes() -> None:
    """The last packet of a write is lost often in a buffer of 6 packets."""
    link = {"rate": "3Mbit", "qdisc": "droptail(limit=6p)", "loss": 0.003}
    source = {"name": "cbr", "rate": "324kbit", "start": "uniform(0s, 1s)"}

    def timeouts(**tcp: Any) -> int:
        runs = [run(i, link, {"count": 8, "source": source, "tcp": tcp}) for i in range(1, 13)]
        return sum(flow["timeouts"] for one in runs for flow in one.summary["flows"])

    few, many = timeouts(), timeouts(tlp=False)
    assert 0 < few < 0.75 * many


def test_timeouts_of_an_outage_are_undone() -> None:
    """No packet is lost while the link stands almost still for a second.

    Linux 6.18 has 2 timeouts and sends 2 packets again (`--engine live`).
    """
    link = {"rate": "8Mbit", "qdisc": "droptail(limit=1000p)"}
    source = {"name": "cbr", "rate": "4Mbit", "packet": "1448B"}
    changes = [
        {"at": "5s", "links": {"up": {"rate": "10kbit"}}},
        {"at": "6s", "links": {"up": {"rate": "8Mbit"}}},
    ]
    off = {"timestamps": False, "dsack": False, "frto": False}

    def outcome(tcp: dict[str, bool]) -> tuple[int, int]:
        result = run(1, link, {"source": source, "tcp": tcp}, changes=changes, duration="10s")
        flow = result.summary["flows"][0]
        return flow["timeouts"], flow["retransmitted_packets"]

    assert outcome({}) == (2, 2)
    timeouts, without = outcome(off)
    assert timeouts == 2
    assert without > 20
    assert outcome({**off, "timestamps": True}) == (2, 2)


def test_a_lost_syn_ends_ecn_of_a_connection() -> None:
    """Without `ecn_fallback` the queue marks what it drops with it."""
    link = {"rate": "3Mbit", "qdisc": "red(min_th=4p, max_th=12p, ecn=true)"}
    source = {"name": "bulk", "start": "uniform(0s, 1s)"}

    def marks(**tcp: Any) -> int:
        flow = {"count": 16, "source": source, "tcp": {"ecn": True, **tcp}}
        results = [run(seed, link, dict(flow)) for seed in SEEDS]
        return sum(result.summary["links"]["up"]["marked_packets"] for result in results)

    assert 0 < marks() < 0.9 * marks(ecn_fallback=False)


def test_transfers_start_sooner_after_lost_syns_of_linux() -> None:
    """A quarter of the SYNs is lost; without `linux_syn` the first window is then one segment."""
    link = {"rate": "20Mbit", "qdisc": "droptail(limit=100p)", "loss": 0.25}
    source = {"name": "transfers", "size": "40kB", "gap": "exponential(100ms)"}

    def completion(**tcp: Any) -> float:
        flow = {"count": 12, "source": source, "tcp": tcp}
        results = [run(seed, link, dict(flow)) for seed in SEEDS]
        flows = [flow for result in results for flow in result.summary["flows"]]
        total = sum(flow["fct_mean_s"] * flow["completed"] for flow in flows if flow["completed"])
        return float(total / sum(flow["completed"] for flow in flows))

    assert 0 < completion() < 0.95 * completion(linux_syn=False)


def test_a_queue_changes_how_often_the_receive_window_grows() -> None:
    """With the queue a round trip takes up to 0.65 s.

    Linux 6.18 sends 0.64 acks per segment (`--engine live`). With the round-trip time of the
    handshake, 50 ms, there would be 0.79.
    """
    link = {"rate": "2Mbit", "qdisc": "droptail(limit=100p)"}
    links = {"up": {"delay": "25ms", **link}, "down": {"delay": "25ms", "rate": "2Mbit"}}
    flow = {"source": {"name": "bulk"}, "return_path": ["down"]}
    there = run(1, link, flow, links=links).summary["links"]
    assert 0.6 < there["down"]["arrived_packets"] / there["up"]["departed_packets"] < 0.75


def test_paced_bursts_are_longer_on_short_paths() -> None:
    """A burst takes a millisecond; at 2.6 ms of round-trip time it is 2 kB longer.

    Of the packets of Linux 6.18, 61 % leave in bursts of 3 at 39.5 Mbit/s and 6.7 ms (`--engine
    live`).
    """

    def share(rtt: float, segments: int, **tcp: Any) -> float:
        """Share of the packets that leave in bursts of `segments`."""
        link = {"rate": "39.5Mbit", "delay": f"{rtt / 2}ms", "qdisc": "dualpi2"}
        flow = {"tcp": {"name": "linux_bbr", **tcp}, "rtt": f"{rtt}ms", "source": "bulk"}
        log = run(1, link, flow, packet_log=True, duration="4s").links["up"].packet_log
        gaps = np.diff(np.asarray(log["arrived_s"])[1_000:])
        sizes = np.diff(np.flatnonzero(gaps > 0))
        return float(sizes[sizes == segments].sum() / sizes.sum())

    assert share(6.7, 3) > 0.5
    assert share(40, 3) > 0.5
    assert share(2.6, 4) + share(2.6, 5) > 0.5
    assert share(6.7, 1, linux_acks=False) > 0.95
