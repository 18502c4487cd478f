"""The scenario of a measured line, its options for `recommend`, and its delay as simulated."""

from pathlib import Path
from typing import Any

import numpy as np

from sojourn._sojourn import InputError
from sojourn.engines.simulate import simulate
from sojourn.line.derive import MeasuredLine
from sojourn.result.result import Array
from sojourn.scenario.draft import Described, canonical

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
    flows = [one for one in flows_of(rtt_us) if one["name"] in LOADS[load]]
    tree: dict[str, Any] = {"name": "measured-line", "duration": "60s", "warmup": "10s"}
    return {**tree, "seed": 1, "sample": "100ms", "links": links, "flows": flows}


def flows_of(rtt_us: int | None) -> list[dict[str, Any]]:
    """Return endless downloads and uploads over the links `down` and `up`.

    Without `rtt_us`, the round-trip time is the delay of the links.
    """
    rtt = {} if rtt_us is None else {"rtt": f"{rtt_us}us"}
    return [
        {"name": name, "count": STREAMS, "path": [there], "return_path": [back], **rtt,
         "tcp": {"name": "linux_cubic"}}
        for name, there, back in (("download", "down", "up"), ("upload", "up", "down"))
    ]  # fmt: skip


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


def options(scenario: Described) -> dict[str, str]:
    """Return the arguments of `recommend` that a scenario of a line determines.

    Parameters
    ----------
    scenario : dict or Path
        The scenario that `scenario` returns, or its file.

    Returns
    -------
    dict of str to str
        `down`, `up` and `rtt`; and `buffer` with the buffers of both directions if both are
        drop-tail.

    Raises
    ------
    InputError
        If the scenario is invalid, lacks a link called down or up, or has flows with different
        round-trip times.
    """
    tree = canonical(scenario)
    name = scenario if isinstance(scenario, str | Path) else "the scenario"
    missing = [way for way in ("down", "up") if way not in tree["links"]]
    if missing:
        raise InputError(f"{name}: has no link called {missing[0]}, so it is no line")
    links = [tree["links"][way] for way in ("down", "up")]
    if any("trace" in link for link in links):
        raise InputError(f"{name}: has a link with a trace; give --down, --up and --rtt instead")
    rtts = {str(flow["rtt"]) for flow in tree["flows"]}
    if len(rtts) != 1:
        text = "flows with different round-trip times; give --down, --up and --rtt instead"
        raise InputError(f"{name}: has {text}")
    words = {"down": str(links[0]["rate"]), "up": str(links[1]["rate"]), "rtt": rtts.pop()}
    qdiscs = [link["qdisc"] for link in links]
    if all(one["name"] == "droptail" for one in qdiscs):
        words["buffer"] = "/".join(str(one["limit"]) for one in qdiscs)
    return words


def simulated_s(line: MeasuredLine, load: str) -> Array:
    """Return round-trip times of the simulated line under load, one for each sample."""
    result = simulate(scenario(line, load))
    assert line.rtt_s is not None
    queues = [np.nan_to_num(link.series.sojourn_s) for link in result.links.values()]
    later = result.time_s > 10.0
    return np.asarray(line.rtt_s.value + np.sum(queues, axis=0)[later])
