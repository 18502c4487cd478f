"""Axis labels: each quantity in words, with the unit in which a figure shows it.

Units and names of single metrics come from the registry; this adds the words for the columns of
results.
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
"""By unit of a column: the unit of a figure, and the factor between them."""

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
    "sent": "packets sent",
    "retransmitted": "packets retransmitted",
    "completed": "completed transfers",
    "timeouts": "retransmission timeouts",
}
"""Quantity of a column, by the first part of its name."""

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
    """A quantity in words with the unit that is shown, and what its values are multiplied by."""

    text: str
    scale: float = 1.0


def label(column: str, *, group: bool = True) -> Label:
    """Return the label of a column of results, like "queueing delay, ms, 99th percentile".

    The link or group that a column is named after stands before it, unless `group` is False. A
    column that is not known keeps its name.
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
    # "packets dropped" says its unit itself.
    if unit == "packets" and "packets" in WORDS[quantity]:
        unit = None
    shown, scale = SHOWN.get(unit or "", (unit, 1.0))
    parts = [WORDS[quantity], shown, STATISTICS.get(statistic or "")]
    return Label(before + ", ".join(part for part in parts if part), scale)


def _of_metric(name: str, before: str, arguments: str) -> Label:
    metric = METRICS[name]
    shown, scale = SHOWN.get(metric.unit, (metric.unit, 1.0))
    words = WORDS.get(name) or re.sub(r"_(s|bps|pps|packets)$", "", name).replace("_", " ")
    words = "Jain's fairness index" if name == "jain_index" else words
    unit = "" if shown in ("number", "ratio") else f", {shown}"
    return Label(f"{before}{words}{unit}{f' {arguments}' if arguments else ''}", scale)
