"""The command `sojourn list`: disciplines, TCPs, sources, metrics, papers, scenarios, keys."""

import inspect
import json
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn.cli import reference
from sojourn.cli.collection import collection, installed
from sojourn.custom import identity
from sojourn.custom.aqm import Aqm
from sojourn.custom.base import Custom
from sojourn.custom.control import CongestionControl
from sojourn.custom.source import TrafficSource
from sojourn.display import parameters
from sojourn.display.console import console
from sojourn.display.table import Table
from sojourn.scenario import missing, named

TABLES = ("disciplines", "tcp", "sources", "metrics", "papers", "scenarios")
"""Kinds of things that exist."""

KINDS = (*TABLES, "scenario", "missing")
"""Kinds of lists."""

if TYPE_CHECKING:
    from sojourn.metrics.registry import Metric

Spec = dict[str, Any]

OWN: dict[type[Custom], str] = {
    Aqm: "disciplines",
    CongestionControl: "tcp",
    TrafficSource: "sources",
}
"""Kinds of classes in Python."""

SCENARIO_PARTS = {
    "source": "source",
    "topology": "topology",
    "look at": "look",
    "differs from the source": "differs",
}
"""Parts of the description of a named scenario: title, and key of `named.spec`."""

LONG = 12
"""Longest number that is shown in full, in characters."""


def find(kind: str | None, name: str | None) -> Any:
    """Return all lists, the list of a kind, or one entry by name or alias.

    A first argument that is not a kind is a name: of an entry, or of a parameter. A name with a
    colon is a class in Python.
    """
    if kind is not None and kind not in KINDS:
        if name is not None:
            raise InputError(f"list: unknown kind {shown(kind)}{near(kind, KINDS)}")
        kind, name = None, kind
    if kind == "scenario":
        return reference.find(name)
    if kind == "papers":
        collection()  # raises InputError if none is installed
    if name is None:
        return {one: _specs(one) for one in KINDS} if kind is None else _specs(kind)
    if ":" in name and kind in (None, *OWN.values()):
        return _own(name, kind)
    absent = missing.find(name)
    if kind == "missing" and absent:
        return {"kind": kind, **absent}
    known: list[str] = []
    entries: list[Spec] = []
    folded = name.lower().replace("-", "_")
    for one in TABLES if kind is None else (kind,):
        if entries and one == "papers":  # slow to import, and no name is in both
            break
        for spec in _specs(one):
            if folded in (spec["name"], *spec["aliases"]):
                entries.append({"kind": one, **spec})
            known.append(spec["name"])
    if entries:
        others = [entry["kind"] for entry in entries[1:]]
        return entries[0] | ({"also": others} if others else {})
    if absent:
        raise InputError(f"list: {missing.refusal(absent, name)}")
    if owners := _owners(folded, kind):
        return {"parameter": folded, "owners": owners}
    known += KINDS if kind is None else ()
    raise InputError(f"list: unknown name {shown(name)}{near(name, known)}")


def _owners(parameter: str, kind: str | None) -> list[Spec]:
    """Return the disciplines, TCPs and sources that have a parameter, with its description."""
    return [
        {"kind": one, "name": spec["name"], "value": _short(row), "about": row["about"]}
        for one in OWN.values()
        if kind in (None, one)
        for spec in _specs(one)
        for row in spec.get("params", ())
        if parameter in (row["name"], *row["aliases"])
    ]


def _own(name: str, kind: str | None) -> Spec:
    """Return the entry of a class in Python: FILE.py:CLASS or MODULE:CLASS."""
    bases = [base for base, of in OWN.items() if kind in (None, of)]
    cls = identity.load(name, tuple(bases))
    own = parameters.described(cls())
    rows = [
        {"name": row.name, "value": row.default, "about": row.about, "kind": ""} for row in own.rows
    ]
    nothing = {"range": "", "symbol": "", "aliases": []}
    return {
        "kind": next(of for base, of in OWN.items() if issubclass(cls, base)),
        "name": name,
        "aliases": [],
        "about": own.about,
        "source": "a class in Python",
        "params": [{**row, **nothing} for row in rows],
    }


