"""Answers of `recommend` from facts made by hand, and what a question may ask."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import sojourn as sj
from sojourn.recommendation import answer, confirmation, line, objective, search, settings
from sojourn.result.statistics import Interval
from support.searches import HOME, facts_of


def test_the_usual_disciplines_are_compared_unless_one_is_the_answer() -> None:
    """In a data centre they mark; drop-tail is never shaped."""
    others = answer._others(HOME, {"name": "codel"})
    assert [*others] == ["drop-tail today", "cake", "fq_codel", "dualpi2"]
    assert others["fq_codel"] == ({"name": "fq_codel"}, True)
    assert others["drop-tail today"] == ({"name": "droptail", "limit": "1000p"}, False)
    assert "fq_codel" not in answer._others(HOME, {"name": "fq_codel"})
    assert "fq_codel" in answer._others(HOME, {"name": "fq_codel", "target": "20ms"})
    there = line.make("1gbit", "1gbit", "100us", "datacentre")
    marks = {"name": "fq_codel", "ecn": True}
    assert answer._others(there, {"name": "fq_codel"})["fq_codel"] == (marks, False)
    assert "fq_codel" not in answer._others(there, marks)


def answer_of(access: line.Line, **qdisc: Any) -> answer.Recommendation:
    """Return an answer for a line, with two trials."""
    tried = [
        search.Trial({"name": "pie"}, (facts_of(1.0), facts_of(2.0)), (1.0, 2.0), False),
        search.Trial({"name": "codel"}, (facts_of(3.0),), (3.0,), True),
    ]
    return answer.Recommendation(
        access, {"name": "pie", **qdisc}, "calls", {"pie": facts_of(1.0)},
        {"fq_codel": Interval(2.0, 0.5)}, [{"name": "cake"}], "why", [{"rtt_s": 0.1}], tried,
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
    recommendation = answer_of(HOME, target="20ms")
    qdisc = {"name": "pie", "target": "20ms"}
    assert recommendation.links() == {
        "down": {"rate": "19000000bit", "qdisc": qdisc},
        "up": {"rate": "4750000bit", "qdisc": qdisc},
    }
    assert recommendation.scenario()["links"] == recommendation.links()
    lines = recommendation.commands("w0", "i0").splitlines()
    up = lines.index("# upload: egress of w0")
    down = lines.index("# download: ingress of w0, through i0")
    assert down < up
    assert lines[down + 2] == "ip link set dev i0 up"
    assert [one.split()[4] for one in lines[up:] if one.startswith("tc qdisc add")] == ["w0"] * 2
    assert "htb rate 4750kbit" in "".join(lines[up:])
    assert "htb rate 19000kbit" in "".join(lines[down:up])
    assert lines[-2].endswith("redirect dev i0")
    summary = recommendation.summary()
    assert summary["gains"] == {"fq_codel": {"mean": 2.0, "low": 1.5, "high": 2.5}}
    assert (summary["tried"], summary["formula"]) == (2, objective.FORMULAS["calls"])
    assert summary["tc"] == recommendation.commands().splitlines()
    assert summary["table"] == {"pie": facts_of(1.0)}
    assert summary["wins"] == [{"rtt_s": 0.1}]
    assert (summary["ties"], summary["deviation"]) == ([{"name": "cake"}], "why")
    assert recommendation.toml().startswith("[links.down]\nrate = ")
    assert recommendation.toml().endswith("}")


def test_an_answer_that_linux_lacks_has_no_commands() -> None:
    """The key is there, and empty."""
    recommendation = answer_of(HOME, name="wfq")
    assert recommendation.summary()["tc"] is None


def test_an_unshaped_answer_is_one_qdisc() -> None:
    """At the rate of the upload; a note where the rate varies."""
    server = line.make("20mbit", "5mbit", "20ms", "server")
    text = answer_of(server).commands("w0")
    assert text.splitlines()[-2] == "tc qdisc add dev w0 root handle 1: pie"
    assert "htb" not in text
    assert answer.VARYING not in text
    assert answer_of(server).links()["up"]["rate"] == "5000000bit"
    trace = line.Trace("lte.csv", {"repeat": "9s"}, 20e6, 9.0)
    varies = line.Line(20e6, 5e6, (0.1, 0.1), "home", False, "9p", (), {"down": trace})
    assert answer_of(varies).commands().startswith(answer.VARYING + "\n")
    assert answer_of(varies).links()["down"]["trace"] == {"file": "lte.csv", "repeat": "9s"}
    assert "trace" not in answer_of(varies).links()["up"]


def test_a_question_is_checked() -> None:
    """Seeds from 0 to 2^32 - 1, names of objectives and link layers."""
    words = ("20mbit", "5mbit", "20ms", "home")
    for seed in (0, 2**32 - 1):
        question = answer.prepare(*words, seed=seed, only="pie", link_layer="DOCSIS")
        assert (question.seed, question.names) == (seed, ["pie"])
        assert question.layer is not None
        assert question.layer.cake == "docsis"
    for wrong in (-1, 2**32):
        with pytest.raises(sj.InputError, match="is out of range, allowed: "):
            answer.prepare(*words, seed=wrong)
    with pytest.raises(sj.InputError, match="--link-layer: has no effect without a shaper"):
        answer.prepare("20mbit", "5mbit", "20ms", "server", link_layer="ethernet")
    with pytest.raises(sj.InputError, match='--for: unknown objective "call", did you mean'):
        answer.prepare(*words, objective="call")
    games = objective.OBJECTIVES["games"]
    mine = answer.prepare(*words, objective=games, only="pie", buffer="5p", shaper=False)
    assert (mine.objective, mine.line.buffer, mine.line.shaped) == (games, "5p", False)


def test_a_question_has_the_documented_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 1, by the objective of the traffic, among all disciplines."""
    monkeypatch.setattr(answer, "answer", lambda question, *, jobs=None, **_: (question, jobs))
    question, jobs = cast(Any, answer.recommend("20mbit", "5mbit", "20ms", jobs=3))
    assert (question.seed, question.objective, jobs) == (1, "home", 3)
    assert question.names == settings.candidates(None)
    assert (question.line.traffic, question.line.buffer) == ("home", "1000p")


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
    assert confirmation.label({"name": "codel", "target": "7ms"}).startswith("codel")
    assert confirmation.means([{"a": 1.0}]) == {"a": 1.0}
    assert confirmation.means([{"a": 1.0}, {"a": 2.0}]) == {"a": 1.5}


