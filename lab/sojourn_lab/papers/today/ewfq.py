"""EWFQ with today's senders: fairness with different round-trip times, and small buffers."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn.result.result import Result
from sojourn.result.statistics import paired
from sojourn_lab.papers.ewfq import runs as old
from sojourn_lab.papers.today.drawing import dots, stated_values
from sojourn_lab.papers.today.rules import ALL, PAIRS, At, Compared, by_sender, more, not_worse, one
from sojourn_lab.papers.today.senders import (
    DISCIPLINES,
    EVERY,
    NAMES,
    THEN,
    TODAY,
    Table,
    assigned,
    there,
)
from sojourn_lab.reproduction.claims import Claim, Runs, values
from sojourn_lab.reproduction.paper import Experiment, Point, figure, table
from sojourn_lab.reproduction.parts import shape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OLD = {"ewfq": "EWFQ", "wfq": "WFQ, even buffers", "wfq_varied": "WFQ, 15/5/10 kB"}
LABELS = {**OLD, **{name: DISCIPLINES[name] for name in ("fq_codel", "cake", "pie")}}
"""Disciplines; PIE stands for today's with one queue."""

NEAR = 0.005
"""Tolerance of Jain's index, as on the paper's page."""

SLACK_MBPS = 0.1
"""Tolerance of the total bandwidth, Mbit/s."""

BUFFERS = (30, 45, 60, 90, 150)
"""Buffers of WFQ in the network with five sources, kB; the paper needs the last one."""

SMALL_KB = 30
FAIR = ("fq_codel", "cake")

CAKES: dict[str, tuple[str, Table, Table]] = {
    "FQ-CoDel": ("fq_codel", {}, {}),
    "CAKE": ("cake", {}, {}),
    "CAKE, 9.9 Mbit/s": ("cake", {"bandwidth": "9.9mbit"}, {}),
    "CAKE, packets of 1514 B": ("cake", {}, {"packet": "1514B"}),
}
"""Disciplines, their parameters, and changes of all flows: the UDP source under CAKE."""


def _scenario(
    sender: str, qdisc: str, where: str, kb: float, seconds: int, own: Table | None = None,
    flows: Table | None = None,
) -> Table:  # fmt: skip
    """Return one of the paper's networks with other senders; today's disciplines have `kb` too.

    `own` are parameters of the discipline, `flows` changes of the set-up.
    """
    scheme = qdisc if qdisc in OLD else "wfq"
    tree = old.network(where, scheme, kb, old.SetUp(**(flows or {})))
    if qdisc not in OLD:
        # The flows have classes, which CAKE would sort into tins.
        cake: Table = {"isolation": "flows", "tins": "besteffort"}
        law = {**(cake if qdisc == "cake" else {}), **(own or {})}
        tree["links"]["bottleneck"]["qdisc"] = {"name": qdisc, "limit": f"{kb:g}kB", **law}
    tree["flows"] = assigned(tree["flows"], sender)
    return {**tree, "duration": f"{seconds}s", "warmup": f"{seconds // 4}s"}


def measure(result: Result) -> dict[str, Any]:
    """Keep Jain's index of the sources, and the bandwidth of each and the total in Mbit/s."""
    each = old.measure(result)
    return {**{f"s{n}": each.get(f"s{n}") for n in range(1, 6)},
            "jain": each["jain"], "total": each["total"], "unfair": 1 - each["jain"]}  # fmt: skip


def experiments(full: bool) -> dict[str, Experiment]:
    """Return the runs: sender, network, discipline, buffer in kB; and CAKE's UDP source."""
    seconds, seeds = (200, 5) if full else (40, 2)
    cases = [("Varied", q, SMALL_KB) for q in LABELS]
    cases += [("Five", q, SMALL_KB) for q in ("ewfq", *FAIR)]
    cases += [("Five", "wfq", kb) for kb in BUFFERS]
    points: list[Point] = [
        ({"sender": s, "network": where, "qdisc": q, "kB": kb}, _scenario(s, q, where, kb, seconds))
        for s in EVERY
        for where, q, kb in cases
    ]
    cakes: list[Point] = [
        ({"case": name}, _scenario("cubic", q, "Five", SMALL_KB, seconds, own, flows))
        for name, (q, own, flows) in CAKES.items()
    ]
    return {
        "ewfq": Experiment(points, measure, seeds),
        "cake": Experiment(cakes, measure, seeds),
    }


