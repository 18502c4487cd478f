"""The command `sojourn capacity`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn._sojourn import InputError
from sojourn.cli import suggest
from sojourn.cli.options import (
    Buffer,
    Down,
    File,
    Flows,
    Force,
    Jobs,
    Json,
    Plot,
    Rate,
    Rtt,
    Set,
    Size,
    Style,
    Title,
    Trust,
    Up,
    WarmFrom,
    XLabel,
    YLabel,
    check_look,
    continuing,
)
from sojourn.plotting.style import Look

if TYPE_CHECKING:
    from sojourn.sweeps.capacity_result import CapacityAnswer, CapacityResult


def capacity(
    file: File,
    vary: Annotated[str, typer.Option(metavar="KEY", help="key to vary, like upload.count")],
    need: Annotated[
        list[str],
        typer.Option(
            metavar="'METRIC < VALUE'",
            help="requirement, like 'call.delay_p99 < 30ms'; may be repeated, all must be met",
        ),
    ],
    qdisc: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,...",
            help="disciplines of the link (default: the scenario's)",
            autocompletion=suggest.disciplines,
        ),
    ] = None,
    link: Annotated[
        str | None, typer.Option(help="the link (default: bottleneck, else the first on a path)")
    ] = None,
    between: Annotated[
        str | None,
        typer.Option(
            metavar="A..B", help="range of values (default: a hundredth to a hundred times)"
        ),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(metavar="KEY=A,B,...", help="a second key: an answer for each value"),
    ] = None,
    find: Annotated[
        str | None, typer.Option(help="largest or smallest value (default: found by the runs)")
    ] = None,
    seeds: Annotated[
        int, typer.Option(metavar="N", help="number of seeds, from the scenario's seed up")
    ] = 5,
    digits: Annotated[
        int, typer.Option(metavar="N", help="significant digits of the values, 1 to 4")
    ] = 2,
    settings: Set = None,
    rate: Rate = None,
    up: Up = None,
    down: Down = None,
    rtt: Rtt = None,
    buffer: Buffer = None,
    flows: Flows = None,
    as_json: Json = False,
    plot: Plot = None,
    title: Title = None,
    xlabel: XLabel = None,
    ylabel: YLabel = None,
    size: Size = None,
    style: Style = None,
    out: Annotated[
        Path | None,
        typer.Option(help="folder for the runs; runs that are there are not repeated"),
    ] = None,
    force: Force = False,
    jobs: Jobs = None,
    trust: Trust = False,
    warm_from: WarmFrom = None,
) -> None:
    """Find the largest or smallest value of a key that meets requirements.

    The value is found by doubling and bisection, with an interval over seeds.
    """
    from sojourn._util.files import check_directory, check_file
    from sojourn.scenario.draft import Draft
    from sojourn.scenario.variants import split
    from sojourn.sweeps.capacity import run_capacity
    from sojourn.sweeps.capacity_plan import make_plan, read_between, read_over

    look: Look = {"title": title, "xlabel": xlabel, "ylabel": ylabel, "size": size, "style": style}
    check_look(look, plot)
    if plot is not None:
        from sojourn.plotting.run import ENDINGS

        check_file(plot, ENDINGS)
    if out is not None:
        check_directory(out)
    options = {"rate": rate, "up": up, "down": down, "rtt": rtt, "buffer": buffer, "flows": flows}
    draft = Draft.read(file, options, trust=trust).set(settings or ())
    draft.parse()
    try:
        plan = make_plan(
            draft,
            vary,
            need,
            qdiscs=[name for names in qdisc for name in split(names)] if qdisc else None,
            link=link,
            between=read_between(between) if between else None,
            over=read_over(over) if over else None,
            find=find,
            seeds=seeds,
            digits=digits,
            trust=trust,
            warm_from=warm_from,
        )
    except InputError as error:
        own = str(error).startswith((f"{file}: ", f"{warm_from}: ", "--"))
        raise InputError(str(error) if own else f"{file}: {error}") from None
    with continuing(out):
        result = run_capacity(plan, out=out, force=force, jobs=jobs, progress=True)
    if plot is not None:
        from sojourn.plotting.capacity import draw_capacity

        draw_capacity(result, plot, **look)
    if as_json:
        print(json.dumps(result.summary(), indent=2, allow_nan=False))
    else:
        _show(result)


def _show(result: "CapacityResult") -> None:
    """Print the answers, a table, and what it does not say."""
    from sojourn._util.units import counted
    from sojourn.display.console import console
    from sojourn.display.table import Table
    from sojourn.scenario import describe

    screen = console()

    def say(text: str) -> None:
        screen.print(text, markup=False, soft_wrap=True)

    directions = {one.find for one in result.answers}
    every = f"{directions.pop()} {result.key}" if len(directions) == 1 else result.key
    screen.print(f"{every}: {result}", style="bold", markup=False, soft_wrap=True)
    say(f"that meets {' and '.join(map(str, result.needs))}\n")
    labelled, single = any(one.label for one in result.answers), len(result.needs) == 1
    names = [need.name for need in result.needs]
    heads = [*names, "at the next value"] if single else [*names, "limited by"]
    table = Table(*["", every][not labelled :], "95 % interval", *heads, left=int(labelled))
    for answer in result.answers:
        bare = answer.text.partition(" (")[0]
        value = bare if every != result.key else f"{answer.find} {bare}"
        interval = "" if answer.low is None else f"{answer.low} to {answer.high}"
        cells = [value, interval, *_estimates(result, answer)]
        table.add_row(*([answer.label] if labelled else []), *cells)
    screen.print(table, soft_wrap=True)
    for answer in result.answers:
        for remark in answer.remarks:
            say(f"{answer.label}: {remark}" if answer.label else remark)
    seeds = describe.seeds(int(result.scenario["seed"]), result.seeds)
    executed = f", {result.executed} made" if result.executed < result.runs else ""
    say(f"{seeds} per value, {counted(result.runs, 'run')}{executed}")


def _estimates(result: "CapacityResult", answer: "CapacityAnswer") -> list[str]:
    """Return the estimates of the needs at the answer, and what limits it.

    For a single need this is its estimate at the next value, otherwise the names of the needs that
    the next value does not meet.
    """
    at, following = answer.at, answer.following
    cells = []
    for n, need in enumerate(result.needs):
        value = None if at is None else at.estimates[n].value
        cells.append("-" if value is None else need.value_text(value))
    if len(result.needs) > 1:
        return [*cells, ", ".join(answer.limited_by)]
    value = None if following is None else following.estimates[0].value
    return [*cells, "-" if value is None else result.needs[0].value_text(value)]
