"""Order of the labels of an axis: quantities by value, names as they were given."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(.*)", re.IGNORECASE)
_TIMES = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0
}  # fmt: skip
_PREFIXES = {
    "": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30
}  # fmt: skip
_PACKETS = ("p", "pkt", "pkts", "packet", "packets")
_SIZES = {"bit/s": ("rate", 1.0), "bit": ("rate", 1.0), "b/s": ("rate", 1.0),
          "B/s": ("rate", 8.0), "B": ("size", 1.0)}  # fmt: skip


def quantity(label: Any) -> tuple[str, float] | None:
    """Return kind and value of a number or of a text like "5mbit", in the units of scenarios.

    The kinds are number, time, rate, size and packets; a percentage is a number. The result is
    None for any other text.
    """
    if isinstance(label, int | float):
        return "number", float(label)
    match = _NUMBER.fullmatch(label.strip()) if isinstance(label, str) else None
    if match is None:
        return None
    number, unit = float(match[1]), match[2]
    if unit in ("", "%"):
        return "number", number / (100 if unit else 1)
    if unit in _TIMES:
        return "time", number * _TIMES[unit]
    if unit in _PACKETS:
        return "packets", number
    for ending, (kind, scale) in _SIZES.items():
        prefix = unit.removesuffix(ending).lower()
        if unit.endswith(ending) and prefix in _PREFIXES:
            return kind, number * scale * _PREFIXES[prefix]
    return None


def in_order(labels: Iterable[Any], first: Sequence[Any] = (), unset: Any = "-") -> list[Any]:
    """Return the distinct labels of an axis in order.

    Quantities of one kind are in the order of their values. Names, and quantities of several
    kinds, are in the order of `first`, and labels that are not there as they come. `unset` and
    None, where an axis does not apply, are last.
    """
    every = list(dict.fromkeys(labels))
    known = [label for label in every if label is not None and label != unset]
    read = [quantity(label) for label in known]
    if len({one[0] if one else None for one in read}) == 1 and read[0] is not None:
        known.sort(key=lambda label: (quantity(label) or ("", 0.0))[1])
    else:
        place = {label: n for n, label in enumerate(first)}
        known.sort(key=lambda label: place.get(label, len(place)))
    return known + [label for label in every if label is None or label == unset]
