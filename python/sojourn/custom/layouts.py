"""Records that native code shares with Rust, and the kinds of classes that are compiled."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from sojourn.custom.aqm import Aqm
from sojourn.custom.base import Custom
from sojourn.custom.control import CongestionControl
from sojourn.custom.source import TrafficSource
from sojourn.custom.telemetry import LinkTelemetry

OF_PACKETS = ("on_enqueue", "on_dequeue")
"""Methods of disciplines that have a packet and return a decision."""

OF_LINKS = "on_telemetry"
"""Method of congestion controls that has the telemetry of links."""

PACKET_FIELDS = ("size", "flow", "hash", "class_", "ecn", "arrived", "sojourn")

PACKET = np.dtype([*((name, "i8") for name in PACKET_FIELDS), ("markable", "?")], align=True)
"""Layout of `PacketRecord` in Rust."""

QUEUE = np.dtype(
    [("now", "i8"), ("bytes", "i8"), ("packets", "i8"), ("_rng", "u8"), ("_error", "i8")],
    align=True,
)
"""Layout of `QueueRecord` in Rust."""

CONNECTION = np.dtype(
    [
        *((name, "i8") for name in ("now", "cwnd", "ssthresh", "mss", "acked", "flight")),
        *((name, "i8") for name in ("rtt", "srtt", "min_rtt")),
        *((name, "i8") for name in ("packet", "snd_una", "snd_nxt", "path", "marked")),
        *((name, "i8") for name in ("delivered", "prior_delivered", "interval")),
        *((name, "i8") for name in ("lost", "newly_lost")),
        *((name, "f8") for name in ("pacing_rate", "delivery_rate")),
        ("_rng", "u8"),
        ("_error", "i8"),
        ("_access", "i8"),
        ("_links", "i8"),
        *((name, "?") for name in ("after_timeout", "_paced", "in_fast_recovery")),
        *((name, "?") for name in ("is_app_limited", "app_limited", "_limits", "idle_restart")),
    ],
    align=True,
)
"""Layout of `ConnectionRecord` in Rust. A round-trip time of -1 is None, so is a rate of NaN."""

OF_RATES = (
    "delivered", "prior_delivered", "interval", "lost", "newly_lost", "delivery_rate",
    "in_fast_recovery", "is_app_limited", "app_limited", "idle_restart",
)  # fmt: skip
"""Attributes of a connection that need `on_rate_sample`."""

LINK = np.dtype([(name, "i8") for name in LinkTelemetry._fields], align=True)
"""Layout of `LinkRecord` in Rust."""

ARRIVALS = np.dtype(
    [
        *((name, "i8") for name in ("now", "_time", "_size", "_largest")),
        ("_rng", "u8"),
        ("_error", "i8"),
    ],
    align=True,
)
"""Layout of `ArrivalRecord` in Rust."""


class Kind(NamedTuple):
    """Classes of one base class: what the engine calls, and what the methods see."""

    root: type[Custom]
    seen: np.dtype[Any]
    """Layout of the queue, the connection or the flow."""
    answers: str
    """Values that methods may return."""
    drawing: str
    """Methods in which random() works."""
    more: tuple[str, ...] = ()
    """Further attributes of what is seen, which are computed."""
    settable: tuple[str, ...] = ()
    """Attributes of what is seen that methods may set."""
    packet: np.dtype[Any] = PACKET
    """Layout of what is in place of a packet."""
    needed: Mapping[str, str] = {}
    """Methods that a class must define to read an attribute of what is seen, by the attribute."""

    @property
    def hooks(self) -> tuple[str, ...]:
        """Methods that the engine calls, in the order of Rust."""
        return self.root._hooks


KINDS = (
    Kind(
        Aqm,
        QUEUE,
        "PASS, MARK, DROP, DROP_HEAD or None",
        "on_enqueue and on_dequeue",
    ),
    Kind(
        CongestionControl,
        CONNECTION,
        "None",
        "methods other than on_established",
        ("window_was_full",),
        ("cwnd", "ssthresh", "pacing_rate", "app_limited"),
        LINK,
        {"marked": "on_ecn_feedback", **dict.fromkeys(OF_RATES, "on_rate_sample")},
    ),
    Kind(TrafficSource, ARRIVALS, "(time, size) or None", "next_arrival"),
)


def kind_of(cls: type[Custom]) -> Kind:
    """Return the kind of a class."""
    return next(kind for kind in KINDS if issubclass(cls, kind.root))
