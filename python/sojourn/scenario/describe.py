"""One-line descriptions of scenarios, links and disciplines, for tables and figures."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sojourn import _sojourn
from sojourn._util.inputs import printable

TITLE_MAX = 80
"""Longest name of a scenario that is shown in full, in characters."""

VALUES = 12
"""Number of values of a long list that are shown."""

NAMES = 8
"""Number of links of a comparison that are all named."""

MANY = 30
"""Number of links, or of groups of flows, above which those with the same description are one."""

LOSSES = (
    ("probability", "correlation"),
    ("p", "r", "1-h", "1-k"),
    ("p13", "p31", "p32", "p23", "p14"),
)
"""Probabilities of each model of loss, in the order of netem."""

CUSTOM = {"compiled": "false", "ecn": "false"}
"""Defaults of every discipline that is written in Python."""


def title(scenario: Mapping[str, Any]) -> str:
    """Return the name of a scenario on one line, with unprintable characters as spaces."""
    shown = printable(scenario["name"])
    return shown if len(shown) <= TITLE_MAX else shown[:TITLE_MAX] + "..."


def link(scenario: Mapping[str, Any], name: str, varied: Collection[str] = ()) -> str:
    """Describe a link of a canonical scenario: rate, delay, discipline, loss.

    What has its path in `varied` (see the function of that name) is not stated: it differs
    between the runs. Of a discipline that varies, the buffer is left.
    """
    spec = scenario["links"][name]
    own = f"links.{name}."
    gone = {path.removeprefix(own) for path in varied if path.startswith(own)}
    parts = []
    if not gone & {"rate", "trace", "process"}:
        bucket = f" (bucket of {spec['burst']})" if "burst" in {*spec} - gone else ""
        parts.append(rate(spec) + bucket)
    parts += [] if gone & {"delay", "trace", "process"} else [delay(spec)]
    # The index of a comparison has no discipline for links that vary with the compared one.
    kept = {k: v for k, v in spec.get("qdisc", {}).items() if f"qdisc.{k}" not in gone}
    if "name" in kept and "qdisc" not in gone:
        parts.append(qdisc(kept))
    elif "limit" in kept and "qdisc" not in gone:
        parts.append(f"buffer {kept['limit']}")
    parts += [text for key, text in impairments(spec) if key not in gone]
    return ", ".join(parts)


def alike(facts: Sequence[tuple[str, str]], what: str) -> list[str]:
    """Return a line for each pair of a name and a fact; if they are many, for each fact.

    Names of the same fact are then counted: "640 links like s1-h0: 10gbit, 1us, droptail".
    """
    if len(facts) <= MANY:
        return [f"{name}: {fact}" for name, fact in facts]
    names: dict[str, list[str]] = {}
    for name, fact in facts:
        names.setdefault(fact, []).append(name)
    return [
        f"{len(of)} {what} like {of[0]}: {fact}" if len(of) > 1 else f"{of[0]}: {fact}"
        for fact, of in names.items()
    ]


def links(scenario: Mapping[str, Any]) -> list[str]:
    """Describe the links of a canonical scenario; if they are many, alike ones together."""
    return alike([(name, link(scenario, name)) for name in scenario["links"]], "links")


def impairments(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Describe what a canonical link does to packets besides delay: keys and texts."""
    parts = []
    match spec["loss"]:
        case dict() as model:
            keys = (key for keys in LOSSES for key in keys if key in model)
            values = ", ".join(f"{key} {model[key]:g}" for key in keys)
            kind = "loss" if "probability" in model else "loss in bursts"
            kind = kind.replace("loss", "marks", 1) if model.get("ecn") else kind
            parts.append(("loss", f"{kind} ({values})"))
        case probability:
            parts += [("loss", f"loss {probability:g}")] if probability else []
    if jitter := spec.get("jitter"):
        kind = jitter["distribution"]
        kind = "table" if isinstance(kind, list) else kind
        order = "" if jitter["reorders"] else ", in order"
        parts.append(("jitter", f"jitter {jitter['size']} ({kind}{_correlated(jitter)}{order})"))
    if reorder := spec.get("reorder"):
        gap = "" if reorder["gap"] == 1 else f", gap {reorder['gap']}"
        extra = (_correlated(reorder) + gap).removeprefix(", ")
        share = f"reorder {reorder['probability']:g}"
        parts.append(("reorder", share + (f" ({extra})" if extra else "")))
    for key in ("duplicate", "corrupt"):
        if chance := spec.get(key):
            extra = _correlated(chance).removeprefix(", ")
            text = f"{key} {chance['probability']:g}"
            parts.append((key, text + (f" ({extra})" if extra else "")))
    match spec.get("outages"):
        case list() as times:
            parts.append(("outages", f"{len(times)} outages"))
        case dict() as lengths:
            parts.append(("outages", f"outages of {lengths['down']} after {lengths['up']}"))
    if "slot" in spec:
        parts.append(("slot", "slots"))
    if "in_flight_limit" in spec:
        parts.append(("in_flight_limit", f"at most {spec['in_flight_limit']} in flight"))
    if "overhead" in spec:
        parts.append(("overhead", f"overhead {spec['overhead']}"))
    return parts


