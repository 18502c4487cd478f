"""State of an object in a snapshot: its attributes as JSON. Loading it executes no code."""

import json
from collections import deque
from typing import Any

import numpy as np

from sojourn._sojourn import InputError
from sojourn._util.inputs import shown
from sojourn.custom.base import Custom
from sojourn.custom.telemetry import LinkTelemetry

HINT = "numbers, texts, arrays, lists, tuples, dicts, sets and deques of these can be saved"

ELSEWHERE = "has a part that is also elsewhere"

NUMBERS = "biuf"
"""Kinds of the types of arrays that can be saved."""


def save(instance: Custom) -> str:
    """Return the attributes of an object, with its parameters."""
    seen: set[int] = set()
    state = {}
    for name, value in vars(instance).items():
        try:
            state[name] = _plain(value, seen)
        except TypeError as error:
            raise InputError(f"{type(instance).__name__}.{name} {error}; {HINT}") from None
    return json.dumps(state)


def load(instance: Custom, text: str) -> None:
    """Replace the attributes of an object by saved ones."""
    try:
        state = {name: _value(saved) for name, saved in json.loads(text).items()}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise InputError(f"the state of {type(instance).__name__} is not valid") from None
    attributes = vars(instance)
    attributes.clear()
    attributes.update(state)


def _plain(value: Any, seen: set[int]) -> Any:
    """Return a value as JSON: a number or text, or a list of the name of its type and contents."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return ["float", value.hex()]
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in NUMBERS:
        if id(value) in seen:
            raise TypeError(ELSEWHERE)
        seen.add(id(value))
        array = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        name = "array" if kind is np.ndarray else "number"
        return [name, array.dtype.str, list(value.shape), array.tobytes().hex()]
    if kind is LinkTelemetry:
        return ["LinkTelemetry", *value]
    if kind not in (list, tuple, dict, set, frozenset, deque):
        raise TypeError(f"is a {shown(kind.__name__)}")
    if kind not in (tuple, frozenset) and id(value) in seen:
        raise TypeError(ELSEWHERE)
    seen.add(id(value))
    contents = [pair for item in value.items() for pair in item] if kind is dict else list(value)
    if kind is deque:
        contents.insert(0, value.maxlen)
    return [kind.__name__, *(_plain(part, seen) for part in contents)]


def _value(saved: Any) -> Any:
    """Return the value of `_plain`."""
    if not isinstance(saved, list):
        return saved
    kind, *contents = saved
    if kind == "float":
        return float.fromhex(*contents)
    if kind in ("array", "number"):
        array = _array(*contents)
        return array if kind == "array" else array[()]
    parts = [_value(part) for part in contents]
    if kind == "LinkTelemetry":
        return LinkTelemetry(*parts)
    if kind == "dict":
        return dict(zip(parts[::2], parts[1::2], strict=True))
    if kind == "deque":
        return deque(parts[1:], maxlen=parts[0])
    return {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[kind](parts)


def _array(dtype: str, shape: list[int], text: str) -> Any:
    """Return the array that `_plain` wrote. Raises ValueError if it is not valid."""
    if np.dtype(dtype).kind not in NUMBERS:
        raise ValueError(dtype)
    array = np.frombuffer(bytes.fromhex(text), dtype).reshape(shape)
    return array.astype(array.dtype.newbyteorder("="))
