"""What a sweep varies: axes, each a name and values, and the points that they span.

An axis sets one or more places of the scenario, named as `--set` names them. Its values are

- a list: `[10, 20, 40]`, `["codel", "pie"]`, models;
- a table from labels to values: `{tight = {name = "codel", target = "1ms"}}`;
- a range: `{from = 10, to = 50, step = 10}`, or `points = 5`; with `log = true` by equal factors.

With `unit = "mbit"` numbers are set with that unit behind them, and labelled without.
"""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import msgspec
import numpy as np

from sojourn import disciplines
from sojourn._sojourn import InputError
from sojourn.inputs import near
from sojourn.scenario import Table, plain
from sojourn.settings import set_at

Label: TypeAlias = str | int | float | bool

KEYS = ("set", "values", "from", "to", "step", "points", "log", "unit", "when")
"""What an axis that is a table may say."""

POINTS_MAX = 1_000_000
"""The most points of a sweep."""


@dataclass(frozen=True)
class Axis:
    """A name, the places that it sets, and its labelled values.

    It moves only at points that have the labels in `when`; elsewhere it sets nothing and has the
    label "-".
    """

    name: str
    places: tuple[str, ...]
    values: tuple[tuple[Label, Any], ...]
    when: Mapping[str, Any]


def read_axes(axes: Mapping[str, Any]) -> list[Axis]:
    """Read axes as a sweep file or a Python call has them. Raises InputError with their path."""
    if not isinstance(axes, Mapping) or not axes:
        raise InputError('axes: a sweep has at least one, like qdisc = ["codel", "pie"]')
    return [_axis(str(name), given) for name, given in axes.items()]


def points(
    tree: Table,
    axes: Sequence[Axis],
    together: Sequence[Sequence[str]] = (),
    skip: Sequence[Mapping[str, Any]] = (),
) -> Iterator[tuple[dict[str, Label], Table]]:
    """Give the labels and the scenario of every point.

    Axes named in one list of `together` move in step; points with all the labels of an entry of
    `skip` are left out. The later axes move faster.
    """
    groups = _groups(axes, together)
    known = {axis.name: axis for axis in axes}
    for n, entry in enumerate(skip):
        _check_labels(f"skip.{n}", entry, known)
    for axis in axes:
        _check_labels(f"axes.{axis.name}.when", axis.when, known)
    total = int(np.prod([float(len(group[0].values)) for group in groups]))
    if total > POINTS_MAX:
        raise InputError(f"axes: {total} points are too many, allowed: up to {POINTS_MAX}")
    seen = set()
    for chosen in product(*(range(len(group[0].values)) for group in groups)):
        at = {
            axis.name: axis.values[k]
            for group, k in zip(groups, chosen, strict=True)
            for axis in group
        }
        labels = {name: at[name][0] for name in known}
        for axis in axes:
            if any(labels[name] != value for name, value in axis.when.items()):
                labels[axis.name] = "-"
        if tuple(labels.values()) in seen or any(
            all(labels[name] == value for name, value in entry.items()) for entry in skip
        ):
            continue
        seen.add(tuple(labels.values()))
        changed = copy.deepcopy(tree)
        for axis in axes:
            if labels[axis.name] != "-":
                for place in axis.places:
                    _set(changed, axis.name, place, at[axis.name][1])
        yield labels, changed


def _axis(name: str, given: Any) -> Axis:
    where = f"axes.{name}"
    if isinstance(given, Sequence) and not isinstance(given, str):
        return Axis(name, (name,), _list(where, given, ""), {})
    if not isinstance(given, Mapping):
        raise InputError(f"{where}: {given!r} is no list of values and no table")
    for key in given:
        if key not in KEYS:
            raise InputError(f'{where}: unknown key "{key}"{near(key, KEYS)}')
    places = given.get("set", name)
    places = (places,) if isinstance(places, str) else tuple(places)
    unit, when = given.get("unit", ""), given.get("when", {})
    if not isinstance(when, Mapping):
        raise InputError(f"{where}.when: write it as a table of labels")
    values = given.get("values")
    if (values is None) == ("from" not in given):
        raise InputError(f"{where}: give it either values or from and to")
    if values is None:
        return Axis(name, places, _list(where, _range(where, given), unit), when)
    if isinstance(values, Mapping):
        return Axis(name, places, tuple(values.items()), when)
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise InputError(f"{where}.values: {values!r} is no list")
    return Axis(name, places, _list(f"{where}.values", values, unit), when)


