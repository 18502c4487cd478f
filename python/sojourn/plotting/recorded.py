"""Capacity of links with a recorded rate."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sojourn._util.units import bps_of, seconds
from sojourn.result.result import Array
from sojourn.scenario.link_trace import FULL_PACKET_BYTES


def capacity_bps(link: Mapping[str, Any], edges_s: Array) -> Array | None:
    """Return the mean capacity of a link of a canonical scenario between neighbouring times.

    Parameters
    ----------
    link : mapping
        The link, as in the `scenario` of a result.
    edges_s : ndarray of float, shape (n + 1,)
        Times in seconds, ascending.

    Returns
    -------
    ndarray of float, shape (n,), or None
        Capacity in bit/s; an opportunity of mahimahi counts as 1500 bytes. None if no trace sets
        the rate of the link.
    """
    trace = link.get("trace") or {}
    if "opportunities_ms" in trace:
        bits = _opportunities(np.asarray(trace["opportunities_ms"], float), edges_s)
    elif "rate_bps" in trace:
        bits = _integral(link, edges_s)
    else:
        return None
    return np.asarray(np.diff(bits) / np.diff(edges_s))


def _opportunities(moments_ms: Array, at_s: Array) -> Array:
    """Return the bits that could be sent until each time; the trace repeats after its end."""
    lap, rest = np.divmod(at_s * 1e3, moments_ms[-1])
    count = lap * len(moments_ms) + np.searchsorted(moments_ms, rest, side="right")
    return np.asarray(count * FULL_PACKET_BYTES * 8.0)


def _integral(link: Mapping[str, Any], at_s: Array) -> Array:
    """Return the integral of the rate until each time; the link's own rate applies first."""
    trace = link["trace"]
    rows, rates = np.asarray(trace["t_ns"], float) / 1e9, np.asarray(trace["rate_bps"], float)
    period = seconds(trace["repeat"]) if "repeat" in trace else np.inf
    laps = np.arange(int(at_s[-1] // period) + 1)
    begins = laps * period if len(laps) > 1 else np.zeros(1)
    times = np.concatenate([[0.0], (begins[:, None] + rows).ravel()])
    bps = np.concatenate([[bps_of(link["rate"])], np.tile(rates, len(laps))])
    known = np.concatenate([[0.0], np.cumsum(np.diff(times) * bps[:-1])])
    row = np.searchsorted(times, at_s, side="right") - 1
    return np.asarray(known[row] + (at_s - times[row]) * bps[row])
