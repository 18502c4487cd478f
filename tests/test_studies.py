"""The studies in quick mode: the results of their pages hold for one or two seeds."""

from studies import fairness


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
