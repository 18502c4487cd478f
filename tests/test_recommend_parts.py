"""Parts of `recommend` on facts made by hand: facts of a run, costs, suggestions, the search."""

import contextlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import sojourn as sj
from sojourn import metrics
from sojourn.recommendation import answer, line, objective, search
from sojourn.recommendation.objective import Measured
from sojourn.result.result import Result
from sojourn.result.statistics import Interval

HOME = line.make("20mbit", "5mbit", "20ms..60ms", "home")


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
    """Completion times are those of the run that was made by hand."""
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
    made = run_of([tcp("a", 10e6), tcp("a", 5.2e6), udp("call", 0.01)])
    assert Measured(True)(made)["use"] == pytest.approx(15.2 / 20)
    assert Measured(False)(made)["use"] == pytest.approx(15.2 / 19)
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
    made = cast(Result, SimpleNamespace(scenario=scenario, links=links))
    assert objective._capacity_bps(made, "l") == 8e6
    assert objective._capacity_bps(made, "plain") == 3e6
    links["l"]["utilisation"] = 0
    assert objective._capacity_bps(made, "l") == 19e6


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


class Suggests:
    """Trial of Optuna that suggests values by name, and keeps the ranges it was asked for."""

    def __init__(self, **values: float) -> None:
        self.values, self.ranges = values, dict[str, tuple[float, float]]()

    def suggest_float(self, name: str, low: float, high: float, *, log: bool) -> float:
        """Return the value of a name."""
        assert log
        self.ranges[name] = (low, high)
        return self.values[name.partition(".")[2]]


def test_a_target_is_at_most_half_of_the_interval() -> None:
    """RFC 8289, 4.3: the target is the acceptable minimum over an interval."""
    found = search._suggested(Suggests(interval=0.04, target=0.03), "codel", HOME)
    assert found == {"name": "codel", "interval": "40ms", "target": "20ms"}
    found = search._suggested(Suggests(interval=0.04, target=0.015), "codel", HOME)
    assert found["target"] == "15ms"
    found = search._suggested(Suggests(target=0.02), "pie", HOME)
    assert found == {"name": "pie", "target": "20ms"}, "no interval, no limit"


def test_ranges_follow_the_longest_round_trip_time() -> None:
    """60 ms: targets from 1.2 to 36 ms, intervals from 18 to 240 ms; defaults are left out."""
    trial = Suggests(interval=0.1, target=0.005, quantum=1514.0)
    assert search._suggested(trial, "fq_codel", HOME) == {"name": "fq_codel"}
    assert trial.ranges == {
        "fq_codel.interval": pytest.approx((0.018, 0.24)),
        "fq_codel.target": pytest.approx((0.0012, 0.036)),
        "fq_codel.quantum": (300, 6000),
    }
    given = search._suggested(Suggests(interval=0.1, target=0.005, quantum=300.4), "fq_codel", HOME)
    assert given == {"name": "fq_codel", "quantum": "300B"}
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


def facts_of(cost: float) -> dict[str, float]:
    """Return facts whose `delay_s` is the cost."""
    return {"delay_s": cost, "loss": 0.0, "transfer_s": 0.0, "use": 1.0, "jain": 1.0}


