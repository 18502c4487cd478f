"""Parts of `recommend` on facts made by hand: facts of a run, costs, suggestions, the search."""

import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import sojourn as sj
from sojourn import metrics
from sojourn.recommendation import answer, line, objective, search
from sojourn.recommendation.objective import Measured
from sojourn.result.result import Result
from support.searches import HOME, Suggests, facts_of


def run_of(flows: Sequence[Mapping[str, Any]], **summary: Any) -> Result:
    """Return what `Measured` reads of a run: two links, a group of each name, transfers."""
    groups = {
        str(flow["group"]): {
            "name": flow["group"],
            "path": [flow.get("link", "down")],
            "source": {"name": flow.get("source", "cbr")},
        }
        for flow in flows
    }
    took = np.array(summary.pop("took", []))
    kept = {
        "scenario": {
            "duration": "10s",
            "warmup": "2s",
            "flows": [*groups.values()],
            "links": {"down": {"rate": "19mbit"}, "up": {"rate": "4750kbit"}},
        },
        "flows": {str(n): dict(flow) for n, flow in enumerate(flows)},
        "links": {"down": {"sojourn_p99_s": 0.03}, "up": {"sojourn_p99_s": 0.05}},
        "transfers": {"duration_s": took, "start_s": np.full(len(took), 3.0)},
    }
    return cast(Result, SimpleNamespace(**{**kept, **summary}))


def tcp(group: str, goodput_bps: float, link: str = "down") -> dict[str, Any]:
    """Return an endless TCP flow."""
    return {"group": group, "kind": "tcp", "goodput_bps": goodput_bps, "source": "bulk",
            "link": link}  # fmt: skip


def udp(group: str, delay_s: float | None, lost: int = 0, got: int = 100) -> dict[str, Any]:
    """Return a UDP flow."""
    return {"group": group, "kind": "udp", "goodput_bps": 1e6, "delay_p99_s": delay_s,
            "lost_packets": lost, "received_packets": got}  # fmt: skip


@pytest.fixture(autouse=True)
def transfers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take completion times from the run that was written by hand."""
    monkeypatch.setattr(metrics, "completion_times_s", lambda run: run.transfers["duration_s"])


def test_delay_and_loss_are_those_of_all_udp_flows() -> None:
    """The largest delay, wherever it is; 5 + 10 of 300 datagrams lost; others have no delay."""
    flows = [udp("a", 0.01, 5, 95), udp("b", 0.04, 0, 100), udp("c", 0.02, 10, 90), udp("d", None)]
    facts = Measured(False)(run_of(flows[:3]))
    assert (facts["delay_s"], facts["loss"]) == (0.04, 0.05)
    assert Measured(False)(run_of([flows[3]]))["delay_s"] == 0.05, "without one: the worst link's"
    assert Measured(False)(run_of([flows[1]]))["loss"] == 0.0
    assert Measured(False)(run_of([flows[3]], links={}))["delay_s"] == 0.0


def test_without_udp_the_delay_is_that_of_the_worst_link() -> None:
    """30 and 50 ms; no datagrams, no loss; an idle link has no delay."""
    facts = Measured(False)(run_of([tcp("a", 1e6)]))
    assert (facts["delay_s"], facts["loss"], facts["transfer_s"]) == (0.05, 0.0, 0.0)
    idle = {"down": {"sojourn_p99_s": None}, "up": {"sojourn_p99_s": 0.0}}
    assert Measured(False)(run_of([tcp("a", 1e6)], links=idle))["delay_s"] == 0.0


def test_use_is_a_share_of_the_line_not_of_the_shaper() -> None:
    """A shaper sends 19 of 20 Mbit/s, so 15.2 Mbit/s are 76 % of the line, 80 % of the shaper."""
    result = run_of([tcp("a", 10e6), tcp("a", 5.2e6), udp("call", 0.01)])
    assert Measured(True)(result)["use"] == pytest.approx(15.2 / 20)
    assert Measured(False)(result)["use"] == pytest.approx(15.2 / 19)
    assert Measured(True).identity != Measured(False).identity


def test_use_counts_the_links_of_endless_flows_only() -> None:
    """Both directions: 14.25 + 4.75 of 25 Mbit/s. Without endless flows there is no share."""
    both = [tcp("a", 14.25e6), tcp("b", 4.75e6, "up")]
    assert Measured(True)(run_of(both))["use"] == pytest.approx(19 / 25)
    assert Measured(True)(run_of([udp("call", 0.01)]))["use"] == 0.0


def test_the_capacity_of_a_trace_is_what_it_carried_per_share() -> None:
    """6 MB in 8 s at a utilisation of 0.75: 8 Mbit/s; an idle link has its nominal rate."""
    scenario = {
        "duration": "10s", "warmup": "2s",
        "links": {"l": {"rate": "19mbit", "trace": {"file": "x"}}, "plain": {"rate": "3mbit"}},
    }  # fmt: skip
    links = {"l": {"utilisation": 0.75, "departed_bytes": 6_000_000},
             "plain": {"utilisation": 0.5, "departed_bytes": 1}}  # fmt: skip
    result = cast(Result, SimpleNamespace(scenario=scenario, links=links))
    assert objective._capacity_bps(result, "l") == 8e6
    assert objective._capacity_bps(result, "plain") == 3e6
    links["l"]["utilisation"] = 0
    assert objective._capacity_bps(result, "l") == 19e6


def test_fairness_is_that_of_the_worst_group() -> None:
    """Jain's index of 1 and 3 Mbit/s is 16/20; of equal ones 1; one without endless flows is 1."""
    flows = [tcp("a", 1e6), tcp("a", 3e6), tcp("b", 2e6), tcp("b", 2e6)]
    assert Measured(False)(run_of(flows))["jain"] == pytest.approx(0.8)
    assert Measured(False)(run_of([*flows[2:], *flows[:2]]))["jain"] == pytest.approx(0.8)
    assert Measured(False)(run_of([udp("call", 0.01)]))["jain"] == 1.0


