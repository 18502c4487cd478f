"""Figures of the paper on EWFQ. Fairness is drawn as 1 - J, since all indices are near 1."""

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from matplotlib.ticker import FuncFormatter, NullFormatter

from sojourn.plotting.lines import MARKERS, lines, style
from sojourn.plotting.run import DASHES, legend
from sojourn.result.statistics import interval
from sojourn_lab.papers.ewfq.experiments import JUDGED, LAWS, NODE_SCHEMES, WINDOWS
from sojourn_lab.papers.ewfq.runs import AS_CHOSEN, FLOWS, MEMBERS, NAMES
from sojourn_lab.papers.ewfq.tables import NS2_FQ, with_settings
from sojourn_lab.reproduction.claims import Runs, values
from sojourn_lab.reproduction.drawings import topology
from sojourn_lab.reproduction.paper import figure
from sojourn_lab.reproduction.theirs import level, ns2, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STATED = {
    ("Uniform", "ewfq"): 0.9999, ("Uniform", "wfq"): 0.9998, ("Uniform", "wfq_varied"): 0.9963,
    ("Varied", "ewfq"): 0.9978, ("Varied", "wfq"): 0.9733, ("Varied", "wfq_varied"): 0.9765,
}  # fmt: skip
"""Jain's indices that the paper states."""
UNFAIRNESS = "1 - J (0: fair)"
FAIR = 1e-5
"""Smallest 1 - J that figures 2 and 3 distinguish from 0."""
WIDE = (9.0, 3.4)


@figure("1", "Own drawing of the network: Uniform or Varied", needs=(), size=(6.4, 2.4))
def figure_1(_: Runs, ax: "Axes") -> None:
    """Draw the topology of figure 1."""
    delays = {"TCP s1": "10 or 50", "TCP s2": "10 or 100", "UDP s3": "1"}
    nodes = {name: (0.0, 2.0 - n) for n, name in enumerate(delays)}
    nodes |= {"R1": (4.2, 1.0), "R2": (7.2, 1.0), "receivers": (9.4, 1.0)}
    links = [(name, "R1", f"10 Mbit/s, {delay} ms") for name, delay in delays.items()]
    links += [("R1", "R2", "5 Mbit/s, 1 ms"), ("R2", "receivers", "1 ms")]
    topology(ax, nodes, links, [("R1", "R2")])


def _bars(runs: Runs, ax: "Axes", name: str) -> None:
    """Draw the bandwidth of each flow under each discipline, and the unfairness on the right."""
    rows = runs["nodes"].filter(pl.col("network") == name)
    for n, scheme in enumerate(NODE_SCHEMES):
        intervals = [interval(values(rows, f"s{i}", qdisc=scheme)) for i in (1, 2, 3)]
        ax.bar(
            [i + (n - 1) * 0.25 for i in range(3)],
            [one.mean for one in intervals],
            0.23,
            yerr=[one.half for one in intervals],
            color=style(n)["color"],
            error_kw={"elinewidth": 0.8, "capsize": 2},
        )
    delays = (10, 10) if name == "Uniform" else (50, 100)
    ax.set_axisbelow(True)
    labels = [f"s{i + 1}, {2 * (delay + 2)} ms" for i, delay in enumerate(delays)]
    ax.set_xticks(range(3), [*labels, "s3, UDP"])
    ax.axhline(5 / 3, color="#555555", lw=0.8, ls=":")
    ax.set(ylabel="bandwidth, Mbit/s", ylim=(0, 2.2))
    grid = ax.figure.add_gridspec(1, 2, width_ratios=(3, 2))
    ax.set_subplotspec(grid[0])
    _indices(runs, ax.figure.add_subplot(grid[1]), name)


