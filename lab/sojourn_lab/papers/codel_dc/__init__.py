"""CoDel in data centres: incast queries to many servers, and short flows with a long flow.

The paper uses ns-2. Hosts share one switch; every link has 1 Gbit/s, the base round-trip time is
300 us, the buffer 200 packets of 1 kB; TCP SACK with RTOmin 10 ms. The disciplines are DropTail,
adaptive RED (25 and 51 packets) and CoDel (target 300 us, interval 750 us), all dropping. One long
flow to the client is always active.

The paper states nothing else. Our choices, as in our runs of ns-2:

- Links: 75 us per link and direction. A server's own link has the discipline under test too, as
  ns-2's duplex links have one type. The queue of the switch is the port to the client; acks do not
  queue.
- TCP: 1000 bytes on the wire, 40 of them header; an ack per packet, an initial window of 2, no
  receiver's limit; a clock of 100 us (ns-2's default of 10 ms makes any RTOmin 20 ms). The RTO
  before the first measurement is 10 ms too (table SYNs has ns-2's default, 3 s).
- Queries: an answer is a new connection, and servers start within 20 us. The next query starts 300
  us after the last ack of the last answer, and queries continue for the whole run (44 to 180 of
  them in 2.6 s). The time of an answer is from its SYN to its last ack. Unfinished queries are not
  counted, and runs without a finished query are left out of mean times (table `queries`).
- All links are equal, as in our runs of ns-2. Packets then arrive simultaneously, and the order in
  which a program handles simultaneous events decides drops; links that differ are a setting.
- RED: the paper does not state the weight of the average, which is decisive. The automatic weight
  (8e-6, a memory of a second) turns RED into DropTail during a burst, while the text describes a
  RED that drops most within a burst. We use 0.002, and others as sensitivities. Gentle, otherwise
  as in ns-2 (above 51 packets the slope keeps the first max_p; no drop while at most one packet is
  in the queue).
- CoDel of 2012. Utilisation model: 3 s, the first second not counted, the sender behind 10 Gbit/s;
  the four flows share only the port.
- Impact of the interval: 40 answers of 50 kB. Short flows: 3 s as in the paper, without the flows
  that have not finished by then (1 % at the highest load).

Settings varied: a pause of 100 ms or 1 s between queries, the servers' links, TCP's clock (all
queries); RED's parameters (short flows). Loss of claim C8 counts while a query is open.

Seeds: 5 (10 for one burst; 3 for the utilisation model and the settings; 2 for tables of other
changes); the paper says "several times". Quick mode: 3 seeds, shorter runs (0.6 s of queries),
fewer points and settings.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from sojourn.plotting.lines import lines, style
from sojourn.plotting.run import legend
from sojourn.result.statistics import interval
from sojourn_lab.papers.codel_dc.changed import (
    BASE,
    LINKS,
    SCHEMES,
    TUNED,
    compared,
    compared_by_load,
    known_mean,
)
from sojourn_lab.papers.codel_dc.claims import CLAIMS, FACTS, SETTINGS
from sojourn_lab.papers.codel_dc.experiments import COUNTS, LOADS, SIZES, scenarios
from sojourn_lab.papers.codel_dc.ns2 import (
    COMPARED,
    NS2_INCAST,
    NS2_POISSON,
    NS2_TARGETS,
    NS2_VARY,
    compared_to_ns2,
)
from sojourn_lab.papers.codel_dc.runs import (
    band,
    by_time,
    gains,
    model,
)
from sojourn_lab.reproduction.claims import Runs, values
from sojourn_lab.reproduction.drawings import topology
from sojourn_lab.reproduction.paper import figure, table
from sojourn_lab.reproduction.theirs import band as grey
from sojourn_lab.reproduction.theirs import ns2, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CLAIMS", "FACTS", "LEFT_OUT", "REFERENCE", "SETTINGS", "TITLE", "scenarios"]

LEFT_OUT = {
    "1, 2a": "pictures were not available to us, and the text does not describe them",
}

TITLE = "CoDel in data centres"
REFERENCE = "Ismail, Pirzada and Qazi, On the Effectiveness of CoDel in Data Centers"

NAMES = {"droptail": "DropTail", "red": "RED, wq 0.002", "codel": "CoDel", "red-auto": "RED, auto"}


@figure("network", "Own drawing of the tree: 40 servers and a client on one switch", needs=(),
        size=(6.4, 2.4))  # fmt: skip
def switch_drawn(_: Runs, ax: "Axes") -> None:
    """Draw the topology of the experiments."""
    nodes = {"server 1": (0.0, 2.0), "server n": (0.0, 1.0), "long flow": (0.0, 0.0)}
    nodes |= {"switch": (4.0, 1.0), "client": (8.0, 1.0)}
    links = [(name, "switch", "1 Gbit/s, 75 us") for name in list(nodes)[:3]]
    links.append(("switch", "client", "1 Gbit/s, 75 us"))
    topology(ax, nodes, links, [(one, other) for one, other, _ in links])


@figure("2b", "The paper's model, and one simulated flow", needs=["targets"])
def model_and_flow(runs: Runs, ax: "Axes") -> None:
    """Draw utilisation against target / RTT: equation 7, its time-weighted form, simulation."""
    ratios = np.linspace(0, 1.5, 151)
    curves = ((model, "equation 7"), (by_time, "equation 7, time-weighted"))
    for n, (curve, label) in enumerate(curves):
        ys = [100 * curve(x) for x in ratios]
        ax.plot(ratios, ys, color=style(n)["color"], ls=style(n)["ls"], label=label)
    one = runs["targets"].filter(pl.col("flows") == 1)
    for target in sorted(one["target"].unique().to_list()):
        utilisation = interval(100 * values(one, "utilisation", target=target))
        named = "CoDel, one flow" if target == 0.3 else None
        dot = {**style(2), "ls": ""}
        ax.errorbar([target / 0.3], [utilisation.mean], yerr=[utilisation.half], label=named, **dot)
    points(ax, [0.5, 1.0], [100 * 23 / 24, 100])
    ax.set(xlabel="target, round trips of 300 us", ylabel="utilisation, %", xlim=(0, 1.55))
    legend(ax)


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
    """Draw results of ns-2 next to the lines of the same disciplines."""
    for n, name in enumerate(NAMES):
        there = [x for x in xs if (name, x) in recorded]
        if there:
            ns2(ax, there, [of(recorded[name, x]) for x in there], n)


def _ns2_gain(ax: "Axes", recorded: Recorded, xs: Sequence[int]) -> None:
    """Draw ns-2's gains in mean time over DropTail."""
    for n, name in enumerate(NAMES):
        there = [x for x in xs if name != "droptail" and (name, x) in recorded]
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