def _fairer(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Compared]:
    """C9: EWFQ's index in the Varied network above both forms of WFQ, by sender.

    Fails wrongly: if both are near 1, a difference of 0.001 decides. Passes wrongly: as well.
    """
    frame = runs["ewfq"].filter(pl.col("network") == "Varied")
    return [
        more(At(s, OLD[q], "Jain's index"), values(frame, "jain", sender=s, qdisc="ewfq"),
             values(frame, "jain", sender=s, qdisc=q))
        for s in there(frame, who)
        for q in ("wfq", "wfq_varied")
    ]  # fmt: skip


def _five(runs: Runs, sender: str, qdisc: str, kb: int, what: str) -> npt.NDArray[np.float64]:
    frame = runs["ewfq"].filter(pl.col("network") == "Five")
    return values(frame, what, sender=sender, qdisc=qdisc, kB=kb).astype(float)


def enough(runs: Runs, sender: str, kb: int) -> bool | None:
    """Return True if WFQ with `kb` is as fair and as full as EWFQ, None if it is undecided."""
    each = []
    for what, slack in (("jain", NEAR), ("total", SLACK_MBPS)):
        gap = paired(_five(runs, sender, "wfq", kb, what),
                     _five(runs, sender, "ewfq", SMALL_KB, what))  # fmt: skip
        each.append(True if gap.low >= -slack else False if gap.high < -slack else None)
    return False if False in each else None if None in each else True


def _fifth(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Compared]:
    """C10: the smallest buffer with which WFQ is as fair and as full as EWFQ with 30 kB is 150 kB.

    The part fails if WFQ is surely as good with a smaller buffer. Fails wrongly: if the paper's
    equality is stricter than 0.005 or 0.1 Mbit/s. Passes wrongly: if WFQ with 150 kB is better
    than EWFQ, which a smaller EWFQ buffer than its own would show.
    """
    parts = []
    for s in there(runs["ewfq"], who):
        by_size = {kb: enough(runs, s, kb) for kb in BUFFERS}
        least = next((kb for kb, good in by_size.items() if good), None)
        smaller = [by_size[kb] for kb in BUFFERS[:-1]]
        holds = False if True in smaller or least is None else None if None in smaller else True
        text = f"{least} kB" if least else f"more than {BUFFERS[-1]} kB"
        at = At(s, "smallest buffer of WFQ that is enough", "buffer of WFQ", "kB")
        part = shape(at.name, holds, text, "150 kB", undecided=True)
        parts.append(at.part(part, least or np.nan, "value"))
    return parts


def _without_weights(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Compared]:
    """C11: FQ-CoDel's and CAKE's index at most 0.005 below EWFQ's, in both networks.

    Fails wrongly: 0.005 is strict where both are unfair. Passes wrongly: if EWFQ itself is unfair
    with a sender, it is easy to match.
    """
    frame = runs["ewfq"]
    return [
        not_worse(At(s, f"{where}: {LABELS[q]}", "Jain's index"),
                  values(frame, "jain", sender=s, qdisc=q, network=where, kB=SMALL_KB),
                  values(frame, "jain", sender=s, qdisc="ewfq", network=where, kB=SMALL_KB), NEAR)
        for s in there(frame, who)
        for where in ("Varied", "Five")
        for q in FAIR
    ]  # fmt: skip


