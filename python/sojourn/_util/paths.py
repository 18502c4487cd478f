"""Paths of the flows of a canonical scenario, in which `{i}` is the index of a flow."""

from collections.abc import Mapping
from typing import Any, Literal

INDEX = "{i}"
"""Stands in the name of a link for the index of the flow in its group, from 0."""

Direction = Literal["path", "return_path"]


def path_of(group: Mapping[str, Any], i: int, way: Direction = "path") -> list[str]:
    """Return the links that flow `i` of a group crosses, in order."""
    return [name.replace(INDEX, str(i)) for name in group[way]]


def links_of(group: Mapping[str, Any], way: Direction = "path") -> list[str]:
    """Return the links that the flows of a group cross, each once, in the order of the path."""
    found: dict[str, None] = {}
    for name in group[way]:
        numbers = range(group["count"]) if INDEX in name else (0,)
        found |= dict.fromkeys(name.replace(INDEX, str(i)) for i in numbers)
    return list(found)
