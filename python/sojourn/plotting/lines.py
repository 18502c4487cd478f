"""Lines of means with confidence intervals, for figures of papers and sweeps."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sojourn._util.order import in_order
from sojourn.plotting.run import COLOURS, DASHES, legend
from sojourn.result.statistics import interval

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Markers of points, so that lines can be distinguished without colour."""


def style(n: int) -> dict[str, Any]:
    """Return colour, line style and marker of the `n`-th line of a figure."""
    return {
        "color": COLOURS[n % len(COLOURS)],
        "ls": DASHES[n % len(DASHES)],
        "marker": MARKERS[n % len(MARKERS)],
        "ms": 3.5,
    }


def lines(
    ax: "Axes",
    frame: "pl.DataFrame",
    x: str,
    y: str,
    *,
    by: str | None = None,
    names: Sequence[Any] | Mapping[Any, str] = (),
    scale: float = 1.0,
    x_scale: float = 1.0,
    begin: int = 0,
) -> None:
    """Draw the mean of `y` over seeds against `x`, with 95 % intervals as error bars.

    There is one line for each value of `by`. `names` selects, orders and names these values, so
    that an algorithm has the same colour in all figures with the same names. `scale` and `x_scale`
    multiply the values. `begin` is the style index of the first line.
    """
    import polars as pl

    whole = frame.with_columns(pl.lit("").alias("_one")) if by is None else frame
    by = by or "_one"
    shown = list(names) or in_order(sorted(whole[by].unique().to_list()))
    for n, value in enumerate(shown):
        rows = whole.filter((pl.col(by) == value) & pl.col(y).is_not_null())
        if not len(rows):
            continue
        xs = in_order(sorted(rows[x].unique().to_list()))
        means = [interval(rows.filter(pl.col(x) == one)[y].to_numpy() * scale) for one in xs]
        label = names[value] if isinstance(names, Mapping) else str(value)
        ax.errorbar(
            [one * x_scale for one in xs] if not isinstance(xs[0], str) else xs,
            [one.mean for one in means],
            yerr=[0.0 if one.half != one.half else one.half for one in means],
            label=label or None,
            capsize=2,
            elinewidth=0.8,
            **style(begin + n),
        )
    legend(ax)
