"""Base class of classes that users write: parameters with units, and objects that a run uses."""

import json
import pickle
from collections.abc import Mapping
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.html import html
from sojourn._util.inputs import near, shown
from sojourn.custom import identity

if TYPE_CHECKING:
    from typing import TypeAlias

    Duration: TypeAlias = Any
    Rate: TypeAlias = Any
    Bytes: TypeAlias = Any
else:

    class Duration:
        """Type of a parameter: a duration like "5ms". Methods see whole nanoseconds."""

    class Rate:
        """Type of a parameter: a rate like "10mbit". Methods see whole bits per second."""

    class Bytes:
        """Type of a parameter: a number of bytes like "15kB". Methods see whole bytes."""


KINDS: dict[Any, str] = {
    Duration: "duration",
    Rate: "rate",
    Bytes: "bytes",
    float: "number",
    int: "integer",
    bool: "flag",
}
"""Types of parameters, and their names in Rust."""


class Custom:
    """Class with typed parameters that runs inside the simulator."""

    _checked_as: ClassVar[str] = ""
    """Kind of the table in Rust."""
    _common: ClassVar[tuple[str, ...]] = ()
    """Parameters of every class of this kind."""
    _reserved: ClassVar[tuple[str, ...]] = ("name", "source")
    """Other names that a class cannot use for its own parameters."""
    _fixed: ClassVar[tuple[str, ...]] = ()
    """Attributes other than the parameters that are not state."""
    _hooks: ClassVar[tuple[str, ...]] = ()
    """Methods that the engine calls, in the order of Rust."""
    _parameters: ClassVar[dict[str, tuple[str, Any]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _check_hooks(cls)
        own = vars(cls)
        inherited = {
            name: (kind, own.get(name, default))
            for name, (kind, default) in cls._parameters.items()
        }
        cls._parameters = {**inherited, **_declared(cls)}

    def __init__(self, **options: Any) -> None:
        cls = type(self)
        names = (*cls._common, *cls._parameters)
        for name in options:
            if not cls._knows(name):
                hint = _untyped(cls, name) or near(name, names)
                raise TypeError(f"{cls.__name__} has no parameter {shown(name)}{hint}")
        options = {name: value for name, value in options.items() if value is not None}
        vars(self).update(options, _options=options)
        try:
            _sojourn.check(cls._checked_as, json.dumps(self._table()))
        except InputError as error:
            raise InputError(f"{cls.__name__}.{error}") from None

    @classmethod
    def _knows(cls, name: str) -> bool:
        """Return True if objects can be given a parameter of this name."""
        return name in (*cls._common, *cls._parameters)

    def __repr__(self) -> str:
        options = vars(self).get("_options", {})
        settings = ", ".join(f"{name}={value!r}" for name, value in options.items())
        return f"{type(self).__name__}({settings})"

    def _repr_html_(self) -> str | None:
        """Return the parameters as HTML for notebooks."""
        return html(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Custom):
            return NotImplemented
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def replace(self, **changes: Any) -> Self:
        """Return a copy with the given parameters changed; None sets the default again."""
        return type(self)(**{**vars(self)["_options"], **changes})

    def _table(self) -> dict[str, Any]:
        """Return the table that a scenario has for it: name, hash of the source, parameters."""
        name, source = identity.register(type(self))
        return {"name": name, "source": source, **vars(self)["_options"]}

    @classmethod
    def _running(cls, values: Mapping[str, Any], **fixed: Any) -> Self:
        """Return an object that a run uses: its parameters are numbers, its state is set."""
        instance = cls.__new__(cls)
        vars(instance).update(values, **fixed)
        start(instance)
        return instance


# Functions, not methods: an attribute of the state may have any name.
def start(instance: Custom) -> None:
    """Call `start` of a class, which assigns the state."""
    method = getattr(instance, "start", None)
    if method is not None:
        method()


def state_of(instance: Custom) -> dict[str, Any]:
    """Return the state that `start` assigned, by name."""
    fixed = (*type(instance)._parameters, *type(instance)._fixed)
    return {name: value for name, value in vars(instance).items() if name not in fixed}


def same_state(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return True if two states are equal; False if that cannot be found out."""
    try:
        return one.keys() == other.keys() and all(
            pickle.dumps(_plain(one[name])) == pickle.dumps(_plain(other[name])) for name in one
        )
    except Exception:
        return False


def _plain(value: Any) -> Any:
    """Return a value, a numpy array as its type, shape and values."""
    is_array = type(value).__module__ == "numpy" and hasattr(value, "tolist")
    return (str(value.dtype), value.shape, value.tolist()) if is_array else value


def _check_hooks(cls: type[Custom]) -> None:
    """Refuse a method that looks like a hook and that the engine does not call."""
    plain_hooks = {hook.replace("_", "") for hook in cls._hooks}
    for name, value in vars(cls).items():
        is_like = name.startswith("on_") or name.replace("_", "").lower() in plain_hooks
        if is_like and callable(value) and cls._hooks and name not in cls._hooks:
            raise TypeError(f"{cls.__name__} has no hook {shown(name)}{near(name, cls._hooks)}")


def _untyped(cls: type[Custom], name: str) -> str:
    """Return how to declare a constant of a class as a parameter; empty for other names."""
    value = getattr(cls, name, None)
    package = __name__.partition(".")[0]
    bases = (base for base in cls.__mro__ if base.__module__.partition(".")[0] == package)
    is_ours = any(name in vars(base) for base in bases)
    if is_ours or not isinstance(value, str | int | float):
        return ""
    units = (("bit", "sj.Rate"), ("B", "sj.Bytes"), ("s", "sj.Duration"))
    kind = type(value).__name__
    if isinstance(value, str):
        kind = next((kind for unit, kind in units if value.endswith(unit)), "float")
    return f": it is a constant without a type, write {name}: {kind} = {value!r}"


def _declared(cls: type[Custom]) -> dict[str, tuple[str, Any]]:
    """Return the parameters that a class declares: kind and default by name."""
    declared: dict[str, tuple[str, Any]] = {}
    try:
        annotations = get_annotations(cls, eval_str=True)
    except NameError as error:
        raise TypeError(f"{cls.__name__}: {error}, in the type of a parameter") from None
    for name, kind in annotations.items():
        where = f"{cls.__name__}.{name}"
        if name.startswith("_") or "ClassVar" in str(kind):
            continue
        if name in (*cls._common, *cls._reserved):
            raise TypeError(f"{where}: the name is in use, choose another one")
        if kind not in KINDS:
            known = "sj.Duration, sj.Rate, sj.Bytes, float, int, bool"
            raise TypeError(f"{where}: {kind!r} is not the type of a parameter, allowed: {known}")
        if name not in vars(cls):
            raise TypeError(f'{where}: has no default, write one like {name}: ... = "5ms"')
        declared[name] = (KINDS[kind], vars(cls)[name])
    return declared
