"""Figure of a comparison: delays, completion times and goodput under each discipline."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Unpack

import numpy as np

from sojourn._util.lazy import Lazy
from sojourn._util.units import figures, seconds, share
from sojourn.metrics.overview import Group, completion_times, groups
from sojourn.plotting.run import (
    COLOURS,
    DASHES,
    NARROW,
    POINTS,
    binned,
    captions,
    colour,
    legend,
    new_figure,
    styled,
    write,
)
from sojourn.plotting.style import Look, legend_name, size_of, wrapped
from sojourn.result import select
from sojourn.result.result import Record, Result
from sojourn.result.statistics import half_width
from sojourn.scenario import describe

if TYPE_CHECKING:
    import matplotlib.figure as mpl
    from matplotlib.axes import Axes
else:
    mpl = Lazy("matplotlib.figure")

Runs = Mapping[str, Sequence[Result]]

GROUPS = 8
"""Largest number of groups of flows that have a panel."""

SPREAD = "median, 95th and 99th percentile"

Span = tuple[float, float, float]
"""Median, 95th and 99th percentile in the unit of the axis; NaN if there is nothing to measure."""


def draw_comparison(
    runs: Runs, link: str, path: str | Path | None = None, **look: Unpack[Look]
) -> "mpl.Figure":
    """Draw a comparison of disciplines.

    The top panel shows the queueing delay at `link` over time for the first seed, if there are
    series. Below are one panel per group of flows (UDP first) and one for the link.

    Parameters
    ----------
    runs : Comparison or mapping
        Results by discipline, one per seed.
    link : str
        The link whose discipline differs.
    path : str or Path, optional
        File to write, .png, .pdf or .svg.
    **look : optional
        Options `title`, `size` and `style`, see `sojourn.plotting.style.Look`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. It is not registered with pyplot.

    Raises
    ------
    InputError
        If an option is invalid, or the file cannot be written.
    """
    first = {name: results[0] for name, results in runs.items()}
    one = next(iter(first.values()))
    ordered = sorted(groups(one), key=lambda g: (not g.udp, g.endless))
    shown, total = ordered[:GROUPS], len(ordered)
    size = look.get("size")
    narrow = size is not None and size_of(size)[0] < NARROW
    columns = 1 if narrow else min(2, len(shown) + 1)
    below = -(-(len(shown) + 1) // columns)
    over_time = one.sampled
    # Each discipline has a line in the legend above, and two lines of text in each panel below.
    heights = [max(2.4, 0.6 + 0.19 * len(runs))] * over_time
    heights += [1.0 + 0.37 * len(runs)] * below
    seeds = describe.seeds(one.scenario["seed"], len(runs[next(iter(runs))]))
    if total > len(shown):
        seeds += f"; first {len(shown)} of {total} groups"
    with styled(look.get("style")):
        figure = new_figure(9.5, 1.1 + sum(heights), look.get("size"))
        grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
        if over_time:
            _over_time(figure.add_subplot(grid[0, :]), first, link)
        axes = [
            figure.add_subplot(grid[over_time + n // columns, n % columns])
            for n in range(len(shown) + 1)
        ]
        for ax, group in zip(axes, shown, strict=False):
            _group(ax, runs, group)
        links = {name: [r.links[link] for r in results] for name, results in runs.items()}
        spans = {name: _span(records, "sojourn") for name, records in links.items()}
        notes = {k: _noted(v, "used", lambda r: r["utilisation"]) for k, v in links.items()}
        _range(axes[-1], f"link {link}", f"queueing delay, ms, {SPREAD}", spans, notes)
        _fit(axes, figure.get_figwidth() / columns)
        captions(figure, one, _conditions(first, link), seeds, look)
        write(figure, path)
    return figure


def _fit(axes: "Sequence[Axes]", inches: float) -> None:
    """Wrap titles and labels of panels to a width in inches, of which the axes use 62 %."""
    for ax in axes:
        ax.set_title(wrapped(ax.get_title(loc="left"), 0.62 * inches))
        ax.set_xlabel(wrapped(ax.get_xlabel(), 0.62 * inches))
        ax.locator_params(axis="x", nbins=4)


def _conditions(first: Mapping[str, Result], link: str) -> list[str]:
    spec = next(iter(first.values())).scenario["links"][link]
    qdiscs = [r.scenario["links"][link]["qdisc"] for r in first.values()]
    return [
        f"{link}: {spec['rate']}, {spec['delay']}, buffer {spec['qdisc']['limit']}; only the "
        f"discipline differs:",
        ", ".join(describe.qdisc(qdisc, buffer=False) for qdisc in qdiscs),
    ]


def _group(ax: "Axes", runs: Runs, group: Group) -> None:
    """Draw the results of a group of flows: delays (UDP), goodput, or completion times."""
    if group.udp:
        calls = {k: [_worst(r, group.name) for r in v] for k, v in runs.items()}
        worst = " of the worst flow" if len(group.flows) > 1 else ""
        spans = {name: _span(records, "delay") for name, records in calls.items()}
        notes = {k: _noted(v, "loss", lambda r: r["loss_rate"]) for k, v in calls.items()}
        _range(ax, group.title, f"one-way delay{worst}, ms, {SPREAD}", spans, notes)
    elif group.endless:
        _goodput(ax, runs, group)
    else:
        _completions(ax, runs, group)


def _worst(result: Result, group: str) -> Record:
    """Return the flow of a group with the largest 99th percentile of its delay."""
    flows = [flow for flow in result.flows.values() if flow["group"] == group]
    return max(flows, key=lambda flow: flow["delay_p99_s"] or 0.0)


def _over_time(ax: "Axes", first: Mapping[str, Result], link: str) -> None:
    for n, (name, result) in enumerate(first.items()):
        delay_ms = binned(result.links[link].series.sojourn_s * 1e3, POINTS)
        dashes = DASHES[n // len(COLOURS) % len(DASHES)]
        times = binned(result.time_s, POINTS)
        ax.plot(times, delay_ms, color=colour(n), ls=dashes, label=legend_name(name))
    scenario = next(iter(first.values())).scenario
    warm_s, end_s = seconds(scenario["warmup"]), seconds(scenario["duration"])
    if warm_s:
        ax.axvspan(0, warm_s, color="#eeeeee", zorder=0, label="warm-up")
    ax.set(title=f"link {link}", xlabel="time, s", ylabel="queueing delay, ms", xlim=(0, end_s))
    ax.set_ylim(bottom=0)
    legend(ax)


def _span(records: Sequence[Record], what: str) -> Span:
    """Return the means over seeds of the percentiles of a delay, in ms."""
    p50, p95, p99 = (
        1e3 * _mean(r[f"{what}_{p}_s"] for r in records) for p in ("p50", "p95", "p99")
    )
    return p50, p95, p99


def _noted(records: Sequence[Record], word: str, read: Callable[[Record], float | None]) -> str:
    return f"{word} {share(_mean(map(read, records)))}"


def _range(
    ax: "Axes", title: str, xlabel: str, spans: Mapping[str, Span], notes: Mapping[str, str]
) -> None:
    """Draw bars from the median to the 99th percentile, with a note below each name."""
    labels = []
    for n, (name, (p50, p95, p99)) in enumerate(spans.items()):
        if isnan(p99):
            labels.append(f"{legend_name(name)}\nnothing to measure")
            continue
        labels.append(f"{legend_name(name)}\n{notes[name]}")
        ax.plot([p50, p99], [n, n], color=colour(n), lw=5, alpha=0.35, solid_capstyle="butt")
        ax.plot(p50, n, "o", color=colour(n), ms=5)
        ax.plot(p95, n, "|", color=colour(n), ms=9, mew=1.6)
        _label(ax, p99, n, figures(p99))
    ax.set(title=title, xlabel=xlabel)
    _named(ax, labels)


def _goodput(ax: "Axes", runs: Runs, group: Group) -> None:
    for n, results in enumerate(runs.values()):
        totals = [
            sum(f["goodput_bps"] for f in r.flows.values() if f["group"] == group.name) / 1e6
            for r in results
        ]
        mean = fmean(totals)
        ax.barh(n, mean, height=0.55, color=colour(n), alpha=0.75)
        spread = half_width(totals) if len(totals) > 1 else 0.0
        ax.errorbar(mean, n, xerr=spread or None, color="black", capsize=3, lw=1)
        _label(ax, mean + spread, n, figures(mean))
    interval = ", mean with its 95\u00a0% interval" if len(results) > 1 else ""
    total = "total goodput" if len(group.flows) > 1 else "goodput"
    ax.set(title=group.title, xlabel=f"{total}, Mbit/s{interval}")
    _named(ax, [legend_name(name) for name in runs])


def _completions(ax: "Axes", runs: Runs, group: Group) -> None:
    """Draw percentiles of the completion times of all seeds together."""
    spans, notes = {}, {}
    for name, results in runs.items():
        took = [completion_times(r, g) for r in results for g in groups(r) if g.name == group.name]
        times = np.sort(np.concatenate(took)) * 1e3
        ranks = (select.nearest_rank(times, part) for part in (0.5, 0.95, 0.99))
        p50, p95, p99 = (float("nan") if rank is None else rank for rank in ranks)
        spans[name], notes[name] = (p50, p95, p99), f"{len(times)} completed"
    _range(ax, group.title, f"completion time, ms, {SPREAD}", spans, notes)


def _label(ax: "Axes", x: float, y: float, text: str) -> None:
    ax.annotate(text, (x, y), (4, 0), textcoords="offset points", va="center", fontsize=8)


def _named(ax: "Axes", labels: list[str]) -> None:
    """Label the rows, the first one on top, and leave space for the numbers at their ends."""
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.grid(visible=False, axis="y")
    ax.set_xlim(0, ax.get_xlim()[1] * 1.25)


def _mean(values: Iterable[float | None]) -> float:
    """Return the mean of the defined values, or NaN if there are none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else float("nan")
