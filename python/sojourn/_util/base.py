"""Base classes of the generated models: immutable data whose repr omits defaults."""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util import size_table
from sojourn._util.html import html
from sojourn._util.inputs import near, shown
from sojourn._util.plain import changed, plain

LINK_TRACE = ("link", "trace")
"""The field of a link that the check of a link omits."""


COLLECTIONS = {
    "links": 'is no mapping from names to links, write {"up": sj.Link(...)}',
    "switches": 'is no mapping from names to switches, write {"tor": sj.Switch(...)}',
    "ports": 'is no list of names of links, write ["up"]',
    "flows": "is no list of flows, write [sj.Flow(...)]",
    "changes": "is no list of changes, write [sj.Change(...)]",
    "path": 'is no list of names of links, write ["up"]',
    "return_path": 'is no list of names of links, write ["down"]',
}
"""Fields of scenario tables that hold several values: the message about any other value."""


def _is_collection(name: str, value: Any) -> bool:
    """Return True for a mapping of links or switches, or a list of anything else."""
    if name in ("links", "switches"):
        return isinstance(value, Mapping)
    return not isinstance(value, str | Mapping | msgspec.Struct)


class _Checked(msgspec.StructMeta):
    """Metaclass: None means the default; an unknown keyword raises TypeError with the nearest."""

    if not TYPE_CHECKING:  # pyright would accept any keyword

        def __call__(self, *args: Any, **fields: Any) -> Any:
            if args:
                names = ", ".join(f"{name}=..." for name in self.__struct_fields__[: len(args)])
                raise TypeError(f"{self.__name__} takes keyword arguments only, like {names}")
            self._check_names(fields)
            values = {name: value for name, value in fields.items() if value is not None}
            is_table = self.__struct_config__.tag_field is None
            for name, value in values.items():
                if is_table and name in COLLECTIONS and not _is_collection(name, value):
                    raise InputError(f"{self.__name__}.{name}: {COLLECTIONS[name]}")
            return super().__call__(**values)

    def _check_names(self, keywords: Iterable[str]) -> None:
        names: tuple[str, ...] = self.__struct_fields__
        for name in keywords:
            if name not in names:
                raise TypeError(
                    f"{self.__name__} has no parameter {shown(name)}{near(name, names)}"
                )


class _Data(msgspec.Struct, kw_only=True, frozen=True, metaclass=_Checked):
    """Immutable fields, all given by keyword. Rust validates them when the object is made."""

    _checked_as: ClassVar[str | None] = None
    """Kind of the table in Rust. None if it is checked with the whole scenario only."""

    def __post_init__(self) -> None:
        """Raise InputError, with class and field, if a field is invalid."""
        kind = self._checked_as
        if kind is None:
            return
        try:
            # Files of traces and of sizes are read, and validated, with the scenario.
            tree = {key: value for key, value in plain(self).items() if (kind, key) != LINK_TRACE}
            tree = size_table.without_files(tree)
            _sojourn.check(kind, json.dumps(tree))
        except InputError as error:
            raise InputError(f"{type(self).__name__}.{error}") from None

    def __repr__(self) -> str:
        """Return the object as Python writes it, without defaults."""
        fields = ", ".join(f"{name}={value!r}" for name, value in changed(self).items())
        return f"{type(self).__name__}({fields})"

    def replace(self, **changes: Any) -> Self:
        """Return a copy with the given fields changed; None sets a field back to its default."""
        return type(self)(**{**msgspec.structs.asdict(self), **changes})


class Table(_Data, kw_only=True, frozen=True):
    """Table of a scenario. docs/reference/scenario.md describes its keys."""

    def _repr_html_(self) -> str | None:
        """Return a scenario as HTML for notebooks; None for its parts, which use their repr."""
        return html(self)


class Model(
    _Data,
    kw_only=True,
    frozen=True,
    tag_field="name",
):
    """Name with parameters."""

    def _repr_html_(self) -> str | None:
        """Return the parameters as HTML for notebooks."""
        return html(self)


class Qdisc(Model, kw_only=True, frozen=True):
    """Queueing discipline with its parameters, see `sojourn list disciplines`."""

    _checked_as = "qdisc"


class Tcp(Model, kw_only=True, frozen=True):
    """TCP with its parameters, see `sojourn list tcp`."""

    _checked_as = "tcp"


class Source(Model, kw_only=True, frozen=True):
    """Traffic source with its parameters, see `sojourn list sources`."""

    _checked_as = "source"
