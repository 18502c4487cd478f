"""Figures of the scorecard as SVG that follows the colours of the page."""

import io
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sojourn.evaluation.cases import CASES, RTT_CASES, Case
from sojourn.evaluation.measure import QUANTILES
from sojourn.plotting.lines import MARKERS
from sojourn.plotting.run import COLOURS, DASHES, new_figure, styled
from sojourn.plotting.style import legend_name
from sojourn.result.result import Array

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

INK, GRID = "#123456", "#654321"
"""Placeholders for the colours of text and grid, which the page sets."""

WIDTH, HEIGHT = 4.6, 3.1
"""Size of a figure in inches."""

SERIES = {"series_delay_s": "queueing delay", "series_throughput_bps": "throughput"}
"""Columns of time series, and what they are."""

SIGMA = 1.0
"""Radius of an ellipse in standard deviations (r)."""

SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": GRID,
    "savefig.transparent": True,
    "legend.fontsize": 8,
}


def colour(n: int) -> str:
    """Return the colour of the `n`-th discipline; black becomes the colour of text."""
    value = COLOURS[n % len(COLOURS)]
    return INK if value == "#000000" else value


def line(n: int) -> dict[str, Any]:
    """Return colour and dashes of the `n`-th discipline."""
    return {"color": colour(n), "ls": DASHES[n // len(COLOURS) % len(DASHES)]}


def svg(draw: Callable[["Axes"], None], name: str, *, height: float = HEIGHT) -> str:
    """Return a figure as SVG for a page with other figures; `name` makes its ids unique."""
    import matplotlib as mpl

    with styled(), mpl.rc_context(SETTINGS):
        figure = new_figure(WIDTH, height)
        ax = figure.subplots()
        draw(ax)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    code = text.getvalue()
    code = code[code.index("<svg") :]
    code = re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"|', r"\1", code, count=1)
    code = re.sub(r'(<svg[^>]*?) (?:width|height)="[\d.]+pt"', r"\1", code)
    code = re.sub(r'(<svg[^>]*?) (?:width|height)="[\d.]+pt"', r"\1", code)
    code = re.sub(r"<metadata>.*?</metadata>", "", code, flags=re.DOTALL)
    code = re.sub(r'id="([^"]+)"', rf'id="{name}-\1"', code)
    code = re.sub(r'(href="|url\()#', rf"\1#{name}-", code)
    return code.replace(INK, "currentColor").replace(GRID, "var(--grid)")


def ellipse(x: Array, y: Array) -> Array | None:
    """Return the outline of the 1-sigma contour of a Gaussian fitted by maximum likelihood.

    None for fewer than three runs, as no covariance can be fitted.
    """
    if len(x) < 3:
        return None
    points = np.stack([x, y])
    mean, covariance = points.mean(axis=1), np.cov(points, bias=True)
    values, vectors = np.linalg.eigh(covariance)
    angle = np.linspace(0, 2 * np.pi, 73)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    radii = SIGMA * np.sqrt(np.maximum(values, 0.0))
    outline: Array = mean[:, None] + vectors @ (radii[:, None] * circle)
    return outline


def trade_off(ax: "Axes", rows: "pl.DataFrame", qdiscs: Sequence[str]) -> None:
    """Draw delay against goodput: points of runs, median, ellipse; a curve over targets."""
    import polars as pl

    for n, label in enumerate(qdiscs):
        mine = rows.filter((pl.col("qdisc") == label) & pl.col("sojourn_mean_s").is_not_null())
        medians = []
        for target in sorted(mine["target"].unique().to_list()):
            part = mine.filter(pl.col("target") == target)
            x = part["sojourn_mean_s"].to_numpy() * 1e3
            y = part["goodput_bps"].to_numpy() / 1e6
            medians.append((float(np.median(x)), float(np.median(y))))
            if target != 1.0:
                continue
            ax.plot(x, y, ".", ms=3, color=colour(n), alpha=0.6)
            if (outline := ellipse(x, y)) is not None:
                ax.plot(*outline, color=colour(n), lw=1)
            ax.plot(*medians[-1], MARKERS[n % len(MARKERS)], ms=6, mfc="none", color=colour(n),
                    label=legend_name(label, 20))  # fmt: skip
        if len(medians) > 1:
            ax.plot(*zip(*medians, strict=True), lw=0.8, color=colour(n), alpha=0.7)
    ax.set(xlabel="mean queueing delay, ms", ylabel="goodput, Mbit/s")
    ax.set_xlim(left=0)
    if len(qdiscs) <= 8:
        ax.legend(loc="best")


def cdf(ax: "Axes", rows: "pl.DataFrame", qdiscs: Sequence[str]) -> None:
    """Draw the distribution of the queueing delay of packets: the mean quantile over runs."""
    import polars as pl

    for n, label in enumerate(qdiscs):
        mine = rows.filter((pl.col("qdisc") == label) & (pl.col("target") == 1.0))
        lists = [one for one in mine["delay_quantiles_s"].to_list() if one]
        if lists:
            ax.plot(
                np.mean(lists, axis=0) * 1e3, QUANTILES, label=legend_name(label, 20), **line(n)
            )
    ax.set(xlabel="queueing delay, ms", ylabel="share of packets", ylim=(0, 1))
    ax.set_xlim(left=0)
    if len(qdiscs) <= 8:
        ax.legend(loc="lower right")


def over_time(ax: "Axes", rows: "pl.DataFrame", qdiscs: Sequence[str], what: str) -> None:
    """Draw a series as the mean over runs."""
    import polars as pl

    scale, label = {
        "series_delay_s": (1e3, "queueing delay, ms"),
        "series_throughput_bps": (1e-6, "throughput, Mbit/s"),
    }[what]
    for n, name in enumerate(qdiscs):
        mine = rows.filter(pl.col("qdisc") == name)
        if len(mine):
            times = mine["series_time_s"].to_list()[0]
            mean = np.mean(mine[what].to_list(), axis=0) * scale
            ax.plot(times, mean, label=legend_name(name, 20), **line(n))
    ax.set(xlabel="time, s", ylabel=label)
    ax.set_ylim(bottom=0)
    if len(qdiscs) <= 8:
        ax.legend(loc="best")


def rtt_fairness(ax: "Axes", rows: "pl.DataFrame", qdiscs: Sequence[str]) -> None:
    """Draw the goodput ratio of two flows against the round-trip time of the second one."""
    import polars as pl

    times = sorted({int(one) for one in rows["variant"].unique().to_list()})
    for n, label in enumerate(qdiscs):
        mine = rows.filter((pl.col("qdisc") == label) & pl.col("rtt_ratio").is_not_null())
        pairs = [
            (t, mine.filter(pl.col("variant") == str(t))["rtt_ratio"].to_numpy()) for t in times
        ]
        known = [(t, float(np.exp(np.log(v[v > 0]).mean()))) for t, v in pairs if (v > 0).any()]
        if known:
            ax.plot(*zip(*known, strict=True), label=legend_name(label, 20), ms=3.5,
                    marker=MARKERS[n % len(MARKERS)], **line(n))  # fmt: skip
    ax.axhline(1, color=INK, lw=0.8, alpha=0.6)
    ax.plot(times, [100 / t for t in times], color=INK, lw=0.8, ls=":", alpha=0.8)
    ax.annotate("1/RTT", (times[0], 100 / times[0]), fontsize=7)
    ax.set(yscale="log", xscale="log", xlabel="round-trip time of the second flow, ms",
           ylabel="its goodput / the first flow's goodput")  # fmt: skip
    ax.set_xticks(
        times, [str(t) if len(times) < 8 or k % 3 == 0 else "" for k, t in enumerate(times)]
    )
    ratios = [v for v in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if ax.get_ylim()[0] <= v]
    ax.set_yticks([v for v in ratios if v <= ax.get_ylim()[1]])
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    if len(qdiscs) <= 8:
        ax.legend(loc="best")


def figures(rows: "pl.DataFrame", qdiscs: Sequence[str], rate: str) -> list[tuple[str, str]]:
    """Return the figures of a rate as (caption, SVG), in the order of the suite."""
    import polars as pl

    here = rows.filter(pl.col("rate") == rate)
    drawings: list[tuple[str, str]] = []

    def add(case: Case, what: str, draw: Callable[["Axes"], None]) -> None:
        name = re.sub(r"\W+", "-", f"f{len(drawings)}-{rate}-{case.id}")
        caption = f"{case.id} {case.title}: {what} (RFC 7928, {case.section}; {rate})"
        drawings.append((caption, svg(draw, name)))

    for case in CASES:
        mine = here.filter(pl.col("case") == case.id)
        if not len(mine):
            continue
        if case.id in RTT_CASES:
            what = "goodput ratio, geometric mean over runs; dotted: inverse of the round-trip time"
            add(case, what, partial(rtt_fairness, rows=mine, qdiscs=qdiscs))
        if case.trade_off:
            what = "delay and goodput of each run, median, and ellipse of 1 sigma (r = 1)"
            if (mine["target"] != 1.0).any():
                what += "; lines join the medians at 0.5 to 4 times the default target"
            add(case, what, partial(trade_off, rows=mine, qdiscs=qdiscs))
            stored = "delay_quantiles_s" in mine.columns
            if stored and mine["delay_quantiles_s"].is_not_null().any():
                what = "distribution of the queueing delay over packets"
                add(case, what, partial(cdf, rows=mine, qdiscs=qdiscs))
        for column, words in SERIES.items() if case.varying else ():
            what = f"{words} over time, means over 1 s and runs"
            add(case, what, partial(over_time, rows=mine, qdiscs=qdiscs, what=column))
    return drawings
