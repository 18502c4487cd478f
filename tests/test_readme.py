"""What the README shows is what happens."""

import json
from pathlib import Path

import pytest

import shown
from sojourn import _sojourn
from sojourn.cli import main

ROOT = Path(__file__).parent.parent


def blocks(language: str, page: str = "README.md") -> list[str]:
    """Give the code blocks of a page in one language."""
    found: list[str] = []
    inside = None
    for line in (ROOT / page).read_text().splitlines(keepends=True):
        if line.startswith("```"):
            inside = line[3:].strip() if inside is None else None
            found += [""] if inside == language else []
        elif inside == language:
            found[-1] += line
    return found


def test_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is run as it stands, and leaves its figure."""
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("python")
    exec(compile(example, "README.md", "exec"), {})
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_every_discipline_is_counted() -> None:
    """The README says how many there are."""
    count = len(json.loads(_sojourn.specs())["disciplines"])
    assert f"has {count} disciplines" in (ROOT / "README.md").read_text()


def test_table_is_that_of_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    """`make demo` prints what the README shows."""
    example = str(ROOT / "examples/home-uplink.toml")
    names = "droptail,red,codel,fq_codel"
    assert main(["compare", example, "--qdisc", names, "--seeds", "5"]) == 0
    shown = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    table = [block for block in blocks("") if block.startswith("home-uplink")]
    assert [line.rstrip() for line in table[0].splitlines()] == shown


def test_the_page_of_sweeps_shows_what_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its file is the example, its tables are those of its commands, its Python runs."""
    page = "docs/sweeps.md"
    example = (ROOT / "examples/sweep.toml").read_text()
    assert blocks("toml", page)[0].strip() in example
    assert shown.main(check=True) == 0, capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    assert main(["sweep", "examples/sweep.toml", "--out", "load"]) == 0
    first, readers, *_ = blocks("python", page)
    exec(compile(first, page, "exec"), {})
    exec(compile(readers, page, "exec"), {})
