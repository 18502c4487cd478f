"""Recorded live runs: one JSON object per line, gzipped where the name ends in `.gz`."""

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO, cast

from sojourn_lab.validation.random.draw import Scenario
from sojourn_lab.validation.random.measure import Numbers

Record = dict[str, Any]

RECORDED = Path(__file__).parent / "recorded.jsonl.gz"
"""Recordings of the repository."""

KERNEL = "6.18.44"
"""Linux of these recordings."""

KEPT = ("scenario", "seed", "numbers")
"""Keys of a record that the repository keeps; all of its runs were punctual."""

DIGITS = 5


def _open(path: Path, mode: str) -> TextIO:
    if path.suffix == ".gz":
        return cast("TextIO", gzip.open(path, f"{mode}t"))
    return cast("TextIO", path.open(mode))


def read(path: Path) -> Iterator[Record]:
    """Iterate over the punctual runs of a file."""
    with _open(path, "r") as file:
        for line in file:
            record = json.loads(line)
            if record.get("punctual", "numbers" in record):
                yield record


def append(path: Path, records: Iterable[Record]) -> Iterator[Record]:
    """Append records to a file, and pass them on."""
    with _open(path, "a") as file:
        for record in records:
            file.write(json.dumps(record) + "\n")
            file.flush()
            yield record


def runs(records: Iterable[Record]) -> list[tuple[Scenario, list[Numbers]]]:
    """Return the live runs of each scenario."""
    result: dict[str, tuple[Scenario, list[Numbers]]] = {}
    for record in records:
        scenario = record["scenario"]
        result.setdefault(scenario["name"], (scenario, []))[1].append(record["numbers"])
    return list(result.values())


def compact(records: Iterable[Record]) -> Iterator[Record]:
    """Iterate over records with fewer keys and digits."""
    for record in records:
        short = {key: record[key] for key in KEPT}
        numbers = record["numbers"].items()
        short["numbers"] = {k: v and float(f"{v:.{DIGITS}g}") for k, v in numbers}
        yield short


def keep(new: Iterable[Record], path: Path = RECORDED) -> None:
    """Replace recordings of the repository."""
    # Without a time in its header, the file depends on the recordings alone.
    text = "".join(json.dumps(record) + "\n" for record in compact(new))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