def answered(
    costs: dict[str, float], tried: list[search.Trial], monkeypatch: pytest.MonkeyPatch
) -> tuple[answer.Recommendation, list[tuple[str, tuple[int, ...]]]]:
    """Return the answer for trials, and the labels and seeds of its tests.

    The cost of a run is the cost of its label.
    """
    used: list[tuple[str, tuple[int, ...]]] = []

    def run(line: line.Line, qdisc: Any, at: Any, **_: Any) -> list[dict[str, float]]:
        label = confirmation.label(qdisc)
        used.append((label, tuple(sorted({seed for _, seed in at}))))
        return [facts_of(costs[label] + 0.001 * seed) for _, seed in at]

    monkeypatch.setattr(answer, "run", run)
    monkeypatch.setattr(answer, "search", lambda *_, **__: tried)
    question = answer.Question(HOME, ["pie"], lambda facts: facts["delay_s"], 1)
    return answer.answer(question), used


USUAL = {"droptail": 9.0, "droptail(limit=1000p)": 9.0, "cake": 3.0, "fq_codel": 1.0,
         "dualpi2": 4.0}  # fmt: skip


def trial(cost: float, **qdisc: str) -> search.Trial:
    """Return a trial that reached the last rung."""
    return search.Trial(dict(qdisc), (), (cost,), False)


