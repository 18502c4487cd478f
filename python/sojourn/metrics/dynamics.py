"""Response of a queue to a change of load, and underflow."""

import numpy as np

from sojourn.metrics.registry import metric
from sojourn.result.result import Result
from sojourn.result.select import GRAIN_S, buffer_of


@metric("s", "paper hred, IV.B", needs="sample")
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
    """Time from a change of load at `at_s` until the queue is steady, and True if it gets there.

    The response time is the smallest tau, in steps of 0.1 s, with the following property: the
    standard deviation of `queue_bytes` over the `window_s` that start tau after the change is below
    1.5 times a reference. The reference is the larger of two deviations: over the last `before_s`
    before the change, and over the last `after_s` before `until_s` (default: the end). If there is
    no such tau, the result is the whole time and False. Needs `sample`; the source uses 10 ms.
    """
    time, queue = result.time_s, result.links[link].series["queue_bytes"].astype(float)
    end = float(time[-1]) if until_s is None else until_s
    sums = np.concatenate(([[0.0], [0.0]], np.cumsum([queue, queue * queue], axis=1)), axis=1)

    def deviation(a: float, b: float) -> float:
        """Return the deviation of the samples in (a, b]; a sample covers the interval before it."""
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


@metric("s", "our definition", needs="sample")
def settling_time_s(
    result: Result, link: str, at_s: float, *, until_s: float | None = None, after_s: float = 25.0
) -> tuple[float, bool]:
    """Time from `at_s` until the queue is near its new level, and True if it gets there.

    The settling time is the first tau, in steps of 0.1 s, at which the mean queue over one second
    is within a tenth of the buffer of the mean over the last `after_s`. Needs `sample`, and a
    buffer in bytes or packets.
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


@metric("share of the time", "usual definition", needs="sample")
def underflow_share(result: Result, link: str, from_s: float = 0.0) -> float | None:
    """Share of the samples after `from_s` at which the queue of `link` is empty. Needs `sample`."""
    queue = result.links[link].series["queue_packets"][result.time_s > from_s]
    return float(np.mean(queue == 0)) if len(queue) else None
