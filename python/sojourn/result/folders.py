"""Folders of results: what they hold, and whether a command may write into one.

A folder is known by its marker: `summary.json` of a run, `comparison.json`, the `_sweep-*.json` of
a sweep, `claims.json` of a paper's report. It may be written again by the same scenario; anything
else takes `--force`, which replaces files of the names that sojourn writes and no others.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sojourn._sojourn import InputError
from sojourn._util.files import check_directory, check_file
from sojourn._util.inputs import why

Kind: TypeAlias = Literal["run", "comparison", "sweep", "paper"]

TOLD: dict[Kind, str] = {
    "run": "a run",
    "comparison": "a comparison",
    "sweep": "the runs of a sweep",
    "paper": "the report of a paper",
}
"""The kinds in words."""

TABLES = ("flows", "links", "series", "groups", "tape", "fct", "queries")
"""The tables of a run; series, groups, tape and queries are written only if the run has them."""

FILES = ("summary.json", *(f"{table}.parquet" for table in TABLES))
"""The names that `Result.save` writes."""

PART = re.compile(r"[0-9a-f]{32}\.parquet")
"""The name of a part of a store: the hash of what is in it."""

SWEEP = re.compile(rf"{PART.pattern}|_sweep-.*\.json|_damaged")
"""The names that a sweep writes, and those of a paper's runs."""

RECORDED = ("name", "sample", "sample_flows", "tape")
"""The keys of a scenario that change what is recorded of it, and nothing that happens."""

SHOWN = 3
"""How many names of files a message lists."""


def kind_of(directory: str | Path) -> Kind | None:
    """Return what sojourn wrote into `directory`; None if it is anything else."""
    directory = Path(directory)
    if {"sojourn", "link", "scenario", "variants"} <= set(_read(directory / "comparison.json")):
        return "comparison"
    if {"sojourn", "scenario", "links"} <= set(_read(directory / "summary.json")):
        return "run"
    if {"sojourn", "claims"} <= set(_read(directory / "claims.json")):
        return "paper"
    if any(map(SWEEP.fullmatch, _names(directory))):
        return "sweep"
    if (directory / "runs").is_dir() and all(map(SWEEP.fullmatch, _visible(directory / "runs"))):
        return "paper"  # interrupted before its report was written
    return None


def claim(directory: Path, kind: Kind, identity: Mapping[str, Any], *, force: bool) -> bool:
    """Check that results of `kind` may be written into `directory`, and make nothing.

    `identity` says what they are of (see `identity_of`). Returns True if `directory` holds other
    results of that kind, which are to be replaced; that takes `force`. Raises InputError if it
    holds anything else, or cannot be written.
    """
    check_directory(directory)
    names = _visible(directory)
    found = kind_of(directory)
    refused = ""
    if found is None and names:
        refused = f"holds {_listed(names)}, not written by sojourn"
    elif found == "run" and (foreign := [n for n in names if _is_foreign(directory / n)]):
        refused = f"holds {_listed(foreign)}, not written by sojourn"
    elif found not in (kind, None):
        refused = f"holds {TOLD[found]}"
    if refused:
        if force:
            return False
        told = "choose another folder, or add --force to write there all the same"
        raise InputError(f"{directory}: {refused}; {told}")
    try:
        known = [] if found is None else _identities(directory, kind)
    except (KeyError, TypeError, AttributeError):  # a marker that somebody changed
        known = [{}]
    differs = [difference(there, identity) for there in known]
    if not differs or None in differs:
        return False
    if not force:
        told = "choose another folder, or replace it by --force"
        raise InputError(
            f"{directory}: holds {TOLD[kind]} of another scenario ({differs[0]}); {told}"
        )
    return True


def claim_run(
    directory: Path, scenario: Mapping[str, Any], engine: str = "sim", *, force: bool
) -> bool:
    """Check that a run of the canonical `scenario` may be written into `directory`."""
    return claim(directory, "run", identity_of(scenario, engine=engine), force=force)


def claim_table(path: Path, columns: tuple[str, ...], *, force: bool) -> None:
    """Check that a CSV file with `columns` may be written, over an earlier one of the same kind.

    Raises InputError if another file is there, unless `force` says that it is to be replaced.
    """
    check_file(path)
    if force or not path.exists() or path.stat().st_size == 0:
        return
    from sojourn._util.csv_table import read_table

    try:
        read_table(path, columns)
    except InputError:
        told = "choose another name, or replace it by --force"
        raise InputError(f"{path}: is there, not written by sojourn; {told}") from None


def identity_of(scenario: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return what a canonical scenario is known by: all of it but what is recorded."""
    return {key: value for key, value in scenario.items() if key not in RECORDED} | more


def identity_of_comparison(scenario: Mapping[str, Any], link: str) -> dict[str, Any]:
    """Return what a comparison is known by: its scenario without what differs among its runs."""
    links = dict(scenario["links"])
    links[link] = {key: value for key, value in links[link].items() if key != "qdisc"}
    tree = identity_of(scenario, compared=link) | {"links": links}
    return {key: value for key, value in tree.items() if key != "seed"}


def difference(there: Any, here: Any, path: str = "") -> str | None:
    """Return the first difference between two trees in words; None if they are equal."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        for key in sorted(dict.fromkeys([*here, *there]), key=lambda key: key != "name"):
            where = f"{path}.{key}" if path else str(key)
            if key not in there or key not in here:
                return f"{where} is only {'here' if key in here else 'there'}"
            if told := difference(there[key], here[key], where):
                return told
        return None
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for n, (old, new) in enumerate(zip(there, here, strict=True)):
            name = new.get("name", n) if isinstance(new, Mapping) else n
            if told := difference(old, new, f"{path}.{name}"):
                return told
        return None
    return None if there == here else f"{path} is {_short(there)} there, {_short(here)} here"


def is_own(path: Path) -> bool:
    """Return True if `path` is a Parquet file that a Result wrote."""
    import polars as pl

    try:
        return "sojourn.schema" in pl.read_parquet_metadata(path)
    except (OSError, pl.exceptions.PolarsError):
        return False


def _is_foreign(path: Path) -> bool:
    """Return True if `path` has the name of a table of a run, and is none."""
    return path.name in FILES and path.suffix == ".parquet" and not is_own(path)


def _identities(directory: Path, kind: Kind) -> list[dict[str, Any]]:
    """Return what the results of `kind` in `directory` are of."""
    match kind:
        case "run":
            tree = _read(directory / "summary.json")
            engine = "live" if "live" in tree else "sim"
            return [identity_of(tree["scenario"], engine=engine)]
        case "comparison":
            tree = _read(directory / "comparison.json")
            return [identity_of_comparison(tree["scenario"], tree.get("link", ""))]
        case "paper":
            return [{"paper": _read(directory / "claims.json").get("paper")}]
        case "sweep":
            notes = map(_read, sorted(directory.glob("_sweep-*.json")))
            return [identity_of(note["scenario"]) for note in notes if "scenario" in note]


def _names(directory: Path) -> list[str]:
    """Return the names in `directory`, sorted; none if there is no such directory."""
    try:
        return sorted(path.name for path in directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputError(f"{directory}: {why(error)}") from None


def _visible(directory: Path) -> list[str]:
    """Return the names in `directory` without those that begin with a dot."""
    return [name for name in _names(directory) if not name.startswith(".")]


def _read(path: Path) -> dict[str, Any]:
    """Read a JSON file; an empty table if it is none."""
    try:
        tree = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
