"""How long packets wait, how full the queue is, and the trade of delay against goodput."""

import numpy as np

from sojourn.metrics.registry import metric
from sojourn.reading import nearest_rank, of_buffer, sojourns
from sojourn.result import Result


@metric("s", "RFC 7928 2.6; paper red-vs-taildrop")
def queueing_delay_mean_s(result: Result, link: str) -> float | None:
    """Mean time in the queue of `link`, of packets that were sent; their own transmission apart."""
    value: float | None = result.links[link]["sojourn_mean_s"]
    return value


@metric("s", "RFC 7928 2.6; paper red-vs-taildrop")
def queueing_delay_std_s(result: Result, link: str) -> float | None:
    """Standard deviation of the time in the queue of `link`, over packets, dividing by n."""
    value: float | None = result.links[link]["sojourn_std_s"]
    return value


@metric("s", "RFC 7928 2.6")
def queueing_delay_percentile_s(result: Result, link: str, percent: float = 99) -> float | None:
    """The time in the queue that so many per cent of the packets sent do not exceed.

    50, 95, 99 and 100 from the summary (within 1 %); others exactly, by nearest rank, with `tape`.
    """
    known = {50.0: "sojourn_p50_s", 95.0: "sojourn_p95_s", 99.0: "sojourn_p99_s"}
    known[100.0] = "sojourn_max_s"
    if float(percent) in known:
        value: float | None = result.links[link][known[float(percent)]]
        return value
    return nearest_rank(np.sort(sojourns(result, link)), percent / 100)


@metric("s", "paper codel-vs-drr", needs="tape")
def queueing_delay_range_s(result: Result, link: str) -> tuple[float, float] | None:
    """Least and largest time in the queue of `link` of packets sent. Needs `tape`."""
    waited = sojourns(result, link)
    return (float(waited.min()), float(waited.max())) if len(waited) else None


@metric("share of the buffer", "papers codel-dc and hred")
def queue_mean_normalised(result: Result, link: str) -> float | None:
    """Mean over time of the queue of `link`, over its buffer."""
    return of_buffer(result, link, "mean")


@metric("share of the buffer", "paper hred")
def queue_std_normalised(result: Result, link: str) -> float | None:
    """Standard deviation over time of the queue of `link`, over its buffer."""
    return of_buffer(result, link, "std")


@metric("s", "RFC 3393; RFC 7928 2.6")
def jitter_s(result: Result, flow: str) -> float | None:
    """Standard deviation of the difference of consecutive one-way delays of a UDP flow."""
    value: float | None = result.flows[flow].get("jitter_s")
    return value


@metric("s and bit/s", "RFC 7928 2.7")
def trade_off(result: Result, link: str) -> tuple[float | None, float]:
    """The point of a run in the plane of delay and goodput: mean queueing delay and goodput."""
    return queueing_delay_mean_s(result, link), float(result.links[link]["goodput_bps"])
