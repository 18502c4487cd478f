"""Comparison of new runs of a paper with its committed page, digit by digit."""

import math
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.text import Text

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn.display.console import console
from sojourn.display.table import Table
from sojourn.sweeps.runner import campaign
from sojourn_lab.reproduction import checksums, report
from sojourn_lab.reproduction.pages import page
from sojourn_lab.reproduction.paper import Outcome, Paper, chosen
from sojourn_lab.reproduction.run import run

SAME = "same digits"

LISTED = 20
"""Largest number of runs that a report lists as different."""


@dataclass
class Checked:
    """Result of a check: for each claim, figure or run that was compared, the difference or None.

    `runs` runs were made. `engines` are the engine of the page and the present one. `repeat` is the
    command that does the same again.
    """

    paper: Paper
    engines: tuple[str, str]
    repeat: str = ""
    runs: int = 0
    results: dict[str, str | None] = field(default_factory=dict)

    @property
    def differences(self) -> dict[str, str]:
        """Results that differ, with the difference."""
        return {name: text for name, text in self.results.items() if text is not None}


def of_claims(ids: Sequence[str], papers: Sequence[Paper]) -> list[Paper]:
    """Return the papers that have these claims. Raises InputError for an unknown claim."""
    known = {claim.id: paper for paper in papers for claim in paper.claims}
    for one in ids:
        if one not in known:
            raise InputError(f"--claim: no claim {shown(one)}{near(one, known)}")
    return [paper for paper in papers if any(known[one].id == paper.id for one in ids)]


def sample(
    paper: Paper,
    count: int,
    *,
    pages: Path | None = None,
    draw: int = 0,
    jobs: int | None = None,
    progress: bool = False,
) -> Checked:
    """Make `count` runs of full mode again, and compare their checksums with the committed ones.

    `draw` is the seed of the choice. Raises InputError without a committed page.
    """
    folder, tree = page(paper, pages)
    result = Checked(paper, (str(tree.get("engine", tree["sojourn"])), _sojourn.engine()))
    result.repeat = f"sojourn paper check {paper.id} --sample {count} --draw {draw}"
    known = checksums.load(folder / checksums.FILE)
    runs = checksums.places({name: one.runs() for name, one in paper.experiments(True).items()})
    for kind, places in (
        ("not in checksums.txt", runs.keys() - known.keys()),
        ("no run of the paper any more", known.keys() - runs.keys()),
    ):
        if places:
            first = min(places)
            more = f" and {len(places) - 1} others" if len(places) > 1 else ""
            result.results[f"{first}{more}"] = kind
    both = sorted(runs.keys() & known.keys())
    chosen = random.Random(draw).sample(both, min(count, len(both)))
    result_of_runs = campaign(
        [runs[one] for one in chosen], jobs=jobs, progress=progress
    ).complete()
    result.runs = len(result_of_runs.rows)
    for one, row in zip(chosen, result_of_runs.rows, strict=True):
        new = checksums.checksum(row)
        result.results[str(one)] = None if new == known[one] else f"{known[one]} on the page, {new}"
    return result


def full(
    paper: Paper,
    *,
    claims: Sequence[str] = (),
    figures: Sequence[str] = (),
    pages: Path | None = None,
    store: Path | None = None,
    jobs: int | None = None,
    progress: bool = False,
) -> Checked:
    """Make the runs of full mode again, and compare claims, figures and checksums with the page.

    With `claims` or `figures`, only the runs that these need. Finished runs are kept in `store` and
    taken from it; by default all are made. Raises InputError without a committed page.
    """
    folder, tree = page(paper, pages)
    result = Checked(paper, (str(tree.get("engine", tree["sojourn"])), _sojourn.engine()))
    chosen(paper, paper.figures, figures)  # before any run
    known = checksums.load(folder / checksums.FILE)
    own = [one.id for one in paper.claims if one.id in claims]
    options = [*(f"--claim {one}" for one in own), *(f"--figure {one}" for one in figures)]
    result.repeat = " ".join([f"sojourn paper check {paper.id}", *options])
    with tempfile.TemporaryDirectory() as name:
        outcome = run(
            paper,
            full=True,
            store=store or Path(name) / "runs",
            figures=figures,
            claims=own,
            jobs=jobs,
            progress=progress,
        )
        result.runs = len(outcome.campaign.rows)
        for claim in report.as_json(outcome)["claims"]:
            committed = tree["claims"].get(claim["id"])
            lacks = "is not on the page"
            difference = lacks if committed is None else claim_difference(committed, claim)
            result.results[claim["id"]] = difference
        report.write_report(outcome, Path(name))
        for one in sorted((Path(name) / report.DATA).glob("*.csv")):
            result.results[one.stem.replace("-", " ", 1)] = _file_difference(
                folder / report.DATA / one.name, one
            )
    result.results |= dict(_runs_differing(outcome, known))
    return result


