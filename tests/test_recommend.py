"""`sojourn recommend`: the search, the answer, and that it holds where nothing was tuned."""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any, cast

import pytest

import sojourn as sj
from conftest import Command
from sojourn._util.progress import Steps
from sojourn.recommendation import answer, line, objective, search, settings
from sojourn.result.statistics import interval
from sojourn.scenario.draft import canonical
from support.searches import HOME, facts_of

LINE = ("20mbit", "5mbit", "20ms..60ms", "home")


@pytest.fixture(scope="module")
def recommendation() -> sj.Recommendation:
    """Return the answer for a home line, from few disciplines."""
    return sj.recommend(*LINE, objective="calls", only="droptail,pie,fq_codel")


def test_the_answer_beats_the_default_on_other_seeds_and_loads(
    recommendation: sj.Recommendation,
) -> None:
    """Seeds and loads that neither the search nor the final test has."""
    home = line.make(*LINE)
    at = [(load, seed) for load in (0.6, 1.25) for seed in (301, 302, 303)]
    used = [*line.LOADS.values(), *line.HELD_OUT.values()]
    assert not {load for load, _ in at} & set(used)
    ours = search.run(home, recommendation.qdisc, at)
    theirs = search.run(home, {"name": "droptail", "limit": "1000p"}, at, shaped=False)
    cost = objective.OBJECTIVES["calls"]
    gain = interval([cost(b) - cost(a) for a, b in zip(ours, theirs, strict=True)])
    assert gain.low > 0
    assert fmean(f["delay_s"] for f in ours) < fmean(f["delay_s"] for f in theirs)


