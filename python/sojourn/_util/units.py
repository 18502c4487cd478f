"""Parse canonical quantities of Rust, and format numbers with units."""

import math
import re
from collections.abc import Callable
from functools import lru_cache

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_RATES = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)]

DIGITS_MAX = 5
"""Largest number of significant digits of a mean with an interval."""


@lru_cache
def seconds(canonical: str) -> float:
    """Return a canonical duration like "20ms" in seconds."""
    match = re.fullmatch(r"(\d+)(ns|us|ms|s)", canonical)
    assert match, f"{canonical!r} is not a canonical duration"
    return int(match[1]) * _SECONDS[match[2]]


def figures(value: float) -> str:
    """Format a number with about three significant digits and at most two decimals."""
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def short(value: float) -> str:
    """Format a number with three significant digits; exponents only below 0.0001."""
    size = abs(value)
    if size >= 100 or size == 0:
        return f"{value:.0f}"
    return f"{value:.3g}" if size >= 1e-4 else f"{value:.2e}"


def with_half(mean: float, half: float, alone: Callable[[float], str] = short) -> str:
    """Format a mean with half the width of its interval, like "67.7 ± 6.5".

    `half` is rounded to two significant digits and the mean to the same decimal place; the mean
    has at most five significant digits. If `half` is NaN or rounds to zero, the mean is formatted
    by `alone`.
    """
    if not half > 0 or not math.isfinite(mean):
        return alone(mean)
    places = 1 - _exponent(half, 2)
    most = DIGITS_MAX - 1 - _exponent(mean, DIGITS_MAX) if mean else places
    if most < -_exponent(half, 1):  # no place is left for the first digit of `half`
        return alone(mean)
    places = min(places, most)
    if max(abs(mean), half) < 1e-4:
        scale = _exponent(max(abs(mean), half), 2)
        return f"{mean / 10**scale:.{places + scale}f}e{scale:03d} ± {half:.1e}"
    shown = max(0, places)
    return f"{round(mean, places):.{shown}f} ± {round(half, places):.{shown}f}"


def _exponent(value: float, digits: int) -> int:
    """Return the decimal exponent of `value`, rounded to so many significant digits."""
    return int(f"{abs(value):.{digits - 1}e}".partition("e")[2])


def duration(value_s: float) -> str:
    """Format a duration in s, ms or us, by its size."""
    if value_s == 0:
        return "0 s"
    if abs(value_s) < 1e-3:
        return f"{figures(value_s * 1e6)} us"
    return f"{figures(value_s * 1e3)} ms" if abs(value_s) < 1 else f"{figures(value_s)} s"


def rate(value_bps: float) -> str:
    """Format a rate in gbit, mbit, kbit or bit, by its size."""
    unit, scale = next((r for r in _RATES if value_bps >= r[1]), _RATES[-1])
    return f"{figures(value_bps / scale)} {unit}"


def size(value_bytes: float) -> str:
    """Return a number of bytes with 3 digits, like "1.71 MB"."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value_bytes >= factor:
            return f"{figures(value_bytes / factor)} {unit}"
    return f"{figures(value_bytes)} B"


def share(value: float) -> str:
    """Format a share as a percentage."""
    percent = 100 * value
    return f"{percent:.2f} %" if 0 < percent < 1 else f"{percent:.1f} %"


def bytes_of(canonical: str) -> int:
    """Return a canonical size like "300kB" in bytes."""
    match = re.fullmatch(r"(\d+)(B|kB|MB|GB)", canonical)
    assert match, f"{canonical!r} is not a canonical number of bytes"
    return int(match[1]) * {"B": 1, "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}[match[2]]


@lru_cache
def bps_of(canonical: str) -> float:
    """Return a canonical rate like "10mbit" in bit/s."""
    match = re.fullmatch(r"(\d+)(gbit|mbit|kbit|bit)", canonical)
    assert match, f"{canonical!r} is not a canonical rate"
    return int(match[1]) * dict(_RATES)[match[2]]


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Format a count: "1 link", "2 links"; `plural` if it is not the noun plus s."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
