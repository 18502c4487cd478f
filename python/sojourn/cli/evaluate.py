"""The command `sojourn evaluate`."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from sojourn._sojourn import InputError
from sojourn.cli import suggest
from sojourn.cli.options import Cluster, Jobs, Json, Processes, continuing
from sojourn.cli.sweep import executor_for


def evaluate(
    qdisc: Annotated[
        list[str],
        typer.Option(
            metavar="A,B,...",
            help="the disciplines, like codel,'pie(target=15ms)'; drop-tail is added",
            autocompletion=suggest.disciplines,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(help="folder for scorecard and runs; runs that are there are not repeated"),
    ],
    rate: Annotated[
        str, typer.Option(metavar="A,B,...", help="rates of the bottleneck")
    ] = "10mbit",
    quick: Annotated[bool, typer.Option("--quick", help="shorter runs, fewer variants")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="cases, like A1,E5 (default: all)")
    ] = None,
    jobs: Jobs = None,
    processes: Processes = False,
    cluster: Cluster = None,
    as_json: Json = False,
) -> None:
    """Evaluate disciplines by the test suite of RFC 7928.

    A scorecard is written. Every discipline is compared with drop-tail on the same seeds.
    """
    from sojourn.evaluation import run
    from sojourn.evaluation.result import REFERENCE
    from sojourn.evaluation.scorecard import begin, command, counts, table
    from sojourn.scenario.variants import split

    if cluster is not None and (processes or jobs):
        raise InputError("--cluster: cannot be combined with --jobs or --processes")
    asked = run.prepare(
        [name for given in qdisc for name in split(given)],
        [one.strip() for one in rate.split(",")],
        quick=quick,
        only=() if only is None else [one.strip() for one in only.split(",")],
    )
    begin(out)
    workers = run.workers(jobs)
    predicted = _duration(asked.predicted_s(workers))
    where = "on the cluster" if cluster else f"on {workers} cores"
    said = f"{len(asked.runs)} runs, {predicted} {where} (those in {out} are not repeated)"
    print(f"sojourn: {said if not cluster else f'{len(asked.runs)} runs {where}'}", file=sys.stderr)
    with continuing(out), executor_for(cluster, processes, jobs) as executor:
        found = run.run(asked, out=out, executor=executor, jobs=jobs, progress=True)
    if as_json:
        print(json.dumps(found.summary(), indent=2, allow_nan=False))
        return
    from sojourn.display.console import console

    screen = console()
    screen.print(table(found), soft_wrap=True)
    screen.print("\n▲ better than drop-tail, ▼ worse, = no difference (95 % confidence)")
    for label in found.qdiscs:
        if label != REFERENCE:
            told = counts(found, label)
            words = ", ".join(f"{n} {word}" for word, n in told.items())
            screen.print(f"{label}: {words}", markup=False)
    screen.print(
        f"{found.made} of {len(found.rows)} runs made in {found.wall_s:.0f} s", markup=False
    )
    screen.print(f"{out / 'scorecard.html'}: the scorecard with figures", markup=False)
    screen.print(f"again: {command(found)}", markup=False)


def _duration(predicted_s: float) -> str:
    if predicted_s < 90:
        return f"about {max(10, round(predicted_s, -1)):.0f} s"
    return f"about {predicted_s / 60:.0f} minutes"
