"""Lines of means with their intervals: what most figures of papers and sweeps are."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sojourn.plotting.run import COLOURS, DASHES, legend
from sojourn.result.statistics import interval

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Signs at the points, so that nothing hangs on colour alone."""


def style(n: int) -> dict[str, Any]:
    """How the n-th line of a figure is drawn."""
    return {
        "color": COLOURS[n % len(COLOURS)],
        "ls": DASHES[n // len(COLOURS) % len(DASHES)],
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
    """Draw the mean of `y` over seeds against `x`, a line for each value of `by`.

    Bars are 95 % intervals. `names` chooses and orders the values of `by`, and says what they are
    called, so that a scheme has the same colour in all figures that name the same list; `begin`
    is the number of the first line's style.
    """
    import polars as pl

    whole = frame.with_columns(pl.lit("").alias("_one")) if by is None else frame
    by = by or "_one"
    shown = list(names) or sorted(whole[by].unique().to_list())
    for n, value in enumerate(shown):
        rows = whole.filter((pl.col(by) == value) & pl.col(y).is_not_null())
        if not len(rows):
            continue
        xs = sorted(rows[x].unique().to_list())
        found = [interval(rows.filter(pl.col(x) == one)[y].to_numpy() * scale) for one in xs]
        label = names[value] if isinstance(names, Mapping) else str(value)
        ax.errorbar(
            [one * x_scale for one in xs] if not isinstance(xs[0], str) else xs,
            [one.mean for one in found],
            yerr=[0.0 if one.half != one.half else one.half for one in found],
            label=label or None,
            capsize=2,
            elinewidth=0.8,
            **style(begin + n),
        )
    legend(ax)
