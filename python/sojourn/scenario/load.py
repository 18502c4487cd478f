"""Scenarios: read files, and convert scenarios to the JSON that Rust validates.

Python rejects only values that JSON cannot represent (NaN, dates). Rust validates everything else,
so that there is a single set of rules; its errors begin with the path of the value.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from sojourn._sojourn import InputError
from sojourn._util.inputs import QUOTED_MAX, bytes_of_file, shown, text_of
from sojourn.scenario import packet_trace
from sojourn.scenario.keys import Change, Flow, Link, Scenario
from sojourn.scenario.parsing import parse_json, parse_toml

__all__ = [
    "Change",
    "Flow",
    "Link",
    "Scenario",
    "Table",
    "load_tree",
    "plain",
    "to_json",
    "tree_of",
]

Table: TypeAlias = dict[str, Any]


def load_tree(path: str | Path) -> Table:
    """Read a scenario file as a dictionary, without validating its values.

    Traces of links and packets are found relative to the file.

    Parameters
    ----------
    path : str or Path
        The file, .toml or .json.

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
    raw = bytes_of_file(path)
    if path.suffix.lower() not in (".toml", ".json"):
        raise InputError(f"{path}: the name of a scenario file must end in .toml or .json")
    text = text_of(path, raw)
    tree = parsed(path, text, parse_json if path.suffix.lower() == ".json" else parse_toml)
    if not isinstance(tree, dict):
        raise InputError(f"{path}: is not a scenario, which is a table of keys and values")
    try:
        return beside(path.parent, tree)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def tree_of(scenario: Scenario | Mapping[str, Any] | str | Path) -> Table:
    """Return a scenario in any form as a new plain tree; it is not validated."""
    tree: Table = plain(load_tree(scenario) if isinstance(scenario, str | Path) else scenario)
    return tree


def load_toml(path: Path) -> Table:
    """Read a TOML file. Raises InputError with its name, and the line if known."""
    tree: Table = parsed(path, text_of(path, bytes_of_file(path)), parse_toml)
    return tree


def parsed(path: Path, text: str, parse: Callable[[str], Any]) -> Any:
    """Parse the text of the file `path`. Errors name the file."""
    try:
        return parse(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except RecursionError:
        raise InputError(f"{path}: tables are nested too deeply") from None


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
                raise InputError(f"links.{name}.trace: {error}") from None
    return tree


def plain(value: Any) -> Any:
    """Convert a value to JSON types: models to tables, NumPy numbers and arrays to Python's.

    Raises
    ------
    InputError
        If JSON cannot represent a value: NaN, infinity, integers of more than 64 bits, dates,
        bytes, other objects. The message begins with its path below `value`.
    """
    try:
        return _plain(value)
    except _NotJsonError as error:
        raise InputError(": ".join(filter(None, (".".join(error.path), error.text)))) from None


class _NotJsonError(Exception):
    """Value that JSON cannot represent, with its path."""

    def __init__(self, text: str) -> None:
        self.path: list[str] = []
        self.text = text


def _plain(value: Any) -> Any:
    match value:
        case None | bool():
            return value
        case str():
            return value.encode(errors="backslashreplace").decode()
        case int():
            if -(1 << 63) <= value < 1 << 64:
                return value
            raise _NotJsonError(f"{_digits(value)} is out of range, allowed: up to {1 << 53}")
        case float():
            if math.isfinite(value):
                return value
            raise _NotJsonError(f"{value} is not a finite number")
        case msgspec.Struct():
            tag = value.__struct_config__
            head = {tag.tag_field: tag.tag} if tag.tag_field else {}
            names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
            given = {name: getattr(value, field) for field, name in names}
            return _plain(head | {name: one for name, one in given.items() if one is not None})
        case Mapping():
            return _table(value)
        case Sequence() if not isinstance(value, bytes | bytearray):
            return _list(value)
        case Path():
            return _plain(str(value))
        case _ if hasattr(value, "tolist"):
            return _plain(value.tolist())  # NumPy
        case _:
            kind = type(value).__name__
            raise _NotJsonError(f"{shown(str(value))} is of type {kind}, which no key takes")


def _table(value: Mapping[Any, Any]) -> Table:
    table = {}
    try:
        for key, inner in value.items():
            table[_plain(str(key))] = _plain(inner)
    except _NotJsonError as error:
        error.path.insert(0, shown(str(key)).strip('"'))
        raise
    return table


def _list(value: Sequence[Any]) -> list[Any]:
    items: list[Any] = []
    try:
        for inner in value:
            items.append(_plain(inner))
    except _NotJsonError as error:
        # Flows have their name in paths, as in the messages of Rust.
        name = inner.get("name") if isinstance(inner, Mapping) else getattr(inner, "name", None)
        error.path.insert(0, name if isinstance(name, str) else str(len(items)))
        raise
    return items


def _digits(value: int) -> str:
    """Format a large integer; Python refuses to print thousands of digits."""
    if abs(value) < 10**QUOTED_MAX:
        return str(value)
    return f"a number of about {round(value.bit_length() * math.log10(2))} digits"
