"""Notations of a discipline, and lists of disciplines with labels.

A discipline is a name, a call like `codel(target=15ms, ecn=true)`, a line of tc like
`tc: codel target 15ms ecn`, a table `{"name": "codel", "target": "15ms"}`, or a model
`sj.CoDel(target="15ms")`. `table` converts all of them to tables; Rust parses calls and lines
(`_sojourn.call`) and validates the values.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.base import Qdisc
from sojourn._util.inputs import shown
from sojourn._util.plain import plain
from sojourn.custom.aqm import Aqm

Table: TypeAlias = dict[str, Any]

Described: TypeAlias = Qdisc | Aqm | str | Mapping[str, Any]
"""Discipline in any notation."""

Variants: TypeAlias = str | Qdisc | Aqm | Sequence[Described] | Mapping[str, Described]
"""Disciplines of a comparison: a list, a comma-separated string, or a mapping from labels."""

LIMITS = ("limit", "buffer", "memory_limit")
"""Names of the parameter for the buffer size."""

LABEL_MAX = 60
"""Longest label in characters: labels head columns and name folders."""


def table(qdisc: Any) -> Table:
    """Return a discipline (or a TCP or source) in any notation as a table with a name.

    Values are not validated. Raises InputError for any other type.
    """
    if isinstance(qdisc, str):
        name, settings = _sojourn.call(qdisc)
        if "name" in dict(settings):
            raise InputError(f'name: {shown(qdisc)} has its name before "("')
        return {"name": name, **dict(settings)}
    tree = plain(qdisc)
    if not isinstance(tree, dict):
        raise InputError(f"{shown(qdisc)} is not a name, NAME(KEY=VALUE, ...), a table or a model")
    if not isinstance(tree.get("name"), str):
        raise InputError("name: is missing" if "name" not in tree else "name: is not text")
    return tree


def split(text: str) -> list[str]:
    """Split a list at its commas, except those inside quotes, parentheses or brackets."""
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


def with_buffer(new: Any, old: Any) -> Any:
    """Return the discipline `new` with the buffer of `old`, unless it has its own.

    An invalid discipline is returned unchanged; Rust reports it with its path.
    """
    try:
        before, after = table(old), table(new)
    except InputError:
        return new
    kept = [value for key, value in before.items() if key.replace("-", "_") in LIMITS]
    if not kept or any(key.replace("-", "_") in LIMITS for key in after):
        return new
    return after | {"limit": kept[-1]}


def variants(choice: Variants) -> list[tuple[str | None, Table]]:
    """Return the disciplines of a comparison, each with its label or None.

    A label may precede a discipline: `slow=codel(target=100ms)`. In words of tc, the label is the
    text, since the table also has the defaults of Linux.
    """
    if isinstance(choice, str):
        choice = split(choice)
    if not isinstance(choice, Mapping | Sequence):
        if not (isinstance(choice, Qdisc) or hasattr(choice, "_table")):
            raise InputError(f"{shown(choice)} is not a list of disciplines")
        choice = [choice]
    listed = [] if isinstance(choice, Mapping) else choice
    if any(isinstance(one, str) and not one.strip() for one in listed):
        text = ",".join(one if isinstance(one, str) else "..." for one in listed)
        raise InputError(f"{shown(text)} is not a list of names like droptail,codel")
    named: list[tuple[str | None, Table]]
    if isinstance(choice, Mapping):
        named = [(_label(label), table(one)) for label, one in choice.items()]
    else:
        named = [_labelled(one) for one in choice]
    if not named:
        raise InputError("there is no discipline to compare")
    labels = Counter(label for label, _ in named if label is not None)
    if twice := [label for label, count in labels.items() if count > 1]:
        raise InputError(f"{shown(twice[0])} is given twice")
    return named


def labels(tables: Sequence[Table]) -> list[str]:
    """Return the shortest unique text for each discipline.

    It has the given parameters, except those with equal values in all disciplines of the name.
    """
    texts = []
    for one in tables:
        alike = [other for other in tables if other["name"] == one["name"]]
        settings = [
            f"{key}={_word(value)}"
            for key, value in one.items()
            if key != "name"
            and (key != "source" or len({other.get(key) for other in alike}) > 1)
            and (len(alike) == 1 or any(other.get(key) != value for other in alike))
        ]
        texts.append(f"{one['name']}({', '.join(settings)})" if settings else str(one["name"]))
    return texts


def _labelled(one: Described) -> tuple[str | None, Table]:
    """Split a label from a discipline; an = after the first parenthesis belongs to a parameter."""
    if not isinstance(one, str):
        return None, table(one)
    match = re.fullmatch(r"([^(=]+)=(.*)", one, re.DOTALL)
    if match:
        return _label(match[1]), table(match[2])
    written = " ".join(one.split())
    is_tc = written.lower().startswith("tc:") and len(written) <= LABEL_MAX
    return written if is_tc else None, table(one)


def _label(text: Any) -> str:
    label = text.strip() if isinstance(text, str) else ""
    if not label or len(label) > LABEL_MAX or not label.isprintable():
        raise InputError(f"{shown(text)} is not a label, allowed: 1 to {LABEL_MAX} characters")
    return label


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_word, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)
