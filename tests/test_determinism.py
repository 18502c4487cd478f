"""The same scenario gives the same bytes: in other processes, threads, and orders."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import sojourn as sj
from conftest import EXAMPLES, SMALL
from sojourn import _sojourn
from sojourn.scenario.draft import Draft

CHILD = """
import hashlib, sys
from sojourn import _sojourn
summary, columns = _sojourn.ParsedScenario(open(sys.argv[1]).read()).simulate()
digest = hashlib.sha256(summary.encode())
for name in sorted(columns):
    digest.update(name.encode() + columns[name].tobytes())
print(digest.hexdigest())
"""


def digest(tree: dict[str, Any], folder: Path) -> str:
    """Return a hash of all output of a run in its own process."""
    path = folder / "scenario.json"
    path.write_text(Draft.read(tree).to_json())
    done = subprocess.run(
        [sys.executable, "-c", CHILD, path], capture_output=True, text=True, check=True
    )
    return done.stdout


def raw(tree: dict[str, Any]) -> tuple[str, dict[str, bytes]]:
    """Return all output of a run in this process."""
    summary, columns = _sojourn.ParsedScenario(Draft.read(tree).to_json()).simulate()
    return summary, {name: column.tobytes() for name, column in columns.items()}


def small_tree(path: Path) -> dict[str, Any]:
    """Return the small scenario with series and packet log."""
    return Draft.read(path).set(["sample=10ms", "packet_log=true"]).tree


def test_two_processes_give_the_same_bytes(small: Path, tmp_path: Path) -> None:
    """Columns and summary are equal; another seed gives others."""
    tree = small_tree(small)
    assert digest(tree, tmp_path) == digest(tree, tmp_path)
    assert digest(tree, tmp_path) != digest({**tree, "seed": 2}, tmp_path)


def test_parallel_runs_give_the_same(small: Path) -> None:
    """Eight at once on all cores equal a single run."""
    tree = small_tree(small)
    alone = sj.simulate(tree)
    for result in sj.simulate_many([tree] * 8):
        assert result.summary == alone.summary
        assert np.array_equal(result.completions.duration_s, alone.completions.duration_s)
        for name, column in alone.links["up"].series.items():
            assert np.array_equal(result.links["up"].series[name], column, equal_nan=True)


def test_order_of_declaration_has_no_effect(small: Path) -> None:
    """Flows and links in reverse order give the same numbers per name."""
    text = SMALL + '\n[links.back]\nrate = "1mbit"\n'
    small.write_text(text)
    tree = Draft.read(small).set(["sample=10ms", "bulk.return_path=['back']"]).tree
    turned = {
        **tree,
        "flows": tree["flows"][::-1],
        "links": dict(reversed(tree["links"].items())),
    }
    one, other = sj.simulate(tree), sj.simulate(turned)
    assert one.links == other.links
    assert one.flows == other.flows
    for name, flow in one.flows.items():
        for column, values in flow.series.items():
            assert np.array_equal(values, other.flows[name].series[column]), (name, column)


def test_another_flow_does_not_shift_random_streams(small: Path) -> None:
    """A new flow on its own link leaves all other flows unchanged to the byte."""
    tree = small_tree(small)
    links = {**tree["links"], "aside": {"rate": "5mbit", "qdisc": "red"}}
    new = {"name": "aaa", "source": {"name": "bulk", "start": "uniform(0s, 1s)"}, "path": ["aside"]}
    more = {**tree, "links": links, "flows": [{**new, "rtt": "20ms"}, *tree["flows"]]}
    before, after = raw(tree), raw(more)
    for name, column in before[1].items():
        if not name.endswith("/flow"):  # an index, which does move
            assert after[1][name] == column, name
    assert json.loads(before[0])["links"]["up"] == json.loads(after[0])["links"]["up"]


def test_recording_changes_nothing(small: Path) -> None:
    """Series and packet logs do not affect the run."""
    plain, seen = sj.simulate(small), sj.simulate(small_tree(small))
    assert plain.links == seen.links
    assert plain.flows == seen.flows


def test_canonical_scenario_gives_the_same_run() -> None:
    """The scenario stored with a result reproduces it."""
    tree = Draft.read(EXAMPLES / "home-uplink.toml").set(["duration=15s"]).tree
    result = sj.simulate(tree)
    assert sj.simulate(result.scenario).summary == result.summary
