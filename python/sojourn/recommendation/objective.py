"""Objectives: functions of the measured facts of a run, less is better."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from sojourn import metrics
from sojourn._util.paths import links_of
from sojourn._util.units import bps_of, seconds
from sojourn.recommendation.line import SHAPED
from sojourn.result import select
from sojourn.result.result import Result

Facts: TypeAlias = Mapping[str, float]
"""Facts of a run: `delay_s` (99th percentile of the queueing delay of the worst UDP flow, or of the
worst link if there is none), `loss` (of UDP datagrams), `transfer_s` (mean completion time, or 0),
`use` (goodput of TCP as a share of the line), `jain` (of endless flows, the worst direction)."""

Objective: TypeAlias = Callable[[Facts], float]
"""Function of the facts of a run that returns a cost."""


def calls(facts: Facts) -> float:
    """2 ln(1 + delay / 10 ms) + 20 loss - ln use."""
    return 2 * _delay(facts, 0.01) + 20 * facts["loss"] - _use(facts)


def games(facts: Facts) -> float:
    """2 ln(1 + delay / 5 ms) + 40 loss - 0.5 ln use."""
    return 2 * _delay(facts, 0.005) + 40 * facts["loss"] - 0.5 * _use(facts)


def throughput(facts: Facts) -> float:
    """0.3 ln(1 + delay / 50 ms) - 4 ln use."""
    return 0.3 * _delay(facts, 0.05) - 4 * _use(facts)


def fairness(facts: Facts) -> float:
    """0.5 ln(1 + delay / 10 ms) - 4 ln jain - ln use."""
    return 0.5 * _delay(facts, 0.01) - 4 * math.log(max(facts["jain"], 1e-3)) - _use(facts)


def balance(facts: Facts) -> float:
    """Return ln(1 + delay / 10 ms) + 10 loss + ln transfer - 2 ln use - ln jain."""
    transfer = math.log(facts["transfer_s"]) if facts["transfer_s"] > 0 else 0.0
    fair = math.log(max(facts["jain"], 1e-3))
    return _delay(facts, 0.01) + 10 * facts["loss"] + transfer - 2 * _use(facts) - fair


OBJECTIVES: dict[str, Objective] = {
    "balance": balance,
    "calls": calls,
    "games": games,
    "throughput": throughput,
    "fairness": fairness,
}
"""Objectives by the name of `--for`."""

FORMULAS = {
    "balance": "ln(1 + delay/10 ms) + 10 loss + ln(transfer time) - 2 ln(use) - ln(Jain's index)",
    "calls": "2 ln(1 + delay/10 ms) + 20 loss - ln(use)",
    "games": "2 ln(1 + delay/5 ms) + 40 loss - 0.5 ln(use)",
    "throughput": "0.3 ln(1 + delay/50 ms) - 4 ln(use)",
    "fairness": "0.5 ln(1 + delay/10 ms) - 4 ln(Jain's index) - ln(use)",
}
"""The objectives in words; "use" is the share of the line that carries payload."""


def _delay(facts: Facts, scale_s: float) -> float:
    return math.log1p(facts["delay_s"] / scale_s)


def _use(facts: Facts) -> float:
    return math.log(max(facts["use"], 1e-3))


def _capacity_bps(result: Result, name: str) -> float:
    """Return the rate of a link, or the mean of its trace over the measured time."""
    spec, link = result.scenario["links"][name], result.links[name]
    if "trace" not in spec or not link["utilisation"]:
        return bps_of(spec["rate"])
    measured_s = seconds(result.scenario["duration"]) - seconds(result.scenario["warmup"])
    return float(8 * link["departed_bytes"] / measured_s / link["utilisation"])


@dataclass(frozen=True)
class Measured:
    """Measure of a run (see `sojourn.sweeps.runner.Measure`): its facts.

    `shaped` is True if the links are shaped to a share of the line.
    """

    shaped: bool

    @property
    def identity(self) -> str:
        """Identity of the measure in cache keys."""
        return f"sojourn.recommendation 1 {self.shaped}"

    def __call__(self, result: Result) -> dict[str, Any]:
        """Return the facts of a run."""
        groups = {flow["name"]: flow for flow in result.scenario["flows"]}
        udp = [f for f in result.flows.values() if f["kind"] == "udp"]
        delays = [f["delay_p99_s"] for f in udp if f["delay_p99_s"] is not None]
        if not delays:
            delays = [link["sojourn_p99_s"] or 0.0 for link in result.links.values()]
        took = metrics.completion_times_s(result)
        endless = [name for name, flow in groups.items() if flow["source"]["name"] == "bulk"]
        jains = [
            select.jain([f["goodput_bps"] for f in select.flows_of(result, name)])
            for name in endless
        ]
        used = {link for name in endless for link in links_of(groups[name])}
        line = sum(map(partial(_capacity_bps, result), used)) / (SHAPED if self.shaped else 1.0)
        goodput = sum(f["goodput_bps"] for f in result.flows.values() if f["kind"] == "tcp")
        return {
            "delay_s": float(max(delays, default=0.0)),
            "loss": float(select.loss_of_datagrams(udp) or 0.0) if udp else 0.0,
            "transfer_s": float(np.mean(took)) if len(took) else 0.0,
            "use": float(goodput / line) if line else 0.0,
            "jain": float(min(jains, default=1.0)),
        }
