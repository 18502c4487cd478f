"""Telemetry of the links of a path, as congestion controls see it."""

from typing import NamedTuple

from sojourn._util.public import public


@public
class LinkTelemetry(NamedTuple):
    """State of a link when a packet left its queue (in-band network telemetry, INT).

    `CongestionControl.on_telemetry` gets a tuple of these, one for each link of the path.
    """

    at: int
    """Start of the transmission of the packet, ns of simulated time."""
    sent_bytes: int
    """Bytes that the link had sent before the packet, since the start of the run."""
    queue_bytes: int
    """Bytes in the queue behind the packet."""
    packet_bytes: int
    """Length of the packet, bytes."""
    rate: int
    """Rate of the link, bit/s."""
