"""Figures from a store of runs: lines with bands, heat maps, distributions, boxes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, get_args

import numpy as np

from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn._util.units import counted
from sojourn.metrics.labels import label
from sojourn.plotting.lines import style
from sojourn.plotting.run import LINKS_SAID, heading, legend, new_figure, styled, write
from sojourn.plotting.style import Look, wrapped
from sojourn.result.statistics import interval
from sojourn.scenario import describe
from sojourn.scenario.overrides import compared_link
from sojourn.sweeps.query import axis_column, column
from sojourn.sweeps.rows import axes_of

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Kind: TypeAlias = Literal["line", "heat", "ecdf", "box"]
LETTERS = 45
"""The most letters that have room below an axis."""

TICKS = 12
"""The most values of an axis that are all written at it."""

KINDS: tuple[Kind, ...] = get_args(Kind)


def plot(
    rows: "pl.DataFrame",
    *,
    y: str,
    x: str | None = None,
    by: str | None = None,
    kind: Kind = "line",
    log: bool = False,
    about: Mapping[str, Any] | None = None,
    path: str | Path | None = None,
    **look: Unpack[Look],
) -> "Figure":
    """Draw a column of `rows` (as `sojourn.results` gives them), and write it to `path`.

    - line: the mean of `y` over seeds against `x`, a line for each `by`, bands of 95 %;
    - heat: the mean of `y` over `x` and `by`;
    - ecdf: the distribution of `y` over runs, a line for each `by`;
    - box: the same as boxes, at each `by`.

    `log` makes the axis of `x` logarithmic. An axis that varies and is not named is refused.
    `about` is the note of the sweep, for the caption. `look` chooses title, xlabel, ylabel, size
    and style (see `sojourn.plotting.style.Look`).
    """
    if kind not in KINDS:
        raise InputError(f"--kind: unknown kind {shown(kind)}{near(kind, KINDS)}")
    y = column(rows, y)
    x = None if x is None else axis_column(rows, x, "--x")
    by = None if by is None else axis_column(rows, by, "--by")
    if kind in ("line", "heat") and x is None:
        raise InputError(f"--x: a figure of kind {kind} needs it")
    if kind == "heat" and by is None:
        raise InputError("--by: a heat map needs a second axis")
    if kind in ("ecdf", "box") and x is not None:
        raise InputError(f"--x: a figure of kind {kind} has none, its lines or boxes are --by")
    for axis in axes_of(rows):
        if axis not in (x, by) and rows[axis].n_unique() > 1:
            raise InputError(f'"{axis}" varies too: choose by --where {axis}=..., or name it')
    if not len(rows.drop_nulls(y)):
        raise InputError(f"--y: no run has a value of {y}")
    if by is not None and about is not None and by in about["axes"]:
        # In the order in which the sweep has them.
        place = {value: n for n, value in enumerate(about["axes"][by])}
        rows = rows.sort(rows[by].replace_strict(place, default=len(place)), maintain_order=True)
    draw = {"line": _line, "heat": _heat, "ecdf": _ecdf, "box": _box}[kind]
    rows, words = rows.drop_nulls(y), label(y)
    # Values in the unit of the label.
    rows = rows.with_columns(rows[y].cast(float) * words.scale)
    with styled(look.get("style")):
        figure = new_figure(6.4, 4.0, look.get("size"))
        ax = figure.subplots()
        draw(ax, rows, x, y, by)
        if log:
            ax.set_xscale("log")
            if x is not None and rows[x].n_unique() <= TICKS:
                places = rows[x].unique().sort().to_list()
                ax.set_xticks(places, [f"{one:g}" for one in places])
                ax.minorticks_off()
        _labels(figure, ax, look)
        _caption(figure, rows, y, about, look)
        write(figure, path)
    return figure


def _labels(figure: "Figure", ax: "Axes", look: Look) -> None:
    """Write the labels of the axes, in words and units where the user chose none."""
    wide, high = figure.get_size_inches()
    for which, room in (("xlabel", 0.62 * wide), ("ylabel", 0.6 * high)):
        name = getattr(ax, f"get_{which}")()
        chosen = look.get(which)
        text = label(name).text if chosen is None else str(chosen)
        ax.set(**{which: wrapped(text, room)})


def _line(ax: "Axes", rows: "pl.DataFrame", x: str | None, y: str, by: str | None) -> None:
    assert x is not None
    for n, (name, group) in enumerate(_groups(rows, by)):
        places = group[x].unique().sort().to_list()
        found = [interval(group.filter(group[x] == place)[y].to_numpy()) for place in places]
        look = style(n)
        ax.plot(places, [one.mean for one in found], label=name, **look)
        if all(one.half == one.half for one in found):
            low, high = [one.low for one in found], [one.high for one in found]
            ax.fill_between(places, low, high, color=look["color"], alpha=0.2, lw=0)
    ax.set(xlabel=x, ylabel=y)
    legend(ax)


def _heat(ax: "Axes", rows: "pl.DataFrame", x: str | None, y: str, by: str | None) -> None:
    assert x is not None
    assert by is not None
    across, down = rows[x].unique().sort().to_list(), rows[by].unique().sort().to_list()
    values = np.full((len(down), len(across)), np.nan)
    for (right, up), group in rows.group_by([x, by]):
        values[down.index(up), across.index(right)] = float(np.mean(group[y].to_numpy()))
    shown = ax.imshow(values, origin="lower", aspect="auto", cmap="viridis")
    ax.set_xticks(range(len(across)), [str(one) for one in across])
    _turn(ax, [str(one) for one in across])
    ax.set_yticks(range(len(down)), [str(one) for one in down])
    ax.grid(visible=False)
    ax.set(xlabel=x, ylabel=by)
    assert ax.figure is not None
    ax.figure.colorbar(shown, ax=ax, label=wrapped(label(y).text, 2.2))


def _ecdf(ax: "Axes", rows: "pl.DataFrame", x: str | None, y: str, by: str | None) -> None:
    for n, (name, group) in enumerate(_groups(rows, by)):
        look = style(n)
        ax.ecdf(group[y].to_numpy(), label=name, color=look["color"], ls=look["ls"])
    ax.set(xlabel=y, ylabel="share of runs")
    legend(ax)


def _box(ax: "Axes", rows: "pl.DataFrame", x: str | None, y: str, by: str | None) -> None:
    groups = _groups(rows, by)
    names = [name or "" for name, _ in groups]
    ax.boxplot([group[y].to_numpy() for _, group in groups], tick_labels=names)
    _turn(ax, names)
    ax.set(xlabel=by or "", ylabel=y)


def _turn(ax: "Axes", names: Sequence[str]) -> None:
    """Turn the names below the axis upright where they have no room beside one another."""
    if sum(len(name) + 2 for name in names) > LETTERS:
        ax.tick_params(axis="x", rotation=90)


def _groups(rows: "pl.DataFrame", by: str | None) -> "list[tuple[str | None, pl.DataFrame]]":
    if by is None:
        return [(None, rows)]
    values: Sequence[Any] = rows[by].unique(maintain_order=True).to_list()
    return [(str(value), rows.filter(rows[by] == value)) for value in values]


def _caption(
    figure: "Figure", rows: "pl.DataFrame", y: str, about: Mapping[str, Any] | None, look: Look
) -> None:
    """Say what is drawn, and under which conditions."""
    fixed = [f"{axis} {rows[axis][0]}" for axis in axes_of(rows) if rows[axis].n_unique() == 1]
    title = [label(y).text + (f"; {', '.join(fixed)}" if fixed else "")]
    seeds = rows["seed"].n_unique()
    runs = f"{counted(seeds, 'seed')}, {counted(len(rows), 'run')}"
    below = f"{runs}; engine {rows['engine'][0]}"
    if about is not None:
        scenario = about["scenario"]
        title.insert(0, describe.title(scenario))
        title += [f"{name}: {_link(about, name)}" for name in _links(scenario, y)]
        if varied := [axis for axis in axes_of(rows) if rows[axis].n_unique() > 1]:
            title[-1] += f"; but for {' and '.join(varied)}"
        below = f"{describe.window(scenario)}; {below}"
    heading(figure, "\n".join(title), below, look)


def _link(about: Mapping[str, Any], name: str) -> str:
    """Write a link; its discipline is left out where an axis of the sweep is about it."""
    link = about["scenario"]["links"][name]
    if any(link["qdisc"]["name"] in values for values in about["axes"].values()):
        return f"{link['rate']}, {link['delay']}, buffer {link['qdisc']['limit']}"
    return describe.link(about["scenario"], name)


def _links(scenario: Mapping[str, Any], y: str) -> list[str]:
    """Return the links that a column is about: its own, or those on the path of its flows."""
    owner = y.partition("(")[0].rpartition(".")[0]
    if owner in scenario["links"]:
        return [owner]
    for flow in scenario["flows"]:
        if flow["name"] == owner:
            return [name for name in scenario["links"] if name in flow["path"]][:LINKS_SAID]
    return [compared_link(dict(scenario), None)]
