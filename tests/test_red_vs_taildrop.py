"""What the paper's module restates of a discipline, and what is a paper and what a part of one."""

import pytest

import sojourn as sj
from sojourn.papers.red_vs_taildrop import runs as module
from sojourn.reproduction import paper


@pytest.mark.parametrize("flows", [1, 16, 256, 5000])
def test_the_buffer_and_the_band_are_those_of_the_discipline(flows: int) -> None:
    """All schemes share the buffer that red_opt's model means."""
    result = sj.simulate(module.network(module.law("opt", flows), [], 101))
    said = result.links["bottleneck"].series
    assert module.room(flows) == round(said.gauge_B[-1])
    assert module.gap(flows) == pytest.approx(said.gauge_max_th[-1] - said.gauge_min_th[-1])


def test_a_module_with_an_underscore_is_no_paper() -> None:
    """The paper is listed, its parts are not."""
    assert "red-vs-taildrop" in paper.ids()
    assert not [name for name in paper.ids() if name.startswith("-")]


def test_all_claims_are_there_and_every_figure_has_its_experiments() -> None:
    """001-C1 to 001-C18, in both modes."""
    found = paper.find("red-vs-taildrop")
    assert [claim.id for claim in found.claims] == [f"001-C{n}" for n in range(1, 19)]
    for full in (False, True):
        known = set(found.experiments(full))
        needed = {name for one in found.figures for name in one.needs}
        assert needed == known
        assert {name for one in found.claims for name in one.needs} <= known
