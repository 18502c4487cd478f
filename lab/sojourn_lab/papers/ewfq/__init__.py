"""Weighted fair queueing with differential dropping (EWFQ): early drops instead of split buffers.

The paper uses ns-2. Sources, each behind its own router, share a bottleneck under EWFQ (alpha 0.85,
beta 0.9, f_s 100 Hz, p_c 0.1, k = 1, q_target half the buffer, intervals of 1 s) or under WFQ with
a part of the buffer for each class. Two networks have two TCPs and a UDP source over 5 Mbit/s with
30 kB; their access delays are 10, 10, 1 ms ("Uniform") or 50, 100, 1 ms ("Varied"). A third
("Five") has four TCPs (RTT 8, 44, 204, 404 ms) and a UDP source, each behind 2.5 Mbit/s, over 10
Mbit/s with 5 to 150 kB. Weights are equal.

Our choices where the paper states nothing (for the algorithm itself see the page of `ewfq`):

- One TCP per source, NewReno as ns-2's agents (an ack per packet, no receiver's limit). Packets of
  1000 bytes with headers. RTT_o 0.25 s, with five sources 0.5 s.
- UDP of 3.33 Mbit/s (twice its share) and of 2.5 Mbit/s (its access link), gaps jittered by half.
- WFQ has tail drop in each class. EWFQ drops from the longest queue when the buffer is full (with
  plain tail drop it settles in a bad state), and the UDP class is configured as unresponsive.
- Access links with large buffers; acks meet no queue. 200 s, the first 50 s not counted.

The paper's buffers are 5 to 150 kB in steps of 1 kB; here the steps are 1 kB up to 20 kB and 5 kB
above. It has one curve per figure; here there are 10 seeds (settings and other schedulers: 5).
Bandwidth counts packets delivered once and in order, with headers. The paper does not state which
of figures 4a and 4b is WFQ.

The two analytic claims are tested with NewReno: a single TCP over a link with a buffer of one
packet, and TCPs over a link with random losses at the rates of equation 2.
"""

from typing import TYPE_CHECKING, Any

import numpy.typing as npt
import polars as pl

from sojourn.plotting.lines import MARKERS, lines, style
from sojourn.plotting.run import DASHES, legend
from sojourn.result.statistics import interval
from sojourn_lab.papers.ewfq.claims import CLAIMS, SETTINGS
from sojourn_lab.papers.ewfq.runs import (
    AS_CHOSEN,
    CASES,
    CHANGES,
    FLOWS,
    MEMBERS,
    NAMES,
    NODE_CHANGES,
    OTHERS,
    QUICK_CHANGES,
    QUICK_SETTINGS,
    SWEEP_CHANGES,
    changed,
    measure,
    measure_lone,
    measure_losses,
    network,
    one_class,
    tiny_queue,
    touches,
)
from sojourn_lab.reproduction.claims import Runs, mean, values
from sojourn_lab.reproduction.drawings import topology
from sojourn_lab.reproduction.paper import Experiment, Point, figure, table
from sojourn_lab.reproduction.theirs import level, ns2, points

__all__ = ["CLAIMS", "REFERENCE", "SETTINGS", "TITLE", "scenarios"]

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEFT_OUT = {
    "4a or 4b, which is which": "the text does not say which panel is WFQ; both are drawn",
}

TITLE = "Weighted fair queueing with differential dropping (EWFQ)"
REFERENCE = "Lu, Voelker and Snoeren, INFOCOM 2012"

LOSSES_AT = ((10, 1), (30, 1), (90, 1), (10, 10))
"""Buffer in kB, TCPs per source."""
WINDOWS = (10, 20, 50, 100)
LAWS = {"d": 0, "n d": 1, "n² d": 2}


