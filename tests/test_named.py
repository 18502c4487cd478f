"""Named scenarios: `sojourn list scenarios`, and names in place of files."""

import json
from pathlib import Path

import pytest

import sojourn as sj
from conftest import EXAMPLES, Command
from sojourn.scenario import named
from sojourn.scenario.draft import canonical


@pytest.mark.parametrize("name", named.ORDER)
def test_each_is_a_valid_scenario_without_warnings(name: str) -> None:
    """With its defaults, and with other rates and round-trip times; the result has its links."""
    spec = named.spec(name)
    tree = canonical({"named": name})
    assert set(spec["links"]) <= set(tree["links"])
    for key in ("about", "source", "topology", "look"):
        assert spec[key]
    result = sj.simulate({"named": name, "rate": "1mbit", "rtt": "100ms"})
    assert not result.warnings
    assert all(result.links[link].departed_packets for link in spec["links"])


def test_the_folder_has_no_other_files() -> None:
    """Every file is listed."""
    assert {path.stem for path in named.FOLDER.glob("*.toml")} == set(named.ORDER)


def test_the_home_uplink_is_that_of_the_example() -> None:
    """So the numbers of the README hold for it as well."""
    assert canonical("home_uplink") == canonical(EXAMPLES / "home-uplink.toml")


def test_options_set_rates_delays_buffers_and_counts() -> None:
    """Rates also in changes; `rate` sets both directions, `up` overrides it."""
    tree = named.tree("tcp_nup", {"rate": "8mbit", "up": "2mbit", "flows": 7, "rtt": "30ms"})
    assert (tree["links"]["up"]["rate"], tree["links"]["down"]["rate"]) == (
        "2000000bit",
        "8000000bit",
    )
    assert tree["links"]["up"]["delay"] == "15000000ns"
    assert tree["flows"][0]["count"] == 7
    tree = named.tree("drop_and_back", {"rate": "8mbit", "buffer": "50ms"})
    assert tree["links"]["down"]["qdisc"]["limit"] == "50000B"
    assert [c["links"]["down"]["rate"] for c in tree["changes"]] == ["4000000bit", "8000000bit"]


def test_every_scenario_takes_a_buffer() -> None:
    """A scenario whose links have default buffers gets it as a limit of drop-tail."""
    for name in named.ORDER:
        tree = named.tree(name, {"rate": "8mbit", "buffer": "50ms"})
        if "down" not in named.spec(name)["options"]:
            tree = named.tree(name, {"up": "8mbit", "buffer": "50ms"})
        for link in named.spec(name)["links"]:
            qdisc = canonical(tree)["links"][link]["qdisc"]
            assert (qdisc["name"], qdisc["limit"]) == ("droptail", "50kB"), name
    assert "qdisc" not in named.tree("rrul")["links"]["up"]


def test_a_discipline_applies_to_both_directions(sojourn: Command) -> None:
    """Unless `--link` or `--set` chooses one."""
    both = json.loads(sojourn("run", "rrul", "--rate", "1mbit", "--qdisc", "codel", "--json")[1])
    assert {link["qdisc"] for link in both["links"].values()} == {"codel"}
    options = ("--rate", "1mbit", "--qdisc", "codel", "--link", "up", "--json")
    one = json.loads(sojourn("run", "rrul", *options)[1])
    assert (one["links"]["up"]["qdisc"], one["links"]["down"]["qdisc"]) == ("codel", "droptail")
    runs = sj.compare({"named": "rrul", "rate": "1mbit"}, ["pie"], link="up", also=["down"])
    assert {link["qdisc"]["name"] for link in runs.scenario["links"].values()} == {"pie"}
    runs = sj.compare("voip", ["droptail", "codel"])
    assert {link["qdisc"]["name"] for link in runs["codel"][0].scenario["links"].values()} == {
        "codel"
    }


def test_a_comparison_of_both_directions_can_be_continued(tmp_path: Path, sojourn: Command) -> None:
    """With more disciplines, in the same folder."""
    options = ("voip", "--rate", "1mbit", "--out", tmp_path / "out")
    assert sojourn("compare", *options, "--qdisc", "droptail,codel")[0] == 0
    code, out, err = sojourn("compare", *options, "--qdisc", "droptail,codel,pie")
    assert (code, err) == (0, "")
    assert "disciplines of up and down differ" in out
    assert len(sj.load_comparison(tmp_path / "out")) == 3


def test_python_has_them_as_scenarios(tmp_path: Path) -> None:
    """`sj.named`, `sj.load`, and a sweep file."""
    case = sj.named("rrul", down="5mbit", up="1mbit", qdisc=sj.CoDel(target="10ms"))
    links = canonical(case)["links"]
    assert links["up"]["rate"] == "1mbit"
    assert links["down"]["qdisc"]["target"] == "10ms"
    assert sj.load("voip").name == "voip"
    from sojourn.sweeps.spec import read_sweep

    (tmp_path / "s.toml").write_text(
        'scenario = { named = "tcp_nup", rate = "1mbit" }\n[axes]\n"up.qdisc" = ["codel", "pie"]\n'
    )
    assert read_sweep(tmp_path / "s.toml").base["links"]["up"]["rate"] == "1mbit"
    (tmp_path / "t.toml").write_text('scenario = "voip"\n[axes]\n"up.rate" = ["1mbit"]\n')
    assert read_sweep(tmp_path / "t.toml").base["name"] == "voip"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "rrull"), 'nor the name of one, did you mean "rrul"?'),
        (("run", "rrul", "--flows", "3"), "--flows: rrul does not have it"),
        (("run", "rrul", "--rate", "20"), '--rate: "20" has no unit'),
        (("run", "rrul", "--up", "-1mbit"), "--up: "),
        (("run", "tcp_nup", "--flows", "0"), "--flows: 0 is out of range, allowed: 1 to"),
        (("run", EXAMPLES / "home-uplink.toml", "--rtt", "1ms"), "--rtt: only for named"),
        (("compare", "rul", "--qdisc", "codel,pie"), 'did you mean "rrul"?'),
        (("list", "scenarios", "rrull"), 'did you mean "rrul"?'),
    ],
)
def test_a_wrong_question_gets_one_line(
    arguments: tuple[object, ...], message: str, sojourn: Command
) -> None:
    """With the value, and what is allowed."""
    code, out, err = sojourn(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_the_list_shows_one(sojourn: Command) -> None:
    """A dash may stand for an underscore."""
    code, out, _ = sojourn("list", "tcp-nup")
    assert code == 0
    assert "topology: a two-way line" in out
    assert "--flows 4" in out
