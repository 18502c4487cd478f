"""The page of measured lines: random truth, errors, and what the stored page says."""

import re
from typing import Any

import pytest

from sojourn_lab.studies.measured_lines import LINES, PAGE, QUANTITIES, errors, page, truth


def row(seed: int, factor: float) -> dict[str, Any]:
    """Return a line that is measured too large by a factor."""
    line = truth(seed)
    measured = {name: {"value": line[name] * factor} for name in QUANTITIES}
    return {"seed": seed, "truth": line, "measured": measured, "kept_up": seed != 2}


def test_lines_are_random_and_repeatable() -> None:
    """Rates from 1 to 13 Mbit/s, up at most as fast as down, or 1 Mbit/s."""
    lines = [truth(seed) for seed in range(1, 101)]
    assert lines[6] == truth(7)
    assert len({line["down_bps"] for line in lines}) == 100
    for line in lines:
        assert 1e6 <= line["up_bps"] <= line["down_bps"] <= 13e6


def test_the_page_counts_lines_within_limits() -> None:
    """5 % for rates and 20 % for buffers; a machine that did not keep up is named."""
    rows = [row(1, 1.0), row(2, 1.1), row(3, 1.3)]
    assert errors(rows)["up_bps"] == pytest.approx([0.0, 0.1, 0.3])
    text = "\n".join(page(rows, 40))
    assert "| `down_bps` | 5% | 1 of 3 | +10.0% | +30.0% |" in text
    assert "| `up_buffer_s` | 20% | 2 of 3 | +10.0% | +30.0% |" in text
    assert "did not keep up in 3 attempts at: 2." in text


def test_most_lines_of_the_stored_page_are_within_limits() -> None:
    """Of 30 real lines: downloads and uploads of 27, buffers of 25."""
    text = PAGE.read_text()
    counts = dict(re.findall(r"^\| `(\w+)` \| \d+% \| (\d+) of 30 ", text, re.MULTILINE))
    assert set(counts) == set(QUANTITIES)
    assert len(re.findall(r"^\| \d+ \|", text, re.MULTILINE)) == LINES
    assert all(int(counts[name]) >= 27 for name in ("down_bps", "up_bps"))
    assert all(int(counts[name]) >= 25 for name in ("down_buffer_s", "up_buffer_s"))
