"""CoDel against DRR with today's senders: delay, drops, fairness."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sojourn.result.result import Result
from sojourn_lab.papers.codel_vs_drr.runs import CODEL, DRR, dumbbell
from sojourn_lab.papers.today.drawing import dots, stated_values
from sojourn_lab.papers.today.rules import ALL, PAIRS, At, Compared, less, not_worse, one
from sojourn_lab.papers.today.senders import (
    DISCIPLINES,
    EVERY,
    MIXTURES,
    SENDERS,
    THEN,
    TODAY,
    Table,
    assigned,
    marking,
    there,
)
from sojourn_lab.reproduction.claims import Claim, Runs, values
from sojourn_lab.reproduction.paper import Experiment, Point, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RATES = (2, 4, 10)
QDISCS: dict[str, Table] = {
    "codel": CODEL,
    "drr": DRR,
    **{name: {"name": name, "limit": "1000p"} for name in DISCIPLINES},
}
QDISCS["cake"]["isolation"] = "flows"
LABELS = {"codel": "CoDel", "drr": "DRR", **DISCIPLINES}
FAIR = 0.01
"""Tolerance of Jain's index."""

CLAIMED, SHARED = ("codel", "drr", "fq_codel"), ("cake", "dualpi2")
"""Disciplines that run at all rates with all senders, and with mixtures; others at 10 Mbit/s."""

OF_ECN = ("codel", *DISCIPLINES)
"""Disciplines that can mark."""


def _scenario(sender: str, qdisc: str, rate: int, seconds: int) -> Table:
    """Return the paper's dumbbell with other senders."""
    tree = dumbbell(marking(QDISCS[qdisc], sender), rate)
    flows = assigned(tree["flows"], sender)
    mixed = sender != THEN and len(SENDERS[sender].tcps) > 1
    return {**tree, "flows": flows, "duration": f"{seconds}s", "packet_log": mixed}


def measure(result: Result) -> dict[str, Any]:
    """Keep queueing delay, drops, marks and fairness of one way; shares and delays in mixtures.

    `share` is the first TCP's share of the FTPs' goodput; `first_s` and `second_s` are the mean
    queueing delays of the data packets of the first and the second TCP.
    """
    link = result.links["forward"]
    counted = float(result.scenario["duration"].removesuffix("s")) - 10
    ftps = {name: f for name, f in result.flows.items() if f.group.startswith("ftp-forward")}
    x = np.asarray([f.goodput_bps for f in ftps.values()], dtype=float)
    kept = {
        "wait_s": link.sojourn_mean_s,
        "drops_per_s": link.dropped_packets / counted,
        "marks_per_s": link.marked_packets / counted,
        "jain": float(x.sum() ** 2 / (len(x) * (x**2).sum())),
        "utilisation": link.utilisation,
        "share": None,
        "first_s": None,
        "second_s": None,
    }
    groups = list(dict.fromkeys(f.group for f in ftps.values()))
    if len(groups) > 1:
        own = np.asarray([f.group == groups[0] for f in ftps.values()])
        kept["share"] = float(x[own].sum() / x.sum())
        kept["first_s"], kept["second_s"] = (_delay(result, one) for one in groups)
    return kept


def _delay(result: Result, group: str) -> float:
    """Return the mean queueing delay of the packets of a group that were sent."""
    log = result.links["forward"].packet_log
    flows = [n for n, f in enumerate(result.flows.values()) if f.group == group]
    mine = (log.fate == 0) & (log.arrived_s >= 10) & np.isin(log.flow, flows)
    return float((log.left_s - log.arrived_s)[mine].mean())


def experiment(full: bool) -> Experiment:
    """Return the runs: sender, discipline, rate in Mbit/s."""
    rates, seconds = (RATES, 100) if full else (RATES[::2], 25)
    points: list[Point] = [
        ({"sender": s, "qdisc": q, "rate": r}, _scenario(s, q, r, seconds))
        for s in EVERY
        for q in QDISCS
        for r in rates
        if r == RATES[-1] or q in CLAIMED or (q in SHARED and s in MIXTURES)
    ]
    return Experiment(points, measure, 5 if full else 2)


def _rates(frame: pl.DataFrame) -> list[int]:
    return sorted(frame["rate"].unique().to_list())


def _less(
    runs: Runs,
    who: tuple[str, ...] = TODAY,
    *,
    at: tuple[str, str, str, float],
    one: str,
    other: str,
) -> list[Compared]:
    """C1, C2: a mean of one discipline is below the other's, by sender and rate.

    Fails wrongly: if DRR's buffer, 25 kB in ns-2, is larger than the paper's; if seeds are too few
    for rare drops. Passes wrongly: on a difference that is significant but too small to matter.
    """
    frame, (column, quantity, unit, scale) = runs["drr"], at
    return [
        less(
            At(s, f"{r} Mbit/s", quantity, unit, scale),
            values(frame, column, sender=s, qdisc=one, rate=r),
            values(frame, column, sender=s, qdisc=other, rate=r),
        )
        for s in there(frame, who)
        for r in _rates(frame)
    ]


DELAY = ("wait_s", "delay", "ms", 1e3)
DROPS = ("drops_per_s", "drops", "/s", 1.0)


