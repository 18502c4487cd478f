"""What the generated models have in common: they are data, and print what was given."""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from sojourn._util.html import html

Value: TypeAlias = str | int | float | bool | list[str | int | float] | None
"""What a parameter can be given as: `"5ms"`, `0.02`, `True`; None leaves the default."""

Numbers: TypeAlias = Sequence[float] | None
"""What a column of a trace can be given as."""


class Table(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """A table of a scenario; docs/scenario.md shows its keys."""

    def _repr_html_(self) -> str | None:
        """Return a scenario as a notebook shows it; None for its parts, which print themselves."""
        return html(self)


class Qdisc(
    msgspec.Struct,
    kw_only=True,
    frozen=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    tag_field="name",
):
    """A queueing discipline with its parameters; `sojourn list disciplines` shows them."""


class Tcp(
    msgspec.Struct,
    kw_only=True,
    frozen=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    tag_field="name",
):
    """A TCP with its parameters; `sojourn list tcp` shows them."""


class Source(
    msgspec.Struct,
    kw_only=True,
    frozen=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    tag_field="name",
):
    """A source of traffic with its parameters; `sojourn list sources` shows them."""
