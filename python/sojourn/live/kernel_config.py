"""Kernel settings for a scenario on real packets, and checks that the kernel supports it.

Each flow has its own address at both ends. Most TCP parameters of a scenario are attributes of the
route between them; the others are socket options.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.units import bytes_of, seconds
from sojourn.scenario.draft import canonical

CONTROLS = {
    "reno": "reno",
    "newreno": "reno",
    "sack": "reno",
    "cubic": "cubic",
    "bbr": "bbr",
    "bbr3": "bbr3",
    "dctcp": "dctcp",
    "prague": "prague",
    "vegas": "vegas",
    "bic": "bic",
    "cdg": "cdg",
    "highspeed": "highspeed",
    "htcp": "htcp",
    "hybla": "hybla",
    "illinois": "illinois",
    "nv": "nv",
    "scalable": "scalable",
    "veno": "veno",
    "westwood": "westwood",
    "yeah": "yeah",
}
"""Kernel name of each congestion control. Its reno is NewReno, with SACK if that is enabled."""

ELSEWHERE = {
    "bbr3": "the branch v3 of github.com/google/bbr has it",
    "prague": "the kernel of github.com/L4STeam/linux has it",
}
"""Kernels that have the congestion controls that Linux itself lacks."""

WITHOUT_SACK = ("reno", "newreno")
"""TCPs without SACK, except in the profile linux."""

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

BBR_VERSION = Path("/sys/module/tcp_bbr/version")
"""Version of the module bbr: 3 in Google's kernel, whose bbr is BBRv3; missing in Linux."""

PACKET_MAX_BYTES = 1500
"""MTU of the devices."""

STAMPED_BYTES = 36
"""Smallest datagram with room for its time stamp, headers included."""

_HEADERS = {40: False, 52: True}
"""Header size in bytes: True if it includes TCP timestamps."""

_SUPPORTED = ("header", "packet", "initial_window", "ecn", "delayed_ack", "rto_min")
"""Parameters that can be set; the others have the kernel's values."""

_ALWAYS = {
    "abc_limit": 2,
    "alpha_rises": False,
    "dsack": True,
    "ecn_fallback": True,
    "linux_syn": True,
    "frto": True,
    "jiffies": True,
    "linux_acks": True,
    "prr": True,
    "rack": True,
    "reduce_cwnd": True,
    "reordering_window": True,
    "rtt_per_ack": True,
    "tick": "4ms",
    "timestamps": True,
    "tlp": True,
    "tso": True,
    "variant": "linux",
}
"""Values that the kernel always has; a scenario may state them, as the presets of Linux do."""


@dataclass(frozen=True)
class Host:
    """Kernel settings of a row: a flow, or a host of a source with many connections."""

    tcp: bool
    """True for TCP, False for UDP."""
    control: str
    """Congestion control, by its kernel name."""
    mss: int
    """Maximum segment size in bytes, timestamps included."""
    there: str
    """Attributes of the sender's route."""
    back: str
    """Attributes of the receiver's route."""


@dataclass(frozen=True)
class Plan:
    """Kernel settings of a scenario."""

    hosts: list[Host]
    """Settings per row, in the order of the flows."""
    sysctls: dict[str, str]
    """Values of `net` in both network namespaces, by path below `net`."""
    warnings: list[str]
    """Deviations from the scenario."""


