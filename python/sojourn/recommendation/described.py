"""The scenario of a line that is described by rates, round-trip time, buffers and link layer."""

from typing import Any

from sojourn._sojourn import InputError
from sojourn.line.model import flows_of
from sojourn.recommendation.line import installed, make
from sojourn.recommendation.link_layer import layer_of


def described(
    down: str, up: str, rtt: str, *, buffer: str = "1000p", link_layer: str | None = None
) -> dict[str, Any]:
    """Return the scenario of a line with drop-tail queues and endless transfers both ways.

    Parameters
    ----------
    down, up : str
        Rates; with a link layer of the wire, so that packets take more time than their bytes.
    rtt : str
        Round-trip time of the idle line.
    buffer : str, optional
        Buffer: packets, bytes, or a time at the rate of each direction; one value, or two for down
        and up with a slash.
    link_layer : str, optional
        Link layer, like "docsis" or "adsl-pppoe", whose overhead and cells each packet has.

    Raises
    ------
    InputError
        If a value is invalid, or the round-trip time is a range.
    """
    line, layer = make(down, up, rtt, "home", buffer=buffer), layer_of(link_layer)
    if line.rtt_s[0] != line.rtt_s[1]:
        raise InputError("--rtt: one time, like 30ms, not a range: a line has one idle round trip")
    if line.traces:
        raise InputError("--down, --up: rates like 50mbit, not traces")
    rtt_us = round(line.rtt_s[0] * 1e6)
    links = {}
    for way in ("down", "up"):
        qdisc = {"name": "droptail", "limit": line.buffer}
        link = installed(line, qdisc, way, shaped=False)
        links[way] = {**link, "delay": f"{rtt_us // 4}us"}
        if layer and layer.numbers():
            links[way]["overhead"] = layer.numbers().removesuffix(" noatm")
    tree: dict[str, Any] = {"name": "described-line", "duration": "60s", "warmup": "10s"}
    return {**tree, "seed": 1, "sample": "100ms", "links": links, "flows": flows_of(rtt_us)}