def scenarios(full: bool) -> dict[str, Experiment]:
    """Return the experiments: figures, other schedulers, sensitivities, single TCPs."""
    fine = (*range(5, 20), *range(20, 151, 5))
    buffers = fine if full else (5, 10, 15, 20, 30, 60, 90, 120, 150)
    few = (5, 10, 20, 30, 60, 90, 120, 150) if full else (5, 10, 30, 90)
    nodes: list[Point] = [
        ({"network": name, "qdisc": scheme}, network(name, scheme, 30))
        for name in ("Uniform", "Varied")
        for scheme in ("ewfq", "wfq", "wfq_varied")
    ]
    sweep: list[Point] = [
        ({"qdisc": scheme, "kb": kb}, network("Five", scheme, kb))
        for scheme in ("ewfq", "wfq")
        for kb in buffers
    ]
    others: list[Point] = [
        ({"qdisc": scheme, "kb": kb}, network("Five", scheme, kb))
        for scheme in (*OTHERS, "ns2_fq")
        for kb in few
    ]
    varied: list[Point] = [
        ({"qdisc": scheme}, network("Varied", scheme, 30)) for scheme in (*OTHERS, "ns2_fq")
    ]
    chosen = {what: one for what, one in SWEEP_CHANGES.items() if full or what in QUICK_SETTINGS}
    settings: list[Point] = [
        ({"setting": what, "qdisc": scheme, "kb": kb}, changed("Five", scheme, kb, change))
        for what, change in chosen.items()
        for scheme in ("ewfq", "wfq")
        for kb in (5, 10, 30, 90, 150)
    ]
    causes: list[Point] = [
        ({"change": what, "case": case}, changed(name, scheme, kb, change))
        for what, change in CHANGES.items()
        for case, (name, scheme, kb) in CASES.items()
        if (full or what in QUICK_CHANGES) and touches(scheme, change)
    ]
    fair: list[Point] = [
        ({"setting": what, "network": "Uniform", "qdisc": scheme},
         changed("Uniform", scheme, 30, CHANGES[what]))
        for what in NODE_CHANGES
        for scheme in ("ewfq", "wfq", "wfq_varied")
        if touches(scheme, CHANGES[what])
    ]  # fmt: skip
    losses: list[Point] = [
        ({"kb": kb, "n": n}, network("Five", "ewfq", kb, members=n) | {"packet_log": True})
        for kb, n in LOSSES_AT
    ]
    single: list[Point] = [
        ({"case": case, "P": window}, tree)
        for window in WINDOWS
        for case, tree in (
            ("tail", tiny_queue(window)),
            ("3/8", one_class(1, window, 8 / 3 / window**2)),
            ("2/3", one_class(1, window, 3 / 2 / window**2)),
        )
    ]
    classes: list[Point] = [
        ({"law": law, "n": n}, one_class(n, 100, n**power * 1.5e-4))
        for law, power in LAWS.items()
        for n in MEMBERS
    ]
    many, some = (10, 5) if full else (5, 3)
    return {
        "nodes": Experiment(nodes, measure, many),
        "sweep": Experiment(sweep, measure, 10 if full else 3),
        "others": Experiment(others, measure, some),
        "varied": Experiment(varied, measure, many),
        "settings": Experiment(settings, measure, some),
        "changed": Experiment(causes, measure, some),
        "uniform settings": Experiment(fair, measure, some),
        "losses": Experiment(losses, measure_losses, some),
        "single": Experiment(single, measure_lone, many),
        "classes": Experiment(classes, measure_lone, some),
    }


# ---- figures and tables --------------------------------------------------------------------------


@figure("1", "Own drawing of the network: Uniform or Varied", needs=(), size=(6.4, 2.4))
def network_drawn(_: Runs, ax: "Axes") -> None:
    """Draw the topology of figure 1."""
    delays = {"TCP s1": "10 or 50", "TCP s2": "10 or 100", "UDP s3": "1"}
    nodes = {name: (0.0, 2.0 - n) for n, name in enumerate(delays)}
    nodes |= {"R1": (4.2, 1.0), "R2": (7.2, 1.0), "receivers": (9.4, 1.0)}
    links = [(name, "R1", f"10 Mbit/s, {delay} ms") for name, delay in delays.items()]
    links += [("R1", "R2", "5 Mbit/s, 1 ms"), ("R2", "receivers", "1 ms")]
    topology(ax, nodes, links, [("R1", "R2")])


def _bars(runs: Runs, ax: "Axes", name: str) -> None:
    """Draw the bandwidth of each flow under each discipline."""
    rows = runs["nodes"].filter(pl.col("network") == name)
    for n, scheme in enumerate(("ewfq", "wfq", "wfq_varied")):
        intervals = [interval(values(rows, f"s{i}", qdisc=scheme)) for i in (1, 2, 3)]
        ax.bar(
            [i + (n - 1) * 0.25 for i in range(3)],
            [one.mean for one in intervals],
            0.23,
            yerr=[one.half for one in intervals],
            color=style(n)["color"],
            label=NAMES[scheme],
            error_kw={"elinewidth": 0.8, "capsize": 2},
        )
    delays = (10, 10) if name == "Uniform" else (50, 100)
    ax.set_axisbelow(True)
    labels = [f"s{i + 1}, RTT {2 * (delay + 2)} ms" for i, delay in enumerate(delays)]
    ax.set_xticks(range(3), [*labels, "s3, UDP"])
    ax.axhline(5 / 3, color="#555555", lw=0.8, ls=":")
    ax.set(ylabel="bandwidth, Mbit/s", ylim=(0, 2.2))
    legend(ax)


