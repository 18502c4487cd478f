"""Axes of a sweep, and the points that they span.

An axis has a name and values, and sets one or more keys of the scenario, with paths as in
`--set`. Its values are one of

- a list: `[10, 20, 40]`, `["codel", "pie"]`, or models;
- a table from labels to values: `{tight = {name = "codel", target = "1ms"}}`;
- a range: `{from = 10, to = 50, step = 10}` or `points = 5`; geometric with `log = true`.

With `unit = "mbit"`, values are numbers: the unit is appended to the value, not to the label.
"""

import copy
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief, near, shown
from sojourn._util.plain import plain
from sojourn.scenario import variants
from sojourn.scenario.draft import KEYS as SCENARIO_KEYS
from sojourn.scenario.draft import Table, set_at

Label: TypeAlias = str | int | float | bool

KEYS = ("set", "values", "from", "to", "step", "points", "log", "unit", "when")
"""Keys of an axis that is a table."""

POINTS_MAX = 1_000_000
"""Largest number of points of a sweep."""

NUMBER_MAX = 2.0**53
"""Largest number in a range: larger integers are not exact in floating point."""

UNSET = "-"
"""Label of an axis at points where its `when` does not hold."""


@dataclass(frozen=True)
class Axis:
    """Axis: its name, the paths that it sets, and its labelled values.

    It applies only at points that have the labels in `when`. At other points it sets nothing and
    has the label "-".
    """

    name: str
    places: tuple[str, ...]
    values: tuple[tuple[Label, Any], ...]
    when: Mapping[str, Any]


def read_axes(axes: Mapping[str, Any]) -> list[Axis]:
    """Parse the axes of a sweep file or of `sojourn.sweep`.

    Raises InputError with the path of an invalid value.
    """
    if not isinstance(axes, Mapping) or not axes:
        raise InputError('axes: a sweep requires at least one, like qdisc = ["codel", "pie"]')
    return [_axis(str(name), axis) for name, axis in axes.items()]


def points(
    tree: Table,
    axes: Sequence[Axis],
    together: Any = (),
    skip: Any = (),
) -> Iterator[tuple[dict[str, Label], Table]]:
    """Yield the labels and the scenario of every point.

    Axes in one list of `together` vary in step. Points with all the labels of an entry of `skip`
    are omitted. The last axis varies fastest. A discipline is set before its parameters,
    independently of the order of the axes.
    """
    known = {axis.name: axis for axis in axes}
    groups = _groups(axes, known, together)
    if not _is_list(skip):
        raise InputError(f"skip: {shown(skip)} is not a list of tables of labels")
    for n, entry in enumerate(skip):
        _check_labels(f"skip.{n}", entry, known)
    for axis in axes:
        if axis.when:
            _check_labels(f"axes.{axis.name}.when", axis.when, known)
        if axis.name in axis.when:
            raise InputError(f"axes.{axis.name}.when: an axis cannot depend on itself")
    total = math.prod(len(group[0].values) for group in groups)
    if total > POINTS_MAX:
        raise InputError(f"axes: {total} points are too many, allowed: up to {POINTS_MAX}")
    places = [(_depth(place), place, axis) for axis in axes for place in axis.places]
    places.sort(key=lambda one: one[0])
    seen = set()
    for chosen in product(*(range(len(group[0].values)) for group in groups)):
        at = {
            axis.name: axis.values[k]
            for group, k in zip(groups, chosen, strict=True)
            for axis in group
        }
        labels = _labels(axes, at)
        if tuple(labels.values()) in seen or any(
            all(labels[name] == value for name, value in entry.items()) for entry in skip
        ):
            continue
        seen.add(tuple(labels.values()))
        changed = copy.deepcopy(tree)
        moving = [(place, axis) for _, place, axis in places if labels[axis.name] != UNSET]
        _check_places(moving)
        for place, axis in moving:
            _set(changed, axis.name, place, at[axis.name][1])
        yield labels, changed


def _labels(axes: Sequence[Axis], at: Mapping[str, tuple[Label, Any]]) -> dict[str, Label]:
    """Return the label of every axis at a point: UNSET if its `when` does not hold there."""
    labels = {axis.name: at[axis.name][0] for axis in axes}
    unset = True
    while unset:  # an axis may depend on another one that becomes unset
        unset = False
        for axis in axes:
            holds = all(labels[name] == value for name, value in axis.when.items())
            if not holds and labels[axis.name] != UNSET:
                labels[axis.name] = UNSET
                unset = True
    return labels


def _depth(place: str) -> int:
    """Return the depth of a path in the scenario: tables are set before their keys."""
    return place.count(".") + (place.split(".")[0] not in SCENARIO_KEYS)


