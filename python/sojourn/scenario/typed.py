"""Scenario files as typed objects: `load`, and `Scenario` from a validated table."""

import json
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from sojourn import _sojourn
from sojourn._util.base import Model
from sojourn._util.public import public
from sojourn.fabric import traffic
from sojourn.scenario import named as library
from sojourn.scenario.draft import Draft, Table
from sojourn.scenario.keys import Change, Flow, Link, Scenario, Switch
from sojourn.scenario.parsing import read_value
from sojourn.scenario.variants import table

S = TypeVar("S", bound=msgspec.Struct)

MODULES = {"qdisc": "disciplines", "tcp": "tcp", "source": "sources"}
"""The modules with the classes of disciplines, TCPs and sources, and their kinds in Rust."""


@public
def load(path: str | Path, *, trust: bool = False) -> Scenario:
    """Load and validate a scenario file.

    Links, flows, changes, disciplines, TCPs and sources become objects of their classes:
    ``case.links["up"].qdisc.target``. Fields that the file does not set have their defaults, None
    for those that depend on other settings.
    `Scenario.replace` returns a changed copy.

    Parameters
    ----------
    path : str or Path
        A .toml or .json file. Traces that it names are relative to its folder.
    trust : bool, optional
        True if Python code that the file names may run. The default refuses it.

    Returns
    -------
    Scenario
        The scenario. It gives the same results as the file.

    Raises
    ------
    InputError
        If the file cannot be read, or the scenario is invalid. The message has the name of the
        file, and the line or the path of the key.
    """
    draft = Draft.read(path, trust=trust)
    draft.parse()
    return scenario(traffic.resolve(draft.tree))


@public
def named(
    name: str,
    *,
    rate: str | None = None,
    up: str | None = None,
    down: str | None = None,
    rtt: str | None = None,
    buffer: str | None = None,
    flows: int | None = None,
    qdisc: Any = None,
) -> Scenario:
    """Return a named scenario, like flent's "rrul".

    `sojourn list scenarios` shows the names, `sojourn list rrul` the options of one. An option of
    None has the default of the scenario.

    Parameters
    ----------
    name : str
        The name.
    rate, up, down : str, optional
        Rate of both directions, of the uplink, of the downlink.
    rtt : str, optional
        Round-trip propagation time.
    buffer : str, optional
        Buffer of the links as the time to send it.
    flows : int, optional
        Number of flows.
    qdisc : Qdisc, str or mapping, optional
        Discipline of every link under test. Change one link by `Scenario.replace`.

    Returns
    -------
    Scenario
        The scenario.

    Raises
    ------
    InputError
        If there is no such scenario, it does not have an option, or a value is invalid.

    Examples
    --------
    >>> import sojourn as sj
    >>> sj.named("tcp_nup", rate="20mbit", flows=2).flows[0].count
    2
    """
    options = {
        "rate": rate, "up": up, "down": down, "rtt": rtt, "buffer": buffer, "flows": flows
    }  # fmt: skip
    draft = Draft(library.tree(name, options), Path(name))
    if qdisc is not None:
        draft = draft.with_qdisc(table(qdisc))
    draft.parse()
    return scenario(draft.tree)


def scenario(tree: Table) -> Scenario:
    """Return the valid scenario `tree` as a Scenario."""
    inner = {
        "links": {name: _link(link) for name, link in tree["links"].items()},
        "flows": [_flow(flow) for flow in tree["flows"]],
    }
    if "switches" in tree:
        switches = tree["switches"].items()
        inner["switches"] = {name: _struct(Switch, switch) for name, switch in switches}
    if "changes" in tree:
        inner["changes"] = [_struct(Change, change) for change in tree["changes"]]
    return _struct(Scenario, tree | inner)


def _link(link: Table) -> Link:
    return _struct(Link, link | {k: _model(k, link[k]) for k in ("qdisc",) if k in link})


def _flow(flow: Table) -> Flow:
    return _struct(Flow, flow | {k: _model(k, flow[k]) for k in ("tcp", "source") if k in flow})


def _struct(kind: type[S], values: Mapping[str, Any]) -> S:
    """Return an object of the class `kind` with `values`, whose keys are written as in a file."""
    fields = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    return kind(**{fields[key]: value for key, value in values.items()})


def _model(module: str, entry: Any) -> Any:
    """Return a valid discipline, TCP or source, in any form, as an object of its class.

    A table that sets one parameter under two names is returned as it is, and so is a discipline
    that is written in Python.
    """
    tree = table(entry)
    if ":" in tree["name"]:
        return entry
    kind, names = _classes(module)[_folded(tree.pop("name"))]
    if isinstance(entry, str):
        tree = {key: read_value(value) for key, value in tree.items()}
    values = {names[key.replace("-", "_")]: value for key, value in tree.items()}
    return _struct(kind, values) if len(values) == len(tree) else entry


def _folded(name: str) -> str:
    """Return a name as Rust compares it."""
    return name.lower().replace("-", "_")


@cache
def _classes(module: str) -> dict[str, tuple[type[Model], dict[str, str]]]:
    """Return, by name and alias, each class of `module` and its parameters by name and alias."""
    public = import_module(f"sojourn.{module}")
    by_tag = {
        c.__struct_config__.tag: c for c in (getattr(public, name) for name in public.__all__)
    }
    classes: dict[str, tuple[type[Model], dict[str, str]]] = {}
    tables = json.loads(_sojourn.specs())
    presets = tables["presets"] if module == "tcp" else []
    for spec in [*tables[MODULES[module]], *presets]:
        names = {one: p["name"] for p in spec["params"] for one in (p["name"], *p["aliases"])}
        classes |= dict.fromkeys((spec["name"], *spec["aliases"]), (by_tag[spec["name"]], names))
    return classes