def test_a_trial_that_was_stopped_comes_after_those_that_were_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Drop-tail costs 1 at the usual load and 100 at others; codel 2 at the usual load, and stops.

    Each costs 10 more with seed 1, 20 with seed 2. The mean of drop-tail over its six runs is
    (11 + 220 + 261) / 6 = 82: more than codel's 12, yet it was tried everywhere.
    """
    asked: list[tuple[str, int]] = []

    def run(line: line.Line, qdisc: Mapping[str, Any], at: Any, **_: Any) -> list[dict[str, float]]:
        name = str(qdisc["name"])
        asked.append((name, len(at)))
        usual = {"droptail": 1.0, "codel": 2.0}[name]
        return [facts_of((usual if load == 1.0 else 100.0) + 10 * seed) for load, seed in at]

    monkeypatch.setattr(search, "run", run)
    found = search.search(
        HOME, ["droptail", "codel"], lambda facts: facts["delay_s"], trials=2, seed=1
    )
    assert asked == [("droptail", 1), ("droptail", 2), ("droptail", 3), ("codel", 1)]
    assert [(one.qdisc["name"], one.stopped) for one in found] == [
        ("droptail", False), ("codel", True)
    ]  # fmt: skip
    assert [one.cost for one in found] == [82.0, 12.0]
    assert [len(one.facts) for one in found] == [6, 1]


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
    found = answer.answer(question)
    first = [one for one in used if len(one[1]) == 3]
    assert first == [
        ("a", (101, 102, 103), True), ("b", (101, 102, 103), True), ("c", (101, 102, 103), True),
        ("b", (104, 105, 106), True), ("droptail", (104, 105, 106), False),
        ("fq_codel", (104, 105, 106), True),
    ]  # fmt: skip
    assert found.qdisc == {"name": "b"}
    assert found.gains["drop-tail today"].mean == pytest.approx(4.0), "above 0: ours is better"
    assert found.gains["fq_codel"].mean == pytest.approx(3.0)
    assert found.table["b"]["delay_s"] == pytest.approx(1 + 0.1 * (0.75 + 1.5) / 2)
    assert [one["rtt_s"] for one in found.wins[::3]] == pytest.approx(
        [0.01, 0.02, math.sqrt(0.02 * 0.06), 0.06, 0.12]
    )
    assert [one["drop-tail today"] for one in found.wins] == pytest.approx([4.0] * 15)
    assert used[6][1:] == ((201, 202), True)
    assert found.objective == "custom"


def test_fq_codel_is_compared_unless_it_is_the_answer() -> None:
    """In a data centre it marks; drop-tail is never shaped."""
    others = answer._others(HOME, {"name": "codel"})
    assert others["fq_codel"] == ({"name": "fq_codel"}, True)
    assert others["drop-tail today"] == ({"name": "droptail", "limit": "1000p"}, False)
    assert [*answer._others(HOME, {"name": "fq_codel"})] == ["drop-tail today"]
    there = line.make("1gbit", "1gbit", "100us", "datacentre")
    marks = {"name": "fq_codel", "ecn": True}
    assert answer._others(there, {"name": "fq_codel"})["fq_codel"] == (marks, False)
    assert [*answer._others(there, marks)] == ["drop-tail today"]


def answer_of(asked: line.Line, **qdisc: Any) -> answer.Recommendation:
    """Return an answer for a line, with two trials."""
    tried = [
        search.Trial({"name": "pie"}, (facts_of(1.0), facts_of(2.0)), 1.5, False),
        search.Trial({"name": "codel"}, (facts_of(3.0),), 3.0, True),
    ]
    return answer.Recommendation(
        asked, {"name": "pie", **qdisc}, "calls", {"pie": facts_of(1.0)},
        {"fq_codel": Interval(2.0, 0.5)}, [{"rtt_s": 0.1}], tried,
    )  # fmt: skip


def test_everything_tried_is_a_row_per_run() -> None:
    """With the facts of the run, and the parameters as JSON."""
    frame = answer_of(HOME).frame()
    assert frame["trial"].to_list() == [0, 0, 1]
    assert frame["run"].to_list() == [0, 1, 0]
    assert frame["qdisc"].to_list() == ["pie", "pie", "codel"]
    assert frame["parameters"][2] == '{"name": "codel"}'
    assert frame["cost"].to_list() == [1.5, 1.5, 3.0]
    assert frame["stopped"].to_list() == [False, False, True]
    assert frame["delay_s"].to_list() == [1.0, 2.0, 3.0]


def test_an_answer_has_links_commands_and_a_summary() -> None:
    """Shaped to 95 %; the upload first."""
    found = answer_of(HOME, target="20ms")
    qdisc = {"name": "pie", "target": "20ms"}
    assert found.links() == {
        "down": {"rate": "19000kbit", "qdisc": qdisc}, "up": {"rate": "4750kbit", "qdisc": qdisc}
    }  # fmt: skip
    lines = found.commands("w0", "i0").splitlines()
    assert lines[0] == "# upload: egress of w0"
    down = lines.index("# download: ingress of w0, through i0")
    assert [line.split()[4] for line in lines[1:down] if line.startswith("tc")] == ["w0"] * 3
    assert lines[down + 1] == "ip link add i0 type ifb && ip link set i0 up"
    assert "htb rate 4750kbit" in "".join(lines[:down])
    assert "htb rate 19mbit" in "".join(lines[down:]).replace("19000kbit", "19mbit")
    told = found.summary()
    assert told["gains"] == {"fq_codel": {"mean": 2.0, "low": 1.5, "high": 2.5}}
    assert (told["tried"], told["formula"]) == (2, objective.FORMULAS["calls"])
    assert told["tc"] == found.commands().splitlines()
    assert told["table"] == {"pie": facts_of(1.0)}
    assert told["wins"] == [{"rtt_s": 0.1}]
    assert found.toml().startswith("[links.down]\nrate = ")
    assert found.toml().endswith("}")


def test_an_answer_that_linux_lacks_has_no_commands() -> None:
    """The key is there, and empty."""
    found = answer_of(HOME, name="wfq")
    assert found.summary()["tc"] is None


def test_an_unshaped_answer_is_one_qdisc() -> None:
    """At the rate of the upload; a note where the rate varies."""
    server = line.make("20mbit", "5mbit", "20ms", "server")
    text = answer_of(server).commands("w0")
    assert text.splitlines()[-1].startswith("tc qdisc replace dev w0 root handle 1: pie")
    assert "htb" not in text
    assert answer.VARYING not in text
    assert answer_of(server).links()["up"]["rate"] == "5000kbit"
    trace = line.Trace("lte.csv", {"repeat": "9s"}, 20e6, 9.0)
    varies = line.Line(20e6, 5e6, (0.1, 0.1), "home", False, "9p", (), {"down": trace})
    assert answer_of(varies).commands().startswith(answer.VARYING + "\n")
    assert answer_of(varies).links()["down"]["trace"] == {"file": "lte.csv", "repeat": "9s"}
    assert "trace" not in answer_of(varies).links()["up"]


@pytest.mark.parametrize("trials", [1, 10_000])
def test_the_size_of_a_search_is_checked(trials: int) -> None:
    """1 to 10,000 trials, seeds from 0 to 2^32 - 1."""
    given = ("20mbit", "5mbit", "20ms", "home")
    for seed in (0, 2**32 - 1):
        found = answer.prepare(*given, trials=trials, seed=seed, only="pie")
        assert (found.trials, found.seed, found.names) == (trials, seed, ["pie"])
    for wrong in ({"trials": 0}, {"trials": 10_001}, {"seed": -1}, {"seed": 2**32}):
        with pytest.raises(sj.InputError, match="is out of range, allowed: "):
            answer.prepare(*given, **wrong)  # type: ignore[arg-type]
    with pytest.raises(sj.InputError, match='--for: unknown objective "call", did you mean'):
        answer.prepare(*given, objective="call")
    mine = answer.prepare(*given, objective=objective.games, only="pie", buffer="5p", shaper=False)
    assert (mine.objective, mine.line.buffer, mine.line.shaped) == (objective.games, "5p", False)


def test_a_question_has_the_documented_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """60 trials with seed 1, by "balance", among all disciplines."""
    monkeypatch.setattr(answer, "answer", lambda question, *, jobs=None, **_: (question, jobs))
    question, jobs = cast(Any, answer.recommend("20mbit", "5mbit", "20ms", jobs=3))
    assert (question.trials, question.seed, question.objective, jobs) == (60, 1, "balance", 3)
    assert question.names == search.candidates(None)
    assert (question.line.traffic, question.line.buffer) == ("home", "1000p")
    question, _ = cast(Any, answer.recommend("9mbit", "5mbit", "20ms", trials=7, only="pie"))
    assert (question.trials, question.names) == (7, ["pie"])


def test_traffic_in_python_needs_trust(tmp_path: Path) -> None:
    """A class that the file of the traffic names."""
    file = tmp_path / "own.toml"
    flow = '[[flows]]\nname = "a"\npath = ["up"]\nsource = "s.py:Mine"\n'
    file.write_text(f'duration = "1s"\n[links.up]\nrate = "1mbit"\n{flow}')
    with pytest.raises(sj.InputError, match="trust"):
        answer.recommend("9mbit", "5mbit", "20ms", str(file))
    with pytest.raises(sj.InputError, match="trust"):
        answer.prepare("9mbit", "5mbit", "20ms", str(file))


def test_a_label_names_what_differs_from_the_defaults() -> None:
    """As in tables."""
    assert answer._label({"name": "codel", "target": "7ms"}).startswith("codel")
    assert answer._means([{"a": 1.0}]) == {"a": 1.0}
    assert answer._means([{"a": 1.0}, {"a": 2.0}]) == {"a": 1.5}


def test_the_name_of_an_objective_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its function is the cost; each place of the range is one round-trip time."""
    times: list[Any] = []

    def run(line: line.Line, qdisc: Any, at: Any, *, rtt_s: Any = None, **_: Any) -> Any:
        times.append(rtt_s)
        return [facts_of(0.01) for _ in at]

    tried = [search.Trial({"name": "fq_codel"}, (), 1.0, False)]
    monkeypatch.setattr(answer, "run", run)
    monkeypatch.setattr(answer, "search", lambda *_, **__: tried)
    found = answer.answer(answer.Question(HOME, [], "calls", 1, 1))
    assert found.objective == "calls"
    assert found.gains["drop-tail today"].mean == 0.0
    assert times[:3] == [None, None, None]
    assert set(times[3:]) == {(one["rtt_s"], one["rtt_s"]) for one in found.wins}


