"""Answers of `recommend` from facts made by hand, and what a question may ask."""

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import sojourn as sj
from sojourn.recommendation import answer, line, objective, search
from sojourn.result.statistics import Interval
from support.searches import HOME, Suggests, facts_of


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


def answer_of(access: line.Line, **qdisc: Any) -> answer.Recommendation:
    """Return an answer for a line, with two trials."""
    tried = [
        search.Trial({"name": "pie"}, (facts_of(1.0), facts_of(2.0)), 1.5, False),
        search.Trial({"name": "codel"}, (facts_of(3.0),), 3.0, True),
    ]
    return answer.Recommendation(
        access, {"name": "pie", **qdisc}, "calls", {"pie": facts_of(1.0)},
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
    recommendation = answer_of(HOME, target="20ms")
    qdisc = {"name": "pie", "target": "20ms"}
    assert recommendation.links() == {
        "down": {"rate": "19000kbit", "qdisc": qdisc}, "up": {"rate": "4750kbit", "qdisc": qdisc}
    }  # fmt: skip
    lines = recommendation.commands("w0", "i0").splitlines()
    assert lines[0] == "# upload: egress of w0"
    down = lines.index("# download: ingress of w0, through i0")
    assert [line.split()[4] for line in lines[1:down] if line.startswith("tc")] == ["w0"] * 3
    assert lines[down + 1] == "ip link add i0 type ifb && ip link set i0 up"
    assert "htb rate 4750kbit" in "".join(lines[:down])
    assert "htb rate 19mbit" in "".join(lines[down:]).replace("19000kbit", "19mbit")
    summary = recommendation.summary()
    assert summary["gains"] == {"fq_codel": {"mean": 2.0, "low": 1.5, "high": 2.5}}
    assert (summary["tried"], summary["formula"]) == (2, objective.FORMULAS["calls"])
    assert summary["tc"] == recommendation.commands().splitlines()
    assert summary["table"] == {"pie": facts_of(1.0)}
    assert summary["wins"] == [{"rtt_s": 0.1}]
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
    words = ("20mbit", "5mbit", "20ms", "home")
    for seed in (0, 2**32 - 1):
        question = answer.prepare(*words, trials=trials, seed=seed, only="pie")
        assert (question.trials, question.seed, question.names) == (trials, seed, ["pie"])
    for wrong in ({"trials": 0}, {"trials": 10_001}, {"seed": -1}, {"seed": 2**32}):
        with pytest.raises(sj.InputError, match="is out of range, allowed: "):
            answer.prepare(*words, **wrong)  # type: ignore[arg-type]
    with pytest.raises(sj.InputError, match='--for: unknown objective "call", did you mean'):
        answer.prepare(*words, objective="call")
    mine = answer.prepare(*words, objective=objective.games, only="pie", buffer="5p", shaper=False)
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
    recommendation = answer.answer(answer.Question(HOME, [], "calls", 1, 1))
    assert recommendation.objective == "calls"
    assert recommendation.gains["drop-tail today"].mean == 0.0
    assert times[:3] == [None, None, None]
    assert set(times[3:]) == {(one["rtt_s"], one["rtt_s"]) for one in recommendation.wins}


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

    answers, reports, calls = [*prune], list[tuple[float, int]](), dict[str, Any]()

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
            calls.setdefault("queue", []).append(values["qdisc"])

        def optimize(self, function: Any, **options: Any) -> None:
            calls.update(options)
            with contextlib.suppress(optuna.TrialPruned):
                calls["value"] = function(Trial())

    def create_study(**options: Any) -> Study:
        calls.update(options)
        return Study()

    monkeypatch.setattr(optuna, "create_study", create_study)
    monkeypatch.setattr(
        search, "run", lambda _line, _qdisc, at, **_: [facts_of(load + seed) for load, seed in at]
    )
    (trial,) = search.search(
        HOME, ["droptail", "pie"], lambda facts: facts["delay_s"], trials=1, seed=1
    )
    # 2; then 1.5 and 3; then 3, 2.5 and 4.
    means = [(2.0, 1), (6.5 / 3, 2), (16 / 6, 3)]
    assert [step for _, step in reports] == [step for _, step in means[:rungs]]
    assert [mean for mean, _ in reports] == pytest.approx([mean for mean, _ in means[:rungs]])
    assert (trial.stopped, len(trial.facts)) == (stopped, (1, 3, 6)[rungs - 1])
    assert trial.cost == pytest.approx(means[rungs - 1][0])
    assert ("value" in calls) == (not stopped)
    assert calls["queue"] == ["droptail", "pie"]
    assert (calls["n_trials"], calls["show_progress_bar"]) == (2, False)
    assert isinstance(calls["sampler"], optuna.samplers.TPESampler)
