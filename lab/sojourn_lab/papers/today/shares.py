"""CUBIC's share of a link next to BBR, BBRv3 and Prague, on the dumbbell."""

from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from sojourn._util.units import short
from sojourn_lab.papers.today.drawing import dots
from sojourn_lab.papers.today.drr import LABELS, RATES
from sojourn_lab.papers.today.rules import At, Compared, inside, less, one
from sojourn_lab.papers.today.senders import MIXTURES, NAMES, Table, there
from sojourn_lab.reproduction.claims import Claim, Runs, values
from sojourn_lab.reproduction.paper import figure, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HALF = (45, 55)
"""Shares of the bandwidth that count as half, %."""

THIRDS = (100 / 3, 200 / 3)
"""Shares within a factor of two, %."""
FAIR = ("fq_codel", "cake")


def _half(runs: Runs, who: tuple[str, ...] = MIXTURES) -> list[Compared]:
    """C16: CUBIC has 45 to 55 % of the FTPs' bandwidth under FQ-CoDel and CAKE.

    Fails wrongly: a TCP that does not fill its share leaves it to the other. Passes wrongly: with
    equal round-trip times; C11 has different ones.
    """
    frame = runs["drr"]
    mixed = [one for one in there(frame, who) if one in MIXTURES]
    return [
        inside(At(s, f"{LABELS[q]}, {r} Mbit/s", "CUBIC's share", "%", 100),
               values(frame, "share", sender=s, qdisc=q, rate=r).astype(float), *HALF)
        for s in mixed
        for q in FAIR
        for r in sorted(frame["rate"].unique().to_list())
    ]  # fmt: skip


def _l4s(runs: Runs, who: tuple[str, ...] = ("cubic+prague",)) -> list[Compared]:
    """C17: DualPI2: CUBIC has a third to two thirds next to Prague, whose delay is a quarter.

    Fails wrongly: Prague does not depend on the round-trip time, CUBIC does. Passes wrongly: at 2
    Mbit/s a packet takes 4 ms, so that the delay of a packet behind another is most of it.
    """
    frame, parts = runs["drr"], []
    for s in [name for name in there(frame, who) if name == "cubic+prague"]:
        for r in sorted(frame["rate"].unique().to_list()):
            at = {"sender": s, "qdisc": "dualpi2", "rate": r}
            waits = [values(frame, one, **at).astype(float) for one in ("second_s", "first_s")]
            parts += [
                inside(At(s, f"{r} Mbit/s: CUBIC's share", "CUBIC's share", "%", 100),
                       values(frame, "share", **at).astype(float), *THIRDS),
                less(At(s, f"{r} Mbit/s: Prague's delay below a quarter of CUBIC's",
                        "Prague's delay against a quarter of CUBIC's", "ms", 1e3),
                     waits[0], waits[1] / 4),
            ]  # fmt: skip
    return parts


CLAIMS: list[Claim] = [
    Claim(
        "005-C16", "Today: FQ-CoDel and CAKE give CUBIC half of the bandwidth next to BBR, BBRv3 "
        "and Prague.", "shares", "(not in the paper)",
        "Two FTPs of each, 2, 4 and 10 Mbit/s: CUBIC's share of the goodput is 45 to 55 %, with "
        "its whole interval.",
        partial(_half), ("drr",),
        why="under CAKE CUBIC leaves part of its share to Prague",
    ),
    Claim(
        "005-C17", "Today: DualPI2 shares a link between CUBIC and Prague within a factor of two, "
        "at a quarter of the delay for Prague.", "shares", "(not in the paper)",
        "Two FTPs of each, 2, 4 and 10 Mbit/s; CUBIC without ECN in the classic queue, Prague in "
        "the other. CUBIC's share is a third to two thirds, with its whole interval; Prague's mean "
        "delay is below a quarter of CUBIC's. Paired by seed.",
        partial(_l4s), ("drr",),
        why="Prague takes more at 10 Mbit/s; slow links delay both",
    ),
]  # fmt: skip

L4S: Table = {"sender": "cubic+prague", "qdisc": "dualpi2", "rate": RATES[-1]}
FACTS = {
    f"share-{q}-{s}": one("drr", "share", "%", 100, sender=s, qdisc=q, rate=RATES[-1])
    for q in LABELS
    for s in MIXTURES
} | {
    f"dualpi2-{name}": one(
        "drr", column, "ms", 1e3, sender="cubic+prague", qdisc="dualpi2", rate=10
    )
    for name, column in (("cubic", "first_s"), ("prague", "second_s"))
}


@figure("shares", "CUBIC's share of the FTPs' bandwidth, 10 Mbit/s", needs=["drr"], size=(9, 4))
def drawn(runs: Runs, ax: "Axes") -> None:
    """Draw CUBIC's share in each mixture; today's disciplines on a grey ground."""
    ax.axhline(50, color="#555555", lw=0.8, zorder=0.5)
    dots(ax, runs["drr"].filter(pl.col("rate") == 10), "share", LABELS, scale=100, who=MIXTURES)
    ax.set(ylabel="CUBIC's share, %", ylim=(0, 100))


@table("shares", "Mixtures: CUBIC's share of the bandwidth, and delays of both TCPs", needs=["drr"])
def shares_table(runs: Runs) -> pl.DataFrame:
    """Tabulate CUBIC's share by rate, and the mean queueing delays of both at the highest one."""
    frame, rows = runs["drr"], []
    rates = [r for r in RATES if r in set(frame["rate"])]

    def text(column: str, s: str, q: str, r: int, scale: float, unit: str) -> str:
        every = frame.filter(sender=s, qdisc=q, rate=r)[column].to_numpy().astype(float)
        return f"{short(scale * float(every.mean()))} {unit}" if len(every) else ""

    for s in there(frame, MIXTURES):
        for q in LABELS:
            shares = (text("share", s, q, r, 100, "%") for r in rates)
            waits = (text(one, s, q, rates[-1], 1e3, "ms") for one in ("first_s", "second_s"))
            rows.append([NAMES[s], LABELS[q], *shares, *waits])
    heads = ["senders", "discipline", *(f"share, {r} Mbit/s" for r in rates)]
    heads += ["CUBIC's delay", "the other's delay"]
    return pl.DataFrame(rows, schema=heads, orient="row")