def plan(scenario: Mapping[str, Any]) -> Plan:
    """Return the kernel settings for a canonical scenario.

    Raises
    ------
    InputError
        If the kernel does not support a setting; the message begins with its path.
    """
    if "switches" in scenario:
        raise InputError("switches: a shared buffer is not supported on real packets, leave it out")
    tcps = {flow["name"]: flow["tcp"] for flow in scenario["flows"] if "tcp" in flow}
    warnings = []
    without = [
        name
        for name, tcp in tcps.items()
        if tcp["name"] in WITHOUT_SACK and tcp["profile"] != "linux"
    ]
    sack = len(without) < len(tcps)
    if sack:
        warnings += [f"flows.{name}.tcp: uses SACK, since other flows do" for name in without]
    for name, tcp in tcps.items():
        if tcp["profile"] not in ("linux", "rfc"):
            raise InputError(
                f'flows.{name}.tcp.profile: "{tcp["profile"]}" is not supported on real packets, '
                "allowed: linux, rfc"
            )
    headers = {name: bytes_of(tcp["header"]) for name, tcp in tcps.items()}
    for name, header in headers.items():
        if header not in _HEADERS:
            raise InputError(
                f"flows.{name}.tcp.header: {header}B is not supported on real packets, "
                "allowed: 40B, and 52B with timestamps"
            )
        if header != next(iter(headers.values())):
            raise InputError(
                f"flows.{name}.tcp.header: {header}B differs from the header of other flows, and a "
                "kernel has timestamps in all connections or in none; set the same profile"
            )
    stamps = _HEADERS[next(iter(headers.values()), 40)]
    sysctls = {
        # New connections must not reuse metrics of earlier ones.
        "ipv4/tcp_no_metrics_save": "1",
        "ipv4/tcp_sack": str(int(sack)),
        "ipv4/tcp_timestamps": str(int(stamps)),
        # Windows that do not limit, and accept queues that hold a burst of connections.
        "ipv4/tcp_rmem": "4096 131072 67108864",
        "ipv4/tcp_wmem": "4096 131072 67108864",
        "ipv4/tcp_max_syn_backlog": "65536",
        "ipv4/ip_local_port_range": "10000 65000",
        "core/somaxconn": "65536",
        # Keep retransmitting without an answer, as the simulator does.
        "ipv4/tcp_syn_retries": "60",
        "ipv4/tcp_synack_retries": "60",
        "ipv4/tcp_retries2": "60",
    }
    if any(tcp["name"] == "prague" for tcp in tcps.values()):
        # Accept accurate ECN without asking for it: Prague asks for its own connections.
        sysctls["ipv4/tcp_ecn"] = "5"
    for i, change in enumerate(scenario.get("changes", ())):
        for name, link in change.get("links", {}).items():
            if "up" in link:
                text = 'is not supported on real packets; set rate = "0bit" and later the rate'
                raise InputError(f"changes.{i}.links.{name}.up: {text}")
    hosts = []
    for flow in scenario["flows"]:
        one = _host(flow)
        hosts += [one] * flow["count"]
    return Plan(hosts, sysctls, warnings)


def _host(flow: Mapping[str, Any]) -> Host:
    """Return the kernel settings of a flow. Raises InputError for unsupported ones."""
    path = f"flows.{flow['name']}"
    if "spread" in flow:
        text = "is not supported on real packets, which have one path; leave spread out"
        raise InputError(f"{path}.spread: {text}")
    if flow["source"]["name"] == "call":
        raise InputError(
            f"{path}.source: a call is not supported on real packets, which carry no feedback of "
            "datagrams; use cbr at the rate of the call"
        )
    if "tcp" not in flow:
        sizes = flow["source"].get("size_bytes") or [bytes_of(flow["source"]["packet"])]
        for size in sizes:
            if not STAMPED_BYTES <= size <= PACKET_MAX_BYTES:
                raise InputError(
                    f"{path}.source: a packet of {size}B is not supported on real packets, "
                    f"allowed: {STAMPED_BYTES}B to {PACKET_MAX_BYTES}B"
                )
        return Host(False, "", 0, "", "")
    tcp = flow["tcp"]
    path += ".tcp"
    there_are = available()
    control = there_are.get(tcp["name"])
    if control is None:
        where = f"; {ELSEWHERE[tcp['name']]}" if tcp["name"] in ELSEWHERE else ""
        names = ", ".join(there_are)
        raise InputError(f"{path}: this kernel has no {tcp['name']}, only {names}{where}")
    usual = _usual(tcp["name"], tcp["profile"])
    # Check the window first: the default of the threshold depends on it.
    for key, value in {"receive_window": tcp["receive_window"], **tcp}.items():
        if key not in _SUPPORTED and value not in (usual[key], _ALWAYS.get(key, usual[key])):
            raise InputError(f"{path}.{key}: cannot be set on real packets, leave it out")
    packet = bytes_of(tcp["packet"])
    if packet > PACKET_MAX_BYTES:
        raise InputError(f"{path}.packet: {packet}B is above the MTU of {PACKET_MAX_BYTES}B")
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
    return Host(True, control, mss, " ".join(there), " ".join(back))


def available() -> dict[str, str]:
    """Return the congestion controls that this kernel has, with their kernel names."""
    there_are = AVAILABLE.read_text(encoding="ascii").split() if AVAILABLE.exists() else []
    controls = {name: control for name, control in CONTROLS.items() if control in there_are}
    third = BBR_VERSION.exists() and BBR_VERSION.read_text(encoding="ascii").strip() == "3"
    if third and "bbr" in controls:
        controls.setdefault("bbr3", controls.pop("bbr"))
    return controls


def _packets(size: str, payload: int) -> int:
    """Return a window in packets: `size` is in packets ("10p") or bytes ("15kB")."""
    if size.endswith("p"):
        return int(size[:-1])
    return max(1, bytes_of(size) // payload)


@functools.cache
def _usual(name: str, profile: str) -> dict[str, Any]:
    """Return the canonical form of a TCP with the default parameters of a profile."""
    flow = {"name": "one", "path": ["one"], "tcp": {"name": name, "profile": profile}}
    tree = {"duration": "1s", "links": {"one": {"rate": "1bit"}}, "flows": [flow]}
    tcp: dict[str, Any] = canonical(tree)["flows"][0]["tcp"]
    return tcp
