"""Parts of a Result that metrics read: flows of a group, transfers, buffers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sojourn._sojourn import InputError
from sojourn._util.units import bytes_of, seconds
from sojourn.result.result import Array, Record, Result

GRAIN_S = 1e-9
"""Tolerance in seconds for times of samples: whole nanoseconds whose sums are inexact."""


def links_by_queue(result: Result, most: int) -> list[str]:
    """Return the links as declared, or if there are more than `most`, longest mean queue first."""

    def queue(name: str) -> float:
        return float(result.links[name]["queue_mean_bytes"] or 0)

    names = [*result.links]
    return names if len(names) <= most else sorted(names, key=queue, reverse=True)


def loss_of_datagrams(flows: Sequence[Record]) -> float | None:
    """Return the share of the datagrams of UDP flows that were lost; None without datagrams."""
    lost = sum(flow["lost_packets"] for flow in flows)
    got = sum(flow["received_packets"] for flow in flows)
    return lost / (lost + got) if lost + got else None


def jain(shares: Sequence[float] | Array) -> float:
    """Return Jain's fairness index of `shares`; 1 if all are zero."""
    x = np.asarray(shares, dtype=float)
    squares = float(np.sum(x * x))
    return float(np.sum(x)) ** 2 / (len(x) * squares) if squares > 0 else 1.0


def nearest_rank(ascending: Array, share: float) -> float | None:
    """Return the quantile `share` (0 to 1) of sorted values by nearest rank; None without values.

    Percentiles in summaries have the same definition.
    """
    n = len(ascending)
    return float(ascending[max(1, int(np.ceil(share * n))) - 1]) if n else None


def window_s_of(result: Result) -> float:
    """Return the length of the measured interval in seconds: duration minus warm-up."""
    return seconds(result.scenario["duration"]) - seconds(result.scenario["warmup"])


def flows_of(result: Result, group: str | None) -> list[Record]:
    """Return the flows of a group, or all flows. Raises KeyError for an unknown group."""
    if group is not None:
        declared(result, group)
    return [f for f in result.flows.values() if group is None or f["group"] == group]


def by_group(result: Result) -> dict[str, list[Record]]:
    """Return the flows of each group of the scenario, in the order of declaration."""
    members: dict[str, list[Record]] = {flow["name"]: [] for flow in result.scenario["flows"]}
    for flow in result.flows.values():
        members[flow["group"]].append(flow)
    return members


def declared(result: Result, group: str) -> dict[str, Any]:
    """Return the table of a group in the scenario. Raises KeyError for an unknown group."""
    for flow in result.scenario["flows"]:
        if flow["name"] == group:
            declaration: dict[str, Any] = flow
            return declaration
    raise KeyError(f"no group of flows {group!r} (known: {', '.join(result.group_series)})")


def wire_factor(result: Result, group: str) -> float:
    """Return the bytes on the wire per byte of payload in full packets of a group."""
    tcp = declared(result, group)["tcp"]
    packet, header = bytes_of(tcp["packet"]), bytes_of(tcp["header"])
    return packet / (packet - header)


def completed(result: Result, group: str | None) -> dict[str, Array]:
    """Return the finished transfers of a group that started after the warm-up."""
    return since_warmup(result, result.completions, group)


def since_warmup(
    result: Result, columns: Mapping[str, Array], group: str | None
) -> dict[str, Array]:
    """Return the rows of a group (or of all flows) that started after the warm-up."""
    if group is not None:
        declared(result, group)
    if not len(columns["start_s"]):  # at once: a sweep of short runs asks often
        return dict(columns)
    here = columns["start_s"] >= seconds(result.scenario["warmup"])
    if group is not None:
        mine = [i for i, flow in enumerate(result.flows.values()) if flow["group"] == group]
        here &= np.isin(columns["flow"], mine)
    return {name: column[here] for name, column in columns.items()}


def of_groups(result: Result, group: str | None, what: str) -> Array:
    """Return the sum of a column of series over a group, or over all groups that have it."""
    names = [group] if group is not None else list(result.group_series)
    columns = [s[what] for name in names if what in (s := result.group_series[name])]
    if not columns:
        raise KeyError(f"no {what} of TCP flows: the scenario has no `sample`, or no TCP")
    total: Array = np.sum(columns, axis=0)
    return total


def sojourns(result: Result, link: str) -> Array:
    """Return the queueing delays (s) of the packets sent after the warm-up."""
    log = result.links[link].packet_log
    sent = (log["fate"] == 0) & (log["left_s"] >= seconds(result.scenario["warmup"]))
    waited: Array = (log["left_s"] - log["arrived_s"])[sent]
    return waited


def decided_s(log: Any) -> Array:
    """Return the time (s) of each decision: at enqueue, or of the late drop."""
    decided: Array = np.where(log["fate"] == 3, log["left_s"], log["arrived_s"])
    return decided


def buffer_of(result: Result, link: str) -> tuple[float, str]:
    """Return the buffer size of a link, and the name of the queue column in the same unit.

    Raises InputError if the buffer has no fixed size.
    """
    limit: str = result.scenario["links"][link]["qdisc"]["limit"]
    if limit == "auto":
        raise InputError(f"links.{link}.qdisc.limit: is auto, but this metric needs a size")
    if limit.endswith("p"):
        return float(limit[:-1]), "queue_packets"
    return float(bytes_of(limit)), "queue_bytes"


def of_buffer(result: Result, link: str, what: str) -> float | None:
    """Return the mean or std (`what`) of the queue length divided by the buffer size.

    None if the buffer has no fixed size.
    """
    if result.scenario["links"][link]["qdisc"]["limit"] == "auto":
        return None
    buffer, column = buffer_of(result, link)
    value = result.links[link][column.replace("queue_", f"queue_{what}_")]
    return None if value is None else value / buffer
