"""A scenario's way to Rust: read it in any form, change it, and parse it once.

Python rejects only values that JSON cannot represent (NaN, dates). Rust validates everything else,
so that there is a single set of rules; its errors begin with the path of the value.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from sojourn._sojourn import InputError, ParsedScenario
from sojourn._util import size_table
from sojourn._util.inputs import brief, near, printable, shown
from sojourn._util.paths import matching, matching_links
from sojourn._util.plain import plain
from sojourn._util.reading import bytes_of_file, text_of
from sojourn.custom import trust as trusting
from sojourn.fabric import traffic
from sojourn.scenario import jitter_table, lines, named, packet_trace
from sojourn.scenario.keys import Scenario
from sojourn.scenario.parsing import (
    TOO_DEEP,
    parse_file,
    parse_json,
    parse_toml,
    split_setting,
)
from sojourn.scenario.variants import table, with_buffer

Table: TypeAlias = dict[str, Any]

KEYS = Scenario.__struct_fields__
"""Top-level keys of a scenario."""

NAMED = ("qdisc", "source", "tcp")
"""Keys whose value is a name, or a table with a name and parameters."""


@dataclass(frozen=True)
class Draft:
    """Scenario that Rust has not validated yet. The methods return changed copies.

    Attributes
    ----------
    tree : dict
        The scenario as it is written, in values of JSON. Files of traffic traces are read; files
        of link traces and lists of flows are read by `parse`.
    path : Path or None
        The file or the name of the scenario. Messages about the scenario begin with it.
    sampled : bool
        True if `parse` sets a sampling interval for figures, unless the scenario has one.
    """

    tree: Table
    path: Path | None = None
    sampled: bool = False

    @classmethod
    def read(
        cls,
        scenario: "Described",
        options: Mapping[str, Any] = {},
        *,
        folder: Path | None = None,
        trust: bool = False,
    ) -> "Draft":
        """Read a scenario in any form.

        Parameters
        ----------
        scenario : Scenario, mapping, str, Path, Draft or ParsedScenario
            The scenario, the path of a .toml or .json file, or a name like "rrul". A mapping with
            the key `named` is a named scenario with its options, like
            ``{"named": "rrul", "rate": "20mbit"}``.
        options : mapping, optional
            Options of a scenario that is given by its name.
        folder : Path, optional
            Folder of the traces that a mapping names. Traces of a file are relative to it.
        trust : bool, optional
            True if Python code that the scenario names may run.

        Raises
        ------
        InputError
            If the file cannot be read, or has a value that JSON cannot represent. The message has
            the name of the file, and the line or the path of the value.
        """
        if isinstance(scenario, Draft):
            return scenario
        if isinstance(scenario, ParsedScenario):
            return cls(json.loads(scenario.canonical()))
        if isinstance(scenario, str | Path):
            return cls._read_file(Path(scenario), options, trust)
        if isinstance(scenario, Mapping) and "named" in scenario:
            own = {key: value for key, value in scenario.items() if key != "named"}
            return cls(named.tree(str(scenario["named"]), own))
        try:
            tree = plain(scenario)
        except RecursionError:
            raise InputError(TOO_DEEP) from None
        if trust:
            trusting.named(tree)
        return cls(_with_files(tree, folder))

    @classmethod
    def _read_file(cls, path: Path, options: Mapping[str, Any], trust: bool) -> "Draft":
        if named.is_name(path) and not path.exists():
            return cls(named.tree(str(path), options), path)
        for key, value in options.items():
            if value is not None:
                raise InputError(f"--{key}: only for named scenarios; for a file use --set")
        raw = bytes_of_file(path)
        if path.suffix.lower() not in (".toml", ".json"):
            raise InputError(f"{path}: the name of a scenario file must end in .toml or .json")
        parse_text = parse_json if path.suffix.lower() == ".json" else parse_toml
        tree = parse_file(path, text_of(path, raw), parse_text, trust=trust)
        if not isinstance(tree, dict):
            raise InputError(f"{path}: is not a scenario, which is a table of keys and values")
        with _about(path):
            return cls(plain(_with_files(tree, path.parent)), path)

    def set(self, settings: Sequence[str]) -> "Draft":
        """Set the values of `settings`, each KEY=VALUE as in `--set`, in order."""
        if not settings:
            return self
        trusting.named(list(settings))
        tree = copy.deepcopy(self.tree)
        with _about(self.path):
            for setting in settings:
                key, value = split_setting(setting)
                with _about(f"--set {brief(setting)}"):
                    set_at(tree, key, value, keep_buffer=isinstance(value, str))
            return replace(self, tree=plain(_with_files(tree)))

    def with_keys(self, **values: Any) -> "Draft":
        """Set top-level keys, like ``seed=5``."""
        return replace(self, tree={**self.tree, **values})

    def with_qdisc(self, qdisc: Any, *links: str) -> "Draft":
        """Set the discipline of `links`. A discipline without a buffer keeps the link's.

        "*" in a name stands for any letters. By default, the links are those under test of a named
        scenario, or else the one of `compared_link`.
        """
        trusting.named(qdisc)
        value = qdisc if isinstance(qdisc, str) else table(qdisc)
        tree = copy.deepcopy(self.tree)
        try:
            with _about(self.path):
                for link in links or named.links_of(self.path) or (None,):
                    for name in matching_links(tree, link):
                        place = tree["links"][name]
                        place["qdisc"] = with_buffer(value, place.get("qdisc"))
        except (AttributeError, IndexError, KeyError, StopIteration, TypeError):
            self.parse()  # tables are missing: Rust reports which
            raise
        return replace(self, tree=tree)

    def with_sample(self) -> "Draft":
        """Set a sampling interval for figures, unless the scenario has one.

        It is a thousandth of the duration, or longer if many flows would use too much memory.
        """
        return replace(self, sampled=True)

    def to_json(self) -> str:
        """Return the text that Rust parses, with the contents of all trace files."""
        try:
            tree = _with_traffic(_with_link_traces(self.tree))
            return json.dumps(tree, allow_nan=False)
        except RecursionError:
            raise InputError(TOO_DEEP) from None

    def parse(self) -> ParsedScenario:
        """Validate the scenario in Rust.

        Raises
        ------
        InputError
            If the scenario is invalid. The message names the file and the path of the key.
        """
        with _about(self.path):
            parsed = ParsedScenario(self.to_json())
            return parsed.with_sample() if self.sampled else parsed


Described: TypeAlias = Scenario | Mapping[str, Any] | str | Path | Draft | ParsedScenario
"""A scenario as a Scenario, a mapping, the path of a file or a name, a draft, or parsed."""


def parse(scenario: Described, *, trust: bool = False) -> ParsedScenario:
    """Validate a scenario in any form. A scenario that is already parsed is returned as it is.

    With `trust`, Python code that it names may run. Raises InputError if the scenario is invalid.
    """
    if isinstance(scenario, ParsedScenario):
        return scenario
    return Draft.read(scenario, trust=trust).parse()


def canonical(scenario: Described) -> Table:
    """Return a scenario with all defaults and canonical names. Raises InputError if invalid."""
    tree: Table = json.loads(parse(scenario).canonical())
    return tree


def set_at(tree: Table, key: str, value: Any, *, keep_buffer: bool = True) -> None:
    """Set a copy of the value at the path `key` (like bottleneck.qdisc), in place.

    "*" in the name of links or flows stands for any letters. With `keep_buffer`, a discipline
    without a buffer keeps the buffer of the previous one.
    """
    whole = cache(lambda: canonical(tree))
    for path in _full_paths(tree, key.split(".")):
        _set_at(tree, path, copy.deepcopy(value), whole, keep_buffer=keep_buffer)


def _set_at(
    tree: Table, path: list[str], value: Any, whole: Callable[[], Table], *, keep_buffer: bool
) -> None:
    """Set the value at a path; `whole` returns the canonical scenario."""
    *way, last = path
    node = _reach(tree, way, last, whole)
    if isinstance(node, list):
        if not re.fullmatch(r"\d+", last) or int(last) >= len(node):
            raise InputError(f'"{last}" is not an index of a list of {len(node)}')
        node[int(last)] = value
        return
    kept = last == "qdisc" and keep_buffer
    node[last] = with_buffer(value, node.get(last)) if kept else value


def value_at(tree: Table, key: str) -> Any:
    """Return the value at the path `key` of a canonical scenario, or None if there is none.

    If a name in the path has "*", the value is of the first link or flow that it matches.
    Raises InputError if the path begins with an unknown name.
    """
    node: Any = tree
    for part in _full_paths(tree, key.split("."))[0]:
        if isinstance(node, list):
            node = _element(node, part)
        else:
            node = node.get(part) if isinstance(node, dict) else None
    return node


@contextmanager
def _about(subject: Path | str | None) -> Iterator[None]:
    """Begin messages of InputError with `subject`, except messages of a user's class."""
    try:
        yield
    except InputError as error:
        if subject is None or hasattr(error, "_sojourn_custom"):
            raise
        raise InputError(f"{subject}: {error}") from None