def _correlated(chance: Mapping[str, Any]) -> str:
    return f", correlation {chance['correlation']:g}" if chance["correlation"] else ""


def varies(spec: Mapping[str, Any]) -> bool:
    """Return True if the rate or the delay of a canonical link changes by a trace or a process."""
    return "trace" in spec or "process" in spec


def rate(spec: Mapping[str, Any]) -> str:
    """Return the rate of a canonical link, its range, or "recorded rate" if a trace decides it."""
    trace, process = spec.get("trace", {}), spec.get("process", {})
    if "rate_min" in process:
        return f"{process['rate_min']} to {process['rate_max']}"
    recorded = "opportunities_ms" in trace or "rate_bps" in trace
    return "recorded rate" if recorded else str(spec["rate"])


def delay(spec: Mapping[str, Any]) -> str:
    """Return the delay of a canonical link, or its range if a process decides it."""
    process = spec.get("process", {})
    if "delay_min" in process:
        return f"{process['delay_min']} to {process['delay_max']}"
    return str(spec["delay"])


def differing(scenarios: Sequence[Mapping[str, Any]], link: str) -> list[str]:
    """Return the links whose discipline differs between canonical scenarios; `link` is the first.

    It is listed in any case.
    """
    first = scenarios[0]["links"]
    others = [
        name
        for name in first
        if any(one["links"][name]["qdisc"] != first[name]["qdisc"] for one in scenarios)
    ]
    return list(dict.fromkeys([link, *others]))


def disciplines(names: Sequence[str]) -> str:
    """Name the links of a comparison: "disciplines of up and down", or of many, their number."""
    if len(names) == 1:
        return f"discipline of {names[0]}"
    if len(names) > NAMES:
        return f"disciplines of {names[0]} and {len(names) - 1} more"
    return f"disciplines of {' and '.join(names)}"


def buffers(scenarios: Mapping[str, Mapping[str, Any]], link: str) -> str:
    """Describe the buffer of a link in scenarios by label: one, or each with its disciplines."""
    names: dict[str, list[str]] = {}
    for label, scenario in scenarios.items():
        limit = str(scenario["links"][link]["qdisc"]["limit"])
        names.setdefault("automatic" if limit == "auto" else limit, []).append(label)
    if len(names) == 1:
        return f"buffer {next(iter(names))}"
    return "buffers " + ", ".join(f"{limit} ({', '.join(of)})" for limit, of in names.items())


def varied(base: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the paths, like "links.up.qdisc.limit", at which one of `others` is not as `base`.

    All are canonical scenarios. A list is compared as a whole.
    """
    paths: dict[str, None] = {}

    def walk(path: str, left: Mapping[str, Any], right: Mapping[str, Any]) -> None:
        for key in {**left, **right}:
            a, b = left.get(key), right.get(key)
            if isinstance(a, dict) and isinstance(b, dict):
                walk(f"{path}{key}.", a, b)
            elif a != b:
                paths[f"{path}{key}"] = None

    for other in others:
        walk("", base, other)
    return list(paths)


def qdisc(spec: Mapping[str, Any], *, buffer: bool = True) -> str:
    """Describe a canonical discipline: parameters that differ from defaults, and its buffer."""
    # The defaults of a discipline that is written in Python are not known: all values are shown.
    usual = _defaults().get(spec["name"], CUSTOM)
    settings = [
        f"{key} {_shortened(_word(value))}"
        for key, value in spec.items()
        if key != "source"
        and (
            buffer
            if key == "limit"
            else key != "name" and not _is_default(value, usual.get(key, ""))
        )
    ]
    name = str(spec["name"]).removeprefix("__main__:")
    return f"{name} ({', '.join(settings)})" if settings else name


def window(scenario: Mapping[str, Any], varied: Collection[str] = ()) -> str:
    """Describe the measured interval of a run: duration and warm-up, if not in `varied`."""
    warm = scenario["warmup"]
    since = "" if warm == "0s" or "warmup" in varied else f"measured after {warm}"
    return ", ".join(filter(None, ["" if "duration" in varied else scenario["duration"], since]))


def seeds(first: int, count: int) -> str:
    """Describe `count` seeds from `first`."""
    return f"seed {first}" if count == 1 else f"{count} seeds from {first}"


def _shortened(value: str) -> str:
    """Return a list with its first values and the number of the others, if it is long."""
    values = value.split(" ")
    if len(values) <= VALUES + 1 or any("(" in one for one in values):
        return value
    return f"{' '.join(values[:VALUES])} and {len(values) - VALUES} more"


def _is_default(value: Any, usual: str) -> bool:
    """Return True if a value is the default `usual`. Numbers are compared as numbers."""
    if isinstance(value, float) and usual[:1].isdigit():
        return value == float(usual)
    return _word(value) == usual


def _word(value: Any) -> str:
    """Format a value like the tables of defaults."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


@cache
def _defaults() -> dict[str, dict[str, str]]:
    tables = json.loads(_sojourn.specs())["disciplines"]
    return {t["name"]: {p["name"]: p["value"] for p in t["params"]} for t in tables}
