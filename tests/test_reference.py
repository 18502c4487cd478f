"""The reference of a scenario: every key exists, every default and example is what Rust has."""

import copy
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import gen
import pages
import sojourn as sj
import structs
from conftest import EXAMPLES, Command
from sojourn import _sojourn
from sojourn.cli import reference
from sojourn.scenario.draft import Draft, canonical
from support.pages import blocks

ROOT = EXAMPLES.parent
WHOLE = tomllib.loads((EXAMPLES / "every-key.toml").read_text())
"""Scenario of the example with every key."""

KEYS = [
    pytest.param(table, key, id=f"{table['path'] or 'top'}.{key['name']}")
    for table in json.loads(_sojourn.specs())["scenario"]
    for key in table["keys"]
]


def places(tree: Any, path: str) -> list[dict[str, Any]]:
    """Return the tables of a scenario that a path like changes.links.NAME leads to."""
    tables = [tree]
    for word in path.split(".") if path else ():
        inside = []
        for one in tables:
            if word in ("NAME", "CLASS"):
                inside += [one[name] for name in sorted(one)]  # as Rust has them
            elif isinstance(one.get(word), list):
                inside += one[word]
            elif isinstance(one.get(word), dict):
                inside.append(one[word])
        tables = inside
    return tables


def test_every_key_is_in_the_example() -> None:
    """The example has every key and no other."""
    for table in json.loads(_sojourn.specs())["scenario"]:
        there = set().union(*(one.keys() for one in places(WHOLE, table["path"])))
        assert there == {key["name"] for key in table["keys"]}, table["path"]


@pytest.mark.parametrize(("table", "key"), KEYS)
def test_a_default_is_what_rust_takes(table: Any, key: Any) -> None:
    """Without the key the scenario has the value that is stated, or is refused."""
    path, name = table["path"], key["name"]
    tree = copy.deepcopy(WHOLE)
    for i, one in enumerate(places(tree, path)):
        if name not in one:
            continue
        changed = copy.deepcopy(tree)
        del places(changed, path)[i][name]
        if (path, name) == ("flows", "source"):  # without it the flow has a TCP
            places(changed, path)[i].pop("ecn", None)
        if key["required"]:
            with pytest.raises(sj.InputError, match=r"is missing|there is no"):
                canonical(changed)
        elif key["default"] is not None:
            value = places(canonical(changed), path)[i][name]
            value = value["name"] if isinstance(value, dict) else value
            assert str(value) in (key["default"], f"{key['default']}.0", key["default"].title())


CHANCE: dict[str, Any] = {"probability": 0.5}
IMPAIRMENTS: dict[str, list[tuple[tuple[str, ...], dict[str, Any]]]] = {
    "links.NAME.loss": [
        (("probability", "correlation"), CHANCE),
        (("p13", "p31", "p32", "p23", "p14"), {"p13": 0.5}),
        ((), {"p": 0.1}),
    ],
    "links.NAME.jitter": [((), {"size": "1ms"})],
    "links.NAME.reorder": [((), CHANCE)],
    "links.NAME.duplicate": [((), CHANCE)],
    "links.NAME.corrupt": [((), CHANCE)],
    "links.NAME.outages": [((), {"up": "1s", "down": "1ms"})],
    "links.NAME.slot": [
        (("distribution", "delay", "jitter"), {"distribution": "pareto", "delay": "1ms"}),
        ((), {"min": "1ms"}),
    ],
}
"""Tables of impairments: the keys that others need, by the names of the others."""


