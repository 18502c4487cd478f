"""Queueing delay, queue length, jitter, and the trade-off of delay against goodput."""

import numpy as np

from sojourn._util.units import seconds
from sojourn.metrics.registry import metric
from sojourn.result.result import Array, Result
from sojourn.result.select import declared, nearest_rank, of_buffer, sojourns


@metric("s", "RFC 7928 2.6; paper red-vs-taildrop")
def queueing_delay_mean_s(result: Result, link: str) -> float | None:
    """Mean queueing delay at `link` of the packets sent, without their own transmission time."""
    value: float | None = result.links[link]["sojourn_mean_s"]
    return value


@metric("s", "RFC 7928 2.6; paper red-vs-taildrop")
def queueing_delay_std_s(result: Result, link: str) -> float | None:
    """Standard deviation (of the population) of the queueing delay at `link`, over packets sent."""
    value: float | None = result.links[link]["sojourn_std_s"]
    return value


@metric("s", "RFC 7928 2.6")
def queueing_delay_percentile_s(result: Result, link: str, percent: float = 99) -> float | None:
    """Percentile of the queueing delay at `link`, over the packets sent.

    50, 95, 99 and 100 come from the summary (within 1 %). Other percentiles are exact, by nearest
    rank, and need `packet_log`.
    """
    known = {50.0: "sojourn_p50_s", 95.0: "sojourn_p95_s", 99.0: "sojourn_p99_s"}
    known[100.0] = "sojourn_max_s"
    if float(percent) in known:
        value: float | None = result.links[link][known[float(percent)]]
        return value
    return nearest_rank(np.sort(sojourns(result, link)), percent / 100)


@metric("s", "paper codel-vs-drr", needs="packet_log")
def queueing_delay_range_s(result: Result, link: str) -> tuple[float, float] | None:
    """Smallest and largest queueing delay at `link`, over the packets sent. Needs `packet_log`."""
    waited = sojourns(result, link)
    return (float(waited.min()), float(waited.max())) if len(waited) else None


@metric("s", "Li et al., HPCC, SIGCOMM 2019", needs="packet_log")
def group_queueing_delays_s(result: Result, link: str, group: str) -> Array:
    """Queueing delays at `link` of the packets of a group, ascending. Needs `packet_log`.

    It has packets of TCP and UDP, data and acknowledgements, that were sent after the warm-up.
    """
    log = result.links[link].packet_log
    declared(result, group)
    mine = [i for i, flow in enumerate(result.flows.values()) if flow["group"] == group]
    sent = (log["fate"] == 0) & (log["left_s"] >= seconds(result.scenario["warmup"]))
    waited = (log["left_s"] - log["arrived_s"])[sent & np.isin(log["flow"], mine)]
    return np.sort(waited)


@metric(
    "bytes", "Alizadeh et al., DCTCP, SIGCOMM 2010; Li et al., HPCC, SIGCOMM 2019", needs="sample"
)
def queue_lengths_bytes(result: Result, link: str) -> Array:
    """Queue lengths of `link` at the samples after the warm-up, ascending. Needs `sample`.

    The value at the place n p of the n values is the quantile p of the distribution over time.
    """
    after = result.time_s > seconds(result.scenario["warmup"])
    lengths: Array = np.sort(result.links[link].series["queue_bytes"][after])
    return lengths


@metric("share of the buffer", "papers codel-dc and hred")
def queue_mean_normalised(result: Result, link: str) -> float | None:
    """Time average of the queue length of `link`, divided by its buffer size."""
    return of_buffer(result, link, "mean")


@metric("share of the buffer", "paper hred")
def queue_std_normalised(result: Result, link: str) -> float | None:
    """Standard deviation over time of the queue length of `link`, divided by its buffer size."""
    return of_buffer(result, link, "std")


@metric("s", "RFC 3393; RFC 7928 2.6")
def jitter_s(result: Result, flow: str) -> float | None:
    """Delay variation of a UDP flow: standard deviation of consecutive delay differences."""
    value: float | None = result.flows[flow].get("jitter_s")
    return value


@metric("s and bit/s", "RFC 7928 2.7")
def trade_off(result: Result, link: str) -> tuple[float | None, float]:
    """Mean queueing delay and goodput: the point of a run in the delay-goodput plane."""
    return queueing_delay_mean_s(result, link), float(result.links[link]["goodput_bps"])
