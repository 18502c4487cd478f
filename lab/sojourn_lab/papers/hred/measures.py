"""Measures of the paper on HRED: the values kept of each run."""

from typing import Any

import numpy as np
import numpy.typing as npt

from sojourn import metrics
from sojourn._util.units import bps_of, seconds
from sojourn.result.result import Result
from sojourn.result.select import buffer_of

Table = dict[str, Any]

LOW, HIGH = 0.25, 0.5
"""Thresholds of HRED by table 1, as shares of the buffer: the band of its queue."""


def steady(result: Result) -> Table:
    """Keep the queue's mean and deviation, and rates of drops and marks, after the warm-up."""
    link = result.links["bottleneck"]
    return {
        "mean": metrics.queue_mean_normalised(result, "bottleneck"),
        "std": metrics.queue_std_normalised(result, "bottleneck"),
        "loss": link.loss_rate,
        "utilisation": link.utilisation,
        "overflows": link.dropped_full_packets,
        "marks": link.marked_packets / max(1, link.arrived_packets),
    }


def shares(result: Result) -> Table:
    """Keep the share of the short paths in the goodput, goodput over rate, and the link's use.

    The short paths are one group, or one group per flow if their packets have different sizes.
    Goodput counts packets delivered in order with their headers.
    """
    short = [metrics.goodput_share(result, name) for name in result.group_series if "short" in name]
    rate = bps_of(result.scenario["links"]["bottleneck"]["rate"])
    return {
        **steady(result),
        "share": None if None in short else sum(filter(None, short)),
        "goodput": metrics.tcp_goodput_bps(result, wire=True) / rate,
    }


def _queue(result: Result) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return times and the sampled queue as a share of the buffer."""
    buffer, _ = buffer_of(result, "bottleneck")
    return result.time_s, result.links["bottleneck"].series["queue_bytes"] / buffer


def _tenths(time: npt.NDArray[Any], queue: npt.NDArray[Any]) -> list[float]:
    """Return the queue every 0.1 s."""
    tenth = round(0.1 / float(time[0]))
    return list(queue[tenth - 1 :: tenth].tolist())


def over_time(result: Result) -> Table:
    """Keep the queue every 0.1 s, as a share of the buffer, and its statistics after warm-up."""
    time, queue = _queue(result)
    late = queue[time > seconds(result.scenario["warmup"])]
    return {
        "queue": _tenths(time, queue),
        "std": float(late.std()),
        "least": float(late.min()),
        "most": float(late.max()),
        "in_band": float(np.mean((late >= LOW) & (late <= HIGH))),
        "below_60": float(np.mean(late < 0.6)),
    }


def overflow(result: Result) -> Table:
    """Keep the overflow of the buffer after flows have joined: ten seconds from the change on."""
    time, queue = _queue(result)
    up = seconds(result.scenario["changes"][0]["at"])
    after = (time > up) & (time <= up + 10)
    full = result.links["bottleneck"].series["dropped_full_packets"]
    return {
        "queue": _tenths(time, queue),
        "drops": int(full[after].sum()),
        "full_s": float(np.mean(queue[after] >= 0.95) * 10),
        "after": float(queue[after].mean()),
        "later": float(queue[time > up + 10].mean()),
    }


def settled_s(time: npt.NDArray[Any], queue: npt.NDArray[Any], begin: float, end: float) -> float:
    """Return the time from `begin` until the mean of 5 s stays in the band up to `end`.

    The whole time if it never does.
    """
    wide = round(5 / float(time[0]))
    chosen = queue[(time > begin) & (time <= end)]
    sums = np.cumsum(np.concatenate([[0.0], chosen]))
    means = (sums[wide:] - sums[:-wide]) / wide
    out = np.flatnonzero((means < LOW) | (means > HIGH))
    if not len(out):
        return 0.0
    last = int(out[-1]) + 1
    return end - begin if last >= len(means) else last * float(time[0])


def response(result: Result) -> Table:
    """Keep queue and utilisation over time around a step of the load, and the response to it.

    `away`: number of seconds after a change in which the mean queue differs by a tenth of the
    buffer or more from the mean before the first change. `about`: another reading of the response
    time. The deviation over 5 s is taken about the mean before the first change, and compared with
    1.5 times the deviation before it; the whole time after the change if it is never smaller.
    `start_s` and `back_s`: time from the start, and from the first change, until the mean of 5 s
    stays in the band.
    """
    up, down = (seconds(change["at"]) for change in result.scenario["changes"])
    stay = down - up
    end, link = seconds(result.scenario["duration"]), result.links["bottleneck"]
    time, queue = _queue(result)
    each = metrics.utilisation_over_time(result, "bottleneck")
    used = each.reshape(-1, round(1 / float(time[0]))).mean(axis=1)
    means = queue.reshape(-1, round(1 / float(time[0]))).mean(axis=1)
    before = means[int(up - stay / 2) : int(up)].mean()

    old = queue[(time > up - stay) & (time <= up)]
    wide = round(5 / float(time[0]))

    def about(begin: float) -> float:
        off = np.cumsum((queue[(time > begin) & (time <= begin + stay)] - old.mean()) ** 2)
        calm = off[wide:] - off[:-wide] < wide * (1.5 * old.std()) ** 2
        return float(time[0] * np.argmax(calm)) if calm.any() else stay

    def away(begin: float) -> int:
        return int(np.sum(abs(means[int(begin) : int(begin + stay)] - before) >= 0.1))

    later = {"after_s": stay / 2}
    rise, _ = metrics.response_time_s(
        result, "bottleneck", up, until_s=down, before_s=min(50, up / 2), **later
    )
    fall, _ = metrics.response_time_s(
        result, "bottleneck", down, until_s=end, before_s=stay / 2, **later
    )
    full = link.series["dropped_full_packets"]
    return {
        "queue": _tenths(time, queue),
        "used": used.tolist(),
        "mean": float(old.mean()),
        "std": float(old.std()),
        "rise_s": rise,
        "fall_s": fall,
        "rise_about_s": about(up),
        "fall_about_s": about(down),
        "cut_s": stay,
        "start_s": settled_s(time, queue, 0, up),
        "back_s": settled_s(time, queue, up, down),
        "away_up_s": away(up),
        "away_down_s": away(down),
        "most": float(queue[(time > up) & (time <= down)].max()),
        "overflows": int(full[(time > up) & (time <= down)].sum()),
        "used_before": float(used[int(up - stay / 2) : int(up)].mean()),
        "used_high": float(used[int(up) : int(down)].mean()),
        "used_after": float(used[int(down) : int(down + stay)].mean()),
    }
