"""How canonical quantities are read back, and how numbers are written for people."""

import math
import re
from collections.abc import Callable

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_RATES = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)]

DIGITS_MAX = 5
"""The most significant digits of a mean that has an interval: more cannot be read at a glance."""


def seconds(canonical: str) -> float:
    """Give the seconds of a duration as Rust writes it, like "20ms"; nothing else is read."""
    match = re.fullmatch(r"(\d+)(ns|us|ms|s)", canonical)
    assert match, f"{canonical!r} is not a canonical duration"
    return int(match[1]) * _SECONDS[match[2]]


def figures(value: float) -> str:
    """Write `value` with three figures, and no more decimals than that takes."""
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def short(value: float) -> str:
    """Write a number with three significant digits, and no exponent where one can do without."""
    size = abs(value)
    if size >= 100 or size == 0:
        return f"{value:.0f}"
    return f"{value:.3g}" if size >= 1e-4 else f"{value:.2e}"


def with_half(mean: float, half: float, alone: Callable[[float], str] = short) -> str:
    """Write a mean with half the width of its interval, like "67.7 ± 6.5".

    `half` is rounded to two significant digits and the mean to the same decimal place; the mean
    has at most five significant digits. A `half` that this rounds to zero, as the rounding noise of
    a sum, is left out, and so is NaN: the mean is then written by `alone`.
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
    """Give the power of ten of the first digit of `value`, rounded to so many digits."""
    return int(f"{abs(value):.{digits - 1}e}".partition("e")[2])


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


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Write a number of things: "1 link", "2 links"; `plural` where it is not noun + s."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
