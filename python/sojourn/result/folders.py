"""Result folders: detect their contents, and decide if a command may write into one.

A marker file identifies a folder: `summary.json` (run), `comparison.json` (comparison),
`_sweep-*.json` (sweep), `claims.json` (report of a paper); `summary.json` with a table
`evaluation` (evaluation). The same scenario may be written again.
Anything else requires `--force`, which replaces only files with names that sojourn writes.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sojourn._sojourn import InputError
from sojourn._util.files import check_directory, check_file
from sojourn._util.inputs import printable, why
from sojourn._util.parquet import read_faults
from sojourn._util.reading import read

Kind: TypeAlias = Literal["run", "comparison", "sweep", "paper", "evaluation"]

KIND_WORDS: dict[Kind, str] = {
    "run": "a run",
    "comparison": "a comparison",
    "sweep": "the runs of a sweep",
    "paper": "the report of a paper",
    "evaluation": "an evaluation",
}
"""Description of each kind, for messages."""

TABLES = (
    "flows", "groups", "links", "series", "group_series", "packet_log", "fct", "queries", "delays",
)  # fmt: skip
"""Tables of a run."""

FILES = ("summary.json", *(f"{table}.parquet" for table in TABLES))
"""Names of the files that `Result.save` writes."""

PART = re.compile(r"[0-9a-f]{32}\.parquet")
"""File name of a part of a store: the hash of its contents."""

SWEEP = re.compile(rf"{PART.pattern}|_sweep-.*\.json|_damaged|_failed")
"""Names of the files of a sweep, and of the runs of a paper."""

RECORDED = ("name", "sample", "sample_flows", "packet_log")
"""Keys of a scenario that affect only which data are recorded."""

DIFFERENCE_MAX = 300
"""Longest description of a difference in a message, in characters."""

SHOWN = 3
"""Largest number of file names in a message."""


def kind_of(directory: str | Path) -> Kind | None:
    """Return the kind of results in `directory`; None if sojourn did not write them."""
    directory = Path(directory)
    if {"sojourn", "link", "scenario", "variants"} <= set(_read(directory / "comparison.json")):
        return "comparison"
    if {"sojourn", "scenario", "links"} <= set(_read(directory / "summary.json")):
        return "run"
    if {"sojourn", "evaluation"} <= set(_read(directory / "summary.json")):
        return "evaluation"
    if {"sojourn", "claims"} <= set(_read(directory / "claims.json")):
        return "paper"
    if any(map(SWEEP.fullmatch, _names(directory))):
        return "sweep"
    if (directory / "runs").is_dir() and all(map(SWEEP.fullmatch, _visible(directory / "runs"))):
        return "paper"  # interrupted before its report was written
    return None


def check_results(directory: Path) -> None:
    """Raise InputError if there is no such directory."""
    if not directory.exists():
        raise InputError(f"{directory}: no such directory")
    if not directory.is_dir():
        raise InputError(f"{directory}: is a file, not a folder of results")


def claim(directory: Path, kind: Kind, identity: Mapping[str, Any], *, force: bool) -> bool:
    """Check that results may be written into a directory. Creates nothing.

    Parameters
    ----------
    directory : Path
        The directory, which need not exist.
    kind : Kind
        Kind of the results.
    identity : mapping
        Identity of the results, see `identity_of`.
    force : bool
        True to allow other contents.

    Returns
    -------
    bool
        True if the directory holds other results of the same kind, which the caller replaces.
        This requires `force`.

    Raises
    ------
    InputError
        If the directory holds anything else and `force` is False, or cannot be written.
    """
    check_directory(directory)
    names = _visible(directory)
    present = kind_of(directory)
    refused = ""
    if present is None and names:
        refused = f"holds {_listed(names)}, not written by sojourn"
    elif present == "run" and (foreign := [n for n in names if _is_foreign(directory / n)]):
        refused = f"holds {_listed(foreign)}, not written by sojourn"
    elif present not in (kind, None):
        refused = f"holds {KIND_WORDS[present]}"
    if refused:
        if force:
            return False
        advice = "choose another folder, or add --force to write there anyway"
        raise InputError(f"{directory}: {refused}; {advice}")
    try:
        known = [] if present is None else identities(directory, kind)
    except (KeyError, TypeError, ValueError, AttributeError):  # a marker that was edited
        known = [{}]
    differs = [difference(there, identity) for there in known]
    if not differs or None in differs:
        return False
    if not force:
        advice = "choose another folder, or add --force to replace it"
        raise InputError(
            f"{directory}: holds {KIND_WORDS[kind]} of another scenario "
            f"({printable(str(differs[0]))[:DIFFERENCE_MAX]}); {advice}"
        )
    return True


def claim_run(
    directory: Path, scenario: Mapping[str, Any], engine: str = "sim", *, force: bool
) -> bool:
    """Check that a run of the canonical `scenario` may be written into `directory`."""
    return claim(directory, "run", identity_of(scenario, engine=engine), force=force)


def claim_table(path: Path, columns: tuple[str, ...], *, force: bool) -> None:
    """Check that a CSV file with `columns` may be written.

    Raises
    ------
    InputError
        If the path exists and is not a table with these columns, unless `force` is True.
    """
    check_file(path)
    if force or not path.exists() or path.stat().st_size == 0:
        return
    from sojourn._util.csv_table import read_table

    try:
        read_table(path, columns)
    except InputError:
        advice = "choose another name, or add --force to replace it"
        raise InputError(f"{path}: exists, not written by sojourn; {advice}") from None


def identity_of(scenario: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the identity of a run: its canonical scenario without the keys in `RECORDED`."""
    return {key: value for key, value in scenario.items() if key not in RECORDED} | more


