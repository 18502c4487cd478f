"""Recordings of Linux, replayed: equal packet by packet, as docs/validation-linux.md says."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from validation.linux import cake, codel, counts, drr, dualpi2, fifo, fq_pie, pie, red, sfq, tcp
from validation.linux.__main__ import page
from validation.linux.compare import Case, compared

FAMILIES = (dualpi2, cake, codel, fifo, drr, sfq, red, pie)
CASES = [case for family in FAMILIES for case in family.CASES]
COUNTED = [*red.COUNTED, *fq_pie.COUNTED]

PAGE = Path(__file__).parent.parent / "docs/validation-linux.md"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_totals(case: Case) -> None:
    """Drops within 0.5 % and marks within 2 %, unless a case says other bounds, and why."""
    found = compared(case)
    (drops, ours_dropped), (marks, ours_marked) = found.totals
    assert abs(ours_dropped - drops) <= case.within[0] * drops
    assert abs(ours_marked - marks) <= case.within[1] * marks
    assert found.prefix == len(found.dropped) or case.cause


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.cause], ids=lambda case: case.name
)
def test_every_packet(case: Case) -> None:
    """Equal fates; departures within half a microsecond, the resolution of the kernel's stamps."""
    found = compared(case)
    assert len(found.differing) == 0
    assert found.latest_ns <= 500


def test_cake_is_equal_until_random_numbers_decide() -> None:
    """Packets before the first one whose fate depends on the kernel's generator."""
    equal = {
        "be_e12": 7392,
        "be_l12": 7392,
        "be_over": 2931,
        "default_dscp": 2204,
        "flowblind_hosts": 1648,
        "srchost_hosts": 1409,
    }
    cases = {case.name: case for case in cake.CASES}
    for name, packets in equal.items():
        found = compared(cases[f"cake-{name}_10m"])
        assert found.prefix >= packets, name
        assert found.latest_ns <= 500, name


@pytest.mark.parametrize("case", COUNTED, ids=lambda case: case.name)
def test_counts_over_many_seeds(case: Case) -> None:
    """The kernel's numbers of drops and marks are among ours."""
    found = counts.counted(case)
    assert max(map(abs, found.t)) < counts.LIMIT, found.t


@pytest.mark.parametrize("case", red.CASES, ids=lambda case: case.name)
def test_probabilities_of_red_are_those_of_the_kernel(case: Case) -> None:
    """Their sum is the number of drops and marks; that of the paper's RED is not."""
    hits, expected, variance = red.signals(case)
    assert abs(hits - expected) < 3.3 * np.sqrt(variance)
    if case.name in ("red_steady120", "red_two", "redecn_flows64"):
        paper = replace(case, qdisc={**case.qdisc, "variant": "paper"})
        hits, expected, variance = red.signals(paper)
        assert hits < expected - 8 * np.sqrt(variance)


def test_a_difference_would_be_seen() -> None:
    """Another seed, or a timer that starts 1 us later, gives other packets."""
    case = next(case for case in CASES if case.name == "dualpi2_over_10m")
    assert case.phase_ns is not None
    for other in (
        Case(**{**vars(case), "seed": 12346}),
        Case(**{**vars(case), "phase_ns": case.phase_ns + 1000}),
    ):
        assert len(compared(other).differing) > 100


def test_the_page_is_up_to_date() -> None:
    """The committed pages have the numbers of this engine."""
    assert PAGE.read_text() == page()
    assert PAGE.with_name("validation-linux-tcp.md").read_text() == tcp.page()


def test_probabilities_are_those_of_the_kernel() -> None:
    """To the two units of 2^-32 to which they were recorded, if the timer was never late."""
    cases = dualpi2.CASES
    exact = [found for case in cases if (found := compared(case)).probability_error == 2]
    assert len(exact) >= 8
    names = " ".join(found.case.name for found in exact)
    assert re.search(r"\bdualpi2_over_10m\b", names)
    assert all(np.isfinite(found.gauges["p_prime"]).all() for found in exact)


def test_probabilities_of_pie_are_those_of_the_kernel() -> None:
    """To the last of the nine digits that were recorded."""
    errors = [compared(case).probability_error for case in pie.CASES if case.monitored]
    assert len(errors) == 15
    assert all(error is not None and error <= 4 for error in errors), errors


def test_flows_of_tcp_are_like_those_of_linux() -> None:
    """CUBIC and BBR alone at 40 Mbit/s and 20 ms; without room for bursts BBR has no queue."""
    alone = {run.name: run for run in tcp.runs() if "_40m_20ms_1" in run.name}
    for qdisc in ("codel", "dualpi2", "fq_codel", "pfifo", "pie"):
        run = alone[f"{qdisc}_40m_20ms_1cubic"]
        goodput, _, drops, _, delay = tcp.simulated(run)
        assert abs(goodput / run.measured[0] - 1) < 0.01, run.name
        assert abs(drops - run.measured[2]) <= 6, run.name
        assert abs(delay / run.measured[4] - 1) < 0.05, run.name
    run = alone["codel_40m_20ms_1bbr"]
    goodput, _, _, _, delay = tcp.simulated(run)
    assert abs(goodput / run.measured[0] - 1) < 0.01
    assert abs(delay / run.measured[4] - 1) < 0.25
