"""Figures that notebooks show, without pyplot."""

import io

from matplotlib.figure import Figure


class InlineFigure(Figure):
    """Figure that shows itself in a notebook as PNG, on a white page."""

    def _repr_png_(self) -> bytes:
        """Return the figure as PNG."""
        file = io.BytesIO()
        self.savefig(file, format="png", facecolor="white")
        return file.getvalue()
