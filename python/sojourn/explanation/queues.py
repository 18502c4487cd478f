"""Size of a queue as a time, rate of a shaper, and causes of a standing queue."""

from collections.abc import Mapping
from typing import Any

from sojourn._util.units import bps_of, bytes_of, duration, rate, seconds
from sojourn.scenario.describe import varies

PACKET_BYTES = 1500
"""Packet that delays and targets are compared with."""

SHAPERS = {"cake": "bandwidth", "tbf": "rate", "cbs": "idleslope"}
"""Parameter with the rate of a discipline that shapes."""

BUFFER_ONLY = {"droptail", "pfifo_fast", "prio", "ets", "tbf", "htb", "skbprio", "cbs"}
"""Disciplines that drop only if a buffer is full."""

PER_FLOW = {"fq_codel", "fq_pie", "fq_red", "fq", "sfq", "cake", "ewfq"}
"""Disciplines with a queue per flow without a parameter `by`."""

SEPARATE = PER_FLOW | {"dualpi2", "pfifo_fast", "prio", "ets", "htb", "hhf", "skbprio"}
"""Disciplines with several queues without a parameter `by`."""

NEAR_TARGET = 2.0
"""Ratio of the median queueing delay to the target up to which the target is held."""

Table = Mapping[str, Any]


def time_s(qdisc: Table, key: str) -> float | None:
    """Return a parameter in seconds; None if it is not a time."""
    value = qdisc.get(key)
    is_time = isinstance(value, str) and value[:1].isdigit() and value.endswith("s")
    return seconds(str(value)) if is_time else None


def queue_s(size: str, bps: float) -> float | None:
    """Return the time (s) to send a queue of so many bytes or packets; None for other sizes."""
    if " " in size:
        return None  # a list, with a value for each of several queues
    if size.endswith("p") and size[:-1].isdigit():
        return int(size[:-1]) * PACKET_BYTES * 8 / bps
    return bytes_of(size) * 8 / bps if size[:1].isdigit() and size.endswith("B") else None


def shaper_bps(spec: Table) -> float | None:
    """Return the rate of the shaper of a link in bit/s; None without one below the link's rate."""
    qdisc = spec["qdisc"]
    value = str(qdisc.get(SHAPERS.get(qdisc["name"], ""), ""))
    if not value[:1].isdigit() or varies(spec):
        return None
    shaped = bps_of(value)
    return shaped if shaped < bps_of(spec["rate"]) else None


def used(link: Table, spec: Table) -> float | None:
    """Return the utilisation of a link, or of its shaper if it has one."""
    shaped = shaper_bps(spec)
    share: float | None = link["utilisation"]
    if share is None or shaped is None:
        return share
    return min(1.0, share * bps_of(spec["rate"]) / shaped)


def has_queue_per_flow(qdisc: Table) -> bool:
    """Return True if a discipline keeps flows in separate queues."""
    return qdisc["name"] in PER_FLOW or qdisc.get("by") == "flow"


def has_classes(qdisc: Table) -> bool:
    """Return True if a discipline sorts packets into classes by their DSCP."""
    if qdisc["name"] == "cake":
        return qdisc.get("tins") != "besteffort"
    return qdisc["name"] in {"pfifo_fast", "prio", "ets", "skbprio"}


def has_one_queue(qdisc: Table) -> bool:
    """Return True if all packets wait in the same queue."""
    return qdisc["name"] not in SEPARATE and "by" not in qdisc


def buffer(spec: Table) -> str:
    """Return the buffer of a link with its time at the rate; empty if that is unknown."""
    limit = str(spec["qdisc"].get("limit", ""))
    if varies(spec):
        return ""
    bps = shaper_bps(spec) or bps_of(spec["rate"])
    holds_s = queue_s(limit, bps)
    if holds_s is None:
        return ""
    return f"Its buffer of {limit} holds {duration(holds_s)} at {rate(bps)}."


def cause(spec: Table, median_s: float) -> str:
    """Return a sentence about the cause of a standing queue with this median delay."""
    qdisc = spec["qdisc"]
    name, target_s = qdisc["name"], time_s(qdisc, "target")
    if has_queue_per_flow(qdisc):
        return f"{name} has a queue per flow, so this is the delay of the flows that fill theirs."
    if name in BUFFER_ONLY:
        return f"{name} drops only if the buffer is full, and senders fill it until then."
    if target_s is not None and median_s <= NEAR_TARGET * target_s:
        return f"{name} holds the queue near its target of {duration(target_s)}."
    if target_s is not None:
        return (
            f"{name} has a target of {duration(target_s)}, and its drops or marks did not make "
            "the senders slow enough for it."
        )
    if varies(spec):
        return ""
    ends = [queue_s(str(qdisc.get(key, "")), bps_of(spec["rate"])) for key in ("min_th", "max_th")]
    if ends[0] is None or ends[1] is None:
        return ""
    return f"{name} acts on an average queue from {duration(ends[0])} to {duration(ends[1])}."
