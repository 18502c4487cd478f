"""Values without quotes: the message shows the correct line."""

import json
from pathlib import Path

import pytest

import sojourn as sj
from conftest import SMALL, Command
from sojourn.scenario.draft import Draft
from sojourn.scenario.parsing import parse_json, parse_toml

UNQUOTED = {
    "duration = 10s": 'line 1: quote it: duration = "10s"',
    "a = 1\n\nduration = 10s # short\nb = 2": 'line 3: quote it: duration = "10s"',
    "qdisc = codel": 'line 1: quote it: qdisc = "codel"',
    "qdisc = codel(target=15ms)": 'line 1: quote it: qdisc = "codel(target=15ms)"',
    "up = { rate = 10mbit, delay = 5ms }": 'line 1: quote it: rate = "10mbit"',
    'up = { rate = "10mbit", delay = 5ms }': 'line 1: quote it: delay = "5ms"',
    "start = uniform(0s, 10s)": 'line 1: quote it: start = "uniform(0s, 10s)"',
    "loss = 2%": 'line 1: quote it: loss = "2%"',
    "rate = 10Mbit/s": 'line 1: quote it: rate = "10Mbit/s"',
    "path = [up, down]": 'line 1: quote it: "up"',
    'path = ["up", down]': 'line 1: quote it: "down"',
    "ecn = True": "line 1: write it in lower case: ecn = true",
}

UNQUOTED_JSON = {
    '{"duration": 10s}': 'line 1: quote it: "duration": "10s"',
    '{\n"qdisc": codel}': 'line 2: quote it: "qdisc": "codel"',
    '{"path": ["up", down]}': 'line 1: quote it: "down"',
    '{"ecn": True}': 'line 1: write it in lower case: "ecn": true',
}


@pytest.mark.parametrize("text", UNQUOTED)
def test_toml_without_quotes(text: str) -> None:
    """The first value that stops the parser."""
    with pytest.raises(sj.InputError) as refused:
        parse_toml(text)
    assert str(refused.value) == UNQUOTED[text]


@pytest.mark.parametrize("text", UNQUOTED_JSON)
def test_json_without_quotes(text: str) -> None:
    """The same for JSON."""
    with pytest.raises(sj.InputError) as refused:
        parse_json(text)
    assert str(refused.value) == UNQUOTED_JSON[text]


@pytest.mark.parametrize(
    "text",
    [
        "[links.up",
        "a" * 100_000,
        "a = 1s" + "x" * 100_000,
        "a = ",
        "= 3",
        "a = [1",
        'a = "x',
        "a 1",
        "a = 1\na = 2",
        "a = }",
        "a = 1, 2",
    ],
)
def test_other_toml_errors_are_unchanged(text: str) -> None:
    """No suggestion that would not help."""
    with pytest.raises(sj.InputError) as refused:
        parse_toml(text)
    assert "quote it" not in str(refused.value)


def test_every_value_of_the_small_scenario_without_its_quotes(small: Path) -> None:
    """Each is found in any context, and the suggestion is the original."""
    count = 0
    for n, line in enumerate(SMALL.splitlines()):
        for word in line.split('"')[1::2]:
            if word.isdecimal():
                continue
            lines = SMALL.splitlines()
            lines[n] = line.replace(f'"{word}"', word, 1)
            small.write_text("\n".join(lines))
            with pytest.raises(sj.InputError) as refused:
                Draft.read(small)
            message = str(refused.value)
            assert message.startswith(f"{small}: line {n + 1}: quote it: ")
            assert message.endswith(f'"{word}"')
            count += 1
    assert count > 20


