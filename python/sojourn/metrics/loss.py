"""Loss and marking: rates, runs of losses, synchronisation.

All shares count the packets that arrived after the warm-up. A packet that was queued at the end of
the warm-up counts neither in the numerator nor in the denominator.
"""

import numpy as np

from sojourn.metrics.registry import metric
from sojourn.result.result import Array, Result
from sojourn.result.select import decided_s, flows_of, loss_of_datagrams, window_s_of


@metric("share", "RFC 7928 2.3")
def loss_rate(result: Result, link: str) -> float | None:
    """Share of the packets arriving at `link` that its queue dropped, for any reason, 0 to 1.

    Counts packets that arrived after the warm-up. A packet that was queued at that moment does not
    count, even if it was dropped later.
    """
    value: float | None = result.links[link]["loss_rate"]
    return value


@metric("share", "usual definition")
def mark_rate(result: Result, link: str) -> float | None:
    """Share of the packets arriving at `link` that it marked with CE, from 0 to 1.

    Counts packets that arrived after the warm-up.
    """
    value: float | None = result.links[link]["mark_rate"]
    return value


@metric("packets/s", "paper codel-vs-drr")
def drop_rate_pps(result: Result, link: str) -> float:
    """Packets dropped at `link` per second, of those that arrived after the warm-up."""
    return float(result.links[link]["dropped_packets"] / window_s_of(result))


@metric("share", "paper red-vs-taildrop")
def udp_loss(result: Result, group: str | None = None) -> float | None:
    """Share of the UDP datagrams sent after the warm-up that were lost on their path, 0 to 1.

    Datagrams in flight at the end of the run do not count. Losses on all links of the path count;
    paper red-vs-taildrop counts the losses at one bottleneck.
    """
    return loss_of_datagrams([flow for flow in flows_of(result, group) if flow["kind"] == "udp"])


@metric("packets", "paper codel-dc, figure 8", needs="sample")
def drops_over_time(result: Result, link: str) -> dict[str, Array]:
    """Cumulative drops at each sample, by cause, from the start of the run. Needs `sample`.

    `overflow` counts drops at a full buffer, `aqm` drops decided by the AQM algorithm: `early` at
    enqueue, `late` afterwards. A port of a switch also has `buffer`, drops because the shared
    buffer had no room.
    """
    series = result.links[link].series
    by = {why: np.cumsum(series[f"dropped_{why}_packets"]) for why in ("full", "early", "late")}
    ports = (switch["ports"] for switch in result.scenario.get("switches", {}).values())
    shared = {}
    if any(link in names for names in ports):
        shared["buffer"] = np.cumsum(series["dropped_buffer_packets"])
    return shared | {
        "overflow": by["full"],
        "aqm": by["early"] + by["late"],
        "early": by["early"],
        "late": by["late"],
    }


@metric("probability", "paper red-vs-taildrop, 3.1")
def consecutive_loss(result: Result, link: str) -> Array | None:
    """Distribution of the length N of runs of consecutive losses: P(N = n) for n from 1.

    A run starts at a loss after an accepted arrival and ends at the next accepted arrival. Losses
    at the head of the queue count in the order of departures. The last bin, n = 1024, holds all
    longer runs too.
    """
    runs = np.asarray(result.links[link]["consecutive_loss"], dtype=float)
    return runs / runs.sum() if runs.sum() > 0 else None


@metric("probability", "paper red-vs-taildrop, 3.1")
def consecutive_loss_ccdf(result: Result, link: str) -> Array | None:
    """Complementary distribution of the length N of runs of losses: P(N >= n) for n from 1."""
    probabilities = consecutive_loss(result, link)
    return None if probabilities is None else np.cumsum(probabilities[::-1])[::-1]


@metric("packets", "paper red-vs-taildrop, 3.1")
def consecutive_loss_mean(result: Result, link: str) -> float | None:
    """Mean length E[N] of runs of losses; 1/(1 - p) if losses are independent."""
    probabilities = consecutive_loss(result, link)
    if probabilities is None:
        return None
    return float(np.sum(probabilities * np.arange(1, len(probabilities) + 1)))


@metric("packets", "RFC 7928 2.3", needs="packet_log")
def loss_interval_packets(result: Result, link: str) -> Array | None:
    """Numbers of packets accepted between consecutive runs of losses, in order. Needs `packet_log`.

    Head drops count in the order of departures, other losses in the order of arrivals.
    """
    log = result.links[link].packet_log
    # The sort is stable: rows with equal times stay in the order of decisions.
    lost = log["fate"][np.argsort(decided_s(log), kind="stable")] > 0
    starts = np.flatnonzero(lost & ~np.concatenate(([False], lost[:-1])))
    accepted = np.cumsum(~lost)
    return np.diff(accepted[starts]) if len(starts) > 1 else None


@metric("share", "RFC 7928 2.4", needs="packet_log")
def loss_synchronisation(result: Result, link: str, window_s: float | None = None) -> float | None:
    """Mean share of the flows on `link` that lose a packet in the same loss event.

    Losses within `window_s` after the first one are one event. The default is the mean round-trip
    propagation time of the flows. Flows that sent nothing over the link do not count. Needs
    `packet_log`.
    """
    log = result.links[link].packet_log
    flows = np.unique(log["flow"])
    if len(flows) < 2:
        return None
    if window_s is None:
        rtts = [flow["rtt_s"] for flow in result.flows.values()]
        window_s = float(np.mean([rtts[i] for i in flows]))
    lost = log["fate"] > 0
    order = np.argsort(log["left_s"][lost], kind="stable")
    times, whose = log["left_s"][lost][order], log["flow"][lost][order]
    shares, i = [], 0
    while i < len(times):
        j = int(np.searchsorted(times, times[i] + window_s, side="right"))
        shares.append(len(np.unique(whose[i:j])) / len(flows))
        i = j
    return float(np.mean(shares)) if shares else None
