"""Scenarios with thousands of groups of flows: a subscriber each, in a tree of classes."""

import os
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn.explanation.rules import explain
from sojourn.scenario import advice, describe, traps

FEW, MANY = 300, 3000


def tree(count: int) -> dict[str, Any]:
    """A link whose htb has a class for each of `count` subscribers, of one flow each."""
    qdisc = {
        "name": "htb",
        "rates": ["1gbit", *["1mbit"] * count],
        "ceils": ["1gbit", *["20mbit"] * count],
        "parents": ["0", *["1"] * count],
        "limit": "100000p",
        "children": ["fq_codel(flows=64)"],
    }
    flows = [
        {"name": f"s{i}", "path": ["down"], "class": 2 + i, "rtt": "40ms"} for i in range(count)
    ]
    link = {"rate": "1gbit", "delay": "1ms", "qdisc": qdisc}
    return {"duration": "100ms", "sample": "10ms", "links": {"down": link}, "flows": flows}


@pytest.fixture(scope="module")
def result() -> sj.Result:
    """A run of a few hundred subscribers."""
    return sj.simulate(tree(FEW))


def test_advice_reads_each_group_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings took minutes with 10,000 groups, since each group looked at all others."""
    scenario = sj.simulate(tree(FEW)).scenario
    read: list[Any] = []

    def window_bytes(tcp: Any) -> float:
        read.append(tcp)
        return 1e6

    monkeypatch.setattr(traps, "_window_bytes", window_bytes)
    advice.warnings_of(scenario)
    assert len(read) == FEW


def processor_s(work: Any) -> float:
    """Return the processor time of a call."""
    before = os.times()
    work()
    after = os.times()
    return (after.user - before.user) + (after.system - before.system)


def test_the_time_of_an_explanation_grows_with_the_number_of_groups(result: sj.Result) -> None:
    """The flows of a group were searched among all flows, for each group."""
    many = sj.simulate(tree(MANY))
    few_s = min(processor_s(lambda: [*explain(result)]) for _ in range(3))
    many_s = min(processor_s(lambda: [*explain(many)]) for _ in range(3))
    # Linear: 10 times. The square, as before: more than 60 times.
    assert many_s < 30 * max(few_s, 0.02)


def test_long_lists_of_a_discipline_are_shortened(result: sj.Result) -> None:
    """The description of a tree of 10,000 classes filled screens."""
    text = describe.link(result.scenario, "down")
    assert len(text) < 500
    assert f"and {FEW + 1 - describe.VALUES} more" in text


def test_a_figure_of_many_groups_has_few_lines(result: sj.Result, tmp_path: Path) -> None:
    """A line for each group took minutes to draw, and nobody could read it."""
    figure = sj.draw(result, tmp_path / "many.png")
    lines = sum(len(axes.lines) for axes in figure.axes)
    assert lines < 20
    assert (tmp_path / "many.png").stat().st_size < 500_000
