"""Settings that `recommend` tries: the defaults of each discipline, and round deviations from them.

A deviation changes one parameter. The grids are round numbers around the defaults of RFC 8289 (5
and 100 ms), RFC 8033 (15 ms), RFC 9332 (15 ms) and CAKE (100 ms).
"""

import json
import math
from collections.abc import Mapping, Sequence

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn._util.order import quantity
from sojourn._util.units import seconds
from sojourn.recommendation.line import Line, Table

ALWAYS = ("cake", "fq_codel", "dualpi2")
"""Disciplines that are in the table of every answer, also where they lose."""

TARGETS = ("2ms", "5ms", "10ms", "20ms", "40ms")
INTERVALS = ("20ms", "50ms", "100ms", "200ms", "300ms", "600ms", "1s")

GRIDS: dict[str, dict[str, Sequence[str]]] = {
    "cake": {"rtt": INTERVALS},
    "codel": {"target": TARGETS, "interval": INTERVALS},
    "dualpi2": {"target": ("5ms", "10ms", "25ms", "50ms")},  # "auto" is 15 ms
    "fq_codel": {"target": TARGETS, "interval": INTERVALS, "quantum": ("300B",)},
    "fq_pie": {"target": ("5ms", "10ms", "15ms", "25ms", "50ms"), "quantum": ("300B",)},
    "pie": {"target": ("5ms", "10ms", "15ms", "25ms", "50ms")},
}
"""Values that are tried by discipline and parameter."""

SHORT_S = 1e-3
"""Round-trip time below which the grids of a data centre apply."""

SHORT = {
    "cake": {"rtt": ("100us", "1ms", "10ms")},
    "codel": {"target": ("50us", "100us", "500us"), "interval": ("1ms", "5ms", "20ms")},
    "dualpi2": {"target": ("100us", "500us", "1ms")},
    "fq_codel": {
        "ce_threshold": ("50us", "100us", "200us"),
        "target": ("50us", "100us", "500us"),
        "interval": ("1ms", "5ms", "20ms"),
    },
    "fq_pie": {"target": ("100us", "500us", "1ms")},
    "pie": {"target": ("100us", "500us", "1ms")},
}
"""The same below `SHORT_S`; RFC 8289 leaves the constants of a data centre open."""


ORDER = ("fq_codel", "cake", "dualpi2", "fq_pie", "codel", "pie")
"""Order of disciplines whose costs are equal within 5 %, on a line without a shaper.

FQ-CoDel is first: it is the default of RFC 8290, of many distributions and of OpenWrt.
"""

SHAPED_ORDER = ("cake", "fq_codel", *ORDER[2:])
"""The same for a shaped line: the advice of bufferbloat.net and of OpenWrt's pages on SQM is CAKE.

Both orders are a convention, which the answer states.
"""


def order(line: Line) -> tuple[str, ...]:
    """Return the order of disciplines whose costs are equal within 5 %."""
    return SHAPED_ORDER if line.shaped else ORDER


def candidates(only: str | None) -> list[str]:
    """Return the disciplines to try: all, those that Linux has ("linux"), or a list of names.

    Raises InputError for an unknown name, or if none is left.
    """
    specs = json.loads(_sojourn.specs())["disciplines"]
    names = [spec["name"] for spec in specs]
    if only in (None, "all"):
        return names
    if only == "linux":
        return [name for name in names if in_linux(name)]
    known = {alias: spec["name"] for spec in specs for alias in (spec["name"], *spec["aliases"])}
    chosen = []
    for part in str(only).split(","):
        name = part.strip().lower().replace("-", "_")
        if not name:
            continue
        if name not in known:
            raise InputError(f"--only: unknown discipline {shown(part)}{near(name, known)}")
        chosen.append(known[name])
    if not chosen:
        raise InputError("--only: no discipline is left; write linux, all, or names like codel,pie")
    return list(dict.fromkeys(chosen))


def in_linux(name: str) -> bool:
    """Return True if one qdisc of Linux does what a discipline does, without a tree of classes."""
    from sojourn import tc

    try:
        nearest = tc.translate(name, "10mbit")
    except InputError:
        return False
    return not any("class" in lost for lost in nearest["lost"])


def parameters(name: str) -> dict[str, Table]:
    """Return the parameters of a discipline by name."""
    for spec in json.loads(_sojourn.specs())["disciplines"]:
        if spec["name"] == name:
            return {one["name"]: one for one in spec["params"]}
    raise KeyError(name)


def default(name: str, line: Line) -> Table:
    """Return a discipline with its defaults; in a data centre with ECN, which DCTCP needs."""
    ecn = line.traffic == "datacentre" and "ecn" in parameters(name)
    return {"name": name, "ecn": True} if ecn else {"name": name}


def deviations(name: str, line: Line) -> list[Table]:
    """Return a discipline with one parameter at a time at each other value of its grid.

    A target is at most half of the interval: it is the acceptable minimum over an interval (RFC
    8289, 4.3).
    """
    usual, known = default(name, line), parameters(name)
    grid = (SHORT if line.rtt_s[1] < SHORT_S else GRIDS).get(name, {})
    tables = []
    for key, values in grid.items():
        for value in values:
            if value == str(known[key]["value"]) or not _has_room(key, value, known):
                continue
            tables.append({**usual, key: value})
    return tables


def _has_room(key: str, value: str, known: Mapping[str, Table]) -> bool:
    """Return True unless a target is more than half of the interval, of the default or changed."""
    if key not in ("target", "interval") or not {"target", "interval"} <= known.keys():
        return True
    times = {one: str(known[one]["value"]) for one in ("target", "interval")} | {key: value}
    return 2 * seconds(times["target"]) <= seconds(times["interval"])


def changed(qdisc: Mapping[str, object], line: Line) -> list[str]:
    """Return the words of a setting that differ from the defaults of its discipline."""
    usual = default(str(qdisc["name"]), line)
    return [f"{key} {value}" for key, value in qdisc.items() if usual.get(key) != value]


def rank(qdisc: Mapping[str, object], line: Line) -> tuple[int, int, float]:
    """Return the sort key among equal costs.

    These are the number of changed words, the place in `order`, and the distance from the default
    as the logarithm of the ratio: 200 ms before 1 s, where the default is 100 ms.
    """
    name, names = str(qdisc["name"]), order(line)
    return (
        len(changed(qdisc, line)),
        names.index(name) if name in names else len(names),
        _distance(qdisc, line),
    )


def _distance(qdisc: Mapping[str, object], line: Line) -> float:
    """Return the sum of the distances of all values from their defaults."""
    usual, known = default(str(qdisc["name"]), line), parameters(str(qdisc["name"]))
    total = 0.0
    for key, value in qdisc.items():
        if usual.get(key) != value:
            ends = [quantity(one) for one in (str(value), str(known[key]["value"]))]
            numbers = [one[1] for one in ends if one is not None and one[1] > 0]
            # A default like "auto" or "off" has no number: any value is far from it.
            total += abs(math.log(numbers[0] / numbers[1])) if len(numbers) == 2 else 1.0
    return total
