"""Recordings of Linux, replayed: equal packet by packet, as reports/validation-linux.md says."""

from dataclasses import replace

import numpy as np
import pytest

from sojourn_lab import ROOT
from sojourn_lab.validation.linux import (
    cake,
    codel,
    counts,
    drr,
    dualpi2,
    fifo,
    fq,
    fq_pie,
    pie,
    red,
    sfq,
    tcp,
)
from sojourn_lab.validation.linux.__main__ import page
from sojourn_lab.validation.linux.compare import Case, compared
from sojourn_lab.validation.linux.timer import updates

FAMILIES = (dualpi2, cake, codel, fifo, drr, sfq, red, pie, fq)
CASES = [case for family in FAMILIES for case in family.CASES]
COUNTED = [*red.COUNTED, *fq_pie.COUNTED, *cake.COUNTED]

PAGE = ROOT / "reports/validation-linux.md"


@pytest.mark.parametrize(
    "case", [case for case in CASES if case not in cake.COUNTED], ids=lambda case: case.name
)
def test_totals(case: Case) -> None:
    """Drops within 0.5 % and marks within 2 %; of the others see the counts over many seeds."""
    comparison = compared(case)
    (drops, ours_dropped), (marks, ours_marked) = comparison.totals
    assert abs(ours_dropped - drops) <= 0.005 * drops
    assert abs(ours_marked - marks) <= 0.02 * marks
    assert comparison.prefix == len(comparison.dropped) or case.cause


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.cause], ids=lambda case: case.name
)
def test_every_packet(case: Case) -> None:
    """Equal fates; departures within half a microsecond, the resolution of the kernel's stamps."""
    comparison = compared(case)
    assert len(comparison.differing) == 0
    assert comparison.latest_ns <= 500


def test_cake_is_equal_until_random_numbers_decide() -> None:
    """Packets before the first one whose fate depends on the kernel's generator."""
    equal = {
        "be_e12": 7392,
        "be_l12": 7392,
        "be_over": 2931,
        "default_dscp": 2083,
        "flowblind_hosts": 1648,
        "srchost_hosts": 1409,
    }
    cases = {case.name: case for case in cake.CASES}
    for name, packets in equal.items():
        comparison = compared(cases[f"cake-{name}_10m"])
        assert comparison.prefix >= packets, name
        assert comparison.latest_ns <= 500, name


def test_cobalt_is_that_of_cake() -> None:
    """A queue of its own with COBALT decides as cake for a single flow, until the ARP probe."""
    for name in ("be_e12", "be_l12"):
        case = next(case for case in cake.CASES if case.name == f"cake-{name}_10m")
        cobalt = {"name": "cobalt", "variant": "linux", "ecn": True, "limit": "10000p"}
        own = replace(case, qdisc=cobalt, rate="10mbit", frames=())
        comparison = compared(own)
        assert comparison.prefix >= 3387, name
        # The probe takes 33.6 us of the shaper, but is not in this queue.
        assert comparison.latest_ns <= 33_600 + 500, name
        paper = replace(own, qdisc={**cobalt, "variant": "paper"})
        assert compared(paper).prefix < 100, name


@pytest.mark.parametrize("case", COUNTED, ids=lambda case: case.name)
def test_counts_over_many_seeds(case: Case) -> None:
    """The kernel's numbers of drops and marks are among ours, as the page says."""
    counted = counts.counted(case)
    assert max(map(abs, counted.t)) < counts.LIMIT, counted.t
    assert counted.row() in PAGE.read_text()


@pytest.mark.parametrize("case", red.CASES, ids=lambda case: case.name)
def test_probabilities_of_red_are_those_of_the_kernel(case: Case) -> None:
    """Their sum is the number of drops and marks; the sum of the paper's RED is not."""
    hits, expected, variance = red.signals(case)
    assert abs(hits - expected) < 3.3 * np.sqrt(variance)
    if case.name in ("red_steady120", "red_two", "redecn_flows64"):
        paper = replace(case, qdisc={**case.qdisc, "variant": "paper"})
        hits, expected, variance = red.signals(paper)
        assert hits < expected - 8 * np.sqrt(variance)


