"""Write scenarios as TOML or JSON files."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from sojourn._util.files import check_file, write_text
from sojourn._util.public import public
from sojourn.scenario.draft import Described, Draft, Table

ENDINGS = (".toml", ".json")
"""Endings of the names of scenario files."""


@public
def save_scenario(scenario: Described, path: str | Path) -> None:
    """Write a scenario as a file that `load`, `simulate` and `sojourn run` read.

    Parameters
    ----------
    scenario : Scenario, mapping, str or Path
        The scenario. Objects are written without the values that equal their defaults.
    path : str or Path
        The file, .toml or .json. An existing file is replaced.

    Raises
    ------
    InputError
        If the scenario is invalid, or the file cannot be written.

    Examples
    --------
    >>> import sojourn as sj, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "case.toml"
    >>> sj.save_scenario(sj.dumbbell(4, qdisc="codel"), file)
    >>> sj.load(file).links["bottleneck"].qdisc
    CoDel()
    """
    path = Path(path)
    check_file(path, ENDINGS)
    draft = Draft.read(scenario)
    draft.parse()
    tree = draft.tree
    text = json.dumps(tree, indent=1) + "\n" if path.suffix.lower() == ".json" else to_toml(tree)
    write_text(path, text)


def to_toml(tree: Table) -> str:
    """Return a scenario as TOML: a table per link, an element per flow and change."""
    single = {key: value for key, value in tree.items() if not isinstance(value, dict | list)}
    lines = [f"{_key(key)} = {inline(value)}" for key, value in single.items()]
    for key, value in tree.items():
        if isinstance(value, dict):
            for name, table in value.items():
                lines += ["", f"[{_key(key)}.{_key(name)}]", *_lines(table)]
        elif isinstance(value, list):
            for table in value:
                lines += ["", f"[[{_key(key)}]]", *_lines(table)]
    return "\n".join(lines) + "\n"


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {inline(value)}" for key, value in table.items()]


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else inline(key)


def inline(value: Any) -> str:
    """Return a JSON value as an inline value of TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {inline(v)}" for key, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(inline, value))}]"
    # JSON and TOML write strings alike in UTF-8, except for DEL.
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
