"""Agreement of many scenarios: counts by metric and control, and the spread of ratios."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sojourn_lab.validation.random.compare import RULES, Compared, compare
from sojourn_lab.validation.random.draw import Scenario, controls
from sojourn_lab.validation.random.measure import Numbers

LEAST_P99_MS = RULES["p99"].least
"""Delays below it say nothing about a ratio."""


@dataclass(frozen=True)
class Row:
    """A scenario with its comparisons."""

    scenario: Scenario
    compared: dict[str, Compared]

    @property
    def differing(self) -> list[str]:
        """Metrics that differ, the worst first."""
        differ = [(c.size, m) for m, c in self.compared.items() if c.differs]
        return [metric for _, metric in sorted(differ, reverse=True)]

    @property
    def control(self) -> str:
        """Control of all flows, or `mixed`."""
        names = set(controls(self.scenario))
        return names.pop() if len(names) == 1 else "mixed"


def rows(
    runs: Sequence[tuple[Scenario, list[Numbers]]], simulated: Sequence[list[Numbers]]
) -> list[Row]:
    """Return the comparison of each scenario."""
    pairs = zip(runs, simulated, strict=True)
    return [Row(scenario, compare(ours, theirs)) for (scenario, theirs), ours in pairs]


def agreeing(compared: Sequence[Row], metric: str) -> tuple[int, int]:
    """Return the number of scenarios that agree in a metric, and of those that have it."""
    having = [row.compared[metric] for row in compared if metric in row.compared]
    return sum(not c.differs for c in having), len(having)


def without_difference(compared: Sequence[Row]) -> int:
    """Return the number of scenarios that agree in all metrics."""
    return sum(not row.differing for row in compared)


def _ratios(compared: Sequence[Row], metric: str, least: float) -> list[Compared]:
    """Return the comparisons of a metric in which a ratio has a meaning."""
    having = [row.compared[metric] for row in compared if metric in row.compared]
    return [c for c in having if c.log_ratio is not None and max(c.simulated, c.live) >= least]


def spread(compared: Sequence[Row], metric: str) -> tuple[float, float]:
    """Return the rms of the log ratio of a metric, and the part that scatter explains."""
    used = _ratios(compared, metric, LEAST_P99_MS if metric == "p99" else 0.0)
    if not used:
        return math.nan, math.nan
    squares = statistics.mean((c.log_ratio or 0) ** 2 for c in used)
    scatter = statistics.mean((c.error / max(c.simulated, c.live)) ** 2 for c in used)
    return math.sqrt(squares), math.sqrt(scatter)


def by(compared: Sequence[Row], key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
    """Return the rows by a key, in the order of the keys."""
    groups: dict[Any, list[Row]] = {}
    for row in compared:
        groups.setdefault(key(row), []).append(row)
    return dict(sorted(groups.items()))
