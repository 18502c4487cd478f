"""The paper's open question: other AQM algorithms in its network.

The paper asks how REM, PI, CHOKe, AVQ, Blue, SRED and FRED perform with its traffic. All run here,
with newer algorithms, under one rule for their parameters (`laws`).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sojourn.plotting.lines import style
from sojourn.plotting.run import legend
from sojourn.result.statistics import interval
from sojourn_lab.papers.codel_dc.runs import (
    SAMPLED,
    of_answers,
    of_flows,
    poisson,
    queries,
    switch,
)
from sojourn_lab.papers.codel_dc.series import known_mean, times
from sojourn_lab.papers.codel_dc.set_up import BASE, SCHEMES, SetUp, Table
from sojourn_lab.reproduction.claims import Runs, values
from sojourn_lab.reproduction.paper import Experiment, Point, figure, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES, LOADS = (10, 50, 100), (10, 50, 90)
SEEDS = 3

ASKED = {"rem": "REM", "pi": "PI", "choke": "CHOKe", "avq": "AVQ", "blue": "Blue", "sred": "SRED",
         "fred": "FRED"}  # fmt: skip
"""Algorithms named by the paper's question."""

NEWER = {"pie": "PIE", "cobalt": "COBALT", "fq_codel": "FQ-CoDel", "dualpi2": "DualPI2",
         "step": "step, SACK and ECN", "dctcp": "step, DCTCP"}  # fmt: skip

ALL = {"droptail": "DropTail", "red": "RED", "codel": "CoDel", **ASKED, **NEWER}

STEP = 20
"""DCTCP's threshold in packets, as its authors have it at 1 Gbit/s: half a round trip."""

PIE_RTT_US = 15_000
"""PIE's published target, which stands for one round trip."""


def pi_gains(set_up: SetUp = BASE) -> tuple[float, float]:
    """Return PI's gains a and b by its authors' rule.

    One flow, a round trip with a queue of one more round trip, a sample per round trip.
    """
    rtt_s, rate = 2e-6 * set_up.rtt_us, 1e6 / set_up.slot_us
    pole = 2 / (rtt_s**2 * rate)
    gain = pole * (1 + (pole * rtt_s) ** 2) ** 0.5 / ((rtt_s * rate) ** 3 / 4)
    half = 0.5e-6 * set_up.rtt_us
    return gain * (1 / pole + half), gain * (1 / pole - half)


def laws(set_up: SetUp = BASE) -> dict[str, Table]:
    """Return the disciplines, with parameters scaled to the network.

    - References and targets of the queue are one base round trip; thresholds of an average queue,
      and its weight, are RED's of the paper.
    - Periods (of updates, of freezing) are one base round trip. PIE's times are its published ones
      times 300 us / 15 ms, but its period is at least 1 ms (the shortest that it allows).
    - Gains per packet or per update are the published ones, PI's by its authors' rule. PIE's, per
      second, are multiplied as its times are divided.
    - Shares, and sizes of memories in packets or flows, are the published ones.
    """
    rtt, bdp = f"{set_up.rtt_us:.0f}us", f"{set_up.bdp:.0f}p"
    own: Table = {"limit": set_up.limit}
    packet = {"packet": set_up.packet}
    average = {
        "min_th": f"{set_up.min_th}p",
        "max_th": f"{set_up.max_th}p",
        "w_q": set_up.w_q,
        "max_p": set_up.max_p,
    }
    clocks = {"target": set_up.target, "interval": set_up.interval}
    a, b = pi_gains(set_up)
    faster = PIE_RTT_US / set_up.rtt_us
    step = {"name": "red", **own, **packet, "ecn": True, "w_q": 1, "max_p": 1}
    step |= {"min_th": f"{STEP}p", "max_th": f"{STEP + 1}p"}
    return {
        **{name: set_up.laws[name] for name in SCHEMES},
        "rem": {"name": "rem", **own, **packet, "period": rtt, "b_star": bdp,
                "gamma": 0.001, "phi": 1.001, "alpha": 0.1},
        "pi": {"name": "pi", **own, **packet, "q_ref": bdp, "a": a, "b": b,
               "w": round(1e6 / set_up.rtt_us)},
        "choke": {"name": "choke", **own, **packet, **average},
        "avq": {"name": "avq", **own, **packet, "gamma": 0.98, "alpha": 0.15},
        "blue": {"name": "blue", **own, "freeze": rtt, "d1": 0.0025, "d2": 0.00025},
        "sred": {"name": "sred", **own, "m": 1000, "r": 0.25, "pmax": 0.15},
        "fred": {"name": "fred", **own, **packet, **average},
        "pie": {"name": "pie", **own, **packet, "target": rtt, "t_update": "1ms",
                "max_burst": f"{150_000 / faster:.0f}us", "beta": 1.25 * faster,
                "alpha": round(0.125 * faster * 1_000 / set_up.rtt_us, 3)},
        "cobalt": {"name": "cobalt", **own, **clocks},
        "fq_codel": {"name": "fq_codel", **own, **clocks, "quantum": set_up.packet},
        "dualpi2": {"name": "dualpi2", **own, "typical_rtt": rtt},
        "step": step,
        "dctcp": step,
    }  # fmt: skip


