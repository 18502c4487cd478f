"""Rows of results: one per run, with labels, seed, measured values and cache key."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sojourn._util.order import in_order
from sojourn.scenario.advice import warn_of_equal_seeds
from sojourn.sweeps.axes import UNSET
from sojourn.sweeps.columns import Standard
from sojourn.sweeps.runner import RUN_COLUMNS, key_of

if TYPE_CHECKING:
    import polars as pl

    from sojourn.result.result import Result


def arranged(rows: Sequence[Mapping[str, Any]]) -> "pl.DataFrame":
    """Return rows (see `row_of`) as a frame in the order of `results`."""
    import polars as pl

    frame = pl.DataFrame(list(rows), infer_schema_length=None)
    return ordered(frame.with_columns(pl.col(pl.Null).cast(pl.Float64)))


def row_of(result: "Result", link: str, labels: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a run in the format of a sweep; columns of `link` have no prefix."""
    measure = Standard(link)
    measured = measure(result)
    key = key_of(json.dumps(result.scenario), measure)
    own = (key, result.version, json.dumps([*labels]), json.dumps([*measured]))
    seed = result.scenario["seed"]
    return {**labels, **dict(zip(RUN_COLUMNS, (*own, seed), strict=True)), **measured}


def check_seeds(
    names: Sequence[str], rows: Sequence[Mapping[str, Any]], *, warm: bool = False
) -> None:
    """Warn if all seeds of a point have the same measured values.

    `names` are the axes. With `warm` the runs start from a warm state.
    """
    apart = {*names, *RUN_COLUMNS}
    points: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        label = ", ".join(f"{name} = {row[name]}" for name in names)
        points.setdefault(label, []).append({k: v for k, v in row.items() if k not in apart})
    warn_of_equal_seeds(points, warm=warm)


def axes_of(rows: "pl.DataFrame") -> list[str]:
    """Return the names of the axes in order."""
    names: dict[str, None] = {}
    for text in rows["axes"].unique().sort().to_list():
        names |= dict.fromkeys(json.loads(text))
    return list(names)


def ordered(rows: "pl.DataFrame", values: Mapping[str, Sequence[Any]] = {}) -> "pl.DataFrame":
    """Return a frame with its columns in order: axes, seed, measured, engine, key, axes.

    Rows are sorted by the axes, then the seed. Quantities are in the order of their values, names
    in the order of `values`, by axis; names that are not there keep their order in the frame.
    """
    axes = axes_of(rows)
    rest = [name for name in rows.columns if name not in axes and name not in RUN_COLUMNS]
    columns = [*axes, "seed", *rest, "engine", "key", "axes"]
    order = [places(rows[axis], values.get(axis, ())) for axis in axes]
    return rows.select(columns).sort(*order, "seed", maintain_order=True)


def places(column: "pl.Series", values: Sequence[Any] = ()) -> "pl.Series":
    """Return for each label of an axis its place in the order of the axis."""
    import polars as pl

    labels = pl.Series(labels_in_order(column, values), dtype=column.dtype)
    place = pl.arange(len(labels), eager=True)
    return column.replace_strict(labels, place).alias(f"//{column.name}")


def labels_in_order(column: "pl.Series", values: Sequence[Any] = ()) -> list[Any]:
    """Return the distinct labels of an axis in order: see `ordered`."""
    return in_order(column.unique(maintain_order=True).to_list(), values, UNSET)
