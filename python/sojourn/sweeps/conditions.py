"""Conditions of stored runs: what the notes in a folder say about its scenario and axes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from sojourn._sojourn import InputError
from sojourn._util.typed_json import checked, read_json
from sojourn.custom import trust as trusting
from sojourn.result.folders import kind_of
from sojourn.result.stored import canonical_of, read_summary
from sojourn.scenario import describe
from sojourn.sweeps.comparison_index import read_index


def conditions(directory: Path) -> Mapping[str, Any] | None:
    """Return the scenario and axes of the runs in a folder; None if several sweeps share it.

    The result has the form of the note that a sweep writes (`_sweep-*.json`).
    """
    notes = _notes(directory)
    same = [{key: note.get(key) for key in ("scenario", "axes", "varied")} for note in notes]
    return notes[0] if notes and all(one == same[0] for one in same) else None


def given_labels(directory: Path) -> dict[str, list[Any]]:
    """Return the labels of the axes in the order in which the sweeps of a folder gave them."""
    labels: dict[str, dict[Any, None]] = {}
    for note in _notes(directory):
        for axis, values in note["axes"].items():
            labels.setdefault(axis, {}).update(dict.fromkeys(values))
    return {axis: list(values) for axis, values in labels.items()}


class _Note(msgspec.Struct):
    """Note of a sweep: its scenario, the values of its axes, and the paths that they change."""

    scenario: dict[str, Any]
    axes: dict[str, list[bool | int | float | str | None]]
    varied: list[str] | None = None


def _notes(directory: Path) -> list[dict[str, Any]]:
    """Return scenario, axes and varied paths of the sweeps in a folder, or of another result.

    `varied` has the paths of the scenario that an axis changes, see `describe.varied`. Notes that
    are damaged, or from another program, are left out.
    """
    match kind_of(directory):
        case "run":
            summary = read_summary(directory / "summary.json")
            return [{"scenario": summary["scenario"], "axes": {}, "varied": []}]
        case "comparison":
            index = read_index(directory)
            scenario, link, variants = (index[key] for key in ("scenario", "link", "variants"))
            base = scenario["links"][link]
            each = [{"links": {link: {**base, "qdisc": v["qdisc"]}}} for v in variants.values()]
            varied = describe.varied({"links": {link: base}}, each)
            return [{"scenario": scenario, "axes": {"qdisc": list(variants)}, "varied": varied}]
    trees = []
    for path in sorted(directory.glob("_sweep-*.json")):
        try:
            note = checked(read_json(path), _Note)
            trusting.read(note.scenario, path)
            tree = {"scenario": canonical_of(note.scenario), "axes": note.axes}
        except InputError:
            continue
        trees.append(tree if note.varied is None else {**tree, "varied": note.varied})
    return trees
