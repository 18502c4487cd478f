"""EWFQ with today's senders: fairness with different round-trip times, and small buffers."""

from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from sojourn.result.result import Result
from sojourn_lab.papers.ewfq import runs as old
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

OLD = {"ewfq": "EWFQ", "wfq": "WFQ", "wfq_varied": "WFQ 15/5/10 kB"}
LABELS = {**OLD, **DISCIPLINES}
NEAR = 0.005
"""Tolerance of Jain's index, as on the paper's page."""

LARGE = {"ewfq": 30, "wfq": 150, "fq_codel": 30, "cake": 30}
"""Buffers of the network with five sources, kB."""


def _scenario(sender: str, qdisc: str, where: str, kb: float, seconds: int) -> Table:
    """Return one of the paper's networks with other senders; today's disciplines have `kb` too."""
    tree = old.network(where, qdisc if qdisc in OLD else "wfq", kb)
    if qdisc not in OLD:
        # The flows have classes, which CAKE would sort into tins.
        cake: Table = {"isolation": "flows", "tins": "besteffort"}
        own = cake if qdisc == "cake" else {}
        tree["links"]["bottleneck"]["qdisc"] = {"name": qdisc, "limit": f"{kb:g}kB", **own}
    for flow in tree["flows"]:
        if "tcp" in flow:
            flow["tcp"] = tcp(sender, old.TCP)
    return {**tree, "duration": f"{seconds}s", "warmup": f"{seconds // 4}s"}


def measure(result: Result) -> dict[str, Any]:
    """Keep Jain's index of the sources and the total bandwidth in Mbit/s."""
    every = old.measure(result)
    return {"jain": every["jain"], "total": every["total"], "s1": every["s1"], "s2": every["s2"]}


def experiment(full: bool) -> Experiment:
    """Return the runs: sender, network, discipline, buffer in kB."""
    seconds = 200 if full else 40
    cases = [("Varied", q, 30) for q in LABELS] + [("Five", q, kb) for q, kb in LARGE.items()]
    points: list[Point] = [
        ({"sender": s, "network": where, "qdisc": q}, _scenario(s, q, where, kb, seconds))
        for s in senders(full)
        for where, q, kb in cases
    ]
    return Experiment(points, measure, 5 if full else 2)


def _fairer(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Part]:
    """C9: EWFQ's index in the Varied network above both forms of WFQ, by sender.

    Fails wrongly: if both are near 1, a difference of 0.001 decides. Passes wrongly: as well.
    """
    frame = runs["ewfq"].filter(pl.col("network") == "Varied")
    return [
        order(f"{NAMES[s]}: {OLD[q]} less fair", values(frame, "jain", sender=s, qdisc=q),
              values(frame, "jain", sender=s, qdisc="ewfq"))
        for s in there(frame, who)
        for q in ("wfq", "wfq_varied")
    ]  # fmt: skip


def _fifth(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Part]:
    """C10: EWFQ's index and total with 30 kB not below WFQ's with 150 kB, by sender.

    Fails wrongly: if the paper's equality is looser than 0.005 or 1 %. Passes wrongly: the UDP
    source fills the link, so totals differ little.
    """
    frame, parts = runs["ewfq"].filter(pl.col("network") == "Five"), []
    for s in there(frame, who):
        for what, slack, unit in (("jain", NEAR, ""), ("total", 0.1, "Mbit/s")):
            ours, theirs = (values(frame, what, sender=s, qdisc=q) for q in ("ewfq", "wfq"))
            name = "Jain's index" if what == "jain" else "total"
            parts.append(not_worse(f"{NAMES[s]}: {name}", ours, theirs, slack, unit=unit))
    return parts


def _without_weights(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Part]:
    """C11: FQ-CoDel's and CAKE's index at most 0.005 below EWFQ's, in both networks.

    Fails wrongly: 0.005 is strict where both are unfair. Passes wrongly: if EWFQ itself is unfair
    with a sender, it is easy to match.
    """
    frame = runs["ewfq"]
    return [
        not_worse(f"{NAMES[s]}, {where}: {LABELS[q]}",
                  values(frame, "jain", sender=s, qdisc=q, network=where),
                  values(frame, "jain", sender=s, qdisc="ewfq", network=where), NEAR)
        for s in there(frame, who)
        for where in ("Varied", "Five")
        for q in ("fq_codel", "cake")
    ]  # fmt: skip


CLAIMS = [
    Claim(
        "005-C9", "EWFQ: it is fairer than WFQ when round-trip times differ.", "ewfq",
        "0.9978 against 0.9733 and 0.9765", f"Jain's index, Varied network, 30 kB. {ALL} {PAIRS}",
        partial(_fairer), ("ewfq",),
        why="with these senders WFQ is nearly fair as well",
    ),
    Claim(
        "005-C10", "EWFQ: WFQ needs five times its buffer.", "ewfq", "150 kB for 30 kB",
        "Five sources. EWFQ's index with 30 kB is at most 0.005 below WFQ's with 150 kB, its total "
        f"at most 0.1 Mbit/s. {ALL}",
        partial(_fifth), ("ewfq",),
        why="with 150 kB WFQ is fair and full with all",
    ),
    Claim(
        "005-C11", "Today: FQ-CoDel and CAKE are as fair as EWFQ, without its model of TCP.",
        "ewfq", "(not in the paper)",
        "Both networks, 30 kB, CAKE with one tin. Jain's index is at most 0.005 below EWFQ's. "
        f"{ALL}",
        partial(_without_weights), ("ewfq",),
        why="EWFQ is nearly fair; FQ-CoDel and CAKE less so",
    ),
]  # fmt: skip

SETTINGS = only("ewfq")

FACTS = {
    f"ewfq-{q}": by_sender("ewfq", "jain", "", qdisc=q, network="Varied")
    for q in ("ewfq", "wfq", "fq_codel", "cake", "pie")
} | {
    f"ewfq-five-{q}": by_sender("ewfq", "jain", "", qdisc=q, network="Five")
    for q in ("ewfq", "wfq", "fq_codel")
}  # fmt: skip


@figure("ewfq", "EWFQ, Varied network, 30 kB: Jain's index", needs=["ewfq"], size=(7.4, 3.6))
def drawn(runs: Runs, ax: "Axes") -> None:
    """Draw the fairness under each discipline; today's on a grey ground."""
    dots(ax, runs["ewfq"].filter(pl.col("network") == "Varied"), "jain", LABELS)
    ax.set(ylabel="Jain's index")
