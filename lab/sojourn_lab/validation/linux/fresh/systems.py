"""Qdiscs to compare: their `tc` commands, and ours."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sojourn_lab.validation.linux.compare import Case, Header
from sojourn_lab.validation.linux.fresh.arrivals import (
    DSCP,
    FLOWS,
    RATE_KBPS,
    RECEIVERS,
    SENDERS,
    SHORTEST,
)
from sojourn_lab.validation.linux.recordings import Recording

FAIR = {f: 0x10 << 16 | f for f in range(1, FLOWS + 1)}
"""Priorities of packets, which select queue or class 10:f (hexadecimal) for flow f."""

BANDS = {f: 0x10 << 16 | 1 + f % 3 for f in FAIR}
"""Flow f is in band f mod 3."""

ROOM = "1000000p"
"""Buffer of a discipline that has none of its own in Linux."""

HEADERS = {f: Header(dscp, f % SENDERS, f % RECEIVERS) for f, dscp in enumerate(DSCP, start=1)}
"""Headers by flow, which `cake` reads."""

DRAWS = 12_345
"""State of xorshift32 at the start."""


@dataclass(frozen=True, eq=False)
class System:
    """A qdisc and ours."""

    name: str
    tc: str
    """Words after `tc qdisc add dev v0 parent 1:1 handle 10:` (`root handle 10:` without HTB)."""
    qdisc: Mapping[str, Any]
    priorities: Mapping[int, int] = field(default_factory=dict)
    children: tuple[str, ...] = ()
    """Further commands after `tc`."""
    htb: bool = True
    follows: bool = False
    """True if the random numbers are chosen such that the kernel's decisions are repeated."""
    shortest: int = SHORTEST
    """Length of the shortest frame, bytes."""

    @property
    def commands(self) -> list[str]:
        """Commands that set the qdisc up on the device v0."""
        if not self.htb:
            state, dither = draws()
            files = (("draws", state), ("dither", dither))
            known = [
                f"echo {value} > /sys/module/sch_cake/parameters/{name}" for name, value in files
            ]
            return [*known, f"tc qdisc add dev v0 root handle 10: {self.tc}"]
        return [
            "tc qdisc add dev v0 root handle 1: htb default 1",
            "tc class add dev v0 parent 1: classid 1:1 htb rate 15625kbit "
            "burst 1b cburst 1b quantum 1514",
            f"tc qdisc add dev v0 parent 1:1 handle 10: {self.tc}",
            *(f"tc {words}" for words in self.children),
        ]

    def case(self, name: str, recorded: Recording | None = None) -> Case:
        """Return a recording of this qdisc, a stored one if none is given."""
        return Case(
            name=f"fresh-{name}".replace(" ", "-"),
            tc=self.tc,
            qdisc=self.qdisc,
            rate=f"{RATE_KBPS}kbit" if self.htb else "1000000gbit",
            htb_burst="0B" if self.htb else None,
            seed=None if self.htb else DRAWS,
            headers={} if self.htb else HEADERS,
            follows=self.follows,
            recorded=recorded,
        )


def draws() -> tuple[int, int]:
    """Return the states of both generators of `cake`; our first draw gives the dither's."""
    x = DRAWS
    for shift in (13, -17, 5):
        x ^= (x << shift if shift > 0 else x >> -shift) & 0xFFFF_FFFF
    return x, int(np.float64(x / 2**32).view(np.uint64))


def child(flow: int, words: str) -> str:
    """Return the command that adds the qdisc of a class."""
    return f"qdisc add dev v0 parent 10:{flow} handle {10 + flow}: {words}"


def cake(name: str, tc: str = "", shortest: int = SHORTEST, **settings: Any) -> System:
    """Return a variant of `cake`."""
    ours = {"name": "cake", "bandwidth": "15625kbit", "header": "14B", "memory": "truesize"}
    words = f"cake bandwidth 15625kbit {tc}".strip()
    return System(f"cake{name}", words, {**ours, **settings}, htb=False, shortest=shortest)