def _list(where: str, values: Sequence[Any], unit: str) -> tuple[tuple[Label, Any], ...]:
    """Label values by themselves, tables and models by their names."""
    if not values:
        raise InputError(f"{where}: there are no values")
    labelled: list[tuple[Label, Any]] = []
    for value in values:
        if unit:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"{where}: {value!r} is no number, which the unit asks for")
            labelled.append((value, f"{value}{unit}"))
            continue
        tree = plain(value) if isinstance(value, msgspec.Struct) else value
        labelled.append((_name(tree), tree))
    labels = [label for label, _ in labelled]
    if len(set(labels)) < len(labels):
        # Several of one name: their parameters tell them apart.
        tables = [tree if isinstance(tree, dict) and "name" in tree else {"name": label}
                  for label, tree in labelled]  # fmt: skip
        told = disciplines.labels(tables)
        labelled = [(label, tree) for label, (_, tree) in zip(told, labelled, strict=True)]
        if len({label for label, _ in labelled}) < len(labelled):
            raise InputError(f"{where}: a value is there twice")
    return _alike(labelled)


def _alike(labelled: list[tuple[Label, Any]]) -> tuple[tuple[Label, Any], ...]:
    """Give the labels of an axis one type, so that they are one column."""
    kinds = {type(label) for label, _ in labelled}
    kind = next(iter(kinds)) if len(kinds) == 1 else float if kinds == {int, float} else str
    return tuple((kind(label), value) for label, value in labelled)


def _name(tree: Any) -> Label:
    if isinstance(tree, str | int | float | bool):
        return tree
    if isinstance(tree, Mapping) and "name" in tree:
        return str(tree["name"])
    return json.dumps(tree)


def _range(where: str, given: Mapping[str, Any]) -> list[float]:
    first, last = given["from"], given.get("to")
    if not all(isinstance(n, int | float) and not isinstance(n, bool) for n in (first, last)):
        raise InputError(f"{where}: from and to are numbers (give the unit as unit)")
    assert last is not None
    log, step, count = given.get("log", False), given.get("step"), given.get("points")
    if (step is None) == (count is None):
        raise InputError(f"{where}: give it either step or points")
    if log and (step is not None or first <= 0 or last <= 0):
        raise InputError(f"{where}: a log range has points, and ends above 0")
    if step is not None:
        if not isinstance(step, int | float) or step <= 0 or last < first:
            raise InputError(f"{where}.step: it must lead from {first} up to {last}")
        count = int((last - first) / step + 1e-9) + 1
        found = [first + step * k for k in range(min(count, POINTS_MAX + 1))]
    else:
        if not isinstance(count, int) or isinstance(count, bool) or count < 2:
            raise InputError(f"{where}.points: {count!r} is out of range, allowed: 2 or more")
        count = min(count, POINTS_MAX + 1)
        spaced = np.geomspace(first, last, count) if log else np.linspace(first, last, count)
        found = spaced.tolist()
    # 0.1 * 3 is not 0.3: as many digits as anybody reads.
    tidy = [float(f"{value:.10g}") for value in found]
    return [int(value) if value == int(value) else value for value in tidy]


def _groups(axes: Sequence[Axis], together: Sequence[Sequence[str]]) -> list[list[Axis]]:
    """Sort axes into those that move in step, in the order of their first ones."""
    known = {axis.name: axis for axis in axes}
    partner: dict[str, int] = {}
    for n, names in enumerate(together):
        for name in names:
            if name not in known:
                raise InputError(f'together.{n}: no axis "{name}"{near(name, list(known))}')
            if name in partner:
                raise InputError(f'together.{n}: "{name}" is there twice')
            partner[name] = n
        lengths = {len(known[name].values) for name in names}
        if len(lengths) > 1:
            told = ", ".join(f"{name} has {len(known[name].values)}" for name in names)
            raise InputError(f"together.{n}: axes in step have equally many values; {told}")
    groups: dict[Any, list[Axis]] = {}
    for axis in axes:
        groups.setdefault(partner.get(axis.name, axis.name), []).append(axis)
    return list(groups.values())


def _check_labels(where: str, entry: Mapping[str, Any], known: Mapping[str, Axis]) -> None:
    for name, value in entry.items():
        if name not in known:
            raise InputError(f'{where}: no axis "{name}"{near(name, list(known))}')
        labels = [label for label, _ in known[name].values]
        if value not in labels:
            raise InputError(f"{where}.{name}: {value!r} is no value of the axis, {labels} are")


def _set(tree: Table, name: str, place: str, value: Any) -> None:
    try:
        set_at(tree, place, copy.deepcopy(value))
    except InputError as error:
        raise InputError(f"axes.{name}: {error}") from None