@figure("5b", "40 servers: gain in mean time over DropTail", needs=["incast"])
def gain_by_size(runs: Runs, ax: "Axes") -> None:
    """Draw figure 5b."""
    _gain(runs["incast"], "kB", ax)
    points(ax, [SIZES[0]], [62], list(NAMES).index("codel"), "paper, largest")
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
        band(ax, runs["burst"], "aqm", name, n, f"{label}: AQM")
        band(ax, runs["burst"], "overflow", name, n, f"{label}: overflow", ls=":")
    ax.set(xlabel="time, ms", xlim=(100, 200))
    ax.set_yscale("symlog", linthresh=10)
    ax.set_yticks([0, 5, 10, 100, 1000], ["0", "5", "10", "100", "1000"])
    ax.set_ylabel("packets dropped since 100 ms")
    ax.set_ylim(0, None)
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


@figure("11b", "Short flows: gain in mean time over DropTail", needs=["loads"])
def gain_by_load(runs: Runs, ax: "Axes") -> None:
    """Draw the second quarter of figure 11."""
    _gain(runs["loads"], "load", ax)
    points(ax, [LOADS[0]], [63], list(NAMES).index("codel"), "paper, largest")
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


@table(
    "ns-2",
    "Compared with ns-2, with equal links (simultaneous arrivals) and different links",
    needs=COMPARED,
)
def beside_ns2(runs: Runs) -> pl.DataFrame:
    """Compare mean times, utilisation, loss and queue with ns-2's."""
    return compared_to_ns2(runs)


@table("caption", "1000 kB from each server, as the caption of figure 10 has it", needs=["caption"])
def as_captioned(runs: Runs) -> pl.DataFrame:
    """Tabulate the disciplines with 1000 kB from each server."""
    rows = [
        (
            n,
            NAMES[s],
            *(
                known_mean(factor * values(runs["caption"], what, scheme=s, servers=n))
                for what, factor in SHOWN
            ),
        )
        for n in (8, 16)
        for s in SCHEMES
    ]
    heads = ["mean time, ms", "utilisation, %", "loss, %", "queue, packets"]
    return pl.DataFrame(rows, schema=["servers", "discipline", *heads], orient="row")


@table("queries", "Queries finished per run", needs=["incast", "servers"])
def queries_ended(runs: Runs) -> pl.DataFrame:
    """Tabulate the finished queries: few or none if the long flow locks out the others."""
    rows = []
    for name, x in (("incast", "kB"), ("servers", "servers")):
        for place in sorted(runs[name][x].unique().to_list()):
            for s in SCHEMES:
                queries = values(runs[name], "queries", scheme=s, **{x: place})
                rows.append(
                    (f"{x} {place}", NAMES[s], queries.min(), queries.mean(), queries.max())
                )
    names = ["case", "discipline", "min", "mean", "max"]
    return pl.DataFrame(rows, schema=names, orient="row")


SHOWN = (("afct_s", 1e3), ("utilisation", 100), ("loss", 100), ("queue_packets", 1))


@table("sensitivity", "One parameter changed for all disciplines", needs=["changed"])
def changed_for_all(runs: Runs) -> pl.DataFrame:
    """Tabulate CoDel's gains under settings that the paper does not state."""
    return compared(runs["changed"], list(LINKS))


@table("parameters", "One parameter changed in one discipline", needs=["changed"])
def changed_parameters(runs: Runs) -> pl.DataFrame:
    """Tabulate the effect of RED's parameters and of CoDel's variant."""
    return compared(runs["changed"], [BASE, *TUNED])


@table("loads", "Short flows: one parameter of RED changed", needs=["RED by load", "loads"])
def changed_red_by_load(runs: Runs) -> pl.DataFrame:
    """Tabulate CoDel's gains over other settings of RED."""
    return compared_by_load(runs["RED by load"], runs["loads"])


@table("SYNs", "Initial RTO of 3 s (ns-2's default), longer runs", needs=["lost SYNs"])
def lost_syns(runs: Runs) -> pl.DataFrame:
    """Tabulate the cost of a lost SYN."""
    return compared(runs["lost SYNs"].with_columns(what=pl.lit("initial RTO 3 s")), [])
