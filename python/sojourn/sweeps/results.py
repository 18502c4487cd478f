"""Results in a folder: all rows, or named columns of those that match a condition."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn._util.lazy import Lazy
from sojourn._util.public import public
from sojourn._util.units import counted
from sojourn.result.folders import check_results, kind_of
from sojourn.sweeps import estimates, query
from sojourn.sweeps.compare import load_comparison
from sojourn.sweeps.conditions import given_labels
from sojourn.sweeps.failures import unresolved
from sojourn.sweeps.remote import local, url_of
from sojourn.sweeps.rows import arranged, axes_of, labels_in_order, ordered, row_of
from sojourn.sweeps.runner import CODE
from sojourn.sweeps.scan import Parts
from sojourn.sweeps.store import FAILED, Store

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")


@public
def results(
    directory: str | Path,
    *,
    columns: str | Sequence[str] | None = None,
    where: "pl.Expr | None" = None,
    engine: str | None = None,
    failed: bool = False,
) -> "pl.DataFrame":
    """Return the results in a directory as a frame with one row per run.

    Parameters
    ----------
    directory : str or Path
        Folder of a sweep, or of `--out` of `sojourn run`, `compare` or `paper run`; or a URL of a
        file system that fsspec reads, like "s3://bucket/load".
    columns : str or sequence of str, optional
        Columns to read besides the axes and `seed`, with or without their unit. The others are not
        read from the files, which saves memory if there are many runs. The default is all columns,
        which `means` and `differences` require.
    where : polars.Expr, optional
        Condition for the rows, like ``pl.col("qdisc") == "codel"``. It names columns with their
        units; they need not be among `columns`.
    engine : str, optional
        Identifier of the engine whose rows are returned: rows of different versions are never
        mixed. The default is the engine of this version, or the only one in the folder.
    failed : bool, optional
        True returns the failed runs instead, which other results leave out: with the columns
        `failure_kind`, `failure` (the message) and `failure_attempt` (from 1).

    Returns
    -------
    polars.DataFrame
        The axes, `seed`, the measured columns, then `engine`, `key` and `axes`; sorted by the axes
        and the seed: quantities by value, names in the order of the sweep. A comparison has the
        axis `qdisc`. See `sojourn.sweep` for the columns. With `columns`: the axes, `seed`, and
        these columns. Its method `to_arrow` returns an Arrow table.

    Raises
    ------
    InputError
        If there are no results, or none of `engine`; or `columns` or `where` names a column that
        they do not have.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> import sojourn as sj
    >>> flow = sj.Flow(name="bulk", path=["up"], source=sj.Bulk(start="uniform(0s, 1s)"))
    >>> case = sj.Scenario(duration="2s", links={"up": sj.Link(rate="2mbit")}, flows=[flow])
    >>> with tempfile.TemporaryDirectory() as out:
    ...     rows = sj.sweep(case, {"up.qdisc": ["codel", "pie"]}, seeds=2, out=out)
    ...     codel = pl.col("up.qdisc") == "codel"
    ...     sj.results(out, columns="sojourn_p99", where=codel).columns
    ['up.qdisc', 'seed', 'sojourn_p99_s']
    """
    place = url_of(directory) or directory
    with local(directory) as folder:
        if columns is None:
            return _whole(folder, place, engine, where, failed=failed)
        runs = _opened(folder, place, engine, failed=failed)
        names = [columns] if isinstance(columns, str) else columns
        return runs.frame([query.full_name(runs.schema.names(), name) for name in names], where)


def rows_for(
    directory: str | Path,
    metrics: Sequence[str],
    *,
    settings: Sequence[str] = (),
    by: Sequence[str] = (),
    engine: str | None = None,
) -> "pl.DataFrame":
    """Return the rows of `results` with the columns only that estimates of `metrics` need.

    Parameters
    ----------
    directory : str or Path
        Folder or URL of results.
    metrics : sequence of str
        Columns to estimate, with or without their unit.
    settings : sequence of str, optional
        Conditions AXIS=VALUE, see `query.where`.
    by : sequence of str, optional
        Further columns. Those that do not exist are left out.
    engine : str, optional
        See `results`.

    Raises
    ------
    InputError
        If there are no results, or no such label or column.
    """
    with local(directory) as folder:
        runs = _opened(folder, url_of(directory) or directory, engine)
        where = query.condition(runs.schema.names(), runs.labels, settings)
        names = [query.full_name(runs.schema.names(), name) for name in metrics]
        sources = [one for name in names for one in estimates.sources(runs.schema.names(), name)]
        further = [one for one in (*by, CODE) if one in runs.schema]
        return runs.frame([*names, *sources, *further, "axes"], where)


@dataclass(frozen=True)
class _Runs:
    """Rows of a folder, not yet read, in blocks; `given` has the labels of the folder's notes."""

    blocks: Sequence["pl.LazyFrame"]
    given: Mapping[str, Sequence[Any]]

    @cached_property
    def schema(self) -> "pl.Schema":
        """Columns with their types."""
        return self.blocks[0].collect_schema()

    @cached_property
    def axes(self) -> list[str]:
        """Names of the axes."""
        return axes_of(self.select(pl.col("axes").unique()))

    def select(self, *columns: "pl.Expr", where: "pl.Expr | None" = None) -> "pl.DataFrame":
        """Return columns of all rows that match `where`."""
        blocks = self.blocks
        if where is not None:
            # A condition like `pl.col("x") > pl.col("x").mean()` depends on all rows.
            separable = getattr(where.meta, "is_row_separable", None)
            if separable is None or not separable():
                blocks = [pl.concat(blocks)]
            blocks = [block.filter(where) for block in blocks]
        return pl.concat([block.select(*columns).collect() for block in blocks])

    def labels(self, name: str) -> list[Any]:
        """Return the distinct labels of an axis, or values of a column, in order."""
        values = self.select(pl.col(name).unique())[name].unique().sort()
        return labels_in_order(values, self.given.get(name, ()))

    def of_engine(self, name: str) -> "_Runs":
        """Return the rows of one engine."""
        return replace(
            self, blocks=[block.filter(pl.col("engine") == name) for block in self.blocks]
        )

    def frame(self, names: Sequence[str], where: "pl.Expr | None" = None) -> "pl.DataFrame":
        """Return the axes, `seed` and the columns `names` of the rows that match `where`."""
        _check(where, self.schema.names())
        wanted = dict.fromkeys([*self.axes, "seed", *names])
        # To save memory, rows are sorted by numbers, and columns are read one by one.
        tie = (pl.col("key").hash() // 2**32).cast(pl.UInt32)
        by = [*map(self._place, self.axes), pl.col("seed"), tie]
        numbers = self.select(*(one.alias(str(i)) for i, one in enumerate(by)), where=where)
        order = np.arange(len(numbers), dtype=np.uint32)
        for column in reversed(numbers.get_columns()):  # each sort keeps the order before it
            order = order[column.to_numpy()[order].argsort(kind="stable")]
        del column, numbers
        columns = []
        for name in wanted:
            read = pl.col(name).cast(self._kind(name))
            column = self.select(read, where=where)[name].gather(order)
            columns.append(column.cast(self.schema[name]))
        return pl.DataFrame(columns)

    def _place(self, axis: str) -> "pl.Expr":
        """Return the place of a label of an axis in the order of the axis, or its value."""
        kind = self._kind(axis)
        return pl.col(axis).cast(kind).to_physical() if kind != self.schema[axis] else pl.col(axis)

    def _kind(self, name: str) -> Any:
        """Return the type in which a column is read: labels that are texts as their places."""
        if name not in self.axes or self.schema[name] != pl.String:
            return self.schema[name]
        return pl.Enum([one for one in self.labels(name) if one is not None])


def _check(where: "pl.Expr | None", columns: Sequence[str]) -> None:
    """Raise InputError if a condition is none, or names a column that is not there."""
    if where is None:
        return
    if not isinstance(where, pl.Expr):
        advice = 'a polars expression is required, like pl.col("qdisc") == "codel"'
        raise InputError(f"where: {shown(where)} is not a condition; {advice}")
    for name in where.meta.root_names():
        if name not in columns:
            raise InputError(f"where: no column {shown(name)}{near(name, columns)}")


def _whole(
    directory: Path,
    place: str | Path,
    engine: str | None,
    where: "pl.Expr | None",
    *,
    failed: bool,
) -> "pl.DataFrame":
    """Return all columns."""
    failures = _failed_rows(directory, required=failed)
    rows = failures if failed else _rows(directory, failures)
    runs = _Runs([rows.lazy()], given_labels(directory))
    selected = _of_engine(runs, directory, place, engine, failures, failed=failed)
    table = ordered(selected.select(pl.all()), runs.given)
    _check(where, table.columns)
    return table if where is None else table.filter(where)


def _opened(
    directory: Path, place: str | Path, engine: str | None, *, failed: bool = False
) -> _Runs:
    """Return the rows of a folder of any kind, each once; the parts of a store are not read."""
    failures = _failed_rows(directory, required=failed)
    blocks: list[pl.LazyFrame] = []
    if not failed and kind_of(directory) not in ("run", "comparison"):
        check_results(directory)
        store = _store(directory)
        if paths := store.parts():
            blocks = Parts(tuple(paths)).once()
            _report_damaged(store)
    if not blocks:
        blocks = [(failures if failed else _rows(directory, failures)).lazy()]
    runs = _Runs(blocks, given_labels(directory))
    return _of_engine(runs, directory, place, engine, failures, failed=failed)


def _of_engine(
    runs: _Runs,
    directory: Path,
    place: str | Path,
    engine: str | None,
    failures: "pl.DataFrame",
    *,
    failed: bool,
) -> _Runs:
    """Return the rows of one engine; print lines about rows that are left out."""
    counts = runs.select(pl.col("engine").value_counts()).unnest("engine")
    sizes = dict(counts.group_by("engine").agg(pl.sum("count")).iter_rows())
    engines = sorted(sizes)
    chosen = engine or (engines[0] if len(engines) == 1 else _sojourn.engine())
    if chosen not in engines:
        raise InputError(f"{directory}: no runs of engine {shown(chosen)}{near(chosen, engines)}")
    if others := sum(sizes.values()) - sizes[chosen]:
        left = counted(others, "row of other engines is", "rows of other engines are")
        print(f"sojourn: {place}: {left} left out", file=sys.stderr)
    if not failed and len(failures):
        count = failures["engine"].to_list().count(chosen)
        left = counted(count, "failed run is", "failed runs are")
        advice = f"sojourn results {place} --failed shows why"
        print(f"sojourn: {place}: {left} left out; {advice}", file=sys.stderr)
    selected = runs.of_engine(chosen)
    _report_versions(selected, place)
    return selected


def _report_versions(runs: _Runs, place: str | Path) -> None:
    """Print a line if runs of several versions of a class in Python have the same labels."""
    if CODE not in runs.schema:
        return
    columns = [*runs.axes, "seed", CODE]
    each = runs.select(*map(pl.col, columns)).unique().group_by(*columns[:-1]).len()
    if (most := int(each["len"].max())) > 1:  # type: ignore[arg-type]
        text = f"runs with the same labels are of {most} versions of your own code"
        by = ",".join([*runs.axes, CODE])
        print(f"sojourn: {place}: {text}; --by {by} separates them", file=sys.stderr)


def _store(directory: Path) -> Store:
    """Return the store of a sweep or paper."""
    return Store(directory / "runs" if kind_of(directory) in ("paper", "evaluation") else directory)


def _failed_rows(directory: Path, *, required: bool) -> "pl.DataFrame":
    """Return a row for each failed run of a sweep or paper that has not succeeded since.

    Raises InputError if there is none and `required`.
    """
    store = _store(directory)
    failures = Store(store.directory / FAILED).rows()
    if len(failures):
        failures = unresolved(failures, store.news(set(failures["key"])))
    if required and not len(failures):
        raise InputError(f"{directory}: there are no failed runs")
    return failures


def _report_damaged(store: Store) -> None:
    for name in store.damaged:
        print(f"sojourn: {store.directory}: {name} was damaged and set aside; run the sweep again",
              file=sys.stderr)  # fmt: skip


def _rows(directory: Path, failures: "pl.DataFrame") -> "pl.DataFrame":
    """Return the rows of a folder of any kind; `failures` are its failed runs."""
    from sojourn._util.paths import compared_link
    from sojourn.result.io import load_result

    check_results(directory)
    match kind_of(directory):
        case "run":
            result = load_result(directory, series=False)
            return arranged([row_of(result, compared_link(result.scenario, None), {})])
        case "comparison":
            return load_comparison(directory, series=False).frame()
    store = _store(directory)
    rows = store.rows()
    _report_damaged(store)
    directory = store.directory
    if not len(rows):
        if len(failures):
            advice = f"sojourn results {directory} --failed shows why"
            raise InputError(f"{directory}: all runs failed; {advice}")
        below = [one.name for one in sorted(directory.glob("*")) if kind_of(one)]
        there = f"; there are some in {', '.join(below[:3])}" if below else ""
        raise InputError(f"{directory}: there are no results{there}")
    return rows
