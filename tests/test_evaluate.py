"""`sojourn evaluate`: the suite of RFC 7928, its store, its scorecard."""

import dataclasses
import json
import re
import shlex
import time
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import polars as pl
import pytest

import sojourn as sj
from conftest import Command
from sojourn.evaluation import cases, figures, lines, measure, run, scorecard, setup, traffic
from sojourn.result.result import Result
from sojourn.scenario.draft import Draft, canonical
from sojourn.scenario.variants import split

PLAN = setup.Plan(10e6, quick=True)


def test_levels_of_congestion_are_those_of_the_reference() -> None:
    """S = 166.7 packets at 10 Mbit/s, ten times as many at 100 Mbit/s (RFC 7928, 8.2.2-8.2.4)."""
    assert [PLAN.flows(level) for level in setup.LEVELS] == [6, 14, 19]
    assert [setup.Plan(100e6, quick=True).flows(level) for level in setup.LEVELS] == [60, 135, 190]


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.id)
def test_every_case_has_valid_scenarios_whose_columns_answer(case: cases.Case) -> None:
    """At both plans; each question has a column of the measure, or is derived from it."""
    for plan in (PLAN, setup.Plan(100e6, quick=False)):
        for variant, tree in case.build(plan).items():
            assert canonical(tree)["links"][setup.LINK], variant
    tree = next(iter(case.build(setup.Plan(2e6, quick=True)).values()))
    tree = Draft.read(tree).with_qdisc({"name": "codel", "ecn": case.ecn}, setup.LINK).tree
    values = measure.Suite(run._changes_of(tree), case.varying)(sj.simulate(tree))
    columns = {"rtt_bias": "rtt_ratio"}
    for question in case.questions:
        assert columns.get(question.column, question.column) in values
    if case.varying:
        assert len(values["series_time_s"]) == len(values["series_delay_s"]) > 10
        assert values["recovery_s"] is not None


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> tuple[sj.Evaluation, Path]:
    """Return a small evaluation of two disciplines, and its folder."""
    out = tmp_path_factory.mktemp("evaluation") / "out"
    only = ["A1", "A4", "B1", "E5", "H2"]
    evaluation = sj.evaluate(["codel", "fq_codel"], "2mbit", quick=True, only=only, out=out)
    return evaluation, out


def test_drop_tail_fills_the_buffer_and_codel_does_not(
    evaluated: tuple[sj.Evaluation, Path],
) -> None:
    """Differences are paired by seed and judged by their intervals."""
    evaluation, _ = evaluated
    delay = next(line for line in evaluation.lines if line.case.id == "A1")
    assert list(delay.answers) == ["droptail", "codel", "fq_codel"]
    assert delay.answers["codel"].stands == "better"
    assert delay.answers["droptail"].stands == ""
    gap = delay.answers["codel"].mean - delay.answers["droptail"].mean
    assert delay.answers["codel"].difference == pytest.approx(gap)
    frame = evaluation.frame().filter(case="A1", asked="mean queueing delay")
    assert frame["mean"].to_list() == [one.mean for one in delay.answers.values()]
    share = next(line for line in evaluation.lines if line.case.id == "B1")
    assert share.answers["fq_codel"].mean < share.answers["droptail"].mean


def test_the_video_of_the_traffic_mix_adapts() -> None:
    """Alone its rate is the highest, with five TCP flows less; at a low rate it never stops."""
    tree = traffic.mix(PLAN)[""]
    assert [flow["source"]["name"] for flow in tree["flows"]].count("video") == 1
    video = next(flow for flow in tree["flows"] if flow["name"] == "video")
    tree = Draft.read(tree).with_qdisc({"name": "droptail"}, setup.LINK).tree
    shared = measure.Suite()(sj.simulate(tree))
    alone = measure.Suite()(sj.simulate({**tree, "flows": [video]}))
    assert alone["video_rate_bps"] == pytest.approx(4e6)
    assert alone["video_stalled_s"] == 0
    assert 0.5e6 <= shared["video_rate_bps"] < 2e6


def test_all_disciplines_have_the_same_buffer_and_seeds(
    evaluated: tuple[sj.Evaluation, Path],
) -> None:
    """Also those whose own default differs."""
    plan = run.prepare("fq_codel,pie", "10mbit", quick=True, only=["E1"])
    limits = {r.scenario["links"][setup.LINK]["qdisc"]["limit"] for r in plan.runs}  # type: ignore[index]
    assert limits == {"125000B"}
    seeds = evaluated[0].rows.group_by("case", "variant", "qdisc").agg(pl.col("seed").sort())
    assert set(map(tuple, seeds["seed"].to_list())) == {(1, 2, 3, 4)}


def test_the_ecn_case_sets_ecn_in_flows_and_discipline() -> None:
    """Disciplines that cannot mark do not take part."""
    plan = run.prepare("codel,sfq", "2mbit", quick=True, only=["H2"])
    tried = {r.labels["qdisc"]: r.scenario["links"][setup.LINK]["qdisc"] for r in plan.runs}  # type: ignore[index]
    assert list(tried) == ["droptail", "codel"]
    assert tried["codel"]["ecn"] is True


