"""Warnings about settings of a TCP that make its results differ from results of real hosts."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sojourn._util.paths import path_of
from sojourn._util.units import bps_of, bytes_of, duration, seconds

Tree = Mapping[str, Any]

LOSSES = {"bbr": 0.03, "bbr3": 0.003}
"""Random loss from which a TCP without RACK has clearly less goodput than with it.

Measured over 60 s with 3 seeds at 50 Mbit/s and 50 ms: BBR 40.6 in place of 45.0 Mbit/s at 3 %, 21
in place of 43 at 5 %, and BBRv3 28 in place of 42 at 0.3 %. At 1 % BBR has no difference, nor has
BBRv3 at 0.1 %.
"""

COARSE = 4
"""Ticks that are longer than so many round-trip times measure none of them."""


def traps(flow: Tree, scenario: Tree, windows: Mapping[str, float | None]) -> Iterator[str]:
    """Return the warnings about the TCP of a flow, without the name of the flow.

    `windows` has the :func:`total_window` of the flows that cross each link.
    """
    tcp = flow.get("tcp")
    if tcp is None or not flow["count"]:
        return
    yield from _timeout(tcp)
    if "profile" not in tcp:
        return  # a class in Python, of which a stored result has few parameters
    yield from _recovery(tcp, flow, scenario)
    yield from _window(tcp, flow, scenario, windows)
    yield from _tick(tcp, flow, scenario)
    yield from _routers(tcp, flow, scenario)


def _timeout(tcp: Tree) -> Iterator[str]:
    """Warn if segments time out while the receiver delays their ack."""
    least, delay = tcp.get("rto_min"), tcp.get("delayed_ack_timeout")
    if tcp.get("delayed_ack") and seconds(least) < seconds(delay):
        yield (
            f".tcp.rto_min: {least} is shorter than the receiver delays an ack, {delay}, so "
            f'segments time out without a loss; set `delayed_ack_timeout = "1ms"`, or rto_min to '
            "more than that delay"
        )


def _recovery(tcp: Tree, flow: Tree, scenario: Tree) -> Iterator[str]:
    """Warn if BBR without RACK crosses a link with much random loss."""
    least = LOSSES.get(tcp["name"])
    if least is None or tcp["rack"] or tcp["profile"] == "quic":
        return
    for name in path_of(flow, 0):
        loss = scenario["links"][name].get("loss")
        if isinstance(loss, float) and loss >= least:
            yield (
                f".tcp.rack: {tcp['name']} without RACK waits for a timeout when a retransmission "
                f"is lost, and link {name} loses {loss:.1%} at random, so its goodput is far below "
                'the goodput of hosts; set `profile = "linux"`'
            )
            return


def _routers(tcp: Tree, flow: Tree, scenario: Tree) -> Iterator[str]:
    """Warn if a sender of XCP has no router of it at its bottleneck."""
    if tcp["name"] != "xcp":
        return
    links = {name: scenario["links"][name] for name in path_of(flow, 0)}
    remedy = 'set `qdisc = "xcp"` of the links'
    if all(link["qdisc"]["name"] != "xcp" for link in links.values()):
        yield (
            ".tcp: no link of its path has the discipline xcp, so its window grows as the window "
            f"of reno; {remedy}"
        )
        return
    rates = {name: bps_of(link["rate"]) for name, link in links.items() if "rate" in link}
    slowest = min(rates, key=lambda name: rates[name], default=None)
    if slowest is not None and links[slowest]["qdisc"]["name"] != "xcp":
        yield (
            f".tcp: link {slowest}, the slowest of its path, has no discipline xcp, so routers of "
            f"other links let xcp fill its buffer; {remedy}"
        )


def total_window(flows: Iterable[Tree]) -> float | None:
    """Return the sum of the receive windows (bytes) of flows, None if one window is unknown."""
    total = 0.0
    for flow in flows:
        if not flow["count"]:
            continue
        if "receive_window" not in flow.get("tcp", {}):
            return None
        total += flow["count"] * _window_bytes(flow["tcp"])
    return total


def _window(
    tcp: Tree, flow: Tree, scenario: Tree, windows: Mapping[str, float | None]
) -> Iterator[str]:
    """Warn if the receive windows of all flows of a link cannot fill it."""
    links = scenario["links"]
    path = path_of(flow, 0)
    if flow["source"]["name"] != "bulk" or not all("rate" in links[name] for name in path):
        return
    slowest = min(path, key=lambda name: bps_of(links[name]["rate"]))
    rtt_s = _least_rtt(flow, scenario)
    product = bps_of(links[slowest]["rate"]) / 8 * rtt_s
    window = windows[slowest]
    if window is not None and window < product:
        yield (
            f".tcp.receive_window: {tcp['receive_window']} is less than the bandwidth-delay "
            f"product, {product / 1e3:.0f} kB at {links[slowest]['rate']} and "
            f"{duration(rtt_s)}, and the windows of all flows cannot fill link {slowest}; set a "
            "larger receive_window"
        )


def _tick(tcp: Tree, flow: Tree, scenario: Tree) -> Iterator[str]:
    """Warn if the clock of the profile ns2 is far coarser than the round-trip time."""
    rtt_s = _least_rtt(flow, scenario)
    if tcp["profile"] == "ns2" and 0 < COARSE * rtt_s < seconds(tcp["tick"]):
        yield (
            f".tcp.tick: {tcp['tick']} is more than {COARSE} times the round-trip time, "
            f"{duration(rtt_s)}, so timeouts last many round trips; set a shorter tick and "
            "rto_min, or another profile"
        )


def _window_bytes(tcp: Tree) -> float:
    """Return the receive window of a TCP in bytes on the wire."""
    window = tcp["receive_window"]
    packet = bytes_of(tcp["packet"])
    if window.endswith("p"):
        return int(window[:-1]) * packet
    return bytes_of(window) * packet / (packet - bytes_of(tcp["header"]))


def _least_rtt(flow: Tree, scenario: Tree) -> float:
    """Return the smallest round-trip propagation time (s) of the flows of a group."""
    ways = [*path_of(flow, 0), *path_of(flow, 0, "return_path")]
    delays = sum(_least(scenario["links"][name]["delay"]) for name in ways)
    return max(delays, _least(flow.get("rtt", "0s")))


def _least(text: str) -> float:
    """Return the smallest value (s) of a duration that may be random, 0 if unknown."""
    match = re.match(r"(?:uniform\()?(\d+(?:ns|us|ms|s))(?:,|$)", text)
    return seconds(match[1]) if match else 0.0