def _links(tree: Any) -> dict[str, Table]:
    """Return the links of a scenario that may be invalid."""
    links = tree.get("links") if isinstance(tree, dict) else None
    tables = links.items() if isinstance(links, dict) else ()
    return {name: link for name, link in tables if isinstance(link, dict)}


def _with_files(tree: Any, folder: Path | None = None) -> Any:
    """Read the access line, and files of traffic traces and flow sizes, relative to `folder`."""
    if isinstance(tree, dict) and "line" in tree:
        tree = lines.applied(tree)
    if folder is not None:
        for link in _links(tree).values():
            match link.get("trace"):
                case str() as file:
                    link["trace"] = str(folder / file)
                case {"file": str() as file}:
                    link["trace"]["file"] = str(folder / file)
            for key in jitter_table.KEYS:
                match link.get(key):
                    case {"distribution": str() as file} if jitter_table.is_file(file):
                        link[key]["distribution"] = str(folder / file)
    if isinstance(tree, dict) and isinstance(tree.get("flows"), str):
        tree = {**tree, "flows": [{"name": "list", traffic.KEY: {"file": tree["flows"]}}]}
    flows = _flows(tree)
    if flows and len(flows) == len(tree["flows"]):
        flows = [traffic.with_files(f, folder) if traffic.KEY in f else f for f in flows]
        tree = {**tree, "flows": size_table.inline(flows, folder)}
    return packet_trace.inline(tree, folder)


