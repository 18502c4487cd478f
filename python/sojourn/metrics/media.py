"""Video and calls: rates, stalls, and delays of frames."""

from statistics import fmean

from sojourn.metrics.registry import metric
from sojourn.result.result import Record, Result
from sojourn.result.select import flows_of

_BBA = "Huang et al., SIGCOMM 2014"
"""Source of the metrics of a video."""


def _videos(result: Result, group: str | None) -> list[Record]:
    return [flow for flow in flows_of(result, group) if "video_rate_bps" in flow]


def _calls(result: Result, group: str | None) -> list[Record]:
    return [flow for flow in flows_of(result, group) if "lost_frames" in flow]


@metric("bit/s", _BBA)
def video_rate_bps(result: Result, group: str | None = None) -> float | None:
    """Mean video rate of the segments received after the warm-up, averaged over the videos."""
    rates = [flow["video_rate_bps"] for flow in _videos(result, group)]
    known = [rate for rate in rates if rate is not None]
    return fmean(known) if known else None


@metric("stalls", _BBA)
def video_stalls(result: Result, group: str | None = None) -> int:
    """Number of times after the warm-up at which a video stopped because its buffer was empty."""
    return sum(flow["video_stalls"] for flow in _videos(result, group))


@metric("s", _BBA)
def video_stalled_s(result: Result, group: str | None = None) -> float:
    """Time after the warm-up during which videos were stopped by an empty buffer, in total."""
    return float(sum(flow["video_stalled_s"] for flow in _videos(result, group)))


@metric("switches", _BBA)
def video_switches(result: Result, group: str | None = None) -> int:
    """Number of segments after the warm-up with another rate than the one before, in total."""
    return sum(flow["video_switches"] for flow in _videos(result, group))


@metric("s", _BBA)
def video_startup_s(result: Result, group: str | None = None) -> float | None:
    """Mean time from the first request of a video to the start of its playback."""
    times = [flow["video_startup_s"] for flow in _videos(result, group)]
    known = [time for time in times if time is not None]
    return fmean(known) if known else None


@metric("bit/s", "RFC 8868")
def call_rate_bps(result: Result, group: str | None = None) -> float | None:
    """Mean goodput of a call, averaged over the calls."""
    rates = [flow["goodput_bps"] for flow in _calls(result, group)]
    return fmean(rates) if rates else None


@metric("s", "RFC 8868")
def frame_delay_percentile_s(
    result: Result, percent: float = 95, group: str | None = None
) -> float | None:
    """Percentile of the one-way delay of the frames of a call: the largest of all calls.

    The delay of a frame runs from its capture until its last packet arrives; lost frames have none.
    `percent` is 50, 95, 99 or 100.
    """
    known = {50.0: "p50", 95.0: "p95", 99.0: "p99", 100.0: "max"}
    if float(percent) not in known:
        raise ValueError(f"percent is {percent}, allowed: 50, 95, 99 and 100")
    key = f"frame_delay_{known[float(percent)]}_s"
    delays = [flow[key] for flow in _calls(result, group) if flow[key] is not None]
    return float(max(delays)) if delays else None


@metric("share of frames", "RFC 8868")
def lost_frames(result: Result, group: str | None = None) -> float | None:
    """Share of the frames of calls of which a packet was lost."""
    calls = _calls(result, group)
    frames = sum(flow["frames"] for flow in calls)
    return sum(flow["lost_frames"] for flow in calls) / frames if frames else None
