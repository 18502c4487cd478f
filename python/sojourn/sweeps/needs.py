"""Requirements on the results of runs: `METRIC < VALUE`, as `sojourn capacity` reads them."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn import _sojourn, metrics
from sojourn._sojourn import InputError
from sojourn._util.inputs import brief, near, of_link, shown
from sojourn._util.lazy import Lazy
from sojourn._util.paths import compared_link
from sojourn._util.units import bps_of, bytes_of, duration, rate, seconds, share, short
from sojourn.metrics.labels import SHARES
from sojourn.result.estimate import Estimate
from sojourn.scenario.draft import Table
from sojourn.scenario.parsing import read_value
from sojourn.scenario.variants import split
from sojourn.sweeps import estimates
from sojourn.sweeps.bisection import Verdict
from sojourn.sweeps.columns import Standard, column, read_metrics
from sojourn.sweeps.query import UNITS

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")

FORM = re.compile(r"\s*([^<>=]+(?:\([^()]*\))?)\s*(<=|>=|<|>)\s*([^<>=]+?)\s*")
"""Form of a need: a column or a metric with arguments, a comparison, a value."""

HIDDEN = ("_values",)
"""Endings of columns that are not numbers."""


@dataclass(frozen=True)
class Need:
    """Requirement on a column: below `limit`, or above it if `is_above`, in the column's unit.

    `name` is the column as the user wrote it, and `text` the whole requirement.
    """

    name: str
    text: str
    column: str
    is_above: bool
    limit: float

    def __str__(self) -> str:
        """Return the need as the user wrote it."""
        return self.text

    def value_text(self, value: float) -> str:
        """Return a value of the column with its unit."""
        match _unit(self.column):
            case "s":
                return duration(value)
            case "bps":
                return rate(value)
            case "share":
                return share(value)
            case unit:
                return f"{short(value)} {unit}".rstrip()

    def estimate(self, rows: "pl.DataFrame") -> Estimate:
        """Return the estimate of the column over the runs of one value."""
        return estimates.of(rows, self.column)

    def verdict(self, estimate: Estimate) -> Verdict:
        """Judge an estimate. A column without a value, as when nothing arrives, is not met."""
        if estimate.value is None:
            return Verdict(is_met=False, is_sure=False, is_out=False, has_interval=False)
        met = self._holds(estimate.value)
        if estimate.low is None or estimate.high is None:
            return Verdict(met, is_sure=False, is_out=False, has_interval=False)
        ends = [self._holds(end) for end in (estimate.low, estimate.high)]
        return Verdict(met, is_sure=all(ends), is_out=not any(ends))

    def _holds(self, value: float) -> bool:
        return value >= self.limit if self.is_above else value <= self.limit


def together(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on all needs: met if all are, out if one is."""
    return Verdict(
        all(one.is_met for one in verdicts),
        all(one.is_sure for one in verdicts),
        any(one.is_out for one in verdicts),
        all(one.has_interval for one in verdicts),
    )


def read_needs(
    texts: Sequence[str], canonical: Table, link: str | None
) -> tuple[list[Need], Standard]:
    """Return the needs of a canonical scenario, and the measure that has their columns.

    Raises InputError for a need that has another form, an unknown column, or a value of another
    unit.
    """
    if isinstance(texts, str) or not texts:
        raise InputError("--need: give at least one, like 'call.delay_p99 < 30ms'")
    measured = compared_link(canonical, link)
    called: dict[str, Mapping[str, Any]] = {}
    parts = []
    for text in texts:
        match = FORM.fullmatch(str(text))
        if not match:
            raise InputError(f"--need {brief(str(text))}: write it as 'METRIC < VALUE' or >")
        name = match[1].strip()
        if (call := _metric(name)) is not None:
            called[name] = call
        parts.append((str(text), name, match[2], match[3]))
    try:
        measure = Standard(measured, read_metrics(list(called.values())))
        missing = measure.missing(canonical)
    except InputError as error:
        raise InputError(f"--need: {error}") from None
    for place, message in missing:
        raise InputError(f"--need: {place}: {message}")
    known = [one for one in measure.columns(canonical) if not one.endswith(HIDDEN)]
    columns = dict(zip(called, (column(*one) for one in measure.chosen), strict=True))
    needs = []
    for text, name, sign, value in parts:
        where = f"--need {brief(text)}"
        full = columns.get(name) or _column(where, name, known, measured)
        limit = limit_of(where, full, value)
        needs.append(Need(name, f"{name} {sign} {value}", full, sign.startswith(">"), limit))
    if len({(one.column, one.is_above) for one in needs}) < len(needs):
        raise InputError("--need: two needs are about the same side of a column")
    return needs, measure


def _metric(text: str) -> dict[str, Any] | None:
    """Return a metric with its arguments, like `jain_index(group=web)`; None for a column."""
    name, parenthesis, rest = text.partition("(")
    if not parenthesis and name not in metrics.METRICS:
        return None
    arguments: dict[str, Any] = {"name": name.strip()}
    for part in filter(None, split(rest.removesuffix(")"))):
        key, _, value = part.partition("=")
        arguments[key.strip()] = read_value(value.strip())
    return arguments


def _column(where: str, name: str, known: Sequence[str], link: str) -> str:
    """Return the full name of a column given with or without its unit, or with its link."""
    bare = name.removeprefix(f"{link}.")
    for one in (name, bare):
        for full in (one, *(f"{one}{unit}" for unit in UNITS)):
            if full in known:
                return full
    raise InputError(f"{where}: no column {shown(name)}{near(name, known)}")


def _unit(name: str) -> str:
    """Return the unit of a column: s, bps, bytes, packets, share, or nothing."""
    bare = name.partition("(")[0].rpartition(".")[2]
    if bare in metrics.METRICS:
        unit = metrics.METRICS[bare].unit
        known = {"s": "s", "bit/s": "bps", "bytes": "bytes", "packets": "packets"}
        return "share" if unit.startswith("share") else known.get(unit, "")
    if bare in SHARES:
        return "share"
    return next((one for one in ("s", "bps", "bytes", "packets") if bare.endswith(f"_{one}")), "")


def limit_of(where: str, name: str, text: str) -> float:
    """Return the value of a need in the unit of its column. Raises InputError for another unit."""
    match _unit(name):
        case "s":
            return seconds(of_link(where, "delay", text))
        case "bps":
            return bps_of(of_link(where, "rate", text))
        case "bytes":
            tree = {"link": {"rate": "1mbit", "qdisc": {"name": "droptail", "limit": text}}}
            try:
                links = json.loads(_sojourn.canonical_links(json.dumps(tree)))
                return float(bytes_of(links["link"]["qdisc"]["limit"]))
            except (InputError, AssertionError):
                raise InputError(f"{where}: {shown(text)} is not a size like 300kB") from None
        case unit:
            return _number(where, text, unit)


def _number(where: str, text: str, unit: str) -> float:
    """Return a number or, where the unit is a share, a percentage."""
    match = re.fullmatch(r"([0-9.]+(?:e-?[0-9]+)?)\s*(%|p)?", text)
    allowed = {"%": unit == "share", "p": unit == "packets", None: True}
    try:
        value = float(match[1]) if match and allowed[match[2]] else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        like = {"share": "0.01 or 1%", "packets": "100"}.get(unit, "0.9")
        raise InputError(f"{where}: {shown(text)} is not a number like {like}")
    assert match
    return value / 100 if match[2] == "%" else value
