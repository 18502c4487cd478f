"""What the kernel's TCP and UDP can play of a scenario, and how it is told to.

Each flow has a host of its own at either end, so most of what a scenario says of its TCP are
attributes of the route from the one to the other; the rest are options of the socket.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.units import bytes_of, seconds

CONTROLS = {
    "reno": "reno",
    "newreno": "reno",
    "sack": "reno",
    "cubic": "cubic",
    "bbr": "bbr",
    "dctcp": "dctcp",
    "vegas": "vegas",
}
"""What the kernel calls a TCP of ours. Its reno is NewReno, with SACK where that is on."""

WITHOUT_SACK = ("reno", "newreno")

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

PACKET_MAX_BYTES = 1500
"""Largest packet of a device."""

STAMPED_BYTES = 36
"""Smallest datagram with room for its time stamp."""

_HEADERS = {40: False, 52: True}
"""Bytes of a header, and whether there are timestamps in it."""

_PLAYED = ("header", "packet", "initial_window", "ecn", "delayed_ack", "rto_min")
"""What can be chosen; a key that is left out is as the kernel has it."""

_ALWAYS = {"rack": True, "prr": True, "alpha_rises": False}
"""Settings that the kernel always has; a scenario may state them."""


@dataclass(frozen=True)
class Host:
    """How the kernel is to play a row: a flow, or a host of a crowd."""

    tcp: bool
    control: str
    """The congestion control."""
    mss: int
    """What its segments carry at most, timestamps included."""
    there: str
    """Attributes of the route of the sender."""
    back: str
    """Attributes of the route of the receiver."""


@dataclass(frozen=True)
class Plan:
    """How the kernel is to play a scenario."""

    hosts: list[Host]
    sysctls: dict[str, str]
    """Settings of both networks, under net."""
    warnings: list[str]
    """What it plays otherwise than it is written."""


def plan(scenario: Mapping[str, Any]) -> Plan:
    """Say how the kernel is to play a canonical scenario.

    Raises InputError, with the flow's path, for what it cannot play.
    """
    tcps = {flow["name"]: flow["tcp"] for flow in scenario["flows"] if "tcp" in flow}
    warnings = []
    without = [name for name, tcp in tcps.items() if tcp["name"] in WITHOUT_SACK]
    sack = len(without) < len(tcps)
    if sack:
        warnings += [f"flows.{name}.tcp: has SACK here, as others have" for name in without]
    headers = {name: bytes_of(tcp["header"]) for name, tcp in tcps.items()}
    for name, header in headers.items():
        if header not in _HEADERS:
            raise InputError(
                f"flows.{name}.tcp.header: {header}B cannot be played by the kernel, allowed: 40B, "
                "and 52B with timestamps"
            )
        if header != next(iter(headers.values())):
            raise InputError(f"flows.{name}.tcp.header: differs from that of other flows")
    stamps = _HEADERS[next(iter(headers.values()), 40)]
    sysctls = {
        # A connection must not begin with what the kernel remembers of another.
        "ipv4/tcp_no_metrics_save": "1",
        "ipv4/tcp_sack": str(int(sack)),
        "ipv4/tcp_timestamps": str(int(stamps)),
        # Windows that do not limit, and queues that do not overflow in a burst of connections.
        "ipv4/tcp_rmem": "4096 131072 67108864",
        "ipv4/tcp_wmem": "4096 131072 67108864",
        "ipv4/tcp_max_syn_backlog": "65536",
        "ipv4/ip_local_port_range": "10000 65000",
        "core/somaxconn": "65536",
        # Who gets no answer goes on, as in the simulator.
        "ipv4/tcp_syn_retries": "60",
        "ipv4/tcp_synack_retries": "60",
        "ipv4/tcp_retries2": "60",
    }
    hosts = []
    for flow in scenario["flows"]:
        one = _host(flow)
        hosts += [one] * flow["count"]
    return Plan(hosts, sysctls, warnings)


def _host(flow: Mapping[str, Any]) -> Host:
    path = f"flows.{flow['name']}"
    if "tcp" not in flow:
        sizes = flow["source"].get("size_bytes") or [bytes_of(flow["source"]["packet"])]
        for size in sizes:
            if not STAMPED_BYTES <= size <= PACKET_MAX_BYTES:
                raise InputError(
                    f"{path}.source: a packet of {size}B cannot be played with the kernel's UDP, "
                    f"allowed: {STAMPED_BYTES}B to {PACKET_MAX_BYTES}B"
                )
        return Host(False, "", 0, "", "")
    tcp = flow["tcp"]
    path += ".tcp"
    control = CONTROLS.get(tcp["name"])
    there_are = AVAILABLE.read_text(encoding="ascii").split() if AVAILABLE.exists() else []
    if control not in there_are:
        names = ", ".join(name for name, control in CONTROLS.items() if control in there_are)
        raise InputError(f"{path}: this kernel has no {tcp['name']}, it plays {names}")
    if tcp["profile"] != "rfc":
        raise InputError(f'{path}.profile: no kernel plays "{tcp["profile"]}", allowed: rfc')
    usual = _usual(tcp["name"])
    # The window first: the threshold follows from it.
    for key, value in {"receive_window": tcp["receive_window"], **tcp}.items():
        if key not in _PLAYED and value not in (usual[key], _ALWAYS.get(key, usual[key])):
            raise InputError(f"{path}.{key}: cannot be chosen with real packets, leave it out")
    packet = bytes_of(tcp["packet"])
    if packet > PACKET_MAX_BYTES:
        raise InputError(f"{path}.packet: {packet}B is more than the {PACKET_MAX_BYTES}B that fit")
    payload = packet - bytes_of(tcp["header"])
    there, back = [], []
    if tcp["ecn"]:
        there.append("features ecn")
    if tcp["initial_window"] != usual["initial_window"]:
        there.append(f"initcwnd {_packets(tcp['initial_window'], payload)}")
    if tcp["rto_min"] != usual["rto_min"]:
        there.append(f"rto_min {max(1, round(seconds(tcp['rto_min']) * 1e3))}ms")
    if not tcp["delayed_ack"]:
        back.append("quickack 1")
    mss = packet - 40
    return Host(True, control or "", mss, " ".join(there), " ".join(back))


def _packets(size: str, payload: int) -> int:
    if size.endswith("p"):
        return int(size[:-1])
    return max(1, bytes_of(size) // payload)


@functools.cache
def _usual(tcp: str) -> dict[str, Any]:
    """Return the canonical form of a TCP with default parameters."""
    flow = {"name": "one", "path": ["one"], "tcp": tcp}
    tree = {"duration": "1s", "links": {"one": {"rate": "1bit"}}, "flows": [flow]}
    found: dict[str, Any] = json.loads(_sojourn.canonical(json.dumps(tree)))["flows"][0]["tcp"]
    return found
