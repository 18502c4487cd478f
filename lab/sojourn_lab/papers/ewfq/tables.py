"""Tables of the paper on EWFQ: parameters, other schedulers, ns-2, settings, losses."""

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sojourn.result.statistics import interval
from sojourn.scenario.draft import parse
from sojourn_lab.papers.ewfq.experiments import JUDGED, LOSSES_AT
from sojourn_lab.papers.ewfq.runs import AS_CHOSEN, CHANGES, LOW_UDP, NAMES, OTHERS, OURS, network
from sojourn_lab.reproduction.claims import NoRunsError, Runs, mean, values
from sojourn_lab.reproduction.paper import table


def text(sample: npt.NDArray[Any], places: int = 4) -> str:
    """Format a mean with its interval to `places` decimals: fairness indices need four."""
    mine = interval(sample)
    return f"{mine.mean:.{places}f} ± {mine.half:.{places}f}"


PARAMETERS = {
    "alpha": ("gain of the previous sample of the queue", "0.85"),
    "beta": ("gain of the current sample of the queue", "0.9"),
    "sample": ("1 / f_s, time between samples of the queue", "10 ms"),
    "q_target": ("target of the queue", "half of the buffer"),
    "interval": ("t_i, interval of the measurement", "1 s"),
    "p_c": ("probability that a packet is put into the cache", "0.1"),
    "k": ("hits after which a class is measured", "1"),
    "p": ("probability that a byte is sampled", "misses below 10 %"),
    "cache": ("entries of the cache", "not stated"),
    "rtt": ("RTT_o, largest round-trip time", "not stated"),
    "mfair_gain": ("scale of the step of m_fair", "not stated"),
    "credit": ("bytes before the first sample are credited", "not stated"),
}
"""EWFQ's parameters: meaning, and the value that the paper states."""


@table("I", "EWFQ's parameters: the paper's and ours", needs=())
def table_1(_: Runs) -> pl.DataFrame:
    """Tabulate the parameters of EWFQ in the Uniform network, with defaults filled in."""
    scenario = parse(network("Uniform", "ewfq", OURS.node_kb))
    ours = json.loads(scenario.canonical())["links"]["bottleneck"]["qdisc"]
    rows = [
        (name, meaning, stated, str(ours.get(name, "")))
        for name, (meaning, stated) in PARAMETERS.items()
        if name in ours
    ]
    return pl.DataFrame(rows, schema=["parameter", "meaning", "paper", "here"], orient="row")


@table("3-others", "Varied network, 30 kB, with other schedulers", needs=["nodes", "varied"])
def table_3_others(runs: Runs) -> pl.DataFrame:
    """Tabulate fairness, total, and the bandwidth of each flow."""
    known = runs["nodes"].filter(pl.col("network") == "Varied")
    rows = [
        (NAMES[scheme], text(values(frame, "jain", qdisc=scheme)), *(
            mean(frame, what, qdisc=scheme) for what in ("total", "s1", "s2", "s3")))
        for frame, schemes in ((known, list(NAMES)[:3]), (runs["varied"], OTHERS))
        for scheme in schemes
    ]  # fmt: skip
    names = ["scheduler", "Jain's index", "total, Mbit/s", "s1", "s2", "UDP"]
    return pl.DataFrame(rows, schema=names, orient="row")


NS2_FQ = {5: (0.8056, 8.72), 10: (0.8923, 9.15), 30: (0.9705, 9.86), 90: (0.9936, 10.0)}
"""By buffer in kB: Jain's index and total of ns-2's FQ with equal buffers (one run of 120 s)."""


