"""Sparklines: small line graphs as inline SVG, in the colour of the text around them."""

import numpy as np

from sojourn._util.html import escape
from sojourn.result.result import Array

WIDTH, HEIGHT = 120, 22
"""Size in CSS pixels."""

POINTS = 60
"""Largest number of points; more samples are averaged."""


def sparkline(values: Array, label: str, most: float | None = None) -> str:
    """Return values over time as SVG; empty without a finite value.

    Parameters
    ----------
    values : array
        The samples; those that are not finite count as 0.
    label : str
        Text for readers who do not see the graph, and for the pointer.
    most : float, optional
        Value at the upper edge. The default is the largest one; the lower edge is 0.
    """
    known = np.nan_to_num(np.asarray(values, dtype=float), posinf=0.0, neginf=0.0)
    if len(known) < 2 or not np.isfinite(values).any():
        return ""
    number = min(POINTS, len(known))
    means = np.array([part.mean() for part in np.array_split(known, number)])
    top = float(means.max()) if most is None else most
    heights = means / top if top > 0 else means
    x = np.linspace(1, WIDTH - 1, number)
    y = HEIGHT - 1 - (HEIGHT - 2) * np.clip(heights, 0, 1)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    text = escape(label, quote=True)
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{text}" style="vertical-align:middle"><title>{text}</title>'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.2"/></svg>'
    )