def _indices(runs: Runs, ax: "Axes", name: str) -> None:
    """Draw 1 - J of each run, its mean, and the paper's."""
    rows = runs["nodes"].filter(pl.col("network") == name)
    for n, scheme in enumerate(NODE_SCHEMES):
        each, look = np.maximum(FAIR, 1 - values(rows, "jain", qdisc=scheme)), style(n)
        ax.plot([n] * len(each), each, ls="", marker=".", ms=3, color=look["color"], alpha=0.6)
        ax.plot([n], [each.mean()], ls="", marker=look["marker"], ms=6, color=look["color"],
                label=NAMES[scheme])  # fmt: skip
        points(ax, [n], [1 - STATED[name, scheme]], n)
    ax.plot([], [], ls="", marker=".", ms=3, color="#555555", label="one run")
    ax.set_xticks(range(3), ["EWFQ", "WFQ,\neven", "WFQ,\n15/5/10"])
    ax.set(yscale="log", ylabel="1 - J, at least 0.00001", xlim=(-0.6, 2.6), title="unfairness")
    ax.set_ylim(FAIR / 2, 0.1)
    plain(ax)
    legend(ax)


@figure("2", "Uniform network, 30 kB: bandwidth of each flow (dotted: a third)", needs=["nodes"],
        size=WIDE)  # fmt: skip
def figure_2(runs: Runs, ax: "Axes") -> None:
    """Draw figure 2."""
    _bars(runs, ax, "Uniform")


@figure("3", "Varied network, 30 kB: bandwidth of each flow (dotted: a third)", needs=["nodes"],
        size=WIDE)  # fmt: skip