def claim_difference(committed: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """Return the first difference of a claim: of its parts, or of its verdict."""
    if len(committed["parts"]) != len(new["parts"]):
        return f"{len(committed['parts'])} parts on the page, {len(new['parts'])} here"
    for old, part in zip(committed["parts"], new["parts"], strict=True):
        numbers = any(
            _digits(old.get(key)) != _digits(part[key]) for key in ("mean", "low", "high")
        )
        if numbers or old["measured"] != part["measured"]:
            both = f"{_precise(old)} on the page, {_precise(part)} here"
            return f"{part['what']}: {both}"
    if committed["verdict"] != new["verdict"]:
        return f"{committed['verdict']} on the page, {new['verdict']} here"
    return None


def _digits(value: float | None) -> str:
    """Return a number with the digits that are compared."""
    known = value is not None and math.isfinite(value)
    return f"{value:.{checksums.DIGITS}g}" if known else ""


def _precise(part: Mapping[str, Any]) -> str:
    mean = _digits(part["mean"])
    return f"{part['measured']} ({mean})" if mean else str(part["measured"])


def _file_difference(committed: Path, new: Path) -> str | None:
    """Return the first line that differs of two files with data of a figure."""
    if not committed.is_file():
        return "no data on the page"
    lines = [path.read_text(encoding="utf-8").splitlines() for path in (committed, new)]
    for n, (old, one) in enumerate(zip(*lines, strict=False), 1):
        if old != one:
            return f"line {n}: {old} on the page, {one} here"
    lengths = len(lines[0]), len(lines[1])
    return None if lengths[0] == lengths[1] else "{} lines on the page, {} here".format(*lengths)


def _runs_differing(
    outcome: Outcome, known: Mapping[checksums.Place, str]
) -> Iterator[tuple[str, str | None]]:
    """Yield the runs whose checksums differ from the committed ones, or that all are the same."""
    new = checksums.parsed(outcome.checksums)
    bad = [one for one, text in new.items() if known.get(one) != text]
    for one in bad[:LISTED]:
        yield str(one), f"{known.get(one, 'nothing')} on the page, {new[one]} here"
    if len(bad) > LISTED:
        yield f"{len(bad) - LISTED} more runs", "differ"
    if not bad:
        yield f"checksums of {len(new)} runs", None


def print_check(result: Checked) -> None:
    """Print the result of a check, a line for each comparison."""
    out = console()
    out.print(f"[bold]{escape(result.paper.title)}[/]\n")
    table = Table("compared", "result", left=1, prose=[1])
    differences = result.differences
    for name, text in result.results.items():
        table.add_row(name, Text(SAME, "green") if text is None else Text(text, "red"))
    out.print(table, soft_wrap=True)
    old, new = result.engines
    if old != new:
        out.print(f"The page is of engine {escape(old)}, this one is {escape(new)}.")
    same = len(result.results) - len(differences)
    out.print(f"{result.runs} runs made; {same} of {len(result.results)} have the same digits.")
    out.print(f"again: {escape(result.repeat)}\n", soft_wrap=True)


def as_data(result: Checked) -> dict[str, Any]:
    """Return the result of a check as data for JSON."""
    return {
        "paper": result.paper.id,
        "page_engine": result.engines[0],
        "engine": result.engines[1],
        "runs": result.runs,
        "compared": [
            {"name": name, "same": text is None, "difference": text}
            for name, text in result.results.items()
        ],
        "again": result.repeat,
    }
