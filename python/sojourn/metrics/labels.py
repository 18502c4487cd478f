"""Axis labels: the quantity of a column in words, with the unit for figures.

Units and names of metrics come from the registry.
"""

import re
from dataclasses import dataclass

from sojourn.metrics.registry import METRICS

SHOWN = {
    "s": ("ms", 1e3),
    "bps": ("Mbit/s", 1e-6),
    "bit/s": ("Mbit/s", 1e-6),
    "bytes": ("kB", 1e-3),
    "share": ("%", 100.0),
}
"""Unit in figures, and the conversion factor, by unit of a column."""

WORDS = {
    "sojourn": "queueing delay",
    "delay": "one-way delay",
    "fct": "completion time",
    "jitter": "delay variation",
    "rtt": "round-trip propagation time",
    "queue": "queue length",
    "goodput": "goodput",
    "throughput": "throughput",
    "utilisation": "utilisation",
    "loss_rate": "loss rate",
    "mark_rate": "mark rate",
    "cwnd": "congestion window",
    "received": "throughput on the wire",
    "jain": "Jain's fairness index",
    "arrived": "packets that arrived",
    "departed": "packets sent by the link",
    "dropped": "packets dropped",
    "marked": "packets marked",
    "lost_on_wire": "packets lost on the wire",
    "marked_on_wire": "packets marked on the wire",
    "duplicated": "duplicated packets",
    "corrupted": "corrupted packets",
    "reordered": "reordered packets",
    "sent": "packets sent",
    "retransmitted": "packets retransmitted",
    "completed": "completed transfers",
    "timeouts": "retransmission timeouts",
}
"""Quantity of a column, by the first part of the column name."""

SHARES = ("utilisation", "loss_rate", "mark_rate")
"""Columns that are shares, whose names have no unit."""

STATISTICS = {
    "mean": "mean",
    "std": "standard deviation",
    "p50": "median",
    "p95": "95th percentile",
    "p99": "99th percentile",
    "max": "maximum",
}


@dataclass(frozen=True)
class Label:
    """Quantity in words with its unit, and the factor that converts values to that unit."""

    text: str
    scale: float = 1.0


def label(column: str, *, group: bool = True) -> Label:
    """Return the label of a column of results, like "queueing delay, ms, 99th percentile".

    The link or group of a column precedes it, unless `group` is False. The label of an unknown
    column is its name.
    """
    bare, arguments = re.fullmatch(r"([^(]*)(.*)", column).groups()  # type: ignore[union-attr]
    owner, _, name = bare.rpartition(".")
    before = f"{owner}: " if owner and group else ""
    if name in METRICS:
        return _of_metric(name, before, arguments)
    match = re.fullmatch(r"(.*?)(?:_(mean|std|p50|p95|p99|max))?(?:_(s|bps|bytes|packets))?", name)
    assert match
    quantity, statistic, unit = match.groups()
    if quantity not in WORDS:
        return Label(column)
    unit = "share" if quantity in SHARES else unit
    # The words "packets dropped" have the unit already.
    if unit == "packets" and "packets" in WORDS[quantity]:
        unit = None
    shown, scale = SHOWN.get(unit or "", (unit, 1.0))
    parts = [WORDS[quantity], shown, STATISTICS.get(statistic or "")]
    return Label(before + ", ".join(part for part in parts if part), scale)


def heading(column: str) -> Label:
    """Return the name of a column with the unit of figures, like "sojourn_p99, ms".

    The name without that unit is accepted wherever columns are chosen.
    """
    bare, arguments = re.fullmatch(r"([^(]*)(.*)", column).groups()  # type: ignore[union-attr]
    name = bare.rpartition(".")[2]
    match = re.fullmatch(r".*?(_(?:s|bps|bytes))?", name)
    unit = METRICS[name].unit if name in METRICS else ((match and match[1]) or "").lstrip("_")
    unit = "share" if name in SHARES else unit
    if unit not in SHOWN:
        return Label(column)
    shown, scale = SHOWN[unit]
    return Label(f"{re.sub(r'_(s|bps|bytes)$', '', bare)}{arguments}, {shown}", scale)


def _of_metric(name: str, before: str, arguments: str) -> Label:
    metric = METRICS[name]
    shown, scale = SHOWN.get(metric.unit, (metric.unit, 1.0))
    words = WORDS.get(name) or re.sub(r"_(s|bps|pps|packets)$", "", name).replace("_", " ")
    words = "Jain's fairness index" if name == "jain_index" else words
    unit = "" if shown in ("number", "ratio") else f", {shown}"
    return Label(f"{before}{words}{unit}{f' {arguments}' if arguments else ''}", scale)
