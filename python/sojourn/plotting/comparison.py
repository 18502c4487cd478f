"""Figure of a comparison: delays, completion times and goodput under each discipline."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import floor, isnan, log10
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Unpack

from sojourn._util.lazy import Lazy
from sojourn._util.paths import compared_link
from sojourn._util.public import public
from sojourn._util.units import counted, figures, seconds
from sojourn.metrics.overview import (
    DELAY,
    GROUPS,
    OF_WORST,
    Group,
    compared_links,
    completion_times,
    drawn,
    in_sections,
    rows,
)
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
from sojourn.result.estimate import Estimate
from sojourn.result.result import Record, Result
from sojourn.result.statistics import half_width
from sojourn.scenario import describe

if TYPE_CHECKING:
    import matplotlib.figure as mpl
    from matplotlib.axes import Axes
else:
    mpl = Lazy("matplotlib.figure")

Runs = Mapping[str, Sequence[Result]]

TIMES = 2
"""Largest number of links whose delay is drawn over time."""

FAR = 10
"""Ratio of mean delays from which on the delay over time has a logarithmic axis."""

SPREAD = "median, 95th and 99th percentile"

QUEUE_MIN_S = 1e-4
"""99th percentile of the queueing delay below which a further link has no panel."""

TOO_FEW = "99 %: too few values"
"""Label in place of a percentile that the number of values does not carry."""

Span = tuple[float, float, float]
"""Median, 95th and 99th percentile in the unit of the axis; NaN if there is nothing to measure."""

Spans = Mapping[str, Span]
"""Percentiles by discipline."""

Panel = Callable[["Axes"], None]
"""Function that draws a panel."""


class Table:
    """Table of a comparison: the numbers of a figure come from its rows."""

    def __init__(self, runs: Runs, link: str) -> None:
        self.runs = runs
        self._rows = {(row.like.of, row.like.what): row for row in rows(runs, link)}

    def values(self, of: str, what: str) -> dict[str, list[float]]:
        """Return the values by seed of a row, by discipline."""
        row = self._rows[of, what]
        return {k: [*v.values()] for k, v in zip(self.runs, row.values, strict=True)}

    def means(self, of: str, what: str) -> dict[str, float]:
        """Return the estimates over seeds of a row, by discipline; NaN without a value."""
        return dict(zip(self.runs, map(_number, self._rows[of, what].estimates), strict=True))

    def spans(self, of: str, what: str, read: Callable[[Result, str], float | None]) -> Spans:
        """Return the percentiles of a delay, by discipline; the last one is a row.

        They are over the values of all runs, as that row is. Otherwise `read` gives "p50" and "p95"
        of a run in seconds, and they are means over the runs.
        """
        row, p99_ms = self._rows[of, what], self.means(of, what)
        if row.pools:
            p50_ms, p95_ms = (map(_number, row.percentiles(percent)) for percent in (50, 95))
            return dict(
                zip(self.runs, zip(p50_ms, p95_ms, p99_ms.values(), strict=True), strict=True)
            )
        means = {
            name: [
                _mean(_ms(read(result, which)) for result in results) for which in ("p50", "p95")
            ]
            for name, results in self.runs.items()
        }
        return {name: (p50, p95, p99_ms[name]) for name, (p50, p95) in means.items()}

    def notes(self, before: str, of: str, what: str, after: str = "") -> dict[str, str]:
        """Return the means of a row in words, by discipline."""
        text = self._rows[of, what].like.text
        return {
            name: f"{before}{'-' if isnan(mean) else text(mean)}{after}"
            for name, mean in self.means(of, what).items()
        }


@public
def draw_comparison(
    runs: Runs, path: str | Path | None = None, *, link: str | None = None, **look: Unpack[Look]
) -> "mpl.Figure":
    """Draw a comparison of disciplines.

    The top panel shows the queueing delay at `link` over time for the first seed, if there are
    series. Below are one panel per group of flows (UDP first) and one for the link.

    Parameters
    ----------
    runs : Comparison or mapping
        Results by discipline, one per seed.
    path : str or Path, optional
        File to write, .png, .pdf or .svg.
    link : str, optional
        The link whose discipline differs. The default is the link of the comparison.
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
    link = compared_link(one.scenario, link or getattr(runs, "link", None))
    table = Table(runs, link)
    shown, left = _chosen(drawn(one))
    links = [name for name in compared_links(runs, link) if name == link or _queued(runs, name)]
    differing = describe.differing([r.scenario for r in first.values()], link)
    timed = [name for name in links if name in differing][:TIMES] * one.sampled
    panels = [panel for group in shown for panel in _of_group(table, group)]
    panels += [partial(_link, table, name) for name in links]
    size = look.get("size")
    narrow = size is not None and size_of(size)[0] < NARROW
    columns = 1 if narrow else min(2, len(panels))
    # Each discipline has a line in the legend above, and two lines of text in each panel below.
    heights = [max(2.4, 0.6 + 0.19 * len(runs))] * len(timed)
    heights += [1.0 + 0.37 * len(runs)] * -(-len(panels) // columns)
    seeds = describe.seeds(one.scenario["seed"], len(runs[next(iter(runs))]))
    if left:
        seeds += f"; not drawn: {counted(left, 'group')}"
    with styled(look.get("style")):
        figure = new_figure(9.5, 1.1 + sum(heights), look.get("size"))
        grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
        for n, name in enumerate(timed):
            _over_time(figure.add_subplot(grid[n, :]), first, name)
        axes = [
            figure.add_subplot(grid[len(timed) + n // columns, n % columns])
            for n in range(len(panels))
        ]
        for ax, panel in zip(axes, panels, strict=True):
            panel(ax)
        _fit(axes, figure.get_figwidth() / columns)
        captions(figure, one, _conditions(first, link), seeds, look)
        write(figure, path)
    return figure


def _queued(runs: Runs, link: str) -> bool:
    """Return True if a link had a queue under some discipline that a figure can show."""
    every = (result.links[link]["sojourn_p99_s"] for some in runs.values() for result in some)
    return any(high is not None and high >= QUEUE_MIN_S for high in every)


def _chosen(all_groups: Sequence[Group]) -> tuple[list[Group], int]:
    """Return the groups that have panels, at least one of each source, and how many are left."""
    count: Counter[tuple[str, bool]] = Counter()
    place = {}
    for group in all_groups:
        kind = (group.source, group.udp)
        place[group.title] = count[kind]
        count[kind] += 1
    kept = {one.title for one in sorted(all_groups, key=lambda one: place[one.title])[:GROUPS]}
    return in_sections([one for one in all_groups if one.title in kept]), len(all_groups) - len(
        kept
    )


def _fit(axes: "Sequence[Axes]", inches: float) -> None:
    """Wrap titles and labels of panels to a width in inches, of which the axes use 62 %."""
    for ax in axes:
        ax.set_title(wrapped(ax.get_title(loc="left"), 0.62 * inches))
        ax.set_xlabel(wrapped(ax.get_xlabel(), 0.62 * inches))
        ax.locator_params(axis="x", nbins=4)


def _conditions(first: Mapping[str, Result], link: str) -> list[str]:
    by_label = {legend_name(label): result.scenario for label, result in first.items()}
    scenarios = [result.scenario for result in first.values()]
    spec = scenarios[0]["links"][link]
    names = describe.differing(scenarios, link)
    what = f"{describe.disciplines(names)} differ" if names[1:] else "discipline differs"
    return [
        f"{link}: {describe.rate(spec)}, {spec['delay']}, {describe.buffers(by_label, link)}; "
        f"only the {what}:",
        ", ".join(describe.qdisc(one["links"][link]["qdisc"], buffer=False) for one in scenarios),
    ]


def _of_group(table: Table, group: Group) -> list[Panel]:
    """Return the panels of a group of flows: delays, rates, or completion times."""
    if group.source == "call":
        return [partial(_delays, table, group), partial(_calls, table, group)]
    if group.udp:
        return [partial(_delays, table, group)]
    if group.source == "video":
        return [partial(_videos, table, group)]
    return [partial(_goodput if group.endless else _completions, table, group)]


def _delays(table: Table, group: Group, ax: "Axes") -> None:
    """Draw one-way delays of the worst flow, with the loss of the whole group."""
    several = len(group.flows) > 1
    spans = table.spans(
        group.title,
        DELAY + OF_WORST * several,
        lambda result, which: _worst(result, group)[f"delay_{which}_s"],
    )
    loss = table.notes("loss of all " if several else "loss ", group.title, "loss", " %")
    _range(ax, group.title, f"one-way delay{' of the worst flow' * several}, ms, {SPREAD}",
           spans, loss)  # fmt: skip


def _worst(result: Result, group: Group) -> Record:
    """Return the flow of a group with the largest 99th percentile of its delay."""
    names = group.members or (group.name,)
    flows = [flow for flow in result.flows.values() if flow["group"] in names]
    return max(flows, key=lambda flow: flow["delay_p99_s"] or 0.0)


def _over_time(ax: "Axes", first: Mapping[str, Result], link: str) -> None:
    means = []
    for n, (name, result) in enumerate(first.items()):
        delay_ms = binned(result.links[link].series.sojourn_s * 1e3, POINTS)
        if (mean_s := result.links[link]["sojourn_mean_s"]) is not None:
            means.append(mean_s * 1e3)
        dashes = DASHES[n // len(COLOURS) % len(DASHES)]
        times = binned(result.time_s, POINTS)
        ax.plot(times, delay_ms, color=colour(n), ls=dashes, label=legend_name(name))
    scenario = next(iter(first.values())).scenario
    warm_s, end_s = seconds(scenario["warmup"]), seconds(scenario["duration"])
    if warm_s:
        ax.axvspan(0, warm_s, color="#eeeeee", zorder=0, label="warm-up")
    ax.set(title=f"link {link}", xlabel="time, s", ylabel="queueing delay, ms", xlim=(0, end_s))
    ax.xaxis.set_major_formatter("{x:g}")
    low, high = min(means, default=0.0), max(means, default=0.0)
    if low > 0 and high > FAR * low:
        # Linear below the smallest mean, so that an empty queue has a place.
        ax.set_yscale("symlog", linthresh=10 ** floor(log10(low)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.set_ylabel("queueing delay, ms\n(logarithmic)")
    ax.set_ylim(bottom=0)
    legend(ax)


def _range(
    ax: "Axes", title: str, xlabel: str, spans: Mapping[str, Span], notes: Mapping[str, str]
) -> None:
    """Draw bars from the median to the 99th percentile, with a note below each name."""
    labels = []
    for n, (name, span) in enumerate(spans.items()):
        known = [value for value in span if not isnan(value)]
        if not known:
            labels.append(f"{legend_name(name)}\nnothing to measure")
            continue
        labels.append(f"{legend_name(name)}\n{notes[name]}")
        p50, p95, p99 = span
        ax.plot(
            [known[0], known[-1]], [n, n], color=colour(n), lw=5, alpha=0.35, solid_capstyle="butt"
        )
        ax.plot(p50, n, "o", color=colour(n), ms=5)
        ax.plot(p95, n, "|", color=colour(n), ms=9, mew=1.6)
        _label(ax, known[-1], n, TOO_FEW if isnan(p99) else figures(p99))
    ax.set(title=title, xlabel=xlabel)
    _named(ax, labels)


def _bars(
    ax: "Axes",
    title: str,
    xlabel: str,
    values: Mapping[str, Sequence[float]],
    notes: Mapping[str, str] = {},
) -> None:
    """Draw the mean over seeds of a value as bars, with its interval."""
    several = max(map(len, values.values())) > 1
    for n, some in enumerate(values.values()):
        if not some:
            continue
        mean = fmean(some)
        ax.barh(n, mean, height=0.55, color=colour(n), alpha=0.75)
        spread = half_width(some) if len(some) > 1 else 0.0
        ax.errorbar(mean, n, xerr=spread or None, color="black", capsize=3, lw=1)
        _label(ax, mean + spread, n, figures(mean))
    interval = ", mean with its 95\u00a0% interval" if several else ""
    ax.set(title=title, xlabel=f"{xlabel}{interval}")
    empty = {name: "nothing to measure" for name, some in values.items() if not some}
    below = {**notes, **empty}
    _named(ax, [f"{legend_name(k)}\n{below[k]}" if k in below else legend_name(k) for k in values])


def _goodput(table: Table, group: Group, ax: "Axes") -> None:
    several = len(group.flows) > 1
    total = "total goodput" if several else "goodput"
    values = table.values(group.title, "goodput" + ", total" * several)
    _bars(ax, group.title, f"{total}, Mbit/s", values)


def _calls(table: Table, group: Group, ax: "Axes") -> None:
    """Draw the rate of calls, with the share of frames that were lost."""
    lost = table.notes("frames lost ", group.title, "lost frames", " %")
    _bars(ax, group.title, "rate of the calls, Mbit/s", table.values(group.title, "rate"), lost)


def _videos(table: Table, group: Group, ax: "Axes") -> None:
    """Draw the rate of videos, with the time in which they stood still."""
    stalled = table.notes("stalled ", group.title, "stalled", " s")
    _bars(ax, group.title, "video rate, Mbit/s", table.values(group.title, "video rate"), stalled)


def _completions(table: Table, group: Group, ax: "Axes") -> None:
    """Draw percentiles of the completion times."""
    spans = table.spans(
        group.title,
        "completion time, 99 %",
        lambda result, which: select.nearest_rank(
            completion_times(result, group), int(which[1:]) / 100
        ),
    )
    done = table.notes("", group.title, "completed transfers", " completed")
    _range(ax, group.title, f"completion time, ms, {SPREAD}", spans, done)


def _link(table: Table, link: str, ax: "Axes") -> None:
    """Draw the queueing delay of a link, with its utilisation."""
    spans = table.spans(
        link, "queueing delay, 99 %", lambda result, which: result.links[link][f"sojourn_{which}_s"]
    )
    used = table.notes("used ", link, "utilisation", " %")
    _range(ax, f"link {link}", f"queueing delay, ms, {SPREAD}", spans, used)


def _number(estimate: Estimate) -> float:
    """Return the value of an estimate; NaN without one."""
    return float("nan") if estimate.value is None else estimate.value


def _ms(value_s: float | None) -> float | None:
    return None if value_s is None else value_s * 1e3


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
