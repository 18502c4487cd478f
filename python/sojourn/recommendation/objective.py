"""Objectives: functions of the measured facts of a run, less is better.

Each objective is the negative logarithm of a responsiveness and of a goodput:

    cost = - ln(mean of shares) - weight ln(use) - weight ln(Jain's index) + loss beyond a limit

A share is the time that a load-free line takes, divided by the time with the load: 1 is perfect.
The responsiveness is the one of "Responsiveness under Working Conditions" (IETF,
draft-ietf-ippm-responsiveness), which gives new and loaded connections equal weights, relative to
the round-trip time of the line, with a third part for pages. So the wait of bulk flows in their own
queue counts: a discipline that protects other flows from them cannot have any target for free.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from sojourn import metrics
from sojourn._util.paths import links_of
from sojourn._util.units import bps_of, seconds
from sojourn.recommendation.line import OBJECT_BYTES, SHAPED
from sojourn.result import select
from sojourn.result.result import Result

Facts: TypeAlias = Mapping[str, float]
"""Facts of a run: `delay_s` (99th percentile of the queueing delay of the worst UDP flow, or of the
worst link if there is none), `loss` (of UDP datagrams), `response_s` (mean time of a request of 1
kB on a flow of its own, or 0), `self_s` (mean queueing delay of both directions, which a request
on a busy connection waits), `transfer_s` (mean completion time of pages and other transfers, or 0),
`use` (goodput of TCP as a share of the line), `jain` (of endless flows, the worst direction),
`rtt_s` (mean round-trip time) and `page_s` (time of a page on a line without load)."""

Objective: TypeAlias = Callable[[Facts], float]
"""Function of the facts of a run that returns a cost."""

SMALLEST = 1e-3
"""Smallest share whose logarithm is taken."""


@dataclass(frozen=True)
class Score:
    """Objective with its weights.

    Attributes
    ----------
    shares : mapping
        Weights of the shares `new` (requests on new flows), `loaded` (on busy connections), `page`
        and `call` (`call_s` / (`call_s` + delay of the worst call)).
    use, jain : float
        Weights of the logarithms of the use of the line and of Jain's index.
    loss_limit : float
        Loss of datagrams from which the cost grows, by the logarithm of its ratio to the limit.
    call_s : float
        Delay of a call that halves its share.
    """

    shares: Mapping[str, float]
    use: float = 1.0
    jain: float = 0.0
    loss_limit: float = 0.01
    call_s: float = 0.05

    def __call__(self, facts: Facts) -> float:
        """Return the cost."""
        known = {name: part for name, part in parts(facts, self.call_s).items() if part is not None}
        weights = {name: weight for name, weight in self.shares.items() if name in known}
        mean = sum(known[name] * weight for name, weight in weights.items()) / sum(weights.values())
        lost = max(0.0, math.log(max(facts["loss"], 1e-9) / self.loss_limit))
        return lost - _log(mean) - self.use * _log(facts["use"]) - self.jain * _log(facts["jain"])


def parts(facts: Facts, call_s: float = 0.05) -> dict[str, float | None]:
    """Return the shares of a run by name; None where the traffic has no such flow."""
    rtt_s, response_s, page_s = facts["rtt_s"], facts["response_s"], facts["transfer_s"]
    return {
        "new": min(1.0, rtt_s / response_s) if response_s else None,
        "loaded": rtt_s / (rtt_s + facts["self_s"]),
        "page": min(1.0, facts["page_s"] / page_s) if page_s else None,
        "call": call_s / (call_s + facts["delay_s"]),
    }


EQUAL = {"new": 1.0, "loaded": 1.0, "page": 1.0}

OBJECTIVES: dict[str, Score] = {
    "balance": Score(EQUAL),
    "calls": Score({**EQUAL, "call": 3.0}, loss_limit=0.005),
    "games": Score({**EQUAL, "call": 3.0}, use=0.5, loss_limit=0.001, call_s=0.02),
    "throughput": Score(EQUAL, use=4.0),
    "fairness": Score(EQUAL, jain=4.0),
}
"""Objectives by the name of `--for`.

Limits of loss: 1 % for a call of any kind (the SLA template of Juniper's session-smart routers),
0.5 % for conferences (the upper end of 0.1 to 0.5 % in the profiles of LibreQoS), 0.1 % for games
(3GPP QCI 3). A call loses half of its share at 50 ms, the best value of a conference in LibreQoS'
profiles; a game at 20 ms, the round-trip time that draft-ietf-ippm-qoo gives for virtual reality.
"""

FORMULAS = {
    "balance": "- ln(mean(new, loaded, page)) - ln(use); loss up to 1 %",
    "calls": "- ln(mean(new, loaded, page, 3 x call)) - ln(use); loss up to 0.5 %, call halves at "
    "50 ms",
    "games": "- ln(mean(new, loaded, page, 3 x call)) - 0.5 ln(use); loss up to 0.1 %, call halves "
    "at 20 ms",
    "throughput": "- ln(mean(new, loaded, page)) - 4 ln(use); loss up to 1 %",
    "fairness": "- ln(mean(new, loaded, page)) - ln(use) - 4 ln(Jain's index); loss up to 1 %",
}
"""The objectives in words."""


def _log(share: float) -> float:
    return math.log(max(share, SMALLEST))


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

    `shaped` is True if the links are shaped to a share of the line. `rtt_s` is the mean round-trip
    time.
    """

    shaped: bool
    rtt_s: float

    @property
    def identity(self) -> str:
        """Identity of the measure in cache keys."""
        return f"sojourn.recommendation 2 {self.shaped} {self.rtt_s}"

    def __call__(self, result: Result) -> dict[str, Any]:
        """Return the facts of a run."""
        groups = {flow["name"]: flow for flow in result.scenario["flows"]}
        udp = [f for f in result.flows.values() if f["kind"] == "udp"]
        delays = [f["delay_p99_s"] for f in udp if f["delay_p99_s"] is not None]
        if not delays:
            delays = [link["sojourn_p99_s"] or 0.0 for link in result.links.values()]
        endless = [name for name, flow in groups.items() if flow["source"]["name"] == "bulk"]
        jains = [
            select.jain([f["goodput_bps"] for f in select.flows_of(result, name)])
            for name in endless
        ]
        used = {link for name in endless for link in links_of(groups[name])}
        line = sum(map(partial(_capacity_bps, result), used)) / (SHAPED if self.shaped else 1.0)
        goodput = sum(f["goodput_bps"] for f in result.flows.values() if f["kind"] == "tcp")
        requests = [_mean(metrics.completion_times_s(result, name)) for name in groups
                    if name == "request"]  # fmt: skip
        pages = [metrics.completion_times_s(result, name) for name in groups if name != "request"]
        fastest = max(bps_of(link["rate"]) for link in result.scenario["links"].values())
        return {
            "delay_s": float(max(delays, default=0.0)),
            "loss": float(select.loss_of_datagrams(udp) or 0.0) if udp else 0.0,
            "response_s": requests[0] if requests else 0.0,
            "self_s": float(sum(link["sojourn_mean_s"] or 0.0 for link in result.links.values())),
            "transfer_s": _mean(np.concatenate([*pages, np.empty(0)])),
            "use": float(goodput / line) if line else 0.0,
            "jain": float(min(jains, default=1.0)),
            "rtt_s": self.rtt_s,
            "page_s": 3 * self.rtt_s + 8 * OBJECT_BYTES / fastest,
        }


def _mean(values: Any) -> float:
    """Return the mean of completion times; 0 without any."""
    return float(np.mean(values)) if len(values) else 0.0
