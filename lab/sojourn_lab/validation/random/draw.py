"""Random scenarios: a bottleneck and 1 to 24 TCP flows, with loss and asymmetric paths.

A scenario depends on the seed and its number alone. It names the senders of Linux (`linux_cubic`);
`named` replaces them by another family of names.
"""

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

Scenario = dict[str, Any]

CONTROLS = ("cubic", "reno", "bbr")
"""Congestion controls that a kernel of a distribution has."""

NO_ECN = ("bbr", "bbr3")
"""Controls that do not react to marks, so they are drawn without ECN."""

DURATION_S = 16
WARMUP_S = 4

PRESETS = {control: f"linux_{control}" for control in CONTROLS}
GENERIC = {control: control for control in CONTROLS}
NAMES = {"presets": PRESETS, "generic names": GENERIC}
"""Names of the three controls in a scenario, by family."""


def _log(rng: random.Random, low: float, high: float) -> float:
    """Return a number between `low` and `high`, uniform in its logarithm."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _qdisc(rng: random.Random, rate_mbit: float, rtt_ms: float, ecn: bool) -> dict[str, Any]:
    """Return a discipline; drop-tail holds 0.25 to 8 bandwidth-delay products."""
    kinds = ("droptail", "droptail", "codel", "fq_codel", "pie", "red", "cake", "dualpi2")
    qdisc: dict[str, Any] = {"name": rng.choice(kinds)}
    products = _log(rng, 0.25, 8)
    if qdisc["name"] == "droptail":
        qdisc["limit"] = f"{max(4, round(rate_mbit * rtt_ms * 1e3 / 8 / 1500 * products))}p"
    if ecn and qdisc["name"] in ("codel", "pie", "red"):
        qdisc["ecn"] = True
    return qdisc


def _source(rng: random.Random, rate_mbit: float, flows: int) -> dict[str, Any]:
    """Return a source: 60 % bulk, 25 % transfers, 15 % limited by the application."""
    kind, share = rng.random(), rng.uniform(0.3, 1.1)
    size_kb, gap_ms = round(_log(rng, 5, 1000)), round(_log(rng, 1, 1000))
    start = {"start": "uniform(0s, 1s)"}
    if kind > 0.85:
        rate = f"{max(20, round(rate_mbit * 1000 / flows * share))}kbit"
        return {"name": "cbr", "rate": rate, **start}
    if kind > 0.6:
        gap = f"exponential({gap_ms}ms)"
        return {"name": "transfers", "size": f"{size_kb}kB", "gap": gap, **start}
    return {"name": "bulk", **start}


def _return_link(rng: random.Random, rate_mbit: float, rtt_ms: float) -> dict[str, Any]:
    """Return a slow link for ACKs, which loses, queues or thins them.

    Its rate is 1/80 to 1/5 of the forward rate. ACKs of every second packet need about 1/58.
    """
    kind = rng.choice(("loss", "droptail", "filter"))
    slow = 1000 * rate_mbit / _log(rng, 5, 80)
    loss = round(_log(rng, 0.01, 0.3), 3)
    link: dict[str, Any] = {
        "rate": f"{max(20, round(slow))}kbit",
        "delay": f"{round(rtt_ms * 500)}us",
    }
    if kind == "loss":
        return {**link, "rate": f"{round(1000 * rate_mbit)}kbit", "loss": loss}
    if kind == "droptail":
        return {**link, "qdisc": {"name": "droptail", "limit": f"{rng.choice((20, 50, 200))}p"}}
    return {**link, "qdisc": {"name": "cake", "ack_filter": "on"}}


POOL = ("cubic", "cubic", "reno", "bbr")
"""Controls of a draw, each as often as it is to be drawn."""


def draw(seed: str, number: int, pool: Sequence[str] = POOL) -> Scenario:
    """Return the scenario with this number, with controls of `pool`."""
    rng = random.Random(f"{seed}/{number}")
    rate, rtt = _log(rng, 0.3, 40), _log(rng, 2, 300)  # Mbit/s, ms
    count = rng.choice((1, 1, 2, 3, 4, 6, 8, 12, 16, 24))
    control = rng.choice(pool)
    others = [c for c in dict.fromkeys(pool) if c != control]
    other = rng.choice(others) if rng.random() < 0.2 else None
    ecn, lossy = rng.random() < 0.3, rng.random() < 0.45
    loss = round(_log(rng, 0.001, 0.05), 4)
    warmup = WARMUP_S if rng.random() < 0.65 else 0
    up = {
        "rate": f"{round(rate * 1000)}kbit",
        "delay": f"{round(rtt * 500)}us",
        "qdisc": _qdisc(rng, rate, rtt, ecn),
        **({"loss": loss} if lossy else {}),
    }
    second = rng.choice((1, count))
    source = _source(rng, rate, count)
    links = {"up": up}
    path: dict[str, Any] = {"path": ["up"]}
    if rng.random() < 0.15:
        links["down"] = _return_link(rng, rate, rtt)
        path["return_path"] = ["down"]
    rtt_us = 2 * round(rtt * 500)
    flows = []
    for name, c, n in (("a", control, count), ("b", other, second)):
        if c is None:
            continue
        tcp = {"name": PRESETS.get(c, c), **({"ecn": True} if ecn and c not in NO_ECN else {})}
        bulk = {"name": "bulk", "start": "uniform(0s, 1s)"}
        flow = {"name": name, "count": n, **path, "rtt": f"{rtt_us}us", "tcp": tcp}
        flows.append({**flow, "source": source if name == "a" else bulk})
    return {
        "name": f"r{seed}-{number}",
        "duration": f"{DURATION_S}s",
        "warmup": f"{warmup}s",
        "links": links,
        "flows": flows,
    }


def controls(scenario: Scenario) -> tuple[str, ...]:
    """Return the controls of a scenario's groups of flows."""
    return tuple(flow["tcp"]["name"].removeprefix("linux_") for flow in scenario["flows"])


def named(scenario: Scenario, family: Mapping[str, str]) -> Scenario:
    """Return the scenario with the names of `family` for its senders."""
    flows = []
    for flow in scenario["flows"]:
        control = flow["tcp"]["name"].removeprefix("linux_")
        flows.append({**flow, "tcp": {**flow["tcp"], "name": family[control]}})
    return {**scenario, "flows": flows}
