"""CoDel in data centres with today's senders: answers to queries next to a long flow."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn._util.units import seconds
from sojourn.result.result import Result
from sojourn_lab.papers.codel_dc.runs import CODEL, LAWS, of_answers, queries, switch
from sojourn_lab.papers.today.drawing import dots, stated_values
from sojourn_lab.papers.today.rules import ALL, PAIRS, At, Compared, by_sender, less
from sojourn_lab.papers.today.senders import (
    DISCIPLINES,
    EVERY,
    SENDERS,
    THEN,
    TODAY,
    Table,
    marking,
    there,
)
from sojourn_lab.reproduction.claims import Claim, Runs, Setting, overlay, values
from sojourn_lab.reproduction.paper import Experiment, Point, figure

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

CLAIMED = ("droptail", "red", "codel", "fq_codel")
"""Disciplines that the claims compare; only these run with 100 kB and with the settings."""

LABELS = {"droptail": "DropTail", "red": "RED", "codel": "CoDel", **DISCIPLINES}
OLD = ("droptail", "red")

RTO: Table = {
    "rto_min": "10ms",
    "rto_initial": "10ms",
    "tick": "100us",
    "delayed_ack_timeout": "1ms",
}
"""Times of today's senders, as the paper's."""

WAYS: dict[str, Table] = {
    "RTOmin 200 ms": {},
    "initial window of 2": {**RTO, "initial_window": "2p"},
}
"""Settings: these parameters of today's senders instead of `RTO`."""


def _scenario(sender: str, qdisc: str, kb: int, duration: str, own: Table = RTO) -> Table:
    """Return the paper's switch and queries with other senders.

    In a mixture the first TCP sends the answers, and the second one the long flow.
    """
    tree = switch(marking(QDISCS[qdisc], sender), 40, queries(kb), duration)
    if sender != THEN:
        tcps = SENDERS[sender].tcps
        for flow in tree["flows"]:
            tcp = tcps[-1] if flow["name"] == "long" else tcps[0]
            flow["tcp"] = {**tcp, "packet": flow["tcp"]["packet"], **own}
    return tree


def measure(result: Result) -> dict[str, Any]:
    """Keep the mean time of an answer, queries, and the port.

    `at_least_s` is the time of an answer or, if no query finished, the time that there was.
    """
    every = of_answers(result)
    kept = {one: every[one] for one in ("afct_s", "queries", "utilisation", "occupancy", "loss")}
    run, warmup = (seconds(result.scenario[one]) for one in ("duration", "warmup"))
    return {**kept, "at_least_s": every["afct_s"] or run - warmup}


def experiments(full: bool) -> dict[str, Experiment]:
    """Return the runs: sender, discipline, kB of an answer; and those with the settings."""
    sizes, end = (SIZES, "600ms") if full else (SIZES[:1], "250ms")
    points: list[Point] = [
        ({"sender": s, "qdisc": q, "kB": kb}, _scenario(s, q, kb, end))
        for s in EVERY
        for q in QDISCS
        for kb in sizes
        if kb == sizes[0] or q in CLAIMED
    ]
    varied: list[Point] = [
        ({"setting": way, "sender": s, "qdisc": q, "kB": kb}, _scenario(s, q, kb, end, own))
        for way, own in WAYS.items()
        for s in EVERY
        for q in CLAIMED
        for kb in sizes
        if s != THEN
    ]
    seeds, some = (5, 3) if full else (2, 2)
    return {
        "dc": Experiment(points, measure, seeds),
        "dc settings": Experiment(varied, measure, some),
    }


SETTINGS = [Setting(way, {"dc": overlay("dc settings", setting=way)}) for way in WAYS]


def _times(frame: pl.DataFrame, qdisc: str, **at: Any) -> npt.NDArray[np.float64]:
    """Return the times of an answer (s) by seed."""
    return values(frame, "at_least_s", qdisc=qdisc, **at).astype(float)


def _faster(
    runs: Runs, who: tuple[str, ...] = TODAY, one: str = "codel", others: tuple[str, ...] = OLD
) -> list[Compared]:
    """C7, C8: the mean time of an answer is below the others', by sender and size.

    In a run in which no query finished the time is at least the run's. Fails wrongly: if the run
    is too short for both. Passes wrongly: on a difference that is significant but too small to
    matter; answers of unfinished queries are not counted, which spares the slower discipline.
    """
    frame = runs["dc"]
    return [
        less(
            At(s, f"{kb} kB: below {LABELS[other]}", "time of an answer", "ms", 1e3),
            _times(frame, one, sender=s, kB=kb),
            _times(frame, other, sender=s, kB=kb),
        )
        for s in there(frame, who)
        for kb in sorted(frame["kB"].unique().to_list())
        for other in others
    ]


CLAIMS = [
    Claim(
        "005-C7", "CoDel in data centres: answers arrive sooner with CoDel than with DropTail and "
        "RED.", "dc", "up to 65 and 35 % sooner",
        "Mean time of an answer of 10 and 100 kB, 40 servers; at least the run's 500 ms if no "
        f"query finished. {ALL} {PAIRS}",
        partial(_faster), ("dc",),
        why="RED is faster with 100 kB, DropTail often as fast",
    ),
    Claim(
        "005-C8", "Today: answers arrive sooner with FQ-CoDel than with CoDel.", "dc",
        "(not in the paper)",
        f"As C7. {ALL} {PAIRS}",
        partial(_faster, one="fq_codel", others=("codel",)), ("dc",),
        why="with 100 kB the answers compete with each other",
    ),
]  # fmt: skip

FEW = ("cubic", "bbr", "bbr3", "cubic+bbr")
FACTS = {
    f"dc-{q}-{kb}": by_sender("dc", "afct_s", "ms", 1e3, who=FEW, qdisc=q, kB=kb)
    for q in CLAIMED
    for kb in SIZES
}

STATED = {"droptail": 1 / (1 - 0.65), "red": 1 / (1 - 0.35)}
"""The largest times relative to CoDel's that follow from the paper's 65 and 35 %."""


@figure("dc", "CoDel in data centres, 10 kB from 40 servers: time of an answer, relative to "
        "CoDel's", needs=["dc"], size=(9, 4.4))  # fmt: skip
def drawn(runs: Runs, ax: "Axes") -> None:
    """Draw each discipline's time over CoDel's with the same sender and seed."""
    frame = runs["dc"].filter(pl.col("kB") == 10)
    base = frame.filter(pl.col("qdisc") == "codel").select("sender", "seed", base="afct_s")
    ratio = (pl.col("afct_s") / pl.col("base")).alias("ratio")
    frame = frame.join(base, on=["sender", "seed"]).with_columns(ratio)
    ax.axhline(1, color="#555555", lw=0.8, zorder=0.5)
    stated_values(ax, list(LABELS), STATED, "paper, largest of all sizes")
    dots(ax, frame, "ratio", LABELS, log=True, empty="no query finished")
    ax.set(ylabel="time of an answer / CoDel's")
