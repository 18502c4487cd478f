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
- Each server's link is 137 ns longer than the previous one. With equal links packets arrive
  simultaneously, and the order in which a program handles simultaneous events decides drops.
- RED: the paper does not state the weight of the average, which is decisive. The automatic weight
  (8e-6, a memory of a second) turns RED into DropTail during a burst, while the text describes a
  RED that drops most within a burst. We use 0.002, and others as sensitivities. Gentle, otherwise
  as in ns-2 (above 51 packets the slope keeps the first max_p; no drop while at most one packet is
  in the queue).
- CoDel of 2012. Utilisation model: 4 s, the first second not counted, the sender behind 10 Gbit/s;
  the four flows share only the port.
- Impact of the interval: 40 answers of 50 kB. Short flows: 3 s as in the paper, without the flows
  that have not finished by then (1 % at the highest load).

Seeds: 10 (20 for one burst; 5 for the utilisation model, the caption and the sensitivities; 3 for
lost SYNs); the paper says "several times". Quick mode: 3 seeds, shorter runs (0.6 s of queries),
fewer points.
"""

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from sojourn.papers.codel_dc.changed import (
    BASE,
    LINKS,
    SAMPLED,
    SCHEMES,
    TUNED,
    compared,
    compared_by_load,
    known_mean,
    sensitivities,
    varied,
)
from sojourn.papers.codel_dc.claims import CLAIMS as CLAIMS
from sojourn.papers.codel_dc.ns2 import BESIDE, NS2_TARGETS, beside
from sojourn.papers.codel_dc.runs import (
    CODEL,
    LAWS,
    Table,
    band,
    by_time,
    gains,
    long_flows,
    model,
    of_answers,
    of_flows,
    of_port,
    over_time,
    poisson,
    queries,
    switch,
)
from sojourn.plotting.lines import lines, style
from sojourn.plotting.run import legend
from sojourn.reproduction.claims import Runs, values
from sojourn.reproduction.paper import Experiment, Point, figure, table
from sojourn.result.statistics import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "CoDel in data centres"
REFERENCE = "Ismail, Pirzada and Qazi, On the Effectiveness of CoDel in Data Centers"

NAMES = {"droptail": "DropTail", "red": "RED, wq 0.002", "codel": "CoDel", "red-auto": "RED, auto"}
SIZES = (10, 50, 100)
COUNTS = (8, 16, 32, 64, 128)
TARGETS = (0.01, 0.03, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 1.0)
INTERVALS = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 3.0, 5.0, 10.0)
LOADS = (10, 20, 30, 40, 50, 60, 70, 80, 90)


def scenarios(full: bool) -> dict[str, Experiment]:
    """Return the paper's experiments and the sensitivities."""
    seeds, end = (5, "2600ms") if full else (3, "600ms")
    targets = TARGETS if full else (0.01, 0.1, 0.15, 0.3, 0.4, 1.0)
    spans = INTERVALS if full else (0.1, 0.3, 0.75, 2.0, 10.0)
    counts, loads = (COUNTS, LOADS) if full else (COUNTS[::2], LOADS[::4])
    one = queries(100, number=1)
    burst = {"sample": "1ms", "sample_flows": False}
    fine = {**burst, "sample": "50us"}
    busy: list[Point] = [
        ({"scheme": s, "load": x}, switch(LAWS[s], 40, poisson(x), "3100ms" if full else "1100ms"))
        for s in SCHEMES
        for x in loads
    ]
    return {
        "targets": Experiment(
            [
                ({"target": t, "flows": n}, long_flows(t, n, 3 if full else 2))
                for n in (1, 4)
                for t in targets
            ],
            of_port,
            3 if full else 2,
        ),
        "intervals": Experiment(
            [
                ({"interval": t}, switch(_every(t), 40, queries(50), "1100ms" if full else end))
                for t in spans
            ],
            of_answers,
            seeds,
        ),
        "first drops": Experiment(
            [
                ({"interval": t}, switch(_every(t), 40, queries(50, number=1), "200ms") | fine)
                for t in spans
            ],
            over_time,
            seeds,
        ),
        "incast": Experiment(
            [
                ({"scheme": s, "kB": kb}, switch(LAWS[s], 40, queries(kb), end) | SAMPLED)
                for s in NAMES
                for kb in SIZES
            ],
            of_answers,
            seeds,
        ),
        "burst": Experiment(
            [({"scheme": s}, switch(LAWS[s], 40, one, "300ms") | burst) for s in NAMES],
            over_time,
            2 * seeds,
        ),
        "servers": Experiment(
            [
                (
                    {"scheme": s, "servers": n},
                    switch(LAWS[s], n, queries(1000 / n), end) | SAMPLED,
                )
                for s in SCHEMES
                for n in counts
            ],
            of_answers,
            seeds,
        ),
        "caption": Experiment(
            [
                ({"scheme": s, "servers": n}, switch(LAWS[s], n, queries(1000), end))
                for s in SCHEMES
                for n in (8, 16)
            ],
            of_answers,
            2,
        ),
        "loads": Experiment(busy, of_flows, seeds),
        "half load": Experiment(
            [
                (labels, {**tree, "sample": "20ms", "sample_flows": False})
                for labels, tree in busy
                if labels["load"] == 50
            ],
            over_time,
            seeds,
        ),
        **varied(full, SIZES, counts),
        **sensitivities(full),
    }


