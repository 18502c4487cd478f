"""Figures of a run: recorded capacity, and panels of groups that are alike."""

from typing import Any

import numpy as np
import pytest
from matplotlib.patches import StepPatch

import sojourn as sj
from sojourn.plotting.recorded import capacity_bps


def traced(trace: dict[str, Any]) -> sj.Result:
    """Return a run of two flows over a link with a trace."""
    link = sj.Link(rate="10mbit", delay="5ms", qdisc="fq_codel", trace=trace)
    bulk = sj.Flow(name="bulk", count=2, path=["down"], rtt="20ms")
    return sj.simulate(
        sj.Scenario(duration="8s", sample="100ms", links={"down": link}, flows=[bulk])
    )


RATES = {"t_ns": [1_000_000_000, 3_000_000_000], "rate_bps": [2_000_000, 6_000_000]}


def test_capacity_follows_the_rows_of_a_trace() -> None:
    """The link's own rate first, then the rows; a repeated trace starts again with its first."""
    edges = np.arange(0.0, 9.0)
    once = traced(RATES).scenario["links"]["down"]
    assert capacity_bps(once, edges) == pytest.approx([10e6, 2e6, 2e6, *[6e6] * 5])
    again = traced({**RATES, "repeat": "4s"}).scenario["links"]["down"]
    assert capacity_bps(again, edges) == pytest.approx([10e6, 2e6, 2e6, 6e6, 6e6, 2e6, 2e6, 6e6])


def test_capacity_counts_opportunities() -> None:
    """One packet of 1500 bytes every 3 ms is 4 Mbit/s."""
    link = traced({"opportunities_ms": [3, 6, 9]}).scenario["links"]["down"]
    edges = np.array([0.0, 0.9, 1.8, 7.2])
    assert capacity_bps(link, edges) == pytest.approx([4e6] * 3, rel=0.01)
    assert capacity_bps({"rate": "10mbit"}, edges) is None


def test_throughput_stays_within_the_drawn_capacity() -> None:
    """The sum of the lines is the capacity while the link is busy, and never above it."""
    (axes,) = [
        ax for ax in sj.draw(traced(RATES)).axes if ax.get_title(loc="left").startswith("through")
    ]
    (area,) = [patch for patch in axes.patches if isinstance(patch, StepPatch)]
    assert area.get_label() == "capacity of down"
    capacity = np.asarray(area.get_data()[0])
    total = np.sum([np.asarray(line.get_ydata()) for line in axes.lines], axis=0)
    busy = slice(15, None)
    assert np.all(total[busy] < 1.05 * capacity[busy] + 0.3)
    assert total[busy].sum() > 0.9 * capacity[busy].sum()


def test_rrul_has_a_panel_for_uploads_and_one_for_downloads() -> None:
    """As flent draws it: a line per class and their mean; `flows` brings the windows back."""
    result = sj.simulate("rrul")
    panels = {ax.get_title(loc="left").partition(":")[0]: ax for ax in sj.draw(result).axes}
    assert {"upload", "download"} < set(panels)
    lines = {line.get_label(): np.asarray(line.get_ydata()) for line in panels["download"].lines}
    assert list(lines)[-1] == "mean"
    classes = [lines[f"download-{one}"] for one in ("EF", "CS5", "BE", "BK")]
    assert np.allclose(lines["mean"], np.mean(classes, axis=0))
    windows = [ax.get_title(loc="left") for ax in sj.draw(result, flows=["upload-BE"]).axes]
    assert "congestion window" in windows