SENDERS: dict[str, Table] = {
    "step": {"ecn": True},
    "dctcp": {"name": "dctcp", "profile": "rfc", "delayed_ack": False},
}
"""Changes of the senders. DCTCP has the windows and timers of SACK, and an ack per packet."""


def changes(set_up: SetUp) -> dict[str, dict[str, Table]]:
    """Return, for algorithms with a gain or a memory, a tenth of it and ten times as much."""
    own = laws(set_up)
    a, b = pi_gains(set_up)
    scaled: dict[str, Callable[[float], Table]] = {
        "rem": lambda x: {"gamma": 0.001 * x},
        "pi": lambda x: {"a": a * x, "b": b * x},
        "choke": lambda x: {"w_q": set_up.w_q * x},
        "avq": lambda x: {"alpha": 0.15 * x},
        "blue": lambda x: {"d1": 0.0025 * x, "d2": 0.00025 * x},
        "sred": lambda x: {"m": round(1000 / x)},
        "fred": lambda x: {"w_q": set_up.w_q * x},
        "pie": lambda x: {"alpha": min(100, own["pie"]["alpha"] * x),
                          "beta": min(100, own["pie"]["beta"] * x)},
    }  # fmt: skip
    words = {"a tenth": 0.1, "ten times": 10.0}
    return {
        name: {word: {**own[name], **change(x)} for word, x in words.items()}
        for name, change in scaled.items()
    }


def experiments(full: bool, set_up: SetUp) -> dict[str, Experiment]:
    """Return queries and short flows with each algorithm that the paper does not run."""
    sizes, loads = (SIZES, LOADS) if full else (SIZES[:1], LOADS[1:2])
    seeds, end = (SEEDS, "2600ms") if full else (2, "400ms")
    there = [name for name in ALL if name not in SCHEMES]

    def tree(name: str, law: Table, source: Table, until: str) -> Table:
        tcp = SENDERS.get(name)
        return switch(law, set_up.servers, source, until, set_up=set_up, tcp=tcp) | SAMPLED

    queued: list[Point] = [
        ({"scheme": s, "kB": kb}, tree(s, laws(set_up)[s], queries(kb, set_up), end))
        for s in there
        for kb in sizes
    ]
    busy: list[Point] = [
        ({"scheme": s, "load": x}, tree(s, laws(set_up)[s], poisson(x, set_up),
                                        "3100ms" if full else "600ms"))
        for s in there
        for x in loads
    ]  # fmt: skip
    gains: list[Point] = [
        (
            {"scheme": s, "gain": word, "kB": kb},
            tree(s, law, queries(kb, set_up), "1100ms" if full else "300ms"),
        )
        for s, each in changes(set_up).items()
        for word, law in each.items()
        for kb in (SIZES[::2] if full else SIZES[:1])
    ]
    return {
        "other AQMs": Experiment(queued, of_answers, seeds),
        "other AQMs, short flows": Experiment(busy, of_flows, seeds),
        "other gains": Experiment(gains, of_answers, seeds),
    }


PARTS = (("incast", "other AQMs", "kB"), ("loads", "other AQMs, short flows", "load"))
"""Experiments of the paper, those with other algorithms, and their axis."""

NEEDS = [name for part in PARTS for name in part[:2]]


def together(runs: Runs, base: str, other: str, axis: str) -> pl.DataFrame:
    """Return the rows of all algorithms at the points and seeds of the others."""
    rows = runs[other]
    same = [pl.col(x).is_in(rows[x].unique().to_list()) for x in (axis, "seed")]
    mine = runs[base].filter(pl.col("scheme").is_in(list(SCHEMES)), *same)
    shared = [name for name in rows.columns if name in mine.columns]
    return pl.concat([mine.select(shared), rows.select(shared)], how="vertical_relaxed")


