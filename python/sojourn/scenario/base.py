"""Base classes of the generated models: immutable data whose repr omits defaults."""

from typing import Any, Self

import msgspec

from sojourn._util.html import html


class _Data(msgspec.Struct, kw_only=True, frozen=True):
    """Immutable fields, all given by keyword."""

    def replace(self, **changes: Any) -> Self:
        """Return a copy with the given fields changed; None sets a field back to its default."""
        return msgspec.structs.replace(self, **changes)


class Table(_Data, kw_only=True, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """Table of a scenario. docs/scenario.md describes its keys."""

    def _repr_html_(self) -> str | None:
        """Return a scenario as HTML for notebooks; None for its parts, which use their repr."""
        return html(self)


class Model(
    _Data,
    kw_only=True,
    frozen=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    tag_field="name",
):
    """Name with parameters."""


class Qdisc(Model, kw_only=True, frozen=True):
    """Queueing discipline with its parameters, see `sojourn list disciplines`."""


class Tcp(Model, kw_only=True, frozen=True):
    """TCP with its parameters, see `sojourn list tcp`."""


class Source(Model, kw_only=True, frozen=True):
    """Traffic source with its parameters, see `sojourn list sources`."""
