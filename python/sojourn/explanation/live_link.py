"""Explanation of what `sojourn link --json` prints at its end."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from sojourn._sojourn import InputError, canonical_links
from sojourn._util.inputs import shown
from sojourn._util.reading import read
from sojourn._util.typed_json import checked
from sojourn._util.units import counted, seconds
from sojourn.custom import trust as trusting
from sojourn.explanation import links, queues
from sojourn.explanation.finding import Finding
from sojourn.explanation.parameters import LONGEST, parameters
from sojourn.result.stored import Count, Positive, built_in
from sojourn.scenario.describe import varies

KEYS = {"spec", "links", "trusted", "warnings", "exit_code"}
"""Keys of the report of a live link."""


DELAYS = "the sum of the delays of both directions"
"""Time that parameters are compared with, since the round-trip times are not known."""


class ReportedLink(msgspec.Struct):
    """Values of a direction that the rules read."""

    arrived_packets: Count
    dropped_packets: Count
    dropped_full_packets: Count
    marked_packets: Count
    utilisation: Positive | None
    sojourn_p50_s: Positive | None
    sojourn_p99_s: Positive | None
    sojourn_max_s: Positive | None


class Report(msgspec.Struct):
    """Parts of the report that the rules read."""

    spec: dict[str, dict[str, Any]]
    links: dict[str, dict[str, Any]]
    warnings: list[str]


def report_in(path: Path) -> Mapping[str, Any] | None:
    """Return the report of a live link at the end of a file; None if there is none.

    The output of the command may precede it.
    """
    try:
        text = read(path).decode()
    except (OSError, UnicodeDecodeError):
        return None
    start = text.rfind("\n{\n") + 1  # the first line, if there is no such one
    try:
        tree = json.loads(text[start:])
    except (ValueError, RecursionError):
        return None
    if not isinstance(tree, dict) or not set(tree) >= KEYS:
        return None
    trusting.read(tree, path)
    return tree


def explain_report(report: Mapping[str, Any]) -> list[Finding]:
    """Explain the report of a live link.

    Raises
    ------
    InputError
        If a value is missing or has another type. The message begins with its path.
    """
    valid = checked(report, Report)
    spec = canonical_spec(valid.spec)
    for name, link in valid.links.items():
        if name not in spec:
            raise InputError(f"links: {shown(name)} is not in spec")
        checked(link, ReportedLink, f"links.{name}")
    return list(_findings({"spec": spec, "links": valid.links, "warnings": valid.warnings}))


def canonical_spec(spec: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the links of a report with all keys. Raises InputError if one is invalid."""
    plain = {name: built_in(link) for name, link in spec.items()}
    try:
        whole: dict[str, Any] = json.loads(canonical_links(json.dumps(plain)))
    except InputError as error:
        raise InputError(f"spec.{error}") from None
    for name, link in spec.items():
        if plain[name] is not link:
            whole[name]["qdisc"] = link["qdisc"] | {"limit": whole[name]["qdisc"]["limit"]}
    return whole


def _findings(report: Mapping[str, Any]) -> Iterator[Finding]:
    specs = report["spec"]
    used = {name: one for name, one in report["links"].items() if one["arrived_packets"]}
    full = [f for name, link in used.items() for f in links.busy(name, link, specs[name])]
    yield from full
    if used and not full:
        first = max(used, key=lambda name: used[name]["utilisation"] or 0.0)
        yield from links.no_queue(first, used[first], specs[first], ())
    rtt_s = sum(seconds(spec["delay"]) for spec in specs.values() if not varies(spec))
    for name, link in used.items():
        spec = specs[name]
        yield from links.queue(name, link, spec)
        yield from links.overflow(name, link, spec)
        if spec["qdisc"].get("ecn") is True and link["dropped_packets"]:
            yield from links.no_marks(name, link, spec, "there: the senders may not use it")
        if rtt_s and (queues.used(link, spec) or 0.0) >= links.BUSY:
            for one in parameters(name, spec, rtt_s, "spec.up.delay + spec.down.delay"):
                yield replace(one, text=one.text.replace(LONGEST, DELAYS))
    yield from _outside(report)


def _outside(report: Mapping[str, Any]) -> Iterator[Finding]:
    """Repeat the warnings, and report packets that the kernel dropped."""
    for warning in report["warnings"]:
        yield Finding("accuracy", f"{warning[:1].upper()}{warning[1:]}.", {"warnings": warning})
    if not any(link["arrived_packets"] for link in report["links"].values()):
        number = {f"links.{n}.arrived_packets": 0 for n in report["links"]}
        packets = counted(0, "packet")
        yield Finding("no packets", f"Nothing crossed the link: {packets} arrived.", number)