def test_the_scorecard_is_one_page_without_network(evaluated: tuple[sj.Evaluation, Path]) -> None:
    """Well-formed, figures inside, every answer and every choice on it."""
    evaluation, out = evaluated
    page = (out / "scorecard.html").read_text()
    stack: list[str] = []

    class Check(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            assert tag not in ("script", "link", "img", "iframe")
            for name, value in attributes:
                assert name not in ("src",), value
                if name.endswith("href"):
                    assert (value or "").startswith("#"), value
            if tag not in ("meta", "br", "path", "use", "rect", "line"):
                stack.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag in stack:
                while stack.pop() != tag:
                    pass

    Check().feed(page)
    assert "url(http" not in page
    assert scorecard.WIDE_STYLE not in page
    more = {str(n): {"name": "codel"} for n in range(scorecard.WIDE)}
    many = dataclasses.replace(evaluation, qdiscs={**evaluation.qdiscs, **more})
    assert scorecard.WIDE_STYLE in scorecard.page(many)
    assert page.count("<figure>") == 5, "trade-off, CDF, fairness, two series"
    for line in evaluation.lines:
        assert line.case.title in page
        assert all(one.text in page for one in line.answers.values())
    for choice in cases.CHOICES:
        assert choice.split(";")[0].split("'")[0] in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    summary = json.loads((out / "summary.json").read_text())["evaluation"]
    assert len(summary["lines"]) == len(evaluation.lines)
    assert pl.read_parquet(out / "lines.parquet").equals(evaluation.frame())


def test_the_same_evaluation_again_runs_nothing(evaluated: tuple[sj.Evaluation, Path]) -> None:
    """A further discipline runs only its own runs, and the store serves `sojourn results`."""
    evaluation, out = evaluated
    again = sj.evaluate(
        ["codel", "fq_codel"], "2mbit", quick=True, only=["A1", "A4", "B1", "E5", "H2"], out=out
    )
    assert (evaluation.made > 0, again.made) == (True, 0)
    assert again.frame().equals(evaluation.frame())
    more = sj.evaluate(["codel", "pie"], "2mbit", quick=True, only=["A1"], out=out)
    assert more.made == 4
    assert set(sj.results(out / "runs")["qdisc"].unique()) >= {"codel", "pie", "droptail"}


def test_an_evaluation_writes_its_scorecard(
    evaluated: tuple[sj.Evaluation, Path], tmp_path: Path
) -> None:
    """The same page as `evaluate` writes."""
    evaluation, _ = evaluated
    evaluation.save(tmp_path / "again")
    page = (tmp_path / "again" / "scorecard.html").read_text()
    assert page == scorecard.page(evaluation)


def test_the_ellipse_is_the_contour_of_one_sigma() -> None:
    """Points on it are one Mahalanobis distance from the mean; fewer than 3 runs have none."""
    x, y = np.array([1.0, 2.0, 4.0, 4.5]), np.array([3.0, 3.5, 1.0, 0.5])
    outline = figures.ellipse(x, y)
    assert outline is not None
    away = outline - np.array([[x.mean()], [y.mean()]])
    inverse = np.linalg.inv(np.cov(np.stack([x, y]), bias=True))
    assert np.einsum("in,ij,jn->n", away, inverse, away) == pytest.approx(1.0)
    assert figures.ellipse(x[:2], y[:2]) is None


def test_recovery_is_the_last_time_away_from_the_later_level() -> None:
    """A phase of 20 s at 10 Hz that starts 100 ms high and falls to 10 ms after 3 s."""
    phase = np.where(np.arange(200) < 30, 0.1, 0.01)
    assert measure._recovery(phase, 10) == 30
    assert measure._recovery(np.full(200, 0.01), 10) == 0


def test_a_ratio_is_as_bad_as_its_inverse() -> None:
    """Half and twice cost ln 2; 1 costs nothing, 0 everything; less or more is better as named."""
    near_one = cases.Question("", "x", "", "one")
    costs = [lines._cost(value, near_one) for value in (0.5, 2.0, 1.0, 0.0)]
    assert costs == pytest.approx([np.log(2), np.log(2), 0.0, np.inf])
    assert lines._cost(3.0, cases.Question("", "x", "", "less")) == 3.0
    assert lines._cost(3.0, cases.Question("", "x", "", "more")) == -3.0


def test_a_difference_below_one_percent_counts_as_none() -> None:
    """99.5 and 98 against 100, each certain; a single seed decides nothing."""
    reference = dict.fromkeys((1, 2, 3), 100.0)

    def stands(value: float, seeds: tuple[int, ...] = (1, 2, 3)) -> str:
        ours = dict.fromkeys(seeds, value)
        return lines._stands(ours, reference, ours, reference)

    assert [stands(value) for value in (99.5, 99.0, 98.0, 102.0)] == [
        "no difference", "no difference", "better", "worse"
    ]  # fmt: skip
    assert stands(50.0, (1,)) == "too few seeds"


def test_the_goodput_ratio_is_that_of_the_varied_flow_to_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first flow has 100 ms; the second one, with another time, gets 2 of its 8 Mbit/s."""
    goodputs: dict[str, float] = {"first": 8e6, "second": 2e6}
    monkeypatch.setattr(measure, "of_group", lambda _result, name: {"goodput_bps": goodputs[name]})
    result = cast(
        Result, SimpleNamespace(group_series={"first": {}, "second": {}}, flows={}, links={})
    )
    assert measure._derived(result)["rtt_ratio"] == 0.25
    goodputs["first"] = 0.0
    assert measure._derived(result)["rtt_ratio"] is None


def test_a_discipline_in_python_is_evaluated_by_the_command(
    tmp_path: Path, sojourn: Command
) -> None:
    """`FILE.py:CLASS`, with parameters; runs are reused, and the class runs in processes too."""
    path = Path(__file__).parent.parent / "examples/my_aqm.py"
    own, out = f"{path}:HeadDrop", tmp_path / "out"
    options = ("--rate", "1mbit", "--quick", "--out", out)
    words = ("--qdisc", f"codel,{own}(target=20ms)", *options, "--only", "A1")
    code, text, err = sojourn("evaluate", *words)
    assert (code, err.count("\n")) == (0, 1)
    assert "HeadDrop(target=20ms): " in text
    assert "12 of 12 runs made" in text
    summary = json.loads(sojourn("evaluate", *words, "--processes", "--json")[1])["evaluation"]
    label = next(one for one in summary["lines"][0]["answers"] if "HeadDrop" in one)
    assert summary["lines"][0]["answers"][label]["stands"] == "better"
    assert "0 of 12 runs made" in sojourn("evaluate", *words)[1]
    wrong = ("evaluate", "--qdisc", f"{own}(target=5)", *options)
    code, text, err = sojourn(*wrong)
    assert (code, text, err.count("\n")) == (2, "", 1)
    assert "--qdisc: " in err
    assert '"5" has no unit' in err


def test_the_forecast_is_near_the_cpu_time() -> None:
    """Within a factor that allows for other machines and an unoptimised build."""
    plan = run.prepare("codel", "10mbit", quick=True, only=["A1", "A3", "E2", "F1", "E5"])
    begun = time.process_time()
    run.run(plan, jobs=1)
    used = time.process_time() - begun
    expected = plan.predicted_s(1) - run.PAGE_S
    assert 0.2 < used / expected < 8
    full = run.prepare("codel", "10mbit")
    assert len(full.runs) == 1620
    assert 30 < full.predicted_s(2) < 90


def test_the_command_prints_the_scorecard(tmp_path: Path, sojourn: Command) -> None:
    """With the number of runs and the expected time before it."""
    options = ("--rate", "1mbit", "--quick", "--only", "A1", "--out", tmp_path / "out")
    code, out, err = sojourn("evaluate", "--qdisc", "codel", *options)
    assert code == 0
    assert "8 runs, about" in err
    assert "A1 One TCP flow (5.1.1)" in out
    assert "codel: " in out
    code, out, _ = sojourn("evaluate", "--qdisc", "codel", *options, "--json")
    assert json.loads(out)["evaluation"]["reference"] == "droptail"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--qdisc", "codle"), 'did you mean "codel"?'),
        (("--qdisc", "codel(target=5)"), '--qdisc: target: "5" has no unit'),
        (("--qdisc", "codel,codel"), "is given twice"),
        (("--qdisc", "codel", "--rate", "10"), '--rate: "10" has no unit'),
        (("--qdisc", "codel", "--rate", "1tbit"), "--rate: "),
        (("--qdisc", "codel", "--only", "Z9"), '--only: unknown case "Z9"'),
        (("--qdisc", "codel", "--rate", "10mbit,10000kbit"), "has a rate twice"),
        (("--qdisc", "codel", "--only", ""), '--only: unknown case ""'),
        (("--qdisc", "sfq", "--only", "H2"), "--only: no case is left for sfq, which cannot mark"),
    ],
)
def test_a_wrong_question_gets_one_line(
    options: tuple[str, ...], message: str, tmp_path: Path, sojourn: Command
) -> None:
    """And nothing is written."""
    out = tmp_path / "out"
    code, text, err = sojourn("evaluate", *options, "--quick", "--out", out)
    assert (code, text, err.count("\n")) == (2, "", 1)
    assert message in err
    assert not out.exists()


def test_the_command_to_repeat_it_keeps_labels_and_parameters() -> None:
    """It is accepted, and gives the same disciplines."""
    plan = run.prepare(["slow=codel(target=20ms)", "pie"], "2mbit", quick=True, only=["A1"])
    words = shlex.split(scorecard.command(run.run(plan)))
    again = run.prepare(split(words[words.index("--qdisc") + 1]), "2mbit", quick=True, only=["A1"])
    assert again.qdiscs == plan.qdiscs
    assert words[words.index("--only") + 1] == "A1"


def test_a_folder_with_other_contents_is_refused(tmp_path: Path, sojourn: Command) -> None:
    """Before any run."""
    (tmp_path / "notes.txt").write_text("mine")
    code, _, err = sojourn("evaluate", "--qdisc", "codel", "--quick", "--out", tmp_path)
    assert code == 2
    assert "notes.txt" in err
