"""Papers: the harness, the rules for verdicts, and the consistency of each paper."""

import dataclasses
import functools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sojourn import InputError
from sojourn.plotting.run import new_figure, styled
from sojourn.scenario.draft import parse
from sojourn.sweeps.runner import CampaignResult, Run, campaign
from sojourn_lab import ROOT, papers
from sojourn_lab.reports import papers as index
from sojourn_lab.reproduction import (
    claims,
    contents,
    findings,
    judging,
    page_markdown,
    paper,
    report,
    side_by_side,
)
from sojourn_lab.reproduction import run as reproduction_run
from sojourn_lab.reproduction.claims import Claim, NoRunsError
from sojourn_lab.reproduction.parts import Part
from sojourn_lab.reproduction.verdicts import print_verdicts


def test_values_are_ordered_by_seed_and_never_empty() -> None:
    """Paired differences need the order of the seeds."""
    frame = pl.DataFrame({"seed": [2, 1], "q": ["a", "a"], "y": [20.0, 10.0]})
    assert claims.values(frame, "y", q="a").tolist() == [10.0, 20.0]
    with pytest.raises(KeyError):
        claims.values(frame, "y", q="b")


@pytest.mark.parametrize("name", papers.ids())
def test_paper_is_consistent(name: str) -> None:
    """Every scenario is valid, every needed experiment exists, claim ids are unique."""
    one = papers.find(name)
    assert len(one.about) > 300
    ids = [claim.id for claim in one.claims]
    assert len(set(ids)) == len(ids)
    for full in (False, True):
        experiments = one.experiments(full)
        needs = {need for figure in one.figures for need in figure.needs}
        needs |= {need for claim in one.claims for need in claim.every_need}
        assert needs <= set(experiments)
        for experiment in experiments.values():
            for run in experiment.runs()[:: experiment.seeds]:
                parse(run.scenario).canonical()
    numbers = {figure.number for figure in one.figures}
    for claim in one.claims:
        assert set(claim.figure.split(", ")) <= numbers | {""}, claim.id
        assert claim.check is None or claim.needs, claim.id
        names = [setting.name for setting in claim.settings]
        assert len(set(names)) == len(names), claim.id
    for setting in one.settings:
        assert any(setting.concerns(claim) for claim in one.claims), setting.name
        assert set(setting.claims) <= set(ids), setting.name
    known = re.findall(r"\{([\w-]+?)(?:\.\d+)?(?:\.brief)?\}", one.findings)
    assert set(known) <= set(ids) | set(one.facts)
    assert one.findings


def kind(experiment: str, run: Run) -> tuple[str, ...]:
    """Return what decides which values a run measures: experiment, disciplines, names of flows."""
    tree: Any = run.scenario
    disciplines = {link.get("qdisc", {}).get("name", "") for link in tree["links"].values()}
    flows = {re.sub(r"-\d+$", "", flow["name"]) for flow in tree["flows"]}
    return experiment, *sorted(disciplines), *sorted(flows)


@functools.cache
def measured(name: str) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the values that one run of each kind measures, of quick mode if it has the kind."""
    runs = {
        kind(key, run): run
        for full in (True, False)
        for key, one in papers.find(name).experiments(full).items()
        for run in one.runs()
    }
    rows = campaign(list(runs.values())).rows
    values = ({key: row[key] for key in json.loads(row["measured"])} for row in rows)
    return dict(zip(runs, values, strict=True))


def synthetic(one: paper.Paper, full: bool) -> dict[str, pl.DataFrame]:
    """Return rows with the labels and seeds of all runs of a mode, and random values."""
    rng = np.random.default_rng(1)

    def row(experiment: str, run: Run) -> dict[str, Any]:
        tree: Any = run.scenario
        values = {
            name: value * rng.uniform(0.8, 1.2) if isinstance(value, float) else value
            for name, value in measured(one.id)[kind(experiment, run)].items()
        }
        axes = {"axes": json.dumps([*run.labels]), "measured": json.dumps([*values])}
        return {**run.labels, "seed": tree["seed"], **axes, **values}

    runs = {name: it.runs() for name, it in one.experiments(full).items()}
    rows = [row(name, run) for name, group in runs.items() for run in group]
    return paper.by_experiment(runs, rows)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", papers.ids())
def test_the_runs_of_a_mode_suffice_for_its_report(name: str, full: bool) -> None:
    """Claims are judged, facts and tables written, quick mode's figures drawn, without an error.

    Quick mode omits the runs of some facts, full mode of none.
    """
    one = papers.find(name)
    runs = synthetic(one, full)
    judged = [judging.judge(claim, runs) for claim in one.claims]
    no_runs = CampaignResult([], 0, 0, 0.0, ())
    outcome = paper.Outcome(one, full, runs, one.figures, judged, no_runs)
    json.dumps(report.as_json(outcome), allow_nan=False)
    pages = page_markdown.as_markdown(outcome) + page_markdown.as_data(outcome)
    assert not full or findings.LEFT_OUT not in pages
    with styled():
        for figure in () if full else one.figures:
            if figure.draw is not None:
                figure.draw(runs, new_figure(*figure.size).subplots())


@pytest.mark.parametrize("name", papers.ids())
def test_findings_that_did_not_run_are_left_out(name: str) -> None:
    """Without the experiment, as with `--figure`, and without its rows, as in quick mode."""
    one = papers.find(name)
    assert one.facts
    without_rows = {key: frame.clear() for key, frame in synthetic(one, full=False).items()}
    for runs in ({}, without_rows):
        outcome = paper.Outcome(one, False, runs, [], [], CampaignResult([], 0, 0, 0.0, ()))
        prose = findings.filled(outcome)
        assert findings.LEFT_OUT in prose
        assert "{" not in prose
    shown = [figure for figure in one.figures if figure.draw is not None]
    requested = paper.Outcome(
        one, False, {}, shown, [], CampaignResult([], 0, 0, 0.0, ()), requested=["4"]
    )
    assert findings.filled(requested).startswith(findings.LEFT_OUT), "nothing is judged"


@pytest.mark.parametrize("name", papers.ids())
def test_rules_say_how_they_err(name: str) -> None:
    """Each rule's docstring says what would make it fail wrongly, and pass wrongly."""
    for claim in papers.find(name).claims:
        assert claim.check is not None
        rule = claim.check.func if isinstance(claim.check, functools.partial) else claim.check
        text = " ".join(str(rule.__doc__).split()).lower()
        assert "fails wrongly:" in text or "fails and passes wrongly:" in text, claim.id
        assert "passes wrongly:" in text, claim.id
        assert len(claim.why.split()) <= 10, claim.id