def _every(interval_ms: float) -> Table:
    return {**CODEL, "interval": f"{interval_ms * 1000:.0f}us"}


@figure("2b", "The paper's model, and one simulated flow", needs=["targets"])
def model_and_flow(runs: Runs, ax: "Axes") -> None:
    """Draw utilisation against target / RTT: equation 7, its time-weighted form, simulation."""
    ratios = np.linspace(0, 1.5, 151)
    curves = ((model, "equation 7"), (by_time, "equation 7, time-weighted"))
    for n, (curve, label) in enumerate(curves):
        ys = [100 * curve(x) for x in ratios]
        ax.plot(ratios, ys, color=style(n)["color"], ls="--", label=label)
    one = runs["targets"].filter(pl.col("flows") == 1)
    for target in sorted(one["target"].unique().to_list()):
        found = interval(100 * values(one, "utilisation", target=target))
        named = "CoDel, one flow" if target == 0.3 else None
        dot = {**style(2), "ls": ""}
        ax.errorbar([target / 0.3], [found.mean], yerr=[found.half], label=named, **dot)
    ax.set(xlabel="target, round trips of 300 us", ylabel="utilisation, %", xlim=(0, 1.55))
    legend(ax)


@figure("3a", "Utilisation against the target", needs=["targets"])
def utilisation_by_target(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3a, and ns-2's points."""
    names = {1: "one flow", 4: "four flows"}
    ax.plot(list(NS2_TARGETS), list(NS2_TARGETS.values()), "k+", ms=8, label="ns-2, one flow")
    lines(ax, runs["targets"], "target", "utilisation", by="flows", names=names, scale=100)
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


@figure("5a", "40 servers: utilisation", needs=["incast"])
def utilisation_by_size(runs: Runs, ax: "Axes") -> None:
    """Draw figure 5a."""
    lines(ax, runs["incast"], "kB", "utilisation", by="scheme", names=NAMES, scale=100)
    ax.set(xlabel="kB from each server", ylabel="utilisation, %", xticks=SIZES, ylim=(0, 105))


@figure("5b", "40 servers: gain in mean time over DropTail", needs=["incast"])
def gain_by_size(runs: Runs, ax: "Axes") -> None:
    """Draw figure 5b."""
    _gain(runs["incast"], "kB", ax)
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
        found = interval(100 * values(frame, what, scheme=name))
        ax.bar([label], found.mean, yerr=found.half, color=style(n)["color"], capsize=3, width=0.6)


@figure("6a", "40 answers of 100 kB: mean queue", needs=["incast"])
def queue_by_scheme(runs: Runs, ax: "Axes") -> None:
    """Draw the first half of figure 6."""
    _bars(runs["incast"].filter(pl.col("kB") == 100), "occupancy", ax)
    ax.set(ylabel="mean queue, % of the buffer")


@figure("6b", "40 answers of 100 kB: loss", needs=["incast"])
def loss_by_scheme(runs: Runs, ax: "Axes") -> None:
    """Draw the second half of figure 6."""
    _bars(runs["incast"].filter(pl.col("kB") == 100), "loss", ax)
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
    """Draw figure 8a: drops by the AQM algorithm, and by a full buffer."""
    for n, (name, label) in enumerate(NAMES.items()):
        if name != "droptail":
            band(ax, runs["burst"], "aqm", name, n, f"{label}: AQM")
        band(ax, runs["burst"], "overflow", name, n, f"{label}: overflow", ls="--")
    ax.set(xlabel="time, ms", ylabel="packets dropped since 100 ms", xlim=(100, 200))
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
    ax.set(ylabel="utilisation, %", ylim=(0, 105))


@figure("9b", "1 MB from n servers: mean time of an answer", needs=["servers"])
def time_by_servers(runs: Runs, ax: "Axes") -> None:
    """Draw the second half of figure 9."""
    _by_servers(runs, "afct_s", 1e3, ax)
    ax.set(ylabel="mean time of an answer, ms", ylim=(0, None))


@figure("10a", "1 MB from n servers: mean queue", needs=["servers"])
def queue_by_servers(runs: Runs, ax: "Axes") -> None:
    """Draw the first half of figure 10."""
    _by_servers(runs, "occupancy", 100, ax)
    ax.set(ylabel="mean queue, % of the buffer", ylim=(0, None))


@figure("10b", "1 MB from n servers: loss", needs=["servers"])
def loss_by_servers(runs: Runs, ax: "Axes") -> None:
    """Draw the second half of figure 10."""
    _by_servers(runs, "loss", 100, ax)
    ax.set(ylabel="loss, %", ylim=(0, None))


@figure("11a", "Short flows: utilisation", needs=["loads"])
def utilisation_by_load(runs: Runs, ax: "Axes") -> None:
    """Draw the first quarter of figure 11."""
    lines(ax, runs["loads"], "load", "utilisation", by="scheme", names=NAMES, scale=100)
    ax.set(xlabel="load of short flows, %", ylabel="utilisation, %")


@figure("11b", "Short flows: gain in mean time over DropTail", needs=["loads"])
def gain_by_load(runs: Runs, ax: "Axes") -> None:
    """Draw the second quarter of figure 11."""
    _gain(runs["loads"], "load", ax)
    ax.set(xlabel="load of short flows, %")


@figure("11c", "Short flows: mean queue", needs=["loads"])
def queue_by_load(runs: Runs, ax: "Axes") -> None:
    """Draw the third quarter of figure 11."""
    lines(ax, runs["loads"], "load", "occupancy", by="scheme", names=NAMES, scale=100)
    ax.set(xlabel="load of short flows, %", ylabel="mean queue, % of the buffer", ylim=(0, None))


@figure("11d", "Short flows: loss", needs=["loads"])
def loss_by_load(runs: Runs, ax: "Axes") -> None:
    """Draw the last quarter of figure 11."""
    lines(ax, runs["loads"], "load", "loss", by="scheme", names=NAMES, scale=100)
    ax.set(xlabel="load of short flows, %", ylabel="loss, %", ylim=(0, None))


@table(
    "ns-2",
    "Compared with ns-2, with equal links (simultaneous arrivals) and different links",
    needs=BESIDE,
)
def beside_ns2(runs: Runs) -> pl.DataFrame:
    """Compare mean times, utilisation, loss and queue with ns-2's."""
    return beside(runs)


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
                found = values(runs[name], "queries", scheme=s, **{x: place})
                rows.append((f"{x} {place}", NAMES[s], found.min(), found.mean(), found.max()))
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
