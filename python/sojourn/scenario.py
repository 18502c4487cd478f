"""Scenarios are data: how a file is read, and the JSON that Rust validates.

Nothing is validated here. Rust reads the JSON once and answers with the path of what is wrong;
a second set of rules in Python could only disagree with it.
"""

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from sojourn import traces
from sojourn._sojourn import InputError
from sojourn.keys import Change, Flow, Link, Scenario

__all__ = ["Change", "Flow", "Link", "Scenario", "Table", "load", "plain", "to_json"]

Table: TypeAlias = dict[str, Any]


def load(path: str | Path) -> Table:
    """Read the scenario file `path` (.toml or .json) as a plain tree.

    Raises InputError with the file's name, and the line where there is one, if it cannot be read.
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {why(error)}") from None
    if path.suffix.lower() not in (".toml", ".json"):
        raise InputError(f"{path}: a scenario file ends in .toml or .json")
    text = text_of(path, raw)
    try:
        tree = _parse_json(text) if path.suffix.lower() == ".json" else _parse_toml(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except RecursionError:
        raise InputError(f"{path}: tables are nested too deeply") from None
    if not isinstance(tree, dict):
        raise InputError(f"{path}: a scenario is a table of names and values")
    for link in _links(tree):
        # The file of a trace is looked for beside that of the scenario.
        match link.get("trace"):
            case str() as file:
                link["trace"] = str(path.parent / file)
            case {"file": str() as file}:
                link["trace"]["file"] = str(path.parent / file)
    try:
        whole: Table = traces.inline(tree, path.parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return whole


def text_of(path: Path, raw: bytes) -> str:
    """Give the text of the file `path` whose bytes are `raw`; it must have some, in UTF-8."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}: line {line}: this is not a text file in UTF-8") from None
    if not text.strip():
        raise InputError(f"{path}: the file is empty")
    return text


def to_json(scenario: "Scenario | Mapping[str, Any]") -> str:
    """Give the JSON text of `scenario` that Rust reads."""
    try:
        tree = traces.inline(plain(scenario))
        return json.dumps(_with_traces(tree), allow_nan=False)
    except RecursionError:
        raise InputError("tables are nested too deeply") from None


def _links(tree: Any) -> list[Table]:
    """The links of a tree that may be anything."""
    links = tree.get("links") if isinstance(tree, dict) else None
    found = links.values() if isinstance(links, dict) else ()
    return [link for link in found if isinstance(link, dict)]


def _with_traces(tree: Any) -> Any:
    """Put the columns of the traces of links in the place of their files' names, in place."""
    if any("trace" in link for link in _links(tree)):
        from sojourn import link_trace

        for name, link in tree["links"].items():
            try:
                if isinstance(link, dict) and "trace" in link:
                    link["trace"] = link_trace.resolve(link["trace"])
            except InputError as error:
                raise InputError(f"links.{name}.trace: {error}") from None
    return tree


def plain(value: Any) -> Any:
    """Reduce `value` to what JSON can say.

    What JSON has no word for (NaN, a date, an integer of a hundred digits) becomes its text, so
    that Rust refuses it where it stands, with its path.
    """
    match value:
        case None | bool():
            return value
        case str():
            return value.encode(errors="backslashreplace").decode()
        case int():
            return value if abs(value) < 1 << 63 else _digits(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case msgspec.Struct():
            tag = value.__struct_config__
            head = {tag.tag_field: tag.tag} if tag.tag_field else {}
            given = {
                name: getattr(value, field)
                for field, name in zip(
                    value.__struct_fields__, value.__struct_encode_fields__, strict=True
                )
            }
            return head | {k: plain(v) for k, v in given.items() if v is not None}
        case Mapping():
            return {plain(str(key)): plain(inner) for key, inner in value.items()}
        case Sequence() if not isinstance(value, bytes):
            return [plain(inner) for inner in value]
        case _ if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
            return plain(value.item())  # a NumPy number
        case _:
            return str(value)


def why(error: OSError) -> str:
    """Say in a few words what the operating system said."""
    return (error.strerror or str(error)).lower()


def _digits(value: int) -> str:
    """Write a huge integer, shortened: Python itself refuses to print thousands of digits."""
    return f"{'-' if value < 0 else ''}about 2^{value.bit_length()}"


def _parse_toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(_one_line(str(error))) from None
    except ValueError as error:  # an integer with thousands of digits
        raise InputError(_one_line(str(error))) from None


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise InputError(f"line {error.lineno}: {error.msg} (column {error.colno})") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(_one_line(str(error))) from None


def _once(pairs: list[tuple[str, Any]]) -> Table:
    """Refuse a key that is there twice; JSON would let the last one win in silence."""
    table: Table = {}
    for key, value in pairs:
        if key in table:
            raise InputError(f"{key}: this key is there twice")
        table[key] = value
    return table


def _one_line(text: str) -> str:
    return " ".join(text.split())
