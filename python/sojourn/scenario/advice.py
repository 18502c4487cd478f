"""Warnings about scenarios that are valid but probably not what was intended.

A warning is one line: the path, the effect, and the remedy. `Result.warnings` lists them. Python
shows them as `ScenarioWarning`, the command prints them on standard error, each text once.
"""

import json
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sojourn import _sojourn
from sojourn._util.paths import links_of
from sojourn._util.public import public
from sojourn._util.units import bps_of, bytes_of, counted, duration, seconds
from sojourn.scenario.traps import total_window, traps

MOST = 5
"""Largest number of warnings shown per call; further ones are counted."""

Tree = Mapping[str, Any]


MANY = 2e9
"""Packets of a run above which it is said beforehand: some 5 minutes of simulation."""


TARGET_MIN_S = 1e-4
"""Target below which a link slower than `TARGET_MIN_BPS` gets a warning."""

TARGET_MIN_BPS = 1e9
"""Rate from which such a target makes sense: a packet of 1500 bytes takes 12 us."""


OLD_RATE = (
    ": xcp computes its feedback with the rate that the link has at the start, and that rate "
    "changes; compare runs at constant rates"
)


@public
class ScenarioWarning(UserWarning):
    """Warning about a scenario that is valid but probably not what was intended.

    The message has the path of the key, the effect and the remedy.
    """


@public
class StoreWarning(UserWarning):
    """Warning that another process writes to the same folder of results."""


def warnings_of(scenario: Tree) -> list[str]:
    """Return the warnings about a canonical scenario: links first, then flows."""
    messages: list[str] = []
    flows, links = scenario["flows"], scenario["links"]
    ahead = [links_of(flow) for flow in flows]
    back = [links_of(flow, "return_path") for flow in flows]
    crossing: dict[str, list[Tree]] = {name: [] for name in links}
    forward: dict[str, list[Tree]] = {name: [] for name in links}
    for flow, there, home in zip(flows, ahead, back, strict=True):
        for name in there:
            forward[name].append(flow)
        for name in dict.fromkeys([*there, *home]):
            crossing[name].append(flow)
    changed = [change.get("links", {}) for change in scenario.get("changes", ())]
    varying = {name for change in changed for name, new in change.items() if "rate" in new}
    for name, link in links.items():
        if not crossing[name]:
            continue
        about = (
            _classes(link, crossing[name]),
            *(f(link, forward[name]) for f in (_marks, _labels)),
            _idle(link),
        )
        for texts in (*about, _limit(link, forward[name]), _shaper(link), _target(link)):
            messages += [f"links.{name}.qdisc{text}" for text in texts]
        if link["qdisc"]["name"] == "xcp" and ("trace" in link or name in varying):
            messages.append(f"links.{name}.qdisc{OLD_RATE}")
        texts = _packets(link, forward[name], seconds(scenario["duration"]))
        messages += [f"links.{name}.rate{text}" for text in texts]
    windows = {name: total_window(crossers) for name, crossers in forward.items()}
    for flow, there in zip(flows, ahead, strict=True):
        about_flow = (*_ecn(flow, [links[name] for name in there]), *traps(flow, scenario, windows))
        messages += [f"flows.{flow['name']}{text}" for text in about_flow]
    absent = {flow["name"]: list(_times(flow, scenario)) for flow in flows}
    if not all(absent.values()):  # if nothing is measured at all, every table shows it
        messages += [f"flows.{name}{text}" for name, texts in absent.items() for text in texts]
    return messages


def warn_of_other_links(scenario: Tree, link: str) -> None:
    """Warn if a comparison changes `link` by default, and data cross other links as well."""
    used = dict.fromkeys(name for flow in scenario["flows"] for name in links_of(flow))
    others = [name for name in used if name != link]
    if link == "bottleneck" or not others:
        return
    named = ", ".join(others[:MOST]) + f" and {len(others) - MOST} more" * (len(others) > MOST)
    text = (
        f"links.{link}.qdisc: only this discipline is compared, and data also cross {named}; "
        "choose by --link NAME, which may be repeated or have * to match several (in Python by "
        "`link` and `also`)"
    )
    warnings.warn(text, ScenarioWarning, stacklevel=level_outside())


