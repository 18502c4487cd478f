"""Missing features and their substitutes: `sojourn list missing`, docs/reference/missing.md.

Missing disciplines, TCPs and sources are listed in Rust, which looks up unknown names among them.
All other features are listed here.
"""

import json
from typing import Any, NamedTuple

from sojourn import _sojourn

Spec = dict[str, Any]


class Missing(NamedTuple):
    """A feature that does not exist."""

    names: tuple[str, ...]
    """Names that users may search for, the most common one first."""
    about: str
    """Description, a noun phrase."""
    planned: bool
    """True if the feature is planned."""
    why: str
    """Reason why it does not exist."""
    instead: str
    """Substitute."""


FEATURES = (
    Missing(
        ("packages",),
        "packages on PyPI, crates.io, conda or in distributions",
        True,
        "there is no release yet",
        "a clone of the repository and `make demo`; `make wheel` builds a wheel",
    ),
    Missing(
        ("windows", "macos"),
        "the live link on Windows and macOS",
        False,
        "it uses Linux's TUN devices and network namespaces",
        "a Linux virtual machine; simulation does not need Linux",
    ),
    Missing(
        ("wifi", "wi-fi", "802.11", "lte", "5g", "wireless"),
        "models of Wi-Fi and mobile networks: medium access, aggregation, fading, handover",
        False,
        "a link serves one queue at a rate that does not depend on who else sends",
        "the recorded rate of such a link (`trace`), with `loss` on the wire",
    ),
    Missing(
        ("routing", "routers", "ospf", "bgp"),
        "routing protocols, and weights of paths",
        False,
        "congestion is studied on given paths, or on the shortest ones",
        "the key `spread` of a group, which takes all shortest paths whose links are up",
    ),
    Missing(
        ("conga", "drill", "hula"),
        "switches that choose paths by their load",
        False,
        "a switch chooses by a hash, at random or in turn, and knows no loads",
        '`spread = "flowlet(gap=100us)"`, with which bursts leave busy paths (LetFlow)',
    ),
    Missing(
        ("pfc", "pause frames", "rdma", "roce", "infiniband"),
        "lossless Ethernet and RDMA",
        False,
        "a link never stops the one before it",
        "dcqcn or dctcp with ECN marks at a threshold: `sojourn new dctcp`",
    ),
    Missing(
        ("multicast", "broadcast"),
        "packets with several receivers",
        False,
        "a flow has one sender and one receiver",
        "one flow per receiver",
    ),
    Missing(
        ("qdisc changes", "parameter changes"),
        "changing the discipline of a link during a run, or the parameters of any discipline",
        True,
        "parameters of codel, pie, pi2, red, pi, blue, cobalt, droptail, step_mark, skbprio, "
        "fq_codel, fq_pie, fq_red and htb can change",
        "`changes` of these, or two runs, before and after the change",
    ),
)
"""Missing features that users ask for."""

TITLES = {
    "disciplines": "Disciplines",
    "tcp": "Congestion controls and transports",
    "sources": "Traffic",
    "features": "Features",
}
"""Titles of the groups, in order."""


def groups() -> dict[str, list[Spec]]:
    """Return all missing features by group, each with the fields of `Missing`."""
    features = [
        {
            "name": one.names[0],
            "aliases": list(one.names[1:]),
            "about": one.about,
            "planned": one.planned,
            "why": one.why,
            "instead": one.instead,
        }
        for one in FEATURES
    ]
    groups_by_name: dict[str, list[Spec]] = json.loads(_sojourn.specs())["missing"]
    groups_by_name["features"] = features
    return {group: groups_by_name[group] for group in TITLES}


def find(name: str) -> Spec | None:
    """Return the missing feature called `name`, ignoring case; None if there is none."""

    def folded(text: str) -> str:
        return text.lower().replace("-", "").replace("_", "").replace(" ", "")

    for spec in (spec for group in groups().values() for spec in group):
        if folded(name) in map(folded, (spec["name"], *spec["aliases"])):
            return spec
    return None


def refusal(spec: Spec, name: str) -> str:
    """Return the message for a request of the missing feature `name`, in the words of Rust."""
    yet = " yet" if spec["planned"] else ""
    return f'"{name}" ({spec["about"]}) is not available{yet}; use {spec["instead"]}'
