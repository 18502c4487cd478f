"""Cases of the recordings that are exact to a nanosecond: eight patterns of arrivals."""

from typing import Any

from sojourn_lab.validation.linux.compare import Case

RATE = "15625kbit"
"""512 ns per byte."""

PATTERNS = ("bursts", "flows64", "onoff", "poisson105", "ramp", "sparse", "steady120", "two")

INTRO = """Linux 6.12 behind HTB without a burst at 15.625 Mbit/s, where a byte takes 512 ns and no
time is rounded. Eight patterns of arrivals of 100 to 1514 bytes from up to 64 flows."""


def cases(recording: str, tc: str, **qdisc: Any) -> tuple[Case, ...]:
    """Return a case per pattern, without random numbers."""
    return tuple(case(f"{recording}_{pattern}", tc, **qdisc) for pattern in PATTERNS)


def case(recording: str, tc: str, **qdisc: Any) -> Case:
    """Return the case of a recording, without random numbers."""
    return Case(name=recording, tc=tc, qdisc=qdisc, rate=RATE, htb_burst="0B")
