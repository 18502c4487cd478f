"""Requests for features that do not exist: each message names the alternative."""

import json

import pytest

import sojourn as sj
from conftest import EXAMPLES, Command
from sojourn.cli.list import TABLES
from sojourn.scenario import missing

ROOT = EXAMPLES.parent
NAMES = [
    name
    for group in missing.groups().values()
    for spec in group
    for name in (spec["name"], *spec["aliases"])
]


@pytest.mark.parametrize("name", NAMES)
def test_list_says_that_it_is_not_available(name: str, sojourn: Command) -> None:
    """With the alternative, and never with a similar name."""
    code, out, err = sojourn("list", name)
    assert (code, out) == (2, "")
    assert "is not available" in err
    assert "; use " in err
    assert "did you mean" not in err


def test_names_are_given_once_and_do_not_exist(sojourn: Command) -> None:
    """An entry is removed once the feature exists."""
    assert len(set(NAMES)) == len(NAMES)
    everything = json.loads(sojourn("list", "--json")[1])
    there = {n for kind in TABLES for s in everything[kind] for n in (s["name"], *s["aliases"])}
    assert not there & set(NAMES)


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (["run", "--set", "bottleneck.qdisc=taprio"], "links.bottleneck.qdisc"),
        (["run", "--set", "call.tcp=quic"], "flows.call.tcp.name: "),
        (["run", "--set", "call.source=scream"], "flows.call.source.name: "),
        (["compare", "--qdisc", "codel,taprio"], "links.bottleneck.qdisc"),
    ],
)
def test_a_scenario_with_one_gets_the_alternative(
    arguments: list[str], path: str, sojourn: Command
) -> None:
    """In every command that takes a scenario."""
    command, *options = arguments
    code, _, err = sojourn(command, EXAMPLES / "home-uplink.toml", *options)
    assert code == 2
    assert path in err
    assert "is not available" in err
    assert "; use " in err


def test_python_says_so_as_well() -> None:
    """For classes that users look for; other names raise AttributeError as usual."""
    with pytest.raises(AttributeError, match="not available; use prio"):
        _ = sj.Taprio  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"has no attribute 'Taprios'$"):
        _ = sj.Taprios  # type: ignore[attr-defined]


def test_list_missing_shows_them_all(sojourn: Command) -> None:
    """With the reason; one by its name; as JSON."""
    out = sojourn("list", "missing")[1]
    for spec in (spec for group in missing.groups().values() for spec in group):
        assert spec["name"] in out
        assert spec["instead"] in out
    assert "trace of rates" in sojourn("list", "missing", "TAPRIO")[1]
    summary = json.loads(sojourn("list", "missing", "taprio", "--json")[1])
    assert (summary["kind"], summary["planned"]) == ("missing", False)
