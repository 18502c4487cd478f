"""Figure of a run, and the style and helpers that all figures share.

The title and the line at the bottom of a figure state all conditions of its runs.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from sojourn._sojourn import InputError
from sojourn._util.files import check_file, replacing
from sojourn._util.inputs import brief, near
from sojourn._util.lazy import Lazy
from sojourn._util.public import public
from sojourn._util.units import seconds
from sojourn.metrics.overview import GROUPS, Group, combined, drawn
from sojourn.plotting.recorded import capacity_bps
from sojourn.plotting.style import Look, legend_name, sheet, size_of, wrapped
from sojourn.result.result import Array, Columns, Record, Result
from sojourn.result.select import links_by_queue
from sojourn.scenario import describe

if TYPE_CHECKING:
    import matplotlib.figure as mpl
    from matplotlib.axes import Axes
else:
    mpl = Lazy("matplotlib.figure")

ENDINGS = (".png", ".pdf", ".svg")
"""File formats of figures, by the ending of the name."""

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000")
"""Palette of Okabe and Ito for colour-blind readers, without its yellow, which is too faint."""

DASHES = ("-", "--", "-.", ":")
"""Line styles, so that lines can be distinguished without colour."""

LINES = 6
"""Largest number of flows that have a line each; for more flows, each group has one."""

WINDOWS = 4
"""Number of congestion windows that are drawn by default."""

MEMBERS = 16
"""Largest number of groups that differ in marking or parameters only and have a panel of lines."""

LINKS_SAID = 4
"""Largest number of links whose conditions are in a title."""

NARROW = 5.0
"""Width in inches below which legends are inside the axes (one column of a paper)."""

RECORDED = 2
"""Largest number of links whose recorded capacity is drawn: one for each direction."""

POINTS = 200
"""Number of points of a throughput line; finer bins show single packets."""

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.1,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "savefig.dpi": 150,
    "figure.dpi": 100,
    "svg.hashsalt": "sojourn",
    "text.parse_math": False,
    # TrueType in place of Type 3, which publishers refuse; letters of an SVG are outlines.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "path",
}


@public
def draw(
    result: Result,
    path: str | Path | None = None,
    *,
    flows: Sequence[str] | None = None,
    **look: Unpack[Look],
) -> "mpl.Figure":
    """Draw queue length, queueing delay, throughput, goodput and congestion windows over time.

    Throughput is the rate at which packets reach the receivers, headers included, in front of the
    capacity of links with recorded rates. Goodput is drawn as the payload delivered in order so
    far, because delivery in order happens in bursts. Groups that differ in marking or parameters
    only, like the uploads and the downloads of RRUL, have a panel each in place of goodput and
    windows.

    Parameters
    ----------
    result : Result
        A run with series: its scenario has `sample`.
    path : str or Path, optional
        File to write, .png, .pdf or .svg.
    flows : sequence of str, optional
        TCP flows, or groups of flows, whose congestion window is drawn. The default is the first
        four TCP flows.
    **look : optional
        Options `title`, `xlabel`, `size` and `style`, see `sojourn.plotting.style.Look`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. It is not registered with pyplot.

    Raises
    ------
    InputError
        If the run has no series, a flow is unknown, or the file cannot be written.
    """
    if not result.sampled:
        raise InputError('there are no series to draw: the scenario needs `sample`, like "10ms"')
    alike = [one for one in combined(result) if not one.udp and len(one.members) <= MEMBERS]
    alike = alike if flows is None else []
    shown, title = ({}, "") if alike else _windows(result, flows)
    carried = _carried(result)
    names = dict.fromkeys([*(one.name for one in carried[:GROUPS]), *shown])
    lines: dict[str, dict[str, Any]] = {
        name: {"color": colour(n), "ls": DASHES[n // len(COLOURS) % len(DASHES)]}
        for n, name in enumerate(names)
    }
    links = links_by_queue(result, GROUPS)[:GROUPS]
    # A legend next to each panel takes a line for each of its entries.
    last = [len(one.members) + 1 for one in alike] or [0, *([len(shown)] if shown else [])]
    entries = [len(links) + 1, 0, min(len(carried), GROUPS), *last]
    heights = [max(1.75, 0.4 + 0.19 * count) for count in entries]
    with styled(look.get("style")):
        figure = new_figure(8.5, 1.0 + sum(heights), look.get("size"))
        axes: list[Axes] = list(
            figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[
                :, 0
            ]
        )
        _queues(axes[0], axes[1], result, links)
        _rates(axes[2], result, carried, lines)
        for ax, one in zip(axes[3:], alike, strict=False):
            _members(ax, result, one)
        if not alike:
            _payload(axes[3], result, carried, lines)
        for name, flow in shown.items():
            axes[4].plot(
                result.time_s, flow.series.cwnd_packets, label=legend_name(name), **lines[name]
            )
        if shown:
            axes[4].set(title=title, ylabel="congestion\nwindow, packets")
        for ax in axes:
            _over_time(ax, result.scenario, named=ax is axes[0])
            points = float(ax.title.get_fontsize())
            ax.set_title(wrapped(ax.get_title(loc="left"), 0.7 * figure.get_figwidth(), points))
        axes[-1].set_xlabel(look.get("xlabel") or "time, s")
        conditions = describe.links(result.scenario)
        captions(figure, result, conditions, describe.seeds(result.scenario["seed"], 1), look)
        write(figure, path)
    return figure


@contextmanager
def styled(style: str | Path | None = None) -> Iterator[None]:
    """Use the style of sojourn instead of the user's settings, and a style sheet on top of it."""
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        # A name may be in any script; a letter that the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        with sheet(style):
            yield


