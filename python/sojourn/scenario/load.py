"""Scenarios: read files, and convert scenarios to the JSON that Rust validates.

Python rejects only values that JSON cannot represent (NaN, dates). Rust validates everything else,
so that there is a single set of rules; its errors begin with the path of the value.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from sojourn._sojourn import InputError, ParsedScenario
from sojourn._util.inputs import brief, printable
from sojourn._util.plain import plain
from sojourn._util.reading import bytes_of_file, text_of
from sojourn.custom import trust as trusting
from sojourn.scenario import named, packet_trace
from sojourn.scenario.keys import Change, Flow, Link, Scenario
from sojourn.scenario.parsing import check_depth, parse_json, parse_toml

__all__ = [
    "Change",
    "Described",
    "Flow",
    "Link",
    "Scenario",
    "Table",
    "canonical",
    "load_tree",
    "parse",
    "plain",
    "to_json",
    "tree_of",
]

Table: TypeAlias = dict[str, Any]

Described: TypeAlias = Scenario | Mapping[str, Any] | str | Path | ParsedScenario
"""A scenario as a Scenario, a mapping, the path of a file or a name, or already parsed."""


def load_tree(path: str | Path, *, trust: bool = False) -> Table:
    """Read a scenario file, or a named scenario, as a dictionary. Its values are not validated.

    Traces of links and packets are found relative to the file.

    Parameters
    ----------
    path : str or Path
        The file, .toml or .json, or a name like "rrul" (`sojourn list scenarios`).
    trust : bool, optional
        True if Python code that the file names may run.

    Returns
    -------
    dict
        The scenario as it is written. `simulate`, `compare` and `sweep` accept it.

    Raises
    ------
    InputError
        If the file cannot be read or parsed. The message names the file, and the line if known.
    """
    path = Path(path)
    if named.is_name(path) and not path.exists():
        return named.tree(str(path))
    raw = bytes_of_file(path)
    if path.suffix.lower() not in (".toml", ".json"):
        raise InputError(f"{path}: the name of a scenario file must end in .toml or .json")
    text = text_of(path, raw)
    parse_text = parse_json if path.suffix.lower() == ".json" else parse_toml
    tree = parsed(path, text, parse_text, trust=trust)
    if not isinstance(tree, dict):
        raise InputError(f"{path}: is not a scenario, which is a table of keys and values")
    try:
        return beside(path.parent, tree)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def tree_of(scenario: Scenario | Mapping[str, Any] | str | Path, *, trust: bool = False) -> Table:
    """Return a scenario in any form as a new plain tree; it is not validated.

    A mapping with the key `named` is a named scenario with its options, like
    ``{"named": "rrul", "rate": "20mbit"}``. With `trust`, Python code that the scenario names may
    run.
    """
    if isinstance(scenario, Mapping) and "named" in scenario:
        options = {key: value for key, value in scenario.items() if key != "named"}
        return named.tree(str(scenario["named"]), options)
    if isinstance(scenario, str | Path):
        return load_tree(scenario, trust=trust)
    tree: Table = plain(scenario)
    if trust:
        trusting.named(tree)
    return tree


def load_toml(path: Path, *, trust: bool = False) -> Table:
    """Read a TOML file. With `trust`, Python code that it names may run.

    Raises InputError with its name, and the line if known.
    """
    tree: Table = parsed(path, text_of(path, bytes_of_file(path)), parse_toml, trust=trust)
    return tree


def parsed(path: Path, text: str, parse: Callable[[str], Any], *, trust: bool) -> Any:
    """Parse the text of the file `path`. Errors name the file."""
    try:
        tree = parse(text)
        if isinstance(tree, dict | list):
            check_depth(tree)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except RecursionError:
        raise InputError(f"{path}: tables are nested too deeply") from None
    trusting.read(tree, path, trust)
    return tree


def beside(folder: Path, tree: Table) -> Table:
    """Return a scenario with paths of link traces relative to `folder`, and packet traces read."""
    for link in _links(tree):
        match link.get("trace"):
            case str() as file:
                link["trace"] = str(folder / file)
            case {"file": str() as file}:
                link["trace"]["file"] = str(folder / file)
    whole: Table = packet_trace.inline(tree, folder)
    return whole


def parse(scenario: Described, *, trust: bool = False) -> ParsedScenario:
    """Validate a scenario in any form. A scenario that is already parsed is returned as it is.

    With `trust`, Python code that it names may run.

    Raises
    ------
    InputError
        If the scenario is invalid. The message names the path of the key.
    """
    if isinstance(scenario, ParsedScenario):
        return scenario
    is_named = isinstance(scenario, Mapping) and "named" in scenario
    if trust or isinstance(scenario, str | Path) or is_named:
        scenario = tree_of(scenario, trust=trust)
    return ParsedScenario(to_json(scenario))


def canonical(scenario: Described) -> Table:
    """Return a scenario with all defaults and canonical names. Raises InputError if invalid."""
    tree: Table = json.loads(parse(scenario).canonical())
    return tree


def to_json(scenario: "Scenario | Mapping[str, Any]") -> str:
    """Return a scenario as the JSON text that Rust reads, with the contents of its trace files."""
    try:
        tree = packet_trace.inline(plain(scenario))
        return json.dumps(_with_traces(tree), allow_nan=False)
    except RecursionError:
        raise InputError("tables are nested too deeply") from None


def _links(tree: Any) -> list[Table]:
    """Return the links of a scenario that may be invalid."""
    links = tree.get("links") if isinstance(tree, dict) else None
    found = links.values() if isinstance(links, dict) else ()
    return [link for link in found if isinstance(link, dict)]


def _with_traces(tree: Any) -> Any:
    """Replace the file names of link traces by their columns, in place."""
    if any("trace" in link for link in _links(tree)):
        from sojourn.scenario import link_trace

        for name, link in tree["links"].items():
            try:
                if isinstance(link, dict) and "trace" in link:
                    link["trace"] = link_trace.resolve(link["trace"])
            except InputError as error:
                where = f"links.{brief(str(name))}.trace"
                raise InputError(f"{where}: {printable(str(error))}") from None
    return tree
