"""Recorded results of ns-2: files, their metrics, and the cases to compare."""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

import sojourn as sj
from sojourn_lab import ROOT
from sojourn_lab.validation.statistics import Array
from sojourn_lab.validation.systems import Table

ROWS = ROOT / "lab/vectors/scenarios"
Row = dict[str, str]


@dataclass(frozen=True)
class Metric:
    """A metric to compare: a column of ns-2's results, and a function of a result of sojourn.

    `share` is true for a share of one, whose differences are in percentage points.
    """

    column: str
    label: str
    form: str
    ours: Callable[[sj.Result], float]
    share: bool = False

    def tolerance(self, theirs: float) -> float:
        """Return the largest difference from `theirs` without practical effect."""
        return 0.003 if self.share else 0.03 * abs(theirs)


@dataclass(frozen=True)
class File:
    """A file of results of ns-2, and the scenario of each of its rows.

    `rtts` is "one set" if all runs of ns-2 share one set of propagation times, and "the same" if
    each has the set of our run with its seed. `changed` is the deviation from the documented
    set-up.
    """

    name: str
    about: str
    keys: tuple[str, ...]
    scenario: Callable[[int, Row], Table]
    metrics: tuple[Metric, ...]
    seeds: int = 10
    used: Callable[[Row], bool] = lambda row: True
    left_out: str = ""
    rtts: Literal["any", "one set", "the same"] = "any"
    changed: str = ""

    @property
    def title(self) -> str:
        """Title on the page."""
        return f"`{self.name}`" + (f", {self.changed}" if self.changed else "")


@dataclass(frozen=True)
class Case:
    """Rows of ns-2 that differ only in their seed."""

    file: File
    key: Row
    rows: tuple[Row, ...]

    @property
    def name(self) -> str:
        """Name in tables."""
        return " ".join(v if k == "q" else f"{k} {v}" for k, v in self.key.items())

    @property
    def seeds(self) -> list[int]:
        """Seeds of the runs of ns-2."""
        return [int(row["seed"]) for row in self.rows]

    def theirs(self, metric: Metric) -> Array:
        """Return the results of ns-2, one per run."""
        return np.array([float(row[metric.column]) for row in self.rows])


def read(file: File) -> list[Row]:
    """Return all rows of a file without duplicates."""
    with (ROWS / f"{file.name}.csv").open(newline="") as text:
        rows = list(csv.DictReader(text))
    seen: list[Row] = []
    # drr_dumbbell.csv contains runs that belong to two figures twice.
    for row in ({k: v for k, v in r.items() if k != "scen"} for r in rows):
        if row not in seen:
            seen.append(row)
    return seen


def cases(file: File) -> Iterator[Case]:
    """Yield the cases of a file that are compared."""
    by_key: dict[tuple[str, ...], list[Row]] = {}
    for row in read(file):
        if file.used(row):
            by_key.setdefault(tuple(row[k] for k in file.keys), []).append(row)
    for values, rows in by_key.items():
        yield Case(file, dict(zip(file.keys, values, strict=True)), tuple(rows))
