"""Terminal report of a paper: the verdict on each claim."""

from pathlib import Path

from rich.markup import escape
from rich.text import Text

from sojourn.display.console import console
from sojourn.display.table import Table
from sojourn_lab.reproduction.contents import took
from sojourn_lab.reproduction.judging import kind
from sojourn_lab.reproduction.paper import Outcome, needs_figures

SHADES = {
    "holds": "green",
    "holds in": "yellow",
    "holds except with": "yellow",
    "depends on": "yellow",
    "undecided": "cyan",
    "does not hold": "red",
    "not testable": "dim",
}
"""Colours by kind of verdict."""


def print_verdicts(outcome: Outcome, directory: Path) -> None:
    """Print the verdict on each claim of a paper, and the path of the report."""
    out = console()
    mode = "full" if outcome.full else "quick"
    out.print(f"[bold]{escape(outcome.paper.title)}[/] ({mode})\n")
    heads = ("claim", "verdict", "parts that hold", "figure", "claim in our words")
    table = Table(*heads, left=2, prose=[3, 4])
    for one in outcome.claims:
        claim, verdict = one.claim, Text(one.verdict, SHADES[kind(one.verdict)])
        table.add_row(claim.id, verdict, one.shown(), claim.figure, claim.says)
    for claim in outcome.in_part:
        table.add_row(claim.id, "not judged", needs_figures(claim), claim.figure, claim.says)
    if outcome.claims or outcome.in_part:
        out.print(table, soft_wrap=True)
    if outcome.emulated:
        out.print(f"{escape(outcome.emulated.intro)}\n")
    out.print(took(outcome))
    out.print(f"report: {escape(str(directory / 'report.html'))}", soft_wrap=True)
