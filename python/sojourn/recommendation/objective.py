"""Objectives: functions of the measured facts of a run, less is better.

    cost = - ln(mean of shares) - use ln(use) - jain ln(Jain's index of flows)
           - hosts ln(Jain's index of hosts) + loss beyond a limit

A share is the time that a load-free line takes, divided by the time with the load: 1 is perfect.
The responsiveness is the one of "Responsiveness under Working Conditions" (IETF,
draft-ietf-ippm-responsiveness), which gives new and loaded connections equal weights, relative to
the round-trip time of the line, with parts for pages and for the worst window. So the wait of bulk
flows in their own queue counts: a discipline that protects other flows from them cannot have any
target for free.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from sojourn import metrics
from sojourn._util.paths import links_of
from sojourn._util.units import seconds
from sojourn.recommendation.line import OBJECT_BYTES
from sojourn.result import select
from sojourn.result.result import Result

Facts: TypeAlias = Mapping[str, float]
"""Facts of a run: `delay_s` (99th percentile of the queueing delay of the worst UDP flow, or of the
worst link if there is none), `loss` (of UDP datagrams), `response_s` (mean time of a request of 1
kB on a flow of its own, or 0), `self_s` (mean queueing delay of both directions, which a request
on a busy connection waits), `worst_s` (the same in the worst window, a twentieth of the run),
`transfer_s` and `tail_s` (mean and 99th percentile of the completion times of pages and other
transfers, or 0), `use` (goodput of TCP as a share of the line), `jain` (of the endless flows of a
host, the worst group), `hosts` (Jain's index of the goodputs of hosts, the worst direction),
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
        Weights of the shares: `new` (requests on new flows), `loaded` (on busy connections),
        `worst` (the same in the worst window), `page` and `tail` (mean and 99th percentile of
        transfers), `call` (`rating`) and `game` (20 ms / (20 ms + delay of the worst UDP flow)).
    use, jain, hosts : float
        Weights of the logarithms of the use of the line, and of Jain's index of flows and hosts.
    loss_limit : float
        Loss of datagrams from which the cost grows, by the logarithm of its ratio to the limit.
    """

    shares: Mapping[str, float]
    use: float = 1.0
    jain: float = 0.0
    hosts: float = 1.0
    loss_limit: float = 0.01

    def __call__(self, facts: Facts) -> float:
        """Return the cost."""
        known = {name: part for name, part in parts(facts).items() if part is not None}
        weights = {name: weight for name, weight in self.shares.items() if name in known}
        mean = sum(known[name] * weight for name, weight in weights.items()) / sum(weights.values())
        lost = max(0.0, math.log(max(facts["loss"], 1e-9) / self.loss_limit))
        fair = self.jain * _log(facts["jain"]) + self.hosts * _log(facts["hosts"])
        return lost - _log(mean) - self.use * _log(facts["use"]) - fair


GAME_S = 0.02
"""Delay at which a game has half of its share: what draft-ietf-ippm-qoo allows virtual reality."""


def parts(facts: Facts) -> dict[str, float | None]:
    """Return the shares of a run by name; None where the traffic has no such flow."""
    rtt_s, page_s = facts["rtt_s"], facts["page_s"]

    def share(ideal_s: float, took_s: float) -> float | None:
        return min(1.0, ideal_s / took_s) if took_s else None

    return {
        "new": share(rtt_s, facts["response_s"]),
        "loaded": rtt_s / (rtt_s + facts["self_s"]),
        "worst": rtt_s / (rtt_s + facts["worst_s"]),
        "page": share(page_s, facts["transfer_s"]),
        "tail": share(page_s, facts["tail_s"]),
        "call": rating(rtt_s / 2 + facts["delay_s"], facts["loss"]),
        "game": GAME_S / (GAME_S + facts["delay_s"]),
    }


def rating(delay_s: float, loss: float) -> float:
    """Return the rating of a call of ITU-T G.107 as a share of its highest one, 93.2.

    The parts for delay and loss of the E-model are counted, the others have their defaults. The
    codec is G.711 without concealment (G.113, Bpl = 4.3), and losses are independent.

    Parameters
    ----------
    delay_s : float
        One-way delay with the buffer of the receiver, which has the 99th percentile, in seconds.
    loss : float
        Share of lost datagrams.
    """
    delay_ms, loss_percent = 1e3 * delay_s, 100 * loss
    delayed = 0.024 * delay_ms + 0.11 * max(0.0, delay_ms - 177.3)
    lost = 95 * loss_percent / (loss_percent + 4.3)
    return max(0.0, 93.2 - delayed - lost) / 93.2


EQUAL = {"new": 1.0, "loaded": 1.0, "worst": 1.0, "page": 1.0}

OBJECTIVES: dict[str, Score] = {
    "home": Score(EQUAL),
    "office": Score({**EQUAL, "call": 2.0}, loss_limit=0.005),
    "server": Score({**EQUAL, "page": 2.0}),
    "datacentre": Score({"new": 1.0, "loaded": 1.0, "worst": 1.0, "tail": 1.0}),
    "calls": Score({**EQUAL, "call": 4.0}, loss_limit=0.005),
    "games": Score({**EQUAL, "game": 4.0}, use=0.5, loss_limit=0.001),
    "throughput": Score(EQUAL, use=4.0),
    "fairness": Score(EQUAL, jain=4.0, hosts=4.0),
}
"""Objectives by the name of `--for`; the default is the one with the name of the traffic.

Limits of loss: 1 % for a call of any kind (the SLA template of Juniper's session-smart routers),
0.5 % for conferences (the upper end of 0.1 to 0.5 % in the profiles of LibreQoS), 0.1 % for games
(3GPP QCI 3). The visitors of a server wait for its transfers, which count twice. A job in a data
centre waits for the last one of many transfers, so their 99th percentile counts.
"""

FORMULAS = {
    "home": "- ln(mean(new, loaded, worst, page)) - ln(use) - ln(hosts); loss up to 1 %",
    "office": "- ln(mean(new, loaded, worst, page, 2 x call)) - ln(use) - ln(hosts); loss up to "
    "0.5 %",
    "server": "- ln(mean(new, loaded, worst, 2 x page)) - ln(use) - ln(hosts); loss up to 1 %",
    "datacentre": "- ln(mean(new, loaded, worst, tail)) - ln(use) - ln(hosts); loss up to 1 %",
    "calls": "- ln(mean(new, loaded, worst, page, 4 x call)) - ln(use) - ln(hosts); loss up to "
    "0.5 %",
    "games": "- ln(mean(new, loaded, worst, page, 4 x game)) - 0.5 ln(use) - ln(hosts); loss up to "
    "0.1 %",
    "throughput": "- ln(mean(new, loaded, worst, page)) - 4 ln(use) - ln(hosts); loss up to 1 %",
    "fairness": "- ln(mean(new, loaded, worst, page)) - ln(use) - 4 ln(jain) - 4 ln(hosts); loss "
    "up to 1 %",
}
"""The objectives in words."""


def objective_of(name: str | None, traffic: str) -> str:
    """Return the name of an objective, by default the one of the traffic, or "home"."""
    return name or (traffic if traffic in OBJECTIVES else "home")


def _log(share: float) -> float:
    return math.log(max(share, SMALLEST))


def _capacity_bps(result: Result, name: str, bps: float) -> float:
    """Return the rate of a direction, or the mean of its trace over the measured time."""
    spec, link = result.scenario["links"][name], result.links[name]
    if "trace" not in spec or not link["utilisation"]:
        return bps
    return float(8 * link["departed_bytes"] / select.window_s_of(result) / link["utilisation"])


@dataclass(frozen=True)
class Measured:
    """Measure of a run (see `sojourn.sweeps.runner.Measure`): its facts.

    `down_bps` and `up_bps` are the rates of the line, which a shaper does not reduce. `rtt_s` is
    the mean round-trip time.
    """

    down_bps: float
    up_bps: float
    rtt_s: float

    @property
    def identity(self) -> str:
        """Identity of the measure in cache keys."""
        return f"sojourn.recommendation 3 {self.down_bps} {self.up_bps} {self.rtt_s}"

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
        rates = {"down": self.down_bps, "up": self.up_bps}
        line = sum(_capacity_bps(result, way, rates[way]) for way in used)
        goodput = sum(f["goodput_bps"] for f in result.flows.values() if f["kind"] == "tcp")
        requests = [_mean(metrics.completion_times_s(result, name)) for name in groups
                    if name == "request"]  # fmt: skip
        pages = [metrics.completion_times_s(result, name) for name in groups if name != "request"]
        times = np.sort(np.concatenate([*pages, np.empty(0)]))
        return {
            "delay_s": float(max(delays, default=0.0)),
            "loss": float(select.loss_of_datagrams(udp) or 0.0) if udp else 0.0,
            "response_s": requests[0] if requests else 0.0,
            "self_s": float(sum(link["sojourn_mean_s"] or 0.0 for link in result.links.values())),
            "worst_s": _worst(result),
            "transfer_s": _mean(times),
            "tail_s": select.nearest_rank(times, 0.99) or 0.0,
            "use": float(goodput / line) if line else 0.0,
            "jain": float(min(jains, default=1.0)),
            "hosts": min((select.jain(one) for one in _by_host(result, endless)), default=1.0),
            "rtt_s": self.rtt_s,
            "page_s": 3 * self.rtt_s + 8 * OBJECT_BYTES / max(rates.values()),
        }


def _worst(result: Result) -> float:
    """Return the largest mean queueing delay of both directions in a window after the warm-up."""
    rows = result.time_s > seconds(result.scenario["warmup"]) + select.GRAIN_S
    if not rows.any():
        return 0.0
    # A link that sends nothing in a window delays nothing.
    waits = [np.nan_to_num(link.series["sojourn_s"][rows]) for link in result.links.values()]
    return float(np.sum(waits, axis=0).max())


def _by_host(result: Result, groups: Sequence[str]) -> list[list[float]]:
    """Return the goodputs (bit/s) of hosts in each direction, over the endless flows `groups`.

    The host is the receiver of a flow on the link `down`, the sender elsewhere; without a name
    each flow has a host of its own.
    """
    totals: dict[str, dict[str, float]] = {}
    for name in groups:
        flow = select.declared(result, name)
        way = links_of(flow)[0]
        host = flow.get("receiver" if way == "down" else "sender")
        for n, one in enumerate(select.flows_of(result, name)):
            key = f"{name}/{n}" if host is None else host.replace("{i}", str(n))
            goodputs = totals.setdefault(way, {})
            goodputs[key] = goodputs.get(key, 0.0) + one["goodput_bps"]
    return [[*goodputs.values()] for goodputs in totals.values()]


def _mean(values: Any) -> float:
    """Return the mean of completion times; 0 without any."""
    return float(np.mean(values)) if len(values) else 0.0
