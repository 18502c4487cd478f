"""Comparison of a line before and after a change: less delay under load, the same rates."""

from dataclasses import dataclass

from sojourn._util.units import duration, rate
from sojourn.line.derive import MeasuredLine, Quantity

RATE_KEPT = 0.9
"""Share of the rate that a direction must keep: a shaper at 95 % of the line takes some."""


@dataclass(frozen=True)
class LineCheck:
    """Statement about a line before and after a change.

    Attributes
    ----------
    name : str
        The quantity: "down_bps", "both_delay_s", ...
    text : str
        The sentence.
    holds : bool
        True if the delay fell, or the rate stayed.
    """

    name: str
    text: str
    holds: bool


def verify(
    before: MeasuredLine, after: MeasuredLine, limit_s: float | None = None
) -> list[LineCheck]:
    """Compare two measurements of a line.

    Parameters
    ----------
    before, after : MeasuredLine
        Measurements with the same tools.
    limit_s : float, optional
        Largest mean increase of the round-trip time under load that was agreed, in seconds. By
        default it must be less than before.

    Returns
    -------
    list of LineCheck
        One for each quantity that both have. A rate holds if at least 90 % of it are left; a delay
        if it is below the limit, or if its interval lies below the interval before.
    """
    checks = []
    for name in ("down_bps", "up_bps"):
        one, other = getattr(before, name), getattr(after, name)
        if one is not None and other is not None:
            checks.append(_rate(name, one, other))
    for name in ("down_delay_s", "up_delay_s", "both_delay_s"):
        one, other = getattr(before, name), getattr(after, name)
        if one is not None and other is not None:
            checks.append(_delay(name, one, other, limit_s))
    return checks


WORDS = {
    "down_bps": "download rate",
    "up_bps": "upload rate",
    "down_delay_s": "delay added by downloads",
    "up_delay_s": "delay added by uploads",
    "both_delay_s": "delay added by load in both directions",
}
"""Quantities of sentences."""


def _rate(name: str, before: Quantity, after: Quantity) -> LineCheck:
    holds = after.value >= RATE_KEPT * before.value
    part = after.value / before.value
    text = (
        f"{WORDS[name]}: {rate(before.value)} before, {rate(after.value)} after "
        f"({part:.0%}; at least {RATE_KEPT:.0%} must be left)"
    )
    return LineCheck(name, text, holds)


def _delay(name: str, before: Quantity, after: Quantity, limit_s: float | None) -> LineCheck:
    text = f"{WORDS[name]}: {_with_interval(before)} before, {_with_interval(after)} after"
    if limit_s is not None:
        return LineCheck(name, f"{text} (limit {duration(limit_s)})", after.value <= limit_s)
    # Without intervals (few samples) the values decide.
    high = after.high if after.high == after.high else after.value
    low = before.low if before.low == before.low else before.value
    return LineCheck(name, text, high < low)


def _with_interval(one: Quantity) -> str:
    half = one.high - one.value
    return duration(one.value) + (f" ± {duration(half)}" if half == half else "")
