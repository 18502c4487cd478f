"""Replay of the recorded live runs of the repository, as tests and CI do it."""

from collections.abc import Mapping

from sojourn_lab.validation.random import records
from sojourn_lab.validation.random.agreement import Row, rows
from sojourn_lab.validation.random.draw import PRESETS, named
from sojourn_lab.validation.random.simulate import simulate

SCENARIOS = 80
"""Scenarios that CI simulates, the first of the file."""

SEEDS = 3
"""Simulated runs of a scenario: with three, the errors are larger than on the page."""

FLOORS: Mapping[str, float] = {
    "goodput": 0.96,
    "loss": 0.97,
    "marks": 0.96,
    "delay": 0.96,
    "p99": 0.96,
    "fct": 0.88,
    "retx": 0.97,
    "timeouts": 0.97,
    "jain": 0.93,
    "share": 0.71,
    "acks": 0.8,
    "ack_loss": 0.8,
}
"""Least share of scenarios that agree in a metric: as measured, less two scenarios."""


def replay(
    names: Mapping[str, str] = PRESETS, scenarios: int = SCENARIOS, seeds: int = SEEDS
) -> list[Row]:
    """Simulate recorded scenarios anew with a family of names, and compare."""
    runs = records.runs(records.read(records.RECORDED))[:scenarios]
    simulated = simulate([named(scenario, names) for scenario, _ in runs], seeds, jobs=1)
    return rows(runs, simulated)
