"""Throughput, goodput, utilisation and fairness."""

from collections.abc import Sequence

import numpy as np

from sojourn.metrics.registry import metric
from sojourn.result.result import Array, Result
from sojourn.result.select import flows_of, jain, window_s_of, wire_factor


@metric("bit/s", "usual definition")
def throughput_bps(result: Result, link: str) -> float:
    """Bits sent by `link` per second, headers included.

    A packet counts when its transmission starts.
    """
    return float(result.links[link]["departed_bytes"] * 8 / window_s_of(result))


@metric("share", "usual definition")
def utilisation(result: Result, link: str) -> float | None:
    """Share of the measured interval in which `link` was sending, from 0 to 1.

    On a link with a token bucket (`burst`): the share in which the bucket was not full, which is
    the time in which a transmitter would send the packets. On a link with recorded delivery
    opportunities: the share of their bytes that packets used, each with 4 bytes of framing.
    """
    value: float | None = result.links[link]["utilisation"]
    return value


@metric("share per sample", "paper hred, figure 10", needs="sample")
def utilisation_over_time(result: Result, link: str) -> Array:
    """Share of each sampling interval in which `link` was sending, from 0 to 1. Needs `sample`.

    On a link with recorded delivery opportunities: the share of their bytes that was used, as in
    `utilisation`, and NaN in an interval without opportunities.
    """
    share: Array = result.links[link].series["utilisation"]
    return share


@metric("bit/s", "RFC 7928 2.5")
def goodput_bps(result: Result, group: str | None = None) -> float:
    """Payload bits delivered in order per second, without duplicates, of a group or all flows.

    Never above the rate of the path without a warm-up. After a warm-up it can be: data that arrived
    in the warm-up above a missing segment counts when that segment arrives.
    """
    return float(sum(flow["goodput_bps"] for flow in flows_of(result, group)))


@metric("bit/s", "paper red-vs-taildrop")
def tcp_goodput_bps(result: Result, group: str | None = None, *, wire: bool = False) -> float:
    """Goodput of the TCP flows of a group, or of all TCP flows.

    With `wire` headers count, as in paper red-vs-taildrop (8.4 of 9 Mbit/s): each full packet
    counts as `packet` bytes of its TCP.
    """
    total = 0.0
    for flow in flows_of(result, group):
        if flow["kind"] == "tcp":
            total += flow["goodput_bps"] * (wire_factor(result, flow["group"]) if wire else 1.0)
    return total


@metric("share", "paper hred, table 2")
def goodput_share(result: Result, group: str) -> float | None:
    """Goodput of a group divided by the goodput of all flows."""
    total = goodput_bps(result)
    return goodput_bps(result, group) / total if total > 0 else None


@metric("number", "Jain, Chiu and Hawe, DEC-TR-301, 1984")
def jain_index(
    result: Result, groups: Sequence[str] | None = None, weights: Sequence[float] | None = None
) -> float:
    """Jain's fairness index of goodputs: 1 if all are equal, 1/n if one flow has everything.

    The index compares single flows, or whole `groups`; each goodput is divided by its weight in
    `weights`. The index is 1 if all goodputs are 0.
    """
    if groups is None:
        x = np.array([flow["goodput_bps"] for flow in result.flows.values()], dtype=float)
    else:
        x = np.array([goodput_bps(result, group) for group in groups])
    if weights is not None:
        x = x / np.asarray(weights, dtype=float)
    return jain(x)


@metric("ratio", "usual definition")
def min_max_ratio(result: Result, group: str | None = None) -> float | None:
    """Smallest goodput of a flow divided by the largest."""
    each = [flow["goodput_bps"] for flow in flows_of(result, group)]
    return min(each) / max(each) if max(each, default=0) > 0 else None