def figure_3(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3."""
    _bars(runs, ax, "Varied")


def _flows(runs: Runs, ax: "Axes", scheme: str) -> None:
    rows = runs["sweep"].filter(pl.col("qdisc") == scheme)
    each = rows.unpivot(list(FLOWS), index=["kb", "seed"], variable_name="flow")
    lines(ax, each, "kb", "value", by="flow", names=FLOWS)
    ax.axhline(2, color="#555555", lw=0.8, ls=":")
    ax.set(xlabel="buffer, kB", ylabel="bandwidth, Mbit/s", ylim=(0, 2.6), xlim=(0, 155))


@figure("4a", "WFQ: bandwidth of each flow (dotted: a fifth)", needs=["sweep"])
def figure_4a(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4a."""
    _flows(runs, ax, "wfq")


@figure("4b", "EWFQ: bandwidth of each flow (dotted: a fifth)", needs=["sweep"])
def figure_4b(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4b."""
    _flows(runs, ax, "ewfq")


def _unfairness(frame: pl.DataFrame, ax: "Axes") -> None:
    """Draw 1 - J against the buffer, a line per discipline."""
    unfair = frame.with_columns(unfair=1 - pl.col("jain"))
    lines(ax, unfair, "kb", "unfair", by="qdisc", names=NAMES)
    _axes(ax)


def plain(ax: "Axes") -> None:
    """Write the powers of ten of a logarithmic axis as plain numbers."""
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.7f}".rstrip("0")))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _axes(ax: "Axes") -> None:
    ax.set(xlabel="buffer, kB", ylabel=UNFAIRNESS, xlim=(0, 155), yscale="log")
    plain(ax)


@figure("4c", "Unfairness of the five sources", needs=["sweep"])
def figure_4c(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4c, as 1 - J; "near 1" is drawn at our limit of 0.005."""
    _unfairness(runs["sweep"], ax)
    ns2(ax, list(NS2_FQ), [1 - index for index, _ in NS2_FQ.values()], 1, "ns-2's FQ")
    points(ax, [5, 10, 30], [0.02, 0.005, 0.005], 0, "paper, at most")


@figure("4d", "Total bandwidth", needs=["sweep"])
def figure_4d(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4d; the paper states orders, drawn as shaded ranges, and no numbers."""
    _total(runs["sweep"], ax)
    ns2(ax, list(NS2_FQ), [mbps for _, mbps in NS2_FQ.values()], 1, "ns-2's FQ")
    ax.axvspan(0, 10, color="#e8e8e8", lw=0, zorder=0, label="paper: EWFQ below WFQ")
    ax.axvspan(30, 155, color="#f4f4f4", lw=0, zorder=0, label="paper: EWFQ equal, then above")
    legend(ax)


def _total(frame: pl.DataFrame, ax: "Axes") -> None:
    lines(ax, frame, "kb", "total", by="qdisc", names=NAMES)
    ax.set(xlabel="buffer, kB", ylabel="total bandwidth, Mbit/s", xlim=(0, 155), ylim=(7.5, 10.1))


def _with_others(runs: Runs) -> pl.DataFrame:
    return pl.concat([runs["sweep"], runs["others"]], how="diagonal_relaxed")


@figure("4c-others", "Unfairness, with other schedulers", needs=["sweep", "others"])
def figure_4c_others(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4c with the schedulers that the paper leaves out."""
    _unfairness(_with_others(runs), ax)


@figure("4d-others", "Total bandwidth, with other schedulers", needs=["sweep", "others"])
def figure_4d_others(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4d with the schedulers that the paper leaves out."""
    _total(_with_others(runs), ax)


@figure("4c-TCPs", "Unfairness by the number of TCPs per source", needs=["sweep", "sweep settings"])
def figure_4c_tcps(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4c for sources of several TCPs; a discipline keeps its colour."""
    frame = with_settings(runs)
    counts = {AS_CHOSEN: "1 TCP"} | {f"{n} TCPs per source": f"{n} TCPs" for n in (5, 10)}
    ran = set(frame["setting"])
    for n, scheme in enumerate(JUDGED):
        for k, (setting, words) in enumerate(counts.items()):
            if setting not in ran:
                continue
            own = {"setting": setting, "qdisc": scheme}
            xs = JUDGED[scheme]
            intervals = [interval(1 - values(frame, "jain", kb=kb, **own)) for kb in xs]
            ax.errorbar(
                xs,
                [one.mean for one in intervals],
                yerr=[one.half for one in intervals],
                label=f"{NAMES[scheme].split(',')[0]}, {words}",
                capsize=2,
                elinewidth=0.8,
                **style(n) | {"ls": DASHES[k], "marker": MARKERS[k]},
            )
    _axes(ax)
    ax.set_ylim(bottom=3e-4)
    legend(ax)


LOSSES = {
    "tail": "tail drop, room for 1 packet",
    "3/8": "random loss, 1 / (3/8 P²)",
    "2/3": "random loss, 1 / (2/3 P²)",
}


@figure("C11", "One TCP: its rate over R (P packets per RTT)", needs=["single"])
def figure_c11(runs: Runs, ax: "Axes") -> None:
    """Draw the rate of a single TCP at both drop rates, and behind a queue of one packet."""
    share = runs["single"].with_columns((pl.col("window") / pl.col("P")).alias("share"))
    lines(ax, share, "P", "share", by="case", names=LOSSES)
    for n, stated in enumerate((0.75, 0.75, 1.0)):
        points(ax, [WINDOWS[2]], [stated], n)
    ax.set(xlabel="P, packets per RTT", ylabel="rate / R", xscale="log", ylim=(0, 1.3))
    ax.set_xticks(WINDOWS, [str(one) for one in WINDOWS])
    ax.minorticks_off()


@figure("C12", "n TCPs in a class whose share is 100 packets per RTT", needs=["classes"])
def figure_c12(runs: Runs, ax: "Axes") -> None:
    """Draw the bandwidth of the class at drop rates d, n d and n² d."""
    share = runs["classes"].with_columns((pl.col("window") / 100).alias("share"))
    lines(ax, share, "n", "share", by="law", names=list(LAWS))
    level(ax, 1)
    ax.set(xlabel="TCPs in the class, n", ylabel="bandwidth of the class over its share")
    ax.set(xscale="log", yscale="log", ylim=(0.7, 12))
    ax.set_xticks(MEMBERS, [str(n) for n in MEMBERS])
    ax.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    ax.minorticks_off()
