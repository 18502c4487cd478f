"""Terminal report of a paper: the verdict on each claim."""

from pathlib import Path

from rich.markup import escape
from rich.text import Text

from sojourn.display.console import console
from sojourn.display.table import Table
from sojourn_lab.reproduction.contents import OF_PAGE, is_page, page_verdicts, took
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
    "not judged": "dim",
}
"""Colours by kind of verdict."""


def print_verdicts(outcome: Outcome, directory: Path) -> None:
    """Print the verdict on each claim of a paper, and the path of the report."""
    out = console()
    mode = "full" if outcome.full else "quick"
    out.print(f"[bold]{escape(outcome.paper.title)}[/] ({mode})\n")
    of_page = page_verdicts(outcome)
    more = [] if of_page is None else [OF_PAGE]
    heads = ("claim", "verdict", *more, "parts that hold", "figure", "claim in our words")
    table = Table(*heads, left=2 + len(more), prose=[len(heads) - 2, len(heads) - 1])
    pages = of_page or {}
    for one in outcome.claims:
        claim, verdict = one.claim, _shaded(one.verdict)
        page = [_shaded(pages[claim.id]) if claim.id in pages else ""] * len(more)
        table.add_row(claim.id, verdict, *page, one.shown(), claim.figure, claim.says)
    for claim in outcome.in_part:
        page = [_shaded(pages[claim.id]) if claim.id in pages else ""] * len(more)
        why = needs_figures(claim)
        table.add_row(claim.id, "not judged", *page, why, claim.figure, claim.says)
    if outcome.claims or outcome.in_part:
        out.print(table, soft_wrap=True)
    if of_page is None and not is_page(outcome):
        out.print("The verdicts of the full runs are on the paper's page, in the repository.")
    if outcome.emulated:
        out.print(f"{escape(outcome.emulated.intro)}\n")
    out.print(took(outcome))
    out.print(f"report: {escape(str(directory / 'report.html'))}", soft_wrap=True)


def _shaded(verdict: str) -> Text:
    return Text(verdict, SHADES[kind(verdict)])
