"""The commands `sojourn paper list`, `sojourn paper run` and `sojourn paper check`."""

import json
import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer

from sojourn._sojourn import InputError
from sojourn.cli import suggest
from sojourn.cli.collection import collection
from sojourn.cli.options import Force, Jobs, Json, continuing

app = typer.Typer(
    help="Reproduce a paper: draw its figures and test its claims.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


OnePaper = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="one paper", autocompletion=suggest.papers)
]


@app.command("list")
def list_command(paper_id: OnePaper = None, as_json: Json = False) -> None:
    """List the papers, or the figures, experiments and constants of one."""
    from sojourn.display.console import console
    from sojourn.display.table import Table

    papers = collection()
    if paper_id is not None:
        paper = papers.find(paper_id)
        if as_json:
            print(json.dumps(papers.described(paper), indent=2))
        else:
            papers.print_paper(paper)
        return
    entries = [papers.find(name) for name in papers.ids()]
    if as_json:
        listed = [{"id": p.id, "title": p.title, "reference": p.reference} for p in entries]
        print(json.dumps(listed, indent=2))
        return
    table = Table("id", "title", "figures and tables", "claims", prose=[1, 2])
    for one in entries:
        numbers = ", ".join(figure.number for figure in one.figures)
        table.add_row(one.id, one.title, numbers, str(len(one.claims)))
    console().print(table, soft_wrap=True)


@app.command()
def run(
    paper_id: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="a name from sojourn paper list", autocompletion=suggest.papers
        ),
    ],
    out: Annotated[Path, typer.Option(help="write the report to DIR/ID", metavar="DIR")],
    figure: Annotated[
        list[str] | None, typer.Option(help="only this figure and its claims")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--quick", help="all seeds and points, or a few (default)")
    ] = False,
    engine: Annotated[
        str, typer.Option(metavar="sim|live", help="simulator (default), or real packets")
    ] = "sim",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="change a constant of the set-up (see sojourn paper list ID)",
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="parallel runs (default: cores; 6 with real packets)")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run the scenarios of a paper, draw its figures, and test its claims.

    Finished runs are stored in DIR/ID/runs and are not repeated. With real packets, the folder is
    DIR/ID-live, and runs take their duration in real time.
    """
    from sojourn.cli.options import is_live
    from sojourn.live import link, netdev
    from sojourn.result import folders

    papers = collection()
    real = is_live(engine)
    paper = papers.find(paper_id)
    if real and paper.live is None:
        there_are = [name for name in papers.ids() if papers.find(name).live is not None]
        raise InputError(
            f"--engine: {paper.id} has no runs on real packets, allowed: {', '.join(there_are)}"
        )
    set_up = paper.changed(settings or ())
    directory = out / (f"{paper.id}-live" if real else paper.id)
    folders.claim(directory, "paper", {"paper": paper.id}, force=force)
    try:
        with continuing(directory):
            outcome = papers.run(
                paper,
                full=full,
                store=directory / "runs",
                figures=figure or (),
                jobs=jobs,
                progress=True,
                engine="live" if real else "sim",
                set_up=set_up,
            )
    except netdev.NoRightError:
        link.enter_own_network(sys.argv[1:])
        raise
    papers.write_report(outcome, directory)
    for name in outcome.campaign.damaged:
        print(f"sojourn: {directory / 'runs'}: {name} was damaged; made again", file=sys.stderr)
    if as_json:
        print(json.dumps(papers.as_json(outcome), indent=2, allow_nan=False))
        return
    papers.print_verdicts(outcome, directory)


@app.command()
def check(
    paper_ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...", help="papers (default: all)", autocompletion=suggest.papers
        ),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="compare the checksums of N random runs of each paper")
    ] = None,
    draw: Annotated[
        int | None, typer.Option(min=0, metavar="SEED", help="choose the same random runs again")
    ] = None,
    claim: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="only this claim, like 003-C1")
    ] = None,
    figure: Annotated[
        list[str] | None, typer.Option(help="only this figure and its claims")
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="committed pages (default: reports/papers of the clone)"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="keep finished runs in DIR/ID/runs")
    ] = None,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Make the runs of papers again, and compare them with the committed pages digit by digit.

    All claims, the data behind all figures, and a checksum of each run are compared. The exit code
    is 1 if anything differs. Without --out, no stored run is used.
    """
    papers = collection()
    every = [papers.find(name) for name in paper_ids or papers.ids()]
    if sample is not None and (claim or figure or out):
        raise InputError("--sample: not together with --claim, --figure or --out")
    if draw is not None and sample is None:
        raise InputError("--draw: only with --sample")
    if figure and len(every) != 1:
        raise InputError("--figure: name the paper, like sojourn paper check hred --figure 7")
    if claim:
        every = papers.check.of_claims(claim, every)
    for one in every:
        papers.check.page(one, pages)
    results = []
    for one in every:
        if sample is not None:
            chosen = secrets.randbelow(10**6) if draw is None else draw
            result = papers.check.sample(
                one, sample, pages=pages, draw=chosen, jobs=jobs, progress=True
            )
        else:
            store = None if out is None else out / one.id / "runs"
            with continuing(out):
                result = papers.check.full(
                    one,
                    claims=claim or (),
                    figures=figure or (),
                    pages=pages,
                    store=store,
                    jobs=jobs,
                    progress=True,
                )
        results.append(result)
        if not as_json:
            papers.check.print_check(result)
    if as_json:
        print(json.dumps([papers.check.as_data(one) for one in results], indent=2))
    if any(one.differences for one in results):
        raise typer.Exit(1)