def test_a_difference_would_be_seen() -> None:
    """Another seed, or a timer that is never late, gives other packets."""
    case = next(case for case in CASES if case.name == "dualpi2-k4_mix_10m")
    assert case.timer is not None
    phase = case.timer.started_ns % case.timer.period_ns
    for other in (replace(case, seed=12346), replace(case, timer=None, phase_ns=phase)):
        assert len(compared(other).differing) > 100


def test_updates_are_late_by_the_clock_of_the_kernel() -> None:
    """16 ms are whole steps of 256 ns, 10 ms are not: half a step or one and a half each time."""
    cases = {case.name: case for case in dualpi2.CASES}

    def late(name: str) -> list[int]:
        case = cases[name]
        assert case.timer is not None
        return list(np.diff(updates(name, case.timer)) - case.timer.period_ns)

    assert set(late("dualpi2_over_10m")) == {0}
    assert sorted(late("dualpi2-k4_mix_10m"))[-2:] == [0, 256]
    # From 16.77 to 17.01 s p' is 0; the next value allows two times, and one at steps of the clock.
    rtt40 = updates("dualpi2-rtt40_over_10m", dualpi2.RTT40_TIMER)
    assert 17_020_464_128 in rtt40
    assert set(rtt40 % 256) == {0}
    t5 = late("dualpi2-t5_mix_10m")
    assert t5.count(128) > 900
    assert t5.count(384) > 900


def test_fq_counts_idle_times_from_an_odd_tick() -> None:
    """Of all times within two ticks, in steps of 1 ms, one gives the packets of the kernel."""
    case = next(case for case in CASES if case.name == "fq-default_sparse_10m")
    for start in range(0, 20_000_000, 1_000_000):
        comparison = compared(replace(case, clock_ns=start))
        equal = len(comparison.differing) == 0 and comparison.latest_ns <= 500
        assert equal == (start == 1_000_000), start


def test_the_page_is_up_to_date() -> None:
    """The committed pages have the numbers of this engine."""
    committed = iter(PAGE.read_text().splitlines())
    # The tables over many seeds are compared case by case.
    assert [line for line in page(counting=False).splitlines() if line not in committed] == []
    assert PAGE.with_name("validation-linux-tcp.md").read_text() == tcp.page()


def test_probabilities_are_those_of_the_kernel() -> None:
    """To the two units of 2^-32 to which they were recorded."""
    errors = {case.name: compared(case).probability_error for case in dualpi2.CASES}
    assert set(errors.values()) == {2}


def test_probabilities_of_pie_are_those_of_the_kernel() -> None:
    """To the last of the nine digits that were recorded."""
    errors = [compared(case).probability_error for case in pie.CASES if case.monitored]
    assert len(errors) == 15
    assert all(error is not None and error <= 4 for error in errors), errors


def test_flows_of_tcp_are_like_those_of_linux() -> None:
    """CUBIC and BBR alone at 40 Mbit/s and 20 ms; without room for bursts BBR has no queue."""
    alone = tcp.runs()
    for qdisc in ("codel", "dualpi2", "fq_codel", "pfifo", "pie"):
        name = f"{qdisc}_40m_20ms_1cubic"
        linux, ours = tcp.measured(alone[name]), tcp.simulated(alone[name])
        assert abs(ours[0] / linux[0] - 1) < 0.01, name
        assert abs(ours[2] - linux[2]) <= 3, name
        assert abs(ours[4] / linux[4] - 1) < 0.07, name
    run = alone["codel_40m_20ms_1bbr"]
    linux, ours = tcp.measured(run), tcp.simulated(run)
    assert abs(ours[0] / linux[0] - 1) < 0.01
    assert abs(ours[4] / linux[4] - 1) < 0.1
