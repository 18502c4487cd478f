"""Completion times of transfers, absolute and relative to an ideal, and timeouts."""

import numpy as np

from sojourn.metrics.registry import metric
from sojourn.result.ideal import slowdowns_of
from sojourn.result.result import Array, Result
from sojourn.result.select import (
    completed,
    flows_of,
    nearest_rank,
    of_groups,
    since_warmup,
)


@metric("s", "RFC 7928 2.1")
def completion_times_s(result: Result, group: str | None = None) -> Array:
    """Completion times of finished transfers that started after the warm-up, in ascending order.

    A completion time runs from the start (SYN) until the last byte is received in order.
    """
    return np.sort(completed(result, group)["duration_s"])


@metric("s", "RFC 7928 2.2")
def startup_times_s(result: Result, group: str | None = None) -> Array:
    """Flow start-up times of finished transfers that started after the warm-up, in ascending order.

    A start-up time runs from the start until the first byte of data can be sent. It includes the
    handshake with its losses, and a preceding request. It is zero on an open connection.
    """
    return np.sort(completed(result, group)["startup_s"])


@metric("transfers", "usual definition")
def unfinished_transfers(result: Result, group: str | None = None) -> int:
    """Number of transfers that had started and were not finished at the end of the run.

    Completion times do not include them: a discipline under which long transfers never finish seems
    fast. Transfers that started in the warm-up count too.
    """
    return sum(flow.get("unfinished", 0) for flow in flows_of(result, group))


@metric("s", "RFC 7928 2.1; paper codel-dc")
def afct_s(result: Result, group: str | None = None) -> float | None:
    """Mean completion time of finished transfers that started after the warm-up."""
    took = completion_times_s(result, group)
    return float(took.mean()) if len(took) else None


@metric("s", "RFC 7928 2.1")
def fct_percentile_s(result: Result, percent: float, group: str | None = None) -> float | None:
    """Percentile of the completion time, by nearest rank."""
    return nearest_rank(completion_times_s(result, group), percent / 100)


@metric("share", "paper codel-dc")
def afct_improvement(result: Result, reference: Result, group: str | None = None) -> float | None:
    """Reduction of the mean completion time against `reference`, as a share of the latter."""
    ours, theirs = afct_s(result, group), afct_s(reference, group)
    return (theirs - ours) / theirs if ours is not None and theirs else None


@metric("ratio", "Alizadeh et al., pFabric, SIGCOMM 2013; Li et al., HPCC, SIGCOMM 2019")
def slowdowns(result: Result, group: str | None = None) -> Array:
    """Completion time of each finished transfer divided by the ideal, in order of their starts.

    The ideal is the time of a lone transfer that no window limits: the base round trip, if a
    connection was opened for it; the delays of the links on the flow's own path; and the time in
    which these send its packets at line rate, headers included. The slowest link sends all
    packets; each other link adds the time of one. So a slowdown is at least 1, and slow start
    counts as delay, as in the papers.

    The base round trip is `rtt` and the transmission of a packet without payload by each link of
    both directions. It counts no more than the start-up time of the transfer. A request before
    the transfer is not part of the ideal.

    The rate of a link whose rate changes is the highest one, its delay the shortest. A link with
    delivery opportunities has no rate and is refused.
    """
    done = completed(result, group)
    order = np.argsort(done["start_s"], kind="stable")
    return slowdowns_of(result, {name: column[order] for name, column in done.items()})


@metric("ratio", "Alizadeh et al., pFabric, SIGCOMM 2013; Li et al., HPCC, SIGCOMM 2019")
def slowdown_mean(
    result: Result, group: str | None = None, sizes: tuple[float, float] = (0, np.inf)
) -> float | None:
    """Mean slowdown of transfers with a payload in `sizes` (bytes, upper bound excluded)."""
    done = completed(result, group)
    size = done["bytes"][np.argsort(done["start_s"], kind="stable")]
    within = slowdowns(result, group)[(size >= sizes[0]) & (size < sizes[1])]
    return float(within.mean()) if len(within) else None


@metric("s", "paper codel-dc")
def query_completion_s(result: Result, group: str | None = None) -> Array:
    """Completion time of each query after the warm-up: the longest of its answers, in order.

    The queries are those that the source reports (`Result.queries`). If it reports none, transfers
    that start at the same time form a query.
    """
    if result.queries:
        rows = since_warmup(result, result.queries, group)
        duration: Array = rows["duration_s"][np.argsort(rows["start_s"], kind="stable")]
        return duration
    done = completed(result, group)
    starts, place = np.unique(done["start_s"], return_inverse=True)
    longest = np.zeros(len(starts))
    np.maximum.at(longest, place, done["duration_s"])
    return longest


@metric("flows per sample", "paper codel-dc, figure 7", needs="sample")
def flows_in_timeout(result: Result, group: str | None = None) -> Array:
    """Number of TCP flows that wait for their retransmission timer, at each sample. Needs `sample`.

    A flow counts from the sample at which it has unacknowledged data and none of it in flight,
    until more data is acknowledged. A stall between two samples is not seen.
    """
    return of_groups(result, group, "stalled_flows")


@metric("expiries per sample", "usual definition", needs="sample")
def timeouts_over_time(result: Result, group: str | None = None) -> Array:
    """Number of retransmission timeouts in each sampling interval. Needs `sample`."""
    return of_groups(result, group, "timeouts")