def test_a_figure_runs_only_its_experiments_and_only_once(tmp_path: Path) -> None:
    """A second call runs nothing, and the report is complete."""
    one = papers.find("codel-vs-drr")
    first = reproduction_run.run(one, full=False, store=tmp_path / "runs", figures=["4.3"])
    again = reproduction_run.run(one, full=False, store=tmp_path / "runs", figures=["4.3"])
    # Two disciplines, three sizes: 3 seeds as chosen, and 2 with each of 8 settings.
    assert first.campaign.executed == len(first.campaign.rows) == 6 * (3 + 2 * 8)
    assert again.campaign.executed == 0
    assert again.campaign.rows == first.campaign.rows
    assert [one.claim.id for one in again.claims] == ["004-C10", "004-C11"]
    report.write_report(again, tmp_path)
    html = (tmp_path / "report.html").read_text()
    assert "<svg" in html
    assert "004-C10" in html
    written = json.loads((tmp_path / "claims.json").read_text())
    assert {judging.kind(claim["verdict"]) for claim in written["claims"]} <= {*judging.KINDS} - {
        "not testable"
    }


def test_prose_contains_the_measured_text() -> None:
    """Numbers in the findings come from the runs, so they cannot become outdated."""
    one = papers.find("codel-vs-drr")
    held = Part("a", "b", "c", "holds")
    ids = ("004-C1", "004-C2", "004-C4")
    judged = [judging.Judged(Claim(name, "", "", "", ""), [held, held]) for name in ids]
    outcome = paper.Outcome(one, False, {}, [], judged, CampaignResult([], 0, 0, 0.0, ()))
    prose = findings.filled(outcome)
    assert "CoDel's at 10 Mbit/s c to c (C1)" in prose
    assert "CoDel drops" not in prose, "C7 was not judged"
    assert prose.startswith(findings.OF_FULL_RUNS)
    assert findings.OF_FULL_RUNS not in findings.filled(dataclasses.replace(outcome, full=True))
    fewer = dataclasses.replace(outcome, requested=["4.1"], claims=judged[:1])
    assert findings.filled(fewer).startswith(findings.LEFT_OUT), "C2 and C4 were not judged"
    varied = dataclasses.replace(outcome, set_up=one.set_up(ftps=8))
    assert findings.filled(varied).startswith(findings.LEFT_OUT), "findings on other constants"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["codel-vs-dr"], 'unknown paper "codel-vs-dr", did you mean "codel-vs-drr"?'),
        (["codel-vs-drr", "--figure", "4.9"], 'no figure "4.9" in codel-vs-drr'),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    """A wrong paper or figure gives exit code 2 and one line, no traceback."""
    command = [str(Path(sys.executable).with_name("sojourn")), "paper", "run", *arguments]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_find_raises_input_error() -> None:
    """An unknown paper raises InputError in Python."""
    with pytest.raises(InputError):
        papers.find("no such paper")


