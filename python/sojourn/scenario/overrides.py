"""Changes of a scenario: `--set bottleneck.qdisc=codel`, another discipline, seed or sample.

Functions return changed copies unless they are documented to work in place. Rust validates values.
"""

import copy
import re
from collections.abc import Sequence
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief, near, shown
from sojourn._util.paths import INDEX, path_of
from sojourn._util.units import seconds
from sojourn.custom import trust
from sojourn.scenario.load import Scenario, Table, canonical
from sojourn.scenario.parsing import check_depth, parse_toml
from sojourn.scenario.variants import table, with_buffer

KEYS = Scenario.__struct_fields__
"""Top-level keys of a scenario."""

NAMED = ("qdisc", "source", "tcp")
"""Keys whose value is a name, or a table with a name and parameters."""

ENGINES = ("sim", "live")
"""Engines: the simulator, and real packets of the kernel's TCP and UDP."""

SAMPLES = 1000
"""Number of samples for a figure of a scenario without `sample`."""

NUMBERS = 30_000_000
"""Largest number of values of such series: 1.4 GB while they are written."""


def is_live(engine: str) -> bool:
    """Return True if `--engine` is "live". Raises InputError for an unknown engine."""
    if engine not in ENGINES:
        raise InputError(f"--engine: unknown engine {shown(engine)}{near(engine, ENGINES)}")
    return engine == "live"


def read_value(text: str) -> Any:
    """Parse a value of the command line as TOML (3, true, [..]) if possible, otherwise as text."""
    try:
        tree = parse_toml(f"value = {text}")
        check_depth(tree)
    except (InputError, RecursionError):
        return text
    return tree["value"] if list(tree) == ["value"] else text


def split_setting(setting: str) -> tuple[str, Any]:
    """Parse KEY=VALUE, the argument of --set."""
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        example = "write it as KEY=VALUE, like bottleneck.qdisc=codel"
        raise InputError(f"--set {brief(setting)}: {example}")
    return key.strip(), read_value(text.strip())


def apply(tree: Table, settings: Sequence[str]) -> Table:
    """Return a copy of a scenario with `settings` (KEY=VALUE) applied in order."""
    trust.named(list(settings))
    tree = copy.deepcopy(tree)
    for setting in settings:
        key, value = split_setting(setting)
        try:
            set_at(tree, key, value, keep_buffer=isinstance(value, str))
        except InputError as error:
            raise InputError(f"--set {brief(setting)}: {error}") from None
    return tree


def set_at(tree: Table, key: str, value: Any, *, keep_buffer: bool = True) -> None:
    """Set the value at the path `key` (like bottleneck.qdisc), in place.

    With `keep_buffer`, a discipline without a buffer keeps the buffer of the previous one.
    """
    *way, last = _full_path(tree, key.split("."))
    node = _reach(tree, way, last)
    if isinstance(node, list):
        if not re.fullmatch(r"\d+", last) or int(last) >= len(node):
            raise InputError(f'"{last}" is not an index of a list of {len(node)}')
        node[int(last)] = value
        return
    kept = last == "qdisc" and keep_buffer
    node[last] = with_buffer(value, node.get(last)) if kept else value


def set_seed(tree: Table, seed: int) -> Table:
    """Return the scenario with another seed."""
    return {**tree, "seed": seed}


def with_samples(tree: Table) -> Table:
    """Return the scenario with a sampling interval for figures, if it has none.

    It is a thousandth of the duration, or longer if many flows would use too much memory.
    """
    if "sample" in tree:
        return tree
    whole = canonical(tree)
    flows = whole["flows"]
    columns = 12 * len(whole["links"]) + 4 * len(flows)
    columns += 3 * sum(flow["count"] for flow in flows) * tree.get("sample_flows", True)
    samples = max(1, min(SAMPLES, NUMBERS // columns))
    return {**tree, "sample": f"{max(1, round(seconds(whole['duration']) / samples * 1e6))}us"}


def with_qdisc(tree: Table, given: Any, link: str) -> Table:
    """Return the scenario with another discipline on `link`.

    The buffer stays the same, unless the discipline has its own.
    """
    trust.named(given)
    tree = copy.deepcopy(tree)
    place = tree["links"][link]
    place["qdisc"] = with_buffer(given, place.get("qdisc"))
    return tree


def compared_link(whole: Table, chosen: str | None) -> str:
    """Return the link of a canonical scenario whose discipline is compared.

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
    first: Table = whole["flows"][0]
    shared = [link for link in first["path"] if INDEX not in link]
    return (shared or path_of(first, 0))[0]


def check_tcp_flows(whole: Table, names: Sequence[str]) -> None:
    """Raise InputError if one of `names` is neither a TCP flow nor a group of TCP flows."""
    counts = {flow["name"]: flow["count"] for flow in whole["flows"] if "tcp" in flow}
    for name in names:
        group, _, number = name.rpartition(".")
        member = number.isdecimal() and int(number) < counts.get(group, 0) > 1
        if name not in counts and not member:
            known = [one if n == 1 else f"{one}.0" for one, n in counts.items()]
            hint = near(name, list(dict.fromkeys([*counts, *known])))
            raise InputError(f'--flow: no TCP flow or group "{name}"{hint}')


def _full_path(tree: Table, path: list[str]) -> list[str]:
    """Return a path with `links` or `flows` before the name of a link or flow."""
    head = path[0]
    if head in KEYS:
        return path
    links = list(tree["links"]) if isinstance(tree.get("links"), dict) else []
    flows = [f["name"] for f in _flows(tree) if isinstance(f.get("name"), str)]
    if head in links and head in flows:
        raise InputError(f"{shown(head)} is a link and a flow: write links.{head} or flows.{head}")
    if head in links:
        return ["links", *path]
    if head in flows:
        return ["flows", *path]
    raise InputError(
        f"{shown(head)} is not a link, flow or key of the scenario"
        f"{near(head, [*links, *flows, *KEYS])}"
    )


def _flows(tree: Table) -> list[Table]:
    flows = tree.get("flows")
    return [flow for flow in flows if isinstance(flow, dict)] if isinstance(flows, list) else []


def _reach(tree: Table, way: list[str], last: str) -> Any:
    """Return the table or list at the path `way`; missing tables are created."""
    node: Any = tree
    for depth, key in enumerate(way):
        if isinstance(node, list):
            node = _element(node, key)
            continue
        if key in NAMED and isinstance(node.get(key), str):
            node[key] = table(node[key])
        if key in NAMED and key not in node:
            node[key] = {"name": _default_name(tree, way[: depth + 1])}
        node = node.setdefault(key, {})
        if not isinstance(node, dict | list):
            below = [*way, last][depth + 1]
            raise InputError(f"{shown(key)} is a single value and has no {shown(below)}")
    return node


def _element(elements: list[Any], key: str) -> Any:
    """Return an element of a list by name (flows) or index."""
    tables = [e for e in elements if isinstance(e, dict)]
    for element in tables:
        if element.get("name") == key:
            return element
    if re.fullmatch(r"\d+", key) and int(key) < len(elements) and tables:
        return elements[int(key)]
    names = [str(e["name"]) for e in tables if "name" in e]
    raise InputError(f"unknown flow {shown(key)}{near(key, names)}")


def _default_name(tree: Table, path: list[str]) -> str:
    """Return the name of the default discipline, TCP or source at `path`."""
    node = canonical(tree)
    for key in path:
        node = _element(node, key) if isinstance(node, list) else node.get(key, {})
    if "name" not in node:
        raise InputError(f"there is no {path[-1]} here")
    return str(node["name"])