def _check_places(moving: Sequence[tuple[str, Axis]]) -> None:
    """Raise InputError if two axes set the same path at one point."""
    setters: dict[str, str] = {}
    for place, axis in moving:
        name = place.removeprefix("links.").removeprefix("flows.")
        if name in setters:
            message = f"{brief(place)} is set twice, by axes.{setters[name]} too"
            raise InputError(f"axes.{axis.name}.set: {message}")
        setters[name] = axis.name


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _axis(name: str, spec: Any) -> Axis:
    where = f"axes.{brief(name)}"
    if _is_list(spec):
        return Axis(name, (name,), _list(where, spec, ""), {})
    if not isinstance(spec, Mapping):
        raise InputError(f"{where}: {shown(spec)} is not a list of values, nor a table")
    for key in spec:
        if key not in KEYS:
            raise InputError(f"{where}: unknown key {shown(key)}{near(key, KEYS)}")
    places = spec.get("set", name)
    places = (places,) if isinstance(places, str) else places
    if not _is_list(places) or not places or not all(isinstance(one, str) for one in places):
        message = "is not a path like bottleneck.rate, nor a list of paths"
        raise InputError(f"{where}.set: {shown(spec['set'])} {message}")
    unit, when = spec.get("unit", ""), spec.get("when", {})
    if not isinstance(unit, str) or not re.fullmatch(r"[A-Za-zµ/%]*", unit):
        raise InputError(f'{where}.unit: {shown(unit)} is not a unit, like "mbit"')
    if not isinstance(when, Mapping):
        raise InputError(f"{where}.when: {shown(when)} is not a table of labels")
    values = spec.get("values")
    if (values is None) == ("from" not in spec):
        raise InputError(f"{where}: give it either values or from and to")
    if values is None:
        return Axis(name, tuple(places), _list(where, _range(where, spec), unit), when)
    for key in ("to", "step", "points", "log"):
        if key in spec:
            raise InputError(f"{where}.{key}: requires from, and excludes values")
    if isinstance(values, Mapping):
        return Axis(name, tuple(places), _table(f"{where}.values", values, unit), when)
    if not _is_list(values):
        raise InputError(f"{where}.values: {shown(values)} is not a list, nor a table of labels")
    return Axis(name, tuple(places), _list(f"{where}.values", values, unit), when)


def _table(where: str, values: Mapping[Any, Any], unit: str) -> tuple[tuple[Label, Any], ...]:
    """Return the values of a table from labels to values."""
    if unit:
        raise InputError(f"{where}: unit requires numbers, not labelled values")
    if not values:
        raise InputError(f"{where}: there are no values")
    if UNSET in values or not all(isinstance(label, str) for label in values):
        raise InputError(f'{where}: labels must be text other than "{UNSET}"')
    return tuple((label, _plain(f"{where}.{brief(label)}", one)) for label, one in values.items())


def _plain(where: str, value: Any) -> Any:
    """Return a value of an axis as plain data. Raises InputError with its path."""
    if value is None:
        raise InputError(f"{where}: null is not a value")
    try:
        return plain(value)
    except InputError as error:
        text = str(error)
        inside = re.match(r"[^ :]+: ", text)
        raise InputError(f"{where}{'.' if inside else ': '}{text}") from None
    except RecursionError:
        raise InputError(f"{where}: tables are nested too deeply") from None


def _list(where: str, values: Sequence[Any], unit: str) -> tuple[tuple[Label, Any], ...]:
    """Return the values of a list with labels: the value, or the name of a table or model."""
    if not values:
        raise InputError(f"{where}: there are no values")
    labelled: list[tuple[Label, Any]] = []
    for value in values:
        tree = _plain(f"{where}.{len(labelled)}", value)
        if unit:
            if isinstance(tree, bool) or not isinstance(tree, int | float):
                message = f"{shown(tree)} is not a number, which unit requires"
                raise InputError(f"{where}.{len(labelled)}: {message}")
            labelled.append((tree, f"{_digits(tree)}{unit}"))
        else:
            labelled.append((_name(tree), tree))
    labels = [label for label, _ in labelled]
    if len(set(labels)) < len(labels):
        # Values with the same name are labelled with their parameters as well.
        tables = [tree if isinstance(tree, dict) and "name" in tree else {"name": label}
                  for label, tree in labelled]  # fmt: skip
        apart = variants.labels(tables)
        labelled = [(label, tree) for label, (_, tree) in zip(apart, labelled, strict=True)]
        if len({label for label, _ in labelled}) < len(labelled):
            raise InputError(f"{where}: a value is given twice")
    alike = _alike(labelled)
    if UNSET in dict(alike):
        raise InputError(f'{where}: "{UNSET}" is reserved for axes that do not apply')
    if len(dict(alike)) < len(alike):
        raise InputError(f"{where}: two values have the same label")
    return alike


