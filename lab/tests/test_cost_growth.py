"""The page of growing cost: reports/cost-growth.md."""

from pathlib import Path

import pytest

from sojourn.scenario.draft import canonical
from sojourn_lab.reports import cost_growth
from sojourn_lab.speed import workloads
from sojourn_lab.speed.workloads import Cost


def cost(run_s: float) -> Cost:
    """Return the cost of a run of a million packet-hops."""
    return Cost(hops=1_000_000, read_s=0.1, run_s=run_s, read_kb=5_000, run_kb=9_000)


def test_load_changes_the_transfers_and_not_their_time() -> None:
    """A higher load starts more transfers in the same time."""
    low, high = (canonical(cost_growth.fat_tree_of(4, load=load)) for load in (0.2, 0.4))
    assert low["duration"] == high["duration"]
    assert low["flows"][0]["source"] != high["flows"][0]["source"]


def test_tables_compare_with_the_first_row() -> None:
    """The first value is the reference of a series."""
    costs = {"4": cost(0.1), "8": cost(0.2)}
    rows = cost_growth.table("k", costs, {"4": (1, 2), "8": (3, 4)})
    assert rows[-1] == "| 8 | 3 | 4 | 1.00 M | 200 | 2.00 | 5 | 9 |"
    assert cost_growth.growth(costs) == pytest.approx(2)


def test_the_page_has_every_series(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The quick page has a table per series, and a row of each in the first table."""
    monkeypatch.setattr(cost_growth, "ROOT", tmp_path)
    monkeypatch.setattr(workloads, "measure", lambda file: cost(len(file.name) * 0.1))
    cost_growth.write(tmp_path / "page.md", 1, quick=True)
    text = (tmp_path / "page.md").read_text()
    for one in cost_growth.series():
        assert f"## {one.title}\n" in text
        assert text.count(f"| {one.quantity} |") == 2