def test_a_deviation_must_gain_on_other_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long interval gains 0.5 in the search; in the second test 0.5, or 0.02."""
    tried = [trial(0.5, name="fq_codel", interval="300ms"), trial(1.0, name="fq_codel")]
    best, used = answered(USUAL | {"fq_codel(interval=300ms)": 0.5}, tried, monkeypatch)
    assert best.qdisc == {"name": "fq_codel", "interval": "300ms"}
    assert best.deviation.startswith("fq_codel(interval=300ms) gains 0.50")
    assert "delay of calls from" in best.deviation
    test, final = (23, 24, 25, 26, 27), (28, 29, 30, 31, 32)
    assert [used[0], used[2]] == [("fq_codel", test), ("fq_codel(interval=300ms)", test)]
    assert [seeds for _, seeds in used[4:9]] == [final] * 5
    assert best.gains["fq_codel"].mean == pytest.approx(0.5)
    assert best.objective == "custom"
    best, _ = answered(USUAL | {"fq_codel(interval=300ms)": 0.98}, tried, monkeypatch)
    assert best.qdisc == {"name": "fq_codel"}
    assert "fq_codel(interval=300ms) gained 0.02" in best.deviation
    assert len(best.wins) == 10
    assert {one["load"] for one in best.wins} == {"light", "heavy"}


def test_another_discipline_must_gain_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """FQ-CoDel is 0.2 better in the search, then 0.2 or 0.02; a deviation falls back to it."""
    usual = USUAL | {"cake": 1.0}
    tried = [trial(0.8, name="fq_codel"), trial(1.0, name="cake")]
    best, _ = answered(usual | {"fq_codel": 0.8}, tried, monkeypatch)
    assert best.qdisc == {"name": "fq_codel"}
    best, _ = answered(usual | {"fq_codel": 0.98}, tried, monkeypatch)
    assert best.qdisc == {"name": "cake"}
    tried = [trial(0.6, name="fq_codel", interval="300ms"), *tried]
    costs = usual | {"fq_codel": 0.8, "fq_codel(interval=300ms)": 0.99}
    best, used = answered(costs, tried, monkeypatch)
    assert best.qdisc == {"name": "fq_codel"}
    labels = ["cake", "fq_codel(interval=300ms)", "fq_codel"]
    assert [label for label, _ in used[:6:2]] == labels
    best, used = answered(usual | {"red": 1.0}, [trial(1.0, name="red")], monkeypatch)
    assert best.qdisc == {"name": "red"}, "the only one, without a second test"
    assert used[0][1] == (28, 29, 30, 31, 32)


def test_the_setting_with_the_fewest_words_wins_among_equals() -> None:
    """Within 0.05 of the best one: defaults before deviations, then fq_codel, cake, the cost."""
    best = trial(1.0, name="fq_codel", target="20ms")
    tried = [best, trial(1.01, name="codel"), trial(1.02, name="cake"),
             trial(1.06, name="fq_codel")]  # fmt: skip
    assert search.simplest(HOME, tried).qdisc == {"name": "cake"}
    assert [one["name"] for one in search.ties(HOME, tried)] == ["cake", "codel", "fq_codel"]
    assert search.simplest(HOME, [best, tried[3]]) is best
    stopped = search.Trial({"name": "cake"}, (), (0.9,), True)
    assert search.simplest(HOME, [best, stopped]) is best
    assert confirmation._usual(HOME, tried) == [{"name": "cake"}], "within 0.05 of codel"
    far = [trial(1.0, name="fq_codel"), trial(2.0, name="cake")]
    assert confirmation._usual(HOME, far) == [{"name": "fq_codel"}, {"name": "cake"}]


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
    assert {one.measure.down_bps for one in seen} == {20e6}, "the line's, above the shaper's"
    assert [one.measure.rtt_s for one in seen] == pytest.approx([0.04, 0.04, 0.04, 0.02, 0.01])
    assert [one.scenario["seed"] for one in seen[:2]] == [1, 5]
    search.run(HOME, {"name": "pie", "target": "9ms", "ecn": True}, at[:1])
    assert [seen[n].labels["qdisc"] for n in (0, -1)] == ["pie", "pie(target=9ms, ecn=True)"]
    assert seen[4].scenario["flows"][0]["rtt"] == "10000000ns"


def noisy(cost: float, spread: float, **qdisc: str) -> search.Trial:
    """Return a trial of three seeds at three loads: costs of 0, 5 and 9 more, apart by `spread`."""
    costs = [cost + load + spread * seed for seed in (-1, 0, 1) for load in (0.0, 5.0, 9.0)]
    return search.Trial(dict(qdisc), (), tuple(costs), False)


def test_costs_that_differ_by_noise_are_equal() -> None:
    """A difference of 0.3 counts if it is the same with each seed, and not if it varies by 0.4.

    Loads do not count as noise: their costs differ by 9.
    """
    best = noisy(1.0, 0.0, name="cake", rtt="300ms")
    assert noisy(1.3, 0.0, name="cake").is_behind(best)
    assert noisy(1.3, 0.1, name="cake").is_behind(best)
    assert not noisy(1.3, 0.4, name="cake").is_behind(best)
    assert not noisy(1.04, 0.0, name="cake").is_behind(best)
    # Half an interval: t(6) times the standard error of 9 values with 6 degrees of freedom.
    half = 2.447 * (6 * 0.4**2 / 6) ** 0.5 / 3
    assert noisy(1.0 + half + 0.051, 0.4, name="cake").is_behind(best)
    assert not noisy(1.0 + half + 0.049, 0.4, name="cake").is_behind(best)
    tried = [best, noisy(1.3, 0.4, name="cake")]
    assert search.simplest(HOME, tried).qdisc == {"name": "cake"}
    assert search.ties(HOME, tried) == [{"name": "cake"}, {"name": "cake", "rtt": "300ms"}]


def test_a_tie_that_fails_the_second_test_is_not_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The simplest of three ties gains too little there; the next one gains enough."""
    tried = [trial(0.30, name="fq_codel", interval="300ms"), trial(0.32, name="fq_codel"),
             trial(0.5, name="cake")]  # fmt: skip
    costs = USUAL | {"cake": 1.0, "fq_codel": 0.97, "fq_codel(interval=300ms)": 0.8}
    best, used = answered(costs, tried, monkeypatch)
    assert best.qdisc == {"name": "fq_codel", "interval": "300ms"}
    assert "gains 0.20" in best.deviation
    labels = [label for label, _ in used[:6:2]]
    assert labels == ["cake", "fq_codel", "fq_codel(interval=300ms)"]
