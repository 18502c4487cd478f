"""Settings of `red_vs_taildrop`: other values of what the paper does not state."""

import polars as pl

from sojourn_lab.papers.red_vs_taildrop.experiments import SPACINGS, USERS
from sojourn_lab.reproduction.claims import Setting, overlay

OVERHEAD = (1514 - 66) / 1514
"""Payload of a packet of 1514 bytes: without 14 bytes of Ethernet, 20 of IP, 32 of TCP."""


def payload(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with goodputs, and the rate that UDP leaves, of payload."""
    return frame.with_columns(
        goodput_mbps=pl.col("goodput_mbps") * OVERHEAD, left_mbps=pl.col("left_mbps") * OVERHEAD
    )


def all_losses(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with the loss of all packets in place of UDP's."""
    return frame.with_columns(udp_loss=pl.col("loss"))


HALF_DUPLEX = {"ftp": "half-duplex", "buffers": "half-duplex-buffers"}
"""Experiments in which the acks share the bottleneck, by the ones that they replace."""

SETTINGS = [
    Setting(
        "goodput of payload",
        dict.fromkeys(("ftp", "buffers", "web", "first"), payload),
        claims=("001-C1", "001-C2", "001-C9", "001-C10", "001-C11", "001-C18"),
    ),
    Setting(
        "losses of all packets",
        dict.fromkeys(("ftp", "web"), all_losses),
        claims=("001-C3", "001-C13"),
    ),
    Setting(
        "an ack per packet",
        {
            "ftp": overlay("each-ack", only=("flows",)),
            "buffers": overlay("each-ack-buffers"),
        },
    ),
    *(
        Setting(
            f"RED's wait {wait}",
            {"ftp": overlay("spacing", only=("flows",), wait=wait, acks=2)},
        )
        for wait in SPACINGS
    ),
    Setting(
        "acks share the bottleneck",
        {name: overlay(other) for name, other in HALF_DUPLEX.items()},
    ),
    Setting(
        "acks share the bottleneck, goodput of payload",
        {name: overlay(other, prepare=payload) for name, other in HALF_DUPLEX.items()},
    ),
    Setting(
        "w_q by memory for REDopt",
        {"ftp": overlay("memory-ftp"), "web": overlay("memory-web")},
    ),
    Setting("parameters for 1200 sessions at 1400", {"web": overlay("made-for-1200")}),
    *(
        Setting(users, {"first": overlay("other-users", only=("sessions",), users=users)},
                claims=("001-C12",))
        for users in USERS
    ),
]  # fmt: skip
"""Each is run on all points that its claims read. Other web users are run for the claim on open
connections only, and RED's spacing, a property of the testbed's router, for bulk data only."""
