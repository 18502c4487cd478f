"""Weighted fair queueing with differential dropping: one buffer, and early drops that even out.

The paper: ns-2; sources behind a router of their own share a bottleneck under EWFQ (alpha 0.85,
beta 0.9, f_s 100 Hz, p_c 0.1, k = 1, q_target half the buffer, intervals of 1 s) or under WFQ with
a part of the buffer for each class. Two TCPs and a UDP source over 5 Mbit/s with 30 kB (access of
10, 10, 1 ms, "Uniform", or 50, 100, 1 ms, "Varied"); four TCPs (RTT 8, 44, 204, 404 ms) and a UDP
source, each behind 2.5 Mbit/s, over 10 Mbit/s with 5 to 150 kB. Weights are equal.

It does not state, and here is chosen (the gaps of the law itself: the page of `ewfq`):

- one TCP per source, NewReno as ns-2's agents (an ack per packet, no limit by the receiver);
  packets of 1000 bytes with headers; RTT_o of 0.25 s, 0.5 s with five sources;
- UDP of 3.33 Mbit/s (twice its share) and 2.5 Mbit/s (its access link), gaps jittered by half;
- WFQ has tail drop in each class. In EWFQ the longest queue loses when the buffer is full (with
  plain tail drop it settles in a bad state), and the UDP class is known not to answer losses;
- access links with wide buffers, acks that meet no queue; 200 s, the first 50 not counted.

The paper's buffers are 5 to 150 kB in steps of 1; here they are in steps of 1 up to 20 and of 5
beyond. It has one curve per figure; here there are 10 seeds (settings and other schedulers: 5).
Bandwidth is what arrives in order, once, headers included. Which of 4a and 4b is WFQ is not
stated.

The two analytic claims are tested with NewReno: a single TCP over a link with room for one packet,
and TCPs over a link that loses packets at random, at the rates of equation 2.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn.claims import Claim, Part, Runs, bound, equal, mean, number, order, values
from sojourn.curves import lines, style
from sojourn.figure import legend
from sojourn.paper import Experiment, Point, figure, table
from sojourn.papers._ewfq import measure, measure_lone, network, one_class, tiny_queue
from sojourn.statistics import interval, paired

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLE = "Weighted fair queueing with differential dropping (EWFQ)"
REFERENCE = "Lu, Voelker and Snoeren, INFOCOM 2012"

NAMES = {
    "ewfq": "EWFQ",
    "wfq": "WFQ, even buffers",
    "wfq_varied": "WFQ, 15/5/10 kB",
    "wfq_shared": "WFQ, shared buffer",
    "drr": "DRR, shared buffer",
    "fq_codel": "FQ-CoDel",
    "afd": "AFD (one FIFO)",
}
OTHERS = ("wfq_shared", "drr", "fq_codel", "afd")
FLOWS = {"s1": "s1, RTT 8 ms", "s2": "s2, 44 ms", "s3": "s3, 204 ms", "s4": "s4, 404 ms",
         "s5": "s5, UDP"}  # fmt: skip

SETTINGS: dict[str, dict[str, Any]] = {
    "2 TCPs per source": {"members": 2},
    "5 TCPs per source": {"members": 5},
    "10 TCPs per source": {"members": 10},
    "step of m_fair / 1000": {"law": {"mfair_gain": 0.001}},
    "10 TCPs, step / 1000": {"members": 10, "law": {"mfair_gain": 0.001}},
    "UDP of 2 Mbit/s, evenly spaced": {"udp": {"rate": "2mbit", "jitter": 0.0}},
    "packets of 500 B": {"tcp": {"packet": "500B"}, "udp": {"packet": "500B"}},
    "receiver's window of 20": {"tcp": {"receive_window": "20p"}},
}
"""What the paper may have had instead, for the whole sweep."""

AS_CHOSEN = "as chosen"
CHANGES: dict[str, dict[str, Any]] = {
    AS_CHOSEN: {},
    "SACK": {"tcp": {"name": "sack"}},
    "Reno": {"tcp": {"name": "reno"}},
    "Tahoe": {"tcp": {"name": "tahoe"}},
    "TCP of the RFCs (delayed acks, bytes)": {"tcp": {"profile": "rfc"}},
    "packets of 500 B": SETTINGS["packets of 500 B"],
    "access links of 50 packets": {"access": "50p"},
    "UDP evenly spaced": {"udp": {"jitter": 0.0}},
    "1000 s, the first 200 not counted": {"times": {"duration": "1000s", "warmup": "200s"}},
    "step of m_fair / 1000": SETTINGS["step of m_fair / 1000"],
    "no cache (k = 0)": {"law": {"k": 0}},
    "every byte counted (k = 0, p = 1)": {"law": {"k": 0, "p": 1.0}},
    "RTT_o of 1 s": {"law": {"rtt": "1s"}},
    "q_target a tenth of the buffer": {"law": {"q_target": "1kB"}},
    "UDP taken for responsive": {"law": {"responsive": [1]}},
    "self-clocked fair queueing": {"scheme": "scfq"},
    "ns-2's FQ (self-clocked, a packet more each)": {"scheme": "ns2_fq"},
}
"""One thing at a time; `scheme` stands for WFQ."""

WINDOWS = (10, 20, 50, 100)
MEMBERS = (1, 2, 4, 8)
LAWS = {"d": 0, "n d": 1, "n² d": 2}


def scenarios(full: bool) -> dict[str, Experiment]:
    """Give the figures' runs, other schedulers, what the results depend on, and single TCPs."""
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
    settings: list[Point] = [
        ({"setting": what, "qdisc": scheme, "kb": kb}, _changed("Five", scheme, kb, change))
        for what, change in SETTINGS.items()
        for scheme in ("ewfq", "wfq")
        for kb in (5, 10, 30, 60, 90, 150)
    ]
    changed: list[Point] = [
        ({"change": what, "network": name, "qdisc": scheme}, _changed(name, scheme, kb, change))
        for what, change in CHANGES.items()
        for name, scheme, kb in (("Varied", "ewfq", 30), ("Five", "ewfq", 10), ("Five", "wfq", 5))
        if not set(change) & {"law" if scheme == "wfq" else "scheme"}
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
    many, some = (10, 5) if full else (5, 2)
    return {
        "nodes": Experiment(nodes, measure, many),
        "sweep": Experiment(sweep, measure, 10 if full else 3),
        "others": Experiment(others, measure, some),
        "varied": Experiment(varied, measure, many),
        "settings": Experiment(settings, measure, some),
        "changed": Experiment(changed, measure, some),
        "single": Experiment(single, measure_lone, many),
        "classes": Experiment(classes, measure_lone, some),
    }


def _changed(name: str, scheme: str, kb: float, change: Mapping[str, Any]) -> dict[str, Any]:
    """One of the networks with something changed; what is EWFQ's does not touch WFQ."""
    own = {what: value for what, value in change.items() if what not in ("scheme", "law")}
    if scheme == "ewfq" and "law" in change:
        own["law"] = change["law"]
    return network(name, change.get("scheme", scheme), kb, **own)


# ---- figures and tables --------------------------------------------------------------------------


def _bars(runs: Runs, ax: "Axes", name: str) -> None:
    """Draw what each flow gets under each scheme."""
    rows = runs["nodes"].filter(pl.col("network") == name)
    for n, scheme in enumerate(("ewfq", "wfq", "wfq_varied")):
        found = [interval(values(rows, f"s{i}", qdisc=scheme)) for i in (1, 2, 3)]
        ax.bar(
            [i + (n - 1) * 0.25 for i in range(3)],
            [one.mean for one in found],
            0.23,
            yerr=[one.half for one in found],
            color=style(n)["color"],
            label=NAMES[scheme],
            error_kw={"elinewidth": 0.8, "capsize": 2},
        )
    delays = (10, 10) if name == "Uniform" else (50, 100)
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
    """Draw Jain's index or the total against the buffer, a line per scheme."""
    lines(ax, frame, "kb", what, by="qdisc", names=NAMES)
    label = {"jain": "Jain's index", "total": "total bandwidth, Mbit/s"}[what]
    low, high = {"jain": (0.7, 1.005), "total": (7.5, 10.1)}[what]
    ax.set(xlabel="buffer, kB", ylabel=label, xlim=(0, 155), ylim=(low, high))


@figure("4c", "Fairness of the five sources", needs=["sweep"])
def fairness(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4c."""
    _over_buffer(runs["sweep"], ax, "jain")


@figure("4d", "Total bandwidth", needs=["sweep"])
def total(runs: Runs, ax: "Axes") -> None:
    """Draw figure 4d."""
    _over_buffer(runs["sweep"], ax, "total")


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
    """Give fairness, total and each flow's part."""
    known = runs["nodes"].filter(pl.col("network") == "Varied")
    rows = [
        (NAMES[scheme], *_told(frame, "jain", qdisc=scheme), *(
            mean(frame, what, qdisc=scheme) for what in ("total", "s1", "s2", "s3")))
        for frame, schemes in ((known, list(NAMES)[:3]), (runs["varied"], OTHERS))
        for scheme in schemes
    ]  # fmt: skip
    names = ["scheduler", "Jain's index", "total, Mbit/s", "s1", "s2", "UDP"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _told(frame: pl.DataFrame, what: str, **labels: Any) -> tuple[str]:
    """Write Jain's index with four digits, and its interval."""
    found = interval(values(frame, what, **labels))
    return (f"{found.mean:.4f} ± {found.half:.4f}",)


NS2_FQ = {5: (0.8056, 8.72), 10: (0.8923, 9.15), 30: (0.9705, 9.86), 90: (0.9936, 10.0)}
"""By buffer in kB: Jain's index and total of ns-2's FQ with equal buffers, one run of 120 s each
(`drr_wfq_fair5.csv` of the oracle)."""


@table("ns-2", "WFQ with five sources, beside ns-2's FQ", needs=["sweep", "others"])
def beside_ns2(runs: Runs) -> pl.DataFrame:
    """Put WFQ, and self-clocked fair queueing with a packet more per class, beside ns-2."""
    rows = []
    for kb, (index, mbps) in NS2_FQ.items():
        cells: list[Any] = [kb, index]
        cells += _told(runs["others"], "jain", qdisc="ns2_fq", kb=kb)
        cells += _told(runs["sweep"], "jain", qdisc="wfq", kb=kb)
        cells += [mbps, mean(runs["others"], "total", qdisc="ns2_fq", kb=kb)]
        rows.append([*cells, mean(runs["sweep"], "total", qdisc="wfq", kb=kb)])
    names = ["buffer, kB", "ns-2's FQ: Jain", "ours as ns-2's FQ", "our WFQ"]
    names += ["ns-2's FQ: total, Mbit/s", "ours as ns-2's FQ, Mbit/s", "our WFQ, Mbit/s"]
    return pl.DataFrame(rows, schema=names, orient="row")


@table("settings", "What the claims about figure 4 depend on", needs=["sweep", "settings"])
def by_setting(runs: Runs) -> pl.DataFrame:
    """Give, for each setting, the numbers that claims C5 to C10 are about."""
    rows: list[list[Any]] = [["paper", 10.0, None, None, None, None, None, None, None]]
    known = runs["sweep"].with_columns(pl.lit(AS_CHOSEN).alias("setting"))
    frame = pl.concat([known, runs["settings"]], how="diagonal_relaxed")
    for what in (AS_CHOSEN, *SETTINGS):

        def of(column: str, scheme: str, kb: int, what: str = what) -> float:
            return mean(frame, column, setting=what, qdisc=scheme, kb=kb)

        rows.append([
            what,
            of("s1", "wfq", 5) / of("s4", "wfq", 5),
            of("jain", "wfq", 90),
            of("jain", "ewfq", 5),
            of("jain", "ewfq", 10),
            of("total", "ewfq", 10) - of("total", "wfq", 10),
            of("total", "ewfq", 30) - of("total", "wfq", 30),
            of("total", "ewfq", 60) - of("total", "wfq", 60),
            of("jain", "ewfq", 30) - of("jain", "wfq", 150),
        ])  # fmt: skip
    rows[0][2:] = ["not near 1", "> 0.98", "near 1", "< 0", "about 0", "> 0", "0"]
    names = ["setting", "C5: s1/s4, WFQ, 5 kB", "C6: Jain, WFQ, 90 kB", "C7: Jain, EWFQ, 5 kB",
             "C7: Jain, EWFQ, 10 kB", "C8: total, EWFQ - WFQ, 10 kB, Mbit/s",
             "C9: the same, 30 kB", "C9: 60 kB", "C10: Jain, EWFQ 30 kB - WFQ 150 kB"]  # fmt: skip
    return pl.DataFrame(
        [[_digits(cell) for cell in row] for row in rows], schema=names, orient="row"
    )


def _digits(cell: Any) -> str:
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)


@table("changed", "One thing changed at a time", needs=["changed"])
def by_change(runs: Runs) -> pl.DataFrame:
    """Give EWFQ's fairness and total where C3 and C7 are about, and WFQ's ratio of C5."""
    frame, rows = runs["changed"], []
    for what, change in CHANGES.items():
        own: list[str] = [what]
        if "scheme" in change:
            own += [""] * 4
        else:
            for name in ("Varied", "Five"):
                at = {"change": what, "network": name, "qdisc": "ewfq"}
                own += [*_told(frame, "jain", **at), f"{mean(frame, 'total', **at):.2f}"]
        if "law" in change:
            own += [""]
        else:
            at = {"change": what, "network": "Five", "qdisc": "wfq"}
            own += [f"{mean(frame, 's1', **at) / mean(frame, 's4', **at):.1f}"]
        rows.append(own)
    names = ["changed", "Varied, EWFQ 30 kB: Jain", "total, Mbit/s", "Five, EWFQ 10 kB: Jain",
             "total, Mbit/s ", "Five, WFQ 5 kB: s1/s4"]  # fmt: skip
    return pl.DataFrame(rows, schema=names, orient="row")


CASES = {
    "tail": "tail drop, room for 1 packet",
    "3/8": "random, 1 / (3/8 P²)",
    "2/3": "random, 1 / (2/3 P²)",
}


@figure("C11", "One TCP: its rate over R, which is P packets per RTT", needs=["single"])
def one_tcp(runs: Runs, ax: "Axes") -> None:
    """Draw the rate of a single TCP at both drop rates, and behind a queue of one packet."""
    share = runs["single"].with_columns((pl.col("window") / pl.col("P")).alias("share"))
    lines(ax, share, "P", "share", by="case", names=CASES)
    for level in (0.75, 1.0):
        ax.axhline(level, color="#555555", lw=0.8, ls=":")
    ax.set(xlabel="P, packets per RTT", ylabel="rate / R", xscale="log", ylim=(0, 1.3))
    ax.set_xticks(WINDOWS, [str(one) for one in WINDOWS])
    ax.minorticks_off()


@figure("C12", "n TCPs in a class whose share is 100 packets per RTT", needs=["classes"])
def many_tcps(runs: Runs, ax: "Axes") -> None:
    """Draw what the class gets if it is dropped at d, n d and n² d."""
    share = runs["classes"].with_columns((pl.col("window") / 100).alias("share"))
    lines(ax, share, "n", "share", by="law", names=list(LAWS))
    ax.axhline(1, color="#555555", lw=0.8, ls=":")
    ax.set(xlabel="TCPs in the class, n", ylabel="bandwidth of the class over its share")
    ax.set(xscale="log", yscale="log", ylim=(0.7, 12))
    ax.set_xticks(MEMBERS, [str(n) for n in MEMBERS])
    ax.set_yticks([1, 2, 4, 8], ["1", "2", "4", "8"])
    ax.minorticks_off()


# ---- claims --------------------------------------------------------------------------------------

NEAR = 0.005
"""How far from a stated index of fairness ours may be, and how far from 1 is near 1."""


def _index(what: str, found: npt.ArrayLike, stated: float) -> Part:
    """Compare an index of fairness with a stated one: four digits, since all are near 1."""
    mine = interval(found)
    holds = abs(mine.mean - stated) <= NEAR
    return Part(what, f"{stated:.4f}", f"{mine.mean:.4f} ± {mine.half:.4f}", holds, mine)


def _above(what: str, found: npt.ArrayLike, limit: float, less: bool = False) -> Part:
    """Ask whether an index of fairness is above `limit`, or with `less` below it."""
    mine = interval(found)
    holds = mine.mean < limit if less else mine.mean > limit
    told = f"{mine.mean:.4f} ± {mine.half:.4f}"
    return Part(what, f"{'<' if less else '>'} {limit:.4g}", told, holds, mine)


def _of_nodes(runs: Runs, name: str, scheme: str) -> npt.NDArray[Any]:
    return values(runs["nodes"], "jain", network=name, qdisc=scheme)


def _varied_wfq(runs: Runs) -> list[Part]:
    """C4: the two allocations, and which is the fairer."""
    even, uneven = (_of_nodes(runs, "Varied", one) for one in ("wfq", "wfq_varied"))
    return [
        _index("15/5/10 kB", uneven, 0.9765).beside("0.9849"),
        _index("even", even, 0.9733).beside("0.9782"),
        order("even less fair than 15/5/10 kB", even, uneven),
    ]


def _at(runs: Runs, what: str, scheme: str, kb: int) -> npt.NDArray[Any]:
    return values(runs["sweep"], what, qdisc=scheme, kb=kb)


def _ratio(runs: Runs) -> list[Part]:
    """C5: what the flow of 8 ms gets over what that of 404 ms gets, seed by seed."""
    ratio = _at(runs, "s1", "wfq", 5) / _at(runs, "s4", "wfq", 5)
    return [number("s1 over s4, 5 kB", ratio, 10).beside("5.4 (a packet more in each class)")]


def _only_above(runs: Runs) -> list[Part]:
    """C6: not near 1 at 90 kB, near at 150, where the flows still differ."""
    return [
        _above("index at 90 kB", _at(runs, "jain", "wfq", 90), 1 - NEAR, less=True)
        .beside("0.9936"),
        _above("index at 150 kB", _at(runs, "jain", "wfq", 150), 1 - NEAR).beside("0.9978"),
        order("150 kB: s4 has less than UDP", _at(runs, "s4", "wfq", 150),
              _at(runs, "s5", "wfq", 150), unit="Mbit/s"),
    ]  # fmt: skip


def _less_in_small(runs: Runs) -> list[Part]:
    """C8: at every buffer of up to 10 kB that was run."""
    ran = sorted(kb for kb in runs["sweep"]["kb"].unique().to_list() if kb <= 10)
    both = (((_at(runs, "total", one, kb) for one in ("ewfq", "wfq")), kb) for kb in ran)
    return [order(f"EWFQ below WFQ, {kb} kB", *pair, unit="Mbit/s") for pair, kb in both]


def _more_in_large(runs: Runs) -> list[Part]:
    """C9: the same at 30 kB, more beyond."""
    ours, theirs = (_at(runs, "total", one, 30) for one in ("ewfq", "wfq"))
    return [
        equal("30 kB", ours, theirs, within=0.03, unit="Mbit/s"),
        *(
            order(f"WFQ below EWFQ, {kb} kB", _at(runs, "total", "wfq", kb),
                  _at(runs, "total", "ewfq", kb), unit="Mbit/s")
            for kb in (60, 90, 120, 150)
        ),
    ]  # fmt: skip


def _five_times(runs: Runs) -> list[Part]:
    """C10: 150 kB of WFQ against 30 kB of EWFQ; and how much WFQ needs to be as good."""
    index = paired(_at(runs, "jain", "wfq", 150), _at(runs, "jain", "ewfq", 30))
    told = f"WFQ less EWFQ {index.mean:+.4f} ± {index.half:.4f}"
    frame = runs["sweep"]
    needed = next(
        kb
        for kb in (*sorted(frame["kb"].unique().to_list()), np.nan)
        if kb != kb
        or all(
            mean(frame, what, qdisc="wfq", kb=kb) >= mean(frame, what, qdisc="ewfq", kb=30)
            for what in ("jain", "total")
        )
    )
    return [
        Part("index, WFQ 150 kB and EWFQ 30 kB", "equal (within 0.005)", told,
             abs(index.mean) <= NEAR, index),
        equal("total, WFQ 150 kB and EWFQ 30 kB", _at(runs, "total", "wfq", 150),
              _at(runs, "total", "ewfq", 30), within=0.03, unit="Mbit/s"),
        number("least buffer of WFQ with the index and the total of EWFQ's 30 kB, over 30 kB",
               [needed / 30], 5),
    ]  # fmt: skip


def _single(runs: Runs) -> list[Part]:
    """C11: a queue of one packet, and both drop rates, at P = 50."""
    frame, p = runs["single"], 50
    return [
        number("tail drop: rate / R", values(frame, "window", case="tail", P=p) / p, 0.75,
               points=0.03),
        number("tail drop: lost, over 1 / (3/8 P²)",
               values(frame, "loss", case="tail", P=p) * p**2 * 3 / 8, 1),
        number("random at 1 / (3/8 P²): rate / R", values(frame, "window", case="3/8", P=p) / p,
               0.75),
        number("random at 1 / (2/3 P²): rate / R", values(frame, "window", case="2/3", P=p) / p,
               1),
    ]  # fmt: skip


def _classes(runs: Runs) -> list[Part]:
    """C12: the class gets its share whatever n; not so with d or n d at n = 8."""
    frame = runs["classes"]

    def share(law: str, n: int) -> npt.NDArray[Any]:
        return values(frame, "window", law=law, n=n) / 100

    return [
        *(number(f"n² d, n = {n}: over the share", share("n² d", n), 1) for n in MEMBERS),
        *(bound(f"{law}, n = 8: over the share", share(law, 8), ">", 1.2) for law in ("d", "n d")),
    ]


INDEX = "Jain's index of the sources' bandwidth; within 0.005."
PAIRS = "Seed by seed; the 95 % interval of the difference is above 0."
NODES, SWEEP = ("nodes",), ("sweep",)

CLAIMS = [
    Claim(
        "002-C1", "EWFQ's fairness in the Uniform network.", "2", "0.9999", INDEX,
        lambda runs: [_index("EWFQ", _of_nodes(runs, "Uniform", "ewfq"), 0.9999)], NODES,
    ),
    Claim(
        "002-C2", "WFQ's fairness in the Uniform network.", "2",
        "0.9998 (even buffers), 0.9963 (15/5/10 kB)", INDEX,
        lambda runs: [
            _index("even", _of_nodes(runs, "Uniform", "wfq"), 0.9998).beside("1.0000"),
            _index("15/5/10 kB", _of_nodes(runs, "Uniform", "wfq_varied"), 0.9963)
            .beside("0.9998"),
        ],
        NODES,
    ),
    Claim(
        "002-C3", "EWFQ's fairness in the Varied network, above WFQ's.", "3", "0.9978",
        f"{INDEX} And the order. {PAIRS}",
        lambda runs: [
            _index("EWFQ", _of_nodes(runs, "Varied", "ewfq"), 0.9978),
            *(
                order(f"{NAMES[one]} less fair than EWFQ", _of_nodes(runs, "Varied", one),
                      _of_nodes(runs, "Varied", "ewfq"))
                for one in ("wfq", "wfq_varied")
            ),
        ],
        NODES,
    ),
    Claim(
        "002-C4", "WFQ's fairness in the Varied network, better where buffers are uneven.", "3",
        "0.9765 (15/5/10 kB), 0.9733 (even)", f"{INDEX} And the order. {PAIRS}", _varied_wfq, NODES,
    ),
    Claim(
        "002-C5", "Under WFQ with small buffers flows with a short RTT get a multiple of those "
        "with a long one.", "4a", "10 times",
        "Bandwidth of s1 (8 ms) over that of s4 (404 ms) at 5 kB; within 20 %.", _ratio, SWEEP,
    ),
    Claim(
        "002-C6", "WFQ's fairness nears 1 only above 90 kB, and flows still differ at 150 kB.",
        "4c, 4a", "not at 90 kB; a spread at 150 kB",
        f"Near 1 is within 0.005. Not so at 90 kB, so at 150 kB; there s4 has less than UDP. "
        f"{PAIRS}",
        _only_above, SWEEP,
    ),
    Claim(
        "002-C7", "EWFQ's fairness is near 1 at 10 kB already.", "4c",
        "near 1 at 10 kB, > 0.98 in very small buffers",
        "Above 0.995 at 10 kB; above 0.98 at 5 kB, the smallest.",
        lambda runs: [
            _above("index at 10 kB", _at(runs, "jain", "ewfq", 10), 1 - NEAR),
            _above("index at 5 kB", _at(runs, "jain", "ewfq", 5), 0.98),
        ],
        SWEEP,
    ),
    Claim(
        "002-C8", "EWFQ's total bandwidth is below WFQ's in buffers of up to 10 kB.", "4d", "less",
        PAIRS, _less_in_small, SWEEP,
    ),
    Claim(
        "002-C9", "EWFQ's total matches WFQ's at 30 kB and exceeds it beyond.", "4d",
        "equal at 30 kB, then more", f"Equal within 3 %; then at 60, 90, 120, 150 kB. {PAIRS}",
        _more_in_large, SWEEP,
    ),
    Claim(
        "002-C10", "WFQ needs five times EWFQ's buffer for the same bandwidth and fairness.",
        "4c, 4d", "150 kB for 30 kB",
        "WFQ with 150 kB and EWFQ with 30 kB: index within 0.005, total within 3 %. And the first "
        "buffer at which both means of WFQ reach EWFQ's at 30 kB, over 30 kB: within 20 % of 5.",
        _five_times, SWEEP,
    ),
    Claim(
        "002-C11", "A single TCP with a small queue is dropped at 1 / (3/8 P²) and gets 75 % of R; "
        "at 1 / (2/3 P²) it gets R.", "C11", "0.75 R, R",
        "P = 50. Behind a queue of one packet: the rate within 3 points, the drops within 20 %. "
        "With random losses at both rates: within 20 %.",
        _single, ("single",),
    ),
    Claim(
        "002-C12", "A class of n TCPs needs n² times the drop rate.", "C12", "its share at n² d",
        "P = 100, n = 1, 2, 4, 8: within 20 % of the share; at d and at n d, n = 8 has more than "
        "1.2 of it.",
        _classes, ("classes",),
    ),
]  # fmt: skip