def test_transfers_have_their_mean() -> None:
    """1 and 3 s."""
    assert Measured(False)(run_of([tcp("a", 1e6)], took=[1.0, 3.0]))["transfer_s"] == 2.0


def test_costs_are_the_formulas_of_the_page() -> None:
    """Computed from the formulas at one point; logarithms end at 0.001."""
    facts = {"delay_s": 0.03, "loss": 0.02, "transfer_s": 0.5, "use": 0.8, "jain": 0.9}
    log = math.log
    assert objective.calls(facts) == pytest.approx(2 * log(4) + 0.4 - log(0.8))
    assert objective.games(facts) == pytest.approx(2 * log(7) + 0.8 - 0.5 * log(0.8))
    assert objective.throughput(facts) == pytest.approx(0.3 * log(1.6) - 4 * log(0.8))
    assert objective.fairness(facts) == pytest.approx(0.5 * log(4) - 4 * log(0.9) - log(0.8))
    balance = log(4) + 0.2 + log(0.5) - 2 * log(0.8) - log(0.9)
    assert objective.balance(facts) == pytest.approx(balance)
    none = {**facts, "transfer_s": 0.0, "use": 0.0, "jain": 0.0}
    assert objective.balance(none) == pytest.approx(log(4) + 0.2 - 3 * log(0.001))
    assert objective.fairness(none) == pytest.approx(0.5 * log(4) - 5 * log(0.001))


def test_a_target_is_at_most_half_of_the_interval() -> None:
    """RFC 8289, 4.3: the target is the acceptable minimum over an interval."""
    parameters = search._suggested(Suggests(interval=0.04, target=0.03), "codel", HOME)
    assert parameters == {"name": "codel", "interval": "40ms", "target": "20ms"}
    parameters = search._suggested(Suggests(interval=0.04, target=0.015), "codel", HOME)
    assert parameters["target"] == "15ms"
    parameters = search._suggested(Suggests(target=0.02), "pie", HOME)
    assert parameters == {"name": "pie", "target": "20ms"}, "no interval, no limit"


def test_ranges_follow_the_longest_round_trip_time() -> None:
    """60 ms: targets from 1.2 to 36 ms, intervals from 18 to 240 ms; defaults are left out."""
    trial = Suggests(interval=0.1, target=0.005, quantum=1514.0)
    assert search._suggested(trial, "fq_codel", HOME) == {"name": "fq_codel"}
    assert trial.ranges == {
        "fq_codel.interval": pytest.approx((0.018, 0.24)),
        "fq_codel.target": pytest.approx((0.0012, 0.036)),
        "fq_codel.quantum": (300, 6000),
    }
    parameters = search._suggested(
        Suggests(interval=0.1, target=0.005, quantum=300.4), "fq_codel", HOME
    )
    assert parameters == {"name": "fq_codel", "quantum": "300B"}
    near = line.make("20mbit", "5mbit", "1us", "home")
    trial = Suggests(interval=0.1, target=0.005)
    search._suggested(trial, "codel", near)
    assert trial.ranges["codel.target"] == (5e-6, 0.005), "at least 5 us, and up to the default"
    far = line.make("20mbit", "5mbit", "4s", "home")
    search._suggested(trial, "codel", far)
    assert trial.ranges["codel.target"] == pytest.approx((0.005, 2.4)), "from the default up"


def test_a_data_centre_has_ecn_where_a_discipline_has_it() -> None:
    """Drop-tail has none."""
    there = line.make("1gbit", "1gbit", "100us", "datacentre")
    assert search._suggested(Suggests(interval=0.1, target=0.005), "codel", there)["ecn"] is True
    assert search._suggested(Suggests(), "droptail", there) == {"name": "droptail"}
    assert "ecn" not in search._suggested(Suggests(interval=0.1, target=0.005), "codel", HOME)


