"""Queries of rows of runs: selection, means with intervals, paired differences, pivots."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief, near, shown
from sojourn._util.lazy import Lazy
from sojourn._util.public import public
from sojourn.metrics.labels import heading
from sojourn.result.estimate import Estimate, without_interval
from sojourn.scenario.parsing import read_value, split_setting
from sojourn.sweeps import estimates
from sojourn.sweeps.rows import axes_of, labels_in_order, places
from sojourn.sweeps.runner import RUN_COLUMNS

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")


USUAL = ("utilisation", "sojourn_p99_s", "loss_rate")
"""Columns that are shown by default."""

UNITS = ("_s", "_bps", "_bytes", "_packets")
"""Unit suffixes that may be omitted from the name of a column."""


def column(rows: "pl.DataFrame", name: str) -> str:
    """Return the full name of a column given with or without its unit."""
    return full_name(rows.columns, name)


def full_name(columns: Sequence[str], name: str) -> str:
    """Return the one of `columns` that `name` is, with or without its unit."""
    for known in (name, *(f"{name}{unit}" for unit in UNITS)):
        if known in columns:
            return known
    known_names = [one for one in columns if one not in RUN_COLUMNS and not one.endswith("_values")]
    raise InputError(f"no column {shown(name)}{near(name, known_names)}")


def distributions(rows: "pl.DataFrame") -> list[str]:
    """Return the columns with distributions as text, which tables do not show."""
    return [name for name in rows.columns if name.endswith("_values")]


def axis_column(rows: "pl.DataFrame", name: str, option: str) -> str:
    """Return the full name of an axis or column. The error names `option` and lists the axes."""
    try:
        return column(rows, name)
    except InputError:
        axes = axes_of(rows)
        hint = near(name, axes) if axes else " (there are no axes)"
        hint = hint.replace("(known:", "(axes of these runs:")
        raise InputError(f"{option}: no axis {shown(name)}{hint}") from None


def where(rows: "pl.DataFrame", settings: Sequence[str]) -> "pl.DataFrame":
    """Return the rows that match `settings` (AXIS=VALUE); several values of an axis are a union."""
    chosen = condition(rows.columns, lambda name: labels_in_order(rows[name]), settings)
    return rows if chosen is None else rows.filter(chosen)


def condition(
    columns: Sequence[str], labels: Callable[[str], list[Any]], settings: Sequence[str]
) -> "pl.Expr | None":
    """Return the condition of `settings`, as `where` has them; None without settings.

    `labels` returns the distinct labels of a column.
    """
    import polars as pl

    wanted: dict[str, list[Any]] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise InputError(f"--where {brief(setting)}: write it as AXIS=VALUE, like qdisc=codel")
        wanted.setdefault(full_name(columns, name.strip()), []).append(text.strip())
    conditions = []
    for name, texts in wanted.items():
        known = labels(name)
        values = []
        for text in texts:
            matches = [one for one in known if str(one) == text or one == read_value(text)]
            if not matches:
                hint = near(text, [str(one) for one in known])
                raise InputError(f"--where {name}: no runs with {shown(text)}{hint}")
            values += matches
        conditions.append(pl.col(name).is_in(values))
    return pl.all_horizontal(conditions) if conditions else None


@public
def means(
    rows: "pl.DataFrame",
    by: str | Sequence[str] | None = None,
    columns: str | Sequence[str] = USUAL,
    *,
    percentile: float | None = None,
) -> "pl.DataFrame":
    """Return the mean of columns over seeds with its 95 % interval, per combination of axes.

    A percentile like `sojourn_p99_s` is over the values of all runs together.

    Parameters
    ----------
    rows : polars.DataFrame
        Rows of runs: from `sweep`, `results` or `Comparison.frame`.
    by : str or sequence of str, optional
        Axes to group by. They must include every axis that varies. The default is all axes.
    columns : str or sequence of str, optional
        Columns to average, with or without their unit. Runs without a value are ignored, and not
        counted in NAME_runs.
    percentile : float, optional
        Percentile over runs instead of the mean. Its interval is from order statistics.

    Returns
    -------
    polars.DataFrame
        Columns `by`, `runs`, and for each name NAME, NAME_low, NAME_high (null without interval),
        NAME_runs (the number of runs with a value), NAME_values (the number of values of all runs,
        for a percentile of them) and NAME_needed (the number that the value or its interval needs,
        if there are fewer). docs/how-to/sweeps.md describes the intervals.

    Raises
    ------
    InputError
        If an axis varies that is not in `by`, or a column is missing or has no numbers.

    Examples
    --------
    >>> import sojourn as sj
    >>> flow = sj.Flow(name="bulk", path=["up"], source=sj.Bulk(start="uniform(0s, 1s)"))
    >>> case = sj.Scenario(duration="5s", links={"up": sj.Link(rate="2mbit")}, flows=[flow])
    >>> rows = sj.sweep(case, {"up.qdisc": ["codel", "pie"]}, seeds=3)
    >>> sj.means(rows, "up.qdisc", "bulk.goodput").columns[:5]
    ['up.qdisc', 'runs', 'bulk.goodput_bps', 'bulk.goodput_bps_low', 'bulk.goodput_bps_high']
    """
    import polars as pl

    axes, names = _axes(rows, by), _numeric(rows, columns)
    unnamed = [axis for axis in axes_of(rows) if axis not in axes and rows[axis].n_unique() > 1]
    if unnamed:
        raise InputError(
            f'"{unnamed[0]}" varies too: add it to --by, or select with --where {unnamed[0]}=...'
        )
    table_rows = []
    for key, group in rows.group_by(axes, maintain_order=True) if axes else [((), rows)]:
        row: dict[str, Any] = dict(zip(axes, key, strict=True)) | {"runs": len(group)}
        for name in names:
            estimate = estimates.of(group, name, percentile)
            row |= _columns(name, estimate, "runs")
        table_rows.append(row)
    return pl.DataFrame(table_rows, infer_schema_length=None).fill_nan(None)


@public
def differences(
    rows: "pl.DataFrame",
    axis: str,
    reference: Any,
    by: str | Sequence[str] | None = None,
    columns: str | Sequence[str] = USUAL,
) -> "pl.DataFrame":
    """Return the mean difference of columns from a value of an axis, paired by seed.

    A pair is two runs with the same seed and the same other labels: their sources draw the same
    random numbers.

    Parameters
    ----------
    rows : polars.DataFrame
        Rows of runs: from `sweep`, `results` or `Comparison.frame`.
    axis : str
        The axis that has the value.
    reference : str or number
        The value from which the others differ.
    by : str or sequence of str, optional
        Further axes to group by. The default is all axes.
    columns : str or sequence of str, optional
        Columns to compare, with or without their unit.

    Returns
    -------
    polars.DataFrame
        Columns `axis`, the others of `by`, `pairs` (the number of runs that need a partner), and
        for each name NAME, NAME_low, NAME_high (95 % interval) and NAME_pairs, the number of pairs
        in which both runs have a value.

    Raises
    ------
    InputError
        If there are no runs with the reference, or a column is missing or has no numbers.

    Examples
    --------
    >>> import sojourn as sj
    >>> flow = sj.Flow(name="bulk", path=["up"], source=sj.Bulk(start="uniform(0s, 1s)"))
    >>> case = sj.Scenario(duration="5s", links={"up": sj.Link(rate="2mbit")}, flows=[flow])
    >>> runs = sj.compare(case, "droptail,codel", seeds=3)
    >>> found = sj.differences(runs.frame(), "qdisc", "droptail", columns="sojourn_mean_s")
    >>> found["qdisc"].to_list(), found["sojourn_mean_s_high"][0] < 0
    (['codel'], True)
    """
    import polars as pl

    axis, names = axis_column(rows, axis, "axis"), _numeric(rows, columns)
    others = [name for name in _axes(rows, by) if name != axis]
    left = rows.filter(pl.col(axis) != reference)
    right = rows.filter(pl.col(axis) == reference)
    if not len(right):
        known = [str(one) for one in labels_in_order(rows[axis])]
        hint = near(str(reference), known)
        raise InputError(f"--pair: no runs with {axis}={brief(str(reference))}{hint}")
    joined = left.join(right, on=[*others, "seed"], how="left", suffix="//", maintain_order="left")
    table_rows = []
    for key, group in joined.group_by([axis, *others], maintain_order=True):
        row: dict[str, Any] = dict(zip([axis, *others], key, strict=True)) | {"pairs": len(group)}
        for name in names:
            row |= _columns(name, estimates.difference(group, name, "//"), "pairs")
        table_rows.append(row)
    return pl.DataFrame(table_rows, infer_schema_length=None).fill_nan(None)


def _axes(rows: "pl.DataFrame", by: str | Sequence[str] | None) -> list[str]:
    """Return the full names of axes; None stands for all."""
    if "axes" not in rows.columns:
        raise InputError("rows: are not runs of sweep, results or Comparison.frame")
    if by is None:
        return axes_of(rows)
    return [axis_column(rows, name, "by") for name in ([by] if isinstance(by, str) else by)]


def _numeric(rows: "pl.DataFrame", columns: str | Sequence[str]) -> list[str]:
    """Return the full names of columns. Raises InputError if one has no numbers."""
    names = [column(rows, name) for name in ([columns] if isinstance(columns, str) else columns)]
    for name in names:
        if not rows.schema[name].is_numeric():
            raise InputError(f"--metric: {shown(name)} is not a column of numbers")
    return names


def _columns(name: str, estimate: Estimate, counts: str) -> dict[str, Any]:
    """Return the columns of an estimate; `counts` is "runs" or "pairs"."""
    return {
        name: estimate.value,
        f"{name}_low": estimate.low,
        f"{name}_high": estimate.high,
        f"{name}_{counts}": estimate.runs,
        f"{name}_values": estimate.values,
        f"{name}_needed": estimate.needed,
    }


def estimate_in(row: Mapping[str, Any], name: str) -> Estimate:
    """Return the estimate of a column in a row of `means` or `differences`."""
    noun = "pair" if "pairs" in row else "run"
    parts = ("low", "high", f"{noun}s", "values", "needed")
    low, high, runs, values, needed = (row[f"{name}_{part}"] for part in parts)
    return Estimate(row[name], low, high, runs, row[f"{noun}s"], noun, values, needed)


def of_estimates(names: Sequence[str]) -> set[str]:
    """Return the columns of `means` and `differences` that belong to others, as NAME_low does."""
    parts = ("low", "high", "runs", "pairs", "values", "needed")
    return {f"{name}_{part}" for name in names for part in parts}


def pair_of(text: str) -> tuple[str, Any]:
    """Parse AXIS=REFERENCE."""
    try:
        return split_setting(text)
    except InputError:
        raise InputError(
            f"--pair {brief(text)}: write it as AXIS=REFERENCE, like qdisc=droptail"
        ) from None


def pivoted(frame: "pl.DataFrame", axis: str, name: str) -> "pl.DataFrame":
    """Return a table of `means` with one column per value of `axis`, for the column `name`.

    If a mean is over fewer runs than there are, a column VALUE_runs per value of `axis` follows.
    """
    if axis not in frame.columns:
        raise InputError(f"--pivot: no axis {shown(axis)}{near(axis, frame.columns)}")
    keep = [c for c in frame.columns[: frame.columns.index("runs")] if c != axis]
    counts = f"{name}_runs"
    fewer = frame.schema[name].is_numeric() and bool((frame[counts] < frame["runs"]).any())
    if not keep:
        return frame.select(axis, name, *([counts] if fewer else []))
    table = frame.pivot(axis, index=keep, values=name, maintain_order=True)
    across = frame[axis].unique(maintain_order=True).to_list()
    names = dict(zip(across, table.columns[len(keep) :], strict=True))
    shown_names = [names[one] for one in labels_in_order(frame[axis])]
    if fewer:
        runs = frame.pivot(axis, index=keep, values=counts, maintain_order=True).drop(keep)
        table = table.hstack(runs.rename({one: f"{one}_runs" for one in runs.columns}))
        shown_names += [f"{one}_runs" for one in shown_names]
    table = table.select(*keep, *shown_names)
    return table.sort(*(places(table[one]) for one in keep), maintain_order=True)


def as_text(frame: "pl.DataFrame", name: str) -> "pl.DataFrame":
    """Return a table of `means` with the cells of `name` as text, in the unit of `heading`."""
    import polars as pl

    scale = heading(name).scale
    estimates = (estimate_in(row, name) for row in frame.iter_rows(named=True))
    cells = [without_interval(one).times(scale).text() for one in estimates]
    return frame.with_columns(pl.Series(name, cells, dtype=pl.String))
