"""Drawings of the figures of the paper on HRED, and of those beyond it."""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sojourn.plotting.lines import lines, style
from sojourn.plotting.run import legend
from sojourn.result.statistics import interval
from sojourn_lab.papers.hred.checks import NS2, RESPONDING, RULES
from sojourn_lab.papers.hred.common import NAMES
from sojourn_lab.papers.hred.extras import BDP_KB, CORRECTIONS, KAPPAS, MANY
from sojourn_lab.papers.hred.settings import STARTED_PIC
from sojourn_lab.papers.hred.theory import fluid_limit, gain, smallest_stable_buffer
from sojourn_lab.reproduction.claims import Runs, mean, values
from sojourn_lab.reproduction.drawings import drop_curve
from sojourn_lab.reproduction.theirs import level, ns2, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEAN, STD = "mean queue / buffer", "deviation of the queue / buffer"
TRAFFIC = "traffic T: FTPs, and T/12 web sessions/s"
STATED_START = {"color": "#999999", "lw": 0.7}
"""Look of PIC from a drop probability of 0, where another start is drawn as well."""


def maps(ax: "Axes") -> None:
    """Draw HRED's map p_min (1 + (q - min_th) / (kappa max_th)) for two p_min, and RED's curve."""
    ends = (0.0, 1.0)
    curves = {
        name: [(q, p_min * (1 + (q - 0.25) / (2 * 0.5))) for q in ends]
        for name, p_min in (("HRED, p_min", 0.25), ("HRED, 2 p_min", 0.5))
    }
    curves["RED, gentle"] = [(0.0, 0.0), (0.25, 0.0), (0.5, 0.1), (1.0, 1.0)]
    ticks = {0.0: "0", 0.25: "min_th", 0.5: "max_th", 1.0: "B"}
    drop_curve(ax, curves, ticks, {0.1: "max_p", 0.25: "p_min", 0.5: "2 p_min", 1.0: "1"},
               "queue (RED: its average)")  # fmt: skip


def of_hred(runs: Runs, ax: "Axes", what: str, label: str) -> None:
    """Draw a line for each buffer of HRED against T."""
    frame = runs["sweep"].filter(pl.col("qdisc") == "hred")
    names = {b: f"{b} kB" for b in (200, 300, 500, 1000)}
    lines(ax, frame, "T", what, by="buffer", names=names)
    if what == "mean":
        level(ax, 0.375)
    ax.set(xlabel=TRAFFIC, ylabel=label, ylim=(0, None))


def of_all(runs: Runs, ax: "Axes", what: str, label: str, buffer: int) -> None:
    """Draw a line for each discipline against T."""
    rules = pl.col("qdisc").is_in(RULES)
    frame = runs["sweep"].filter((pl.col("buffer") == buffer) & rules)
    lines(ax, frame, "T", what, by="qdisc", names=NAMES)
    for n, name in enumerate(NAMES) if buffer == 300 else ():
        theirs = {t: row[("mean", "std").index(what)] for (q, t), row in NS2.items() if q == name}
        if theirs and name in RULES:
            ns2(ax, list(theirs), list(theirs.values()), n)
    if what == "mean":
        level(ax, 0.375, "target 3/8")
    ax.set(xlabel=TRAFFIC, ylabel=label, ylim=(0, None))


def queue(
    ax: "Axes", frame: pl.DataFrame, name: str, buffer: int, from_s: float, **labels: Any
) -> None:
    """Draw the queue (kB) of the first seed over time, and the thresholds of table 1."""
    _over_time(ax, values(frame, "queue", **labels)[0], buffer, from_s, _look(name))
    for share, what in ((1 / 4, "B/4"), (3 / 8, "3B/8"), (1 / 2, "B/2")):
        if (what == "3B/8") == (name in ("pi", "rem")):
            ax.axhline(share * buffer, color="#666666", lw=0.7, ls=":")
            ax.annotate(what, (1, share * buffer), xycoords=("axes fraction", "data"), fontsize=7)
    ax.axhline(buffer, color="#000000", lw=0.7)
    ax.annotate("B", (1, buffer), xycoords=("axes fraction", "data"), fontsize=7)
    ax.set(xlabel="time, s", ylabel="queue, kB", ylim=(0, buffer * 1.08))