@pytest.mark.parametrize(
    ("value_s", "text"),
    [(0.0123, "12ms"), (0.1, "100ms"), (1.26, "1300ms"), (0.001, "1ms"), (9.96e-4, "1ms"),
     (1.26e-4, "130us"), (1.5e-6, "2us"), (4e-7, "1us")],
)  # fmt: skip
def test_a_time_has_two_digits_in_the_unit_of_tc(value_s: float, text: str) -> None:
    """Milliseconds, below one of them microseconds, at least one."""
    assert search._time(value_s) == text


def test_a_trial_that_was_stopped_comes_after_those_that_were_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Drop-tail costs 1 at the usual load and 100 at others; codel 2 at the usual load, and stops.

    Each costs 10 more with seed 1, 20 with seed 2. The mean of drop-tail over its six runs is
    (11 + 220 + 261) / 6 = 82: more than codel's 12, yet it was tried everywhere.
    """
    calls: list[tuple[str, int]] = []

    def run(line: line.Line, qdisc: Mapping[str, Any], at: Any, **_: Any) -> list[dict[str, float]]:
        name = str(qdisc["name"])
        calls.append((name, len(at)))
        usual = {"droptail": 1.0, "codel": 2.0}[name]
        return [facts_of((usual if load == 1.0 else 100.0) + 10 * seed) for load, seed in at]

    monkeypatch.setattr(search, "run", run)
    trials = search.search(
        HOME, ["droptail", "codel"], lambda facts: facts["delay_s"], trials=2, seed=1
    )
    assert calls == [("droptail", 1), ("droptail", 2), ("droptail", 3), ("codel", 1)]
    assert [(one.qdisc["name"], one.stopped) for one in trials] == [
        ("droptail", False), ("codel", True)
    ]  # fmt: skip
    assert [one.cost for one in trials] == [82.0, 12.0]
    assert [len(one.facts) for one in trials] == [6, 1]


def test_a_linux_name_is_an_alias_or_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names in any case, with dashes; "all" and none are all."""
    assert search.candidates("FQ-CoDel, , pie,") == ["fq_codel", "pie"]
    assert search.candidates("all") == search.candidates(None)
    with pytest.raises(sj.InputError, match='--only: unknown discipline " codle"'):
        search.candidates("pie, codle")
    assert search.with_ecn("codel")
    assert not search.with_ecn("droptail")
    with pytest.raises(KeyError):
        search.parameters("codle")


def test_the_answer_is_judged_on_seeds_it_was_not_chosen_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three finalists on seeds 101 to 103, the best of them on 104 to 106, at both loads."""
    costs = {"a": 3.0, "b": 1.0, "c": 2.0, "d": 0.0, "droptail": 5.0, "fq_codel": 4.0}
    used: list[tuple[str, tuple[int, ...], bool]] = []

    def run(
        line: line.Line, qdisc: Mapping[str, Any], at: Any, *, shaped: bool | None = None, **_: Any
    ) -> list[dict[str, float]]:
        seeds = tuple(sorted({seed for _load, seed in at}))
        used.append((str(qdisc["name"]), seeds, line.shaped if shaped is None else shaped))
        return [facts_of(costs[qdisc["name"]] + 0.1 * load) for load, _seed in at]

    tried = [search.Trial({"name": name}, (), n, name == "x") for n, name in enumerate("xabcd")]
    monkeypatch.setattr(answer, "run", run)
    monkeypatch.setattr(answer, "search", lambda *_, **__: tried)
    monkeypatch.setattr(answer, "_label", lambda qdisc: qdisc["name"])
    question = answer.Question(HOME, [], lambda facts: facts["delay_s"], 1, 1)
    recommendation = answer.answer(question)
    first = [one for one in used if len(one[1]) == 3]
    assert first == [
        ("a", (101, 102, 103), True), ("b", (101, 102, 103), True), ("c", (101, 102, 103), True),
        ("b", (104, 105, 106), True), ("droptail", (104, 105, 106), False),
        ("fq_codel", (104, 105, 106), True),
    ]  # fmt: skip
    assert recommendation.qdisc == {"name": "b"}
    assert recommendation.gains["drop-tail today"].mean == pytest.approx(4.0), (
        "above 0: ours is better"
    )
    assert recommendation.gains["fq_codel"].mean == pytest.approx(3.0)
    assert recommendation.table["b"]["delay_s"] == pytest.approx(1 + 0.1 * (0.75 + 1.5) / 2)
    assert [one["rtt_s"] for one in recommendation.wins[::3]] == pytest.approx(
        [0.01, 0.02, math.sqrt(0.02 * 0.06), 0.06, 0.12]
    )
    assert [one["drop-tail today"] for one in recommendation.wins] == pytest.approx([4.0] * 15)
    assert used[6][1:] == ((201, 202), True)
    assert recommendation.objective == "custom"
