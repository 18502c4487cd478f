"""Rules about senders: incast, spurious retransmissions, packets that cannot be marked."""

from collections.abc import Iterator

import numpy as np

from sojourn._util.paths import links_of
from sojourn._util.units import bps_of, bytes_of, counted, duration, figures, seconds, share
from sojourn.explanation import links
from sojourn.explanation.finding import Finding
from sojourn.explanation.queues import queue_s
from sojourn.result import select
from sojourn.result.result import Record, Result

SLOW_QUERY = 2.0
"""Ratio of the median query to one without losses from which incast is reported."""

SPURIOUS = 2.0
"""Retransmissions per lost packet from which retransmissions are called unnecessary."""

SPURIOUS_PACKETS = 20
"""Number of retransmissions without a loss from which they are reported."""

SAME_THRESHOLD = 1.2
"""Ratio of RED's thresholds up to which they act as a single one."""


def incast(result: Result) -> Iterator[Finding]:
    """Report answers that arrive at once and overflow the buffer before their receiver."""
    for flow in result.scenario["flows"]:
        source, name = flow["source"], flow["name"]
        if source["name"] != "incast" or not str(source["size"]).endswith("B"):
            continue
        took = result.queries["duration_s"][_of_group(result, name)]
        link = _narrowest(result, links_of(flow))
        spec = result.scenario["links"][link]
        amount = bytes_of(source["size"]) * flow["count"]
        rtt_s = max(one["rtt_s"] for one in select.flows_of(result, name))
        ideal_s = amount * 8 / bps_of(spec["rate"]) + rtt_s
        median_s = float(np.median(took)) if len(took) else 0.0
        drops = result.links[link]["dropped_packets"]
        if median_s < SLOW_QUERY * ideal_s or not drops:
            continue
        limit = str(spec["qdisc"].get("limit", ""))
        room = f" for a buffer of {limit}" if limit else ""
        timer = flow["tcp"]["rto_min"]
        yield Finding(
            "incast",
            f"The {flow['count']} flows of {name} reach {link} at once: {figures(amount / 1e3)} kB"
            f"{room}. Half of the queries took {duration(median_s)} or longer, without losses they "
            f"take {duration(ideal_s)}; where the last packets of an answer are lost, it waits for "
            f"a timeout of at least {timer}. Marks at a low threshold with dctcp, a shorter "
            "rto_min or a larger buffer help.",
            {f"queries of {name}, median": median_s, f"links.{link}.dropped_packets": drops},
        )


def _of_group(result: Result, name: str) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Return which queries are of a group, and begin after the warm-up."""
    mine = [i for i, flow in enumerate(result.flows.values()) if flow["group"] == name]
    late = result.queries["start_s"] >= seconds(result.scenario["warmup"])
    return np.isin(result.queries["flow"], mine) & late


def _narrowest(result: Result, names: list[str]) -> str:
    return min(names, key=lambda name: bps_of(result.scenario["links"][name]["rate"]))


def spurious(result: Result) -> Iterator[Finding]:
    """Report more retransmissions than losses."""
    flows = [one for one in result.flows.values() if one["kind"] == "tcp"]
    again = sum(one["retransmitted_packets"] for one in flows)
    lost = sum(link["dropped_packets"] + _on_wire(link) for link in result.links.values())
    if again < SPURIOUS_PACKETS or again < SPURIOUS * lost:
        return
    number = sum(one["timeouts"] or 0 for one in flows)
    because = f", with {counted(round(number), 'timeout')}" if number else ""
    yield Finding(
        "spurious retransmissions",
        f"Senders sent {counted(again, 'packet')} again{because}, but the links lost "
        f"{counted(lost, 'packet')}: most retransmissions were unnecessary. A delay that grows "
        "faster than the timeout follows, or reordering, causes this.",
        {"flows.retransmitted_packets": again, "links.dropped_packets + lost_on_wire": lost},
    )


def _on_wire(link: Record) -> int:
    return int(link.get("lost_on_wire_packets") or 0)


def threshold(result: Result) -> Iterator[Finding]:
    """Report RED with a single threshold that drops packets which cannot carry a mark."""
    for name, link in links.listed(result):
        qdisc = result.scenario["links"][name]["qdisc"]
        bps = bps_of(result.scenario["links"][name]["rate"])
        ends = [queue_s(str(qdisc.get(key, "")), bps) for key in ("min_th", "max_th")]
        early = link["dropped_early_packets"]
        if ends[0] is None or ends[1] is None or not qdisc.get("ecn") or not early:
            continue
        if ends[1] > SAME_THRESHOLD * ends[0] or not link["marked_packets"]:
            continue
        yield Finding(
            "threshold drops what it cannot mark",
            f"{qdisc['name']} at {name} acts as a threshold at {qdisc['min_th']}: it marked "
            f"{counted(link['marked_packets'], 'packet')} and dropped {counted(early, 'packet')} "
            f"that cannot carry a mark ({share(early / max(link['arrived_packets'], 1))} of all): "
            "SYNs, pure ACKs, retransmissions and flows without ECN. A lost SYN waits for "
            "rto_initial.",
            {f"links.{name}.marked_packets": link["marked_packets"],
             f"links.{name}.dropped_early_packets": early},
        )  # fmt: skip