@pytest.mark.parametrize("name", papers.ids())
def test_findings_have_no_typed_results(name: str) -> None:
    """A number with a unit in the findings is a placeholder, or one that the set-up states."""
    one = papers.find(name)
    stated = [one.about, *(text for c in one.claims for text in (c.says, c.stated, c.how))]
    stated += [setting.name for setting in one.settings]
    stated += [figure.title for figure in one.figures]
    known = " ".join(" ".join(stated).split())
    prose = re.sub(r"\{[^{}\n]+\}", "", one.findings)
    units = r"%|ms|us|kB|Mbit/s|packets|/s|points"
    for value, unit in re.findall(rf"(?<![\w.])(\d[\d.]*)\s?({units})(?!\w)", prose):
        assert re.search(rf"(?<![\d.]){re.escape(value)}(?![\d.])", known), f"{value} {unit}"


def test_a_drawing_needs_no_runs(tmp_path: Path) -> None:
    """A conceptual figure is drawn without any run."""
    one = papers.find("codel-vs-drr")
    outcome = reproduction_run.run(one, full=False, store=tmp_path / "runs", figures=["network"])
    assert outcome.campaign.rows == []
    report.write_report(outcome, tmp_path)
    assert (tmp_path / "figures/figure-network.svg").exists()


def test_live_runs_are_compared_with_their_simulated_counterparts() -> None:
    """Means over seeds are compared point by point, in any order; a simulated 0 has no ratio."""

    def frame(losses: dict[int, list[float]]) -> pl.DataFrame:
        rows = [(flows, loss) for flows, each in losses.items() for loss in each]
        columns = {"flows": [flows for flows, _ in rows], "loss": [loss for _, loss in rows]}
        return pl.DataFrame({**columns, "axes": ['["flows"]'] * len(rows)})

    live = frame({8: [0.3, 0.1], 16: [0.3, 0.3], 4: [0.1, 0.1]})
    simulated = frame({4: [0.0, 0.0], 16: [0.1, 0.3], 8: [0.4, 0.4]})
    runs = {"testbed": live, side_by_side.name("testbed"): simulated}
    assert side_by_side.largest_difference(runs, "testbed", "loss") == pytest.approx(0.2)
    assert side_by_side.ratios(runs, "testbed", "loss") == pytest.approx((0.5, 1.5))
    idle = runs | {side_by_side.name("testbed"): frame({4: [0.0], 8: [0.0], 16: [0.0]})}
    with pytest.raises(NoRunsError):
        side_by_side.ratios(idle, "testbed", "loss")


def test_the_overview_and_the_readme_have_the_counts_of_the_pages() -> None:
    """`python -m sojourn_lab.reports.papers --index` writes both."""
    assert (index.PAGES / "README.md").read_text(encoding="utf-8") == index.overview()
    rows = (ROOT / "README.md").read_text(encoding="utf-8").split("\n")
    assert [row for row in rows if row.startswith(index.ROW)] == [index.readme_row()]


@pytest.mark.parametrize("folder", [*papers.ids(), "hred-live", "red-vs-taildrop-live"])
def test_verdicts_of_a_page_follow_from_its_parts(folder: str) -> None:
    """The committed data obey the rules, whichever build wrote them."""
    for claim in index.page(folder)["claims"]:
        parts = [Part("", "", "", part["result"]) for part in claim["parts"]]
        base = judging.kind(judging.verdict(parts, claim["how"]))
        assert claim["of"] == len(parts)
        assert claim["of"] == claim["numbers"]["of"] + claim["relations"]["of"]
        by_setting = judging.kind(claim["verdict"]) in ("depends on", "holds except with")
        assert by_setting or judging.kind(claim["verdict"]) == base, claim["id"]


def test_a_quick_run_shows_the_verdicts_of_the_page(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In the terminal and in the report; with a wheel there is no page, and a line says so."""
    monkeypatch.setattr(contents, "ROOT", tmp_path)
    one = papers.find("codel-vs-drr")
    held = Part("a", "b", "c", "holds")
    judged = [judging.Judged(one.claims[0], [held], quick=True)]
    no_runs = CampaignResult([], 0, 0, 0.0, ())
    quick = paper.Outcome(one, False, {}, [], judged, no_runs)
    print_verdicts(quick, tmp_path)
    assert "in the repository" in capsys.readouterr().out
    assert contents.OF_PAGE not in contents.heads(quick)
    page = tmp_path / "reports/papers/codel-vs-drr/claims.json"
    page.parent.mkdir(parents=True)
    page.write_text(json.dumps({"claims": [{"id": "004-C1", "verdict": "depends on the page"}]}))
    print_verdicts(quick, tmp_path)
    out = capsys.readouterr().out
    assert "in the repository" not in out
    assert "depends on the page" in " ".join(out.split())
    assert "depends on the page" in page_markdown.as_markdown(quick)
    full = dataclasses.replace(quick, full=True)
    assert "depends on the page" not in page_markdown.as_markdown(full)
    assert contents.page_verdicts(dataclasses.replace(full, requested=["4.1"]))
