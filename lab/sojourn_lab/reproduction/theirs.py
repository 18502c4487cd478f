"""The paper's own numbers, and ns-2's, in figures: hollow markers, grey bands, plus signs.

The curves of the papers were not available as data. Figures show the numbers that their texts
state.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sojourn.plotting.lines import style
from sojourn.plotting.run import legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREY = "#d9d9d9"


def points(
    ax: "Axes", xs: Sequence[Any], ys: Sequence[float], n: int | None = None, label: str = "paper"
) -> None:
    """Draw stated numbers as hollow markers, in the colour and marker of line `n` if given.

    The legend shows one grey marker for all of them.
    """
    look = {"color": "#000000", "marker": "o"} if n is None else style(n)
    ax.plot(xs, ys, ls="", marker=look["marker"], ms=8, mfc="none", mec=look["color"], mew=1.4,
            label=f"_{label}", zorder=4)  # fmt: skip
    _name(ax, label, marker="o", ms=8, mfc="none", mec="#555555", mew=1.4)


def ns2(ax: "Axes", xs: Sequence[Any], ys: Sequence[float], n: int, label: str = "ns-2") -> None:
    """Draw results of ns-2 as plus signs, in the colour of line `n`."""
    ax.plot(xs, ys, ls="", marker="+", ms=8, mew=1.6, color=style(n)["color"], zorder=4,
            label=f"_{label}")  # fmt: skip
    _name(ax, label, marker="+", ms=8, mew=1.6, color="#555555")


def band(ax: "Axes", low: float, high: float, label: str = "paper") -> None:
    """Draw a stated range, for all x, as a grey band."""
    ax.axhspan(low, high, color=GREY, lw=0, zorder=0, label=_new(ax, label))
    legend(ax)


def level(ax: "Axes", y: float, label: str = "paper") -> None:
    """Draw a stated number, for all x, as a thick grey line."""
    ax.axhline(y, color="#bbbbbb", lw=3, zorder=0, label=_new(ax, label))
    legend(ax)


def boxes(ax: "Axes", xs: Sequence[float], ends: Sequence[tuple[float, float]]) -> None:
    """Draw stated ranges at single places as grey boxes behind the bars there."""
    for x, (low, high) in zip(xs, ends, strict=True):
        ax.bar([x], [high - low], 0.12, bottom=low, color=GREY, ec="#888888", lw=0.8, zorder=0,
               label=_new(ax, "paper"))  # fmt: skip
    legend(ax)


def _new(ax: "Axes", label: str) -> str:
    """Return the label, or one that the legend leaves out if it is there already."""
    return f"_{label}" if label in ax.get_legend_handles_labels()[1] else label


def _name(ax: "Axes", label: str, **look: Any) -> None:
    """Add an entry to the legend."""
    if label not in ax.get_legend_handles_labels()[1]:
        ax.plot([], [], ls="", label=label, **look)
    legend(ax)
