"""Figures 3 to 11 of `codel_dc`."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from sojourn.plotting.lines import lines, style
from sojourn.plotting.run import legend
from sojourn.result.statistics import interval
from sojourn_lab.papers.codel_dc.experiments import COUNTS, LOADS, SIZES
from sojourn_lab.papers.codel_dc.ns2 import NS2_INCAST, NS2_POISSON, NS2_TARGETS, NS2_VARY
from sojourn_lab.papers.codel_dc.series import band, columns, gains
from sojourn_lab.papers.codel_dc.set_up import NAMES
from sojourn_lab.reproduction.claims import Runs, values
from sojourn_lab.reproduction.paper import figure
from sojourn_lab.reproduction.theirs import band as grey
from sojourn_lab.reproduction.theirs import level, ns2, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@figure("3a", "Utilisation against the target", needs=["targets"])
def utilisation_by_target(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3a, and ns-2's points."""
    names = {1: "one flow", 4: "four flows"}
    lines(ax, runs["targets"], "target", "utilisation", by="flows", names=names, scale=100)
    ns2(ax, list(NS2_TARGETS), list(NS2_TARGETS.values()), 0, "ns-2, one flow")
    points(ax, [0.15, 0.3], [96, 100], 0)
    ax.set(xlabel="target, ms", ylabel="utilisation, %", xscale="log")
    _plain(ax, (0.01, 0.03, 0.1, 0.3, 1.0))