def _specs(kind: str) -> list[Spec]:
    """Return the entries of a kind."""
    if kind == "metrics":
        return _metrics()
    if kind == "papers":  # slow to import, so only on request
        return _papers()
    if kind == "scenario":
        return reference.tables()
    if kind == "scenarios":
        return [{"aliases": [], **named.spec(name)} for name in named.ORDER]
    if kind == "missing":
        return [spec for group in missing.groups().values() for spec in group]
    specs = json.loads(_sojourn.specs())
    entries: list[Spec] = specs.get(kind, [])
    return entries + specs["presets"] if kind == "tcp" else entries


def show(entry: Any, kind: str | None) -> None:
    """Print the result of `find`."""
    out = console()
    if kind == "scenario":
        reference.show(entry)
        for key in entry["keys"]:
            if key["name"] in reference.NAMED:
                _named(key)
    elif kind == "missing":
        _missing(entry if isinstance(entry, list) else [entry])
    elif isinstance(entry, list):
        _kind(str(kind), entry)
    elif "owners" in entry:
        _parameter(entry)
    elif "claims" in entry:
        _paper(entry)
    elif "topology" in entry:
        _scenario(entry)
    elif "unit" in entry:
        _metric(entry)
    elif "params" in entry:
        _one(entry)
    else:
        for name in TABLES:
            out.print(f"[bold]{name}[/]")
            _kind(name, entry[name])
            out.print()
        out.print("sojourn list NAME shows the parameters of an entry.")
        out.print("sojourn run rrul runs a named scenario.")
        out.print("sojourn list scenario shows the keys of a scenario, sojourn new writes one.")
        out.print("sojourn list missing shows missing features and their substitutes.")


def _kind(kind: str, specs: list[Spec]) -> None:
    out = console()
    if not specs:
        out.print(f"there are no {kind} yet")
        return
    measured = kind == "metrics"
    table = Table("name", "description", "source", *["unit"] * measured, prose=[1, 2, 3])
    default = reference.default_of(kind) if kind in reference.NAMED.values() else None
    for spec in specs:
        others = f" (also {', '.join(spec['aliases'])})" if spec["aliases"] else ""
        others += "; the default" * (spec["name"] == default)
        unit = [spec["unit"]] if measured else []
        table.add_row(spec["name"], spec["about"] + others, spec["source"], *unit)
    out.print(table, soft_wrap=True)


def _parameter(entry: Spec) -> None:
    """Show the entries that have a parameter, one row for each description and default."""
    out = console()
    out.print(f"[bold]{escape(entry['parameter'])}[/] is a parameter of:\n")
    rows: dict[tuple[str, str], list[str]] = {}
    for one in entry["owners"]:
        rows.setdefault((one["value"], one["about"]), []).append(one["name"])
    table = Table("of", "default", "description", left=2, prose=[0, 2])
    for (value, about), names in rows.items():
        table.add_row(", ".join(names), value, about)
    out.print(table, soft_wrap=True)
    out.print("\nsojourn list NAME shows all parameters of one.")


def _missing(specs: list[Spec]) -> None:
    out = console()
    for n, spec in enumerate(specs):
        also = f" ({', '.join(spec['aliases'])})" if spec["aliases"] else ""
        state = "planned" if spec["planned"] else "not planned"
        out.print("\n" * (n > 0) + f"[bold]{escape(spec['name'])}[/]{escape(also)}")
        for line in (spec["about"], f"{state}: {spec['why']}", f"use {spec['instead']}"):
            out.print(Padding(escape(line), (0, 0, 0, 2), expand=False))


def call(metric: "Metric") -> str:
    """Return the call of a metric: its name, arguments and defaults."""
    signature = inspect.signature(metric.function)
    arguments = [
        p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()
    ]
    plain = signature.replace(parameters=arguments, return_annotation=inspect.Signature.empty)
    return f"{metric.name}{plain}"


