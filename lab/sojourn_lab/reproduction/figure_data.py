"""Data behind a figure, as CSV: series, x, y, low, high, with six significant digits.

The numbers are those that are drawn. `low` and `high` are the ends of an interval or a range; `x`
is empty for a level, and `y` for a range or a vertical line. Lines of more than `POINTS` points
have the least and the largest value of each of `BINS` parts.
"""

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from matplotlib.colors import to_hex

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer, ErrorbarContainer
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

COLUMNS = ("series", "x", "y", "low", "high")

POINTS = 400
BINS = 100

Number: TypeAlias = float | str | None


class Datum(NamedTuple):
    """A line of the file."""

    series: str
    x: Number
    y: Number = None
    low: Number = None
    high: Number = None


def as_csv(axes: Sequence["Axes"]) -> str:
    """Return the data of a drawn figure."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for ax in axes:
        for one in _data(ax):
            rows.writerow([one.series, *map(_written, one[1:])])
    return text.getvalue()


def _written(value: Number) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:.6g}" if math.isfinite(value) else ""


def _data(ax: "Axes") -> Iterator[Datum]:
    """Yield the data of the artists of one pair of axes."""
    from matplotlib.container import BarContainer, ErrorbarContainer
    from matplotlib.patches import Rectangle

    names = _names(ax)
    taken: set[Any] = set()
    for container in ax.containers:
        if isinstance(container, ErrorbarContainer):
            taken |= {container[0], *container[1], *container[2]}
            yield from _with_errors(ax, container, names)
        elif isinstance(container, BarContainer):
            taken |= set(container.patches)
            yield from _bars(ax, container)
    for line in ax.lines:
        if line not in taken:
            yield from _line(ax, line, names)
    for collection in ax.collections:
        if collection not in taken:
            yield from _ranges(ax, collection, names)
    for patch in ax.patches:
        if patch not in taken and isinstance(patch, Rectangle):
            yield from _bands(patch)


def _bands(patch: "Rectangle") -> Iterator[Datum]:
    """Yield the ends of a band for all x; a band for all y has no data."""
    low, height = float(patch.get_y()), float(patch.get_height())
    if (low, height) != (0, 1) or patch.get_x() == 0:
        yield Datum(_label(patch), None, None, low, low + height)


def _names(ax: "Axes") -> dict[str, str]:
    """Return the names of the series by colour."""
    handles, labels = ax.get_legend_handles_labels()
    colours: dict[str, str] = {}
    for handle, label in zip(handles, labels, strict=True):
        one = handle[0] if isinstance(handle, tuple) and handle and handle[0] else handle
        if hasattr(one, "get_color"):
            colours.setdefault(to_hex(one.get_color()), str(label))
    return colours


def _label(artist: Any) -> str:
    """Return the name of an artist, also one that the legend leaves out, such as "_paper"."""
    label = str(artist.get_label()).removeprefix("_")
    return "" if re.fullmatch(r"(child|container)\d+|nolegend_|", label) else label


def _series(line: "Line2D", names: dict[str, str]) -> str:
    """Return the name of a line; stated numbers have the name of the line with their colour."""
    label = _label(line)
    if not str(line.get_label()).startswith("_"):
        return label
    each = (to_hex(colour) for colour in (line.get_markeredgecolor(), line.get_color()))
    own = next((names[colour] for colour in each if colour in names), "")
    return f"{label}: {own}" if label and own and own != label else label or own


def _measured(ax: "Axes", series: str) -> str:
    """Return the name of a series, for the only one of a figure what is on the y axis."""
    return series or str(ax.get_ylabel())


def _place(ax: "Axes", x: Any) -> Number:
    """Return x; on an axis of evenly spaced names, the name."""
    from matplotlib.ticker import FixedLocator

    if isinstance(x, str):
        return x
    if isinstance(ax.xaxis.get_major_locator(), FixedLocator):
        ticks = [float(tick) for tick in ax.get_xticks()]
        labels = [tick.get_text() for tick in ax.get_xticklabels()]
        if ticks == [float(n) for n in range(len(ticks))] and labels != [f"{t:g}" for t in ticks]:
            nearest = round(float(x))
            if 0 <= nearest < len(labels):
                return labels[nearest].replace("\n", " ")
    return float(x)


def _with_errors(
    ax: "Axes", container: "ErrorbarContainer", names: dict[str, str]
) -> Iterator[Datum]:
    """Yield the points of a line with their intervals."""
    line = container[0]
    if line is None:
        return
    hidden = str(container.get_label()).startswith("_")
    series = _series(line, names) if hidden else _label(container)
    xs, ys = line.get_xdata(orig=True), line.get_ydata(orig=True)
    ends = [segment[:, 1] for bars in container[2] for segment in bars.get_segments()]
    for n, (x, y) in enumerate(zip(xs, ys, strict=True)):
        low, high = (min(ends[n]), max(ends[n])) if len(ends) == len(xs) else (None, None)
        yield Datum(_measured(ax, series), _place(ax, x), float(y), low, high)


def _bars(ax: "Axes", container: "BarContainer") -> Iterator[Datum]:
    """Yield bars: a height, or both ends of a range."""
    series = _measured(ax, _label(container))
    for bar in container.patches:
        x, low = _place(ax, bar.get_x() + bar.get_width() / 2), float(bar.get_y())
        high = low + float(bar.get_height())
        yield Datum(series, x, high) if low == 0 else Datum(series, x, None, low, high)


def _line(ax: "Axes", line: "Line2D", names: dict[str, str]) -> Iterator[Datum]:
    """Yield the points of a line, or its level if it is drawn for all x or all y."""
    series = _series(line, names)
    xs, ys = np.asarray(line.get_xdata(orig=True)), np.asarray(line.get_ydata(orig=True))
    if line.get_transform() == ax.get_yaxis_transform(which="grid"):
        yield Datum(series, None, float(ys[0]))
    elif line.get_transform() == ax.get_xaxis_transform(which="grid"):
        yield Datum(series, float(xs[0]))
    else:
        for n in _kept(ys):
            yield Datum(_measured(ax, series), _place(ax, xs[n].item()), float(ys[n]))


def _kept(ys: Any) -> list[int]:
    """Return the indices of the points that represent a line."""
    if len(ys) <= POINTS:
        return list(range(len(ys)))
    parts = np.array_split(np.arange(len(ys)), BINS)
    values = np.nan_to_num(np.asarray(ys, dtype=float))
    ends = {int(part[pick(values[part])]) for part in parts for pick in (np.argmin, np.argmax)}
    return sorted(ends | {0, len(ys) - 1})


def _ranges(ax: "Axes", collection: Any, names: dict[str, str]) -> Iterator[Datum]:
    """Yield the points of a scatter plot, or the ends of a filled range by x.

    The area below a line is left out: the line has its data.
    """
    colours = [to_hex(one) for one in collection.get_facecolor()[:1]]
    series = _label(collection) or next((names[one] for one in colours if one in names), "")
    offsets = np.asarray(collection.get_offsets())
    if len(offsets) > 1:
        yield from (Datum(series, _place(ax, x), float(y)) for x, y in offsets)
        return
    ends: dict[float, tuple[float, float]] = {}
    for path in collection.get_paths():
        for x, y in path.vertices:
            low, high = ends.get(x, (y, y))
            ends[x] = min(low, y), max(high, y)
    xs = sorted(ends)
    if not xs or np.median([ends[x][0] for x in xs]) == 0:
        return
    series = _measured(ax, series)
    for n in _kept([ends[x][1] for x in xs]):
        yield Datum(series, _place(ax, xs[n]), None, *ends[xs[n]])
