"""Commands, code and outputs of the pages that guide a reader are correct."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.cli.main import main
from support.pages import ROOT, blocks

PAGES = [
    f"docs/{page.relative_to(ROOT / 'docs').as_posix()}"
    for folder in ("start", "how-to", "concepts", "reference")
    for page in sorted((ROOT / "docs" / folder).glob("*.md"))
]
"""Pages that are not generated for each algorithm."""

WALKS = (
    "start/first-comparison",
    "start/first-discipline",
    "how-to/tc-scripts",
    "how-to/traces",
    "how-to/captures",
)
"""Pages whose commands are run in order."""

DIFFERS = "sojourn tc diff"
"""Command that ends with 1 if two disciplines differ, as on a page."""


def line(folder: Path) -> None:
    """Write line.toml as the first comparison describes it."""
    assert main(["new", "uplink", "line.toml"]) == 0
    (changes,) = blocks("toml", "docs/start/first-comparison.md")
    text = (folder / "line.toml").read_text()
    for change in changes.splitlines()[1:]:
        key = change.split(" = ")[0]
        text = re.sub(rf"^{key} = .*", change, text, count=1, flags=re.MULTILINE)
    (folder / "line.toml").write_text(text)


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_well_formed(page: str) -> None:
    """Code in Python compiles, and scenarios are TOML."""
    for code in blocks("python", page):
        compile(code, page, "exec")
    for text in blocks("toml", page):
        tomllib.loads(text)


@pytest.mark.parametrize("name", WALKS)
def test_commands_of_a_page_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In order, in one folder, and print what the page shows."""
    page = f"docs/{name}.md"
    monkeypatch.chdir(tmp_path)
    if name != WALKS[0]:
        line(tmp_path)
    if name == "start/first-discipline":
        first, check = blocks("python", page)
        (tmp_path / "first.py").write_text(first)
        monkeypatch.syspath_prepend(tmp_path)
        exec(compile(check, page, "exec"), {})
    elif name == "how-to/tc-scripts":
        (tmp_path / "setup.sh").write_text(blocks("sh", page)[0])
    elif name == "how-to/traces":
        (tmp_path / "rate.csv").write_text(blocks("text", page)[0])
        (tmp_path / "trace.toml").write_text(blocks("toml", page)[0])
    for command in "".join(blocks("sh", page)).splitlines():
        if not command.startswith("sojourn "):
            continue
        assert main(shlex.split(command)[1:]) == int(command.startswith(DIFFERS)), command
        if command.startswith("sojourn new uplink line.toml"):
            (tmp_path / "line.toml").unlink()
            line(tmp_path)
    shown = [row for text in blocks("text", page) for row in text.splitlines()]
    printed = capsys.readouterr().out
    if name == "start/first-comparison":
        assert all(row in printed for row in shown[:9])
        assert shown[-1] in printed
    elif name == "start/first-discipline":
        assert all(row in printed for row in shown)


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("start/first-simulation-in-python", {"run.png", "queues.png", "load", "load.png"}),
        ("how-to/vary-a-paper", set()),
    ],
)
def test_a_page_in_python_runs_as_one_script(
    name: str,
    files: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The blocks in order print what the page shows, and write these files."""
    page = f"docs/{name}.md"
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks("python", page)), page, "exec"), {})
    printed = [row.rstrip() for row in capsys.readouterr().out.splitlines()]
    assert printed == [row for text in blocks("text", page) for row in text.splitlines()]
    assert {path.name for path in tmp_path.iterdir()} == files


def test_tests_of_the_page_about_ci_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both test files, the second one twice: it stores a result, then compares."""
    monkeypatch.chdir(tmp_path)
    line(tmp_path)
    for i, code in enumerate(blocks("python", "docs/how-to/ci.md")):
        (tmp_path / f"test_{i}.py").write_text(code)
    for files in (["test_0.py", "test_1.py"], ["test_1.py"]):
        command = [sys.executable, "-m", "pytest", "-q", *files]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_every_public_name_has_an_entry() -> None:
    """The page about Python names everything that `sojourn` offers."""
    page = (ROOT / "docs/reference/python.md").read_text()
    names = set(sj.__all__) - set(sj.COMMON)
    assert not {name for name in names if not re.search(rf"\b(?:sojourn|sj)\.{name}\b", page)}
