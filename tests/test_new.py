"""`sojourn new`: templates that run unchanged."""

import json
import shlex
from pathlib import Path

import pytest

import sojourn as sj
from conftest import Command
from sojourn.cli import new


def commands(scenario: str) -> list[list[str]]:
    """Return the commands in the comment at the head of a template."""
    lines = [line[4:].split("      (")[0] for line in scenario.splitlines() if line[:4] == "#   "]
    return [shlex.split(line) for line in lines]


def test_without_a_name_they_are_listed(sojourn: Command) -> None:
    """Each with a sentence; also as JSON."""
    code, out, _ = sojourn("new")
    assert code == 0
    templates = json.loads(sojourn("new", "--json")[1])
    assert [one["name"] for one in templates] == list(new.ORDER)
    assert {path.stem for path in new.FOLDER.iterdir()} == set(new.ORDER)
    for one in templates:
        assert one["name"] in out
        assert one["about"] in out
        assert 20 < len(one["about"]) < 200


@pytest.mark.parametrize("name", new.ORDER)
def test_a_template_runs_and_so_do_its_commands(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sojourn: Command
) -> None:
    """The commands of its header, with fewer seeds; every flow delivers data."""
    monkeypatch.chdir(tmp_path)
    code, out, err = sojourn("new", name, "my.toml")
    assert (code, out, err) == (0, "my.toml: try sojourn run my.toml\n", "")
    scenario = Path("my.toml").read_text()
    first, *others = commands(scenario)
    assert first[:3] == ["sojourn", "run", "my.toml"]
    assert others
    for _, *arguments in (first, *others):
        if "--seeds" in arguments:
            arguments[arguments.index("--seeds") + 1] = "2"
        code, _, err = sojourn(*arguments)
        assert code == 0, (arguments, err)
        if "--plot" in arguments:
            assert Path(arguments[arguments.index("--plot") + 1]).stat().st_size > 20_000

    case = sj.load("my.toml")
    result = sj.simulate(case)
    assert case.name == name
    assert all(0.2 < link["utilisation"] <= 1 for link in result.links.values())
    for group in [flow for flow in case.flows if isinstance(flow, sj.Flow)]:
        flows = [flow for flow in result.flows.values() if flow["group"] == group.name]
        assert sum(flow["goodput_bps"] for flow in flows) > 0, group.name


def test_a_template_is_printed_or_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sojourn: Command
) -> None:
    """The same text, except for the name of the file."""
    monkeypatch.chdir(tmp_path)
    out = sojourn("new", "Two_Way")[1]
    assert "sojourn run two-way.toml" in out
    assert sojourn("new", "two-way", "a line.toml")[0] == 0
    written = Path("a line.toml").read_text()
    assert written == out.replace("two-way.toml", "'a line.toml'")
    assert sojourn("new", "two-way", "a\nb.toml")[0] == 0
    assert Path("a\nb.toml").read_text() == out


def test_existing_files_are_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sojourn: Command
) -> None:
    """Unless forced; and only scenarios are ever written."""
    monkeypatch.chdir(tmp_path)
    mine = Path("mine.toml")
    mine.write_text("mine")
    code, out, err = sojourn("new", "uplink", mine)
    assert (code, out) == (2, "")
    assert err == "sojourn: mine.toml: exists already; --force overwrites it\n"
    assert mine.read_text() == "mine"
    assert sojourn("new", "uplink", mine, "--force")[0] == 0
    assert "[links.bottleneck]" in mine.read_text()
    for arguments, refusal in (
        (["upling"], 'unknown template "upling", did you mean "uplink"?'),
        (["uplink", "mine.txt"], "the name must end in .toml"),
        (["uplink", "no/where.toml"], "no such file or directory"),
    ):
        code, out, err = sojourn("new", *arguments)
        assert (code, out) == (2, "")
        assert refusal in err
