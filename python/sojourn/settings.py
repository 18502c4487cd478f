"""Changes to a scenario tree: `--set bottleneck.qdisc=codel`, another discipline, a sample.

The trees that come in stay as they are; changed copies go out. Values are not judged here.
"""

import copy
import json
import re
import tomllib
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn.scenario import Scenario, Table, to_json
from sojourn.units import seconds

KEYS = Scenario.__struct_fields__
"""The top-level keys of a scenario."""

NAMED = ("qdisc", "source", "tcp")
"""The keys whose value is a thing with a name and parameters, or just its name."""

ENGINES = ("sim", "live")
"""What can make a run: the simulator, and the kernel's TCP and UDP."""

SAMPLES = 1000
"""How many samples a figure gets where the scenario does not say."""


NUMBERS = 50_000_000
"""The most numbers of series that nobody asked for: 400 MB."""


def near(name: str, known: Sequence[str]) -> str:
    """Suggest the nearest of `known`, and list them."""
    found = get_close_matches(name, known, 1) or [one for one in known if one.startswith(name)]
    guess = f', did you mean "{found[0]}"?' if found else ""
    return f"{guess} (known: {', '.join(known)})"


def is_live(engine: str) -> bool:
    """Say whether `--engine` asks for real packets. Raises InputError."""
    if engine not in ENGINES:
        raise InputError(f'--engine: unknown engine "{engine}"{near(engine, ENGINES)}')
    return engine == "live"


def read_value(text: str) -> Any:
    """Read a value of the command line: as TOML where it is TOML (3, true, [..]), else as text."""
    try:
        tree = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, ValueError, RecursionError):
        return text
    return tree["value"] if list(tree) == ["value"] else text


def split_setting(setting: str) -> tuple[str, Any]:
    """Split KEY=VALUE, as --set takes it."""
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise InputError(f"--set {setting}: write it as KEY=VALUE, like bottleneck.qdisc=codel")
    return key.strip(), read_value(text.strip())


def apply(tree: Table, settings: Sequence[str]) -> Table:
    """Give a copy of the scenario `tree` with `settings` (KEY=VALUE) applied in order."""
    tree = copy.deepcopy(tree)
    for setting in settings:
        key, value = split_setting(setting)
        try:
            set_at(tree, key, value)
        except InputError as error:
            raise InputError(f"--set {setting}: {error}") from None
    return tree


def set_at(tree: Table, key: str, value: Any) -> None:
    """Set what `key` (like bottleneck.qdisc) leads to, in place."""
    _set(tree, _full_path(tree, key.split(".")), value)


def set_seed(tree: Table, seed: int) -> Table:
    """Give the scenario with that seed."""
    return {**tree, "seed": seed}


def with_samples(tree: Table) -> Table:
    """Give the scenario with a sample interval fit for a figure, if it has none.

    It is a thousandth of the duration, longer where very many flows would fill the memory.
    """
    if "sample" in tree:
        return tree
    canonical = json.loads(_sojourn.canonical(to_json(tree)))
    flows = canonical["flows"]
    columns = 12 * len(canonical["links"]) + 4 * len(flows)
    columns += 2 * sum(flow["count"] for flow in flows) * tree.get("sample_flows", True)
    samples = max(1, min(SAMPLES, NUMBERS // columns))
    return {**tree, "sample": f"{max(1, round(seconds(canonical['duration']) / samples * 1e6))}us"}


def with_qdisc(tree: Table, name: str, link: str) -> Table:
    """Give the scenario with another discipline on `link`; the buffer stays the same."""
    return apply(tree, [f"links.{link}.qdisc={json.dumps(name)}"])


def compared_link(tree: Table, chosen: str | None) -> str:
    """Find the link whose discipline is compared.

    It is `chosen`, else the one called bottleneck, else the first that the first flow crosses.
    """
    canonical = json.loads(_sojourn.canonical(to_json(tree)))
    links = list(canonical["links"])
    if chosen is not None:
        if chosen not in links:
            raise InputError(f'--link: unknown link "{chosen}"{near(chosen, links)}')
        return chosen
    first: str = canonical["flows"][0]["path"][0]
    return "bottleneck" if "bottleneck" in links else first


def _full_path(tree: Table, path: list[str]) -> list[str]:
    """Put `links` or `flows` before a path that starts with a name of one."""
    head = path[0]
    if head in KEYS:
        return path
    links = list(tree["links"]) if isinstance(tree.get("links"), dict) else []
    flows = [f["name"] for f in _flows(tree) if isinstance(f.get("name"), str)]
    if head in links and head in flows:
        raise InputError(f'"{head}" is a link and a flow: write links.{head} or flows.{head}')
    if head in links:
        return ["links", *path]
    if head in flows:
        return ["flows", *path]
    raise InputError(
        f'"{head}" is no link, flow or key of the scenario{near(head, [*links, *flows, *KEYS])}'
    )


def _flows(tree: Table) -> list[Table]:
    flows = tree.get("flows")
    return [flow for flow in flows if isinstance(flow, dict)] if isinstance(flows, list) else []


def _set(tree: Table, path: list[str], value: Any) -> None:
    """Set what `path` leads to, in place; tables on the way are made where there are none."""
    *way, last = path
    node: Any = tree
    for depth, key in enumerate(way):
        if isinstance(node, list):
            node = _element(node, key)
            continue
        if key in NAMED and isinstance(node.get(key), str):
            node[key] = {"name": node[key]}
        if key in NAMED and key not in node:
            node[key] = {"name": _default_name(tree, way[: depth + 1])}
        node = node.setdefault(key, {})
        if not isinstance(node, dict | list):
            raise InputError(f'"{key}" is a single value and has no "{path[depth + 1]}"')
    if isinstance(node, list):
        if not re.fullmatch(r"\d+", last) or int(last) >= len(node):
            raise InputError(f'"{last}" is not among the {len(node)} there')
        node[int(last)] = value
        return
    old = node.get(last)
    if last == "qdisc" and isinstance(value, str) and isinstance(old, dict) and "limit" in old:
        # The same buffer under another discipline: what differs is the discipline alone.
        value = {"name": value, "limit": old["limit"]}
    node[last] = value


def _element(elements: list[Any], key: str) -> Any:
    """Find an element of a list: a flow by its name, anything by its index."""
    tables = [e for e in elements if isinstance(e, dict)]
    for element in tables:
        if element.get("name") == key:
            return element
    if re.fullmatch(r"\d+", key) and int(key) < len(elements) and tables:
        return elements[int(key)]
    names = [str(e["name"]) for e in tables if "name" in e]
    raise InputError(f'unknown flow "{key}"{near(key, names)}')


def _default_name(tree: Table, path: list[str]) -> str:
    """Ask Rust what stands at `path` where the scenario says nothing."""
    node = json.loads(_sojourn.canonical(to_json(tree)))
    for key in path:
        node = _element(node, key) if isinstance(node, list) else node.get(key, {})
    if "name" not in node:
        raise InputError(f"there is no {path[-1]} here")
    return str(node["name"])
