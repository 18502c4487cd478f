"""Numbers of a run that are compared, from the summary of a simulated or a live run."""

from collections.abc import Mapping
from typing import Any

Numbers = dict[str, float | None]


def measure(summary: Mapping[str, Any]) -> Numbers:
    """Return the numbers of a run; None where a number has no meaning.

    Goodput in Mbit/s, rates of loss, marks and retransmissions in %, times in ms.
    """
    flows, link = summary["flows"], summary["links"]["up"]
    back = summary["links"].get("down")
    goodputs = [flow["goodput_bps"] for flow in flows]
    total = sum(goodputs)
    groups = {flow["group"] for flow in flows}
    sent = sum(flow["sent_packets"] for flow in flows)
    completed = sum(flow["completed"] or 0 for flow in flows)
    jain = share = fct = None
    if total and len(goodputs) > 1 and len(groups) == 1:
        jain = total * total / len(goodputs) / sum(x * x for x in goodputs)
    if total and len(groups) > 1:
        share = sum(f["goodput_bps"] for f in flows if f["group"] == "a") / total
    if completed:
        fct = sum((f.get("fct_mean_s") or 0) * (f["completed"] or 0) for f in flows) / completed
    return {
        "goodput": total / 1e6,
        "loss": 100 * link["loss_rate"],
        "marks": 100 * link["mark_rate"],
        "delay": 1e3 * (link["sojourn_mean_s"] or 0),
        "p99": 1e3 * (link["sojourn_p99_s"] or 0),
        "fct": None if fct is None else 1e3 * fct,
        "retx": 100 * sum(f["retransmitted_packets"] for f in flows) / max(1, sent),
        "timeouts": sum(f["timeouts"] for f in flows),
        "jain": jain,
        "share": share,
        "ack_loss": back and 100 * back["loss_rate"],
        "acks": back and back["arrived_packets"] / max(1, link["arrived_packets"]),
        "packets": link["arrived_packets"],
    }
