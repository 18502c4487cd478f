"""Conversion of models and NumPy values to JSON types."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from sojourn._sojourn import InputError
from sojourn._util.inputs import QUOTED_MAX, shown


def indented(value: Any) -> str:
    """Return a value of JSON types as indented text, the same as `json.dumps` with `indent`.

    `json.dumps` indents in Python, which takes 30 us and 1.5 kB for each of a million flows. Raises
    ValueError for NaN and infinity.
    """
    return msgspec.json.format(json.dumps(value, allow_nan=False), indent=2)


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


def changed(model: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of a model that differ from their defaults."""
    fields, defaults = model.__struct_fields__, model.__struct_defaults__
    required = len(fields) - len(defaults)
    values = {}
    for field, default in zip(fields, [None] * required + [*defaults], strict=True):
        value = getattr(model, field)
        # Of the same type: True is not 1, and an array has no single comparison.
        if value is not None and not (type(value) is type(default) and value == default):
            values[field] = value
    return values


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
            # Surrogates cannot be encoded as UTF-8; ASCII text has none.
            return value if value.isascii() else value.encode(errors="backslashreplace").decode()
        case int():
            if -(1 << 63) <= value < 1 << 64:
                return value
            raise _NotJsonError(f"{_digits(value)} is out of range, allowed: up to {1 << 53}")
        case float():
            if math.isfinite(value):
                return value
            raise _NotJsonError(f"{value} is not a finite number")
        # Built-in containers first: a test for an abstract class takes longer.
        case dict():
            return _table(value)
        case list() | tuple():
            return _list(value)
        case msgspec.Struct():
            tag = value.__struct_config__
            head = {tag.tag_field: tag.tag} if tag.tag_field else {}
            names = dict(zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True))
            return _plain(head | {names[field]: one for field, one in changed(value).items()})
        case Mapping():
            return _table(value)
        case Sequence() if not isinstance(value, bytes | bytearray):
            return _list(value)
        case Path():
            return _plain(str(value))
        case type():
            name = value.__name__
            raise _NotJsonError(f"{name} is a class, write an object of it: {name}()")
        case _ if hasattr(value, "_table"):
            return _plain(value._table())  # a discipline that is written in Python
        case _ if hasattr(value, "tolist"):
            return _plain(value.tolist())  # NumPy
        case _:
            kind = type(value).__name__
            raise _NotJsonError(f"{shown(str(value))} is of type {kind}, which no key takes")


def _table(value: Mapping[Any, Any]) -> dict[str, Any]:
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