@figure("3b", "Mean queue against the target", needs=["targets"])
def queue_by_target(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3b."""
    names = {1: "one flow", 4: "four flows"}
    lines(ax, runs["targets"], "target", "occupancy", by="flows", names=names, scale=100)
    ax.set(xlabel="target, ms", ylabel="mean queue, % of the buffer", xscale="log", ylim=(0, None))
    _plain(ax, (0.01, 0.03, 0.1, 0.3, 1.0))


def _plain(ax: "Axes", places: tuple[float, ...]) -> None:
    """Set plain numbers as the only ticks of a logarithmic axis."""
    ax.set_xticks(places, [f"{x:g}" for x in places])
    ax.minorticks_off()


@figure("4a", "40 answers of 50 kB: queue against the interval", needs=["intervals"])
def queue_by_interval(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4a."""
    lines(ax, runs["intervals"], "interval", "queue_packets", begin=2)
    ax.set(xlabel="interval, ms", ylabel="mean queue, packets", xscale="log", ylim=(0, None))
    _plain(ax, (0.1, 0.3, 1.0, 3.0, 10.0))


@figure("4b", "40 answers of 50 kB: loss against the interval", needs=["intervals"])
def loss_by_interval(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4b."""
    lines(ax, runs["intervals"], "interval", "loss", scale=100, begin=2)
    ax.set(xlabel="interval, ms", ylabel="loss, %", xscale="log", ylim=(0, None))
    _plain(ax, (0.1, 0.3, 1.0, 3.0, 10.0))


Recorded = Mapping[tuple[str, int], tuple[float, ...]]


def _ns2(
    ax: "Axes", recorded: Recorded, xs: Sequence[int], of: Callable[[tuple[float, ...]], float]
) -> None:
    """Draw results of ns-2 next to the lines of the same disciplines.

    RED with an automatic weight is left out: its average grows from query to query, and ns-2 made
    fewer (table `ns-2` compares the first queries).
    """
    for n, name in enumerate(NAMES):
        there = [x for x in xs if name != "red-auto" and (name, x) in recorded]
        if there:
            ns2(ax, there, [of(recorded[name, x]) for x in there], n)


def _ns2_gain(ax: "Axes", recorded: Recorded, xs: Sequence[int]) -> None:
    """Draw ns-2's gains in mean time over DropTail."""
    for n, name in enumerate(NAMES):
        there = [x for x in xs if name in ("red", "codel") and (name, x) in recorded]
        gain = [100 * (1 - recorded[name, x][0] / recorded["droptail", x][0]) for x in there]
        if there:
            ns2(ax, there, gain, n)


@figure("5a", "40 servers: utilisation", needs=["incast"])
def utilisation_by_size(runs: Runs, ax: "Axes") -> None:
    """Draw figure 5a."""
    lines(ax, runs["incast"], "kB", "utilisation", by="scheme", names=NAMES, scale=100)
    grey(ax, 98, 100)
    _ns2(ax, NS2_INCAST, SIZES, lambda row: row[1])
    ax.set(xlabel="kB from each server", ylabel="utilisation, %", xticks=SIZES, ylim=(0, 105))


@figure(
    "5b",
    "40 servers: gain in mean time over DropTail (size of the largest not named)",
    needs=["incast"],
)
def gain_by_size(runs: Runs, ax: "Axes") -> None:
    """Draw figure 5b."""
    _gain(runs["incast"], "kB", ax)
    level(ax, 62, "paper, largest")
    _ns2_gain(ax, NS2_INCAST, SIZES)
    ax.set(xlabel="kB from each server", xticks=SIZES)


def _gain(frame: pl.DataFrame, by: str, ax: "Axes") -> None:
    """Draw by how many per cent mean times are shorter than with DropTail."""
    there = [name for name in NAMES if name in frame["scheme"] and name != "droptail"]
    lines(ax, gains(frame, by, "droptail", there), by, "gain", by="scheme", names=NAMES)
    ax.axhline(0, color="black", lw=0.8)
    ax.set(ylabel="mean time shorter by, %")


def _bars(frame: pl.DataFrame, what: str, ax: "Axes") -> None:
    """Draw a mean in per cent for each discipline, with its interval."""
    ax.set_axisbelow(True)
    for n, (name, label) in enumerate(NAMES.items()):
        value = interval(100 * values(frame, what, scheme=name))
        ax.bar([label], value.mean, yerr=value.half, color=style(n)["color"], capsize=3, width=0.6)


@figure("6a", "40 answers of 100 kB: mean queue", needs=["incast"])
def queue_by_scheme(runs: Runs, ax: "Axes") -> None:
    """Draw the first half of figure 6."""
    _bars(runs["incast"].filter(pl.col("kB") == 100), "occupancy", ax)
    grey(ax, 0, 10)
    ax.set(ylabel="mean queue, % of the buffer")


@figure("6b", "40 answers of 100 kB: loss", needs=["incast"])
def loss_by_scheme(runs: Runs, ax: "Axes") -> None:
    """Draw the second half of figure 6."""
    _bars(runs["incast"].filter(pl.col("kB") == 100), "loss", ax)
    for name, stated in (("red", 16), ("codel", 11)):
        points(ax, [NAMES[name]], [stated], list(NAMES).index(name))
    ax.set(ylabel="loss, %")


@figure("7", "40 answers of 100 kB requested at 100 ms: flows in timeout", needs=["burst"])
def timeouts(runs: Runs, ax: "Axes") -> None:
    """Draw figure 7: flows that wait for their retransmission timer."""
    for n, (name, label) in enumerate(NAMES.items()):
        band(ax, runs["burst"], "stalled", name, n, label)
    ax.set(xlabel="time, ms", ylabel="flows in timeout", xlim=(100, 200), ylim=(0, None))
    legend(ax)


@figure("8a", "40 answers of 100 kB requested at 100 ms: drops", needs=["burst"])
def drops_of_burst(runs: Runs, ax: "Axes") -> None:
    """Draw figure 8a: drops by the AQM algorithm, and by a full buffer, of RED and CoDel."""
    for name in ("red", "codel"):
        n, label = list(NAMES).index(name), NAMES[name]
        full = columns(runs["burst"], "overflow", name)[:, -1].mean()
        band(ax, runs["burst"], "aqm", name, n, f"{label}: AQM", ls="-")
        band(ax, runs["burst"], "overflow", name, n, f"{label}: overflow ({full:.0f} in all)",
             ls="--")  # fmt: skip
    ax.set(xlabel="time, ms", ylabel="packets dropped since 100 ms", xlim=(100, 200))
    ax.set_ylim(bottom=-8)  # a line at 0 stays visible
    legend(ax)


@figure("8b", "Short flows, load 50 %: drops by the AQM", needs=["half load"])
def drops_of_flows(runs: Runs, ax: "Axes") -> None:
    """Draw figure 8b."""
    for n, (name, label) in enumerate(NAMES.items()):
        if name in ("red", "codel"):
            band(ax, runs["half load"], "aqm", name, n, label)
    ax.set(xlabel="time, ms", ylabel="packets dropped by the AQM", ylim=(0, None))
    legend(ax)


def _by_servers(runs: Runs, what: str, scale: float, ax: "Axes") -> None:
    """Draw a column for each discipline against the number of servers."""
    lines(ax, runs["servers"], "servers", what, by="scheme", names=NAMES, scale=scale)
    ax.set(xlabel="servers, 1 MB from all together", xscale="log")
    _plain(ax, COUNTS)


@figure("9a", "1 MB from n servers: utilisation", needs=["servers"])
def utilisation_by_servers(runs: Runs, ax: "Axes") -> None:
    """Draw the first half of figure 9."""
    _by_servers(runs, "utilisation", 100, ax)
    _ns2(ax, NS2_VARY, COUNTS, lambda row: row[1])
    ax.set(ylabel="utilisation, %", ylim=(0, 105))


@figure("9b", "1 MB from n servers: mean time of an answer", needs=["servers"])
def time_by_servers(runs: Runs, ax: "Axes") -> None:
    """Draw the second half of figure 9."""
    _by_servers(runs, "afct_s", 1e3, ax)
    _ns2(ax, NS2_VARY, COUNTS, lambda row: row[0])
    ax.set(ylabel="mean time of an answer, ms", ylim=(0, None))


@figure("9-gain", "Own drawing: 1 MB from n servers, CoDel's gain in mean time", needs=["servers"])
def gain_by_servers(runs: Runs, ax: "Axes") -> None:
    """Draw CoDel's gains over DropTail and RED, with the stated largest ones."""
    stated, over = {"droptail": 85, "red": 65}, {"droptail": "over DropTail", "red": "over RED"}
    frames = [
        gains(runs["servers"], "servers", name, ["codel"]).with_columns(scheme=pl.lit(name))
        for name in over
    ]
    lines(ax, pl.concat(frames), "servers", "gain", by="scheme", names=over)
    for n, (name, label) in enumerate(over.items()):
        ax.axhline(stated[name], color=style(n)["color"], lw=3, alpha=0.35,
                   label=f"paper: largest {label}")  # fmt: skip
    ax.axhline(0, color="black", lw=0.8)
    ax.set(xlabel="servers, 1 MB from all together", ylabel="mean time shorter by, %")
    ax.set_xscale("log")
    _plain(ax, COUNTS)
    legend(ax)


@figure("10a", "1 MB from n servers: mean queue", needs=["servers"])
def queue_by_servers(runs: Runs, ax: "Axes") -> None:
    """Draw the first half of figure 10."""
    _by_servers(runs, "occupancy", 100, ax)
    _ns2(ax, NS2_VARY, COUNTS, lambda row: row[3] / 2)
    ax.set(ylabel="mean queue, % of the buffer", ylim=(0, None))


@figure("10b", "1 MB from n servers: loss", needs=["servers"])
def loss_by_servers(runs: Runs, ax: "Axes") -> None:
    """Draw the second half of figure 10."""
    _by_servers(runs, "loss", 100, ax)
    _ns2(ax, NS2_VARY, COUNTS, lambda row: row[2])
    ax.set(ylabel="loss, %", ylim=(0, None))


@figure("11a", "Short flows: utilisation", needs=["loads"])
def utilisation_by_load(runs: Runs, ax: "Axes") -> None:
    """Draw the first quarter of figure 11."""
    lines(ax, runs["loads"], "load", "utilisation", by="scheme", names=NAMES, scale=100)
    _ns2(ax, NS2_POISSON, LOADS[::2], lambda row: row[1])
    ax.set(xlabel="load of short flows, %", ylabel="utilisation, %")


@figure(
    "11b",
    "Short flows: gain in mean time over DropTail (load of the largest not named)",
    needs=["loads"],
)
def gain_by_load(runs: Runs, ax: "Axes") -> None:
    """Draw the second quarter of figure 11."""
    _gain(runs["loads"], "load", ax)
    level(ax, 63, "paper, largest")
    _ns2_gain(ax, NS2_POISSON, LOADS[::2])
    ax.set(xlabel="load of short flows, %")


@figure("11c", "Short flows: mean queue", needs=["loads"])
def queue_by_load(runs: Runs, ax: "Axes") -> None:
    """Draw the third quarter of figure 11."""
    lines(ax, runs["loads"], "load", "occupancy", by="scheme", names=NAMES, scale=100)
    _ns2(ax, NS2_POISSON, LOADS[::2], lambda row: row[3] / 2)
    ax.set(xlabel="load of short flows, %", ylabel="mean queue, % of the buffer", ylim=(0, None))


@figure("11d", "Short flows: loss", needs=["loads"])
def loss_by_load(runs: Runs, ax: "Axes") -> None:
    """Draw the last quarter of figure 11."""
    lines(ax, runs["loads"], "load", "loss", by="scheme", names=NAMES, scale=100)
    _ns2(ax, NS2_POISSON, LOADS[::2], lambda row: row[2])
    ax.set(xlabel="load of short flows, %", ylabel="loss, %", ylim=(0, None))
