"""Conditions of a run in words, for tables and figures alike."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from sojourn import _sojourn

TITLE_MAX = 80
"""Letters of a scenario's name that are shown."""

GEMODEL = ("p", "r", "1-h", "1-k")
"""The chances of losses in bursts, in netem's order."""


def title(scenario: Mapping[str, Any]) -> str:
    """Return the name of a scenario on one line, whatever characters it has."""
    shown = "".join(c if c.isprintable() else " " for c in scenario["name"])
    return shown if len(shown) <= TITLE_MAX else shown[:TITLE_MAX] + "..."


def link(scenario: Mapping[str, Any], name: str) -> str:
    """Write a link of a canonical scenario: rate, delay, discipline, and what it loses."""
    spec = scenario["links"][name]
    trace = spec.get("trace", {})
    recorded = "opportunities_ms" in trace or "rate_bps" in trace
    rate = "recorded rate" if recorded else spec["rate"]
    match spec["loss"]:
        case dict() as bursts:
            loss = ", loss in bursts (" + ", ".join(f"{k} {bursts[k]:g}" for k in GEMODEL) + ")"
        case chance:
            loss = f", loss {chance:g}" if chance else ""
    return f"{rate}, {spec['delay']}, {qdisc(spec['qdisc'])}{loss}"


def qdisc(spec: Mapping[str, Any], *, buffer: bool = True) -> str:
    """Write a canonical discipline with what differs from its defaults, and (always) its buffer."""
    usual = _defaults()[spec["name"]]
    said = [
        f"{key} {_word(value)}"
        for key, value in spec.items()
        if (buffer if key == "limit" else key != "name" and _word(value) != usual[key])
    ]
    return f"{spec['name']} ({', '.join(said)})" if said else str(spec["name"])


def window(scenario: Mapping[str, Any]) -> str:
    """Say over which time of a run things were measured."""
    warm = scenario["warmup"]
    since = "" if warm == "0s" else f", measured after {warm}"
    return f"{scenario['duration']}{since}"


def seeds(first: int, count: int) -> str:
    """Say which seeds."""
    return f"seed {first}" if count == 1 else f"{count} seeds from {first}"


def _word(value: Any) -> str:
    """Write a value as the tables of defaults do."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


@cache
def _defaults() -> dict[str, dict[str, str]]:
    tables = json.loads(_sojourn.specs())["disciplines"]
    return {t["name"]: {p["name"]: p["value"] for p in t["params"]} for t in tables}