def warn(scenarios: Iterable[Tree]) -> None:
    """Issue the warnings about canonical scenarios, each text once, at the line of the caller."""
    texts = dict.fromkeys(text for one in scenarios for text in warnings_of(one))
    stacklevel = level_outside()
    for text in list(texts)[:MOST]:
        warnings.warn(text, ScenarioWarning, stacklevel=stacklevel)
    if len(texts) > MOST:
        more = f"{counted(len(texts) - MOST, 'more warning')} about the scenario"
        warnings.warn(more, ScenarioWarning, stacklevel=stacklevel)


def warn_of_equal_seeds(points: Mapping[str, Sequence[Any]], *, warm: bool = False) -> None:
    """Warn if all seeds of a point have the same result; `points` has the results by label.

    With `warm` the runs start from a warm state.
    """
    equal = {
        label: len(results)
        for label, results in points.items()
        if len(results) > 1 and all(one == results[0] for one in results[1:])
    }
    if not equal:
        return
    label, seeds = next(iter(equal.items()))
    every = len(equal) == len(points)
    where = "" if every else f" at {counted(len(equal), 'point')} of {len(points)}, like {label}"
    still = "nothing is random after the warm state" if warm else "nothing is random"
    effect = f"{seeds} seeds have identical results{where}: {still}, so intervals have no"
    remedy = (
        "repeat the sweep from states of several seeds"
        if warm
        else 'set start = "uniform(0s, 1s)" of a source'
    )
    warnings.warn(f"seed: {effect} width; {remedy}", ScenarioWarning, stacklevel=level_outside())


def level_outside() -> int:
    """Return the stack level of the first caller outside this package."""
    package, level = str(Path(__file__).parents[1]), 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    return level


PRIOMAP = (1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1)
"""Linux's `priomap`: the band of each of the 16 priorities. As in sched/priority_map.rs."""

PRIORITIES = (0, 0, 2, 2, 6, 6, 4, 4)
"""Linux's priority of each value of the last three bits of a DSCP."""


def _queue_of(qdisc: Tree, number: int) -> int:
    """Return the queue of a traffic class in a scheduler of classes."""
    queues: int = qdisc["flows"]
    priomap = [int(band) for band in qdisc.get("priomap", "").split()]
    if not priomap:
        return number % queues
    rest = PRIOMAP if qdisc["name"] == "prio" else (queues - 1,) * len(PRIOMAP)
    bands = [*priomap, *rest[len(priomap) :]]
    return min(bands[PRIORITIES[number % len(PRIORITIES)]], queues - 1)


def _classes(link: Tree, flows: list[Tree]) -> Iterator[str]:
    """Warn if all flows of a scheduler of classes share a queue, or classes share one."""
    qdisc = link["qdisc"]
    queues = qdisc.get("flows")
    if qdisc.get("by") != "class" or not isinstance(queues, int) or qdisc.get("filters"):
        return
    name, classes = qdisc["name"], {flow["class"] for flow in flows}
    used = {_queue_of(qdisc, number) for number in classes}
    several = len(flows) > 1 or flows[0]["count"] > 1
    if qdisc.get("priomap"):
        yield from _mapped(qdisc, classes, used, several)
        return
    if len(used) == 1 and several:
        order = " (0 is served first)" if name == "prio" else ""
        yield (
            f": {name} has a queue per class, and all flows are of class "
            f"{flows[0]['class']}: they share one FIFO of {qdisc['limit']}; set `class` of "
            f"the flows{order}"
        )
    for flow in flows:
        if flow["class"] >= queues:
            # More queues would put this class behind all others of a strict order.
            remedy = (
                f"`class` from 0 to {queues - 1}, or a `priomap` for DSCPs"
                if "priomap" in qdisc
                else f"flows = {flow['class'] + 1} or more"
            )
            yield (
                f".flows: class {flow['class']} of {flow['name']} has queue "
                f"{flow['class'] % queues}, since there are {counted(queues, 'queue')}; set "
                f"{remedy}"
            )


