"""Result of an evaluation: rows, lines of the scorecard, summary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn import _sojourn
from sojourn._util.html import html
from sojourn._util.lazy import Lazy
from sojourn._util.public import public
from sojourn._util.units import counted
from sojourn.evaluation.cases import CHOICES
from sojourn.evaluation.lines import Line
from sojourn.evaluation.setup import Table

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")

REFERENCE = "droptail"
"""Label of the discipline that all others are compared with."""


@public
@dataclass(frozen=True, repr=False)
class Evaluation:
    """Result of the suite.

    Attributes
    ----------
    rows : polars.DataFrame
        One row per run: `case`, `variant`, `rate`, `qdisc`, `target` (multiple of the default
        target), `seed`, and the measured columns.
    lines : list of Line
        Lines of the scorecard: a question and its answers for every discipline.
    qdiscs : dict
        Parameters of each discipline by its label, drop-tail first.
    rates : list of str
        Rates of the link.
    quick : bool
        True if the suite was shortened.
    made, wall_s : int, float
        Number of runs that were not in the store, and the time that they took.
    """

    rows: pl.DataFrame
    lines: list[Line]
    qdiscs: Mapping[str, Table]
    rates: Sequence[str]
    quick: bool
    made: int
    wall_s: float

    def __repr__(self) -> str:
        names = ", ".join(label for label in self.qdiscs if label != REFERENCE)
        runs, lines = counted(len(self.rows), "run"), counted(len(self.lines), "line")
        return f"Evaluation({names} at {', '.join(self.rates)}: {lines}, {runs})"

    def _repr_html_(self) -> str | None:
        """Return the scorecard as HTML for notebooks."""
        return html(self, "sojourn.evaluation.scorecard.notebook")

    def frame(self) -> "pl.DataFrame":
        """Return the scorecard as a frame: one row per question, rate, variant and discipline."""
        import polars as pl

        rows = [record for line in self.lines for record in line.records()]
        return pl.DataFrame(rows, infer_schema_length=None)

    def save(self, directory: str | Path) -> None:
        """Write scorecard.html, summary.json and lines.parquet into `directory`.

        `evaluate` writes the same files into `out`.

        Parameters
        ----------
        directory : str or Path
            The directory; it is created if needed. Files of an earlier evaluation are replaced.

        Raises
        ------
        InputError
            If the directory cannot be written, or holds other files.
        """
        # By name: scorecards are defined in terms of Evaluation.
        import_module("sojourn.evaluation.scorecard").write(self, Path(directory))

    def summary(self) -> dict[str, Any]:
        """Return the scorecard as data for JSON, with the choices that RFC 7928 leaves open."""
        return {
            "sojourn": _sojourn.version(),
            "evaluation": {
                "suite": "RFC 7928",
                "engine": _sojourn.engine(),
                "quick": self.quick,
                "rates": list(self.rates),
                "qdiscs": dict(self.qdiscs),
                "reference": REFERENCE,
                "runs": len(self.rows),
                "choices": list(CHOICES),
                "lines": [line.tree() for line in self.lines],
            },
        }
