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
    plan = run.prepare(
        [name for text in qdisc for name in split(text)],
        [one.strip() for one in rate.split(",")],
        quick=quick,
        only=() if only is None else [one.strip() for one in only.split(",")],
    )
    begin(out)
    workers = run.workers(jobs)
    predicted = _duration(plan.predicted_s(workers))
    where = "on the cluster" if cluster else f"on {workers} cores"
    work = f"{len(plan.runs)} runs, {predicted} {where} (those in {out} are not repeated)"
    print(f"sojourn: {work if not cluster else f'{len(plan.runs)} runs {where}'}", file=sys.stderr)
    with continuing(out), executor_for(cluster, processes, jobs) as executor:
        evaluation = run.run(plan, out=out, executor=executor, jobs=jobs, progress=True)
    if as_json:
        print(json.dumps(evaluation.summary(), indent=2, allow_nan=False))
        return
    from sojourn.display.console import console

    screen = console()
    screen.print(table(evaluation), soft_wrap=True)
    screen.print("\n▲ better than drop-tail, ▼ worse, = no difference (95 % confidence)")
    for label in evaluation.qdiscs:
        if label != REFERENCE:
            numbers = counts(evaluation, label)
            words = ", ".join(f"{n} {word}" for word, n in numbers.items())
            screen.print(f"{label}: {words}", markup=False)
    screen.print(
        f"{evaluation.made} of {len(evaluation.rows)} runs made in {evaluation.wall_s:.0f} s",
        markup=False,
    )
    screen.print(f"{out / 'scorecard.html'}: the scorecard with figures", markup=False)
    screen.print(f"again: {command(evaluation)}", markup=False)


def _duration(predicted_s: float) -> str:
    if predicted_s < 90:
        return f"about {max(10, round(predicted_s, -1)):.0f} s"
    return f"about {predicted_s / 60:.0f} minutes"