def _mapped(qdisc: Tree, classes: set[int], used: set[int], several: bool) -> Iterator[str]:
    """Warn if all flows share a band of `priomap`, or if classes look like numbers of bands."""
    name = qdisc["name"]
    numbers = "an empty `priomap` makes the class the band (0 is served first)"
    if len(used) == 1 and several:
        yield (
            f": {name} takes the band from the DSCP of a packet, and all flows have band "
            f"{min(used)} of its priomap: they share one FIFO of {qdisc['limit']}; set `dscp` of "
            f"the flows, or `priomap`: {numbers}"
        )
    elif len(used) < len(classes) and max(classes) < qdisc["flows"]:
        yield (
            f".priomap: classes are DSCPs here, and {', '.join(map(str, sorted(classes)))} have "
            f"{counted(len(used), 'band')}; {numbers}"
        )


def _marks(link: Tree, flows: list[Tree]) -> Iterator[str]:
    """Warn if a discipline marks on request, but no flow is ECN-capable."""
    qdisc = link["qdisc"]
    enabled = qdisc.get("ecn") is True and not _marks_by_default(qdisc["name"])
    if enabled and flows and not any(_has_ecn(flow) for flow in flows):
        yield (
            ".ecn: no flow is ECN-capable, so packets are dropped, not marked; set "
            "`ecn = true` of their tcp"
        )


def _labels(link: Tree, flows: list[Tree]) -> Iterator[str]:
    """Warn if no flow has the header or the class by which a discipline works."""
    qdisc = link["qdisc"]
    if qdisc["name"] == "xcp" and flows and not any(_is_xcp(flow) for flow in flows):
        yield ': no flow has TCP xcp, so it is a drop-tail buffer; set `tcp = "xcp"` of the flows'
    if qdisc["name"] == "rio" and flows and qdisc["in_class"] not in {f["class"] for f in flows}:
        yield (
            f".in_class: no flow has class {qdisc['in_class']}, so it is red with min_th and "
            "max_th; set `class` of the flows in profile"
        )


IDLE: Mapping[str, tuple[tuple[str, object, str, object], ...]] = {
    "hred": (("d1", 0.0002, "overflow", "step"), ("excess", 1.5, "overflow", "reset")),
    "gred": (("prio", "8", "grio", True),),
}
"""By discipline, parameters that apply with a value of another parameter only: parameter, default,
other parameter, its value."""


def _idle(link: Tree) -> Iterator[str]:
    """Warn if a parameter is set that has no effect with the others."""
    qdisc = link["qdisc"]
    for key, default, other, value in IDLE.get(qdisc["name"], ()):
        if qdisc[key] != default and qdisc[other] != value:
            yield f".{key}: has no effect without {other} = {json.dumps(value)}; set it as well"


def _limit(link: Tree, flows: list[Tree]) -> Iterator[str]:
    """Warn if the buffer is smaller than a packet of a flow."""
    limit = link["qdisc"].get("limit", "")
    if not limit.endswith("B"):
        return
    for flow in flows:
        packet = (flow.get("tcp") or flow["source"]).get("packet")
        if packet is not None and bytes_of(packet) > bytes_of(limit):
            yield (
                f".limit: {limit} holds no packet of {flow['name']} ({packet}), so all of them "
                "are dropped; set a larger limit"
            )


def _shaper(link: Tree) -> Iterator[str]:
    """Warn if a discipline shapes to a rate above the rate of the link."""
    qdisc = link["qdisc"]
    key = {"cake": "bandwidth", "tbf": "rate", "htb": "rates", "cbs": "idleslope"}.get(
        qdisc["name"], ""
    )
    values = str(qdisc.get(key, "")).split()
    if "rate" not in link or "trace" in link or not all(value[0].isdigit() for value in values):
        return
    highest = max(values, key=bps_of, default=None)
    if highest is not None and bps_of(highest) > bps_of(link["rate"]):
        yield (
            f".{key}: {highest} is above the rate of the link, {link['rate']}, so the shaper "
            f"limits nothing; set {key} below that rate"
        )


