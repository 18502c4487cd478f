"""Senders of data centres: the fluid model, and the cases of the vectors."""

import gzip

import pytest

from sojourn_lab import ROOT
from sojourn_lab.validation import datacentre
from sojourn_lab.validation.datacentre import AI, CASES, PACKET, RATE, TAU_ALPHA, TIMER


@pytest.mark.parametrize("flows", [2, 5, 16])
def test_the_fixed_point_is_the_inverse_of_the_rate(flows: int) -> None:
    """The marking probability of n flows gives each a share of the port."""
    rate = datacentre.fluid_rate(datacentre.fixed_point(flows))
    assert rate == pytest.approx(RATE / flows, rel=1e-6)


def test_few_marks_have_the_closed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a small R_AI, p^3 = R_AI N^4 / (55 us T^2 C^4) in packets, as Zhu and others have it."""
    monkeypatch.setattr(datacentre, "AI", 4e3)
    capacity, increase = RATE / 8 / PACKET, 4e3 / 8 / PACKET
    cube = increase * 2**4 / (TAU_ALPHA * TIMER**2 * capacity**4)
    assert datacentre.fixed_point(2) == pytest.approx(cube ** (1 / 3), rel=0.03)


@pytest.mark.parametrize("vector", sorted(CASES))
def test_each_case_of_a_vector_has_a_text(vector: str) -> None:
    """The page has a row per case."""
    path = ROOT / f"lab/vectors/senders/{vector}.txt.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    assert sum(line.startswith("case ") for line in lines) == len(CASES[vector])


def test_the_second_program_grows_without_marks() -> None:
    """Marks so rare that none comes: the rate grows by R_AI per period of the timer."""
    rate = datacentre.event_rate(1e-9, seconds=0.01)
    increases = 0.01 / TIMER
    # The mean over the last nine tenths of a rate that grows at a constant pace.
    assert rate == pytest.approx(1e10 + 0.55 * increases * AI, rel=0.05)
