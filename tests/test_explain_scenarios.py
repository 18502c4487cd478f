"""Every scenario that `run` accepts is explained, from memory and from its stored result."""

import json
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import sojourn as sj
from conftest import EXAMPLES, SMALL, Command
from mutation import shuffled
from sojourn import _sojourn
from sojourn._util.units import seconds
from sojourn.scenario import named
from sojourn.scenario.draft import Draft, canonical
from support.pages import ROOT, blocks

pytestmark = pytest.mark.filterwarnings("ignore::sojourn.ScenarioWarning")

TEMPLATES = ROOT / "python" / "sojourn" / "cli" / "templates"

SHORTEST: dict[str, Any] = {
    "duration": "1s",
    "links": {"up": {"rate": "10mbit"}},
    "flows": [{"name": "upload", "path": ["up"]}],
}
"""Scenario with the required keys only: no link or flow has a delay."""

SPECS = json.loads(_sojourn.specs())
"""Everything that a scenario can name."""

RICH: dict[str, Any] = {
    **tomllib.loads(SMALL),
    "duration": "300ms",
    "warmup": "50ms",
    "sample": "10ms",
    "packet_log": True,
}


def short(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario with a short duration if it is accepted, else the scenario itself."""
    if seconds(canonical(tree)["duration"]) < 1:
        return tree
    brief = {**tree, "duration": "500ms", "warmup": "100ms"}
    try:
        canonical(brief)
    except sj.InputError:
        return tree
    return brief


def explained(tree: Any) -> sj.Result:
    """Run a scenario, and explain the result and the stored result; return the result."""
    result = sj.simulate(tree)
    findings = sj.explain(result)
    for one in findings:
        assert one.text.endswith(".")
        assert one.text.isprintable()
        assert one.evidence
    with TemporaryDirectory() as folder:
        result.save(folder)
        again = sj.load_result(folder)
    assert again.summary == result.summary
    assert sj.explain(again) == findings
    return result


def snippets() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the TOML blocks of the docs that are whole scenarios, by page and number.

    A scenario with a file that the page lets its reader write runs in `test_site`.
    """
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for n, block in enumerate(blocks("toml", str(page.relative_to(ROOT)))):
            tree = tomllib.loads(block)
            if not {"duration", "links", "flows"} <= set(tree):
                continue
            if not any("file" in link.get("trace", {}) for link in tree["links"].values()):
                yield f"{page.name} {n}", Draft.read(tree, folder=page.parent).tree


def files() -> Iterator[Path]:
    """Yield the scenario files of the repository."""
    for path in sorted([*EXAMPLES.glob("*.toml"), *TEMPLATES.glob("*.toml")]):
        if "flows" in tomllib.loads(path.read_text()):
            yield path


@pytest.mark.parametrize("path", [*files()], ids=lambda path: path.name)
def test_every_example_and_template_is_explained(path: Path) -> None:
    """The scenario files of examples/ and of `sojourn new`."""
    explained(short(Draft.read(path).tree))


@pytest.mark.parametrize("name", named.ORDER)
def test_every_named_scenario_is_explained(name: str) -> None:
    """The scenarios of `sojourn list scenarios`."""
    explained(short(named.tree(name)))


@pytest.mark.parametrize("tree", [pytest.param(tree, id=name) for name, tree in snippets()])
def test_every_scenario_of_the_docs_is_explained(tree: dict[str, Any]) -> None:
    """The first one of docs/reference/scenario.md has no delay at all."""
    explained(short(tree))


def test_the_shortest_scenario_is_in_the_docs() -> None:
    """Otherwise the test above would not cover it."""
    assert any("delay" not in str(tree) and "rtt" not in str(tree) for _, tree in snippets())


@pytest.mark.parametrize("qdisc", [row["name"] for row in SPECS["disciplines"]])
def test_every_discipline_is_explained_without_a_delay(qdisc: str) -> None:
    """A round-trip time of 0 is no reason to divide by it."""
    links = {"up": {"rate": "10mbit", "qdisc": qdisc}}
    findings = {one.rule for one in sj.explain(sj.simulate({**SHORTEST, "links": links}))}
    assert "no delay" in findings


def test_a_scenario_without_a_delay_is_told(sojourn: Command, tmp_path: Path) -> None:
    """The text names what to set; rules that do not need a round-trip time still apply."""
    path = tmp_path / "short.toml"
    path.write_text('duration = "1s"\nlinks.up.rate = "1mbit"\nlinks.up.qdisc = "codel"\n'
                    'flows = [{ name = "upload", path = ["up"] }]\n')  # fmt: skip
    code, out, err = sojourn("explain", path)
    assert (code, err) == (0, "")
    assert "set rtt of the flows, or delay of the links" in " ".join(out.split())
    assert "is below the time of one packet at 1.00 mbit" in " ".join(out.split())


def test_groups_that_join_and_leave_are_explained() -> None:
    """Also if all flows have left before the end."""
    changes = [{"at": "900ms", "join": ["late"]}, {"at": "500ms", "leave": ["upload"]}]
    late = {"name": "late", "path": ["up"], "tcp": "cubic"}
    tree = {**SHORTEST, "flows": [*SHORTEST["flows"], late], "warmup": "100ms", "sample": "50ms"}
    explained({**tree, "changes": changes})
    explained({**tree, "changes": [{"at": "200ms", "leave": ["upload"]}, *changes[:1]]})


def scenarios(count: int) -> Iterator[dict[str, Any]]:
    """Yield random valid scenarios: all disciplines, TCPs and sources, with and without delays."""
    rng = random.Random(36)
    qdiscs, tcps, sources = (
        [row["name"] for row in SPECS[kind]] for kind in ("disciplines", "tcp", "sources")
    )
    while count:
        links = {
            f"l{k}": {"rate": rng.choice(["100kbit", "1mbit", "10mbit", "1gbit"])}
            | rng.choice([{}, {"delay": "1ms"}, {"delay": "100ms"}])
            | rng.choice([{}, {"qdisc": rng.choice(qdiscs)}])
            | rng.choice([{}, {}, {"loss": 0.1}])
            for k in range(rng.randint(1, 3))
        }
        flows = [
            {"name": f"f{k}", "path": rng.sample(list(links), rng.randint(1, len(links)))}
            | rng.choice([{}, {"rtt": "400ms"}, {"rtt": "1us"}])
            | rng.choice([{}, {"count": 3}])
            | rng.choice([{}, {"tcp": rng.choice(tcps)}, {"source": rng.choice(sources)}])
            for k in range(rng.randint(1, 3))
        ]
        tree = {
            "duration": rng.choice(["1us", "10ms", "300ms"]),
            "warmup": rng.choice(["0s", "500ns", "5ms"]),
            "seed": rng.randrange(1000),
            "links": links,
            "flows": flows,
        } | rng.choice([{}, {"sample": "1ms"}, {"packet_log": True}])
        try:
            canonical(tree)
        except sj.InputError:
            continue
        count -= 1
        yield tree


def test_random_scenarios_are_explained() -> None:
    """Every scenario that is accepted has an explanation."""
    for tree in scenarios(200):
        try:
            explained(tree)
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}\n{tree}")


def test_mutated_scenarios_that_are_accepted_are_explained() -> None:
    """Mutants of a scenario with samples and a packet log."""
    ran = 0
    for name, tree in shuffled(RICH, 1500):
        try:
            if seconds(canonical(tree)["duration"]) > 4:
                continue
        except sj.InputError:
            continue
        ran += 1
        try:
            explained(tree)
        except Exception as error:
            pytest.fail(f"{name}: {type(error).__name__}: {error}\n{tree}")
    assert ran > 50
