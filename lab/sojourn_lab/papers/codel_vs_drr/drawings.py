"""Figures and tables of `codel_vs_drr`."""

from typing import TYPE_CHECKING, Any

import polars as pl

from sojourn.plotting.lines import lines, style
from sojourn.plotting.run import legend
from sojourn_lab.papers.codel_vs_drr.runs import CHANGES, COUNTS, NAMES, RATES
from sojourn_lab.reproduction.claims import Runs, mean
from sojourn_lab.reproduction.drawings import topology
from sojourn_lab.reproduction.paper import figure, table
from sojourn_lab.reproduction.parts import short
from sojourn_lab.reproduction.theirs import boxes, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RANGES = {
    ("codel", "rate", 2): (20, 50), ("codel", "rate", 10): (10, 30), ("drr", "rate", 2): (50, 120),
    ("drr", "rate", 10): (10, 40), ("codel", "mtu", 500): (10, 30),
    ("codel", "mtu", 1500): (20, 50), ("drr", "mtu", 500): (50, 110),
    ("drr", "mtu", 1500): (50, 150),
}  # fmt: skip
"""Ranges of delays in ms that the paper states, by discipline, axis and place."""

DROPS = {
    ("codel", "rate", 2): 12, ("codel", "rate", 100): 16, ("drr", "rate", 2): 7,
    ("drr", "rate", 100): 4, ("codel", "mtu", 500): 11, ("codel", "mtu", 1500): 14,
    ("drr", "mtu", 500): 4, ("drr", "mtu", 1500): 6,
}  # fmt: skip
"""Drops per second that the paper states."""


def _ranges(frame: pl.DataFrame, x: str, ax: "Axes", unit: str) -> None:
    """Draw the range of delays from node to node, disciplines side by side."""
    places = sorted(frame[x].unique().to_list())
    for n, (name, label) in enumerate(NAMES.items()):
        where = [i + (n - 0.5) * 0.4 for i in range(len(places))]
        low = [1e3 * mean(frame, "data_low_s", qdisc=name, **{x: one}) for one in places]
        high = [1e3 * mean(frame, "data_high_s", qdisc=name, **{x: one}) for one in places]
        tall = [b - a for a, b in zip(low, high, strict=True)]
        hatch: dict[str, Any] = {"hatch": "///", "ec": "white", "lw": 0} if n else {}
        ax.bar(where, tall, 0.16, bottom=low, color=style(n)["color"], label=label, **hatch)
        stated = [(at, RANGES[name, x, one]) for at, one in zip(where, places, strict=True)
                  if (name, x, one) in RANGES]  # fmt: skip
        boxes(ax, [at - 0.15 for at, _ in stated], [ends for _, ends in stated])
    ax.set_axisbelow(True)
    ax.set_xticks(range(len(places)), [str(one) for one in places])
    ax.set(xlabel=f"{x}, {unit}", ylabel="delay of FTP data, ms", ylim=(0, None))
    legend(ax)


def _drops(frame: pl.DataFrame, x: str, ax: "Axes", unit: str) -> None:
    """Draw packets dropped per second against `x`, evenly spaced as in the paper."""
    places = sorted(frame[x].unique().to_list())
    index = pl.col(x).replace_strict(places, range(len(places))).alias("place")
    lines(
        ax,
        frame.with_columns(index),
        "place",
        "drops_per_s",
        by="qdisc",
        names=NAMES,
    )
    for n, name in enumerate(NAMES):
        stated = {at: one for (q, axis, at), one in DROPS.items() if (q, axis) == (name, x)}
        points(ax, [places.index(at) for at in stated], list(stated.values()), n)
    ax.set_xticks(range(len(places)), [str(one) for one in places])
    ax.set(xlabel=f"{x}, {unit}", ylabel="dropped, packets/s", ylim=(0, None))