@table("ns-2", "WFQ with five sources, compared with ns-2's FQ", needs=["sweep", "others"])
def table_ns2(runs: Runs) -> pl.DataFrame:
    """Compare WFQ, and self-clocked fair queueing with one more packet per class, with ns-2."""
    rows = []
    for kb, (index, mbps) in NS2_FQ.items():
        cells: list[Any] = [kb, index]
        cells.append(text(values(runs["others"], "jain", qdisc="ns2_fq", kb=kb)))
        cells.append(text(values(runs["sweep"], "jain", qdisc="wfq", kb=kb)))
        cells += [mbps, mean(runs["others"], "total", qdisc="ns2_fq", kb=kb)]
        rows.append([*cells, mean(runs["sweep"], "total", qdisc="wfq", kb=kb)])
    names = ["buffer, kB", "ns-2's FQ: Jain", "ours as ns-2's FQ", "our WFQ"]
    names += ["ns-2's FQ: total, Mbit/s", "ours as ns-2's FQ, Mbit/s", "our WFQ, Mbit/s"]
    return pl.DataFrame(rows, schema=names, orient="row")


@table("single runs", "EWFQ in the Uniform network: spread of single runs", needs=["single runs"])
def table_single_runs(runs: Runs) -> pl.DataFrame:
    """Tabulate the quantiles of the index over runs, and the runs that print the paper's value."""
    each = values(runs["single runs"], "jain", network="Uniform", qdisc="ewfq")
    quantiles = pl.Series(each)
    cells = [f"{quantiles.quantile(one, 'linear'):.5f}" for one in (0.05, 0.25, 0.5, 0.75, 0.95)]
    names = ["runs", "5 % of the runs below", "25 %", "50 %", "75 %", "95 %"]
    row = [str(len(each)), *cells, as_fair(runs)]
    return pl.DataFrame([row], schema=[*names, "0.9999 or more when rounded"], orient="row")


def as_fair(runs: Runs) -> str:
    """Return the number of single runs whose index, rounded, is the paper's or larger."""
    each = values(runs["single runs"], "jain", network="Uniform", qdisc="ewfq")
    return f"{int((each >= 0.99985).sum())} of {len(each)}"


def low_udp(runs: Runs) -> str:
    """Return the differences of the totals, EWFQ - WFQ, with slow UDP."""
    texts = []
    for what in LOW_UDP:
        gaps = []
        for kb in (30, 90, 150):
            at = {"setting": what, "kb": kb}
            each = (values(runs["sweep, low UDP"], "total", qdisc=one, **at) for one in JUDGED)
            gaps.append(text(np.subtract(*each), 2))
        kbits = what.removeprefix("UDP of ")
        texts.append(f"{', '.join(gaps)} Mbit/s at 30, 90 and 150 kB with {kbits}")
    return " and ".join(texts)


CELLS: tuple[tuple[str, str, int], ...] = (
    ("C5: s1/s4, WFQ, 5 kB", "10", 1), ("C6: Jain, WFQ, 90 kB", "not near 1", 4),
    ("C6: Jain, WFQ, 150 kB", "near 1", 4), ("C7: Jain, EWFQ, 5 kB", "> 0.98", 4),
    ("C7: Jain, EWFQ, 10 kB", "near 1", 4),
    ("C8: total, EWFQ - WFQ, 10 kB, Mbit/s", "< 0", 2), ("C9: the same, 30 kB", "about 0", 2),
    ("C9: 90 kB", "> 0", 2), ("C9: 150 kB", "> 0", 2),
    ("C10: Jain, EWFQ 30 kB - WFQ 150 kB", "about 0", 4),
)  # fmt: skip
"""Columns of the table of settings: heading, what the paper states, decimals."""


@table("settings", "Claims about figure 4 under other settings",
       needs=["sweep", "sweep settings", "sweep, low UDP"])  # fmt: skip
