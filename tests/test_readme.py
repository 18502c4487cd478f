"""The README is correct: its commands, examples, tables and numbers."""

import json
import re
import shlex
from pathlib import Path

import pytest

import shown
from conftest import Command
from live_link import link
from sojourn import _sojourn
from sojourn.cli.main import main
from support.pages import ROOT, blocks

LANGUAGES = {"text", "sh", "python", "rust", "console"}
"""Languages of the blocks of the README: each is covered by a test here, or (rust) by a doctest of
`sojourn-aqm`."""

LIVE = "sudo .venv/bin/sojourn "


def test_no_block_goes_untested() -> None:
    """Every block has one of the languages that the tests of this file run."""
    opened = (ROOT / "README.md").read_text().split("\n```")[1::2]
    assert {block.split("\n")[0] for block in opened} == LANGUAGES


def test_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs as printed and writes its figure."""
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("python")
    exec(compile(example, "README.md", "exec"), {})
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of `sh` blocks run in order; make's targets are targets that CI runs."""
    monkeypatch.chdir(tmp_path)
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for line in "".join(blocks("sh")).splitlines():
        if line.startswith("make "):
            assert line.removeprefix("make ") in targets, line
        elif line.startswith("sojourn "):
            assert main(shlex.split(line)[1:]) == 0, line
        else:
            assert line.startswith((LIVE, "source .venv/bin/activate")), line
    assert (tmp_path / "case.png").stat().st_size > 10_000


@pytest.mark.live("ping")
def test_ping_crosses_the_live_link() -> None:
    """Its round trip is twice the delay of the link."""
    (command,) = [line for line in "".join(blocks("sh")).splitlines() if line.startswith(LIVE)]
    options, ping = command.removeprefix(f"{LIVE}link ").split(" -- ")
    done = link(options.split(), ping.split())
    assert done.returncode == 0, done.stderr
    times = [float(time) for time in re.findall(r"time=([\d.]+) ms", done.stdout)]
    assert len(times) == 3
    assert min(times) == pytest.approx(50, abs=5)


def test_refusal_is_printed(monkeypatch: pytest.MonkeyPatch, sojourn: Command) -> None:
    """The command of the `console` block prints the message shown, with exit code 2."""
    monkeypatch.chdir(ROOT)
    command, message = blocks("console")[0].splitlines()
    code, _, printed = sojourn(*shlex.split(command)[2:])
    assert (code, printed.strip()) == (2, message)


def test_every_discipline_is_counted() -> None:
    """The README states the number of disciplines."""
    count = len(json.loads(_sojourn.specs())["disciplines"])
    assert f"**{count} disciplines**" in (ROOT / "README.md").read_text()


def test_counts_of_validation_are_current() -> None:
    """The README states the totals of the tables of reports/validation.md."""
    page = (ROOT / "reports/validation.md").read_text()
    numbers = re.findall(r"(?:\| \d+ ){2}\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", page, re.M)
    total, agree, close, differ = (sum(map(int, column)) for column in zip(*numbers, strict=True))
    line = f"of {total} metrics {agree + close} agree"
    readme = (ROOT / "README.md").read_text()
    assert line in readme
    assert f"{differ} differ" in readme


def test_table_is_that_of_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    """`make demo` prints the table of the README."""
    example = str(ROOT / "examples/home-uplink.toml")
    names = "droptail,red,codel,fq_codel"
    assert main(["compare", example, "--qdisc", names, "--seeds", "30"]) == 0
    shown = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    (table,) = blocks("text")
    assert [line.rstrip() for line in table.splitlines()] == shown


def test_the_page_of_sweeps_shows_what_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its file is the example, its commands print its tables, its Python reads what they store."""
    page = "docs/how-to/sweeps.md"
    example = (ROOT / "examples/sweep.toml").read_text()
    assert blocks("toml", page)[0].strip() in example
    assert shown.main(check=True, room=tmp_path) == 0, capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    first, readers, *_ = blocks("python", page)
    exec(compile(first, page, "exec"), {})
    exec(compile(readers, page, "exec"), {})