def new_figure(
    width: float, height: float, size: str | tuple[float, float] | None = None
) -> "mpl.Figure":
    """Create a figure of `size`, or of `width` by `height` inches, without pyplot."""
    from sojourn.plotting.inline import InlineFigure

    figsize = (width, height) if size is None else size_of(size)
    return InlineFigure(figsize=figsize, layout="constrained")


def captions(
    figure: "mpl.Figure", result: Result, conditions: Sequence[str], seeds: str, look: Look
) -> None:
    """Write name and conditions of a run above a figure; interval, seeds and version below."""
    scenario = result.scenario
    shown = list(conditions[:LINKS_SAID])
    if len(conditions) > len(shown):
        shown.append(f"and {len(conditions) - len(shown)} more")
    real = "; real packets" if "live" in result.summary else ""
    below = f"{describe.window(scenario)}; {seeds}; sojourn {result.version}{real}"
    heading(figure, "\n".join([describe.title(scenario), *shown]), below, look)


def heading(figure: "mpl.Figure", above: str, below: str, look: Look) -> None:
    """Write text above and below a figure; a `title` in `look` replaces `above`."""
    title = look.get("title")
    width = figure.get_figwidth() - 0.2
    if title != "":
        text = wrapped(above if title is None else title, width, 10)
        figure.suptitle(text, x=0.01, ha="left", fontsize=10)
    below = wrapped(below, width, 7)
    figure.supxlabel(below, x=0.01, ha="left", fontsize=7, color="#555555")


