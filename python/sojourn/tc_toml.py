"""Links of `sojourn.tc.imported` as TOML of a scenario."""

import json
from collections.abc import Mapping, Sequence
from itertools import chain, count
from typing import Any

from sojourn._util.inputs import printable
from sojourn.scenario.save import inline

Table = Mapping[str, Any]

WIRE = ("jitter", "reorder", "duplicate", "corrupt", "loss", "slot", "in_flight_limit", "overhead")
"""Keys of a link that netem and stab describe."""

TREES = ("htb", "hfsc")
"""Disciplines with lists of classes, written with a line for each parameter."""

SHOWN_CLASSES = 20
"""Most classes whose numbers a comment names."""


def toml(links: Sequence[Table], rate: str | None = None) -> str:
    """Format links of `imported` as the links of a scenario, in TOML."""
    blocks = []
    for one, name in zip(links, _names([one["dev"] for one in links]), strict=True):
        lines = [f"[links.{name}]"]
        known = one["rate"] or rate
        if known is None:
            lines.append(f'# rate = "..."  # required: {no_rate(one)}, so add --rate')
        else:
            lines.append(f"rate = {json.dumps(known)}")
        lines += [
            f"{key} = {inline(one[key])}"
            for key in ("burst", "delay", *WIRE)
            if one.get(key) is not None
        ]
        if one["qdisc"] is not None:
            lines += _qdisc_toml(one)
        lines += [f"# lost: {printable(lost)}" for lost in one["lost"]]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _qdisc_toml(link: Table) -> list[str]:
    """Return the lines for the discipline of a link: on one line, or with a line per key."""
    qdisc = link["qdisc"]
    if "children" not in qdisc and "filters" not in qdisc and qdisc["name"] not in TREES:
        return [f"qdisc = {inline(qdisc)}"]
    classes = link.get("classes") or {}
    shown = [f"{one} is {number}" for one, number in list(classes.items())[:SHOWN_CLASSES]]
    more = [f"and {len(classes) - SHOWN_CLASSES} more"] if len(classes) > SHOWN_CLASSES else []
    lines = [f"# classes: {', '.join(shown + more)}"] if shown else []
    for key, value in sorted(qdisc.items(), key=lambda item: item[0] != "name"):
        if key in ("children", "filters") and isinstance(value, list):
            lines.append(f"qdisc.{key} = [")
            lines += [f"    {inline(one)}," for one in value]
            lines.append("]")
        else:
            lines.append(f"qdisc.{key} = {inline(value)}")
    return lines


def _names(devs: Sequence[str]) -> list[str]:
    """Return the names of devices as names of links; a number tells equal ones apart."""
    names: dict[str, None] = {}
    for dev in devs:
        plain_name = _name(dev)
        others = (f"{plain_name[:56]}_{n}" for n in count(2))
        names[next(name for name in chain([plain_name], others) if name not in names)] = None
    return list(names)


def _name(dev: str) -> str:
    """Return the name of a device as the name of a link."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in dev)
    return name.strip("_")[:64] or "link"


def no_rate(link: Table) -> str:
    """Return why the rate of a link is unknown."""
    shaped = (link["qdisc"] or {}).get("bandwidth")
    if (link["qdisc"] or {}).get("name") == "cake" and shaped is not None:
        return f"the line behind cake's shaper (bandwidth {shaped}) has an unknown rate"
    return "no qdisc limits its rate"
