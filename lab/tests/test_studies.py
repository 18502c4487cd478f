"""The studies in quick mode: the results of their pages hold for one or two seeds."""

import pytest

import sojourn as sj
from sojourn_lab.studies import codel_in_data_centers as centres
from sojourn_lab.studies import fairness, home_line, queue_age


def test_ewfq_is_fair_where_round_trips_differ() -> None:
    """In the Varied network EWFQ is fairer than WFQ, and both use the link."""
    own = [fairness.network("Varied", fairness.ewfq("Varied", 30), seed) for seed in (1, 2)]
    plain = [fairness.network("Varied", fairness.wfq("Varied", 30), seed) for seed in (1, 2)]
    index, _, total, _ = fairness.measured(own)
    other, _, all_of_it, _ = fairness.measured(plain)
    assert index > 0.99 > other > 0.97
    assert total > 4.8
    assert all_of_it > 4.95


def test_a_flood_is_held_at_its_share() -> None:
    """FIFO gives all to the flood; fair schedulers, EWFQ and nearly AFD give it a tenth."""
    lines = fairness.misbehaviour(2)[2:]
    got = {line.split(" | ")[0].strip("| "): float(line.split(" | ")[1]) for line in lines}
    assert got["FIFO"] > 9
    assert all(0.9 < got[name] < 1.1 for name in ("DRR", "WFQ", "FQ-CoDel", "EWFQ"))
    assert 1 < got["AFD"] < 2


def test_home_line_protects_calls_and_web() -> None:
    """Two seeds and a shorter run: flow queues beat drop-tail; dualpi2 balances Prague."""
    line = "50/10 Mbit/s"
    campaign = home_line.run(2, seconds=40, lines=[line])

    def mean(mix: str, queue: str, what: str) -> float:
        return campaign.mean(line, mix, queue, what).mean

    for mix in home_line.MIXES:
        late = {queue: mean(mix, queue, "call_up_ms") for queue in home_line.QUEUES}
        assert late["cake"] < late["fq_codel"] < late["droptail"] / 3
        web = {queue: mean(mix, queue, "web_ms") for queue in home_line.QUEUES}
        assert web["fq_codel"] < web["droptail"] / 2
        assert mean(mix, "fq_codel", "call_up_mbit") > 1
    assert mean("BBR", "droptail", "ratio") > 1.5 > mean("BBR", "fq_codel", "ratio") > 0.7
    assert 0.7 < mean("Prague", "dualpi2", "ratio") < 1.4
    text = home_line.table(campaign, line)
    assert text.count("\n") == 1 + len(home_line.MIXES) * len(home_line.QUEUES)


def test_home_line_refuses_conclusions_that_do_not_hold() -> None:
    """With equal values everywhere nothing is faster than anything else."""
    same = dict.fromkeys(home_line.COLUMNS, 1.0)
    runs = {
        (line, mix, queue): [same, same]
        for line, mix in home_line.cases()
        for queue in home_line.QUEUES
    }
    with pytest.raises(SystemExit, match="Delay of calls"):
        home_line.conclusions(home_line.Campaign(runs))


def test_a_new_cake_is_slower_for_the_web_than_one_in_use() -> None:
    """The first drop of each of its queues comes early; `rtt=1s` and age remove the difference."""
    edges = (0, 60, 600, 1200)

    def ages(queue: str) -> list[float]:
        runs = sj.simulate_many([queue_age.scenario(queue, seed) for seed in (1, 2, 3)])
        taken = [queue_age.completion_ms(run, edges) for run in runs]
        return [sum(column) / len(column) for column in zip(*taken, strict=True)]

    new, _, old = ages("cake")
    other, _, other_old = ages("fq_codel")
    assert new > 1.12 * other
    assert old < 1.05 * other_old
    assert ages("cake(rtt=1s)")[0] < 1.03 * other


def test_codel_needs_the_time_scale_of_a_data_centre() -> None:
    """One seed: defaults are drop-tail; scaled CoDel helps; step marking helps more."""
    queues = ("droptail", "CoDel, RFC", "CoDel, scaled", "step marking")
    some = {queue: (*centres.MAIN, "DCTCP", queue) for queue in queues}
    campaign = centres.run(1, list(some.values()))
    for what in ("queue_us", "small_p99"):
        tail, default, scaled, step = (campaign.values(some[queue], what)[0] for queue in queues)
        assert default == tail
        assert step < scaled < tail
