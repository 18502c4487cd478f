"""Tail Drop against RED: agreement with the discipline's own model, and consistency."""

from dataclasses import replace

import polars as pl
import pytest

import sojourn as sj
from sojourn_lab import papers
from sojourn_lab.papers.red_vs_taildrop import measure, rules_web, settings
from sojourn_lab.papers.red_vs_taildrop import runs as module


@pytest.mark.parametrize("flows", [1, 16, 256, 5000])
@pytest.mark.parametrize("delay", ["100ms", "400ms"])
def test_the_buffer_and_the_band_are_those_of_the_discipline(flows: int, delay: str) -> None:
    """All disciplines have the buffer of red_opt's model; the paper repeats its formula."""
    set_up = replace(module.DEFAULT, delay=delay)
    law = module.law("opt", flows, set_up=set_up)
    result = sj.simulate(module.network(law, [], 101, set_up=set_up))
    series = result.links["bottleneck"].series
    assert module.room(flows, set_up) == round(series.gauge_B[-1])
    assert module.gap(flows, set_up) == pytest.approx(
        series.gauge_max_th[-1] - series.gauge_min_th[-1]
    )


def test_all_claims_are_there_and_every_figure_has_its_experiments() -> None:
    """Claims 001-C1 to 001-C22 have their experiments in both modes."""
    paper = papers.find("red-vs-taildrop")
    assert [claim.id for claim in paper.claims] == [f"001-C{n}" for n in range(1, 23)]
    for full in (False, True):
        known = set(paper.experiments(full))
        needed = {name for one in paper.figures for name in one.needs}
        settings_need = {name for one in paper.claims for name in one.every_need}
        assert needed | settings_need == known


@pytest.mark.parametrize("name", ["each-ack", "half-duplex", "spacing", "memory-ftp"])
def test_settings_of_bulk_data_run_at_every_load(name: str) -> None:
    """A setting that replaces rows of `ftp` has all numbers of FTPs, so all parts are judged."""
    points = papers.find("red-vs-taildrop").experiments(True)[name].points
    assert {labels["flows"] for labels, _ in points} == set(module.FTPS)


def test_two_way_traffic_queues_acks_behind_data() -> None:
    """Forward flows are slower when the link back is full of data, though the links are equal."""
    tree = module.network(module.law("td", 16), module.testbed(16), 110)
    both = module.two_way(tree, module.testbed(16))
    one_way, two_way = (sj.simulate({**case, "seed": 1}) for case in (tree, both))
    measured = measure.measure_two_way(two_way)
    assert measured["goodput_back_mbps"] > 8
    assert measured["goodput_mbps"] < measure.measure(one_way)["goodput_mbps"]


def test_a_shared_bottleneck_carries_acks_and_data() -> None:
    """Acks take capacity of a shared link, and the base round-trip time is unchanged."""
    tree = module.network(module.law("td", 16), module.testbed(16), 110)
    shared = module.shared_medium(tree)
    alone, together = (sj.simulate({**case, "seed": 1}) for case in (tree, shared))
    arrived = [one.links["bottleneck"].arrived_packets for one in (together, alone)]
    assert 1.3 < arrived[0] / arrived[1] < 1.7  # an ack for every second packet
    goodputs = [measure.measure(one)["goodput_mbps"] for one in (together, alone)]
    assert 0.95 < goodputs[0] / goodputs[1] < 0.99


def test_rio_prefers_the_flows_in_profile() -> None:
    """Half of the FTPs and of the CBR sources are in profile; only RIO favours them."""
    shares = {}
    for q in ("red", "rio"):
        tree = module.network(module.law(q, 16, acks=2), module.testbed(16), 120)
        measured = measure.measure_profile(sj.simulate({**module.in_profile(tree), "seed": 1}))
        goodputs = measured["goodput_in_mbps"], measured["goodput_out_mbps"]
        assert sum(goodputs) == pytest.approx(measured["goodput_mbps"])
        shares[q] = goodputs[0] / sum(goodputs)
    assert 0.4 < shares["red"] < 0.6
    assert shares["rio"] > 0.65


def test_payload_scales_goodput_and_its_limit() -> None:
    """The share of the rate that UDP leaves is the same for payload."""
    frame = pl.DataFrame({"goodput_mbps": [9.0], "left_mbps": [9.1], "udp_loss": [0.1]})
    changed = settings.payload(frame)
    assert changed["goodput_mbps"][0] == pytest.approx(9.0 * 1448 / 1514)
    assert changed["goodput_mbps"][0] / changed["left_mbps"][0] == pytest.approx(9.0 / 9.1)
    assert changed["udp_loss"][0] == 0.1


def test_the_deviation_over_sessions_can_hold_and_fail() -> None:
    """001-C19 holds if the deviation falls from step to step, and fails if it rises."""
    rows = [
        {"q": "td", "sessions": s, "seed": seed, "delay_std_s": 0.1 / (k + 1) + 1e-4 * seed}
        for k, s in enumerate(module.SESSIONS)
        for seed in (1, 2, 3)
    ]
    falling = pl.DataFrame(rows)
    rising = falling.with_columns(delay_std_s=-pl.col("delay_std_s"))
    assert {part.result for part in rules_web.web_falls({"web": falling})} == {"holds"}
    assert {part.result for part in rules_web.web_falls({"web": rising})} == {"fails"}
