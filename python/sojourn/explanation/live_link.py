"""Explanation of what `sojourn link --json` prints at its end."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.units import counted, seconds
from sojourn.explanation import links
from sojourn.explanation.finding import Finding
from sojourn.explanation.parameters import parameters

KEYS = {"spec", "links", "trusted", "warnings", "exit_code"}
"""Keys of the report of a live link."""


def report_in(path: Path) -> Mapping[str, Any] | None:
    """Return the report of a live link at the end of a file; None if there is none.

    The output of the command may precede it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    start = 0 if text.startswith("{\n") else text.rfind("\n{\n") + 1
    try:
        tree = json.loads(text[start:])
    except ValueError:
        return None
    return tree if isinstance(tree, dict) and set(tree) >= KEYS else None


def explain_report(report: Mapping[str, Any]) -> list[Finding]:
    """Explain the report of a live link. Raises InputError if a value is missing."""
    try:
        return list(_findings(report))
    except KeyError as error:
        raise InputError(f"no complete report of sojourn link: {error} is missing") from None


def _findings(report: Mapping[str, Any]) -> Iterator[Finding]:
    specs = report["spec"]
    used = {name: one for name, one in report["links"].items() if one["arrived_packets"]}
    full = [f for name, link in used.items() for f in links.busy(name, link)]
    yield from full
    if used and not full:
        first = max(used, key=lambda name: used[name]["utilisation"] or 0.0)
        yield from links.no_queue(first, used[first], specs[first], ())
    rtt_s = sum(seconds(spec["delay"]) for spec in specs.values() if "trace" not in spec)
    for name, link in used.items():
        spec = specs[name]
        yield from links.queue(name, link)
        yield from links.overflow(name, link, spec)
        if spec["qdisc"].get("ecn") is True and link["dropped_packets"]:
            yield from links.no_marks(name, link, "there: the senders may not use it")
        if rtt_s and link["utilisation"] and link["utilisation"] >= links.BUSY:
            yield from parameters(name, spec, rtt_s, "spec.up.delay + spec.down.delay")
    yield from _outside(report)


def _outside(report: Mapping[str, Any]) -> Iterator[Finding]:
    """Repeat the warnings, and report packets that the kernel dropped."""
    for warning in report["warnings"]:
        yield Finding("accuracy", f"{warning[:1].upper()}{warning[1:]}.", {"warnings": warning})
    if not any(link["arrived_packets"] for link in report["links"].values()):
        number = {f"links.{n}.arrived_packets": 0 for n in report["links"]}
        packets = counted(0, "packet")
        yield Finding("no packets", f"Nothing crossed the link: {packets} arrived.", number)
