"""Constants of a paper's set-up: what `sojourn paper run ID --set KEY=VALUE` replaces.

The module of a paper may have `SetUp`, a frozen dataclass derived from `Constants`. Each field is a
constant with a default and a docstring below it. The default decides which values are allowed:

- a text with a unit ("40ms", "10mbit", "1000B", "1000p"): a value of the same quantity, with unit;
- a whole number, a number, or a truth value: the same, not negative;
- any other text: a name, which the scenario checks;
- a tuple: at least one of the same kind.

Values are checked when the object is made, and are kept in canonical form ("1500us", not "1.5ms").
"""

import ast
import inspect
import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Self, TypeAlias

from sojourn._sojourn import InputError, canonical_links
from sojourn._util.inputs import near, shown
from sojourn.scenario.parsing import read_value, split_setting

Value: TypeAlias = str | int | float | bool | tuple[Any, ...]

FORMS = {
    "delay": "a time with unit, like {}",
    "rate": "a rate with unit, like {}",
    "bytes": "a size with unit, like {}",
    "packets": "a number of packets, like {}, or a size in bytes",
}
"""Description of the allowed values by quantity; the default stands for the braces."""


class Constants:
    """Base class of a `SetUp`. Raises InputError for a value that its default does not allow."""

    def __post_init__(self) -> None:
        """Check the values, and bring them into canonical form."""
        for name, default in _defaults(type(self)).items():
            object.__setattr__(self, name, checked(name, getattr(self, name), default))

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the constants."""
        return list(_defaults(cls))

    @classmethod
    def replaced(cls, settings: Sequence[str]) -> Self:
        """Return the defaults with the changes of `settings`, each KEY=VALUE.

        Raises InputError, which names the setting.
        """
        name, default = next(iter(_defaults(cls).items()))
        example = f"{name}={written(default)}"
        pairs = [split_setting(one, example=example) for one in settings]
        try:
            return cls.of(dict(pairs))
        except InputError as error:
            raise InputError(f"--set {error}") from None

    @classmethod
    def of(cls, changes: dict[str, Any]) -> Self:
        """Return the defaults with some constants changed. Raises InputError."""
        for name in changes:
            if name not in cls.names():
                raise InputError(f"{name}: no constant of this paper{near(name, cls.names())}")
        return cls(**changes)

    @property
    def changed(self) -> dict[str, Value]:
        """Constants that differ from their defaults."""
        default = type(self)()
        each = ((name, getattr(self, name)) for name in self.names())
        return {name: value for name, value in each if value != getattr(default, name)}

    @property
    def options(self) -> list[str]:
        """The changes as options of the command."""
        return [f"--set {name}={written(value)}" for name, value in self.changed.items()]

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return name, value, default and description of each constant."""
        default, described = type(self)(), documented(type(self))
        return [
            (name, written(getattr(self, name)), written(getattr(default, name)), described[name])
            for name in self.names()
        ]


def written(value: Value) -> str:
    """Write a value as the command line takes it."""
    if isinstance(value, tuple):
        return ",".join(written(one) for one in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def documented(cls: type[Constants]) -> dict[str, str]:
    """Return the docstring below each field of a class."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(tree, ast.ClassDef)
    texts: dict[str, str] = {}
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            texts[field.target.id] = " ".join(str(text.value.value).split())
    missing = [name for name in cls.names() if name not in texts]
    assert not missing, f"{cls.__qualname__}: no docstring below {', '.join(missing)}"
    return texts


def checked(name: str, value: Any, default: Value) -> Value:
    """Return a value in canonical form. Raises InputError if the default does not allow it."""
    if isinstance(default, tuple):
        each = _listed(value, default[0]) if isinstance(value, str) else value
        if not isinstance(each, tuple | list) or not each:
            raise _refused(name, value, f"values between commas, like {written(default)}")
        return tuple(checked(name, one, default[0]) for one in each)
    if isinstance(default, bool):
        if isinstance(value, bool):
            return value
        raise _refused(name, value, "true or false")
    if isinstance(default, int | float):
        kinds = int if isinstance(default, int) else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < 1e15:
            what = "whole number" if isinstance(default, int) else "number"
            raise _refused(name, value, f"a {what} without unit that is not negative")
        return type(default)(value)
    quantity = _quantity(default)
    if quantity is None:
        if isinstance(value, str) and value.strip():
            return value.strip()
        raise _refused(name, value, f"a name, like {default}")
    if isinstance(value, float) and not math.isfinite(value):
        raise _refused(name, value, FORMS[quantity].format(default))
    try:
        return _canonical(quantity, value)
    except InputError as error:
        reason = str(error).removeprefix("link.").partition(": ")[2]
        form = FORMS[quantity].format(default)
        raise InputError(f"{name}: {reason}, allowed: {form}") from None


def _listed(text: str, default: Value) -> list[Any]:
    """Return the values between the commas of a text."""
    each = [one.strip() for one in text.split(",")]
    return each if isinstance(default, str) else [read_value(one) for one in each]


def _refused(name: str, value: Any, allowed: str) -> InputError:
    return InputError(f"{name}: {shown(value)} is not allowed, allowed: {allowed}")


def _quantity(default: str) -> str | None:
    """Return the quantity of a default with unit, or None for a name."""
    for quantity in FORMS:
        try:
            _canonical(quantity, default)
        except InputError:
            continue
        return quantity
    return None


def _canonical(quantity: str, value: Any) -> str:
    """Return a quantity in canonical form, as the same key of a link has it. Raises InputError."""
    link: dict[str, Any] = {"rate": "1mbit"}
    if quantity in ("delay", "rate"):
        parsed = json.loads(canonical_links(json.dumps({"link": {**link, quantity: value}})))
        return str(parsed["link"][quantity])
    link["qdisc"] = {"name": "droptail", "limit": value}
    text = str(json.loads(canonical_links(json.dumps({"link": link})))["link"]["qdisc"]["limit"])
    # A limit may also be a time, which stands for bytes at the rate of the link.
    letters = str(value).strip().lstrip("0123456789._ ")
    if letters in ("ns", "us", "ms", "s") or (quantity == "bytes" and text.endswith("p")):
        raise InputError(f"limit: {shown(value)} has another unit")
    return text


def _defaults(cls: type) -> dict[str, Value]:
    """Return the default of each constant, as the class has it."""
    defaults: dict[str, Value] = {one.name: one.default for one in fields(cls)}  # type: ignore[misc]
    return defaults
