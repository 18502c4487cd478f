"""Simulated runs of scenarios, in several processes."""

import concurrent.futures
import multiprocessing
import os
import warnings
from collections.abc import Sequence

import sojourn as sj
from sojourn_lab.validation.random.draw import Scenario
from sojourn_lab.validation.random.measure import Numbers, measure

NICENESS = 10
"""Live runs at the same time need the processor first."""


def one(scenario: Scenario) -> Numbers:
    """Simulate a scenario once, and return its numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # traps that the draw does not avoid, such as ecn in vain
        return measure(sj.simulate(scenario, threads=1).summary)


def _begin() -> None:
    os.nice(NICENESS)


def simulate(scenarios: Sequence[Scenario], seeds: int, jobs: int) -> list[list[Numbers]]:
    """Return the numbers of each scenario, one per seed."""
    runs = [{**scenario, "seed": seed} for scenario in scenarios for seed in range(1, seeds + 1)]
    if jobs == 1:
        numbers = list(map(one, runs))
    else:
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(jobs, context, _begin) as pool:
            numbers = list(pool.map(one, runs, chunksize=seeds))
    return [numbers[i : i + seeds] for i in range(0, len(numbers), seeds)]
