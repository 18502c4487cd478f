"""Parameters of a discipline, TCP or source object: values, defaults and descriptions."""

import inspect
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from sojourn import _sojourn
from sojourn._util.base import Model
from sojourn.custom.base import Custom


@dataclass(frozen=True)
class Parameter:
    """Parameter as text; `given` is True if its value is not the default."""

    name: str
    value: str
    default: str
    about: str
    given: bool


@dataclass(frozen=True)
class Described:
    """Name, description, source and parameters of an object."""

    name: str
    about: str
    source: str
    rows: list[Parameter]


def described(model: Model | Custom) -> Described:
    """Return what an object is, with all its parameters."""
    return _of_class(model) if isinstance(model, Custom) else _of_model(model)


def _of_model(model: Model) -> Described:
    name = str(type(model).__struct_config__.tag)
    spec = _specs()[str(model._checked_as), name]
    rows = []
    for row in spec["params"]:
        value = getattr(model, row["name"], None)
        kind = f"{row['kind'].replace('|', ' | ')}, {row['range']}".removesuffix(", ")
        rows.append(_parameter(row["name"], value, row["value"], f"{row['about']} ({kind})"))
    source = f"source: {spec['source']}" if spec.get("source") else ""
    return Described(name, spec["about"], source, rows)


def _of_class(one: Custom) -> Described:
    usual = {"limit": "1000p", "ecn": False, "compiled": False, "start": "0s", "stop": "auto"}
    about = {
        "limit": "Buffer size, in bytes or packets.",
        "ecn": "True if ECN-capable packets are marked instead of dropped.",
        "compiled": "True if the methods are compiled by Numba.",
        "start": "Start time.",
        "stop": "Stop time; auto means never.",
    }
    values = vars(one).get("_options", {})
    own = {name: default for name, (_, default) in type(one)._parameters.items()}
    kinds = {name: kind for name, (kind, _) in type(one)._parameters.items()}
    rows = [
        _parameter(name, values.get(name), _text(default), kinds[name])
        for name, default in own.items()
    ]
    common = type(one)._common
    rows += [_parameter(name, values.get(name), _text(usual[name]), about[name]) for name in common]
    others = values.keys() - own.keys() - set(common)
    rows += [
        _parameter(name, values[name], "", "Parameter of every TCP.") for name in sorted(others)
    ]
    summary = (inspect.getdoc(type(one)) or "a class in Python").splitlines()[0]
    return Described(type(one).__name__, summary, "", rows)


def _parameter(name: str, value: Any, default: str, about: str) -> Parameter:
    text = default if value is None else _text(value)
    return Parameter(name, text, default, about, text != default)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def _specs() -> dict[tuple[str, str], dict[str, Any]]:
    """Return the registered disciplines, TCPs and sources by the class of their objects."""
    tree = json.loads(_sojourn.specs())
    kinds = (("qdisc", "disciplines"), ("tcp", "tcp"), ("tcp", "presets"), ("source", "sources"))
    return {(kind, one["name"]): one for kind, key in kinds for one in tree[key]}
