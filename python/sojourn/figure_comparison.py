"""The figure of a comparison: what the disciplines do to the queue, and to those who wait in it."""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from sojourn import describe
from sojourn.figure import POINTS, binned, captions, colour, legend, new_figure, styled, write
from sojourn.measure import Group, completion_times, groups
from sojourn.result import Record, Result
from sojourn.statistics import half_width
from sojourn.units import figures, seconds, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Runs = Mapping[str, Sequence[Result]]

PANELS = 6
"""The most panels below the one over time; further groups are left to the table."""


Note = tuple[str, Callable[[Record], float | None]]
LOSS: Note = ("loss", lambda record: record["loss_rate"])
USE: Note = ("in use", lambda record: record["utilisation"])


def draw_comparison(runs: Runs, link: str, path: str | Path | None = None) -> "Figure":
    """Draw `runs` (by discipline, the results of one or more seeds) side by side.

    Above: the waiting time at `link` over time, of the first seed, where there are series. Below:
    a panel per group of flows, calls first, and one for the link. Written to `path` if given.
    """
    first = {name: results[0] for name, results in runs.items()}
    one = next(iter(first.values()))
    ordered = sorted(groups(one), key=lambda g: (not g.udp, g.endless))
    shown, total = ordered[: PANELS - 1], len(ordered)
    columns = 2 if len(shown) == 3 else min(3, len(shown) + 1)
    below = -(-(len(shown) + 1) // columns)
    over_time = one.sampled
    heights = [1.25] * over_time + [1.0 + 0.18 * max(0, len(runs) - 4)] * below
    with styled():
        figure = new_figure(9.5, 1.1 + 2.1 * sum(heights))
        grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
        if over_time:
            _waiting(figure.add_subplot(grid[0, :]), first, link)
        below_axes = [
            figure.add_subplot(grid[over_time + n // columns, n % columns])
            for n in range(len(shown) + 1)
        ]
        for ax, group in zip(below_axes, shown, strict=False):
            if group.udp:
                calls = {k: [_worst(r, group.name) for r in v] for k, v in runs.items()}
                worst = ", the worst" if len(group.flows) > 1 else ""
                _range(ax, f"{group.title}{worst}: one-way delay", calls, "delay", LOSS)
            elif group.endless:
                _throughput(ax, runs, group)
            else:
                _completions(ax, runs, group)
        links = {name: [r.links[link] for r in results] for name, results in runs.items()}
        _range(below_axes[-1], f"{link}: waiting time", links, "sojourn", USE)
        seeds = describe.seeds(one.scenario["seed"], len(runs[next(iter(runs))]))
        if total > len(shown):
            seeds += f"; first {len(shown)} of {total} groups"
        captions(figure, one, _conditions(first, link), seeds)
        write(figure, path)
    return figure


def _conditions(first: Mapping[str, Result], link: str) -> list[str]:
    spec = next(iter(first.values())).scenario["links"][link]
    qdiscs = [r.scenario["links"][link]["qdisc"] for r in first.values()]
    return [
        f"{link}: {spec['rate']}, {spec['delay']}, buffer {spec['qdisc']['limit']}; only the "
        f"discipline differs:",
        *textwrap.wrap(", ".join(describe.qdisc(qdisc, buffer=False) for qdisc in qdiscs), 110),
    ]


def _worst(result: Result, group: str) -> Record:
    """The flow of a group whose calls suffer most."""
    flows = [flow for flow in result.flows.values() if flow["group"] == group]
    return max(flows, key=lambda flow: flow["delay_p99_s"] or 0.0)


def _waiting(ax: "Axes", first: Mapping[str, Result], link: str) -> None:
    for n, (name, result) in enumerate(first.items()):
        waiting = binned(result.links[link].series.sojourn_s * 1e3, POINTS)
        ax.plot(binned(result.time_s, POINTS), waiting, color=colour(n), label=name)
    scenario = next(iter(first.values())).scenario
    warm_s, end_s = seconds(scenario["warmup"]), seconds(scenario["duration"])
    if warm_s:
        ax.axvspan(0, warm_s, color="#eeeeee", zorder=0, label="warm-up")
    ax.set(title=f"waiting time at {link}", xlabel="time, s", ylabel="ms", xlim=(0, end_s))
    ax.set_ylim(bottom=0)
    legend(ax)


def _range(
    ax: "Axes",
    title: str,
    records: Mapping[str, Sequence[Record]],
    what: str,
    note: Note,
) -> None:
    """Draw from the median to the 99th percentile of `what`, and say `note` beside the name."""
    labels = []
    for n, (name, runs) in enumerate(records.items()):
        p50, p95, p99 = (
            1e3 * _mean(r[f"{what}_{p}_s"] for r in runs) for p in ("p50", "p95", "p99")
        )
        word, read = note
        if isnan(p99):
            labels.append(f"{name}\nno packets")
            continue
        labels.append(f"{name}\n{word} {share(_mean(map(read, runs)))}")
        ax.plot([p50, p99], [n, n], color=colour(n), lw=5, alpha=0.35, solid_capstyle="butt")
        ax.plot(p50, n, "o", color=colour(n), ms=5)
        ax.plot(p95, n, "|", color=colour(n), ms=9, mew=1.6)
        _label(ax, p99, n, figures(p99))
    ax.set(title=f"{title}, ms (50, 95, 99 %)")
    _named(ax, labels)


def _throughput(ax: "Axes", runs: Runs, group: Group) -> None:
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
    whisker = ", whisker 95 %" if len(results) > 1 else ""
    in_all = " in all" if len(group.flows) > 1 else ""
    ax.set(title=f"{group.title}: throughput{in_all}, Mbit/s{whisker}")
    _named(ax, list(runs))


def _completions(ax: "Axes", runs: Runs, group: Group) -> None:
    longest = 0.0
    for n, (name, results) in enumerate(runs.items()):
        took = [completion_times(r, g) for r in results for g in groups(r) if g.name == group.name]
        times = np.sort(np.concatenate(took))
        if not len(times):
            continue
        longest = max(longest, float(times[-1]))
        share_done = np.arange(1, len(times) + 1) / len(times) * 100
        ax.step(times, share_done, where="post", color=colour(n), label=f"{name} ({len(times)})")
    ax.set(title=f"{group.title}: completed within, % (of how many)", xlabel="s", ylim=(0, 102))
    ax.set_xlim(0, longest * 1.02 or 1)
    if longest:
        ax.legend(loc="lower right")


def _label(ax: "Axes", x: float, y: float, text: str) -> None:
    ax.annotate(text, (x, y), (4, 0), textcoords="offset points", va="center", fontsize=8)


def _named(ax: "Axes", labels: list[str]) -> None:
    """Name the rows, first on top, and leave room for the numbers at their ends."""
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.grid(visible=False, axis="y")
    ax.set_xlim(0, ax.get_xlim()[1] * 1.12)


def _mean(values: Iterable[float | None]) -> float:
    """The mean of what is defined; NaN if nothing is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else float("nan")