@pytest.mark.parametrize(("table", "key"), KEYS)
def test_an_example_is_accepted_and_has_an_effect(table: Any, key: Any) -> None:
    """Each example replaces the value in the scenario."""
    path, name = table["path"], key["name"]
    tree: Any = {
        "duration": "50s",
        "links": {
            "up": {"rate": "20mbit", "loss": {"p": 0.1}, "trace": {"t_ns": [0], "delay_ns": [0]}},
            "down": {"rate": "30mbit"},
        },
        "flows": [{"name": "one", "path": ["down"]}, {"name": "upload", "path": ["down"]}],
        "changes": [{"at": "20s", "links": {"down": {"rate": "1mbit"}}}],
    }
    value = tomllib.loads(f"value = {key['example']}")["value"]
    if "process" in (name, path.rpartition(".")[2]):  # not with a trace or a change of the rate
        tree["links"]["up"] = {"rate": "20mbit"}
        del tree["changes"]
    if path == "warm_from":
        tree["warm_from"] = {"at": "3s", "seed": 9}
    if path.endswith(".process"):
        base = {"every": "1s", "rate_min": "1mbit", "rate_max": "30mbit"}
        tree["links"]["up"]["process"] = base | {"delay_min": "1ms", "delay_max": "90ms"}
    if path.startswith("switches.NAME"):
        tree["switches"] = {"tor": {"buffer": "1MB", "ports": ["down"], "classes": {"EF": {}}}}
    if path in IMPAIRMENTS:
        bases = (base for names, base in IMPAIRMENTS[path] if not names or name in names)
        tree["links"]["up"][path.rpartition(".")[2]] = next(bases).copy()
    if name in ("spread", "hash"):
        tree["links"] |= {"h0-h1": {"rate": "1mbit"}, "h1-h0": {"rate": "1mbit"}}
        tree["flows"][0] |= {"path": ["h0-h1"], "return_path": ["h1-h0"]}
    if name == "hash":
        tree["flows"][0]["spread"] = "connection"
    if name == "queued":
        tree["changes"][0]["links"]["down"]["up"] = False
    before = canonical(tree)
    place = places(tree, path)[0]
    if path.endswith(".trace"):
        # Columns of one length; opportunities stand alone.
        place.clear()
        both = {"t_ns": [0, 2_000_000_000], "delay_ns": [0, 0]}
        place |= {name: value} if name == "opportunities_ms" else both | {name: value}
    elif (path, name) in (("", "links"), ("links.NAME", "trace")):
        tree["links"] = {"up": {"rate": "5mbit"}}
        tree["flows"] = [{"name": "upload", "path": ["up"]}]
        del tree["changes"]
        places(tree, path)[0][name] = value
    elif (path, name) == ("flows", "name"):
        del tree["flows"][1:]
        place[name] = value
    elif (path, name) == ("changes", "links"):
        tree["links"]["up"].pop("trace")
        place[name] = value
    else:
        place[name] = value
        if name == "sample_flows":
            tree["sample"] = "1s"
        elif (path, name) == ("flows", "ecn"):
            place["source"] = "cbr"
    assert canonical(tree) != before


@pytest.mark.parametrize(("table", "key"), KEYS)
def test_a_misspelt_key_is_refused(table: Any, key: Any) -> None:
    """The message has its path and the right name."""
    tree = copy.deepcopy(WHOLE)
    place = next(one for one in places(tree, table["path"]) if key["name"] in one)
    place[f"{key['name']}_"] = place.pop(key["name"])
    meant = rf'{key["name"]}_: unknown key .* did you mean "{key["name"]}"'
    with pytest.raises(sj.InputError, match=meant):
        canonical(tree)


@pytest.mark.parametrize(("table", "key"), [k for k in KEYS if k.values[1]["range"]])  # type: ignore[index]
def test_a_range_holds(table: Any, key: Any) -> None:
    """A value above the range is refused, and the message has the range."""
    tree = copy.deepcopy(WHOLE)
    end = key["range"].split(" to ")[1]
    number, unit = re.fullmatch(r"(\d+)(\w*)", end).groups()  # type: ignore[union-attr]
    above = f"{int(number) + 1}{unit}" if unit else int(number) + 1
    if key["name"] in ("rate", "delay") and "changes" in table["path"]:
        place = tree["changes"][1]["links"]["up"]
    else:
        place = next(one for one in places(tree, table["path"]) if key["name"] in one)
    place[key["name"]] = above
    with pytest.raises(sj.InputError, match=rf"{key['name']}: .* out of range, allowed: "):
        canonical(tree)


