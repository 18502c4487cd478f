"""How canonical quantities are read back, and how numbers are written for people."""

import re

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_RATES = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)]


def seconds(canonical: str) -> float:
    """Give the seconds of a duration as Rust writes it, like "20ms"; nothing else is read."""
    match = re.fullmatch(r"(\d+)(ns|us|ms|s)", canonical)
    assert match, f"{canonical!r} is not a canonical duration"
    return int(match[1]) * _SECONDS[match[2]]


def figures(value: float) -> str:
    """Write `value` with three figures, and no more decimals than that takes."""
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def duration(value_s: float) -> str:
    """Write a duration in the unit that suits it."""
    if value_s == 0:
        return "0 s"
    if abs(value_s) < 1e-3:
        return f"{figures(value_s * 1e6)} us"
    return f"{figures(value_s * 1e3)} ms" if abs(value_s) < 1 else f"{figures(value_s)} s"


def rate(value_bps: float) -> str:
    """Write a rate in the unit that suits it."""
    unit, scale = next((r for r in _RATES if value_bps >= r[1]), _RATES[-1])
    return f"{figures(value_bps / scale)} {unit}"


def share(value: float) -> str:
    """Write a share in per cent."""
    percent = 100 * value
    return f"{percent:.2f} %" if 0 < percent < 1 else f"{percent:.1f} %"


def bytes_of(canonical: str) -> int:
    """Give the bytes of a size as Rust writes it, like "300kB"; nothing else is read."""
    match = re.fullmatch(r"(\d+)(B|kB|MB|GB)", canonical)
    assert match, f"{canonical!r} is not a canonical number of bytes"
    return int(match[1]) * {"B": 1, "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}[match[2]]


def bps_of(canonical: str) -> float:
    """Give the bits per second of a rate as Rust writes it, like "10mbit"; nothing else is read."""
    match = re.fullmatch(r"(\d+)(gbit|mbit|kbit|bit)", canonical)
    assert match, f"{canonical!r} is not a canonical rate"
    return int(match[1]) * dict(_RATES)[match[2]]