def table_settings(runs: Runs) -> pl.DataFrame:
    """Tabulate, for each setting, the numbers of claims C5 to C10."""
    rows: list[list[str]] = [["the paper", *(stated for _, stated, _ in CELLS)]]
    for what in (AS_CHOSEN, *CHANGES):
        frame = with_settings(runs).filter(pl.col("setting").is_in([what, AS_CHOSEN]))

        def of(
            column: str, scheme: str, kb: int, what: str = what, frame: pl.DataFrame = frame
        ) -> npt.NDArray[Any]:
            """Return the runs with the setting; what it does not affect, as chosen."""
            at: dict[str, Any] = {"qdisc": scheme, "kb": kb}
            try:
                return values(frame, column, setting=what, **at)
            except NoRunsError:
                n = len(frame.filter(pl.col("setting") == what)["seed"].unique())
                if not n:
                    raise
                return values(frame, column, setting=AS_CHOSEN, **at)[:n]

        try:
            cells = [
                of("s1", "wfq", 5) / of("s4", "wfq", 5),
                of("jain", "wfq", 90),
                of("jain", "wfq", 150),
                of("jain", "ewfq", 5),
                of("jain", "ewfq", 10),
                *(of("total", "ewfq", kb) - of("total", "wfq", kb) for kb in (10, 30, 90, 150)),
                of("jain", "ewfq", 30) - of("jain", "wfq", 150),
            ]
        except NoRunsError:  # quick mode omits some settings
            continue
        each = zip(cells, CELLS, strict=True)
        rows.append([what, *(text(cell, places) for cell, (_, _, places) in each)])
    schema = ["setting", *(name for name, _, _ in CELLS)]
    return pl.DataFrame(rows, schema=schema, orient="row")


def with_settings(runs: Runs) -> pl.DataFrame:
    """Return the runs of the sweep and of the other settings in one frame."""
    known = runs["sweep"].with_columns(pl.lit(AS_CHOSEN).alias("setting"))
    more = [runs[one] for one in ("sweep settings", "sweep, low UDP") if one in runs]
    return pl.concat([known, *more], how="diagonal_relaxed")


@table("nodes", "Networks of three sources under other settings", needs=["nodes", "nodes settings"])
def table_nodes(runs: Runs) -> pl.DataFrame:
    """Tabulate Jain's index of C1 to C4 for each setting, and EWFQ's total."""
    known = runs["nodes"].with_columns(pl.lit(AS_CHOSEN).alias("setting"))
    frame = pl.concat([known, runs["nodes settings"]], how="diagonal_relaxed")
    ran, rows = set(frame["setting"]), []
    for what in (one for one in (AS_CHOSEN, *CHANGES) if one in ran):
        cells = []
        for place in ("Uniform", "Varied"):
            for scheme in ("ewfq", "wfq", "wfq_varied"):
                at = {"setting": what, "network": place, "qdisc": scheme}
                try:
                    cells.append(text(values(frame, "jain", **at)))
                    cells += [f"{mean(frame, 'total', **at):.2f}"] if scheme == "ewfq" else []
                except NoRunsError:  # the setting does not affect this discipline
                    cells += ["", ""] if scheme == "ewfq" else [""]
        rows.append([what, *cells])
    names = ["setting"]
    for place in ("Uniform", "Varied"):
        names += [f"{place}: EWFQ", f"{place}: EWFQ's total, Mbit/s", f"{place}: WFQ, even"]
        names.append(f"{place}: WFQ, 15/5/10 kB")
    return pl.DataFrame(rows, schema=names, orient="row")


@table("losses", "EWFQ: drop rates of s4 (RTT 404 ms)", needs=["losses"])
def table_losses(runs: Runs) -> pl.DataFrame:
    """Compare drop rates of s4 with the one that n TCPs of 2 Mbit/s sustain: 1.5 (n / 101)²."""
    frame, rows = runs["losses"], []
    for kb, n in LOSSES_AT:
        full, early = (100 * values(frame, what, kb=kb, n=n) for what in ("full", "early"))
        rows.append([str(kb), str(n), text(full, 3), text(early, 3), f"{150 * (n / 101) ** 2:.3f}"])
    names = ["buffer, kB", "TCPs per source", "dropped, buffer full, %", "dropped early, %"]
    return pl.DataFrame(rows, schema=[*names, "sustainable at its share, %"], orient="row")
