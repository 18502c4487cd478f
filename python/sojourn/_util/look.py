"""Options of figures."""

from pathlib import Path
from typing import TypedDict


class Look(TypedDict, total=False):
    """Options of a figure. A missing option, or None, selects the default.

    Attributes
    ----------
    title : str
        Replaces the heading with the conditions; "" removes it.
    xlabel, ylabel : str
        Replace the labels of the axes.
    size : str or (float, float)
        Width and height, in inches or as text like "6.5x4in" (in, cm, mm or pt).
    style : str or Path
        Matplotlib style sheet: its name or file.
    """

    title: str | None
    xlabel: str | None
    ylabel: str | None
    size: str | tuple[float, float] | None
    style: str | Path | None