def _with_link_traces(tree: Any) -> Any:
    """Return a tree with the contents of files of links in place of their names."""
    columns: dict[str, Table] = {}
    for name, link in _links(tree).items():
        if "trace" in link:
            from sojourn.scenario import link_trace

            try:
                columns[name] = {**link, "trace": link_trace.resolve(link["trace"])}
            except InputError as error:
                where = f"links.{brief(name)}.trace"
                raise InputError(f"{where}: {printable(str(error))}") from None
        if any(isinstance(link.get(key), dict) for key in jitter_table.KEYS):
            resolved = jitter_table.resolve(columns.get(name, link), f"links.{brief(name)}")
            columns[name] = resolved
    return {**tree, "links": {**tree["links"], **columns}} if columns else tree


def _with_traffic(tree: Any) -> Any:
    """Return a tree with groups that Rust knows in place of traffic between hosts."""
    has_traffic = any(traffic.KEY in flow for flow in _flows(tree))
    return traffic.resolve(tree) if has_traffic else tree


def _full_paths(tree: Table, path: list[str]) -> list[list[str]]:
    """Return the full path, or one for each link and flow that a name with "*" matches."""
    kind, *rest = path if path[0] in ("links", "flows") and len(path) > 1 else ["", *path]
    if "*" not in rest[0]:
        return [_full_path(tree, path)]
    names = {"links": [*_links(tree)], "flows": [str(flow.get("name")) for flow in _flows(tree)]}
    paths = [
        [head, name, *rest[1:]]
        for head in ([kind] if kind else names)
        for name in matching(names[head], rest[0])
    ]
    if not paths:
        raise InputError(f"no {kind[:-1] or 'link or flow'} matches {shown(rest[0])}")
    return paths


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


def _reach(tree: Table, way: list[str], last: str, whole: Callable[[], Table]) -> Any:
    """Return the table or list at the path `way`; missing tables are created."""
    node: Any = tree
    for depth, key in enumerate(way):
        if isinstance(node, list):
            node = _element(node, key)
            continue
        if key in NAMED and isinstance(node.get(key), str):
            node[key] = table(node[key])
        if key in NAMED and key not in node:
            node[key] = {"name": _default_name(whole(), way[: depth + 1])}
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


def _default_name(whole: Table, path: list[str]) -> str:
    """Return the name of the default discipline, TCP or source of a canonical scenario."""
    node: Any = whole
    for key in path:
        node = _element(node, key) if isinstance(node, list) else node.get(key, {})
    if "name" not in node:
        raise InputError(f"there is no {path[-1]} here")
    return str(node["name"])