def _target(link: Tree) -> Iterator[str]:
    """Warn if a target is far below a packet time, as by a number of microseconds in tc."""
    target = link["qdisc"].get("target", "auto")
    if "rate" not in link or not re.fullmatch(r"\d+(ns|us|ms|s)", str(target)):
        return
    if round(seconds(target), 9) < TARGET_MIN_S and bps_of(link["rate"]) < TARGET_MIN_BPS:
        yield (
            f".target: {target} at {link['rate']} is less than any queue has; write the unit, "
            "since a number alone is in microseconds in the words of tc"
        )


def _packets(link: Tree, flows: list[Tree], duration_s: float) -> Iterator[str]:
    """Warn if flows that send as much as they can fill the link with very many packets."""
    bulk = [f["tcp"]["packet"] for f in flows if f["source"]["name"] == "bulk" and f.get("tcp")]
    if not bulk or "rate" not in link:
        return
    packets = bps_of(link["rate"]) * duration_s / 8 / max(map(bytes_of, bulk))
    if packets > MANY:
        yield (
            f": bulk flows can send {packets:.1g} packets at {link['rate']} in "
            f"{duration(duration_s)}, and some 5 million are simulated per second; "
            "shorten the duration or lower the rate"
        )


def _ecn(flow: Tree, links: list[Tree]) -> Iterator[str]:
    """Warn if a flow is ECN-capable, but no link of its path marks."""
    if _has_ecn(flow) and not any(_can_mark(link["qdisc"]) or _loss_marks(link) for link in links):
        who = f".tcp: {flow['tcp']['name']} is" if "tcp" in flow else ".ecn: its packets are"
        yield (
            f"{who} ECN-capable, and no link of its path marks, so it sees drops only; "
            "set `ecn = true` of a discipline"
        )


def _loss_marks(link: Tree) -> bool:
    """Return True if the random losses of a link mark packets instead."""
    loss = link.get("loss")
    return isinstance(loss, dict) and loss.get("ecn") is True


def _times(flow: Tree, scenario: Tree) -> Iterator[str]:
    """Warn if a flow is never active in the measured interval."""
    joins, leaves = 0.0, float("inf")
    for change in scenario.get("changes", ()):
        joins = seconds(change["at"]) if flow["name"] in change.get("join", ()) else joins
        leaves = seconds(change["at"]) if flow["name"] in change.get("leave", ()) else leaves
    source = flow["source"]
    start, stop = _least(source.get("start", "0s")), _least(source.get("stop", "auto"))
    begins = joins + (start or 0.0)
    ends = leaves if stop is None else min(leaves, joins + stop)
    if begins >= seconds(scenario["duration"]):
        yield f".source.start: it never starts, as the run ends at {scenario['duration']}"
    elif ends <= seconds(scenario["warmup"]):
        yield f".source.stop: it stops before the measurement begins at {scenario['warmup']}"


def _has_ecn(flow: Tree) -> bool:
    return "ecn" in flow or bool(flow.get("tcp", {}).get("ecn", False))


def _can_mark(qdisc: Tree) -> bool:
    """Return True if a discipline, or one inside it, marks."""
    children = str(qdisc.get("children") or "")
    inside = re.findall(r"[a-z]\w*\b(?!=)", children)
    return qdisc.get("ecn") is True or "ecn=true" in children or any(map(_marks_by_default, inside))


def _is_xcp(flow: Tree) -> bool:
    return bool(flow.get("tcp", {}).get("name") == "xcp")


def _least(duration: str) -> float | None:
    """Return the smallest value (s) of a duration that may be random; None if unknown."""
    match = re.match(r"(?:uniform\()?(\d+(?:ns|us|ms|s))(?:,|$)", duration)
    return seconds(match[1]) if match else None


@cache
def _marks_by_default(name: str) -> bool:
    for spec in json.loads(_sojourn.specs())["disciplines"]:
        if spec["name"] == name:
            return any(p["name"] == "ecn" and p["value"] == "true" for p in spec["params"])
    return False