@figure("2", "Bandwidth of each flow, Uniform network, 30 kB (dotted: a third)", needs=["nodes"])
def uniform(runs: Runs, ax: "Axes") -> None:
    """Draw figure 2."""
    _bars(runs, ax, "Uniform")


@figure("3", "Bandwidth of each flow, Varied network, 30 kB (dotted: a third)", needs=["nodes"])
def varied_network(runs: Runs, ax: "Axes") -> None:
    """Draw figure 3."""
    _bars(runs, ax, "Varied")


def _flows(runs: Runs, ax: "Axes", scheme: str) -> None:
    rows = runs["sweep"].filter(pl.col("qdisc") == scheme)
    each = rows.unpivot(list(FLOWS), index=["kb", "seed"], variable_name="flow")
    lines(ax, each, "kb", "value", by="flow", names=FLOWS)
    ax.axhline(2, color="#555555", lw=0.8, ls=":")
    ax.set(xlabel="buffer, kB", ylabel="bandwidth, Mbit/s", ylim=(0, 2.6), xlim=(0, 155))


@figure("4a", "WFQ: bandwidth of each flow (dotted: a fifth)", needs=["sweep"])
def flows_of_wfq(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4a."""
    _flows(runs, ax, "wfq")


@figure("4b", "EWFQ: bandwidth of each flow (dotted: a fifth)", needs=["sweep"])
def flows_of_ewfq(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4b."""
    _flows(runs, ax, "ewfq")


def _over_buffer(frame: pl.DataFrame, ax: "Axes", what: str) -> None:
    """Draw Jain's index or the total against the buffer, a line per discipline."""
    lines(ax, frame, "kb", what, by="qdisc", names=NAMES)
    label = {"jain": "Jain's index", "total": "total bandwidth, Mbit/s"}[what]
    low, high = {"jain": (0.7, 1.015), "total": (7.5, 10.1)}[what]
    ax.set(xlabel="buffer, kB", ylabel=label, xlim=(0, 155), ylim=(low, high))


@figure("4c", "Fairness of the five sources", needs=["sweep"])
def fairness(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4c."""
    _over_buffer(runs["sweep"], ax, "jain")
    ns2(ax, list(NS2_FQ), [index for index, _ in NS2_FQ.values()], 1, "ns-2's FQ")
    points(ax, [5, 10], [0.98, 1.0], 0)
    points(ax, [30], [1.0], 0)


@figure("4d", "Total bandwidth", needs=["sweep"])
def total(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4d."""
    _over_buffer(runs["sweep"], ax, "total")
    ns2(ax, list(NS2_FQ), [mbps for _, mbps in NS2_FQ.values()], 1, "ns-2's FQ")


def _with_others(runs: Runs) -> pl.DataFrame:
    return pl.concat([runs["sweep"], runs["others"]], how="diagonal_relaxed")


@figure("4c-others", "Fairness, with other schedulers", needs=["sweep", "others"])
def fairness_of_others(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4c with the schedulers that the paper leaves out."""
    _over_buffer(_with_others(runs), ax, "jain")


@figure("4d-others", "Total bandwidth, with other schedulers", needs=["sweep", "others"])
def total_of_others(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4d with the schedulers that the paper leaves out."""
    _over_buffer(_with_others(runs), ax, "total")


@table("3-others", "Varied network, 30 kB, with other schedulers", needs=["nodes", "varied"])
def others_in_varied(runs: Runs) -> pl.DataFrame:
    """Tabulate fairness, total, and the bandwidth of each flow."""
    known = runs["nodes"].filter(pl.col("network") == "Varied")
    rows = [
        (NAMES[scheme], _text(values(frame, "jain", qdisc=scheme)), *(
            mean(frame, what, qdisc=scheme) for what in ("total", "s1", "s2", "s3")))
        for frame, schemes in ((known, list(NAMES)[:3]), (runs["varied"], OTHERS))
        for scheme in schemes
    ]  # fmt: skip
    names = ["scheduler", "Jain's index", "total, Mbit/s", "s1", "s2", "UDP"]
    return pl.DataFrame(rows, schema=names, orient="row")


FACTS = {
    "shared": lambda runs: " and ".join(
        f"{mean(runs['varied'], 'jain', qdisc=one):.3f}" for one in ("wfq_shared", "drr")
    )
}


def _text(sample: npt.NDArray[Any], places: int = 4) -> str:
    """Format a mean with its interval to `places` decimals: fairness indices need four."""
    mine = interval(sample)
    return f"{mine.mean:.{places}f} ± {mine.half:.{places}f}"


NS2_FQ = {5: (0.8056, 8.72), 10: (0.8923, 9.15), 30: (0.9705, 9.86), 90: (0.9936, 10.0)}
"""By buffer in kB: Jain's index and total of ns-2's FQ with equal buffers (one run of 120 s)."""


@table("ns-2", "WFQ with five sources, compared with ns-2's FQ", needs=["sweep", "others"])
def beside_ns2(runs: Runs) -> pl.DataFrame:
    """Compare WFQ, and self-clocked fair queueing with one more packet per class, with ns-2."""
    rows = []
    for kb, (index, mbps) in NS2_FQ.items():
        cells: list[Any] = [kb, index]
        cells.append(_text(values(runs["others"], "jain", qdisc="ns2_fq", kb=kb)))
        cells.append(_text(values(runs["sweep"], "jain", qdisc="wfq", kb=kb)))
        cells += [mbps, mean(runs["others"], "total", qdisc="ns2_fq", kb=kb)]
        rows.append([*cells, mean(runs["sweep"], "total", qdisc="wfq", kb=kb)])
    names = ["buffer, kB", "ns-2's FQ: Jain", "ours as ns-2's FQ", "our WFQ"]
    names += ["ns-2's FQ: total, Mbit/s", "ours as ns-2's FQ, Mbit/s", "our WFQ, Mbit/s"]
    return pl.DataFrame(rows, schema=names, orient="row")


@table("settings", "Claims about figure 4 under other settings", needs=["sweep", "settings"])
def by_setting(runs: Runs) -> pl.DataFrame:
    """Tabulate, for each setting, the numbers of claims C5 to C10."""
    paper = ["10", "not near 1", "> 0.98", "near 1", "< 0", "about 0", "> 0", "about 0"]
    rows: list[list[str]] = [["the paper", *paper]]
    frame = _by_settings(runs)
    ran = set(frame["setting"])
    for what in (one for one in (AS_CHOSEN, *SWEEP_CHANGES) if one in ran):

        def of(column: str, scheme: str, kb: int, what: str = what) -> npt.NDArray[Any]:
            return values(frame, column, setting=what, qdisc=scheme, kb=kb)

        cells = [
            of("s1", "wfq", 5) / of("s4", "wfq", 5),
            of("jain", "wfq", 90),
            of("jain", "ewfq", 5),
            of("jain", "ewfq", 10),
            *(of("total", "ewfq", kb) - of("total", "wfq", kb) for kb in (10, 30, 90)),
            of("jain", "ewfq", 30) - of("jain", "wfq", 150),
        ]
        places = (1, 4, 4, 4, 2, 2, 2, 4)
        rows.append([what, *(_text(*cell) for cell in zip(cells, places, strict=True))])
    names = ["setting", "C5: s1/s4, WFQ, 5 kB", "C6: Jain, WFQ, 90 kB", "C7: Jain, EWFQ, 5 kB",
             "C7: Jain, EWFQ, 10 kB", "C8: total, EWFQ - WFQ, 10 kB, Mbit/s",
             "C9: the same, 30 kB", "C9: 90 kB", "C10: Jain, EWFQ 30 kB - WFQ 150 kB"]  # fmt: skip
    return pl.DataFrame(rows, schema=names, orient="row")


def _by_settings(runs: Runs) -> pl.DataFrame:
    """Return the runs of the sweep and of the other settings in one frame."""
    known = runs["sweep"].with_columns(pl.lit(AS_CHOSEN).alias("setting"))
    return pl.concat([known, runs["settings"]], how="diagonal_relaxed")


@figure("4c-TCPs", "Fairness by the number of TCPs per source", needs=["sweep", "settings"])
def fairness_by_members(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4c for sources of several TCPs; a discipline keeps its colour."""
    frame = _by_settings(runs)
    counts = {AS_CHOSEN: "1 TCP"} | {f"{n} TCPs per source": f"{n} TCPs" for n in (5, 10)}
    for n, scheme in enumerate(("ewfq", "wfq")):
        for k, (setting, words) in enumerate(counts.items()):
            xs = (5, 10, 30, 90, 150)
            own = {"setting": setting, "qdisc": scheme}
            intervals = [interval(values(frame, "jain", kb=kb, **own)) for kb in xs]
            ax.errorbar(
                xs,
                [one.mean for one in intervals],
                yerr=[one.half for one in intervals],
                label=f"{NAMES[scheme].split(',')[0]}, {words}",
                capsize=2,
                elinewidth=0.8,
                **style(n) | {"ls": DASHES[k], "marker": MARKERS[k]},
            )
    ax.set(xlabel="buffer, kB", ylabel="Jain's index", xlim=(0, 155), ylim=(0.7, 1.015))
    legend(ax)


@table("changed", "One parameter changed at a time", needs=["changed"])
def by_change(runs: Runs) -> pl.DataFrame:
    """Tabulate the fairness of C3, C4 and C7, EWFQ's total, and WFQ's ratio of C5."""
    frame, rows = runs["changed"], []
    ran = set(frame["change"])
    for what, change in ((one, change) for one, change in CHANGES.items() if one in ran):
        own = [what]
        for case, (_, scheme, kb) in CASES.items():
            at = {"change": what, "case": case}
            if not touches(scheme, change):
                own += [""] * (2 if scheme == "ewfq" else 1)
            elif kb == 5:
                own.append(_text(values(frame, "s1", **at) / values(frame, "s4", **at), 1))
            else:
                own.append(_text(values(frame, "jain", **at)))
                own += [f"{mean(frame, 'total', **at):.2f}"] if scheme == "ewfq" else []
        rows.append(own)
    names = ["changed", "C3: Varied, EWFQ 30 kB: Jain", "its total, Mbit/s",
             "C4: WFQ, even: Jain", "C4: WFQ, 15/5/10 kB: Jain", "C7: Five, EWFQ 10 kB: Jain",
             "its total, Mbit/s ", "C5: Five, WFQ 5 kB: s1/s4"]  # fmt: skip
    return pl.DataFrame(rows, schema=names, orient="row")


@table("losses", "EWFQ: drop rates of s4 (RTT 404 ms)", needs=["losses"])
def losses_of_s4(runs: Runs) -> pl.DataFrame:
    """Compare drop rates of s4 with the one that n TCPs of 2 Mbit/s sustain: 1.5 (n / 101)²."""
    frame, rows = runs["losses"], []
    for kb, n in LOSSES_AT:
        full, early = (100 * values(frame, what, kb=kb, n=n) for what in ("full", "early"))
        rows.append(
            [str(kb), str(n), _text(full, 3), _text(early, 3), f"{150 * (n / 101) ** 2:.3f}"]
        )
    names = ["buffer, kB", "TCPs per source", "dropped, buffer full, %", "dropped early, %"]
    return pl.DataFrame(rows, schema=[*names, "sustainable at its share, %"], orient="row")


LOSSES = {
    "tail": "tail drop, room for 1 packet",
    "3/8": "random loss, 1 / (3/8 P²)",
    "2/3": "random loss, 1 / (2/3 P²)",
}


@figure("C11", "One TCP: its rate over R (P packets per RTT)", needs=["single"])
def one_tcp(runs: Runs, ax: "Axes") -> None:
    """Draw the rate of a single TCP at both drop rates, and behind a queue of one packet."""
    share = runs["single"].with_columns((pl.col("window") / pl.col("P")).alias("share"))
    lines(ax, share, "P", "share", by="case", names=LOSSES)
    for n, stated in enumerate((0.75, 0.75, 1.0)):
        points(ax, [WINDOWS[2]], [stated], n)
    ax.set(xlabel="P, packets per RTT", ylabel="rate / R", xscale="log", ylim=(0, 1.3))
    ax.set_xticks(WINDOWS, [str(one) for one in WINDOWS])
    ax.minorticks_off()


@figure("C12", "n TCPs in a class whose share is 100 packets per RTT", needs=["classes"])
def many_tcps(runs: Runs, ax: "Axes") -> None:
    """Draw the bandwidth of the class at drop rates d, n d and n² d."""
    share = runs["classes"].with_columns((pl.col("window") / 100).alias("share"))
    lines(ax, share, "n", "share", by="law", names=list(LAWS))
    level(ax, 1)
    ax.set(xlabel="TCPs in the class, n", ylabel="bandwidth of the class over its share")
    ax.set(xscale="log", yscale="log", ylim=(0.7, 12))
    ax.set_xticks(MEMBERS, [str(n) for n in MEMBERS])
    ax.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    ax.minorticks_off()
