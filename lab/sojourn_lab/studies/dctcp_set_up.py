"""Hosts, switch and senders of the study of DCTCP's figures (`dctcp.py`)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import sojourn as sj
from sojourn.result.statistics import interval

Table = dict[str, Any]

SEEDS = 6
PACKET_B = 1500
FRAME_B = 1538
"""A full packet on Ethernet, with preamble and gap."""

DYNAMIC = {"buffer": "4MB", "alpha": 0.21}
"""The switch: 4 MB, of which one busy port takes 700 kB."""

NIC = "droptail(limit=100000p)"


def tcp(rto: str = "10ms", **settings: Any) -> Table:
    """Return a TCP of 2010: SACK, no window above two segments at the start, exact timers."""
    return {"name": "sack", "profile": "rfc", **_host(rto), **settings}


def dctcp(rto: str = "10ms", **settings: Any) -> Table:
    """Return DCTCP as in Linux, with the settings of hosts of `tcp` and exact timers."""
    return {"name": "dctcp", "timestamps": False, "jiffies": False, **_host(rto), **settings}


def _host(rto: str) -> Table:
    host = {"header": "40B", "initial_window": "2p", "delayed_ack_timeout": "1ms", "tick": "1ms"}
    return host | {"rto_min": rto, "rto_initial": rto}


def port(sender: Mapping[str, Any], limit: str, k: int = 20) -> str:
    """Return the discipline of a port of the switch: marks above `k` packets for DCTCP."""
    return (
        f"step_mark(k={k}p,limit={limit})"
        if sender["name"] == "dctcp"
        else f"droptail(limit={limit})"
    )


def links(rate: str, ports: Iterable[tuple[str, str]]) -> Table:
    """Return links of 20 us with the given disciplines."""
    one = {"rate": rate, "delay": "20us", "overhead": "ethernet"}
    return {name: one | {"qdisc": qdisc} for name, qdisc in ports}


def results(trees: Sequence[Table]) -> list[sj.Result]:
    """Run the scenarios, one per seed."""
    return sj.simulate_many(trees)


def figure(x: float) -> str:
    """Format a number with two or three significant digits."""
    return f"{x:.0f}" if abs(x) >= 10 else f"{x:.1f}" if abs(x) >= 1 else f"{x:.2f}"


def cell(values: Iterable[float]) -> str:
    """Return mean and 95 % interval as text, of one value per seed."""
    one = interval(list(values))
    return f"{figure(one.mean)} ± {figure(one.half)}" if one.half else figure(one.mean)


def share(values: Iterable[float]) -> str:
    """Return mean and 95 % interval of shares in per cent."""
    one = interval([100 * x for x in values])
    return f"{one.mean:.0f} ± {one.half:.0f}" if one.half >= 0.5 else f"{one.mean:.0f}"


def mean(values: Iterable[float]) -> float:
    """Return the mean over seeds."""
    return float(np.mean(list(values)))


def rows(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join(lines + [f"| {' | '.join(line)} |" for line in body])
