"""Metrics, each defined once: what it is, its unit, and where it is from.

Every function takes a Result; `sojourn list metrics` shows them, `METRICS` holds them by name.
Summaries are of the time after the scenario's warm-up; what needs the series or the tape says so.
Where there is nothing to measure (no packet, no loss, no finished transfer) the value is None.
The sources name sections of the project's reference (metrics.md), and of RFC 7928 as we remember
its contents: the reference could not check the numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np

from sojourn.capacity import capacity_bits
from sojourn.reading import (
    GRAIN_S,
    buffer_of,
    completed,
    decided_s,
    edges,
    flows_of,
    ideal_fct_s,
    jain,
    loss_of_datagrams,
    nearest_rank,
    of_buffer,
    of_groups,
    since_warmup,
    sojourns,
    window_s_of,
    wire_factor,
)
from sojourn.result import Array, Result

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Metric:
    """A metric of the registry."""

    name: str
    unit: str
    source: str
    about: str
    function: Callable[..., Any]


METRICS: dict[str, Metric] = {}
"""Every metric by its name."""


def metric(unit: str, source: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Put the function below into the registry, with its unit and where it is defined."""

    def register(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__name__
        about = (function.__doc__ or "").strip().split("\n\n")[0]
        METRICS[name] = Metric(name, unit, source, " ".join(about.split()), function)
        return function

    return register


# ---- throughput and shares ---------------------------------------------------------------------


@metric("bit/s", "metrics.md 1")
def throughput_bps(result: Result, link: str) -> float:
    """Wire bits whose transmission on `link` started, per second."""
    return float(result.links[link]["departed_bytes"] * 8 / window_s_of(result))


@metric("share", "metrics.md 1")
def utilisation(result: Result, link: str) -> float | None:
    """The share of the time in which `link` was sending.

    Of a link with recorded delivery opportunities, the share of their bytes that was used.
    """
    value: float | None = result.links[link]["utilisation"]
    return value


@metric("share per sample", "metrics.md 6; paper 003, figure 10")
def utilisation_over_time(result: Result, link: str) -> Array:
    """Bits that `link` started to send in each sample's interval, over what its rate allows.

    The rate is that of the moment, by the scenario's changes and traces; of a link with recorded
    opportunities, what they could have delivered. Needs `sample`.
    """
    sent = result.links[link].series["departed_bytes"] * 8.0
    able = np.diff(capacity_bits(result.scenario, link, edges(result)))
    share: Array = np.divide(sent, able, out=np.full(len(sent), np.nan), where=able > 0)
    return share


@metric("bit/s", "metrics.md 1; RFC 7928 2.5")
def goodput_bps(result: Result, group: str | None = None) -> float:
    """Payload delivered to receivers in order, once, per second: of a group, or of all flows."""
    return float(sum(flow["goodput_bps"] for flow in flows_of(result, group)))


@metric("bit/s", "metrics.md 1; paper 001")
def tcp_goodput_bps(result: Result, group: str | None = None, *, wire: bool = False) -> float:
    """Goodput of the TCP flows: what was delivered without losses and retransmissions.

    Payload, or with `wire` the same packets with their headers, as paper 001 reports it
    (8.4 of 9 Mbit/s): each full packet counts as `packet` bytes of its TCP.
    """
    total = 0.0
    for flow in flows_of(result, group):
        if flow["kind"] == "tcp":
            total += flow["goodput_bps"] * (wire_factor(result, flow["group"]) if wire else 1.0)
    return total


@metric("share", "metrics.md 1; paper 003, table 2")
def goodput_share(result: Result, group: str) -> float | None:
    """The goodput of a group over that of all flows."""
    total = goodput_bps(result)
    return goodput_bps(result, group) / total if total > 0 else None


@metric("number", "metrics.md 5; Jain, Chiu and Hawe, DEC-TR-301, 1984")
def jain_index(
    result: Result, groups: Sequence[str] | None = None, weights: Sequence[float] | None = None
) -> float:
    """Jain's index of goodputs: 1 if all are equal, 1/n if one has everything.

    Of single flows, or of `groups` as wholes; `weights` divide what each gets. If nobody gets
    anything it is 1.
    """
    if groups is None:
        x = np.array([flow["goodput_bps"] for flow in result.flows.values()], dtype=float)
    else:
        x = np.array([goodput_bps(result, group) for group in groups])
    if weights is not None:
        x = x / np.asarray(weights, dtype=float)
    return jain(x)


@metric("ratio", "metrics.md 5")
def min_max_ratio(result: Result, group: str | None = None) -> float | None:
    """The least goodput of any flow over the largest."""
    each = [flow["goodput_bps"] for flow in flows_of(result, group)]
    return min(each) / max(each) if max(each, default=0) > 0 else None


# ---- loss --------------------------------------------------------------------------------------


@metric("share", "metrics.md 2; RFC 7928 2.3")
def loss_rate(result: Result, link: str) -> float | None:
    """Packets lost at the queue of `link`, whatever for, over those that arrived."""
    value: float | None = result.links[link]["loss_rate"]
    return value


@metric("share", "metrics.md 2")
def mark_rate(result: Result, link: str) -> float | None:
    """Packets marked at `link` over those that arrived."""
    value: float | None = result.links[link]["mark_rate"]
    return value


@metric("packets/s", "metrics.md 2; paper 004")
def drop_rate_pps(result: Result, link: str) -> float:
    """Packets lost at the queue of `link` per second."""
    return float(result.links[link]["dropped_packets"] / window_s_of(result))


@metric("share", "metrics.md 2; paper 001")
def udp_loss(result: Result, group: str | None = None) -> float | None:
    """Datagrams lost on their way over those lost or received, of those sent after the warm-up.

    Paper 001 counts at the port of one bottleneck; with several links this counts them all.
    """
    return loss_of_datagrams([flow for flow in flows_of(result, group) if flow["kind"] == "udp"])


@metric("packets", "metrics.md 2; paper 000, figure 8")
def drops_over_time(result: Result, link: str) -> dict[str, Array]:
    """Packets lost so far at every sample, by cause. Needs `sample`.

    `overflow` is a full buffer, `law` a decision on arrival or later (`early`, `late`).
    """
    series = result.links[link].series
    by = {why: np.cumsum(series[f"dropped_{why}_packets"]) for why in ("full", "early", "late")}
    return {
        "overflow": by["full"],
        "law": by["early"] + by["late"],
        "early": by["early"],
        "late": by["late"],
    }


@metric("chance", "metrics.md 2; paper 001, 3.1")
def consecutive_loss(result: Result, link: str) -> Array | None:
    """P(N = n), n from 1 on: of the losses that follow one another, the share of n packets.

    A run starts at a loss after an accepted arrival and ends at the next one; what is lost at the
    head of the queue is counted in the order of departures. 1024 stands for that many or more.
    """
    runs = np.asarray(result.links[link]["consecutive_loss"], dtype=float)
    return runs / runs.sum() if runs.sum() > 0 else None


@metric("chance", "metrics.md 2; paper 001, 3.1")
def consecutive_loss_ccdf(result: Result, link: str) -> Array | None:
    """P(N >= n), n from 1 on, of the losses that follow one another."""
    chances = consecutive_loss(result, link)
    return None if chances is None else np.cumsum(chances[::-1])[::-1]


@metric("packets", "metrics.md 2; paper 001, 3.1")
def consecutive_loss_mean(result: Result, link: str) -> float | None:
    """E[N] of the losses that follow one another; 1/(1 - p) if they are independent."""
    chances = consecutive_loss(result, link)
    return None if chances is None else float(np.sum(chances * np.arange(1, len(chances) + 1)))


@metric("packets", "metrics.md 2; RFC 7928 2.3")
def loss_interval_packets(result: Result, link: str) -> Array | None:
    """Packets accepted between one run of losses and the next, in order. Needs `tape`.

    Losses at the head of the queue come in the order of departures, the others in that of arrivals.
    """
    tape = result.links[link].tape
    # Rows that came at the same moment are in the order in which they were decided.
    lost = tape["fate"][np.argsort(decided_s(tape), kind="stable")] > 0
    starts = np.flatnonzero(lost & ~np.concatenate(([False], lost[:-1])))
    accepted = np.cumsum(~lost)
    return np.diff(accepted[starts]) if len(starts) > 1 else None


@metric("share", "metrics.md 2; RFC 7928 2.4")
def loss_synchronisation(result: Result, link: str, window_s: float | None = None) -> float | None:
    """Of the flows that cross `link`, the share that loses in the same event, mean over events.

    Losses within `window_s` (default: the mean round-trip propagation of those flows) of the first
    one are one event. Flows that sent nothing over the link do not count. Needs `tape`.
    """
    tape = result.links[link].tape
    flows = np.unique(tape["flow"])
    if len(flows) < 2:
        return None
    if window_s is None:
        rtts = [flow["rtt_s"] for flow in result.flows.values()]
        window_s = float(np.mean([rtts[i] for i in flows]))
    lost = tape["fate"] > 0
    order = np.argsort(tape["left_s"][lost], kind="stable")
    times, whose = tape["left_s"][lost][order], tape["flow"][lost][order]
    shares, i = [], 0
    while i < len(times):
        j = int(np.searchsorted(times, times[i] + window_s, side="right"))
        shares.append(len(np.unique(whose[i:j])) / len(flows))
        i = j
    return float(np.mean(shares)) if shares else None


# ---- delay and queue ---------------------------------------------------------------------------


@metric("s", "metrics.md 3; paper 001")
def queueing_delay_mean_s(result: Result, link: str) -> float | None:
    """Mean time in the queue of `link`, of packets that were sent; their own transmission apart."""
    value: float | None = result.links[link]["sojourn_mean_s"]
    return value


@metric("s", "metrics.md 3; paper 001")
def queueing_delay_std_s(result: Result, link: str) -> float | None:
    """Standard deviation of the time in the queue of `link`, over packets, dividing by n."""
    value: float | None = result.links[link]["sojourn_std_s"]
    return value


@metric("s", "metrics.md 3")
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


@metric("s", "metrics.md 3; paper 004")
def queueing_delay_range_s(result: Result, link: str) -> tuple[float, float] | None:
    """Least and largest time in the queue of `link` of packets sent. Needs `tape`."""
    waited = sojourns(result, link)
    return (float(waited.min()), float(waited.max())) if len(waited) else None


@metric("share of the buffer", "metrics.md 3; papers 000 and 003")
def queue_mean_normalised(result: Result, link: str) -> float | None:
    """Mean over time of the queue of `link`, over its buffer."""
    return of_buffer(result, link, "mean")


@metric("share of the buffer", "metrics.md 3; paper 003")
def queue_std_normalised(result: Result, link: str) -> float | None:
    """Standard deviation over time of the queue of `link`, over its buffer."""
    return of_buffer(result, link, "std")


@metric("s", "metrics.md 3; RFC 3393; RFC 7928 2.6")
def jitter_s(result: Result, flow: str) -> float | None:
    """Standard deviation of the difference of consecutive one-way delays of a UDP flow."""
    value: float | None = result.flows[flow].get("jitter_s")
    return value


@metric("s and bit/s", "metrics.md 8; RFC 7928 2.7")
def trade_off(result: Result, link: str) -> tuple[float | None, float]:
    """The point of a run in the plane of delay and goodput: mean queueing delay and goodput."""
    return queueing_delay_mean_s(result, link), float(result.links[link]["goodput_bps"])


# ---- flow completion ---------------------------------------------------------------------------


@metric("s", "metrics.md 4; RFC 7928 2.1")
def completion_times_s(result: Result, group: str | None = None) -> Array:
    """Completion times of finished transfers that started after the warm-up, in ascending order.

    From the start (SYN) to the last byte received in order.
    """
    return np.sort(completed(result, group)["duration_s"])


@metric("s", "metrics.md 8; RFC 7928 2.2")
def startup_times_s(result: Result, group: str | None = None) -> Array:
    """Flow start-up times of finished transfers that started after the warm-up, in ascending order.

    From the start until the first byte of data can be sent: until the SYN is acknowledged, with
    what is lost of it, and a request that comes before. Zero on a connection that is open.
    """
    return np.sort(completed(result, group)["startup_s"])


@metric("s", "metrics.md 4; paper 000")
def afct_s(result: Result, group: str | None = None) -> float | None:
    """Mean completion time of finished transfers that started after the warm-up."""
    took = completion_times_s(result, group)
    return float(took.mean()) if len(took) else None


@metric("s", "metrics.md 4")
def fct_percentile_s(result: Result, percent: float, group: str | None = None) -> float | None:
    """The completion time that so many per cent of the transfers do not exceed (nearest rank)."""
    return nearest_rank(completion_times_s(result, group), percent / 100)


@metric("share", "metrics.md 4; paper 000")
def afct_improvement(result: Result, reference: Result, group: str | None = None) -> float | None:
    """By what share of the mean completion time of `reference` that of `result` is shorter."""
    ours, theirs = afct_s(result, group), afct_s(reference, group)
    return (theirs - ours) / theirs if ours is not None and theirs else None


@metric("ratio", "metrics.md 4")
def slowdowns(result: Result, group: str | None = None) -> Array:
    """Completion time over that on an empty path, of each finished transfer in order of its start.

    The ideal: a round trip for the SYN, rounds of slow start from the initial window that doubles
    until it fills the path, then the rest at the rate of the slowest link, and half a round trip.
    """
    done = completed(result, group)
    order = np.argsort(done["start_s"], kind="stable")
    flows = list(result.flows.values())
    pairs = zip(done["flow"][order], done["bytes"][order], strict=True)
    ideal = np.array([ideal_fct_s(result, flows[i], int(size)) for i, size in pairs])
    ratio: Array = done["duration_s"][order] / ideal
    return ratio


@metric("ratio", "metrics.md 4")
def slowdown_mean(
    result: Result, group: str | None = None, sizes: tuple[float, float] = (0, np.inf)
) -> float | None:
    """Mean slowdown of transfers whose payload lies in `sizes` (bytes, the upper end excluded)."""
    done = completed(result, group)
    size = done["bytes"][np.argsort(done["start_s"], kind="stable")]
    within = slowdowns(result, group)[(size >= sizes[0]) & (size < sizes[1])]
    return float(within.mean()) if len(within) else None


@metric("s", "metrics.md 4; paper 000")
def query_completion_s(result: Result, group: str | None = None) -> Array:
    """The longest completion time of the answers to each query, in order of the queries.

    Of queries made after the warm-up: those that the source tells of (`Result.queries`) or, where
    none does, transfers of the same start.
    """
    if result.queries:
        told = since_warmup(result, result.queries, group)
        duration: Array = told["duration_s"][np.argsort(told["start_s"], kind="stable")]
        return duration
    done = completed(result, group)
    starts, place = np.unique(done["start_s"], return_inverse=True)
    longest = np.zeros(len(starts))
    np.maximum.at(longest, place, done["duration_s"])
    return longest


@metric("flows per sample", "metrics.md 4; paper 000, figure 7")
def flows_in_timeout(result: Result, group: str | None = None) -> Array:
    """TCP flows that only their retransmission timer can help, at every sample. Needs `sample`.

    From the sample at which a flow has something unacknowledged and nothing of it is on its way,
    until more is acknowledged. A stall that begins and ends between two samples is not seen.
    """
    return of_groups(result, group, "stalled_flows")


@metric("expiries per sample", "metrics.md 4")
def timeouts_over_time(result: Result, group: str | None = None) -> Array:
    """Expiries of retransmission timers in each sample's interval. Needs `sample`."""
    return of_groups(result, group, "timeouts")


# ---- dynamics ----------------------------------------------------------------------------------


@metric("s", "metrics.md 6; paper 003, IV.B")
def response_time_s(
    result: Result,
    link: str,
    at_s: float,
    *,
    until_s: float | None = None,
    window_s: float = 5.0,
    before_s: float = 50.0,
    after_s: float = 25.0,
) -> tuple[float, bool]:
    """How long after a change of load at `at_s` the queue's deviation is steady again, and whether.

    The deviation of `queue_bytes` over the `window_s` that begin tau after the change is below 1.5
    times the larger of those of the last `before_s` before it and of the last `after_s` before
    `until_s` (default: the end), the least tau in steps of 0.1 s. If never: all the time that
    there was, and False. Needs `sample`; the reference takes 10 ms.
    """
    time, queue = result.time_s, result.links[link].series["queue_bytes"].astype(float)
    end = float(time[-1]) if until_s is None else until_s
    sums = np.concatenate(([[0.0], [0.0]], np.cumsum([queue, queue * queue], axis=1)), axis=1)

    def deviation(a: float, b: float) -> float:
        """Of the samples in (a, b]: a sample tells of the interval before it."""
        i, j = np.searchsorted(time, [a + GRAIN_S, b + GRAIN_S])
        if i >= j:
            return float("nan")
        mean, square = (sums[:, j] - sums[:, i]) / (j - i)
        return float(np.sqrt(max(0.0, square - mean * mean)))

    steady = np.fmax(deviation(at_s - before_s, at_s), deviation(end - after_s, end))
    for k in range(int((end - window_s - at_s) / 0.1 + GRAIN_S) + 1):
        since = at_s + 0.1 * k
        if deviation(since, since + window_s) < 1.5 * steady:
            return 0.1 * k, True
    return end - at_s, False


@metric("s", "metrics.md 6")
def settling_time_s(
    result: Result, link: str, at_s: float, *, until_s: float | None = None, after_s: float = 25.0
) -> tuple[float, bool]:
    """How long after `at_s` the queue comes near its new level, and whether it does.

    The first tau, in steps of 0.1 s, from which on its mean over a second is within a tenth of the
    buffer of its mean over the last `after_s`. Needs `sample` and a buffer in bytes or packets.
    """
    buffer, column = buffer_of(result, link)
    time, queue = result.time_s, result.links[link].series[column].astype(float)
    end = float(time[-1]) if until_s is None else until_s
    sums = np.concatenate(([0.0], np.cumsum(queue)))

    def mean(a: float, b: float) -> float:
        i, j = np.searchsorted(time, [a + GRAIN_S, b + GRAIN_S])
        return float((sums[j] - sums[i]) / (j - i)) if i < j else float("nan")

    level = mean(end - after_s, end)
    for k in range(int((end - 1.0 - at_s) / 0.1 + GRAIN_S) + 1):
        since = at_s + 0.1 * k
        if abs(mean(since, since + 1.0) - level) < 0.1 * buffer:
            return 0.1 * k, True
    return end - at_s, False


@metric("share of the time", "metrics.md 6")
def underflow_share(result: Result, link: str, from_s: float = 0.0) -> float | None:
    """The share of the samples after `from_s` that found the queue of `link` empty."""
    queue = result.links[link].series["queue_packets"][result.time_s > from_s]
    return float(np.mean(queue == 0)) if len(queue) else None