CLAIMS = [
    Claim(
        "005-C9", "EWFQ: it is fairer than WFQ when round-trip times differ.", "ewfq",
        "0.9978 against 0.9733 and 0.9765", f"Jain's index, Varied network, 30 kB. {ALL} {PAIRS}",
        partial(_fairer), ("ewfq",),
        why="with these senders WFQ is nearly fair as well",
    ),
    Claim(
        "005-C10", "EWFQ: WFQ needs five times its buffer.", "ewfq buffers", "150 kB for 30 kB",
        "Five sources; EWFQ has 30 kB, WFQ 30, 45, 60, 90 or 150 kB. The smallest buffer with "
        "which WFQ's index is at most 0.005 below EWFQ's and its total at most 0.1 Mbit/s, with "
        f"the whole intervals, is 150 kB. {ALL}",
        partial(_fifth), ("ewfq",),
        why="WFQ is as good with a smaller buffer",
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


def _smallest(runs: Runs) -> str:
    """Return the smallest buffer of WFQ that is enough, by sender."""
    return ", ".join(f"{part.brief} with {NAMES[part.sender]}" for part in _fifth(runs))


def _smallest_then(runs: Runs) -> str:
    """Return the smallest buffer of WFQ that is enough with the paper's TCP."""
    return _fifth(runs, (THEN,))[0].brief


FEW = ("cubic", "bbr", "bbr3", "cubic+prague")
FACTS = {
    f"unfair-{q}": by_sender("ewfq", "unfair", "", who=FEW, qdisc=q, network="Varied")
    for q in LABELS
} | {
    "smallest": _smallest, "smallest-then": _smallest_then
} | {
    f"cake-udp-{n}": one("cake", "s5", "Mbit/s", case=case) for n, case in enumerate(CAKES)
}  # fmt: skip

STATED = {"ewfq": 1 - 0.9978, "wfq": 1 - 0.9733, "wfq_varied": 1 - 0.9765}
"""The paper's indices, as 1 - J."""


@figure("ewfq", "EWFQ, Varied network, 30 kB: unfairness, 1 - J", needs=["ewfq"], size=(9, 4.4))
def drawn(runs: Runs, ax: "Axes") -> None:
    """Draw 1 - J under each discipline; today's on a grey ground."""
    stated_values(ax, list(LABELS), STATED, "paper")
    frame = runs["ewfq"].filter(pl.col("network") == "Varied")
    dots(ax, frame, "unfair", LABELS, log=True, new=3)
    ax.set(ylabel="1 - Jain's index", ylim=(1e-5, 1))


@figure("ewfq buffers", "EWFQ, five sources: unfairness, 1 - J, of WFQ by its buffer",
        needs=["ewfq"], size=(9, 4.4))  # fmt: skip
def buffers_drawn(runs: Runs, ax: "Axes") -> None:
    """Draw 1 - J of EWFQ with 30 kB and of WFQ with each buffer."""
    frame = runs["ewfq"].filter(
        (pl.col("network") == "Five") & pl.col("qdisc").is_in(["ewfq", "wfq"])
    )
    name = pl.col("qdisc") + " " + pl.col("kB").cast(pl.String)
    names = {
        f"ewfq {SMALL_KB}": f"EWFQ {SMALL_KB} kB",
        **{f"wfq {kb}": f"WFQ {kb} kB" for kb in BUFFERS},
    }
    dots(ax, frame.with_columns(qdisc=name), "unfair", names, log=True, new=0)
    ax.set(ylabel="1 - Jain's index", ylim=(1e-5, 0.1))


SOURCES = {"s1": "RTT 8 ms", "s2": "44 ms", "s3": "204 ms", "s4": "404 ms", "s5": "UDP"}


@table("cake", "CAKE with CUBIC, five sources, 30 kB: bandwidth of each, Mbit/s", needs=["cake"])
def cake_table(runs: Runs) -> pl.DataFrame:
    """Tabulate the bandwidth of each source: under CAKE the UDP source gets nothing."""
    frame = runs["cake"]
    rows = [
        [name, *(f"{values(frame, s, case=name).astype(float).mean():.2f}" for s in SOURCES),
         f"{values(frame, 'jain', case=name).mean():.4f}"]
        for name in CAKES
    ]  # fmt: skip
    return pl.DataFrame(
        rows, schema=["discipline", *SOURCES.values(), "Jain's index"], orient="row"
    )
