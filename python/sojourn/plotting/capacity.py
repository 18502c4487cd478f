"""Figure of a capacity: the estimate of each need against the varied value, with its limit."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from sojourn._util.lazy import Lazy
from sojourn._util.order import quantity
from sojourn._util.public import public
from sojourn._util.units import counted
from sojourn.metrics.labels import label
from sojourn.plotting.lines import style
from sojourn.plotting.run import heading, legend, new_figure, styled, write
from sojourn.plotting.style import Look, wrapped
from sojourn.scenario import describe
from sojourn.sweeps.capacity_result import CapacityAnswer, CapacityResult
from sojourn.sweeps.grid import UNITS, kind_of
from sojourn.sweeps.needs import Need

if TYPE_CHECKING:
    import matplotlib.figure as mpl
    from matplotlib.axes import Axes
else:
    mpl = Lazy("matplotlib.figure")

LOG_FROM = 10.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""


@public
def draw_capacity(
    result: CapacityResult, path: str | Path | None = None, **look: Unpack[Look]
) -> "mpl.Figure":
    """Draw what `sojourn.capacity` simulated: one panel per need, one line per answer.

    A dashed line is the limit of the need, and a thin vertical line the answer. Error bars are 95 %
    intervals. A result with a second key is drawn as its frontier: the answers against that key.

    Parameters
    ----------
    result : CapacityResult
        The result to draw.
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
        If an option is invalid, or the file cannot be written.
    """
    with styled(look.get("style")):
        if result.over_key is not None:
            return _frontier(result, path, look)
        count = len(result.needs)
        figure = new_figure(6.4, 1.2 + 2.8 * count, look.get("size"))
        panels = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
        unit, scale = _unit(result)
        for n, (ax, need) in enumerate(zip(panels, result.needs, strict=True)):
            _panel(ax, result.answers, n, need, scale)
            ylabel = look.get("ylabel")
            text = label(need.column).text if ylabel is None else ylabel
            ax.set(ylabel=wrapped(str(text), 0.6 * figure.get_figheight() / count))
        legend(panels[0])
        xlabel = look.get("xlabel")
        usual = f"{result.key}{f', {unit}' if unit else ''}"
        panels[-1].set(xlabel=usual if xlabel is None else xlabel)
        _heading(figure, result, look)
        write(figure, path)
    return figure


def _frontier(result: CapacityResult, path: str | Path | None, look: Look) -> "mpl.Figure":
    """Draw the answers against the second key: one line per discipline."""
    figure = new_figure(6.4, 4.0, look.get("size"))
    ax = figure.subplots()
    unit, scale = _unit(result)
    values = list(dict.fromkeys(one.over_value for one in result.answers))
    read = [quantity(one) for one in values]
    numbers = [one[1] for one in read if one is not None]
    is_numeric = len(numbers) == len(values) and len({one[0] for one in read if one}) == 1
    places = dict(zip(values, numbers if is_numeric else range(len(values)), strict=True))
    for k, name in enumerate(dict.fromkeys(one.qdisc for one in result.answers)):
        shown = [one for one in result.answers if one.qdisc == name and one.value is not None]
        heights = [_height(one.value) / scale for one in shown]
        ends = [
            [_height(one.value if end is None else end) / scale for end in (one.low, one.high)]
            for one in shown
        ]
        errors = [[h - low for h, (low, _) in zip(heights, ends, strict=True)],
                  [high - h for h, (_, high) in zip(heights, ends, strict=True)]]  # fmt: skip
        at = [places[one.over_value] for one in shown]
        ax.errorbar(at, heights, yerr=errors, label=name, capsize=2, elinewidth=0.8, **style(k))
    if is_numeric and max(numbers) > LOG_FROM * min(numbers) > 0:
        ax.set_xscale("log")
    ax.set_xticks(list(places.values()), [str(one) for one in places])
    ax.minorticks_off()
    ax.set_ylim(bottom=0)
    usual = {"xlabel": str(result.over_key), "ylabel": f"{result.key}{f', {unit}' if unit else ''}"}
    ax.set(**{which: look.get(which) or text for which, text in usual.items()})
    legend(ax)
    _heading(figure, result, look)
    write(figure, path)
    return figure


def _height(value: str | float | None) -> float:
    """Return a value of an answer in units of the grid."""
    return 0.0 if value is None else kind_of(value)[1]


def _panel(ax: "Axes", answers: Sequence[CapacityAnswer], n: int, need: Need, scale: float) -> None:
    """Draw need number `n` of all answers."""
    factor = label(need.column).scale
    heights, places = [need.limit * factor], []
    for k, answer in enumerate(answers):
        shown = [one for one in answer.probes if one.estimates[n].value is not None]
        estimates = [one.estimates[n].times(factor) for one in shown]
        at = [one.number / scale for one in shown]
        values = [one.value or 0.0 for one in estimates]
        below = [v - (v if one.low is None else one.low)
                 for v, one in zip(values, estimates, strict=True)]  # fmt: skip
        above = [(v if one.high is None else one.high) - v
                 for v, one in zip(values, estimates, strict=True)]  # fmt: skip
        look = style(k)
        name = f"{answer.label} {answer.text}".strip()
        ax.errorbar(at, values, yerr=[below, above], label=name, capsize=2, elinewidth=0.8, **look)
        if (there := answer.at) is not None:
            ax.axvline(there.number / scale, color=look["color"], lw=0.8, ls=":")
        heights += [value for value in values if value > 0]
        places += at
    ax.axhline(need.limit * factor, color="#444444", lw=1.2, ls="--", label=f"limit: {need}")
    if places and max(places) > LOG_FROM * min(places):
        _logarithmic(ax, "x")
    if max(heights) > LOG_FROM * min(heights):
        _logarithmic(ax, "y")
    else:
        ax.set_ylim(bottom=0)


def _logarithmic(ax: "Axes", which: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, with plain numbers at 1, 2 and 5 of each decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = ax.xaxis if which == "x" else ax.yaxis
    (ax.set_xscale if which == "x" else ax.set_yscale)("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _unit(result: CapacityResult) -> tuple[str, float]:
    """Return the unit of the horizontal axis, and its multiple of the unit of the grid."""
    probes = [one for answer in result.answers for one in answer.probes]
    middle = sorted(probes, key=lambda one: one.number)[len(probes) // 2]
    kind, number = kind_of(middle.value)
    if kind == "number":
        return "", float(UNITS[kind][0][1])
    unit, scale = next((one for one in UNITS[kind] if number >= one[1]), UNITS[kind][-1])
    return {"p": "packets"}.get(unit, unit), float(scale)


def _heading(figure: "mpl.Figure", result: CapacityResult, look: Any) -> None:
    """Write the question and the conditions above the figure, and the runs below it."""
    scenario = result.scenario
    find = {one.find for one in result.answers}
    direction = find.pop() if len(find) == 1 else "last"
    needs = " and ".join(map(str, result.needs))
    link = result.link
    changed = [f"links.{result.key.removeprefix('links.')}", f"links.{link}.qdisc"]
    title = [
        describe.title(scenario),
        f"{link}: {describe.link(scenario, link, changed)}",
        f"{direction} {result.key} with {needs}",
    ]
    runs = f"{counted(result.seeds, 'seed')} per value, {counted(result.runs, 'run')}"
    heading(figure, "\n".join(title), f"{describe.window(scenario)}; {runs}", look)
