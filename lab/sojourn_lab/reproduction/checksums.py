"""Checksums of the runs of a paper: one per run, of everything that the run measured.

`checksums.txt` has a line per point of an experiment: its name, its labels as JSON, and a checksum
for each seed from 1 on, separated by tabs. A checksum is the start of the SHA-256 of the measured
values, by name, each number with 12 significant digits: the last four digits of a double may differ
between processors, because numerical libraries choose instructions by processor.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sojourn._sojourn import InputError
from sojourn._util.reading import bytes_of_file
from sojourn.sweeps.runner import Labels, Row, Run

FILE = "checksums.txt"

DIGITS = 12
"""Significant digits of a number."""

LENGTH = 16
"""Hexadecimal digits of a checksum."""


class Place(NamedTuple):
    """One run: the name of its experiment, its labels as JSON, and its seed."""

    experiment: str
    labels: str
    seed: int

    def __str__(self) -> str:
        """Return the run as a text for people."""
        labels = json.loads(self.labels).items()
        words = [self.experiment, *(f"{name} = {value}" for name, value in labels)]
        return f"{', '.join(words)}, seed {self.seed}"


def place(experiment: str, labels: Labels, seed: int) -> Place:
    """Return the place of a run."""
    return Place(experiment, json.dumps(dict(labels), ensure_ascii=False), seed)


def places(runs: Mapping[str, Sequence[Run]]) -> dict[Place, Run]:
    """Return the runs of experiments by their places."""
    return {
        place(name, run.labels, n): run
        for name, group in runs.items()
        for n, run in _numbered(group)
    }


def _numbered(group: Sequence[Run]) -> Iterator[tuple[int, Run]]:
    """Yield the runs of an experiment with their seeds."""
    for run in group:
        tree: Any = run.scenario
        yield int(tree["seed"]), run


def checksum(row: Row) -> str:
    """Return the checksum of the measured values of a row."""
    values = {name: _text(row.get(name)) for name in json.loads(row["measured"])}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:LENGTH]


def _text(value: Any) -> str:
    """Return a value as text: the same before and after it was in a store."""
    if isinstance(value, bool | int | float):
        return f"{float(value):.{DIGITS}g}" if math.isfinite(value) else ""
    return "" if value is None else str(value)


def as_text(runs: Mapping[str, Sequence[Run]], rows: Sequence[Row]) -> str:
    """Return the contents of the file; `rows` are the rows of the runs, in order."""
    points: dict[tuple[str, str], list[str]] = {}
    for one, row in zip(places(runs), rows, strict=True):
        points.setdefault(one[:2], []).append(checksum(row))
    lines = ("\t".join((*point, " ".join(sums))) for point, sums in points.items())
    return "\n".join(lines) + "\n"


def load(path: Path) -> dict[Place, str]:
    """Return the checksums of a file. Raises InputError if it is no such file."""
    try:
        return parsed(bytes_of_file(path).decode())
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def parsed(text: str) -> dict[Place, str]:
    """Return the checksums of the contents of a file. Raises ValueError."""
    sums: dict[Place, str] = {}
    for n, line in enumerate(text.splitlines(), 1):
        parts = line.split("\t")
        if len(parts) != 3:
            raise ValueError(f"line {n} is not an experiment, labels and checksums")
        for seed, one in enumerate(parts[2].split(), 1):
            sums[Place(parts[0], parts[1], seed)] = one
    return sums