def test_a_run_is_shaped_as_the_line_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """In its scenario and in its measure; facts are columns of its row."""
    seen: list[Any] = []

    def campaign(runs: Any, *, jobs: Any = None) -> Any:
        seen.extend(runs)
        row = {"measured": '["use"]', "use": 0.5, "other": 1}
        done = SimpleNamespace(rows=[row for _ in runs])
        return SimpleNamespace(complete=lambda: done)

    monkeypatch.setattr(search, "campaign", campaign)
    at = [(1.0, 1), (2.0, 5)]
    assert search.run(HOME, {"name": "pie"}, at) == [{"use": 0.5}, {"use": 0.5}]
    search.run(HOME, {"name": "pie"}, at[:1], shaped=False)
    bare = line.make("20mbit", "5mbit", "20ms", "server")
    search.run(bare, {"name": "pie"}, at[:1])
    search.run(bare, {"name": "pie"}, at[:1], shaped=True, rtt_s=(0.01, 0.01))
    rates = [one.scenario["links"]["down"]["rate"] for one in seen]
    assert rates == ["19000000bit", "19000000bit", "20000000bit", "20000000bit", "19000000bit"]
    assert [one.measure.shaped for one in seen] == [True, True, False, False, True]
    assert [one.scenario["seed"] for one in seen[:2]] == [1, 5]
    search.run(HOME, {"name": "pie", "target": "9ms", "ecn": True}, at[:1])
    assert [seen[n].labels["qdisc"] for n in (0, -1)] == ["pie", "pie(target=9ms, ecn=True)"]
    assert seen[4].scenario["flows"][0]["rtt"] == "10000000ns"


