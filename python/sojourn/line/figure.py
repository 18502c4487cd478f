"""Figures of a line: measured and simulated delay under load, and delay before and after."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from sojourn._sojourn import InputError
from sojourn._util.lazy import Lazy
from sojourn._util.units import duration, rate
from sojourn.line.derive import MeasuredLine, Quantity
from sojourn.line.model import simulated_s
from sojourn.plotting.run import colour, legend, new_figure, styled, write
from sojourn.plotting.style import Look
from sojourn.result.result import Array

if TYPE_CHECKING:
    import matplotlib.figure as mpl
else:
    mpl = Lazy("matplotlib.figure")

Panels = Mapping[str, Mapping[str, Array]]
"""Series by label, by the load of a panel."""


def draw(line: MeasuredLine, path: str | Path | None = None, **look: Unpack[Look]) -> "mpl.Figure":
    """Draw the distributions of measured and simulated round-trip times under load.

    Parameters
    ----------
    line : MeasuredLine
        A line with round-trip times under load.
    path : str or Path, optional
        File to write, .png, .pdf or .svg.
    **look : optional
        Options `title`, `size` and `style`, see `sojourn.plotting.style.Look`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, with one panel for each load. It is not registered with pyplot.

    Raises
    ------
    InputError
        If nothing was measured under load, or the file cannot be written.
    """
    panels = {
        kind: {"measured": series, "simulated": simulated_s(line, kind)}
        for kind, series in line.loaded_s.items()
        if len(series)
    }
    return _draw(panels, summary(line), path, look)


def draw_change(
    before: MeasuredLine,
    after: MeasuredLine,
    path: str | Path | None = None,
    **look: Unpack[Look],
) -> "mpl.Figure":
    """Draw the distributions of round-trip times under load before and after a change."""
    panels = {
        kind: {"before": series, "after": after.loaded_s[kind]}
        for kind, series in before.loaded_s.items()
        if len(series) and len(after.loaded_s[kind])
    }
    text = f"before: {summary(before)}\nafter: {summary(after)}"
    return _draw(panels, text, path, look)


def _draw(panels: Panels, text: str, path: str | Path | None, look: Look) -> "mpl.Figure":
    if not panels:
        raise InputError("no round-trip time was measured under load: there is nothing to draw")
    with styled(look.get("style")):
        figure = new_figure(3.4 * len(panels) + 1.6, 3.6, look.get("size"))
        axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for ax, (kind, series) in zip(axes, panels.items(), strict=True):
            for n, (label, values) in enumerate(series.items()):
                ax.ecdf(values * 1e3, label=label, color=colour(n), ls="-" if n == 0 else "--")
            title = "load in both directions" if kind == "both" else f"load {kind}"
            ax.set(title=title, xlabel="round-trip time, ms", xlim=(0, None))
        axes[0].set_ylabel("share of samples")
        legend(axes[-1])
        above = look.get("title")
        if above != "":
            figure.suptitle(text if above is None else above, x=0.01, ha="left", fontsize=10)
        write(figure, path)
    return figure


def summary(line: MeasuredLine) -> str:
    """Return the rates, the round-trip time and the grade in a sentence."""

    def text(name: str, one: Quantity | None, write_one: Any) -> str:
        return "" if one is None else f"{name} {write_one(one.value)}"

    parts = [text("down", line.down_bps, rate), text("up", line.up_bps, rate)]
    parts.append(text("idle round trip", line.rtt_s, duration))
    grade = line.grade()
    parts.append("" if grade is None else f"grade {grade} under load")
    return ", ".join(filter(None, parts))
