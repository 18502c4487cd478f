"""Tail Drop against RED: agreement with the discipline's own model, and consistency."""

import pytest

import sojourn as sj
from sojourn_lab import papers
from sojourn_lab.papers.red_vs_taildrop import runs as module


@pytest.mark.parametrize("flows", [1, 16, 256, 5000])
def test_the_buffer_and_the_band_are_those_of_the_discipline(flows: int) -> None:
    """All disciplines have the buffer of red_opt's model; the paper repeats its formula."""
    result = sj.simulate(module.network(module.law("opt", flows), [], 101))
    series = result.links["bottleneck"].series
    assert module.room(flows) == round(series.gauge_B[-1])
    assert module.gap(flows) == pytest.approx(series.gauge_max_th[-1] - series.gauge_min_th[-1])


def test_a_module_with_an_underscore_is_no_paper() -> None:
    """The list of papers has the paper, but no module of its package."""
    assert "red-vs-taildrop" in papers.ids()
    assert not [name for name in papers.ids() if name.startswith("-")]


def test_all_claims_are_there_and_every_figure_has_its_experiments() -> None:
    """Claims 001-C1 to 001-C18 have their experiments in both modes."""
    paper = papers.find("red-vs-taildrop")
    assert [claim.id for claim in paper.claims] == [f"001-C{n}" for n in range(1, 19)]
    for full in (False, True):
        known = set(paper.experiments(full))
        needed = {name for one in paper.figures for name in one.needs}
        assert needed == known
        assert {name for one in paper.claims for name in one.needs} <= known
