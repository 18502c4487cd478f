"""Index of a saved comparison: its disciplines, and the folders of their runs."""

from pathlib import Path
from typing import Annotated

import msgspec

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief, shown
from sojourn._util.typed_json import checked, read_json
from sojourn.custom import trust as trusting
from sojourn.result import folders
from sojourn.result.stored import canonical_of
from sojourn.scenario.draft import Table

INDEX = "comparison.json"
"""Name of the index file, which maps labels and seeds to folders."""


class _Variant(msgspec.Struct):
    """Entry of the index: the subfolders of a discipline are FOLDER-SEED."""

    qdisc: Table
    folder: Annotated[str, msgspec.Meta(pattern=r"^[\w+=-][\w.+=-]*\Z")]
    seeds: list[Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]]


class _Index(msgspec.Struct):
    """Index of a comparison."""

    sojourn: str
    link: str
    scenario: Table
    variants: dict[str, Table]


def folders_of(variant: Table) -> list[str]:
    """Return the names of the subfolders of an entry of the index, one per seed."""
    return [f"{variant['folder']}-{seed}" for seed in variant["seeds"]]


def read_index(directory: Path) -> Table:
    """Read the index of a comparison; empty without one. Raises InputError if it is damaged."""
    if folders.kind_of(directory) != "comparison":
        return {}
    path = directory / INDEX
    index: Table = read_json(path)
    trusting.read(index, path)
    try:
        whole = checked(index, _Index)
        for label, one in whole.variants.items():
            checked(one, _Variant, f"variants.{brief(label)}")
        index["scenario"] = canonical_of(whole.scenario)
        for name, link in index["scenario"]["links"].items():
            if "qdisc" not in whole.scenario["links"][name]:
                del link["qdisc"]  # it varies with the compared one
        if whole.link not in index["scenario"]["links"]:
            raise InputError(f"link: {shown(whole.link)} is not a link of the scenario")
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return index
