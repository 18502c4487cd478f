"""The committed pages of the papers: from one build, complete, and repeatable."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from sojourn_lab import papers
from sojourn_lab.reproduction import check, checksums, contents, figure_data
from sojourn_lab.reproduction.pages import PAGES

NAMES = papers.ids()
SAMPLE = 4
"""Number of runs of each paper that are made again."""

LARGEST_BYTES = 3_000_000
"""Largest size of all checksums and data behind figures."""


def claims_of(folder: Path) -> dict[str, Any]:
    """Return the claims.json of a page."""
    tree: dict[str, Any] = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
    return tree


def test_all_pages_are_from_one_build() -> None:
    """`make papers-full` writes all simulated pages; live pages name their own engine."""
    engines = {name: claims_of(PAGES / name).get("engine") for name in NAMES}
    assert None not in engines.values()
    assert len(set(engines.values())) == 1, engines
    assert {claims_of(PAGES / name)["mode"] for name in NAMES} == {"full"}
    for live in PAGES.glob("*-live"):
        text = (live / "README.md").read_text(encoding="utf-8")
        assert ", engine " in text, live


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_of_runs_has_the_checksums_of_the_page(name: str) -> None:
    """As in `sojourn paper check ID --sample N`; no run is missing on the page."""
    result = check.sample(papers.find(name), SAMPLE, draw=1)
    assert result.runs == SAMPLE
    assert result.differences == {}


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_has_its_numbers(name: str) -> None:
    """There is a file for each figure, and for no other; a page links to it."""
    one = papers.find(name)
    files = {file for it in one.figures if (file := contents.data_file(it)) is not None}
    there = {f"data/{path.name}" for path in (PAGES / name / "data").glob("*")}
    assert there == files
    page = (PAGES / name / "README.md").read_text(encoding="utf-8")
    for file in files:
        with (PAGES / name / file).open(encoding="utf-8", newline="") as opened:
            rows = list(csv.reader(opened))
        assert tuple(rows[0]) == figure_data.COLUMNS
        assert len(rows) > 1, file
        assert f"({file})" in page


def test_data_and_checksums_are_small() -> None:
    """The repository grows with each renewal of the pages."""
    files = [*PAGES.glob("*/data/*.csv"), *PAGES.glob(f"*/{checksums.FILE}")]
    assert sum(path.stat().st_size for path in files) < LARGEST_BYTES


def test_the_page_of_times_has_every_paper() -> None:
    """It lists the measured time of each figure."""
    text = (PAGES / "times.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert f"\n## {name}: " in text
        assert all(value > 0 for value in claims_of(PAGES / name)["core_s"].values())
