"""Keys of a scenario: `sojourn list scenario`, docs/reference/scenario.md.

Rust parses scenarios by tables of keys and exports these tables. Keys that name files are read in
Python and described here.
"""

import functools
import json
import re
from typing import Any

from rich.markup import escape
from rich.padding import Padding

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn.display.console import console
from sojourn.display.table import Table

Spec = dict[str, Any]


def _key(name: str, kind: str, unset: str, about: str, example: str) -> Spec:
    return {
        "name": name,
        "kind": kind,
        "required": unset == "required",
        "default": None,
        "unset": unset,
        "range": None,
        "about": about,
        "example": example,
    }


FILES: tuple[Spec, ...] = (
    {
        "path": "links.NAME.trace",
        "about": "Recorded link from a file: a CSV with the columns t_s and rate_bps, delay_s or "
        "both, or a mahimahi trace with one time in milliseconds per line. Its path is relative to "
        "the file of the scenario. The name of the file can stand in place of the table.",
        "keys": [
            _key("file", "file name", "required", "Name of the file.", '"lte.trace"'),
            _key(
                "bin_ms",
                "integer",
                "each opportunity separately",
                "Mahimahi traces only: average the rate over intervals of this many ms.",
                "100",
            ),
            _key(
                "repeat",
                "duration",
                "the last row applies until the end",
                "CSV only: period after which it repeats; longer than the time of its last row.",
                '"60s"',
            ),
        ],
    },
    {
        "path": "flows.source",
        "about": 'For source = { name = "trace", ... }: packets or flows from a CSV file with the '
        "columns time_s, size_bytes and, if the group has several flows, flow.",
        "keys": [
            _key(
                "path",
                "file name",
                "the columns are given directly",
                "Name of the file, relative to the scenario file; may be gzipped.",
                '"packets.csv"',
            )
        ],
    },
)
"""Tables of keys that name files, in the format of the tables of Rust."""

NAMED = {"qdisc": "disciplines", "tcp": "tcp", "source": "sources"}
"""Lists of `sojourn list` for the keys whose values have parameters."""


def tables() -> list[Spec]:
    """Return all tables of a scenario with path, description and keys."""
    specs: list[Spec] = json.loads(_sojourn.specs())["scenario"]
    for table in FILES:
        same = [i for i, one in enumerate(specs) if one["path"] == table["path"]]
        parent = [i for i, one in enumerate(specs) if one["path"] == table["path"].split(".")[0]]
        specs.insert((same or parent)[-1] + 1, table)
    return specs


def default_of(kind: str) -> str:
    """Return the name of the default discipline, TCP or source; `kind` as in `sojourn list`."""
    (name,) = (name for name, listed in NAMED.items() if listed == kind)
    keys = (key for table in tables() for key in table["keys"])
    return next(str(key["default"]) for key in keys if key["name"] == name)


def kinds() -> list[Spec]:
    """Return the syntax of each kind of value."""
    specs: list[Spec] = json.loads(_sojourn.specs())["kinds"]
    return specs


def title(table: Spec) -> str:
    """Return the TOML header of a table."""
    if not table["path"]:
        return "Top level"
    return f"[[{table['path']}]]" if table["path"] in ("flows", "changes") else f"[{table['path']}]"


def find(path: str | None) -> Spec:
    """Return the tables, keys and kinds of values at a path like links.loss; all for None.

    Raises InputError for an unknown path.
    """
    if path is None:
        return {"kind": "scenario", "tables": tables(), "keys": [], "kinds": kinds()}
    words = _words(path)
    every = tables()
    inside = [table for table in every if _words(table["path"]) == words]
    owners = [table for table in every if _words(table["path"]) == words[:-1]]
    keys = [
        {"table": table["path"], **key}
        for table in owners
        for key in table["keys"]
        if words and key["name"] == words[-1]
    ]
    if not inside and not keys:
        there = [key["name"] for table in owners for key in table["keys"]]
        known = there or [".".join(_words(table["path"])) for table in every[1:]]
        raise InputError(f"list scenario: unknown key {shown(path)}{near(words[-1], known)}")
    return {"kind": "scenario", "tables": inside, "keys": keys, "kinds": []}


@functools.cache
def _key_names() -> frozenset[str]:
    """Return the names of all keys. Rust writes all tables anew for each call of `tables`."""
    return frozenset(key["name"] for table in tables() for key in table["keys"])


def _words(path: str) -> list[str]:
    """Split a path. Names of links and flows are removed, singulars become plurals."""
    words = [word for word in re.sub(r"[\[\]\s]", "", path).split(".") if word != "NAME"]
    heads = {"link": "links", "flow": "flows", "change": "changes"}
    if words and words[0] in heads:
        words[0] = heads[words[0]]
    if len(words) > 2 and words[0] in heads.values() and words[1] not in _key_names():
        del words[1]
    return [word for word in words if word]


def show(reference: Spec) -> None:
    """Print the result of `find`."""
    out = console()
    for n, table in enumerate(reference["tables"]):
        out.print("\n" * (n > 0) + f"[bold]{escape(title(table))}[/]")
        out.print(escape(table["about"]))
        for key in table["keys"]:
            _show_key(key)
    for key in reference["keys"]:
        out.print(escape(title({"path": key["table"]})))
        _show_key(key)
    if reference["kinds"]:
        out.print("\n[bold]values[/]")
        rows = Table("kind", "syntax", prose=[1])
        for kind in reference["kinds"]:
            examples = ", ".join(kind["examples"])
            rows.add_row(kind["name"], f"{kind['about']}: {examples}")
        out.print(rows, soft_wrap=True)
        out.print("\nsojourn list scenario flows.tcp (or links, links.loss, ...) shows a part,")
        out.print("sojourn list NAME the parameters of a discipline, TCP or source.")


def _show_key(key: Spec) -> None:
    out = console()
    out.print()
    out.print(Padding(f"[bold]{key['name']}[/]: {escape(facts(key))}", (0, 0, 0, 2), expand=False))
    for line in (key["about"], example(key)):
        out.print(Padding(escape(line), (0, 0, 0, 6), expand=False))


def facts(key: Spec) -> str:
    """Return kind, range and default of a key, with semicolons between them."""
    default = f"default {key['default']}" if key["default"] else f"if not given: {key['unset']}"
    parts = (key["kind"], key["range"], "required" if key["required"] else default)
    return "; ".join(part for part in parts if part)


def example(key: Spec) -> str:
    """Return the example of a key as a line of TOML."""
    name = key["name"] if key["name"].isidentifier() else f'"{key["name"]}"'
    return f"{name} = {key['example']}"
