"""Access lines by name: the links `down` and `up` of a scenario with the key `line`.

`line = "lte"` in a scenario stands for the links of that line. A link of the scenario that is
called `down` or `up` changes single keys of them. The lines themselves are in the Rust crate
`sojourn-sim`, in `lines.rs`.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.inputs import shown
from sojourn.scenario.variants import with_buffer

Table = dict[str, Any]

PROCESS = {"rate": ("rate_min", "rate_max", "walk"), "delay": ("delay_min", "delay_max")}
"""Keys of a process that give the rate, and the delay."""


@cache
def lines() -> list[Table]:
    """Return all lines: `name`, `about`, `model`, `omits`, `rows` (parameters), `links`."""
    known: list[Table] = json.loads(_sojourn.access_lines())
    return known


def line(name: str) -> Table:
    """Return the line called `name`. Raises InputError if there is none."""
    links_of(name)
    return next(one for one in lines() if one["name"] == name)


def links_of(name: object) -> dict[str, Table]:
    """Return the links `down` and `up` of a line. Raises InputError if there is none."""
    if not isinstance(name, str):
        raise InputError(f"{shown(name)} is not the name of a line")
    links: dict[str, Table] = json.loads(_sojourn.line_links(name))
    return links


def applied(tree: Table) -> Table:
    """Return a scenario that has the key `line`, with the links of that line in place of the key.

    Raises InputError if the line is unknown.
    """
    try:
        links = links_of(tree["line"])
    except InputError as error:
        raise InputError(f"line: {error}") from None
    own = tree.get("links", {})
    if not isinstance(own, dict):
        return tree  # Rust reports it
    for name, link in own.items():
        known = name in links and isinstance(link, dict)
        links[name] = merged(links[name], link) if known else link
    rest = {key: value for key, value in tree.items() if key not in ("line", "links")}
    return {**rest, "links": links}


def merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> Table:
    """Return a link of a line, changed by the keys of `own`.

    A rate, a delay or a trace replaces what the process of the line gives. A discipline without a
    buffer keeps the buffer of the line.
    """
    link = {**base, **own}
    if "process" in base and "process" not in own:
        gone = {part for key, parts in PROCESS.items() if key in own for part in parts}
        process = {key: value for key, value in base["process"].items() if key not in gone}
        if "trace" in own or process.keys() <= {"every"}:
            del link["process"]
        else:
            link["process"] = process
    if "qdisc" in own and "qdisc" in base:
        link["qdisc"] = with_buffer(own["qdisc"], base["qdisc"])
    return link