def _digits(number: float) -> str:
    """Format a number without an exponent, which quantities do not allow."""
    return (
        np.format_float_positional(number, trim="-") if isinstance(number, float) else str(number)
    )


def _alike(labelled: list[tuple[Label, Any]]) -> tuple[tuple[Label, Any], ...]:
    """Convert the labels of an axis to one type, so that they form a column."""
    kinds = {type(label) for label, _ in labelled}
    kind = next(iter(kinds)) if len(kinds) == 1 else float if kinds == {int, float} else str
    return tuple((kind(label), value) for label, value in labelled)


def _name(tree: Any) -> Label:
    if isinstance(tree, str | int | float | bool):
        return tree
    if isinstance(tree, Mapping) and "name" in tree:
        return str(tree["name"])
    return json.dumps(tree)


def _range(where: str, spec: Mapping[str, Any]) -> list[float]:
    first, last = (_finite(f"{where}.{key}", spec.get(key)) for key in ("from", "to"))
    log, step, count = spec.get("log", False), spec.get("step"), spec.get("points")
    if not isinstance(log, bool):
        raise InputError(f"{where}.log: {shown(log)} is not true or false")
    if (step is None) == (count is None):
        raise InputError(f"{where}: give it either step or points")
    if log and (step is not None or first <= 0 or last <= 0):
        raise InputError(f"{where}: a log range requires points, and from and to above 0")
    if step is not None:
        step = _finite(f"{where}.step", step)
        if step <= 0 or last < first:
            raise InputError(f"{where}.step: must lead from {first:g} up to {last:g}")
        count = 1 + int(min((last - first) / step + 1e-9, POINTS_MAX))
        numbers = [first + step * k for k in range(count)]
    else:
        if not isinstance(count, int) or isinstance(count, bool) or count < 2:
            raise InputError(f"{where}.points: {shown(count)} is out of range, allowed: 2 or more")
        count = min(count, POINTS_MAX + 1)
        spaced = np.geomspace(first, last, count) if log else np.linspace(first, last, count)
        numbers = spaced.tolist()
    # Ten digits remove rounding errors such as 3 * 0.1 = 0.30000000000000004.
    tidy = [float(f"{value:.10g}") for value in numbers]
    return [int(value) if value == int(value) else value for value in tidy]


def _finite(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = "is missing" if value is None else f"{shown(value)} is not a number"
        raise InputError(f"{where}: {message} (its unit is in unit)")
    if not abs(value) <= NUMBER_MAX:
        raise InputError(f"{where}: {shown(value)} is out of range, allowed: up to {NUMBER_MAX:g}")
    return float(value)


def _groups(axes: Sequence[Axis], known: Mapping[str, Axis], together: Any) -> list[list[Axis]]:
    """Group the axes that vary in step, in the order of the first axis of each group."""
    if not _is_list(together):
        raise InputError(f"together: {shown(together)} is not a list of lists of axes")
    partner: dict[str, int] = {}
    for n, names in enumerate(together):
        if not _is_list(names) or len(names) < 2:
            raise InputError(f"together.{n}: {shown(names)} is not a list of two axes or more")
        for name in names:
            if not isinstance(name, str) or name not in known:
                raise InputError(f"together.{n}: no axis {shown(name)}{near(name, known)}")
            if name in partner:
                raise InputError(f"together.{n}: {shown(name)} is given twice")
            partner[name] = n
        lengths = {len(known[name].values) for name in names}
        if len(lengths) > 1:
            counts = ", ".join(f"{brief(name)} has {len(known[name].values)}" for name in names)
            raise InputError(f"together.{n}: axes must have equally many values; {counts}")
    groups: dict[Any, list[Axis]] = {}
    for axis in axes:
        groups.setdefault(partner.get(axis.name, axis.name), []).append(axis)
    return list(groups.values())


def _check_labels(where: str, entry: Any, known: Mapping[str, Axis]) -> None:
    if not isinstance(entry, Mapping) or not entry:
        message = 'is not a table of labels, like { qdisc = "red" }'
        raise InputError(f"{where}: {shown(entry)} {message}")
    for name, value in entry.items():
        if name not in known:
            raise InputError(f"{where}: no axis {shown(name)}{near(name, known)}")
        labels = [label for label, _ in known[name].values]
        if not any(value == one and isinstance(value, bool) == isinstance(one, bool)
                   for one in labels):  # fmt: skip
            hint = near(value, map(str, labels))
            raise InputError(f"{where}.{brief(name)}: no value {shown(value)} on the axis{hint}")


def _set(tree: Table, name: str, place: str, value: Any) -> None:
    try:
        set_at(tree, place, value)
    except InputError as error:
        raise InputError(f"axes.{brief(name)}: {error}") from None