def test_files_of_the_reference_are_read(tmp_path: Path) -> None:
    """The examples of the keys that Python reads, with files that are written here."""
    (tmp_path / "lte.trace").write_text("1\n3\n3\n8\n")
    (tmp_path / "lte.csv").write_text("t_s,rate_bps\n0,1000000\n2,2000000\n")
    (tmp_path / "packets.csv").write_text("time_s,size_bytes\n0,100\n1,200\n")
    scenarios = {}
    for table in reference.FILES:
        for key in table["keys"]:
            line = reference.example(key)
            if table["path"] == "flows.source":
                link, source = "", f'source = {{ name = "trace", {line} }}'
            else:
                named = "" if key["name"] == "file" else 'file = "lte.trace", '
                named = 'file = "lte.csv", ' if key["name"] == "repeat" else named
                link, source = f"trace = {{ {named}{line} }}", ""
            file = tmp_path / "case.toml"
            file.write_text(
                f'duration = "10s"\n[links.up]\nrate = "1mbit"\n{link}\n'
                f'[[flows]]\nname = "f"\npath = ["up"]\n{source}\n'
            )
            scenarios[key["name"]] = canonical(Draft.read(file))
    assert scenarios["file"]["links"]["up"]["trace"] == {"opportunities_ms": [1, 3, 3, 8]}
    assert scenarios["bin_ms"]["links"]["up"]["trace"]["repeat"] == "100ms"
    assert scenarios["repeat"]["links"]["up"]["trace"]["repeat"] == "60s"
    assert scenarios["path"]["flows"][0]["source"]["size_bytes"] == [100, 200]


def test_the_pages_and_classes_are_those_of_the_tables() -> None:
    """`make gen` would change nothing."""
    tables = json.loads(_sojourn.specs())["scenario"]
    assert gen.KEYS.read_text() == structs.structs(tables)
    for path, text in pages.pages().items():
        assert path.read_text() == text, path.name


def test_every_scenario_of_the_page_runs() -> None:
    """The shortest, the same with all defaults, the one of all keys, and a flow of QUIC."""
    shortest, whole, every, quic = blocks("toml", "docs/reference/scenario.md")
    assert canonical(tomllib.loads(shortest)) == tomllib.loads(whole)
    assert canonical(tomllib.loads(whole)) == tomllib.loads(whole)
    assert tomllib.loads(every) == WHOLE
    for text in (shortest, every):
        result = sj.simulate({**tomllib.loads(text), "duration": "20s"})
        assert all(link["departed_packets"] > 0 for link in result.links.values())
        assert all(flow["goodput_bps"] > 0 for flow in result.flows.values())
    links = {"down": {"rate": "10mbit"}}
    (flow,) = sj.simulate({"duration": "5s", "links": links, **tomllib.loads(quic)}).flows.values()
    assert flow["goodput_bps"] > 0


def test_the_python_of_the_page_of_metrics_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python examples of the page of metrics run unchanged."""
    monkeypatch.chdir(ROOT)
    (example,) = blocks("python", "docs/reference/metrics.md")
    exec(compile(example, "metrics.md", "exec"), {})


def test_list_scenario_shows_all_and_a_part(sojourn: Command) -> None:
    """Every key; a table; a key, by several ways of writing it; the default TCP in full."""
    out = sojourn("list", "scenario")[1]
    for table in reference.tables():
        assert reference.title(table) in out
        for key in table["keys"]:
            assert f"{key['name']}: {key['kind']}" in out
            assert reference.example(key) in out
    assert "1/r packets" in sojourn("list", "scenario", "links.loss")[1]
    for path in ("flows.rtt", "flow.rtt", "flows.upload.rtt", "[[flows]].rtt"):
        assert sojourn("list", "scenario", path)[1].count("Round-trip propagation time") == 1
    tcp = sojourn("list", "scenario", "flows.tcp")[1]
    assert "default cubic" in tcp
    assert "initial_window" in tcp
    summary = json.loads(sojourn("list", "scenario", "links.rate", "--json")[1])
    assert summary["keys"][0]["range"] == "1bit to 100tbit"
    code, _, err = sojourn("list", "scenario", "flows.rttt")
    assert (code, 'did you mean "rtt"?' in err) == (2, True)
