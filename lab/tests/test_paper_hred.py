"""Paper on HRED: its formulas, valid scenarios, consistent claims."""

import math

import numpy as np
import pytest

from sojourn import _sojourn
from sojourn.scenario.draft import Draft
from sojourn_lab import papers
from sojourn_lab.papers import hred
from sojourn_lab.papers.hred.measures import settled_s
from sojourn_lab.papers.hred.theory import fluid_limit, gain, largest_change, smallest_stable_buffer


@pytest.mark.parametrize("kappa", [1, 2, 4])
def test_smallest_stable_buffer_is_that_of_the_paper(kappa: float) -> None:
    """Bisection gives the closed form of the paper."""
    assert smallest_stable_buffer(1 / 2, kappa) == pytest.approx(4 / (4 * kappa - 1), rel=1e-6)
    assert smallest_stable_buffer(3 / 4, kappa) == pytest.approx(4 / (6 * kappa - 1), rel=1e-6)


def test_gain_of_the_papers_own_runs() -> None:
    """The runs with 300 kB are outside of the bound."""
    # At 112.5 kB, CR = 675 kB, by equation (9).
    assert gain(112.5, 675, 75, 150, 2) == pytest.approx(1.1667, rel=1e-4)
    assert largest_change(675 / 300, 0.5) == pytest.approx(0.1)


def test_fluid_limit_is_above_one_and_grows_with_the_window() -> None:
    """The fluid model of TCP is stable up to a gain above 1, higher for larger windows."""
    # Two equal poles and a delay, W = 2: the phase is -180 degrees where x + 2 atan x = pi.
    x = next(i / 1e5 for i in range(200_000) if i / 1e5 + 2 * math.atan(i / 1e5) >= math.pi)
    assert fluid_limit(2) == pytest.approx(1 + x * x, rel=1e-3)
    assert 1 < fluid_limit(2) < fluid_limit(5) < fluid_limit(15)


def test_a_queue_has_settled_when_its_mean_stays_in_the_band() -> None:
    """The mean of 5 s counts, from its last time outside; a queue that never stays takes all."""
    time = np.arange(1, 1201) * 0.05
    late = np.where(time <= 20, 1.0, 0.375)
    # The mean of the last 5 s is at most 0.5 when at most a fifth of them is at 1.
    assert settled_s(time, late, 0, 60) == pytest.approx(19, abs=0.1)
    assert settled_s(time, late, 30, 60) == 0
    assert settled_s(time, np.full(1200, 0.9), 0, 60) == 60


def test_each_setting_replaces_runs_of_its_claims() -> None:
    """Claims of a setting exist, and read what it replaces; all its points exist in the base."""
    paper = papers.find("hred")
    claims = {one.id: one for one in paper.claims}
    experiments = paper.experiments(full=True)
    for setting in hred.SETTINGS:
        assert setting.claims
        assert all(setting.concerns(claims[one]) for one in setting.claims), setting.name
    for base in ("sweep", "step", "testbed", "shares", "web", "web_on", "rem"):
        axes = [labels for labels, _ in experiments[base].points]
        for labels, _ in experiments[f"{base} settings"].points:
            assert {k: v for k, v in labels.items() if k != "setting"} in axes


@pytest.mark.parametrize("full", [False, True])
def test_every_point_is_a_scenario(full: bool) -> None:
    """Rust accepts every point of every experiment."""
    for experiment in hred.scenarios(full).values():
        assert experiment.seeds >= 2
        for labels, tree in experiment.points:
            assert labels
            _sojourn.ParsedScenario(Draft.read(tree).to_json()).canonical()


def test_claims_and_figures_refer_to_existing_ones() -> None:
    """Claims and figures need experiments, and are about figures, that exist."""
    paper = papers.find("hred")
    names = set(paper.experiments(full=False))
    numbers = {one.number for one in paper.figures}
    for one in paper.figures:
        assert set(one.needs) <= names
    assert [claim.id for claim in paper.claims] == [f"003-C{n}" for n in range(1, 26)]
    for claim in paper.claims:
        assert set(claim.needs) <= names
        assert set(claim.figure.split(", ")) <= numbers


def test_helpers_of_papers_are_no_papers() -> None:
    """Modules that begin with an underscore are not listed."""
    assert "hred" in papers.ids()
    assert not any(name.startswith(("_", "-")) for name in papers.ids())
