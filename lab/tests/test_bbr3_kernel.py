"""BBRv3 of Google's kernel and ours: the recordings in validation/bbr3, compared anew."""

from sojourn_lab.validation.bbr3 import tables
from sojourn_lab.validation.bbr3.__main__ import RECORDED, compared, loss_table, recorded
from sojourn_lab.validation.random.agreement import agreeing, rows, without_difference
from sojourn_lab.validation.random.causes import causes
from sojourn_lab.validation.random.draw import controls

SCENARIOS, SEEDS = 60, 2
FLOORS = {"goodput": 0.95, "loss": 0.96, "marks": 0.96, "delay": 0.87, "retx": 0.96, "jain": 0.9}
"""Least share of scenarios that agree in a metric: as measured, less two scenarios."""


def test_random_scenarios_agree_as_documented() -> None:
    """A share below its floor is a change of BBRv3 or CUBIC to look into."""
    assert RECORDED.stat().st_size < 100_000
    _, random = recorded()
    compare = compared(random[:SCENARIOS], SEEDS, jobs=1)
    assert without_difference(compare) >= 0.7 * SCENARIOS
    for metric, floor in FLOORS.items():
        agree, having = agreeing(compare, metric)
        differing = [row.scenario["name"] for row in compare if metric in row.differing]
        assert agree >= floor * having, f"{metric}: {differing} differ"


def test_goodput_under_random_loss_is_that_of_the_kernel() -> None:
    """BBR within 10 % up to 10 % of loss, BBRv3 within a factor of 1.5; CUBIC has a tenth of it."""
    fixed, _ = recorded()
    wanted = {f"loss-{c}-{p:g}" for c in ("bbr", "bbr3") for p in (0, 0.01, 0.05, 0.1)}
    compare = compared([run for run in fixed if run[0]["name"] in wanted], SEEDS, jobs=1)
    assert len(compare) == len(wanted)
    for row in compare:
        c, name = row.compared["goodput"], row.scenario["name"]
        limit = 1.5 if name.startswith("loss-bbr3") else 1.1
        assert 1 / limit < c.simulated / c.live < limit, name


def test_recordings_are_those_of_the_scenarios() -> None:
    """Every scenario of the tables is recorded, and the random ones have BBRv3 or CUBIC."""
    fixed, random = recorded()
    assert [scenario for scenario, _ in fixed] == list(tables.scenarios())
    assert len(random) > 150
    assert {c for scenario, _ in random for c in controls(scenario)} == {"bbr3", "cubic"}
    names = {scenario["name"] for scenario, _ in random}
    assert all(set(c.scenarios) <= names for c in causes(RECORDED.parent / "causes.toml"))


def test_a_table_has_both_sides() -> None:
    """Kernel / simulated, one row per loss."""
    fixed, _ = recorded()
    fixed = [run for run in fixed if run[0]["name"].startswith("loss-")]
    ours = [numbers for _, numbers in fixed]
    lines = loss_table({row.scenario["name"]: row for row in rows(fixed, ours)}).splitlines()
    assert len(lines) == 2 + len(tables.LOSSES)
    assert "18.54 / 18.54" in lines[2]
