"""CUBIC on slow lines: recorded runs of the kernel, and the page."""

import pytest

from sojourn_lab.validation.random import records, slow
from sojourn_lab.validation.random.measure import Numbers
from sojourn_lab.validation.random.simulate import simulate

RUNS = {one["name"]: numbers for one, numbers in records.runs(records.read(slow.RECORDED))}


def test_every_scenario_is_recorded_and_on_the_page() -> None:
    """Once each."""
    grid = slow.grid()
    assert {one["name"] for one in grid.values()} == set(RUNS)
    text = slow.PAGE.read_text()
    for (qdisc, rate, count), one in grid.items():
        row = next(x for x in text.splitlines() if x.startswith(f"| {qdisc} | {rate} | {count} |"))
        assert f"| {RUNS[one['name']][0]['loss']:.2f} /" in row


@pytest.mark.parametrize("qdisc", slow.DISCIPLINES)
def test_cubic_on_a_slow_line_has_the_goodput_of_linux(qdisc: str) -> None:
    """Four flows at 300 kbit/s, within 10 %."""
    one = slow.grid()[qdisc, "300kbit", 4]
    [ours] = simulate([one], 3, jobs=1)
    assert _goodput(ours) == pytest.approx(_goodput(RUNS[one["name"]]), rel=0.1)


def _goodput(runs: list[Numbers]) -> float:
    """Return the mean goodput, Mbit/s."""
    return sum(run["goodput"] or 0 for run in runs) / len(runs)
