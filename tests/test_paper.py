"""Papers: the harness, the rules for verdicts, and the consistency of each paper."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sojourn import InputError, _sojourn
from sojourn.reproduction import claims, paper, report
from sojourn.reproduction import run as reproduction_run
from sojourn.reproduction.claims import Claim, Part
from sojourn.scenario.load import to_json
from sojourn.sweeps.runner import Made

ROOT = Path(__file__).parent.parent
HELD = Part("a", "b", "c", True)
FAILED = Part("a", "b", "c", False)


@pytest.mark.parametrize(
    ("parts", "judged"),
    [
        ([HELD, HELD], "holds"),
        ([HELD, FAILED, HELD], "holds in 2 of 3"),
        ([FAILED, FAILED, FAILED], "does not hold"),
        ([], "not testable"),
    ],
)
def test_verdict_follows_from_parts(parts: list[Part], judged: str) -> None:
    """A claim holds, holds in k of n parts, does not hold, or has no parts to test."""
    assert claims.verdict(parts) == judged
    assert claims.kind(judged) in claims.KINDS
    assert (claims.kind(judged) == judged) == ("2 of 3" not in judged)


def test_a_number_holds_within_a_fifth() -> None:
    """The default tolerance is 20 %; the measured text has the unit and the interval."""
    part = claims.number("x", [0.011, 0.012, 0.013], 10.0, unit="ms", scale=1e3)
    assert part.holds
    assert part.stated == "10 ms"
    # t(2, 0.975) = 4.303, std = 1, so half = 4.303 / sqrt(3) = 2.484.
    assert part.measured == "12.0 ± 2.5 ms"
    assert not claims.number("x", [12.1], 10.0).holds
    assert claims.number("x", [0.97], 1.0, points=0.03).holds
    assert not claims.number("x", [0.96], 1.0, points=0.03).holds


def test_an_order_holds_if_the_paired_interval_excludes_zero() -> None:
    """The seeds differ far more than the disciplines: only the paired difference is significant."""
    seeds = np.array([1.0, 50.0, 100.0])
    assert claims.order("x", seeds, seeds + np.array([1.0, 1.1, 0.9])).holds
    assert not claims.order("x", seeds, seeds + np.array([1.0, -1.0, 0.5])).holds
    assert not claims.order("x", seeds + 1, seeds).holds


def test_equal_and_bound() -> None:
    """`equal` has a tolerance relative to the second mean; `bound` compares with a limit."""
    assert claims.equal("x", [9.9, 10.1], [10.0, 10.0], within=0.01).holds
    assert not claims.equal("x", [9.5, 9.5], [10.0, 10.0], within=0.01).holds
    assert claims.bound("x", [1.0, 2.0], "<", 1.6).holds
    assert not claims.bound("x", [1.0, 2.0], ">", 1.6).holds


def test_values_are_ordered_by_seed_and_never_empty() -> None:
    """Paired differences need the order of the seeds."""
    frame = pl.DataFrame({"seed": [2, 1], "q": ["a", "a"], "y": [20.0, 10.0]})
    assert claims.values(frame, "y", q="a").tolist() == [10.0, 20.0]
    with pytest.raises(KeyError):
        claims.values(frame, "y", q="b")


@pytest.mark.parametrize("name", paper.ids())
def test_paper_is_consistent(name: str) -> None:
    """Every scenario is valid, every needed experiment exists, claim ids are unique."""
    one = paper.find(name)
    assert len(one.about) > 300
    ids = [claim.id for claim in one.claims]
    assert len(set(ids)) == len(ids)
    for full in (False, True):
        experiments = one.experiments(full)
        needs = {need for figure in one.figures for need in figure.needs}
        needs |= {need for claim in one.claims for need in claim.needs}
        assert needs <= set(experiments)
        for experiment in experiments.values():
            for run in experiment.runs()[:: experiment.seeds]:
                _sojourn.canonical(to_json(run.scenario))
    numbers = {figure.number for figure in one.figures}
    for claim in one.claims:
        assert set(claim.figure.split(", ")) <= numbers | {""}, claim.id
        assert claim.check is None or claim.needs, claim.id
    known = re.findall(r"\{([\w-]+)\.\d+\}", one.prose)
    assert set(known) <= set(ids)
    assert one.prose


def test_a_figure_runs_only_its_experiments_and_only_once(tmp_path: Path) -> None:
    """A second call runs nothing, and the report is complete."""
    one = paper.find("codel-vs-drr")
    first = reproduction_run.run(one, full=False, store=tmp_path / "runs", figures=["4.3"])
    again = reproduction_run.run(one, full=False, store=tmp_path / "runs", figures=["4.3"])
    assert first.made.made == len(first.made.rows) == 18
    assert again.made.made == 0
    assert again.made.rows == first.made.rows
    assert [claim.id for claim, _ in again.claims] == ["004-C10", "004-C11"]
    report.write_report(again, tmp_path)
    html = (tmp_path / "report.html").read_text()
    assert "<svg" in html
    assert "004-C10" in html
    told = json.loads((tmp_path / "claims.json").read_text())
    assert {claims.kind(claim["verdict"]) for claim in told["claims"]} <= set(claims.KINDS[:3])


def test_prose_contains_the_measured_text() -> None:
    """Numbers in the findings come from the runs, so they cannot become outdated."""
    one = paper.find("codel-vs-drr")
    claim = Claim("004-C1", "", "", "", "")
    outcome = paper.Outcome(one, False, {}, [], [(claim, [HELD, HELD])], Made([], 0, 0, 0.0, ()))
    assert "CoDel c at 10 Mbit/s" in report.filled(outcome)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["codel-vs-dr"], 'unknown paper "codel-vs-dr", did you mean "codel-vs-drr"?'),
        (["codel-vs-drr", "--figure", "4.9"], 'no figure "4.9" in codel-vs-drr'),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], said: str, tmp_path: Path) -> None:
    """A wrong paper or figure gives exit code 2 and one line, no traceback."""
    command = [str(Path(sys.executable).with_name("sojourn")), "paper", "run", *arguments]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_find_raises_input_error() -> None:
    """An unknown paper raises InputError in Python."""
    with pytest.raises(InputError):
        paper.find("no such paper")
