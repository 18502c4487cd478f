"""CoDel against DRR with today's senders: delay, drops, fairness."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sojourn.result.result import Result
from sojourn_lab.papers.codel_vs_drr.runs import CODEL, DRR, dumbbell
from sojourn_lab.papers.today.common import (
    ALL,
    DISCIPLINES,
    NAMES,
    PAIRS,
    TODAY,
    Table,
    by_sender,
    dots,
    not_worse,
    only,
    senders,
    tcp,
    there,
)
from sojourn_lab.reproduction.claims import Claim, Runs, values
from sojourn_lab.reproduction.paper import Experiment, Point, figure
from sojourn_lab.reproduction.parts import Part, order

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


def _scenario(sender: str, qdisc: str, rate: int, seconds: int) -> Table:
    """Return the paper's dumbbell with other senders."""
    tree = dumbbell(QDISCS[qdisc], rate)
    for flow in tree["flows"]:
        if "tcp" in flow:
            flow["tcp"] = tcp(sender, flow["tcp"])
    return {**tree, "duration": f"{seconds}s", "packet_log": False}


def measure(result: Result) -> dict[str, Any]:
    """Keep mean queueing delay, drops per second and Jain's index of the FTPs one way."""
    link = result.links["forward"]
    counted = float(result.scenario["duration"].removesuffix("s")) - 10
    each = [f.goodput_bps for f in result.flows.values() if f.group == "ftp-forward"]
    x = np.asarray(each, dtype=float)
    return {
        "wait_s": link.sojourn_mean_s,
        "drops_per_s": link.dropped_packets / counted,
        "jain": float(x.sum() ** 2 / (len(x) * (x**2).sum())),
        "utilisation": link.utilisation,
    }


def experiment(full: bool) -> Experiment:
    """Return the runs: sender, discipline, rate in Mbit/s."""
    rates, seconds = (RATES, 100) if full else (RATES[::2], 25)
    points: list[Point] = [
        ({"sender": s, "qdisc": q, "rate": r}, _scenario(s, q, r, seconds))
        for s in senders(full)
        for q in QDISCS
        for r in rates
    ]
    return Experiment(points, measure, 5 if full else 2)


def _rates(frame: pl.DataFrame) -> list[int]:
    return sorted(frame["rate"].unique().to_list())


def _less_delay(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Part]:
    """C1: CoDel's mean queueing delay below DRR's, by sender and rate.

    Fails wrongly: if DRR's buffer, 25 kB in ns-2, is larger than the paper's. Passes wrongly: on a
    difference that is significant but too small to matter.
    """
    frame = runs["drr"]
    return [
        order(f"{NAMES[s]}, {r} Mbit/s", values(frame, "wait_s", sender=s, qdisc="codel", rate=r),
              values(frame, "wait_s", sender=s, qdisc="drr", rate=r), unit="ms", scale=1e3)
        for s in there(frame, who)
        for r in _rates(frame)
    ]  # fmt: skip


def _less_drops(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Part]:
    """C2: DRR's drops per second below CoDel's, by sender and rate.

    Fails wrongly: if seeds are too few for rare drops. Passes wrongly: as C1.
    """
    frame = runs["drr"]
    own = "drops_per_s"
    return [
        order(f"{NAMES[s]}, {r} Mbit/s", values(frame, own, sender=s, qdisc="drr", rate=r),
              values(frame, own, sender=s, qdisc="codel", rate=r), unit="/s")
        for s in there(frame, who)
        for r in _rates(frame)
    ]  # fmt: skip


def _both(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Part]:
    """C3: FQ-CoDel's delay below DRR's, its fairness among FTPs at most 0.01 below.

    Fails wrongly: if the start of connections, which is counted from 10 s on, is unfair. Passes
    wrongly: fairness among four equal paths is easy; other round-trip times are in C6.
    """
    frame, parts = runs["drr"], []
    for s in there(frame, who):
        for r in _rates(frame):
            at = {"sender": s, "rate": r}
            ours, theirs = ({**at, "qdisc": one} for one in ("fq_codel", "drr"))
            what = f"{NAMES[s]}, {r} Mbit/s"
            parts += [
                order(f"{what}: delay", values(frame, "wait_s", **ours),
                      values(frame, "wait_s", **theirs), unit="ms", scale=1e3),
                not_worse(f"{what}: Jain's index", values(frame, "jain", **ours),
                          values(frame, "jain", **theirs), FAIR),
            ]  # fmt: skip
    return parts


CLAIMS = [
    Claim(
        "005-C1", "CoDel against DRR: CoDel's queueing delay is smaller, up to 10 Mbit/s.", "drr",
        "less at 2, 4 and 10 Mbit/s", f"Mean sojourn time of all packets. {ALL} {PAIRS}",
        partial(_less_delay), ("drr",),
        why="BBR ignores drops; DRR's 25 kB bound its queue",
    ),
    Claim(
        "005-C2", "CoDel against DRR: DRR drops less.", "drr",
        "less at every rate", f"Drops per second one way. {ALL} {PAIRS}",
        partial(_less_drops), ("drr",),
        why="with BBRv3 both drop little, and seeds differ",
    ),
    Claim(
        "005-C3", "Today: FQ-CoDel has less delay than DRR, and its fairness.", "drr",
        "(not in the paper)",
        f"Mean sojourn time. {PAIRS} Jain's index of four FTPs: the whole interval of the "
        f"difference is at most 0.01 below DRR's. {ALL}",
        partial(_both), ("drr",),
        why="the FTPs of this sender differ",
    ),
]  # fmt: skip

SETTINGS = only("drr")

FACTS = {
    "drr-codel": by_sender("drr", "wait_s", "ms", 1e3, qdisc="codel", rate=10),
    "drr-drr": by_sender("drr", "wait_s", "ms", 1e3, qdisc="drr", rate=10),
    "drr-codel-drops": by_sender("drr", "drops_per_s", "/s", qdisc="codel", rate=10),
    "drr-drr-drops": by_sender("drr", "drops_per_s", "/s", qdisc="drr", rate=10),
    "drr-jain": by_sender("drr", "jain", "", qdisc="codel", rate=10),
    "drr-jain-fq": by_sender("drr", "jain", "", qdisc="fq_codel", rate=10),
}


@figure("drr", "CoDel against DRR, 10 Mbit/s: mean queueing delay", needs=["drr"], size=(7.0, 3.6))
def drawn(runs: Runs, ax: "Axes") -> None:
    """Draw the delay under each discipline at the highest rate; today's on a grey ground."""
    dots(ax, runs["drr"].filter(pl.col("rate") == 10), "wait_s", LABELS, scale=1e3)
    ax.set(ylabel="mean queueing delay, ms", ylim=(0, None))
