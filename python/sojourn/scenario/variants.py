"""How a discipline is written wherever one is named.

`codel`, `codel(target=15ms, ecn=true)`, a table `{"name": "codel", "target": "15ms"}`, or a model
`sj.CoDel(target="15ms")`. Rust reads the text form (`_sojourn.call`) and validates what it says;
here the forms are only brought together. Further forms belong into `table`.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.inputs import shown
from sojourn.scenario.base import Qdisc
from sojourn.scenario.load import Table, plain

Described: TypeAlias = Qdisc | str | Mapping[str, Any]
"""A discipline in any of its forms."""

Variants: TypeAlias = str | Qdisc | Sequence[Described] | Mapping[str, Described]
"""Disciplines that are compared: a list, text with commas, or a mapping from labels."""

LIMITS = ("limit", "buffer", "memory_limit")
"""The names of the parameter that is the buffer."""

LABEL_MAX = 60
"""The longest label: it heads a column, and names a folder."""


def table(given: Any) -> Table:
    """Return a discipline (or a TCP or source) in any form as a table with a name.

    Raises InputError if the form is none of these; values are not validated.
    """
    if isinstance(given, str):
        name, settings = _sojourn.call(given)
        if "name" in dict(settings):
            raise InputError(f'name: {shown(given)} has its name before "("')
        return {"name": name, **dict(settings)}
    tree = plain(given)
    if not isinstance(tree, dict):
        raise InputError(f"{shown(given)} is not a name, NAME(KEY=VALUE, ...), a table or a model")
    if not isinstance(tree.get("name"), str):
        raise InputError("name: is missing" if "name" not in tree else "name: is not text")
    return tree


def split(text: str) -> list[str]:
    """Split a list at its commas; those inside quotes, parentheses or brackets are kept."""
    parts, depth, quote = [""], 0, ""
    for c in text:
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c == "," and depth == 0:
            parts.append("")
            continue
        else:
            depth += (c in "([") - (c in ")]")
        parts[-1] += c
    return [part.strip() for part in parts]


def with_buffer(given: Any, old: Any) -> Any:
    """Return the discipline `given` with the buffer of `old`, unless it names one itself.

    What cannot be read is returned as it is: Rust refuses it where it stands.
    """
    try:
        before, after = table(old), table(given)
    except InputError:
        return given
    kept = [value for key, value in before.items() if key.replace("-", "_") in LIMITS]
    if not kept or any(key.replace("-", "_") in LIMITS for key in after):
        return given
    return after | {"limit": kept[-1]}


def variants(given: Variants) -> list[tuple[str | None, Table]]:
    """Return disciplines that are compared, each with its label if it has one of its own.

    Text may put a label before a discipline: `slow=codel(target=100ms)`.
    """
    if isinstance(given, str):
        given = split(given)
    if isinstance(given, Qdisc):
        given = [given]
    if not isinstance(given, Mapping | Sequence):
        raise InputError(f"{shown(given)} is not a list of disciplines")
    listed = [] if isinstance(given, Mapping) else given
    if any(isinstance(one, str) and not one.strip() for one in listed):
        told = ",".join(one if isinstance(one, str) else "..." for one in listed)
        raise InputError(f"{shown(told)} is not a list of names like droptail,codel")
    found: list[tuple[str | None, Table]]
    if isinstance(given, Mapping):
        found = [(_label(label), table(one)) for label, one in given.items()]
    else:
        found = [_labelled(one) for one in given]
    if not found:
        raise InputError("there is no discipline to compare")
    labels = Counter(label for label, _ in found if label is not None)
    if twice := [label for label, count in labels.items() if count > 1]:
        raise InputError(f"{shown(twice[0])} is given twice")
    return found


def labels(tables: Sequence[Table]) -> list[str]:
    """Return the shortest text for each discipline that tells them apart.

    It has the parameters that were given, except those that all of the same name share.
    """
    found = []
    for one in tables:
        alike = [other for other in tables if other["name"] == one["name"]]
        told = [
            f"{key}={_word(value)}"
            for key, value in one.items()
            if key != "name"
            and (len(alike) == 1 or any(other.get(key) != value for other in alike))
        ]
        found.append(f"{one['name']}({', '.join(told)})" if told else str(one["name"]))
    return found


def _labelled(one: Described) -> tuple[str | None, Table]:
    """Split a label from a discipline; an = behind the first parenthesis is a parameter's."""
    if not isinstance(one, str):
        return None, table(one)
    match = re.fullmatch(r"([^(=]+)=(.*)", one, re.DOTALL)
    return (_label(match[1]), table(match[2])) if match else (None, table(one))


def _label(text: Any) -> str:
    label = text.strip() if isinstance(text, str) else ""
    if not label or len(label) > LABEL_MAX or not label.isprintable():
        raise InputError(f"{shown(text)} is not a label: 1 to {LABEL_MAX} characters are")
    return label


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_word, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)
