"""Columns of a run of the suite: numbers for the scorecard, lists for the figures."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sojourn import metrics
from sojourn._util.units import seconds
from sojourn.evaluation.setup import LINK, OBJECTS
from sojourn.result import select
from sojourn.result.result import Array, Result
from sojourn.sweeps.columns import of_group

FORM = "1"
"""Version of the columns; incremented when a column changes its meaning."""

QUANTILES = np.linspace(0, 1, 101)
"""Shares of packets at which the delay is stored."""

KEPT = ("sojourn_mean_s", "sojourn_p50_s", "sojourn_p95_s", "sojourn_p99_s", "utilisation",
        "loss_rate", "mark_rate", "goodput_bps")  # fmt: skip
"""Values of the link under test that are stored."""


@dataclass(frozen=True)
class Suite:
    """Measure of the suite (see `sojourn.sweeps.runner.Measure`).

    `changes_s` are the times at which load or capacity changes, `series` is True to store series.
    """

    changes_s: tuple[float, ...] = ()
    series: bool = False

    @property
    def identity(self) -> str:
        """Identity of the measure in cache keys."""
        return f"sojourn.evaluation {FORM} {self.changes_s} {self.series}"

    def __call__(self, result: Result) -> dict[str, Any]:
        """Return the columns of a run."""
        link = result.links[LINK]
        row: dict[str, Any] = {name: link[name] for name in KEPT}
        for name in result.group_series:
            row |= {f"{name}.{what}": value for what, value in of_group(result, name).items()}
        row |= _derived(result)
        if link.packet_log:
            waited = select.sojourns(result, LINK)
            row["delay_quantiles_s"] = (
                np.quantile(waited, QUANTILES).tolist() if len(waited) else []
            )
        if self.series:
            row |= _series(result)
        if self.changes_s:
            row |= _changes(result, self.changes_s)
        return row


def _derived(result: Result) -> dict[str, float | None]:
    """Return the columns that combine several groups; only those that the scenario has."""
    groups = result.group_series
    row: dict[str, float | None] = {}
    if "web" in groups:
        row["page_mean_s"] = _pages(result)
    if {"first", "second"} == set(groups):
        first, second = (of_group(result, name)["goodput_bps"] or 0.0 for name in groups)
        row["rtt_ratio"] = second / first if first else None
    if {"udp", "bulk"} == set(groups):
        sent = of_group(result, "udp")["goodput_bps"] or 0.0
        left = _rate(result) - sent
        row["left_share"] = (
            (of_group(result, "bulk")["goodput_bps"] or 0.0) / left if left else None
        )
    if {"small", "large"} == set(groups):
        small, large = (_resent(result, name) for name in groups)
        row["size_bias"] = small / large if large else None
    if any("video_rate_bps" in flow for flow in result.flows.values()):
        # Without a segment in the measured time the rate is zero.
        row["video_rate_bps"] = metrics.video_rate_bps(result) or 0.0
        row["video_stalled_s"] = metrics.video_stalled_s(result)
    if "other" in result.links:
        means = [link["sojourn_mean_s"] for link in result.links.values()]
        row["both_delay_s"] = None if None in means else sum(means)
    if {"bulk", "cubic"} <= set(groups):
        flows = [*select.flows_of(result, "bulk"), *select.flows_of(result, "cubic")]
        row["jain_all"] = select.jain([flow["goodput_bps"] for flow in flows])
    return row


def _rate(result: Result) -> float:
    from sojourn._util.units import bps_of

    return bps_of(result.scenario["links"][LINK]["rate"])


def _resent(result: Result, group: str) -> float:
    values = of_group(result, group)
    return (values["retransmitted_packets"] or 0.0) / (values["sent_packets"] or 1.0)


def _pages(result: Result) -> float | None:
    """Return the mean time from the first request to the last byte of a page, in seconds.

    A user requests a page after the last one is complete, so the objects of a page are consecutive.
    """
    done = select.completed(result, "web")
    took: list[float] = []
    for flow in np.unique(done["flow"]):
        mine = done["flow"] == flow
        order = np.argsort(done["start_s"][mine], kind="stable")
        start = done["start_s"][mine][order]
        end = start + done["duration_s"][mine][order]
        # The warm-up may cut the first page: a page begins after a pause of at least 100 ms.
        first = _first_page(start)
        pages = range(first, len(start) - OBJECTS + 1, OBJECTS)
        took += [float(end[k : k + OBJECTS].max() - start[k]) for k in pages]
    return float(np.mean(took)) if took else None


def _first_page(start: Array) -> int:
    """Return the index of the first object of a page that began after the warm-up.

    Objects are requested 10 ms apart on average; the request after `OBJECTS` of them comes later.
    """
    for k in range(min(OBJECTS, len(start))):
        if k and start[k] - start[k - 1] > PAUSE_S:
            return k
    return 0


PAUSE_S = 0.15
"""Time without a request that separates two pages: far longer than ten times the mean gap."""


def _series(result: Result) -> dict[str, list[float]]:
    """Return delay and goodput as means over 1 s, with the time of the middle of each second."""
    sample_s = seconds(result.scenario["sample"])
    per = max(1, round(1.0 / sample_s))
    delay = result.links[LINK].series["sojourn_s"]
    goodput = sum(series["received_bytes"] for series in result.group_series.values())
    n = len(delay) // per * per
    waited = np.nan_to_num(delay[:n].reshape(-1, per))
    rate = np.asarray(goodput)[:n].reshape(-1, per).sum(axis=1) * 8 / (per * sample_s)
    return {
        "series_time_s": [(k + 0.5) * per * sample_s for k in range(n // per)],
        "series_delay_s": waited.mean(axis=1).tolist(),
        "series_throughput_bps": rate.tolist(),
    }


def _changes(result: Result, changes_s: tuple[float, ...]) -> dict[str, float | None]:
    """Return how the link responds to the changes after the warm-up."""
    scenario = result.scenario
    end_s, sample_s = seconds(scenario["duration"]), seconds(scenario["sample"])
    delay = np.nan_to_num(result.links[LINK].series["sojourn_s"])
    use = np.nan_to_num(result.links[LINK].series["utilisation"])
    per = max(1, round(1.0 / sample_s))
    times = [t for t in changes_s if seconds(scenario["warmup"]) <= t < end_s]
    recovery, rises, peaks = [], [], []
    trace = scenario["links"][LINK].get("trace")
    for t, until in zip(times, [*times[1:], end_s], strict=True):
        phase = delay[round(t / sample_s) : round(until / sample_s)]
        if len(phase) < 4 * per:
            continue
        recovery.append(_recovery(phase, per) * sample_s)
        if trace is not None:
            begun = round(t / sample_s)
            if _is_rise(trace, t):
                rises.append(float(use[begun : begun + 2 * per].mean()))
            else:
                peaks.append(float(phase.max()))
    return {
        "recovery_s": _mean(recovery),
        "rise_utilisation": _mean(rises),
        "drop_peak_s": _mean(peaks),
    }


def _recovery(phase: Array, per: int) -> int:
    """Return the first sample from which the mean over a second stays near its later level."""
    level = float(phase[len(phase) // 2 :].mean())
    near = max(0.5 * level, 0.002)
    smooth = np.convolve(phase, np.ones(per) / per, "valid")
    away = np.flatnonzero(np.abs(smooth[: len(phase) // 2] - level) > near)
    return int(away[-1]) + 1 if len(away) else 0


def _is_rise(trace: dict[str, Any], t: float) -> bool:
    """Return True if the rate of a trace rises at time `t`."""
    starts, rates = trace["t_ns"], trace["rate_bps"]
    period = trace.get("repeat")
    at = t % seconds(period) if period else t
    k = min(range(len(starts)), key=lambda k: abs(starts[k] / 1e9 - at))
    return bool(rates[k] > rates[k - 1])


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None