def _metrics() -> list[Spec]:
    """Return the metrics in the format of the tables of Rust."""
    from sojourn.metrics import METRICS

    return [
        {
            "name": one.name,
            "aliases": [],
            "about": one.about,
            "source": one.source,
            "unit": one.unit,
            "call": call(one),
            "doc": inspect.getdoc(one.function) or "",
        }
        for one in METRICS.values()
    ]


def _papers() -> list[Spec]:
    """Return the installed papers in the format of the tables of Rust."""
    papers = installed()
    return (
        []
        if papers is None
        else [
            {
                "name": one.id,
                "aliases": [] if "-" not in one.id else [one.id.replace("-", "_")],
                "about": one.title,
                "source": one.reference,
                "doc": one.about.strip(),
                "figures": [figure.number for figure in one.figures],
                "claims": [{"id": claim.id, "says": claim.says} for claim in one.claims],
            }
            for one in map(papers.find, papers.ids())
        ]
    )


def _paper(spec: Spec) -> None:
    out = console()
    out.print(f"[bold]{escape(spec['about'])}[/], {escape(spec['source'])}\n")
    out.print(escape(spec["doc"]) + "\n")
    for claim in spec["claims"]:
        out.print(f"{claim['id']}  {escape(claim['says'])}")
    out.print(f"\nfigures and tables: {escape(', '.join(spec['figures']))}")
    out.print(f"sojourn paper run {spec['name']} --out DIR makes them and judges the claims.")


def _scenario(spec: Spec) -> None:
    out = console()
    out.print(f"[bold]{spec['name']}[/]: {escape(spec['about'])}\n")
    for title, key in SCENARIO_PARTS.items():
        if spec[key]:
            out.print(f"{title}: {spec[key]}", markup=False)
    options = " ".join(f"--{key} {value}" for key, value in spec["options"].items())
    out.print(f"options and defaults: {options}", markup=False)
    links = " and ".join(spec["links"])
    out.print(f"--qdisc sets the discipline of {links}, --set up.rate=5mbit any other key")
    out.print(f"\nsojourn run {spec['name']} --qdisc fq_codel --plot FIG.png")


def _metric(spec: Spec) -> None:
    out = console()
    out.print(f"[bold]{escape(spec['call'])}[/]")
    out.print(f"unit: {escape(spec['unit'])}; source: {escape(spec['source'])}\n")
    out.print(escape(spec["doc"]))


def _one(spec: Spec) -> None:
    out = console()
    others = f" (also {', '.join(spec['aliases'])})" if spec["aliases"] else ""
    out.print(f"[bold]{escape(spec['name'])}[/]{escape(others)}: {escape(spec['about'])}")
    if "decides" in spec:
        out.print(f"decides {escape(spec['decides'])}")
        out.print(f"state: {spec['state_bytes']:,} bytes with defaults, without queued packets")
    out.print(f"source: {escape(spec['source'])}\n")
    table = Table("parameter", "default", "description", left=2, prose=[2])
    for row in spec["params"]:
        facts = [row["kind"].replace("|", " | "), row["range"]]
        facts += [f"the paper's {row['symbol']}"] if row["symbol"] not in ("", row["name"]) else []
        facts += [f"also {', '.join(row['aliases'])}"] if row["aliases"] else []
        about = Text(row["about"] + "\n").append("; ".join(filter(None, facts)), style="dim")
        table.add_row(row["name"], _short(row), about)
    out.print(table, soft_wrap=True)
    for kind in spec.get("also", ()):
        out.print(f"\nsojourn list {kind} {spec['name']} shows the entry of {kind}.")


def _short(row: Spec) -> str:
    """Return a default value; long numbers are rounded to six digits."""
    number = row["kind"].startswith("number") and len(row["value"]) > LONG
    return f"{float(row['value']):.6g}" if number else str(row["value"])


def _named(key: Spec) -> None:
    """Show the default value of a key whose values have parameters."""
    kind = reference.NAMED[key["name"]]
    out = console()
    if key["default"]:
        out.print()
        show(find(kind, key["default"]), kind)
    out.print(f"\nsojourn list {kind} shows the others, sojourn list NAME their parameters.")
