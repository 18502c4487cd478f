"""Parts of Linux's loss recovery in scenarios, each compared with a run without it."""

from typing import Any

import sojourn as sj

SEEDS = range(1, 5)


def run(seed: int, link: dict[str, Any], flow: dict[str, Any], **more: Any) -> sj.Result:
    """Flows of `linux_reno` over one link with a round-trip time of 50 ms."""
    tcp = {"name": "linux_reno", **flow.pop("tcp", {})}
    flows = [{"name": "a", "path": ["up"], "rtt": "50ms", "tcp": tcp, **flow}]
    links = {"up": {"delay": "25ms", **link}}
    return sj.simulate({"duration": "16s", "seed": seed, "links": links, "flows": flows, **more})


def test_tail_loss_probes_replace_timeouts_of_flows_with_small_writes() -> None:
    """The last packet of a write is lost often in a buffer of 6 packets."""
    link = {"rate": "3Mbit", "qdisc": "droptail(limit=6p)", "loss": 0.003}
    source = {"name": "cbr", "rate": "324kbit", "start": "uniform(0s, 1s)"}

    def timeouts(**tcp: Any) -> int:
        results = [run(i, link, {"count": 8, "source": source, "tcp": tcp}) for i in SEEDS]
        return sum(flow["timeouts"] for result in results for flow in result.summary["flows"])

    few, many = timeouts(), timeouts(tlp=False)
    assert 0 < few < 0.75 * many


def test_a_timeout_of_a_path_that_became_slow_is_undone() -> None:
    """The queue of 30 packets takes 45 ms to drain, and 1.8 s at the new rate: none is lost."""
    link = {"rate": "8Mbit", "qdisc": "droptail(limit=30p)"}
    changes = [{"at": "5s", "links": {"up": {"rate": "200kbit"}}}]
    off = {"timestamps": False, "dsack": False, "frto": False}

    def again(tcp: dict[str, bool]) -> tuple[int, int]:
        flow = run(1, link, {"tcp": tcp}, changes=changes, duration="8s").summary["flows"][0]
        return flow["timeouts"], flow["retransmitted_packets"]

    with_all, without = again({}), again(off)
    assert with_all[0] > 0 and without[0] > 0, "the timeouts are spurious"
    for part in off:
        assert again({**off, part: True})[1] <= without[1]
    assert with_all[1] < 0.5 * without[1]


def test_a_lost_syn_ends_ecn_of_a_connection() -> None:
    """Without `ecn_fallback` the queue marks what it drops with it."""
    link = {"rate": "3Mbit", "qdisc": "red(min_th=4p, max_th=12p, ecn=true)"}
    source = {"name": "bulk", "start": "uniform(0s, 1s)"}

    def marks(**tcp: Any) -> int:
        flow = {"count": 16, "source": source, "tcp": {"ecn": True, **tcp}}
        results = [run(seed, link, dict(flow)) for seed in SEEDS]
        return sum(result.summary["links"]["up"]["marked_packets"] for result in results)

    assert 0 < marks() < 0.9 * marks(ecn_fallback=False)
