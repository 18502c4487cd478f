"""Shapers that are there already: from `tc -s -j qdisc show`, and from the delay under load."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.reading import bytes_of_file
from sojourn._util.units import duration, rate

SHAPING = ("cake", "tbf", "htb", "hfsc", "netem")
"""Qdiscs that can limit the rate."""

Table = Mapping[str, Any]


def read(path: Path) -> list[str] | None:
    """Return sentences on the qdiscs of a file of tc; None if the file is not of tc.

    Raises InputError if it has no qdisc.
    """
    raw = bytes_of_file(path)
    try:
        tree = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(tree, list):
        return None
    qdiscs = [one for one in tree if isinstance(one, dict) and "kind" in one and "dev" in one]
    if not qdiscs:
        raise InputError(f"{path}: is no output of tc -s -j qdisc show: it has no qdisc")
    return [f"{path.name} (tc): {text}" for text in sentences(qdiscs)]


def sentences(qdiscs: Sequence[Table]) -> list[str]:
    """Return a sentence for each qdisc at a root that limits the rate, or that none does."""
    texts = [text for one in qdiscs if one.get("root") for text in _sentence(one)]
    return texts or ["no qdisc limits the rate"]


def _sentence(qdisc: Table) -> Iterator[str]:
    kind, options = str(qdisc["kind"]), qdisc.get("options") or {}
    if kind not in SHAPING:
        return
    limit = options.get("bandwidth", options.get("rate"))
    if isinstance(limit, Mapping):
        limit = limit.get("rate")
    if kind in ("htb", "hfsc"):
        how = "with the rates of its classes"
    elif isinstance(limit, int | float) and limit > 0:
        how = f"at {rate(8 * limit)}"
    else:
        return
    signals = sum(int(qdisc.get(key, 0)) for key in ("drops", "overlimits"))
    signals += sum(int(tin.get("ecn_mark", 0)) for tin in qdisc.get("tins", []))
    peaks = [float(tin.get("peak_delay_us", 0)) for tin in qdisc.get("tins", [])]
    held = f", longest queueing delay {duration(max(peaks) / 1e6)}" if any(peaks) else ""
    state = "it holds the queue" if signals else "it never held a packet: the queue is elsewhere"
    yield f"{qdisc['dev']}: {kind} shapes {how}{held}; {state}"


NAMES = {"down": "download", "up": "upload", "both": "both directions"}


def of_delays(drop_tail: Mapping[str, bool], longest_s: Mapping[str, float]) -> list[str]:
    """Return a sentence for each direction whose queue does not fill a buffer under load."""
    return [
        f"{NAMES[way]}: the queue does not fill a buffer (at most {duration(longest_s[way])} under "
        "load): an AQM, a queue per flow or a small buffer, perhaps of a shaper"
        for way, fills in drop_tail.items()
        if not fills
    ]
