"""Notes in a store: what the runs of a sweep are about, one file per sweep."""

import hashlib
import json
from pathlib import Path
from typing import Any

from sojourn import _sojourn
from sojourn._util.files import naming, write_text


def write_note(directory: Path, **about: Any) -> None:
    """Write a note with the version, the engine, and what a sweep is `about`.

    The keys are `scenario`, `axes` (values by name), `varied` (paths), `seeds` (first and last),
    `until`, and `measured` (identity of the measure).
    """
    note = {"sojourn": _sojourn.version(), "engine": _sojourn.engine(), **about}
    text = json.dumps(note, indent=2) + "\n"
    with naming(directory):
        directory.mkdir(parents=True, exist_ok=True)
    name = f"_sweep-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
    write_text(directory / name, text)


def copy_notes(source: Path, directory: Path) -> None:
    """Copy the notes of a store to another one. Their names are hashes of their contents."""
    for path in source.glob("_sweep-*.json"):
        if not (directory / path.name).exists():
            write_text(directory / path.name, path.read_text(encoding="utf-8"))
