"""Rules by which a simulated and a live scenario differ.

A metric differs if the means of both sides are further apart than its limit, than its least
difference, and than three standard errors. The error has three parts: the spread over the
simulated seeds, the spread over the live runs (at least that over the seeds, since two runs show
little of it), and a floor for what a run of this length can resolve.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sojourn_lab.validation.random.measure import Numbers

ERRORS = 3
"""Number of standard errors."""

SHARES = ("loss", "marks", "retx", "ack_loss")
"""Metrics in % of packets."""


@dataclass(frozen=True)
class Rule:
    """Limits of a metric."""

    limit: float
    """Largest ratio of the two means; largest difference if `ratio` is false."""
    least: float = 0.0
    """Absolute difference that is never counted as one, in the unit of the metric."""
    ratio: bool = True


RULES: Mapping[str, Rule] = {
    "goodput": Rule(1.1),
    "loss": Rule(2, 0.2),
    "marks": Rule(2, 0.2),
    "delay": Rule(1.3, 1.0),
    "p99": Rule(1.3, 5.0),
    "fct": Rule(1.25, 5.0),
    "retx": Rule(2, 0.3),
    "timeouts": Rule(2, 4),
    "jain": Rule(0.1, ratio=False),
    "share": Rule(0.1, ratio=False),
    "acks": Rule(1.15),
    "ack_loss": Rule(2, 1.0),
}


@dataclass(frozen=True)
class Compared:
    """Comparison of one metric of one scenario."""

    simulated: float
    live: float
    error: float
    """Standard error of the difference."""
    size: float
    """Difference in units of the limit."""
    differs: bool

    @property
    def log_ratio(self) -> float | None:
        """Logarithm of live over simulated, or None if one of them is 0."""
        if min(self.simulated, self.live) <= 0:
            return None
        return math.log(self.live / self.simulated)


def _floor(metric: str, simulated: float, live: float, packets: float) -> float:
    """Return the smallest standard error that is assumed for a difference."""
    if metric in SHARES:
        expected = max(1.0, max(simulated, live) / 100 * packets)
        return 100 * math.sqrt(expected) / max(1.0, packets)
    return {
        "goodput": 0.01 * simulated,
        "delay": 0.02 * simulated + 0.2,
        "p99": 0.05 * simulated + 1,
        "fct": 0.02 * simulated + 1,
        "timeouts": math.sqrt(max(1.0, simulated)),
        "jain": 0.02,
        "share": 0.02,
        "acks": 0.02 * simulated,
    }[metric]


def _size(rule: Rule, simulated: float, live: float) -> float:
    """Return the difference in units of the limit; infinite if one of two ratios is 0."""
    if not rule.ratio:
        return abs(live - simulated) / rule.limit
    if min(simulated, live) <= 0:
        return math.inf
    return abs(math.log(live / simulated)) / math.log(rule.limit)


def _one(metric: str, ours: list[float], theirs: list[float], packets: float) -> Compared:
    """Compare one metric."""
    rule = RULES[metric]
    simulated, live = statistics.mean(ours), statistics.mean(theirs)
    spread = statistics.stdev(ours) if len(ours) > 1 else 0.0
    live_spread = max(spread, statistics.stdev(theirs) if len(theirs) > 1 else 0.0)
    error = math.sqrt(
        spread**2 / len(ours)
        + live_spread**2 / len(theirs)
        + _floor(metric, simulated, live, packets) ** 2
    )
    apart = abs(live - simulated)
    size = _size(rule, simulated, live)
    differs = size > 1 and apart > rule.least and apart > ERRORS * error
    return Compared(simulated, live, error, size, differs)


def compare(ours: Sequence[Numbers], theirs: Sequence[Numbers]) -> dict[str, Compared]:
    """Compare the simulated with the live runs of a scenario, by metric."""
    packets = statistics.mean(run["packets"] or 0 for run in (*ours, *theirs))
    result = {}
    for metric in RULES:
        simulated = [x for run in ours if (x := run.get(metric)) is not None]
        live = [x for run in theirs if (x := run.get(metric)) is not None]
        if simulated and live:
            result[metric] = _one(metric, simulated, live, packets)
    return result
