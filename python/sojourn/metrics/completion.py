"""How long transfers take, against an ideal too, and when flows stall in a timeout."""

import numpy as np

from sojourn.metrics.registry import metric
from sojourn.reading import completed, ideal_fct_s, nearest_rank, of_groups, since_warmup
from sojourn.result import Array, Result


@metric("s", "RFC 7928 2.1")
def completion_times_s(result: Result, group: str | None = None) -> Array:
    """Completion times of finished transfers that started after the warm-up, in ascending order.

    From the start (SYN) to the last byte received in order.
    """
    return np.sort(completed(result, group)["duration_s"])


@metric("s", "RFC 7928 2.2")
def startup_times_s(result: Result, group: str | None = None) -> Array:
    """Flow start-up times of finished transfers that started after the warm-up, in ascending order.

    From the start until the first byte of data can be sent: until the SYN is acknowledged, with
    what is lost of it, and a request that comes before. Zero on a connection that is open.
    """
    return np.sort(completed(result, group)["startup_s"])


@metric("s", "RFC 7928 2.1; paper codel-dc")
def afct_s(result: Result, group: str | None = None) -> float | None:
    """Mean completion time of finished transfers that started after the warm-up."""
    took = completion_times_s(result, group)
    return float(took.mean()) if len(took) else None


@metric("s", "RFC 7928 2.1")
def fct_percentile_s(result: Result, percent: float, group: str | None = None) -> float | None:
    """The completion time that so many per cent of the transfers do not exceed (nearest rank)."""
    return nearest_rank(completion_times_s(result, group), percent / 100)


@metric("share", "paper codel-dc")
def afct_improvement(result: Result, reference: Result, group: str | None = None) -> float | None:
    """By what share of the mean completion time of `reference` that of `result` is shorter."""
    ours, theirs = afct_s(result, group), afct_s(reference, group)
    return (theirs - ours) / theirs if ours is not None and theirs else None


@metric("ratio", "Alizadeh et al., pFabric, SIGCOMM 2013 (normalised completion time)")
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


@metric("ratio", "Alizadeh et al., pFabric, SIGCOMM 2013 (normalised completion time)")
def slowdown_mean(
    result: Result, group: str | None = None, sizes: tuple[float, float] = (0, np.inf)
) -> float | None:
    """Mean slowdown of transfers whose payload lies in `sizes` (bytes, the upper end excluded)."""
    done = completed(result, group)
    size = done["bytes"][np.argsort(done["start_s"], kind="stable")]
    within = slowdowns(result, group)[(size >= sizes[0]) & (size < sizes[1])]
    return float(within.mean()) if len(within) else None


@metric("s", "paper codel-dc")
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


@metric("flows per sample", "paper codel-dc, figure 7", needs="sample")
def flows_in_timeout(result: Result, group: str | None = None) -> Array:
    """TCP flows that only their retransmission timer can help, at every sample. Needs `sample`.

    From the sample at which a flow has something unacknowledged and nothing of it is on its way,
    until more is acknowledged. A stall that begins and ends between two samples is not seen.
    """
    return of_groups(result, group, "stalled_flows")


@metric("expiries per sample", "usual definition", needs="sample")
def timeouts_over_time(result: Result, group: str | None = None) -> Array:
    """Expiries of retransmission timers in each sample's interval. Needs `sample`."""
    return of_groups(result, group, "timeouts")
