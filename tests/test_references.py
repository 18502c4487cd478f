"""Targets of references in pages, messages and `sojourn list` exist."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from conftest import Command
from sojourn_lab import papers

ROOT = Path(__file__).parent.parent

FOLDERS = (ROOT / "docs", ROOT / "reports")
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(page for folder in FOLDERS for page in folder.rglob("*.md")),
        *ROOT.glob("crates/*/*.md"),
        *ROOT.glob("docs/notebooks/*.ipynb"),
    ]
)
"""The pages of the repository."""

FILE = re.compile(r"(?<![\w./-])((?:[\w-]+/)*[\w-]+\.(?:md|toml))\b")
"""A file that a text names."""

IN_A_PROJECT = {"x.toml", "FILE.toml", "SWEEP.toml", "Cargo.toml", "case.toml"}
"""Names that stand for a file of the user."""


def text_of(page: Path) -> str:
    """Return a page without its blocks of code; of a notebook, the text."""
    if page.suffix == ".ipynb":
        cells = json.loads(page.read_text())["cells"]
        texts = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        return "\n\n".join(texts)
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@cache
def anchors(page: Path) -> set[str]:
    """Return the possible link targets of a page: its headings, as GitHub spells them."""
    anchors: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower().replace("`", "")
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        again = sum(one == anchor or one.startswith(f"{anchor}-") for one in anchors)
        anchors.add(f"{anchor}-{again}" if anchor in anchors else anchor)
    return anchors


def links(page: Path) -> Iterator[tuple[str, str]]:
    """Yield file and anchor of each link and picture without a web address."""
    for target in re.findall(r"\]\(<?([^)\s>]+)>?[^)]*\)", text_of(page)):
        if not re.match(r"[a-z]+:", target):
            file, _, anchor = target.partition("#")
            yield file, anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_link_targets_exist(page: Path) -> None:
    """Files and headings."""
    for file, anchor in links(page):
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{page.name} links to {file}"
        assert target.is_relative_to(ROOT), f"{page.name} links to {file}, outside the repository"
        if anchor:
            assert anchor in anchors(target), f"{page.name} links to {file}#{anchor}"


SOURCES = ["crates", "examples", "fuzz", "lab", "python", "tests", "tools"]
"""Folders of source files."""


def test_pages_name_only_existing_sources() -> None:
    """A page names a source file by its path or by the end of it. NAME stands for a new file."""
    there = {
        f"/{path.relative_to(ROOT)}"
        for folder in SOURCES
        for ending in ("rs", "py")
        for path in (ROOT / folder).rglob(f"*.{ending}")
    }
    for page in set(PAGES) - {ROOT / "CHANGELOG.md"}:
        for name in re.findall(r"`([\w./-]+\.(?:rs|py))`", page.read_text()):
            known = "NAME" in name or any(path.endswith(f"/{name}") for path in there)
            assert known, f"{page.name} names {name}"


def test_every_page_is_linked() -> None:
    """Every page can be reached from the README."""
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix not in (".md", ".ipynb"):
            continue
        reached.add(page)
        waiting += [(page.parent / file).resolve() for file, _ in links(page) if file]
    pages = {page for page in PAGES if any(map(page.is_relative_to, FOLDERS))}
    assert not pages - reached, sorted(str(page.relative_to(ROOT)) for page in pages - reached)


def named(text: str) -> set[str]:
    """Return the files named in a text that do not exist."""
    places = (ROOT, ROOT / "docs", ROOT / "examples")
    files = set(FILE.findall(text)) - IN_A_PROJECT
    return {file for file in files if not any((place / file).exists() for place in places)}


def test_lists_name_only_existing_files(sojourn: Command) -> None:
    """Pages, files and papers, in every listed entry."""
    everything = sojourn("list", "--json")[1]
    assert not named(everything)
    for cited in re.findall(r"papers? ([\w-]+)(?: and ([\w-]+))?", json.dumps(metrics(everything))):
        for name in filter(None, cited):
            assert name in papers.ids(), f"a metric cites paper {name}"


def metrics(everything: str) -> list[str]:
    """Return the sources of the metrics."""
    return [spec["source"] for spec in json.loads(everything)["metrics"]]


def test_messages_name_only_existing_files() -> None:
    """Pages and examples, in the sources of the package and the crates."""
    for source in [
        *(path for place in ("python", "lab") for path in ROOT.glob(f"{place}/**/*.py")),
        *ROOT.glob("crates/*/src/**/*.rs"),
    ]:
        named = r"\b((?:docs|reports|reference)/[\w/-]+\.\w+|examples/[\w-]+\.toml)"
        for file in re.findall(named, source.read_text()):
            assert (ROOT / file).exists(), f"{source.relative_to(ROOT)} names {file}"
