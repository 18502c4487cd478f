"""What a link could have carried: by the scenario's changes and traces."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sojourn.link_trace import OPPORTUNITY_BYTES
from sojourn.result import Array
from sojourn.units import bps_of, seconds


def capacity_bits(scenario: Mapping[str, Any], link: str, times_s: Array) -> Array:
    """Return the bits that `link` of a canonical scenario can have sent by each of `times_s`.

    Of a link with delivery opportunities, the bits that they carried, framing of packets included.
    """
    recorded = scenario["links"][link].get("trace", {}).get("opportunities_ms")
    if recorded is not None:
        return _opportunities(np.array(recorded), times_s) * 8.0 * OPPORTUNITY_BYTES
    starts, rates = rate_steps(scenario, link)
    carried = np.concatenate(([0.0], np.cumsum(np.diff(starts) * rates[:-1])))
    i = np.searchsorted(starts, times_s, side="right") - 1
    bits: Array = carried[i] + (times_s - starts[i]) * rates[i]
    return bits


def _opportunities(lap_ms: Array, times_s: Array) -> Array:
    """Count the opportunities that came by each of `times_s`; they repeat after the last one."""
    laps, within_ms = np.divmod(np.round(times_s * 1e3, 6), lap_ms[-1])
    counted: Array = laps * len(lap_ms) + np.searchsorted(lap_ms, within_ms, side="right")
    return counted


def rate_steps(scenario: Mapping[str, Any], link: str) -> tuple[Array, Array]:
    """Give the moments (s) at which the rate of `link` changes, 0 first, and the rates (bit/s)."""
    described = scenario["links"][link]
    steps = [(0.0, bps_of(described["rate"]))]
    for change in sorted(scenario.get("changes", ()), key=lambda c: seconds(c["at"])):
        turn = change.get("links", {}).get(link, {})
        if "rate" in turn:
            steps.append((seconds(change["at"]), bps_of(turn["rate"])))
    trace = described.get("trace", {})
    if "rate_bps" in trace:
        starts = np.array(trace["t_ns"]) / 1e9
        rates = np.array(trace["rate_bps"], dtype=float)
        if "repeat" in trace:
            lap = seconds(trace["repeat"])
            laps = int(seconds(scenario["duration"]) / lap) + 1
            starts = np.concatenate([starts + k * lap for k in range(laps)])
            rates = np.tile(rates, laps)
        before = starts[0] > 0
        return (
            np.concatenate(([0.0], starts)) if before else starts,
            np.concatenate(([steps[0][1]], rates)) if before else rates,
        )
    moments, values = zip(*steps, strict=True)
    return np.array(moments), np.array(values, dtype=float)
