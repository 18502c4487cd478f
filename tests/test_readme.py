"""What the README shows is what happens."""

import json
import re
from pathlib import Path

import pytest

from sojourn import _sojourn
from sojourn.cli import main

ROOT = Path(__file__).parent.parent


def blocks(language: str) -> list[str]:
    """Give the code blocks of the README in one language."""
    text = (ROOT / "README.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is run as it stands, and leaves its figure."""
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("python")
    exec(compile(example, "README.md", "exec"), {})
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_links_lead_somewhere() -> None:
    """Every file that a page links to is there."""
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_discipline_is_counted() -> None:
    """The README says how many there are."""
    count = len(json.loads(_sojourn.specs())["disciplines"])
    assert f"has {count} disciplines" in (ROOT / "README.md").read_text()


def test_table_is_that_of_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    """`make demo` prints what the README shows."""
    example = str(ROOT / "examples/home-uplink.toml")
    assert main(["compare", example, "--qdisc", "droptail,red,codel,fq_codel"]) == 0
    shown = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    table = [block for block in blocks("") if block.startswith("home-uplink")]
    assert [line.rstrip() for line in table[0].splitlines()] == shown