@figure(
    "network", "Own drawing of the dumbbell, with our round-trip times", needs=(), size=(6.4, 2.2)
)
def figure_0(_: Runs, ax: "Axes") -> None:
    """Draw the topology."""
    nodes = {"FTPs ": (0.0, 1.0), "CBR ": (0.0, 0.0), "router 1": (2.0, 0.5)}
    nodes |= {"router 2": (6.0, 0.5), " FTPs": (8.0, 1.0), " CBR": (8.0, 0.0)}
    links = [(one, "router 1", "5 ms" if one == "FTPs " else "") for one in ("FTPs ", "CBR ")]
    links += [("router 2", one, "5 ms" if one == " FTPs" else "") for one in (" FTPs", " CBR")]
    links.append(("router 1", "router 2", "2 to 100 Mbit/s, 10 ms"))
    links.append(("router 2", "router 1", ""))
    topology(ax, nodes, links, [("router 1", "router 2"), ("router 2", "router 1")])


@figure("4.1", "Range of packet delay (5th to 95th percentile)", needs=["bandwidth"])
def figure_4_1(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4.1."""
    _ranges(runs["bandwidth"], "rate", ax, "Mbit/s")


@figure("4.2", "Packets dropped per second", needs=["bandwidth"])
def figure_4_2(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4.2."""
    _drops(runs["bandwidth"], "rate", ax, "Mbit/s")


@figure("4.3", "Range of packet delay (5th to 95th percentile), 2 Mbit/s", needs=["mtu"])
def figure_4_3(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4.3."""
    _ranges(runs["mtu"], "mtu", ax, "bytes")


@figure("4.4", "Packets dropped per second, 2 Mbit/s", needs=["mtu"])
def figure_4_4(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4.4."""
    _drops(runs["mtu"], "mtu", ax, "bytes")


NS2 = {2: (240, 2.4), 4: (110, 3.8), 10: (45, 7.0), 100: (1.8, 18)}
"""By rate in Mbit/s: mean sojourn time (ms) and drops/s of ns-2's DRR with 100 packets for all
flows, with five FTPs of other round-trip times."""


@table("ns-2", "DRR with 100 packets of 1000 bytes, compared with ns-2", needs=["changed"])
def table_ns2(runs: Runs) -> pl.DataFrame:
    """Compare our DRR of 100 kB with ns-2's."""
    rows = []
    for rate, (wait_ms, drops) in NS2.items():
        mine = {"what": "other queues", "qdisc": "drr100kB", "rate": rate}
        wait = 1e3 * mean(runs["changed"], "wait_mean_s", **mine)
        ours = mean(runs["changed"], "drops_per_s", **mine)
        rows.append((rate, wait_ms, wait, float(drops), ours))
    names = ["Mbit/s", "ns-2: mean delay, ms", "ours", "ns-2: drops/s", "ours: drops/s"]
    return pl.DataFrame(rows, schema=names, orient="row")


@table("changed", "Drops per second with one parameter changed", needs=["bandwidth", "changed"])
def table_changed(runs: Runs) -> pl.DataFrame:
    """Tabulate the effect of windows and of the number of flows on drops."""
    rows = []
    for name, label in NAMES.items():
        for rate in RATES:
            own = {"qdisc": name, "rate": rate}
            cells: list[Any] = [label, rate, str(DROPS.get((name, "rate", rate), ""))]
            cells.append(short(mean(runs["bandwidth"], "drops_per_s", **own)))
            each = [mean(runs["changed"], "drops_per_s", what=what, **own) for what in CHANGES]
            cells += [short(one) for one in each]
            rows.append(cells)
    names = ["qdisc", "Mbit/s", "paper", "here (4 FTPs)", *CHANGES]
    return pl.DataFrame(rows, schema=names, orient="row")


@figure("flows", "10 Mbit/s: drops against the number of FTPs each way", needs=["flows"])
def figure_flows(runs: Runs, ax: "Axes") -> None:
    """Draw drops per second for more disciplines than the paper's two."""
    names = {
        **NAMES,
        "drr1000p": "DRR, 1000 packets",
        "drr100kB": "DRR, 100 kB",
        "fq_codel": "FQ-CoDel",
    }
    lines(ax, runs["flows"], "flows", "drops_per_s", by="qdisc", names=names)
    ax.set(xlabel="FTPs each way", ylabel="dropped, packets/s", xscale="log", ylim=(0, None))
    ax.set_xticks(list(COUNTS), [str(n) for n in COUNTS], minor=False)
    ax.minorticks_off()
