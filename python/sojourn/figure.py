"""Figures: the one style, and the figure of a run.

Every figure says under which conditions it was made: what its title does not hold stands below.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sojourn import describe
from sojourn._sojourn import InputError
from sojourn.inputs import brief, near
from sojourn.measure import groups
from sojourn.output import check_file, replacing
from sojourn.result import Array, Record, Result
from sojourn.units import seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDINGS = (".png", ".pdf", ".svg")
"""What a figure can be written as."""

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000")
"""Okabe and Ito's colours, which the colour-blind can tell apart (the yellow is too faint)."""

DASHES = ("-", "--", "-.", ":")
"""Line styles, so that nothing hangs on colour alone."""

LINES = 6
"""The most flows of a group that are drawn one by one; of more, a band is drawn."""

WINDOWS = 4
"""How many congestion windows are drawn where nobody chose."""

LINKS_SAID = 4
"""How many links' conditions a title holds."""

POINTS = 200
"""Points of a throughput line: finer bins show single packets."""

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
}


def draw(
    result: Result, path: str | Path | None = None, *, flows: Sequence[str] | None = None
) -> "Figure":
    """Draw the queue, the waiting time, throughput and congestion windows of a run over time.

    `flows` names the flows, or groups of flows, whose congestion window is drawn (default: the
    first few over TCP). Written to `path` if there is one. Raises InputError if the scenario has
    no `sample`, or no such flow.
    """
    if not result.sampled:
        raise InputError('there are no series to draw: the scenario needs a sample, like "10ms"')
    shown, title = _windows(result, flows)
    styles = _styles(result, shown)
    rows = 4 if shown else 3
    with styled():
        figure = new_figure(8.5, 1.0 + 1.75 * rows)
        axes: list[Axes] = list(figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0])
        _queues(axes[0], axes[1], result)
        _throughput(axes[2], result, styles)
        for name, flow in shown.items():
            axes[3].plot(result.time_s, flow.series.cwnd_packets, label=name, **styles[name])
        if shown:
            axes[3].set(title=title, ylabel="packets")
        for ax in axes:
            _over_time(ax, result.scenario, named=ax is axes[0])
        axes[-1].set_xlabel("time, s")
        conditions = [f"{n}: {describe.link(result.scenario, n)}" for n in result.links]
        captions(figure, result, conditions, describe.seeds(result.scenario["seed"], 1))
        write(figure, path)
    return figure


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the one style, whatever the user's own settings are."""
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        # A name may be in any script; a letter that the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def new_figure(width: float, height: float) -> "Figure":
    """Start a figure of that size in inches; no global state, no window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def captions(figure: "Figure", result: Result, conditions: Sequence[str], seeds: str) -> None:
    """Put the name and the conditions above, and below what else is needed to repeat it."""
    scenario = result.scenario
    shown = list(conditions[:LINKS_SAID])
    if len(conditions) > len(shown):
        shown.append(f"and {len(conditions) - len(shown)} more")
    figure.suptitle("\n".join([describe.title(scenario), *shown]), x=0.01, ha="left", fontsize=10)
    real = "; real packets" if "live" in result.summary else ""
    figure.supxlabel(
        f"{describe.window(scenario)}; {seeds}; sojourn {result.version}{real}",
        x=0.01, ha="left", fontsize=7, color="#555555",
    )  # fmt: skip


def write(figure: "Figure", path: str | Path | None) -> None:
    """Write `figure` to `path`, if there is one; the same figure gives the same bytes."""
    if path is None:
        return
    path = Path(path)
    check_file(path, ENDINGS)
    undated: Mapping[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with replacing(path) as part:
        figure.savefig(part, metadata=undated.get(path.suffix.lower()))


def colour(n: int) -> str:
    """The `n`-th colour; they come round again."""
    return COLOURS[n % len(COLOURS)]


def binned(values: Array, bins: int) -> Array:
    """Means of runs of equal length, so that at most `bins` remain; an incomplete last is left out.

    NaN, for intervals in which nothing left, counts as nothing.
    """
    size = max(1, -(-len(values) // bins))
    whole = values[: len(values) // size * size].reshape(-1, size).astype(float)
    known = np.isfinite(whole)
    count = known.sum(axis=1)
    total = np.where(known, whole, 0.0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def legend(ax: "Axes") -> None:
    """Put the legend beside the axes, where it hides nothing."""
    if ax.get_legend_handles_labels()[1]:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.03), borderaxespad=0.3, handlelength=2.2)


def _over_time(ax: "Axes", scenario: Mapping[str, Any], *, named: bool) -> None:
    ax.set_xlim(0, seconds(scenario["duration"]))
    ax.set_ylim(bottom=0)
    if scenario["warmup"] != "0s":
        label = "warm-up" if named else None
        ax.axvspan(0, seconds(scenario["warmup"]), color="#eeeeee", zorder=0, label=label)
    legend(ax)


def _styles(result: Result, windows: Iterable[str]) -> dict[str, dict[str, Any]]:
    """How each line is drawn that stands alone, the same in every panel; a band is a line too."""
    alone = [
        name
        for group in groups(result)
        for name in (
            [f["name"] for f in group.flows] if len(group.flows) <= LINES else [group.name]
        )
    ]
    names = dict.fromkeys([*alone, *windows])
    return {
        name: {"color": colour(n), "ls": DASHES[n // len(COLOURS) % len(DASHES)]}
        for n, name in enumerate(names)
    }


def _queues(queue: "Axes", waiting: "Axes", result: Result) -> None:
    for n, (name, link) in enumerate(result.links.items()):
        series = link.series
        line: dict[str, Any] = {"color": colour(n), "lw": 0.8}
        queue.plot(result.time_s, series.queue_bytes / 1000, label=name, **line)
        waiting.plot(result.time_s, series.sojourn_s * 1000, **line)
    queue.set(title="queue", ylabel="kB")
    every = f"mean of the packets sent in each {result.scenario['sample']}"
    waiting.set(title=f"waiting time in the queue ({every})", ylabel="ms")


def _throughput(ax: "Axes", result: Result, styles: Mapping[str, dict[str, Any]]) -> None:
    """Draw a line per flow, or for a large group its median and the middle 80 %."""
    sample_s = seconds(result.scenario["sample"])
    times = binned(result.time_s, POINTS)
    for group in groups(result):
        rates = [binned(f.series.delivered_bytes, POINTS) * 8e-6 / sample_s for f in group.flows]
        if len(rates) <= LINES:
            for flow, mbit in zip(group.flows, rates, strict=True):
                ax.plot(times, mbit, label=flow["name"], **styles[flow["name"]])
            continue
        low, middle, high = np.percentile(np.array(rates), [10, 50, 90], axis=0)
        ax.fill_between(times, low, high, color=styles[group.name]["color"], alpha=0.25, lw=0)
        label = f"{group.name}: median\nand 10 to 90 %\nof {len(rates)} flows"
        ax.plot(times, middle, label=label, **styles[group.name])
    bin_s = float(times[1] - times[0]) if len(times) > 1 else sample_s
    title = f"throughput of each flow (payload delivered in order, means of {bin_s:.3g} s)"
    ax.set(title=title, ylabel="Mbit/s")


def _windows(result: Result, names: Sequence[str] | None) -> tuple[dict[str, Record], str]:
    """Return the flows whose congestion window is drawn, and the title of the panel."""
    have = {name: f for name, f in result.flows.items() if "cwnd_packets" in f.series}
    if names is None:
        first = dict(list(have.items())[:WINDOWS])
        which = f" (first {len(first)} of {len(have)} TCP flows)" if len(have) > len(first) else ""
        return first, f"congestion window{which}"
    shown: dict[str, Record] = {}
    cut = []
    for name in names:
        members = [name] if name in have else [n for n, f in have.items() if f["group"] == name]
        if not members:
            known = dict.fromkeys([*(flow["group"] for flow in have.values()), *list(have)[:20]])
            raise InputError(
                f'no flow "{brief(name)}" over TCP, and no group{near(name, list(known))}'
            )
        shown |= {member: have[member] for member in members[:LINES]}
        if len(members) > LINES:
            cut.append(f"first {LINES} of {len(members)} flows of {name}")
    which = f" ({', '.join(cut)})" if cut else ""
    return shown, f"congestion window{which}"