def _ratios(runs: Runs, part: tuple[str, str, str], unit: str, ax: "Axes") -> None:
    """Draw mean times relative to CoDel's, paired by seed."""
    axis = part[2]
    frame = together(runs, *part)
    places = sorted(frame[axis].unique().to_list())
    names = [name for name in ALL if name != "codel"]
    for n, place in enumerate(places):
        look = {**style(n), "ls": "", "capsize": 2, "elinewidth": 0.8, "ms": 5}
        for y, name in enumerate(names):
            theirs, ours = times(frame, name, "codel", **{axis: place})
            if not len(ours):
                continue
            ratio = interval(theirs / ours)
            label = f"{place} {unit}" if y == 0 else None
            at = y + 0.22 * (n - (len(places) - 1) / 2)
            ax.errorbar([ratio.mean], [at], xerr=[np.nan_to_num(ratio.half)], label=label, **look)
    ax.axvline(1, color="black", lw=0.8)
    for edge in (1.5, 1.5 + len(ASKED)):
        ax.axhline(edge, color="#bbbbbb", lw=0.8)
    ax.set_yticks(range(len(names)), [ALL[name] for name in names])
    ax.invert_yaxis()
    ax.set(xlabel="mean time / mean time with CoDel (below 1: faster)", xscale="log")
    low, high = ax.get_xlim()
    ticks = [x for x in (0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20) if low <= x <= high]
    ax.set_xticks(ticks, [f"{x:g}" for x in ticks])
    ax.minorticks_off()
    legend(ax)


@figure("IV-queries", "Own drawing, open question of IV: answers from 40 servers",
        needs=PARTS[0][:2], size=(6.4, 5.2))  # fmt: skip
def of_queries(runs: Runs, ax: "Axes") -> None:
    """Draw mean times of answers with all algorithms, relative to CoDel's."""
    _ratios(runs, PARTS[0], "kB", ax)


@figure("IV-flows", "Own drawing, open question of IV: short flows", needs=PARTS[1][:2],
        size=(6.4, 5.2))  # fmt: skip
def of_short_flows(runs: Runs, ax: "Axes") -> None:
    """Draw mean times of short flows with all algorithms, relative to CoDel's."""
    _ratios(runs, PARTS[1], "% load", ax)


@table("open", "All algorithms in the paper's network (3 seeds)", needs=NEEDS)
def all_algorithms(runs: Runs) -> pl.DataFrame:
    """Tabulate mean time, utilisation, loss, queue and flows in timeout of every algorithm."""
    rows = []
    for part in PARTS:
        frame, axis = together(runs, *part), part[2]
        for place in sorted(frame[axis].unique().to_list()):
            for name, label in ALL.items():
                at: dict[str, Any] = {"scheme": name, axis: place}
                each = [known_mean(scale * values(frame, what, **at)) for what, scale in SHOWN]
                rows.append((f"{place} kB" if axis == "kB" else f"load {place} %", label, *each))
    heads = ["mean time, ms", "utilisation, %", "loss, %", "queue, packets", "flows in timeout"]
    return pl.DataFrame(rows, schema=["case", "algorithm", *heads], orient="row", strict=False)


SHOWN = (("afct_s", 1e3), ("utilisation", 100), ("loss", 100), ("queue_packets", 1),
         ("in_timeout", 1))  # fmt: skip


@table("open-parameters", "Parameters of the other algorithms", needs=())
def parameters(_: Runs) -> pl.DataFrame:
    """Tabulate the parameters that `laws` gives the algorithms."""
    rows = []
    for name, law in laws().items():
        if name not in SCHEMES:
            words = [f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
                     for key, value in law.items() if key != "name"]  # fmt: skip
            rows.append((ALL[name], str(law["name"]), ", ".join(words)))
    return pl.DataFrame(rows, schema=["algorithm", "discipline", "parameters"], orient="row")


@table("open-gains", "A tenth of the gain (SRED: ten times the memory), and ten times",
       needs=["other AQMs", "other gains"])  # fmt: skip
def other_gains(runs: Runs) -> pl.DataFrame:
    """Tabulate mean times of answers with gains that differ by a factor of ten."""
    varied, base = runs["other gains"], runs["other AQMs"]
    rows = []
    for kb in sorted(varied["kB"].unique().to_list()):
        for name in varied["scheme"].unique(maintain_order=True):
            at = {"scheme": name, "kB": kb}
            each = [known_mean(1e3 * values(varied, "afct_s", gain=word, **at))
                    for word in ("a tenth", "ten times")]  # fmt: skip
            rows.append((kb, ALL[name], each[0], known_mean(1e3 * values(base, "afct_s", **at)),
                         each[1]))  # fmt: skip
    heads = ["a tenth", "as chosen", "ten times"]
    names = ["kB", "algorithm", *(f"mean time, ms: {head}" for head in heads)]
    return pl.DataFrame(rows, schema=names, orient="row", strict=False)