def _look(name: str) -> dict[str, Any]:
    return {"color": style(list(NAMES).index(name))["color"], "lw": 0.7}


def _over_time(ax: "Axes", shares: Any, buffer: int, from_s: float, look: dict[str, Any]) -> None:
    kept = [(0.1 * (i + 1), one * buffer) for i, one in enumerate(shares) if i >= 10 * from_s]
    ax.plot(*zip(*kept, strict=True), **look)


def rem(runs: Runs, ax: "Axes", t: int) -> None:
    """Draw REM's queue over the measured time."""
    last = 0.1 * len(values(runs["rem"], "queue", T=t)[0])
    queue(ax, runs["rem"], "rem", 500, last - (50 if last > 150 else 12), T=t)


def web_on(runs: Runs, ax: "Axes", name: str) -> None:
    """Draw a queue from before to after the web sessions start."""
    queue(ax, runs["web_on"], name, 300, 0, qdisc=name)


def deviation_by_web(runs: Runs, ax: "Axes") -> None:
    """Draw figure 8."""
    lines(ax, runs["web"], "web", "std", by="qdisc", names=NAMES)
    points(ax, [0], [0.11], None, "paper, all below")
    ax.set(xlabel="web sessions per second", ylabel=STD, ylim=(0, None))


def step(runs: Runs, ax: "Axes", name: str) -> None:
    """Draw a queue around a step of 30 %, without the first quarter of the run (as the paper)."""
    frame, own = runs["step"], {"qdisc": name, "size": 30}
    last = 0.1 * len(values(frame, "queue", **own)[0])
    if name != "pi":
        queue(ax, frame, name, 300, last / 4, **own)
        return
    stated = values(frame, "queue", **own)[0]
    _over_time(ax, stated, 300, last / 4, {**STATED_START, "label": "from p = 0"})
    queue(ax, runs["step settings"], name, 300, last / 4, setting=STARTED_PIC, **own)
    ax.plot([], [], **_look(name), label="from p = 0.075")
    ax.legend(loc="upper right", fontsize=7, frameon=False)


