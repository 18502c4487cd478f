"""Cases of the recordings at 10 Mbit/s, whose clock has steps of 256 ns."""

from typing import Any

from sojourn_lab.validation.linux.compare import Case

ARP_NS = 4_039_321_600
"""Time of an ARP probe that no recording lists."""

TWICE = (ARP_NS, ARP_NS + 1_040_000_000)
"""Times of the probe and its repetition, where the first one was dropped or late."""

ENDS_NS = 22_800_000_000

INTRO = """The recordings at 10 Mbit/s end after 22.8 s: packets that leave later are listed as
dropped. They list UDP packets only; an ARP probe of 42 bytes passed near 4.0393 s (see dualpi2).
The clock of their kernel has steps of 256 ns, and its timers are late by up to 448 ns."""


def case(name: str, tc: str, **others: Any) -> Case:
    """Return the case `{name}_10m`; `others` are fields of it."""
    defaults = {"frames": (ARP_NS,), "ends_ns": ENDS_NS, "late_timers": True}
    return Case(name=f"{name}_10m", tc=tc, **{**defaults, **others})
