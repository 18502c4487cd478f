"""Values and columns of a result by name, as items or attributes."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy.typing as npt

from sojourn._util.units import counted

Array: TypeAlias = npt.NDArray[Any]


class Columns(Mapping[str, Array]):
    """Columns of equal length by name, as items or attributes.

    Names end with the unit: ``series["queue_bytes"]`` is ``series.queue_bytes``.
    """

    def __init__(self, columns: Mapping[str, Array], missing: str = "") -> None:
        self._columns = dict(columns)
        self._missing = missing

    def __getitem__(self, name: str) -> Array:
        if name not in self._columns:
            raise KeyError(self._absent(name))
        return self._columns[name]

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_") or name not in self._columns:
            raise AttributeError(name if name.startswith("_") else self._absent(name))
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._columns]

    def __repr__(self) -> str:
        rows = max((len(column) for column in self._columns.values()), default=0)
        return f"Columns({', '.join(self._columns)}; {counted(rows, 'row')})"

    def _absent(self, name: str) -> str:
        return f"no column {name!r}: {self._missing if not self._columns else repr(self)}"


class Values(dict[str, Any]):
    """Values by name, as items or attributes."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no value {name!r} (known: {', '.join(self)})") from None


class Record(Values):
    """Summary of a link, a flow or a group of flows: values by name, as items or attributes.

    Attributes
    ----------
    series : Columns
        Values over time, one per sample; empty if the scenario has no `sample`.
    `packet_log` : Columns
        Packet log of a link, one row per packet; empty if the scenario has no `packet_log`.
    """

    __slots__ = ("packet_log", "series")

    def __init__(self, summary: Mapping[str, Any], series: Columns, packet_log: Columns) -> None:
        super().__init__(summary)
        self.series = series
        self.packet_log = packet_log

    def __reduce__(self) -> tuple[Any, ...]:
        return Record, (dict(self), self.series, self.packet_log)


def switch_values(summary: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the summary of a switch, with the values of its classes as items or attributes."""
    if "classes" not in summary:
        return summary
    return {**summary, "classes": {name: Values(row) for name, row in summary["classes"].items()}}


class Flows(dict[str, Record]):
    """Summaries of flows by name. The name of a group of several flows has a message of its own."""

    members: Mapping[str, Sequence[str]] = MappingProxyType({})

    def __missing__(self, name: str) -> Record:
        names = self.members.get(name, ())
        if names:
            raise KeyError(
                f"{name} is a group of {counted(len(names), 'flow')}, {names[0]} to {names[-1]}: "
                f"use result.groups[{name!r}]"
            )
        raise KeyError(name)
