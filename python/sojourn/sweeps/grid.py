"""Grid of round values on which `sojourn capacity` searches: counts, rates, times, sizes."""

import re
from dataclasses import dataclass

from sojourn._sojourn import InputError
from sojourn._util.inputs import shown
from sojourn._util.order import quantity

UNITS: dict[str, tuple[tuple[str, int], ...]] = {
    "count": (("", 1),),
    "packets": (("p", 1),),
    "rate": (("gbit", 10**9), ("mbit", 10**6), ("kbit", 10**3), ("bit", 1)),
    "time": (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1)),
    "size": (("MB", 10**6), ("kB", 10**3), ("B", 1)),
    "number": (("", 10**6),),
}
"""Units of each kind of value, the largest first, as multiples of the unit of the grid."""

STEPS = {"time": 1e9, "number": 1e6}
"""Units of the grid in the units of `quantity`, where they differ: nanoseconds, millionths."""


@dataclass(frozen=True)
class Grid:
    """Numbers with at most `digits` significant digits, in steps of one unit of a kind of value.

    A place is the index of a number: 0 is the number 0, and 10 ** digits is the first number
    whose distance to the next one is more than one unit.
    """

    kind: str
    digits: int

    def number(self, place: int) -> int:
        """Return the number at a place, in units of the grid."""
        dense: int = 10**self.digits
        if place < dense:
            return place
        tens, rest = divmod(place - dense, dense - dense // 10)
        scale: int = 10 ** (tens + 1)
        return (dense // 10 + rest) * scale

    def place(self, number: float) -> int:
        """Return the place of the nearest number that is not above `number`."""
        whole = int(number)
        dense: int = 10**self.digits
        if whole < dense:
            return whole
        tens = len(str(whole)) - self.digits
        leading: int = whole // 10**tens
        return dense + (tens - 1) * (dense - dense // 10) + leading - dense // 10

    def text(self, place: int) -> str:
        """Return the value at a place as a scenario has it, in its largest whole-digit unit."""
        number = self.number(place)
        if self.kind == "number":
            return f"{number / 10**6:.6f}".rstrip("0").rstrip(".")
        units = UNITS[self.kind]
        unit, scale = next((one for one in units if number >= one[1]), units[-1])
        whole, rest = divmod(number, scale)
        decimals = f"{rest:0{len(str(scale)) - 1}d}".rstrip("0") if rest else ""
        return f"{whole}{'.' if decimals else ''}{decimals}{unit}"

    def value(self, place: int) -> str | int | float:
        """Return the value at a place in the type of the key: text with a unit, or a number."""
        text = self.text(place)
        if self.kind == "count":
            return int(text)
        return float(text) if self.kind == "number" else text


def kind_of(value: object) -> tuple[str, float]:
    """Return the kind of a canonical value, and its number in units of the grid.

    Raises InputError for a value that is neither a number nor a quantity with a unit.
    """
    read = None if isinstance(value, bool) else quantity(value)
    is_percent = isinstance(value, str) and value.endswith("%")
    if read is None or is_percent or (isinstance(value, str) and not re.search("[A-Za-z]", value)):
        raise InputError(f"{shown(value)} is not a whole number, nor a quantity with a unit")
    kind, number = read
    if kind == "number":
        kind = "count" if isinstance(value, int) else "number"
    return kind, round(number * STEPS.get(kind, 1), 3)
