"""Estimates of the columns of a sweep: which statistic each has, and which has no interval.

- Percentiles of values (`sojourn_p99_s`, `GROUP.fct_p95_s`, ...) are over the values of all runs
  together, with intervals that resample whole runs (`sojourn.result.percentiles`).
- Means, rates and counts are means over runs with Student's t. A count of rare events, or a share
  of them, has an interval from 20 events on.
- Maxima, fairness indices and percentiles of single runs have no interval: their means over few
  runs are too skewed for one (docs/how-to/sweeps.md has the measured coverage).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from sojourn._sojourn import InputError
from sojourn.result.distribution import Distribution
from sojourn.result.estimate import Estimate, Values, difference_of, mean_of, without_interval
from sojourn.result.percentiles import percentile_difference_of, percentile_of, values_for_value
from sojourn.result.statistics import percentile, runs_for_interval

if TYPE_CHECKING:
    import polars as pl

PERCENTILE = re.compile(r"((?:.*\.)?(?:sojourn|fct|delay|frame_delay))_p(\d+)_s")
"""Column of a percentile of the values of a run."""

CALLED = re.compile(r"(\w+)\((.*)\)")
"""Column of a metric with arguments."""

METRICS = {
    "queueing_delay_percentile_s": ("link", "sojourn", 99.0),
    "fct_percentile_s": ("group", "fct", None),
    "frame_delay_percentile_s": ("group", "frame_delay", 95.0),
}
"""Metrics that are percentiles of values: argument with the owner, values, default of `percent`."""

SKEWED = re.compile(r"(.*\.)?(jain|\w+_max_s)|(jain_index|min_max_ratio|\w+_percentile_s)(\(.*\))?")
"""Columns without an interval."""

SHARES = {"loss_rate": ("dropped_packets", "lost_packets"), "mark_rate": ("marked_packets",)}
"""Columns that are shares of events, and the columns with the number of events."""

COUNTS = re.compile(r"(.*\.)?(\w+_packets|timeouts|completed|unfinished)")
"""Columns that are numbers of events."""


@dataclass(frozen=True)
class Pooled:
    """Percentile of the values in a column of distributions."""

    column: str
    percent: float


def of(rows: "pl.DataFrame", name: str, percent: float | None = None) -> Estimate:
    """Return the estimate of a column from the rows of runs of one point.

    With `percent`, it is that percentile over runs, with an interval from order statistics.

    Raises
    ------
    InputError
        If a distribution in the rows is damaged.
    """
    values = _values(rows, name)
    if percent is not None:
        return _over_runs(values, percent)
    if (pooled := _pooled(rows, name)) is not None:
        return percentile_of(_distributions(rows, pooled.column), pooled.percent)
    if PERCENTILE.fullmatch(name) or SKEWED.fullmatch(name):
        return without_interval(mean_of(values))
    return mean_of(values, _events(rows, name, values))


def may_have_interval(name: str) -> bool:
    """Return True if a column has an interval, given enough runs and values."""
    if name.endswith("_values"):
        return False
    return name.partition("(")[0] in METRICS or SKEWED.fullmatch(name) is None


def difference(rows: "pl.DataFrame", name: str, suffix: str) -> Estimate:
    """Return the difference of a column from the column with `suffix`, paired by row."""
    if (pooled := _pooled(rows, name)) is not None:
        ours, theirs = (_distributions(rows, pooled.column + end) for end in ("", suffix))
        return percentile_difference_of(ours, theirs, pooled.percent)
    estimate = difference_of(_values(rows, name), _values(rows, name + suffix))
    no_interval = PERCENTILE.fullmatch(name) or SKEWED.fullmatch(name)
    return without_interval(estimate) if no_interval else estimate


def _values(rows: "pl.DataFrame", name: str) -> Values:
    values: Values = rows[name].cast(float).to_list()
    return values


def _over_runs(values: Values, percent: float) -> Estimate:
    """Return a percentile over runs. It needs as many runs as `values_for_value` has values."""
    known = [value for value in values if value is not None]
    number, least, enough = len(known), values_for_value(percent), runs_for_interval(percent)
    if number < least:
        return Estimate(None, None, None, number, len(values), values=number, needed=least)
    value, low, high = percentile(known, percent)
    if enough is None or number < enough:
        return Estimate(value, None, None, number, len(values), values=number, needed=enough)
    return Estimate(value, low, high, number, len(values), values=number)


def _percentile(name: str) -> Pooled | None:
    """Return the percentile of values that the name of a column says; None for others."""
    if match := PERCENTILE.fullmatch(name):
        return Pooled(f"{match[1]}_values", float(match[2]))
    called = CALLED.fullmatch(name)
    metric, text = (called[1], called[2]) if called else (name, "")
    if metric not in METRICS:
        return None
    owner, what, usual = METRICS[metric]
    options = dict(part.partition("=")[::2] for part in text.split(","))
    if "percent" not in options and usual is None:
        return None
    prefix = f"{options[owner]}." if owner in options else ""
    return Pooled(f"{prefix}{what}_values", float(options.get("percent", usual or 0)))


def _pooled(rows: "pl.DataFrame", name: str) -> Pooled | None:
    """Return the percentile that a column is; None for others, and without distributions."""
    pooled = _percentile(name)
    if pooled is None:
        return None
    known = pooled.column in rows.columns and rows[pooled.column].count()
    # A run with a value but without a distribution: on real packets, or of an earlier version.
    lacks = known and (rows[name].is_not_null() & rows[pooled.column].is_null()).any()
    return pooled if known and not lacks else None


def sources(columns: Sequence[str], name: str) -> list[str]:
    """Return the other ones of `columns` from which the estimate of a column is computed."""
    pooled = _percentile(name)
    names = [] if pooled is None else [pooled.column]
    return [one for one in (*names, *_counts(name)) if one in columns]


def _distributions(rows: "pl.DataFrame", column: str) -> Sequence[Distribution | None]:
    try:
        return [None if text is None else _parsed(text) for text in rows[column]]
    except (ValueError, OverflowError, AttributeError):
        raise InputError(f"column {column}: is not a column of distributions") from None


@lru_cache(4096)
def _parsed(text: str) -> Distribution:
    """Return a distribution; several percentiles are of the same one."""
    return Distribution.parse(text)


def _events(rows: "pl.DataFrame", name: str, values: Values) -> Values | None:
    """Return the number of events of each run that a column counts or is a share of."""
    if COUNTS.fullmatch(name):
        return values
    column = next((one for one in _counts(name) if one in rows.columns), None)
    return None if column is None else _values(rows, column)


def _counts(name: str) -> list[str]:
    """Return the columns that may have the number of events of which a column is a share."""
    owner, dot, what = name.rpartition(".")
    return [f"{owner}{dot}{counts}" for counts in SHARES.get(what, ())]
