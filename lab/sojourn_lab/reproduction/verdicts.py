"""Terminal report of a paper: the verdict on each claim."""

from pathlib import Path

from rich.markup import escape
from rich.text import Text

from sojourn.display.console import console
from sojourn.display.table import Table
from sojourn_lab.reproduction.claims import kind
from sojourn_lab.reproduction.paper import Outcome
from sojourn_lab.reproduction.report import took

SHADES = {
    "holds": "green",
    "holds but for": "yellow",
    "depends on": "yellow",
    "does not hold": "red",
    "not testable": "dim",
}
"""Colours by kind of verdict."""


def print_verdicts(outcome: Outcome, directory: Path) -> None:
    """Print the verdict on each claim of a paper, and the path of the report."""
    out = console()
    mode = "full" if outcome.full else "quick"
    out.print(f"[bold]{escape(outcome.paper.title)}[/] ({mode})\n")
    table = Table("claim", "verdict", "figure", "claim in our words", left=2, prose=[2, 3])
    for one in outcome.claims:
        claim, judged = one.claim, one.verdict
        table.add_row(claim.id, Text(judged, SHADES[kind(judged)]), claim.figure, claim.says)
    if outcome.claims:
        out.print(table, soft_wrap=True)
    if outcome.played:
        out.print(f"{escape(outcome.played.intro)}\n")
    out.print(took(outcome))
    out.print(f"report: {escape(str(directory / 'report.html'))}", soft_wrap=True)
