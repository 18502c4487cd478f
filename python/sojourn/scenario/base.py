"""Base classes of the generated models: immutable data whose repr omits defaults."""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from sojourn._util.html import html

Value: TypeAlias = str | int | float | bool | list[str | int | float] | None
"""Value of a parameter: `"5ms"`, `0.02`, `True`; None for the default."""

Numbers: TypeAlias = Sequence[float] | None
"""Column of a trace: a list or an array of numbers."""


class Table(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """Table of a scenario. docs/scenario.md describes its keys."""

    def _repr_html_(self) -> str | None:
        """Return a scenario as HTML for notebooks; None for its parts, which use their repr."""
        return html(self)


class Qdisc(
    msgspec.Struct,
    kw_only=True,
    frozen=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    tag_field="name",
):
    """Queueing discipline with its parameters, see `sojourn list disciplines`."""


class Tcp(
    msgspec.Struct,
    kw_only=True,
    frozen=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    tag_field="name",
):
    """TCP with its parameters, see `sojourn list tcp`."""


class Source(
    msgspec.Struct,
    kw_only=True,
    frozen=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    tag_field="name",
):
    """Traffic source with its parameters, see `sojourn list sources`."""