def test_the_command_says_quote_it(small: Path, tmp_path: Path, sojourn: Command) -> None:
    """For a scenario and for a sweep."""
    small.write_text(SMALL.replace('"3s"', "3s"))
    expected = 'small.toml: line 2: quote it: duration = "3s"\n'
    assert sojourn("run", small)[2].endswith(expected)
    sweep = tmp_path / "sweep.toml"
    sweep.write_text('scenario = "small.toml"\n[axes]\n"up.rate" = [1mbit, 2mbit]\n')
    err = sojourn("sweep", sweep, "--out", tmp_path / "out")[2]
    assert err == f'sojourn: {sweep}: line 3: quote it: "1mbit"\n'


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["run"], "sojourn run"),
        (["run", "x.toml", "--sed", "1"], "sojourn run"),
        (["compare", "x.toml"], "sojourn compare"),
        (["paper", "run"], "sojourn paper run"),
        (["nonsense"], "sojourn"),
    ],
)
def test_help_is_that_of_the_command(arguments: list[str], command: str, sojourn: Command) -> None:
    """After a wrong option or argument."""
    code, _, err = sojourn(*arguments)
    assert code == 2
    assert err.endswith(f"(see {command} --help)\n")


def test_flow_takes_a_group(small: Path, sojourn: Command) -> None:
    """All flows of it, up to the number of colours; unknown names are refused before the run."""
    tree = {**Draft.read(small).tree, "sample": "10ms"}
    figure = sj.draw(sj.simulate(tree), flows=["bulk", "short"])
    labels = [line.get_label() for line in figure.axes[-1].lines]
    assert labels == ["bulk.0", "bulk.1", "short"]
    tree["flows"][0]["count"] = 9
    figure = sj.draw(sj.simulate(tree), flows=["bulk"])
    assert len(figure.axes[-1].lines) == 6
    assert "first 6 of 9 flows of bulk" in figure.axes[-1].get_title(loc="left")
    plot = small.with_name("x.png")
    assert sojourn("run", small, "--plot", plot, "--flow", "bulk")[::2] == (0, "")
    small.write_text(SMALL.replace('"3s"', '"9000000s"'))  # refused before it would run for hours
    for name in ("bulck", "bulk.2", "call", "bulk.x"):
        err = sojourn("run", small, "--plot", plot, "--flow", name)[2]
        assert f'--flow: no TCP flow or group "{name}"' in err
        assert "known: bulk, short" in err


def test_axes_are_offered_first(small: Path, tmp_path: Path, sojourn: Command) -> None:
    """Not the dozens of numeric columns."""
    sj.sweep(small, {"bulk.count": [1, 2], "law": {"set": "up.qdisc", "values": ["red"]}},
             out=tmp_path / "out")  # fmt: skip
    command = ["plot", tmp_path / "out", "--y", "utilisation", "--out", tmp_path / "x.png"]
    err = sojourn(*command, "--x", "rate")[2]
    assert err == 'sojourn: --x: no axis "rate" (axes of these runs: bulk.count, law)\n'
    assert 'did you mean "law"?' in sojourn(*command, "--x", "bulk.count", "--by", "laww")[2]
    for option in (["--by", "rate"], ["--pivot", "rate"], ["--pair", "rate=1"]):
        err = sojourn("results", tmp_path / "out", *option)[2]
        assert f'{option[0]}: no axis "rate" (axes of these runs: bulk.count, law)' in err


def test_percentages_are_shares_everywhere(small: Path, sojourn: Command) -> None:
    """In a scenario, a setting and a model; elsewhere refused with the expected form."""
    summary = json.loads(sojourn("run", small, "--set", "up.loss=2%", "--json")[1])
    assert summary["scenario"]["links"]["up"]["loss"] == 0.02
    link = sj.Link(rate="5mbit", loss="2%", qdisc=sj.Red(max_p="5%", w_q="0.2%"))
    tree = {**Draft.read(small).tree, "links": {"up": link}}
    result = sj.simulate(tree).scenario["links"]["up"]
    assert (result["loss"], result["qdisc"]["max_p"], result["qdisc"]["w_q"]) == (0.02, 0.05, 0.002)
    err = sojourn("run", small, "--set", "up.qdisc.target=2%")[2]
    assert 'links.up.qdisc.target: "2%" is not a duration' in err
    assert "out of range" in sojourn("run", small, "--set", "up.loss=200%")[2]
