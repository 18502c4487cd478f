"""The pages of reports/scorecards have all answers, and their numbers are current."""

import sojourn as sj
from sojourn.evaluation import cases
from sojourn_lab import ROOT
from sojourn_lab.reports import scorecards


def test_pages_have_an_answer_for_each_question() -> None:
    """Every one of `scorecards.DISCIPLINES` has a page, and each finding its source."""
    folder = ROOT / "reports/scorecards"
    labels = [one.partition("=")[0] for one in scorecards.DISCIPLINES]
    assert {path.stem for path in folder.glob("*.md")} == {"README", *labels}
    table = (folder / "README.md").read_text().split("## All answers")[1]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    expected = {row.split()[1] for row in rows}
    assert {case.id for case in cases.CASES} == expected
    assert all(row.count("|") == len(labels) + 3 for row in rows)


def test_pages_are_current() -> None:
    """Two cases of the full suite have the numbers of the page: `make scorecards` if not."""
    page = (ROOT / "reports/scorecards/codel.md").read_text()
    evaluation = sj.evaluate("codel", only=["A1", "D1"])
    assert len(evaluation.lines) == 5
    for line in evaluation.lines:
        ours, theirs = line.answers["codel"], line.answers["droptail"]
        question = f"{line.question.asked}, {line.question.unit}"
        assert f"| {question} | {theirs.text} | {ours.text} |" in page, line.case.id
