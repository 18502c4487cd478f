"""The comparison with ns-2: its statistics, its set-ups, and a quick form of it.

`make validate` is the whole of it and takes minutes.
"""

import json

import numpy as np
import pytest
from scipy.stats import ttest_ind

from sojourn import _sojourn
from sojourn_lab.validation import statistics
from sojourn_lab.validation.again import again, counts
from sojourn_lab.validation.cases import Case, File, cases
from sojourn_lab.validation.files import FILES, FORM, FTP_ONLY, INCAST, ONE_FLOW, RERUN, TRUNK
from sojourn_lab.validation.simulate import compared, simulated, verdict
from sojourn_lab.validation.systems import RTT_SETS


def test_interval_of_a_difference_is_welchs() -> None:
    """Half widths are those that scipy gives for the same data."""
    theirs, ours = np.array([1.0, 2.0, 4.0]), np.array([2.0, 2.5, 3.0, 3.1, 2.9])
    c = statistics.compare(theirs, ours)
    interval = ttest_ind(ours, theirs, equal_var=False).confidence_interval(0.95)
    assert c.difference - c.half == pytest.approx(interval.low)
    assert c.difference + c.half == pytest.approx(interval.high)
    assert c.ours_half == pytest.approx(2.776 * ours.std(ddof=1) / 5**0.5, rel=1e-3)


def test_a_single_run_is_one_more_of_ours() -> None:
    """A single run of ns-2 must lie in the prediction interval of one more run of ours."""
    ours = np.array([2.0, 2.5, 3.0, 3.1, 2.9])
    c = statistics.compare(np.array([3.0]), ours)
    assert np.isnan(c.theirs_half)
    assert c.half == pytest.approx(2.776 * ours.std(ddof=1) * (1 + 1 / 5) ** 0.5, rel=1e-3)


def test_few_runs_use_the_pooled_variance() -> None:
    """Three equal runs are not a mean without error: pooled Student."""
    known = np.array([2.0, 2.5, 3.0, 3.1, 2.9])
    c = statistics.compare_with_known_spread(known, np.array([4.0, 4.0, 4.0]))
    assert c.difference == pytest.approx(1.3)
    assert c.half == pytest.approx(2.776 * known.std(ddof=1) * (1 / 3 + 1 / 5) ** 0.5, rel=1e-3)


def test_one_set_for_all_runs_widens_the_interval_as_often_as_it_should() -> None:
    """95 of 100 intervals hold the truth when all of ns-2's runs share one draw."""
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(1000):
        theirs = rng.normal(0, 1) * 3 + rng.normal(0, 1, 3)
        ours = rng.normal(0, 1, (10, 1)) * 3 + rng.normal(0, 1, (10, 2))
        c = statistics.compare_with_one_set(theirs, ours)
        inside += abs(c.difference) <= c.half
    assert 930 <= inside <= 970


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.title)
def test_every_case_is_a_scenario(file: File) -> None:
    """Rust takes every scenario, and no number of ns-2 is missing."""
    some = list(cases(file))
    assert some
    for case in some:
        _sojourn.ParsedScenario(json.dumps(case.file.scenario(1, case.key))).canonical()
        assert all(np.isfinite(case.theirs(m)).all() for m in case.file.metrics)


def verdicts(case: Case, seeds: int | None = None) -> dict[str, str]:
    """Run a case and return its verdicts."""
    ours = simulated(case, seeds)
    return {m.column: verdict(m, compared(case, m, ours[m.column])) for m in case.file.metrics}


def test_red_with_a_hundred_flows_agrees() -> None:
    """Queue, loss, utilisation, goodput and fairness, with five seeds."""
    case = next(c for c in cases(FTP_ONLY) if c.key["q"] == "RED" and c.key["n"] == "100")
    assert set(verdicts(case, 5).values()) <= {"agrees", "close"}


def test_flows_with_the_same_rtts_agree_run_by_run() -> None:
    """With ns-2's own propagation times the interval is a sixth as wide, and holds 0."""
    case = next(c for c in cases(RERUN[0]) if c.key["q"] == "RED" and c.key["n"] == "30")
    assert len(case.seeds) == 2 * RTT_SETS
    assert set(verdicts(case).values()) <= {"agrees", "close"}


def test_drop_tail_with_many_flows_agrees_in_udps_loss() -> None:
    """The loss of UDP shows how its packets arrive among TCP's."""
    case = next(c for c in cases(TRUNK) if c.key["n"] == "64")
    assert verdicts(case, 5)["udp_loss"] in ("agrees", "close")


def test_codel_variants_agree_without_reentry() -> None:
    """Without re-entry the CoDels of 2012 and of RFC 8289 give the same number of drops."""
    drops = next(m for m in ONE_FLOW.metrics if m.column == "drops")
    for case in cases(ONE_FLOW):
        if float(case.key["target_ms"]) >= 0.2:
            assert simulated(case, 1)["drops"][0] == case.theirs(drops)[0], case.name


def test_codel_of_2012_drops_as_often_at_every_target() -> None:
    """Only the variant is changed: within two of ns-2's up to 1563 drops."""
    drops = next(m for m in FORM.metrics if m.column == "drops")
    for case in cases(FORM):
        assert abs(simulated(case, 1)["drops"][0] - case.theirs(drops)[0]) <= 2, case.name


def test_acks_have_the_transmission_times_of_ns2() -> None:
    """Without them UDP gets 0.3 % less next to two TCPs of equal packets, a sixth of its losses."""
    file = next(f for f in RERUN if f.name == "reruns/fair")
    case = next(c for c in cases(file) if c.key["topo"] == "3u")
    assert set(verdicts(case).values()) <= {"agrees"}


def test_reset_agents_and_ties_give_the_flow_times_of_the_switch() -> None:
    """New agents give 19 ms instead of 26 ms; ties broken by name 17 ms."""
    chosen = {"q": "DropTail", "skb": "50", "n": "40"}
    case = next(c for c in cases(INCAST) if chosen.items() <= c.key.items())
    assert verdicts(case, 5)["afct_ms"] in ("agrees", "close")


def test_a_row_that_differs_is_compared_with_new_runs_of_ns2() -> None:
    """If ours differs from both, the cause is ours; if new runs agree, set-up or randomness."""
    rng = np.random.default_rng(1)
    rows = {
        file.title: [
            (
                case,
                {m.column: case.theirs(m).mean() + rng.normal(0, 1e-9, 20) for m in file.metrics},
            )
            for case in cases(file)
        ]
        for file in FILES
    }
    _, numbers = again(rows)
    assert (numbers["again_chance"], numbers["again_setup"], numbers["again_ours"]) == (0, 0, 0)
    for _, ours in rows["`td_red_ftp`"]:
        ours["udp_loss"] = ours["udp_loss"] * 2
    _, numbers = again(rows)
    assert numbers["td_red_ftp_alone"] == 6
    assert int(numbers["td_red_ftp_setup"]) + int(numbers["td_red_ftp_chance"]) == 3
    assert counts(rows)["td_red_ftp_differs"] == 9
