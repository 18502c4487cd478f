"""Contents of a paper for `sojourn paper list ID`: figures, experiments, constants."""

from typing import Any

from rich.markup import escape

from sojourn.display.console import console
from sojourn.display.table import Table
from sojourn_lab.reproduction import costs
from sojourn_lab.reproduction.contents import CONSTANTS
from sojourn_lab.reproduction.pages import measured_times
from sojourn_lab.reproduction.paper import Figure, Paper, figures_of


def described(paper: Paper) -> dict[str, Any]:
    """Return the figures, claims, experiments and constants of a paper, as data for JSON."""
    quick, full = paper.experiments(False), paper.experiments(True)
    constants = [] if paper.constants is None else paper.constants().rows()
    times = costs.expected(paper, measured_times(paper))
    return {
        "id": paper.id,
        "title": paper.title,
        "reference": paper.reference,
        "figures": [
            {
                "number": one.number,
                "title": one.title,
                "claims": claims_of(paper, one),
                "experiments": list(one.needs),
                "core_s": round(times[one.number].full_s, 1) if one.number in times else None,
                "quick_core_s": round(times[one.number].quick_s, 1)
                if one.number in times
                else None,
            }
            for one in paper.figures
        ],
        "experiments": [
            {
                "name": name,
                "runs": len(one.points) * one.seeds,
                "quick_runs": len(quick[name].points) * quick[name].seeds if name in quick else 0,
            }
            for name, one in full.items()
        ],
        "constants": [
            {"name": name, "default": default, "meaning": meaning}
            for name, _, default, meaning in constants
        ],
    }


def claims_of(paper: Paper, figure: Figure) -> list[str]:
    """Return the ids of the claims about a figure."""
    return [one.id for one in paper.claims if figure.number in figures_of(one)]


def print_paper(paper: Paper) -> None:
    """Print the figures, experiments and constants of a paper."""
    out, tree = console(), described(paper)
    out.print(f"[bold]{escape(paper.title)}[/]\n{escape(paper.reference)}\n")
    figures = Table("figure", "title", "claims", "quick", "full", left=3, prose=[1, 2])
    for one in tree["figures"]:
        each = (one["quick_core_s"], one["core_s"])
        times = ("" if it is None else costs.written(it) for it in each)
        figures.add_row(one["number"], one["title"], ", ".join(one["claims"]), *times)
    out.print(figures, soft_wrap=True)
    if any(one["core_s"] is not None for one in tree["figures"]):
        out.print("quick, full: processor time of one core, as measured for the page\n")
    experiments = Table("experiment", "runs", "runs with --quick")
    for one in tree["experiments"]:
        experiments.add_row(one["name"], str(one["runs"]), str(one["quick_runs"]))
    out.print(experiments, soft_wrap=True)
    if tree["constants"]:
        constants = Table(CONSTANTS[0], CONSTANTS[2], CONSTANTS[3], left=2, prose=[2])
        for one in tree["constants"]:
            constants.add_row(one["name"], one["default"], one["meaning"])
        out.print(constants, soft_wrap=True)
        out.print("--set CONSTANT=VALUE changes a constant.")
