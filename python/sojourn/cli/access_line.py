"""Display of access lines by name, and their scenario: `sojourn line list`, `line describe`."""

import json
from pathlib import Path
from typing import Any

from sojourn.display.console import console
from sojourn.display.table import Table
from sojourn.line.model import flows_of
from sojourn.scenario import describe
from sojourn.scenario.draft import canonical
from sojourn.scenario.lines import line, lines, links_of
from sojourn.scenario.save import save_scenario

Tree = dict[str, Any]


def scenario(name: str) -> Tree:
    """Return a scenario with endless downloads and uploads over the line called `name`.

    Raises InputError if there is no such line.
    """
    tree: Tree = {"name": name, "duration": "60s", "warmup": "10s", "seed": 1, "sample": "100ms"}
    return {**tree, "links": links_of(name), "flows": flows_of(None)}


def show_all(*, as_json: bool) -> None:
    """Print all lines: name, rates, one-way delay, description; or all that is known as JSON."""
    if as_json:
        print(json.dumps(lines(), indent=2))
        return
    table = Table("line", "down", "up", "delay", "description", left=1, prose=[4])
    for one in lines():
        links = canonical(scenario(one["name"]))["links"]
        rates = [describe.rate(links[way]) for way in ("down", "up")]
        table.add_row(one["name"], *rates, describe.delay(links["down"]), one["about"])
    console().print(table, soft_wrap=True)
    print("sojourn line describe NAME shows the model, and the source of each parameter.")
    print('sojourn link --profile NAME emulates a line; line = "NAME" puts it into a scenario.')


def show(name: str, out: Path | None, *, as_json: bool) -> None:
    """Print the model and the parameters of a line; write its scenario to `out`."""
    one = line(name)
    if out is not None:
        save_scenario(scenario(name), out)
    if as_json:
        print(json.dumps(one, indent=2))
        return
    print(f"{one['name']}: {one['about']}\n\n{one['model']}\nNot modelled: {one['omits']}.\n")
    table = Table("key", "down", "up", "source", left=1, prose=[3])
    for row in one["rows"]:
        table.add_row(row["key"], row["down"] or "-", row["up"] or "-", row["source"])
    console().print(table, soft_wrap=True)
    if out is not None:
        print(f"wrote {out}")
