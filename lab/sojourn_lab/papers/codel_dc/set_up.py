"""Constants of the set-up of `codel_dc`, and its disciplines."""

from dataclasses import dataclass
from typing import Any

from sojourn._util.units import bps_of, bytes_of, seconds
from sojourn_lab.reproduction.constants import Constants

Table = dict[str, Any]

HEADER = 40
"""Bytes of a packet that are not payload."""


@dataclass(frozen=True)
class SetUp(Constants):
    """Constants of the network, the disciplines and the TCPs."""

    servers: int = 40
    """Servers that answer a query, where an experiment does not vary them."""

    rate: str = "1gbit"
    """Rate of every link."""

    delay: str = "75us"
    """Propagation delay of every link, per direction: a quarter of the base round-trip time."""

    buffer: int = 200
    """Buffer of a port, in packets."""

    packet: str = "1000B"
    """Size of a full packet on the wire, 40 bytes of it header."""

    target: str = "300us"
    """CoDel's target: one base round-trip time."""

    interval: str = "750us"
    """CoDel's interval: 2.5 base round-trip times."""

    min_th: int = 25
    """RED's lower threshold of the average queue, in packets."""

    max_th: int = 51
    """RED's upper threshold of the average queue, in packets."""

    max_p: float = 0.1
    """RED's initial drop probability at the upper threshold. The paper does not state it."""

    w_q: float = 0.002
    """Weight of one arrival in RED's average. The paper does not state it."""

    gentle: bool = True
    """True if RED's drop probability rises to 1 at twice `max_th`, as by default in ns-2. The paper
    does not state it; its text describes drops of all packets above `max_th` (false)."""

    rto_min: str = "10ms"
    """Smallest retransmission timeout. The first, before any measurement, is as long; the paper
    does not state that one."""

    tick: str = "100us"
    """Granularity of TCP's clock. The paper does not state it."""

    initial_window: str = "2p"
    """Initial window. The paper does not state it."""

    receive_window: str = "10000p"
    """Receive window. The paper does not state it."""

    gap: str = "300us"
    """Pause between two queries. The paper does not state it."""

    @property
    def rtt_us(self) -> float:
        """Base round-trip time in microseconds: the delay of four links."""
        return 4e6 * seconds(self.delay)

    @property
    def bdp(self) -> float:
        """Packets that the port sends in a base round-trip time (K of the paper's model)."""
        return self.rtt_us / self.slot_us

    @property
    def slot_us(self) -> float:
        """Transmission time of a full packet in microseconds."""
        return 8e6 * bytes_of(self.packet) / bps_of(self.rate)

    @property
    def payload(self) -> int:
        """Payload of a full packet in bytes."""
        return bytes_of(self.packet) - HEADER

    @property
    def limit(self) -> str:
        """The buffer as the limit of a discipline."""
        return f"{self.buffer}p"

    @property
    def red(self) -> Table:
        """Adaptive RED, as in ns-2."""
        return {
            "name": "ared",
            "limit": self.limit,
            "min_th": f"{self.min_th}p",
            "max_th": f"{self.max_th}p",
            "w_q": self.w_q,
            "max_p": self.max_p,
            "bottom": "auto",
            "gentle": "two_max_th" if self.gentle else "none",
            "stale_gentle": True,
            "wait": "yes",
            "spare_short": True,
            "packet": self.packet,
        }

    @property
    def codel(self) -> Table:
        """CoDel of 2012."""
        times = {"target": self.target, "interval": self.interval}
        return {"name": "codel", "variant": "ns2_v1", "limit": self.limit, **times}

    @property
    def laws(self) -> dict[str, Table]:
        """The disciplines of the paper, and RED with an automatic weight."""
        return {
            "droptail": {"name": "droptail", "limit": f"{self.buffer - 1}p"},  # as ns-2's of 200
            "red": self.red,
            "codel": self.codel,
            "red-auto": {**self.red, "w_q": "auto"},
        }

    @property
    def sender(self) -> Table:
        """TCP SACK as in ns-2."""
        return {
            "name": "sack",
            "profile": "ns2",
            "packet": self.packet,
            "receive_window": self.receive_window,
            "initial_window": self.initial_window,
            "rto_min": self.rto_min,
            "rto_initial": self.rto_min,
            "tick": self.tick,
        }


BASE = SetUp()
CODEL, LAWS = BASE.codel, BASE.laws

WIDE: Table = {"name": "droptail", "limit": "99999p"}
"""A queue that never fills."""

SCHEMES = ("droptail", "red", "codel")
"""Disciplines compared in all experiments."""

NAMES = {
    "droptail": "DropTail",
    "red": "RED",
    "codel": "CoDel",
    "red-auto": "RED, automatic weight",
}
"""Disciplines, as figures and tables name them."""
