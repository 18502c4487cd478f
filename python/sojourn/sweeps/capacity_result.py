"""Result of `sojourn.capacity`: the answers, and the values that were simulated."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from sojourn._util.lazy import Lazy
from sojourn._util.public import public
from sojourn.result.estimate import Estimate
from sojourn.scenario.draft import Table
from sojourn.sweeps.bisection import Verdict
from sojourn.sweeps.needs import Need

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")

Value: TypeAlias = str | int | float
"""Value of the varied key: text with a unit, or a number."""


@dataclass(frozen=True)
class Probe:
    """Value that was simulated: its estimates of the needs, in order, and the verdict."""

    value: Value
    number: int
    estimates: tuple[Estimate, ...]
    verdict: Verdict


@dataclass(frozen=True)
class CapacityAnswer:
    """Answer for one discipline, or one value of the second key.

    Attributes
    ----------
    qdisc, over : str or None
        Label of the discipline, and the second key with its value (KEY=VALUE); None if not asked.
    find : str
        "largest" or "smallest": the side of the limit on which the needs are met.
    value : str, int, float or None
        The last value at which every need is met by its estimate; None if no value meets them, and
        0 if no count from 1 does.
    low, high : str, int, float or None
        Interval of the value, ascending. The inner end is the last value at which the whole 95 %
        intervals of all needs are within their limits, the outer end the last one at which no whole
        interval is outside. None where there is no interval or the range ends.
    is_bounded : bool
        False if the end of the range meets the needs, so that the limit may be beyond it.
    limited_by : list of str
        The needs that the next value does not meet.
    remarks : list of str
        What else a reader must know, such as needs that are met in several places.
    probes : list of Probe
        The simulated values, ascending.
    at, following : Probe or None
        What was simulated at the value, and at the next one.
    """

    qdisc: str | None
    over: str | None
    find: str
    value: Value | None
    low: Value | None
    high: Value | None
    is_bounded: bool
    limited_by: Sequence[str]
    remarks: Sequence[str]
    probes: Sequence[Probe]
    at: Probe | None
    following: Probe | None

    @property
    def label(self) -> str:
        """The discipline and the value of the second key."""
        return ", ".join(part for part in (self.qdisc, self.over) if part)

    @property
    def over_value(self) -> str:
        """The value of the second key, or an empty text."""
        return (self.over or "").partition("=")[2]

    @property
    def text(self) -> str:
        """The value with its interval, like "26 (25 to 28)", ">= 80", or "none"."""
        if self.value is None:
            return "none"
        if not self.is_bounded:
            return f"{'>=' if self.find == 'largest' else '<='} {self.value}"
        if self.low is None or self.high is None or self.low == self.high:
            return str(self.value)
        return f"{self.value} ({self.low} to {self.high})"

    def summary(self) -> dict[str, Any]:
        """Return the answer as data for JSON."""
        return {
            "qdisc": self.qdisc,
            "over": self.over,
            "find": self.find,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "bounded": self.is_bounded,
            "limited_by": list(self.limited_by),
            "remarks": list(self.remarks),
        }


@public
@dataclass(frozen=True)
class CapacityResult:
    """Result of `sojourn.capacity`.

    Attributes
    ----------
    key : str
        The key that was varied.
    over_key : str or None
        The second key.
    needs : list of Need
        The requirements.
    answers : list of CapacityAnswer
        One answer per discipline and value of the second key.
    seeds : int
        Number of runs of each value.
    runs, executed : int
        Number of runs that the answer needs, and how many of them were not in the store.
    scenario : dict
        The canonical scenario, before any change.
    link : str
        The link whose columns have no prefix.
    """

    key: str
    over_key: str | None
    needs: Sequence[Need]
    answers: Sequence[CapacityAnswer]
    seeds: int
    runs: int
    executed: int
    scenario: Table
    link: str

    def __str__(self) -> str:
        """Return the answers on one line, like "fq_codel 26 (25 to 28), codel none"."""
        return ", ".join(f"{one.label} {one.text}".strip() for one in self.answers)

    def frame(self) -> "pl.DataFrame":
        """Return the simulated values: one row per answer, value and need."""
        import polars as pl

        rows = [
            {
                "qdisc": answer.qdisc,
                "over": answer.over,
                self.key: str(probe.value),
                "need": str(need),
                "value": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "met": need.verdict(estimate).is_met,
            }
            for answer in self.answers
            for probe in answer.probes
            for need, estimate in zip(self.needs, probe.estimates, strict=True)
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def summary(self) -> dict[str, Any]:
        """Return the result as data for JSON."""
        return {
            "vary": self.key,
            "over": self.over_key,
            "needs": [str(need) for need in self.needs],
            "answers": [one.summary() for one in self.answers],
            "seeds": self.seeds,
            "runs": self.runs,
            "executed": self.executed,
            "values": self.frame().to_dicts(),
        }