CODEL = {"name": "codel", "variant": "linux"}
FQ_CODEL = {"name": "fq_codel", "variant": "linux"}
SFQ = {"name": "sfq", "variant": "linux"}
RED = {
    "name": "red", "variant": "linux", "limit": "400000B", "min_th": "15000B", "max_th": "45000B",
    "max_p": 0.1, "w_q": 0.0078125, "packet": "1000B",
}  # fmt: skip
RED_TC = "red limit 400000 min 15000 max 45000 avpkt 1000 burst 60 bandwidth 15625kbit"

SYSTEMS = (
    System("pfifo", "pfifo limit 50", {"name": "droptail", "limit": "50p"}),
    System("bfifo", "bfifo limit 40000", {"name": "droptail", "limit": "40000B"}),
    System(
        "pfifo_head_drop",
        "pfifo_head_drop limit 50",
        {"name": "droptail", "limit": "50p", "policy": "head"},
    ),
    System(
        "drr",
        "drr",
        {"name": "drr", "limit": ROOM, "limits": "16p", "quantum": "1514B"},
        FAIR,
        tuple(
            words
            for f in FAIR
            for words in (
                f"class add dev v0 parent 10: classid 10:{f} drr quantum 1514",
                child(f, "pfifo limit 16"),
            )
        ),
    ),
    System(
        "prio",
        "prio bands 3",
        {"name": "prio", "limit": ROOM, "limits": ["10p", "20p", "40p"], "flows": 3, "by": "flow"},
        BANDS,
        tuple(child(band, f"pfifo limit {n}") for band, n in ((1, 10), (2, 20), (3, 40))),
    ),
    System("codel", "codel limit 1000 noecn", {**CODEL, "limit": "1000p"}),
    System("codel ecn", "codel limit 1000 ecn", {**CODEL, "limit": "1000p", "ecn": True}),
    System(
        "codel 20ms",
        "codel limit 100 target 20ms interval 200ms ecn",
        {**CODEL, "limit": "100p", "target": "20ms", "interval": "200ms", "ecn": True},
    ),
    System("fq_codel", "fq_codel", FQ_CODEL, FAIR),
    System(
        "fq_codel small",
        "fq_codel limit 60 quantum 300 target 8ms interval 80ms noecn",
        {
            **FQ_CODEL, "limit": "60p", "quantum": "300B", "target": "8ms", "interval": "80ms",
            "ecn": False,
        },
        FAIR,
    ),
    System(
        "sfq", "sfq limit 127 quantum 1514 perturb 0", {**SFQ, "quantum": "1514B"}, FAIR
    ),
    System(
        "sfq headdrop",
        "sfq limit 60 depth 20 quantum 600 perturb 0 headdrop",
        {**SFQ, "limit": "60p", "depth": 20, "quantum": "600B", "drop": "head"},
        FAIR,
    ),
    System("red", f"{RED_TC} probability 0.1", RED, follows=True),
    System("red ecn", f"{RED_TC} probability 0.1 ecn", {**RED, "ecn": True}, follows=True),
    cake(""),
    cake(" diffserv4", "diffserv4 dual-srchost", tins="diffserv4", isolation="dual_srchost"),
    cake(" diffserv8", "diffserv8 dual-dsthost", tins="diffserv8", isolation="dual_dsthost"),
    cake(" hosts", "besteffort hosts", tins="besteffort", isolation="hosts"),
    cake(" flows", "besteffort flows rtt 20ms", tins="besteffort", isolation="flows", rtt="20ms"),
    cake(" atm", "besteffort overhead 30 atm", tins="besteffort", overhead="30 atm"),
    cake(
        " memlimit", "besteffort flows memlimit 100000", shortest=1000,
        tins="besteffort", isolation="flows", limit="100000B",
    ),
)  # fmt: skip

STORED = (
    "cake_poisson",
    "cake diffserv4_ramp",
    "cake diffserv8_poisson",
    "cake atm_bursts",
    "cake memlimit_poisson",
    "cake memlimit_onoff",
    "fq_codel small_onoff",
)
"""Recordings in lab/vectors: SYSTEM_PATTERN."""


def stored(qdisc: str = "") -> list[Case]:
    """Return the stored recordings of a qdisc, or all."""
    names = [name for name in STORED if name.startswith(qdisc)]
    by_name = {system.name: system for system in SYSTEMS}
    return [by_name[name.rsplit("_", 1)[0]].case(name) for name in names]