ANSWERS = json.loads(
    (Path(__file__).parent.parent / "reports/recommendations/answers.json").read_text()
)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda one: one["heading"])
def test_the_answers_of_the_docs_beat_drop_tail(
    answer: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On seeds and loads that neither the search nor its final test has."""
    monkeypatch.chdir(Path(__file__).parent.parent)
    own = ("objective", "link_layer")
    options = {key: text for key, text in answer["asked"].items() if key not in own}
    question = line.make(**options)
    cost = objective.OBJECTIVES[answer["objective"]]
    at = [(load, seed) for load in (0.6, 1.25) for seed in (301, 302, 303)]
    ours = search.run(question, answer["qdisc"], at)
    present = {"name": "droptail", "limit": question.buffer}
    theirs = search.run(question, present, at, shaped=False)
    assert interval([cost(b) - cost(a) for a, b in zip(ours, theirs, strict=True)]).low > 0


def test_the_answer_says_how_sure_it_is_and_when_it_is_wrong(
    recommendation: sj.Recommendation,
) -> None:
    """Gains with intervals; a grid of round-trip times beyond the range, and loads."""
    assert recommendation.gains["drop-tail today"].low > 0
    assert {one["load"] for one in recommendation.wins} == {"light", "heavy"}
    times = [one["rtt_s"] for one in recommendation.wins]
    assert (min(times), max(times)) == (0.01, 0.12)
    tried = settings.candidates("droptail,pie,fq_codel")
    assert recommendation.frame()["trial"].n_unique() == len(search.settings(HOME, tried))
    whole = [one.cost for one in recommendation.tried if not one.stopped]
    assert whole == sorted(whole)


def test_the_same_seed_gives_the_same_answer(recommendation: sj.Recommendation) -> None:
    """The search is reproducible."""
    again = sj.recommend(*LINE, objective="calls", only="droptail,pie,fq_codel")
    assert again.summary() == recommendation.summary()


def test_the_commands_have_both_directions(recommendation: sj.Recommendation) -> None:
    """With a shaper at 95 %; `sojourn tc` reads them back."""
    text = recommendation.commands("wan0")
    assert "htb rate 4750kbit" in text
    assert "htb rate 19000kbit" in text
    assert "mirred egress redirect dev sj-wan0" in text
    shaped = [one for one in text.splitlines() if re.match("tc (qdisc|class) add .*(root|1:)", one)]
    back = {one["dev"]: one for one in sj.tc.imported("\n".join(shaped))}
    assert set(back) == {"wan0", "sj-wan0"}
    assert back["wan0"]["qdisc"]["name"] == recommendation.qdisc["name"]
    assert recommendation.links()["up"]["qdisc"] == recommendation.qdisc
    assert 'rate = "4750000bit"' in recommendation.toml()
    undone = recommendation.commands("wan0", undo=True)
    assert undone in text.replace("undo() {\n", "")


def test_the_usual_disciplines_are_always_in_the_table(recommendation: sj.Recommendation) -> None:
    """Also those that were not searched, and those that lose."""
    first, *others = recommendation.table
    assert first == recommendation.qdisc["name"] == "fq_codel"
    assert others == ["drop-tail today", "cake", "dualpi2"]
    assert recommendation.gains["dualpi2"].low > 0
    assert "defaults" in recommendation.deviation


def test_a_function_can_be_the_objective() -> None:
    """Here only the use of the line counts."""
    best = sj.recommend(*LINE, objective=lambda f: -f["use"], only="red,choke")
    assert best.objective == "custom"
    assert best.qdisc["name"] in ("red", "choke")


def test_objectives_prefer_less_delay_less_loss_and_more_use() -> None:
    """Each formula of the docs; the table of formulas is complete."""
    facts = facts_of(0.02) | {"loss": 0.02, "use": 0.9, "jain": 0.9, "hosts": 0.9}
    facts |= {"transfer_s": 0.5, "tail_s": 0.5}
    assert set(objective.FORMULAS) == set(objective.OBJECTIVES)
    page = (Path(__file__).parent.parent / "docs/how-to/evaluate.md").read_text()
    for name, cost in objective.OBJECTIVES.items():
        pages = "tail_s" if name == "datacentre" else "transfer_s"
        for better in ({"use": 0.95}, {"self_s": 0.005}, {"response_s": 0.045},
                       {"worst_s": 0.005}, {"hosts": 1.0}, {pages: 0.4},
                       {"loss": 0.015}):  # fmt: skip
            assert cost({**facts, **better}) < cost(facts), (name, better)
        assert f"| `{name}` | {objective.FORMULAS[name]} |" in page
    for name in ("calls", "games"):
        cost = objective.OBJECTIVES[name]
        assert cost({**facts, "delay_s": 0.01}) < cost(facts)
    fairness = objective.OBJECTIVES["fairness"]
    assert fairness({**facts, "jain": 1.0}) < fairness(facts)


def test_linux_has_no_disciplines_without_a_qdisc() -> None:
    """Nor those that need a tree of classes."""
    names = settings.candidates("linux")
    assert {"codel", "fq_codel", "pie", "droptail"} <= set(names)
    assert not {"wfq", "hred", "drr", "prio"} & set(names)
    assert len(settings.candidates(None)) > len(names)


def test_traffic_can_be_a_scenario(tmp_path: Path) -> None:
    """With links called up and down; numbers of endless flows follow the load."""
    file = tmp_path / "own.toml"
    file.write_text(
        'duration = "10s"\n[links.up]\nrate = "1mbit"\n'
        '[[flows]]\nname = "a"\ncount = 4\npath = ["up"]\n'
    )
    own = line.make("2mbit", "1mbit", "20ms", str(file))
    tree = line.scenario(own, {"name": "codel"}, load=0.5, seed=3, shaped=True)
    assert tree["flows"][0]["count"] == 2
    assert tree["links"]["up"]["rate"] == "950000bit"
    assert sj.simulate(tree).links["up"].departed_packets > 0


@pytest.mark.parametrize(
    ("text", "mean_bps", "period_s"),
    [
        ("1\n2\n4\n10\n", 4 * 12_000 / 0.01, 0.01),
        ("t_s,rate_bps\n0,4e6\n0.5,1e6\n2,1e6\n", (0.5 * 4e6 + 3e6) / 3.5, 3.5),
        ("t_s,rate_bps\n3,4e6\n", 4e6, 4.0),
    ],
)
def test_a_rate_can_be_a_trace(text: str, mean_bps: float, period_s: float, tmp_path: Path) -> None:
    """It repeats; its rate is the mean; nothing is shaped; use is a share of what it carries."""
    file = tmp_path / "lte.trace"
    file.write_text(text)
    access = line.make(str(file), "5mbit", "40ms", "home")
    assert access.down_bps == pytest.approx(mean_bps)
    assert access.traces["down"].period_s == period_s
    assert not access.shaped
    facts = search.run(access, {"name": "codel"}, [(1.0, 1)])[0]
    assert 0.3 < facts["use"] <= 1


def test_a_buffer_can_be_a_time() -> None:
    """Each direction has the bytes of its own rate, at least a packet."""
    access = line.make("200mbit", "20mbit", "10ms", "home", buffer="100ms")
    present = {"name": "droptail", "limit": access.buffer}
    tree = line.scenario(access, present, load=1.0, seed=1, shaped=False)
    limits = {way: link["qdisc"]["limit"] for way, link in tree["links"].items()}
    assert limits == {"down": "2500000B", "up": "250000B"}


def test_an_answer_for_a_trace_has_no_shaper(tmp_path: Path) -> None:
    """The link of the answer names the file and is the one tried; a shaper is refused."""
    file = tmp_path / "lte.csv"
    file.write_text("t_s,rate_bps\n0,8e6\n1,2e6\n")
    best = sj.recommend(str(file), "5mbit", "40ms", only="red")
    assert best.links()["down"]["trace"] == {"file": str(file), "repeat": "2000000000ns"}
    tried = line.scenario(best.line, best.qdisc, load=1.0, seed=1, shaped=False)
    whole = {**tried, "links": tomllib.loads(best.toml())["links"]}
    whole, tried = canonical(whole), canonical(tried)
    assert whole["links"]["down"]["trace"] == tried["links"]["down"]["trace"]
    assert "htb" not in best.commands()
    with pytest.raises(sj.InputError, match="--shaper: requires a constant rate"):
        sj.recommend(str(file), "5mbit", "40ms", shaper=True)


@pytest.mark.parametrize("traffic", line.TRAFFICS)
def test_every_traffic_runs_at_every_load(traffic: str) -> None:
    """At rates from 1 Mbit/s up; the facts are numbers."""
    access = line.make("10mbit", "2mbit", "1ms..10ms", traffic)
    for facts in search.run(access, {"name": "codel"}, [(0.5, 1), (2.0, 1)]):
        assert 0 < facts["use"] <= 1
        assert 0 <= facts["loss"] < 1
        assert facts["delay_s"] >= 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--down", "50", "--up", "10mbit"), '--down: "50" has no unit'),
        (("--down", "50mbit", "--up", "0bit"), "--up: "),
        (("--down", "lte.trace"), "or the file of a trace"),
        (("--up", __file__), "--up: "),
        (("--traffic", "hom"), '--traffic: unknown traffic "hom", did you mean "home"?'),
        (("--for", "call"), '--for: unknown objective "call", did you mean "calls"?'),
        (("--only", ","), "--only: no discipline is left"),
        (("--only", "codle"), 'did you mean "codel"?'),
        (("--rtt", "120ms..20ms"), "--rtt: "),
        (("--rtt", "fast"), "--rtt: "),
        (("--down", "1bit"), '--down: "1bit" is out of range, allowed: 64kbit to 1000gbit'),
        (("--down", "5tbit"), '--down: "5tbit" is out of range'),
        (("--seed", "-1"), "--seed: -1 is out of range, allowed: 0 to 4294967295"),
        (
            ("--link-layer", "dosis"),
            '--link-layer: unknown link layer "dosis", did you mean "docsis"',
        ),
        (("--traffic", "none.toml"), "none.toml"),
        (("--buffer", "big"), "or a time like 100ms"),
        (("--buffer", "5 parsecs"), "--buffer: "),
    ],
)
def test_a_wrong_question_gets_one_line(
    options: tuple[str, ...], message: str, sojourn: Command
) -> None:
    """With the option, the value and what is allowed."""
    values = {"--down": "50mbit", "--up": "10mbit", "--rtt": "20ms"}
    values |= dict(zip(options[::2], options[1::2], strict=True))
    code, out, err = sojourn("recommend", *(word for pair in values.items() for word in pair))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_the_command_prints_the_answer(sojourn: Command) -> None:
    """Commands, TOML, table, how sure, when it would be wrong; or JSON; or how to undo it."""
    options = ("--down", "8mbit", "--up", "1mbit", "--rtt", "30ms", "--only", "red",
               "--link-layer", "adsl-pppoe")  # fmt: skip
    code, out, _ = sojourn("recommend", *options)
    assert code == 0
    for text in ("tc qdisc add dev eth0", "linklayer atm", "[links.up]", "how sure", "loaded: mean",
                 "when it would be wrong", "red with its defaults"):  # fmt: skip
        assert text in out
    summary = json.loads(sojourn("recommend", *options, "--json")[1])
    assert summary["qdisc"]["name"] == "red"
    assert summary["tc"][0].startswith(("#", "("))
    code, out, err = sojourn("recommend", *options, "--undo", "--dev", "ppp0")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "ip link del sj-ppp0 2>/dev/null || true"


def runs_by_name(
    monkeypatch: pytest.MonkeyPatch, costs: Mapping[str, float], **how: Any
) -> dict[str, int]:
    """Search with these costs of disciplines, in this order; return how many runs each had."""

    def run(line: line.Line, qdisc: Mapping[str, Any], at: Any, **_: Any) -> list[dict[str, float]]:
        return [facts_of(costs[qdisc["name"]]) for _ in at]

    monkeypatch.setattr(search, "run", run)
    trials = search.search(HOME, [*costs], lambda facts: facts["delay_s"], seed=1, **how)
    return {one.qdisc["name"]: len(one.facts) for one in trials}


def test_settings_that_are_far_behind_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """0.5 behind after one run, 0.2 after three, 0.1 after six; the usual ones never stop."""
    costs = {"droptail": 1.0, "wfq": 1.6, "red": 1.3, "blue": 1.15, "ared": 1.05}
    expected = {"droptail": 9, "wfq": 1, "red": 3, "blue": 6, "ared": 9}
    assert runs_by_name(monkeypatch, costs) == expected
    usual = {"droptail": 1.0, "dualpi2": 9.0}
    assert runs_by_name(monkeypatch, usual)["droptail"] == 9
    trials = search.search(HOME, [*usual], lambda facts: facts["delay_s"], seed=1)
    runs = {json.dumps(one.qdisc): len(one.facts) for one in trials}
    assert runs['{"name": "dualpi2"}'] == 9
    assert runs['{"name": "dualpi2", "target": "5ms"}'] == 1


def steps_of(module: Any, terminal: bool, monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """Return what bars of a module will show: number, noun, whether at all, steps that were done.

    `terminal` is True if a bar can be seen.
    """
    bars: list[list[Any]] = []

    class Counted(Steps):
        def __init__(self, count: int, noun: str, shown: bool) -> None:
            super().__init__(count, noun, False)
            bars.append([count, noun, shown, 0])

        def step(self) -> None:
            bars[-1][3] += 1

    monkeypatch.setattr(module, "Steps", Counted)
    monkeypatch.setattr(module, "visible", lambda: terminal)
    return bars


@pytest.mark.parametrize(
    ("options", "terminal", "shown"),
    [({}, True, False), ({"progress": True}, True, True), ({"progress": True}, False, False)],
)
def test_the_bar_is_shown_if_it_is_asked_for_and_can_be(
    options: dict[str, bool], terminal: bool, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step for each setting of a rung, then for each test of the answer and of the others."""
    bars = steps_of(answer, terminal, monkeypatch)
    for module in (answer, search):
        monkeypatch.setattr(
            module, "run", lambda _line, _qdisc, at, **_: [facts_of(1.0) for _ in at]
        )
    answer.answer(answer.Question(HOME, ["red", "blue"], "calls", 1), **options)
    # 5 labels once, and at each of 5 round-trip times and 2 loads; no deviation is tested.
    assert bars == [[8, "settings", shown, 8], [63, "final tests", shown, 55]]


def test_a_question_and_its_bar_have_the_defaults_of_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seed 1, no link layer, without a bar."""
    question = answer.prepare(*LINE)
    assert (question.seed, question.layer) == (1, None)
    monkeypatch.setattr(answer, "answer", lambda _, **how: how)
    assert cast(Any, answer.recommend(*LINE)) == {"jobs": None, "progress": False}
    assert cast(Any, answer.recommend(*LINE, progress=True))["progress"] is True
