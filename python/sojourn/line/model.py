"""The scenario of a measured line, and its delay under load as simulated."""

from typing import Any

import numpy as np

from sojourn._sojourn import InputError
from sojourn.engines.simulate import simulate
from sojourn.line.derive import MeasuredLine
from sojourn.result.result import Array

STREAMS = 4
"""Number of downloads, and of uploads, of the scenario."""

LEAST_PACKETS = 4
"""Smallest buffer of the scenario, in packets."""

LOADS = {"down": ("download",), "up": ("upload",), "both": ("download", "upload")}
"""Groups that load the line, by direction."""


def scenario(line: MeasuredLine, load: str = "both") -> dict[str, Any]:
    """Return a scenario with the rates, the round-trip time and the buffers of a measured line.

    Parameters
    ----------
    line : MeasuredLine
        A line with a rate, a round-trip time and a delay under load.
    load : str, optional
        Direction that carries endless transfers: "down", "up" or "both".

    Returns
    -------
    dict
        The scenario, which `simulate`, `compare` and `save_scenario` take. The links `down` and
        `up` are drop-tail with the measured buffers. A direction without a rate has the rate of
        the other one.

    Raises
    ------
    InputError
        If the line has no rate, no round-trip time, or no buffer.
    """
    known = line.down_bps or line.up_bps
    if known is None or line.rtt_s is None:
        what = "rate" if known is None else "round-trip time"
        raise InputError(f"the measurement has no {what}, so there is no scenario of it")
    buffers = _buffers(line)
    rates = {"down": line.down_bps or known, "up": line.up_bps or known}
    rtt_us = round(line.rtt_s.value * 1e6)
    links = {}
    for way, bps in rates.items():
        room = max(buffers[way] * bps.value / 8, LEAST_PACKETS * 1514)
        links[way] = {
            "rate": f"{round(bps.value / 1e3)}kbit",
            "delay": f"{rtt_us // 4}us",
            "qdisc": {"name": "droptail", "limit": f"{round(room)}B"},
        }
    flows = [
        {"name": name, "count": STREAMS, "path": [there], "return_path": [back],
         "rtt": f"{rtt_us}us", "tcp": {"name": "linux_cubic"}}
        for name, there, back in (("download", "down", "up"), ("upload", "up", "down"))
        if name in LOADS[load]
    ]  # fmt: skip
    tree: dict[str, Any] = {"name": "measured-line", "duration": "60s", "warmup": "10s"}
    return {**tree, "seed": 1, "sample": "100ms", "links": links, "flows": flows}


def _buffers(line: MeasuredLine) -> dict[str, float]:
    """Return the buffer of each direction in seconds; of a common value each has a half."""
    both = line.both_buffer_s
    half = None if both is None else both.value / 2
    own = {"down": line.down_buffer_s, "up": line.up_buffer_s}
    values = {way: half if one is None else one.value for way, one in own.items()}
    known = [value for value in values.values() if value is not None]
    if not known:
        raise InputError("no round-trip time was measured under load, so no buffer is known")
    return {way: known[0] if value is None else value for way, value in values.items()}


def simulated_s(line: MeasuredLine, load: str) -> Array:
    """Return round-trip times of the simulated line under load, one for each sample."""
    result = simulate(scenario(line, load))
    assert line.rtt_s is not None
    queues = [np.nan_to_num(link.series.sojourn_s) for link in result.links.values()]
    later = result.time_s > 10.0
    return np.asarray(line.rtt_s.value + np.sum(queues, axis=0)[later])