def identity_of_comparison(scenario: Mapping[str, Any], link: str) -> dict[str, Any]:
    """Return the identity of a comparison: its scenario without seed and compared discipline."""
    links = dict(scenario["links"])
    links[link] = {key: value for key, value in links[link].items() if key != "qdisc"}
    tree = identity_of(scenario, compared=link) | {"links": links}
    return {key: value for key, value in tree.items() if key != "seed"}


def difference(there: Any, here: Any, path: str = "") -> str | None:
    """Describe the first difference between two trees; None if they are equal."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        for key in sorted(dict.fromkeys([*here, *there]), key=lambda key: key != "name"):
            where = f"{path}.{key}" if path else str(key)
            if key not in there or key not in here:
                return f"{where} is only {'here' if key in here else 'there'}"
            if text := difference(there[key], here[key], where):
                return text
        return None
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        for n, (old, new) in enumerate(zip(there, here, strict=True)):
            name = new.get("name", n) if isinstance(new, Mapping) else n
            if text := difference(old, new, f"{path}.{name}"):
                return text
        return None
    return None if there == here else f"{path} is {_short(there)} there, {_short(here)} here"


def is_own(path: Path) -> bool:
    """Return True if `path` is a Parquet file written by `Result.save`."""
    import polars as pl

    try:
        return "sojourn.schema" in pl.read_parquet_metadata(path)
    except read_faults():
        return False


def _is_foreign(path: Path) -> bool:
    """Return True if `path` has the name of a table of a run, but is not one."""
    return path.name in FILES and path.suffix == ".parquet" and not is_own(path)


def identities(directory: Path, kind: Kind) -> list[dict[str, Any]]:
    """Return the identities of the results of `kind` in `directory`."""
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
        case "evaluation":
            return [{}]
        case "sweep":
            notes = map(_read, sorted(directory.glob("_sweep-*.json")))
            return [identity_of(note["scenario"]) for note in notes if "scenario" in note]


def _names(directory: Path) -> list[str]:
    """Return the sorted names in `directory`; an empty list if it does not exist."""
    try:
        return sorted(path.name for path in directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputError(f"{directory}: {why(error)}") from None


def _visible(directory: Path) -> list[str]:
    """Return the names in `directory` that do not begin with a dot."""
    return [name for name in _names(directory) if not name.startswith(".")]


def _read(path: Path) -> dict[str, Any]:
    """Read a JSON object; return an empty one if the file is not a JSON object."""
    try:
        tree = json.loads(read(path))
    except InputError:  # too large
        raise
    except (OSError, ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
