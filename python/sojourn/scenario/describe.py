"""One-line descriptions of scenarios, links and disciplines, for tables and figures."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from sojourn import _sojourn

TITLE_MAX = 80
"""Longest name of a scenario that is shown in full, in characters."""

CUSTOM = {"compiled": "false", "ecn": "false"}
"""Defaults of every discipline that is written in Python."""

GEMODEL = ("p", "r", "1-h", "1-k")
"""Probabilities of the Gilbert-Elliott loss model, in the order of netem."""


def title(scenario: Mapping[str, Any]) -> str:
    """Return the name of a scenario on one line, with unprintable characters as spaces."""
    shown = "".join(c if c.isprintable() else " " for c in scenario["name"])
    return shown if len(shown) <= TITLE_MAX else shown[:TITLE_MAX] + "..."


def link(scenario: Mapping[str, Any], name: str) -> str:
    """Describe a link of a canonical scenario: rate, delay, discipline, loss."""
    spec = scenario["links"][name]
    trace = spec.get("trace", {})
    recorded = "opportunities_ms" in trace or "rate_bps" in trace
    rate = "recorded rate" if recorded else spec["rate"]
    rate += f" (bucket of {spec['burst']})" if "burst" in spec else ""
    match spec["loss"]:
        case dict() as bursts:
            loss = ", loss in bursts (" + ", ".join(f"{k} {bursts[k]:g}" for k in GEMODEL) + ")"
        case probability:
            loss = f", loss {probability:g}" if probability else ""
    return f"{rate}, {spec['delay']}, {qdisc(spec['qdisc'])}{loss}"


def qdisc(spec: Mapping[str, Any], *, buffer: bool = True) -> str:
    """Describe a canonical discipline: parameters that differ from defaults, and its buffer."""
    # The defaults of a discipline that is written in Python are not known: all values are shown.
    usual = _defaults().get(spec["name"], CUSTOM)
    settings = [
        f"{key} {_word(value)}"
        for key, value in spec.items()
        if key != "source"
        and (buffer if key == "limit" else key != "name" and _word(value) != usual.get(key))
    ]
    name = str(spec["name"]).removeprefix("__main__:")
    return f"{name} ({', '.join(settings)})" if settings else name


def window(scenario: Mapping[str, Any]) -> str:
    """Describe the measured interval of a run: duration and warm-up."""
    warm = scenario["warmup"]
    since = "" if warm == "0s" else f", measured after {warm}"
    return f"{scenario['duration']}{since}"


def seeds(first: int, count: int) -> str:
    """Describe `count` seeds from `first`."""
    return f"seed {first}" if count == 1 else f"{count} seeds from {first}"


def _word(value: Any) -> str:
    """Format a value like the tables of defaults."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


@cache
def _defaults() -> dict[str, dict[str, str]]:
    tables = json.loads(_sojourn.specs())["disciplines"]
    return {t["name"]: {p["name"]: p["value"] for p in t["params"]} for t in tables}