@pytest.mark.parametrize(
    ("prune", "rungs", "stopped"),
    [((True,), 1, True), ((False, True), 2, True), ((False, False, True), 3, False)],
)
def test_a_trial_can_stop_before_each_rung_but_not_after_the_last(
    prune: tuple[bool, ...], rungs: int, stopped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Optuna is told the mean of all runs so far, with the number of rungs."""
    import optuna

    answers, reports, asked = [*prune], list[tuple[float, int]](), dict[str, Any]()

    class Trial(Suggests):
        def suggest_categorical(self, name: str, names: list[str]) -> str:
            assert (name, names) == ("qdisc", ["droptail", "pie"])
            return "droptail"

        def report(self, value: float, step: int) -> None:
            reports.append((value, step))

        def should_prune(self) -> bool:
            return answers.pop(0)

    class Study:
        def enqueue_trial(self, values: Any) -> None:
            asked.setdefault("queue", []).append(values["qdisc"])

        def optimize(self, function: Any, **options: Any) -> None:
            asked.update(options)
            with contextlib.suppress(optuna.TrialPruned):
                asked["value"] = function(Trial())

    def create_study(**options: Any) -> Study:
        asked.update(options)
        return Study()

    monkeypatch.setattr(optuna, "create_study", create_study)
    monkeypatch.setattr(
        search, "run", lambda _line, _qdisc, at, **_: [facts_of(load + seed) for load, seed in at]
    )
    (found,) = search.search(
        HOME, ["droptail", "pie"], lambda facts: facts["delay_s"], trials=1, seed=1
    )
    # 2; then 1.5 and 3; then 3, 2.5 and 4.
    means = [(2.0, 1), (6.5 / 3, 2), (16 / 6, 3)]
    assert [step for _, step in reports] == [step for _, step in means[:rungs]]
    assert [mean for mean, _ in reports] == pytest.approx([mean for mean, _ in means[:rungs]])
    assert (found.stopped, len(found.facts)) == (stopped, (1, 3, 6)[rungs - 1])
    assert found.cost == pytest.approx(means[rungs - 1][0])
    assert ("value" in asked) == (not stopped)
    assert asked["queue"] == ["droptail", "pie"]
    assert (asked["n_trials"], asked["show_progress_bar"]) == (2, False)
    assert isinstance(asked["sampler"], optuna.samplers.TPESampler)
