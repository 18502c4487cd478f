"""Figures of sweeps: lines with bands, heat maps, distributions, box plots."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, Unpack, get_args

import numpy as np

from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn._util.lazy import Lazy
from sojourn._util.order import quantity
from sojourn._util.paths import compared_link, links_of
from sojourn._util.public import public
from sojourn._util.units import counted, figures
from sojourn.metrics.labels import label
from sojourn.plotting.lines import style
from sojourn.plotting.run import LINKS_SAID, heading, legend, new_figure, styled, write
from sojourn.plotting.style import Look, wrapped
from sojourn.scenario import describe
from sojourn.sweeps import estimates
from sojourn.sweeps.needs import limit_of
from sojourn.sweeps.query import axis_column, column
from sojourn.sweeps.rows import axes_of, labels_in_order

if TYPE_CHECKING:
    import matplotlib.figure as mpl
    import polars as pl
    from matplotlib.axes import Axes
else:
    pl = Lazy("polars")
    mpl = Lazy("matplotlib.figure")

Kind: TypeAlias = Literal["line", "heat", "ecdf", "box"]

LETTERS = 45
"""Largest number of characters that fit below an axis."""

TICKS = 12
"""Largest number of values of a logarithmic axis that are all labelled."""

CELLS = 12
"""Largest number of rows, and of columns, of a heat map whose cells show their value."""

KINDS: tuple[Kind, ...] = get_args(Kind)


class Order(NamedTuple):
    """Labels of the x axis, and of the lines or boxes, in order."""

    across: Sequence[Any]
    by: Sequence[Any]


@public
def plot(
    rows: "pl.DataFrame",
    *,
    y: str,
    x: str | None = None,
    by: str | None = None,
    kind: Kind = "line",
    log: bool = False,
    limit: str | None = None,
    about: Mapping[str, Any] | None = None,
    path: str | Path | None = None,
    **look: Unpack[Look],
) -> "mpl.Figure":
    """Draw a column of the rows of a sweep.

    Parameters
    ----------
    rows : polars.DataFrame
        Rows from `sojourn.results` or `sojourn.sweep`.
    y : str
        Column to draw, with or without its unit, like "sojourn_p99".
    x : str, optional
        Axis across; required for kinds "line" and "heat".
    by : str, optional
        Axis with one line or box per value; the vertical axis of kind "heat".
    kind : {"line", "heat", "ecdf", "box"}, optional
        - "line": `y` against `x` as in the table of `sojourn results`: the mean over seeds, or the
          percentile over the values of all seeds, with bands for the 95 % interval;
        - "heat": the same over `x` and `by`;
        - "ecdf": distribution of `y` over runs;
        - "box": the same as box plots.
    log : bool, optional
        True for a logarithmic x axis.
    limit : str, optional
        Agreed limit of `y` with its unit, like "30ms", drawn as a dashed line.
    about : mapping, optional
        Conditions for the caption, from `sojourn.sweeps.conditions.conditions`.
    path : str or Path, optional
        File to write, .png, .pdf or .svg.
    **look : optional
        Options `title`, `xlabel`, `ylabel`, `size` and `style`, see `sojourn.plotting.style.Look`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. It is not registered with pyplot.

    Raises
    ------
    InputError
        If a column or kind is unknown, an axis varies that is neither `x` nor `by`, or the file
        cannot be written.
    """
    if kind not in KINDS:
        raise InputError(f"--kind: unknown kind {shown(kind)}{near(kind, KINDS)}")
    y = column(rows, y)
    x = None if x is None else axis_column(rows, x, "--x")
    by = None if by is None else axis_column(rows, by, "--by")
    if kind in ("line", "heat") and x is None:
        raise InputError(f"--x: a figure of kind {kind} requires it")
    if kind == "heat" and by is None:
        raise InputError("--by: a heat map requires a second axis")
    if kind in ("ecdf", "box") and x is not None:
        raise InputError(f"--x: a figure of kind {kind} has no x axis, choose its lines by --by")
    for axis in axes_of(rows):
        if axis not in (x, by) and rows[axis].n_unique() > 1:
            advice = f"select with --where {axis}=..., or draw it with --x or --by"
            raise InputError(f'"{axis}" varies too: {advice}')
    if not len(rows.drop_nulls(y)):
        raise InputError(f"--y: no run has a value of {y}")
    if log and kind in ("heat", "box"):
        raise InputError(f"--log: a figure of kind {kind} has an axis of labels")
    if limit is not None and kind == "heat":
        raise InputError("--limit: a heat map has no axis for it")
    at = None if limit is None else limit_of("--limit", y, limit)
    draw = {"line": _line, "heat": _heat, "ecdf": _ecdf, "box": _box}[kind]
    axes_values = {} if about is None else about["axes"]
    rows, words = rows.drop_nulls(y), label(y)
    order = Order(*(() if a is None else _labels_of(rows, a, axes_values) for a in (x, by)))
    if kind in ("ecdf", "box"):  # single runs, in the unit of the label
        rows = rows.with_columns(rows[y].cast(float) * words.scale)
    with styled(look.get("style")):
        figure = new_figure(6.4, 4.0, look.get("size"))
        ax = figure.subplots()
        if log:
            ax.set_xscale("log")
        draw(ax, rows, x, y, by, order)
        if at is not None:
            _limit(ax, at * words.scale, f"limit {limit}", across=kind == "ecdf")
        _labels(figure, ax, look)
        _caption(figure, rows, y, about, look)
        write(figure, path)
    return figure


def _labels_of(
    rows: "pl.DataFrame", axis: str, values: Mapping[str, Sequence[Any]]
) -> Sequence[Any]:
    """Return the labels of an axis in order, without rows to which it does not apply."""
    return [one for one in labels_in_order(rows[axis], values.get(axis, ())) if one is not None]


def _labels(figure: "mpl.Figure", ax: "Axes", look: Look) -> None:
    """Set the labels of the axes: those in `look`, otherwise quantity and unit."""
    wide, high = figure.get_size_inches()
    for which, room in (("xlabel", 0.62 * wide), ("ylabel", 0.6 * high)):
        name = getattr(ax, f"get_{which}")()
        chosen = look.get(which)
        text = label(name).text if chosen is None else str(chosen)
        ax.set(**{which: wrapped(text, room)})


def _places(ax: "Axes", axis: str, labels: Sequence[Any]) -> dict[Any, float]:
    """Return the places of labels on the x axis: numbers at their value, texts side by side.

    On a logarithmic axis, quantities like "5mbit" have the place of their value.
    """
    log = ax.get_xscale() == "log"
    if all(isinstance(one, int | float) for one in labels):
        if log and len(labels) <= TICKS:
            ax.set_xticks(labels, [f"{one:g}" for one in labels])
            ax.minorticks_off()
        return {one: float(one) for one in labels}
    read = [quantity(one) for one in labels]
    if log and (None in read or len({kind for kind, _ in filter(None, read)}) > 1):
        raise InputError(f"--log: the values of {shown(axis)} are names, like {shown(labels[0])}")
    places = [value for _, value in filter(None, read)] if log else [*map(float, range(len(read)))]
    ax.set_xticks(places, [str(one) for one in labels])
    ax.minorticks_off()
    _turn(ax, [str(one) for one in labels])
    return dict(zip(labels, places, strict=True))


def _line(
    ax: "Axes", rows: "pl.DataFrame", x: str | None, y: str, by: str | None, order: Order
) -> None:
    assert x is not None
    places = _places(ax, x, order.across)
    for n, (name, group) in enumerate(_groups(rows, by, order)):
        here = [one for one in order.across if one in set(group[x])]
        points = [_estimate(group.filter(group[x] == one), y) for one in here]
        look, at = style(n), [places[one] for one in here]
        ax.plot(at, [one[0] for one in points], label=name, **look)
        low, high = ([one[side] for one in points] for side in (1, 2))
        ax.fill_between(at, low, high, color=look["color"], alpha=0.2, lw=0)
    ax.set(xlabel=x, ylabel=y)
    legend(ax)


def _estimate(rows: "pl.DataFrame", y: str) -> tuple[float, float, float]:
    """Return the estimate of a table and the ends of its interval, in the unit of the label.

    They are NaN if there are too few values.
    """
    estimate = estimates.of(rows, y).times(label(y).scale)
    value, low, high = (
        float("nan") if one is None else one
        for one in (estimate.value, estimate.low, estimate.high)
    )
    return value, low, high


def _heat(
    ax: "Axes", rows: "pl.DataFrame", x: str | None, y: str, by: str | None, order: Order
) -> None:
    assert x is not None
    assert by is not None
    across, down = list(order.across), list(order.by)
    values = np.full((len(down), len(across)), np.nan)
    for (right, up), group in rows.drop_nulls([x, by]).group_by([x, by]):
        values[down.index(up), across.index(right)], *_ = _estimate(group, y)
    image = ax.imshow(values, origin="lower", aspect="auto", cmap="viridis")
    if len(across) <= CELLS and len(down) <= CELLS:
        dark = float(np.nanmin(values) + np.nanmax(values)) / 2
        for (up, right), value in np.ndenumerate(values):
            if value == value:
                colour = "white" if value <= dark else "black"
                text = figures(value)
                ax.text(right, up, text, ha="center", va="center", color=colour, fontsize=8)
    ax.set_xticks(range(len(across)), [str(one) for one in across])
    _turn(ax, [str(one) for one in across])
    ax.set_yticks(range(len(down)), [str(one) for one in down])
    ax.grid(visible=False)
    ax.set(xlabel=x, ylabel=by)
    assert ax.figure is not None
    ax.figure.colorbar(image, ax=ax, label=wrapped(label(y).text, 2.2))


def _ecdf(
    ax: "Axes", rows: "pl.DataFrame", x: str | None, y: str, by: str | None, order: Order
) -> None:
    for n, (name, group) in enumerate(_groups(rows, by, order)):
        look = style(n)
        ax.ecdf(group[y].to_numpy(), label=name, color=look["color"], ls=look["ls"])
    ax.set(xlabel=y, ylabel="share of runs")
    legend(ax)


def _box(
    ax: "Axes", rows: "pl.DataFrame", x: str | None, y: str, by: str | None, order: Order
) -> None:
    groups = _groups(rows, by, order)
    names = [name or "" for name, _ in groups]
    ax.boxplot([group[y].to_numpy() for _, group in groups], tick_labels=names)
    _turn(ax, names)
    ax.set(xlabel=by or "", ylabel=y)


def _limit(ax: "Axes", at: float, text: str, *, across: bool) -> None:
    """Draw an agreed limit: a vertical line if the quantity is on the x axis."""
    line = ax.axvline if across else ax.axhline
    line(at, color="#444444", ls=(0, (6, 3)), lw=1.2, label=text, zorder=1)
    legend(ax)


def _turn(ax: "Axes", names: Sequence[str]) -> None:
    """Rotate the labels of the x axis if they do not fit side by side."""
    if sum(len(name) + 2 for name in names) > LETTERS:
        ax.tick_params(axis="x", rotation=90)


def _groups(
    rows: "pl.DataFrame", by: str | None, order: Order
) -> "list[tuple[str | None, pl.DataFrame]]":
    if by is None:
        return [(None, rows)]
    return [(str(value), rows.filter(rows[by] == value)) for value in order.by]


def _caption(
    figure: "mpl.Figure", rows: "pl.DataFrame", y: str, about: Mapping[str, Any] | None, look: Look
) -> None:
    """Write the quantity and the conditions above and below the figure."""
    fixed = [f"{axis} {rows[axis][0]}" for axis in axes_of(rows) if rows[axis].n_unique() == 1]
    title = [label(y).text + (f"; {', '.join(fixed)}" if fixed else "")]
    seeds = rows["seed"].n_unique()
    runs = f"{counted(seeds, 'seed')}, {counted(len(rows), 'run')}"
    below = f"{runs}; engine {rows['engine'][0]}"
    if about is not None:
        scenario = about["scenario"]
        title.insert(0, describe.title(scenario))
        # What an axis changes is in the title only as the label of the axis: notes of older
        # versions do not say what that is.
        if (changed := about.get("varied")) is not None:
            stated = {name: describe.link(scenario, name, changed) for name in _links(scenario, y)}
            title += [f"{name}: {text}" for name, text in stated.items() if text]
            below = "; ".join(filter(None, [describe.window(scenario, changed), below]))
        if varied := [axis for axis in axes_of(rows) if rows[axis].n_unique() > 1]:
            title[-1] += f"; varied: {', '.join(varied)}"
    heading(figure, "\n".join(title), below, look)


def _links(scenario: Mapping[str, Any], y: str) -> list[str]:
    """Return the links of a column: its own link, or those on the path of its flows."""
    owner = y.partition("(")[0].rpartition(".")[0]
    if owner in scenario["links"]:
        return [owner]
    for flow in scenario["flows"]:
        if flow["name"] == owner:
            crossed = set(links_of(flow))
            return [name for name in scenario["links"] if name in crossed][:LINKS_SAID]
    return [compared_link(dict(scenario), None)]
