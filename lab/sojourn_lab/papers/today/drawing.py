"""Mean for each discipline and sender: the common figure of the questions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sojourn.plotting.lines import MARKERS
from sojourn.plotting.run import COLOURS
from sojourn.result.statistics import interval
from sojourn_lab.papers.today.senders import NAMES, there

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

GREY = "#d9d9d9"


def dots(
    ax: "Axes",
    frame: "pl.DataFrame",
    column: str,
    names: Mapping[str, str],
    *,
    scale: float = 1.0,
    new: int = 5,
    log: bool = False,
    empty: str = "",
    who: Sequence[str] = tuple(NAMES),
) -> None:
    """Draw the mean of `column` for each discipline and sender, with 95 % intervals.

    Senders are side by side with a marker and a colour each; the last `new` disciplines are
    today's, on a grey ground. A discipline without a value in any run has a cross at the upper
    edge, which the legend calls `empty`; without `empty` it must not happen.
    """
    used = there(frame, who)
    step, missing = 0.8 / len(used), False
    for n, sender in enumerate(used):
        xs, intervals = [], []
        for i, name in enumerate(names):
            rows = frame.filter(sender=sender, qdisc=name)
            if not len(rows):
                continue
            x = i + (n - (len(used) - 1) / 2) * step
            known = rows.drop_nulls(column)[column].to_numpy().astype(float) * scale
            if len(known):
                xs.append(x)
                intervals.append(interval(known))
            else:
                assert empty, f"no value of {column} with {sender}, {name}"
                missing = True
                ax.plot([x], [0.97], marker="x", ms=5, mew=1.5, color=_colour(n), clip_on=False,
                        transform=ax.get_xaxis_transform())  # fmt: skip
        ax.errorbar(
            xs,
            [one.mean for one in intervals],
            yerr=_bars([one.mean for one in intervals], [one.half for one in intervals], log),
            label=NAMES[sender],
            capsize=1.5,
            elinewidth=0.8,
            color=_colour(n),
            marker=MARKERS[n % len(MARKERS)],
            mfc="white" if n >= len(COLOURS) else None,
            ls="",
            ms=4.5,
        )
    if missing:
        ax.plot([], [], marker="x", ms=5, mew=1.5, ls="", color="#555555", label=empty)
    _places(ax, list(names.values()), new)
    if log:
        _logarithmic(ax)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.07), ncol=4, fontsize=7.5, frameon=False)


def _logarithmic(ax: "Axes") -> None:
    """Make the vertical axis logarithmic, with plain numbers as labels."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set_yscale("log")
    low, high = ax.get_ylim()
    few = high / low < 1000
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,), numticks=20))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())


def _colour(n: int) -> str:
    return COLOURS[n % len(COLOURS)]


def _bars(
    means: Sequence[float], halves: Sequence[float], log: bool
) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    """Return the lengths of the bars down and up; on a logarithmic axis they end above 0."""
    up = np.nan_to_num(np.asarray(halves, dtype=float))
    down = np.minimum(up, 0.999 * np.asarray(means, dtype=float)) if log else up
    return np.stack([down, up])


def _places(ax: "Axes", labels: Sequence[str], new: int) -> None:
    """Name the places of the disciplines; the last `new` have a grey ground."""
    count = len(labels)
    if new:
        ax.axvspan(count - new - 0.5, count - 0.5, color="#eeeeee", lw=0, zorder=-1)
    for x in range(1, count):
        ax.axvline(x - 0.5, color=GREY, lw=0.6, zorder=0)
    ax.set_xticks(range(count), [label.replace(" ", "\n", 1) for label in labels])
    ax.set_xlim(-0.5, count - 0.5)
    ax.grid(axis="x", visible=False)


def stated_values(
    ax: "Axes", places: Sequence[str], values: Mapping[str, float], label: str
) -> None:
    """Draw the paper's values as lines across the places of their disciplines."""
    for n, (name, value) in enumerate(values.items()):
        at = places.index(name)
        ax.plot([at - 0.45, at + 0.45], [value, value], color="#999999", lw=3, zorder=0.6,
                solid_capstyle="butt", label=label if n == 0 else "_nolegend_")  # fmt: skip
