"""Links and flows of a canonical scenario: paths of groups, and names.

A path is a list of names, in which `{i}` is the index of a flow in its group, or a list of such
lists, one for each flow.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown

INDEX = "{i}"
"""Stands in the name of a link for the index of the flow in its group, from 0."""

Direction = Literal["path", "return_path"]


def path_of(group: Mapping[str, Any], i: int, way: Direction = "path") -> list[str]:
    """Return the links that flow `i` of a group crosses, in order."""
    names = group[way]
    if names and not isinstance(names[0], str):
        return list(names[i])
    return [name.replace(INDEX, str(i)) for name in names]


def hops_of(group: Mapping[str, Any], way: Direction = "path") -> int:
    """Return the largest number of links on the path of a flow of a group."""
    names = group[way]
    each = names and not isinstance(names[0], str)
    return max(map(len, names)) if each else len(names)


def host_of(group: Mapping[str, Any], i: int, end: Literal["sender", "receiver"]) -> str | None:
    """Return the host at an end of flow `i` of a group; None if it has no name."""
    names = group.get(end)
    if isinstance(names, list):
        return str(names[i])
    return None if names is None else str(names).replace(INDEX, str(i))


def described(names: Sequence[Any]) -> str:
    """Return a path for a table; the number of paths where flows have their own."""
    if names and not isinstance(names[0], str):
        return f"{len(names)} paths"
    return ", ".join(names)


def links_of(group: Mapping[str, Any], way: Direction = "path") -> list[str]:
    """Return the links that the flows of a group cross, each once, in the order of the path."""
    names: dict[str, None] = {}
    if group[way] and not isinstance(group[way][0], str):
        return list(dict.fromkeys(name for path in group[way] for name in path))
    for name in group[way]:
        numbers = range(group["count"]) if INDEX in name else (0,)
        names |= dict.fromkeys(name.replace(INDEX, str(i)) for i in numbers)
    return list(names)


def compared_link(whole: Mapping[str, Any], chosen: str | None) -> str:
    """Return the link of a scenario whose discipline is compared.

    This is `chosen`, or the link called bottleneck, or the first link on the path of the first
    group that all of its flows cross, or else the first link of its first flow.
    """
    links = list(whole["links"])
    if chosen is not None:
        if chosen not in links:
            raise InputError(f"--link: unknown link {shown(chosen)}{near(chosen, links)}")
        return chosen
    if "bottleneck" in links:
        return "bottleneck"
    first = next(flow for flow in whole["flows"] if flow.get("count", 1))
    shared = [link for link in first["path"] if isinstance(link, str) and INDEX not in link]
    return (shared or path_of(first, 0))[0]


def matching(names: Iterable[str], pattern: str) -> list[str]:
    """Return the names that match a pattern, in which "*" stands for any letters."""
    return [name for name in names if fnmatchcase(name, pattern)]


def matching_links(whole: Mapping[str, Any], chosen: str | None) -> list[str]:
    """Return the links that `chosen` names, in which "*" stands for any letters.

    None is the default of `compared_link`.
    """
    if chosen is None or "*" not in chosen:
        return [compared_link(whole, chosen)]
    if links := matching(whole["links"], chosen):
        return links
    first = next(iter(whole["links"]))
    raise InputError(f"--link: no link matches {shown(chosen)}; a link is called {first}")


def check_tcp_flows(whole: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise InputError if one of `names` is neither a TCP flow nor a group of TCP flows."""
    counts = {flow["name"]: flow["count"] for flow in whole["flows"] if "tcp" in flow}
    for name in names:
        group, _, number = name.rpartition(".")
        member = number.isdecimal() and int(number) < counts.get(group, 0) > 1
        if name not in counts and not member:
            known = [one if n == 1 else f"{one}.0" for one, n in counts.items()]
            hint = near(name, list(dict.fromkeys([*counts, *known])))
            raise InputError(f'--flow: no TCP flow or group "{name}"{hint}')
