"""CoDel in data centres with today's senders: answers to queries next to a long flow."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sojourn.result.result import Result
from sojourn_lab.papers.codel_dc.runs import CODEL, LAWS, of_answers, queries, switch
from sojourn_lab.papers.today.common import (
    ALL,
    DISCIPLINES,
    NAMES,
    PAIRS,
    SENDERS,
    TODAY,
    Table,
    by_sender,
    dots,
    only,
    senders,
    there,
)
from sojourn_lab.reproduction.claims import Claim, NoRunsError, Runs, Setting, values
from sojourn_lab.reproduction.paper import Experiment, Point, figure
from sojourn_lab.reproduction.parts import Part, order

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES = (10, 100)
OWN = {"limit": "200p"}
TIMES = {"target": CODEL["target"], "interval": CODEL["interval"]}
QDISCS: dict[str, Table] = {
    "droptail": LAWS["droptail"],
    "red": LAWS["red"],
    "codel": LAWS["codel"],
    "fq_codel": {"name": "fq_codel", **OWN, **TIMES},
    "pie": {"name": "pie", **OWN, "target": "300us", "t_update": "1ms", "packet": "1000B"},
    "cobalt": {"name": "cobalt", **OWN, **TIMES},
    "cake": {"name": "cake", **OWN, "rtt": "750us", "isolation": "flows"},
    "dualpi2": {"name": "dualpi2", **OWN, "typical_rtt": "300us"},
}
"""Disciplines, today's with times for round trips of 300 us."""

LABELS = {"droptail": "DropTail", "red": "RED", "codel": "CoDel", **DISCIPLINES}
OLD = ("droptail", "red")

RTO: Table = {
    "rto_min": "10ms",
    "rto_initial": "10ms",
    "tick": "100us",
    "delayed_ack_timeout": "1ms",
}
LINUX, SMALL = "RTOmin 200 ms", "initial window of 2"
CASES: dict[str, Table] = {"base": RTO, LINUX: {}, SMALL: {**RTO, "initial_window": "2p"}}
"""Parameters of today's senders: the base, and the settings."""


def _scenario(sender: str, qdisc: str, kb: int, duration: str, rto: Table) -> Table:
    """Return the paper's switch and queries with other senders."""
    tree = switch(QDISCS[qdisc], 40, queries(kb), duration)
    if sender != "then":
        for flow in tree["flows"]:
            flow["tcp"] = {**SENDERS[sender], "packet": "1000B", **rto}
    return tree


def measure(result: Result) -> dict[str, Any]:
    """Keep the mean time of an answer, queries, and the port."""
    every = of_answers(result)
    return {one: every[one] for one in ("afct_s", "queries", "utilisation", "occupancy", "loss")}


def experiment(full: bool) -> Experiment:
    """Return the runs: case, sender, discipline, kB of an answer; settings for the claims' only."""
    sizes, end = (SIZES, "600ms") if full else (SIZES[:1], "250ms")
    points: list[Point] = [
        ({"case": case, "sender": s, "qdisc": q, "kB": kb}, _scenario(s, q, kb, end, own))
        for case, own in CASES.items()
        for s in senders(full)
        for q in (QDISCS if case == "base" else list(QDISCS)[:4])
        for kb in sizes
        if case == "base" or (full and s != "then")
    ]
    return Experiment(points, measure, 5 if full else 2)


def _base(runs: Runs) -> pl.DataFrame:
    return runs["dc"].filter(pl.col("case") == "base")


def _with(case: str) -> Setting:
    """Return the setting with the runs of another case."""

    def other(whole: pl.DataFrame) -> pl.DataFrame:
        rows = whole.filter(pl.col("case") == case)
        if not len(rows):
            raise NoRunsError(f"no runs with {case}")
        return rows.with_columns(case=pl.lit("base"))

    return Setting(case, {"dc": other})


def _finished(frame: pl.DataFrame, one: str, other: str, **at: Any) -> tuple[Any, Any]:
    """Return the mean times (s) of both disciplines for seeds in which both finished queries."""
    pair = [values(frame, "afct_s", qdisc=q, **at).astype(float) for q in (one, other)]
    both = np.isfinite(pair[0]) & np.isfinite(pair[1])
    return pair[0][both], pair[1][both]


def _faster(
    runs: Runs, who: tuple[str, ...] = TODAY, one: str = "codel", others: tuple[str, ...] = OLD
) -> list[Part]:
    """C7, C8: the mean time of an answer is below the others', by sender and size.

    Fails wrongly: seeds in which no query finished are left out, which spares the slower discipline
    its worst runs. Passes wrongly: on a difference that is significant but too small to matter.
    """
    frame, parts = _base(runs), []
    for s in there(frame, who):
        for kb in sorted(frame["kB"].unique().to_list()):
            for other in others:
                times = _finished(frame, one, other, sender=s, kB=kb)
                what = f"{NAMES[s]}, {kb} kB: below {LABELS[other]}"
                parts.append(order(what, *times, unit="ms", scale=1e3))
    return parts


SETTINGS = (*only("dc"), _with(LINUX), _with(SMALL))

CLAIMS = [
    Claim(
        "005-C7", "CoDel in data centres: answers arrive sooner with CoDel than with DropTail and "
        "RED.", "dc", "up to 65 and 35 % sooner",
        f"Mean time of an answer of 10 and 100 kB, 40 servers. {ALL} {PAIRS}",
        partial(_faster), ("dc",),
        why="DropTail is as fast with these senders; cause open",
    ),
    Claim(
        "005-C8", "Today: answers arrive sooner with FQ-CoDel than with CoDel.", "dc",
        "(not in the paper)",
        f"As C7. {ALL} {PAIRS}",
        partial(_faster, one="fq_codel", others=("codel",)), ("dc",),
        why="with 100 kB the answers compete with each other",
    ),
]  # fmt: skip

BASE: Table = {"case": "base", "kB": 10}
FACTS = {
    f"dc-{q}": by_sender("dc", "afct_s", "ms", 1e3, qdisc=q, **BASE)
    for q in ("droptail", "red", "codel", "fq_codel", "pie")
}


@figure("dc", "CoDel in data centres, 10 kB from 40 servers: mean time of an answer", needs=["dc"],
        size=(7.4, 3.6))  # fmt: skip
def drawn(runs: Runs, ax: "Axes") -> None:
    """Draw the mean time of an answer under each discipline; today's on a grey ground."""
    frame = _base(runs).filter((pl.col("kB") == 10) & pl.col("afct_s").is_not_null())
    dots(ax, frame, "afct_s", LABELS, scale=1e3)
    ax.set(ylabel="mean time of an answer, ms", ylim=(0, None))