def _both(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Compared]:
    """C3: FQ-CoDel's delay below DRR's, its fairness among FTPs at most 0.01 below.

    Fails wrongly: if the start of connections, which is counted from 10 s on, is unfair. Passes
    wrongly: fairness among four equal paths is easy; other round-trip times are in C11.
    """
    frame, parts = runs["drr"], []
    for s in there(frame, who):
        for r in _rates(frame):
            ours, theirs = ({"sender": s, "rate": r, "qdisc": q} for q in ("fq_codel", "drr"))
            parts += [
                less(At(s, f"{r} Mbit/s: delay", "delay", "ms", 1e3),
                     values(frame, "wait_s", **ours), values(frame, "wait_s", **theirs)),
                not_worse(At(s, f"{r} Mbit/s: Jain's index", "Jain's index"),
                          values(frame, "jain", **ours), values(frame, "jain", **theirs), FAIR),
            ]  # fmt: skip
    return parts


def _marks_for_drops(runs: Runs, who: tuple[str, ...] = ("ecn",)) -> list[Compared]:
    """C15: with ECN fewer than a tenth of CUBIC's drops, and delay at most 1 ms more.

    Acks and the UDP source cannot be marked, so their drops remain. Fails wrongly: with few drops
    without ECN a tenth is less than one flow's start. Passes wrongly: delay is a mean of all
    packets.
    """
    frame, parts = runs["drr"], []
    for s in [name for name in there(frame, who) if name == "ecn"]:
        for q in OF_ECN:
            at = {"qdisc": q, "rate": RATES[-1]}
            ours, theirs = ({"sender": one, **at} for one in (s, "cubic"))
            drops = [values(frame, "drops_per_s", **one) for one in (ours, theirs)]
            parts += [
                less(At(s, f"{LABELS[q]}: a tenth of the drops", "drops against a tenth", "/s"),
                     drops[0], drops[1] / 10),
                not_worse(At(s, f"{LABELS[q]}: delay", "delay", "ms", 1e3),
                          values(frame, "wait_s", **ours), values(frame, "wait_s", **theirs), 1,
                          sign=-1),
            ]  # fmt: skip
    return parts


CLAIMS = [
    Claim(
        "005-C1", "CoDel against DRR: CoDel's queueing delay is smaller, up to 10 Mbit/s.", "drr",
        "less at 2, 4 and 10 Mbit/s", f"Mean sojourn time of all packets. {ALL} {PAIRS}",
        partial(_less, at=DELAY, one="codel", other="drr"), ("drr",),
        why="BBR ignores drops; DRR's 25 kB bound its queue",
    ),
    Claim(
        "005-C2", "CoDel against DRR: DRR drops less.", "drr",
        "less at every rate", f"Drops per second one way. {ALL} {PAIRS}",
        partial(_less, at=DROPS, one="drr", other="codel"), ("drr",),
    ),
    Claim(
        "005-C3", "Today: FQ-CoDel has less delay than DRR, and its fairness.", "drr",
        "(not in the paper)",
        f"Mean sojourn time. {PAIRS} Jain's index of four FTPs: the whole interval of the "
        f"difference is at most 0.01 below DRR's. {ALL}",
        partial(_both), ("drr",),
        why="BBR keeps a queue; with Prague the delay varies",
    ),
    Claim(
        "005-C15", "Today: with ECN the AQMs drop less than a tenth of CUBIC's packets, at no more "
        "delay.", "drr", "(not in the paper)",
        "CUBIC with ECN against CUBIC, under CoDel and today's five, at 10 Mbit/s. Drops "
        f"per second are below a tenth. {PAIRS} Mean delay is at most 1 ms more.",
        partial(_marks_for_drops), ("drr",),
        why="acks and UDP cannot be marked, so they are dropped",
    ),
]  # fmt: skip

TEN: Table = {"rate": RATES[-1]}
FACTS = {
    f"{name}-{q}-{s}": one("drr", column, unit, scale, sender=s, qdisc=q, **TEN)
    for name, (column, unit, scale) in {
        "delay": ("wait_s", "ms", 1e3),
        "drops": ("drops_per_s", "/s", 1.0),
        "jain": ("jain", "", 1.0),
    }.items()
    for q in CLAIMED
    for s in TODAY
}
"""One mean at 10 Mbit/s for each measure, discipline and sender."""

NODE_MS = 10.8
"""Propagation and transmission of a packet of 1000 bytes at 10 Mbit/s, in ms."""

STATED = {"codel": 30 - NODE_MS, "drr": 40 - NODE_MS}
"""The paper's largest delays from node to node at 10 Mbit/s, without these, in ms."""


@figure("drr", "CoDel against DRR, 10 Mbit/s: mean queueing delay", needs=["drr"], size=(9, 4.4))
def drawn(runs: Runs, ax: "Axes") -> None:
    """Draw the delay under each discipline at the highest rate; today's on a grey ground."""
    stated_values(ax, list(LABELS), STATED, "paper: largest delay of a packet")
    dots(ax, runs["drr"].filter(pl.col("rate") == 10), "wait_s", LABELS, scale=1e3, log=True)
    ax.set(ylabel="mean queueing delay, ms")