def write(figure: "mpl.Figure", path: str | Path | None) -> None:
    """Write a figure to `path` unless it is None. The files of equal figures are identical."""
    if path is None:
        return
    path = Path(path)
    check_file(path, ENDINGS)
    undated: Mapping[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    suffix = path.suffix.lower()
    with replacing(path) as file, warnings.catch_warnings():
        warnings.filterwarnings("error", "constrained_layout not applied", UserWarning)
        try:
            figure.savefig(file, format=suffix[1:], metadata=undated.get(suffix))
        except UserWarning:
            width, height = figure.get_size_inches()
            raise InputError(
                f"--size: {width:.3g} by {height:.3g} inches is too small for what the figure shows"
            ) from None


def colour(n: int) -> str:
    """Return the `n`-th colour of a repeating cycle."""
    return COLOURS[n % len(COLOURS)]


def binned(values: Array, bins: int) -> Array:
    """Return means over bins of equal size, at most `bins` of them; NaN values are ignored.

    An incomplete last bin is omitted.
    """
    size = max(1, -(-len(values) // bins))
    whole = values[: len(values) // size * size].reshape(-1, size).astype(float)
    known = np.isfinite(whole)
    count = known.sum(axis=1)
    total = np.where(known, whole, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def legend(ax: "Axes") -> None:
    """Place the legend next to the axes, or inside them in a narrow figure."""
    if not ax.get_legend_handles_labels()[1]:
        return
    if ax.figure is not None and ax.figure.bbox.width / ax.figure.dpi < NARROW:
        inside = ax.legend(loc="upper right", fontsize=6, handlelength=1.6, labelspacing=0.2)
        inside.set_in_layout(False)
        return
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.03), borderaxespad=0.3, handlelength=2.2)


def _over_time(ax: "Axes", scenario: Mapping[str, Any], *, named: bool) -> None:
    ax.set_xlim(0, seconds(scenario["duration"]))
    ax.set_ylim(bottom=0)
    if scenario["warmup"] != "0s":
        label = "warm-up" if named else None
        ax.axvspan(0, seconds(scenario["warmup"]), color="#eeeeee", zorder=0, label=label)
    legend(ax)


def _queues(queue: "Axes", delay: "Axes", result: Result, names: Sequence[str]) -> None:
    for n, name in enumerate(names):
        series = result.links[name].series
        line: dict[str, Any] = {"color": colour(n), "lw": 0.8, "ls": DASHES[n // len(COLOURS)]}
        queue.plot(result.time_s, series.queue_bytes / 1000, label=legend_name(name), **line)
        delay.plot(result.time_s, series.sojourn_s * 1000, **line)
    of = f" ({len(names)} of {len(result.links)} links, those with the longest queues)"
    queue.set(title="queue" + of * (len(names) < len(result.links)), ylabel="queue length,\nkB")
    every = f"mean of the packets sent in each {result.scenario['sample']}"
    delay.set(title=f"queueing delay ({every})", ylabel="queueing delay,\nms")


class Carried(NamedTuple):
    """Line of throughput: its name, and bytes received and delivered in order per sample."""

    name: str
    received: Array
    delivered: Array


def _carried(result: Result) -> list[Carried]:
    """Return what has a line of throughput: flows if few, otherwise groups, those alike as one."""
    each = list(result.flows.items())
    if len(each) <= LINES and all(flow.series for _, flow in each):
        return [_line(name, [flow.series]) for name, flow in each]
    return [
        _line(one.title, [result.group_series[name] for name in one.members or (one.name,)])
        for one in drawn(result)
    ]


def _line(name: str, series: Sequence[Columns]) -> Carried:
    received, delivered = (
        np.sum([one[column] for one in series], axis=0)
        for column in ("received_bytes", "delivered_bytes")
    )
    return Carried(name, received, delivered)


def _rates(
    ax: "Axes", result: Result, carried: Sequence[Carried], lines: Mapping[str, dict[str, Any]]
) -> None:
    """Draw the throughput on the wire."""
    times = binned(result.time_s, POINTS)
    _capacity(ax, result, times)
    for name, received, _ in carried[:GROUPS]:
        ax.plot(times, _mbit(result, received), label=legend_name(name), **lines[name])
    title = f"throughput of each {_unit_of(result, carried)} on the wire ({_means_of(result)})"
    ax.set(title=title, ylabel="throughput,\nMbit/s")


def _payload(
    ax: "Axes", result: Result, carried: Sequence[Carried], lines: Mapping[str, dict[str, Any]]
) -> None:
    """Draw the payload delivered in order so far."""
    for name, _, delivered in carried[:GROUPS]:
        ax.plot(result.time_s, np.cumsum(delivered) * 1e-6, **lines[name])
    what = f"payload of each {_unit_of(result, carried)} delivered in order so far"
    ax.set(title=f"{what} (its slope is the goodput)", ylabel="payload\ndelivered, MB")


def _members(ax: "Axes", result: Result, group: Group) -> None:
    """Draw the throughput of groups that are alike, and their mean."""
    times = binned(result.time_s, POINTS)
    every = [_mbit(result, result.group_series[name].received_bytes) for name in group.members]
    for n, (name, mbit) in enumerate(zip(group.members, every, strict=True)):
        ax.plot(times, mbit, color=colour(n), ls=DASHES[n // 6 % 4], label=legend_name(name))
    ax.plot(times, np.mean(every, axis=0), color="#000000", lw=1.6, label="mean")
    title = f"{legend_name(group.name)}: throughput on the wire ({_means_of(result)})"
    ax.set(title=title, ylabel="throughput,\nMbit/s")


def _mbit(result: Result, received: Array) -> Array:
    """Return bytes per sample as Mbit/s, in bins."""
    return binned(received, POINTS) * 8e-6 / seconds(result.scenario["sample"])


def _means_of(result: Result) -> str:
    times = binned(result.time_s, POINTS)
    bin_s = times[1] - times[0] if len(times) > 1 else seconds(result.scenario["sample"])
    return f"means of {float(bin_s):.3g} s"


def _unit_of(result: Result, carried: Sequence[Carried]) -> str:
    if len(carried) >= len(result.flows):
        return "flow"
    return "group" if len(carried) <= GROUPS else f"group (first {GROUPS} of {len(carried)})"


def _capacity(rate: "Axes", result: Result, times: Array) -> None:
    """Draw the capacity of links with recorded rates behind the throughput."""
    recorded = {name: link for name, link in result.scenario["links"].items() if link.get("trace")}
    if len(times) < 2 or len(recorded) > RECORDED:
        return
    bin_s = times[1] - times[0]
    # A sample stands for the time before it.
    middles = times - seconds(result.scenario["sample"]) / 2
    edges = np.concatenate([middles[:1] - bin_s / 2, middles + bin_s / 2]).clip(0)
    for n, (name, link) in enumerate(recorded.items()):
        bps = capacity_bps(link, edges)
        if bps is not None:
            label = f"capacity of {legend_name(name)}"
            rate.stairs(bps * 1e-6, edges, fill=n == 0, color="#e4e4e4", label=label, zorder=0)


def _windows(result: Result, names: Sequence[str] | None) -> tuple[dict[str, Record], str]:
    """Return the flows whose congestion window is drawn, and the title of the panel."""
    have = {name: f for name, f in result.flows.items() if "cwnd_packets" in f.series}
    if names is None:
        chosen = list(have)[:WINDOWS]
        which = f" (first {len(chosen)} of {len(have)} TCP flows)" * (len(have) > len(chosen))
        return {name: have[name] for name in chosen}, f"congestion window{which}"
    shown: dict[str, Record] = {}
    cut = []
    for name in names:
        members = [name] if name in have else [n for n, f in have.items() if f["group"] == name]
        if not members:
            known = dict.fromkeys([*(flow["group"] for flow in have.values()), *list(have)[:20]])
            raise InputError(f'no TCP flow or group "{brief(name)}"{near(name, list(known))}')
        shown |= {member: have[member] for member in members[:LINES]}
        if len(members) > LINES:
            cut.append(f"first {LINES} of {len(members)} flows of {name}")
    which = f" ({', '.join(cut)})" if cut else ""
    return shown, f"congestion window{which}"