def used(runs: Runs, ax: "Axes", name: str) -> None:
    """Draw the utilisation of each second around a step of 30 %."""
    own = {"qdisc": name, "size": 30}
    curves = [(values(runs["step"], "used", **own)[0], _look(name)["color"], "")]
    if name == "pi":
        started = values(runs["step settings"], "used", setting=STARTED_PIC, **own)[0]
        labels = ("from p = 0", "from p = 0.075")
        curves = [
            (curves[0][0], STATED_START["color"], labels[0]),
            (started, curves[0][1], labels[1]),
        ]
    least = 98.0
    for shares, colour, label in curves:
        kept = range(len(shares) // 4, len(shares))
        shown, at = [100 * shares[i] for i in kept], [i + 1 for i in kept]
        ax.step(at, shown, color=colour, where="pre", label=label or None)
        ax.fill_between(at, shown, 100, step="pre", color=colour, alpha=0.25, lw=0)
        least = min(least, *shown)
    if name == "pi":
        ax.legend(loc="lower left", fontsize=7, frameon=False)
    ax.set(xlabel="time, s", ylabel="utilisation of each second, %", ylim=(least - 0.5, 100.4))


def response(runs: Runs, ax: "Axes", way: str) -> None:
    """Draw response times against the size of the step; open triangles are cut.

    Curves are shifted sideways, so that equal times do not hide each other.
    """
    started = runs["step settings"].filter(pl.col("setting") == STARTED_PIC)
    curves = [(name, runs["step"], NAMES[name], 1.0) for name in RESPONDING]
    curves.insert(2, ("pi", started, "PIC from p = 0.075", 0.45))
    cut = float(runs["step"]["cut_s"].to_numpy()[0])
    sizes = sorted(runs["step"]["size"].unique().to_list())
    for n, (name, frame, label, alpha) in enumerate(curves):
        look = style(list(NAMES).index(name)) | {"alpha": alpha}
        xs = [size + 0.9 * (n - 2) for size in sizes]
        each = [values(frame, way, qdisc=name, size=size) for size in sizes]
        means = [interval(times) for times in each]
        ax.errorbar(
            xs,
            [one.mean for one in means],
            yerr=np.clip(
                [[min(one.half, one.mean) for one in means], [one.half for one in means]], 0, None
            ),
            label=label,
            capsize=2,
            elinewidth=0.8,
            **look,
        )
        ended = [(x, one.mean) for x, one, t in zip(xs, means, each, strict=True) if t.max() >= cut]
        for x, y in ended:
            ax.plot(x, y, ls="", marker="^", ms=9, mfc="none", mec=look["color"], zorder=5)
    ax.plot([], [], ls="", marker="^", ms=9, mfc="none", mec="#555555",
            label=f"cut at {cut:g} s in a run")  # fmt: skip
    ax.axhline(cut, color="#666666", lw=0.7, ls=":")
    ax.set(xlabel="size of the step, %", ylabel="response time about the old mean, s")
    ax.set_ylim(-0.03 * cut, 1.2 * cut)
    legend(ax)


def bed(runs: Runs, ax: "Axes", what: str, label: str, scale: float, least: float = 0) -> None:
    """Draw a column of the testbed against the number of long flows; the axis starts at `least`.

    Two runs have no useful interval: they are drawn as dots, with the line of their means.
    """
    frame = runs["testbed"]
    if frame["seed"].n_unique() > 2:
        lines(ax, frame, "flows", what, by="qdisc", names=NAMES, scale=scale)
    else:
        for n, name in enumerate(NAMES):
            rows = frame.filter(pl.col("qdisc") == name)
            if not len(rows):
                continue
            means = rows.group_by("flows").agg(pl.col(what).mean() * scale).sort("flows")
            look = style(n)
            ax.plot(means["flows"], means[what], label=NAMES[name], **(look | {"marker": ""}))
            ax.plot(rows["flows"], rows[what] * scale, **(look | {"ls": ""}))
        legend(ax)
    lowest = frame[what].to_numpy().min()
    ax.set(xlabel="long flows x, and x/2 flows of 10 packets per second", ylabel=label)
    ax.set_ylim(bottom=min(least, 5 * (scale * lowest // 5)))


def over_buffers(runs: Runs, ax: "Axes") -> None:
    """Draw the deviation with 300 FTPs of 120 ms, and the smallest stable buffer per kappa."""
    names = {kappa: f"kappa {kappa}" for kappa in KAPPAS}
    lines(ax, runs["bound"], "ratio", "std", by="kappa", names=names)
    for n, kappa in enumerate(KAPPAS):
        colour = style(n)["color"]
        ax.axvline(smallest_stable_buffer(0.5, kappa), color=colour, lw=0.9, ls=":")
    ax.set(xlabel="buffer / (rate x round trip); dotted: stable from there on", ylabel=STD)
    ax.set(ylim=(0, None), xscale="log")
    ax.set_xticks((0.15, 0.3, 0.5, 1, 2), ("0.15", "0.3", "0.5", "1", "2"))
    ax.minorticks_off()


def over_gains(runs: Runs, ax: "Axes") -> None:
    """Draw the deviation for all kappas, the bound |G| = 1, and the limit of the fluid model."""
    frame = runs["gain"]
    for n, flows in enumerate(MANY):
        drawn = []
        for kappa in frame["kappa"].unique().sort().to_list():
            shown = mean(frame, "mean", kappa=kappa, flows=flows)
            deviation = interval(values(frame, "std", kappa=kappa, flows=flows))
            steep = gain(shown, BDP_KB / 300, 1 / 4, 1 / 2, kappa)
            if steep > 0:  # else the mean queue is where the drop probability is 0
                drawn.append((steep, deviation))
        looks = style(n)
        ax.errorbar(
            [x for x, _ in drawn],
            [deviation.mean for _, deviation in drawn],
            yerr=[deviation.half for _, deviation in drawn],
            label=f"{flows} FTPs",
            capsize=2,
            **looks,
        )
        packets = (BDP_KB + 300 * mean(frame, "mean", flows=flows)) / 0.5
        ax.axvline(fluid_limit(packets / flows), color=looks["color"], lw=0.9, ls=":")
    ax.axvline(1, color="#000000", lw=0.9, ls="--")
    ax.set(xlabel="|G|; dashed: the paper's bound, dotted: of fluid TCP", ylabel=STD)
    ax.set(ylim=(0, None), xscale="log")
    ax.set_xticks((0.5, 1, 2, 5, 10), ("0.5", "1", "2", "5", "10"))
    ax.minorticks_off()
    legend(ax)


def overflows(runs: Runs, ax: "Axes") -> None:
    """Draw HRED's queue around the arrival of 600 FTPs, by correction."""
    for n, name in enumerate(CORRECTIONS):
        shares = values(runs["overflow"], "queue", band="asymmetric", correction=name)[0]
        look = {"color": style(n)["color"], "lw": 1, "label": f"correction: {name}"}
        _over_time(ax, shares[:450], 300, 25, look)
    for share in (1 / 4, 1 / 2):
        ax.axhline(300 * share, color="#666666", lw=0.7, ls=":")
    ax.axvline(30, color="#000000", lw=0.7, ls="--")
    ax.set(xlabel="time, s; dashed: 600 FTPs join, dotted: thresholds", ylabel="queue, kB")
    ax.set_ylim(0, 324)
    legend(ax)


T_ALPHA = "T_alpha, ms; T_beta is half of it"


def by_t_alpha(runs: Runs, ax: "Axes") -> None:
    """Draw mean and deviation of the queue before the step against T_alpha."""
    _of_t_alpha(runs, ax, {"mean": "mean queue", "std": "deviation"})
    level(ax, 0.375, "target 3/8")
    ax.set(ylabel="before the step, / buffer", ylim=(0, 1))


def times_by_t_alpha(runs: Runs, ax: "Axes") -> None:
    """Draw the times until the queue stays in the band against T_alpha."""
    _of_t_alpha(runs, ax, {"start_s": "from the start", "back_s": "from the step of 30 %"})
    ax.set(ylabel="time until it stays in the band, s", ylim=(0, None))


def _of_t_alpha(runs: Runs, ax: "Axes", columns: dict[str, str]) -> None:
    for n, (column, label) in enumerate(columns.items()):
        named = runs["t_alpha"].with_columns(pl.lit(label).alias("_what"))
        lines(ax, named, "t_alpha", column, by="_what", names=[label], begin=n)
    at = sorted(runs["t_alpha"]["t_alpha"].unique().to_list())
    ax.set(xscale="log", xlabel=T_ALPHA)
    ax.set_xticks(at, [str(one) for one in at])
    ax.minorticks_off()
    legend(ax)


def losses_with_ecn(runs: Runs, ax: "Axes") -> None:
    """Draw the loss of each discipline with marks, and HRED's with drops."""
    marks = runs["ecn"].filter(pl.col("signal") == "marks")
    lines(ax, marks, "T", "loss", by="qdisc", names=NAMES, scale=100)
    drops = runs["ecn"].filter((pl.col("signal") == "drops") & (pl.col("qdisc") == "hred"))
    lines(ax, drops, "T", "loss", by="qdisc", names={"hred": "HRED, drops"}, scale=100, begin=6)
    ax.set(xlabel=TRAFFIC, ylabel="loss, %")
    ax.set_yscale("log")
    ax.set_ylim(1e-3, 30)
    ax.set_yticks((0.001, 0.01, 0.1, 1, 10), ("0.001", "0.01", "0.1", "1", "10"))


def shares_with_xcp(runs: Runs, ax: "Axes") -> None:
    """Draw the share of the short paths under XCP and under HRED."""
    names = {"xcp": "XCP", "hred": "HRED"}
    lines(ax, runs["xcp"], "each", "share", by="qdisc", names=names, scale=100)
    level(ax, 50, "equal shares")
    ax.set(xlabel="flows of each round-trip time (20 and 200 ms)", ylim=(0, 100))
    ax.set_ylabel("share of the 20 ms flows, %")
