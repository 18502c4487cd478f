"""The command `sojourn recommend`."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn._sojourn import InputError
from sojourn.cli.options import Json, Trust

if TYPE_CHECKING:
    from sojourn.recommendation.answer import Recommendation


TIES = 6
"""Largest number of ties that are listed."""

TIMES = ("response_s", "self_s", "worst_s", "transfer_s")
"""Facts of four columns."""

COLUMNS = ("", "call, 99 %", "call loss", "new", "loaded", "worst", "page", "use", "hosts")
"""Columns of the table."""

EXPLAINED = """
call, 99 %: queueing delay of the worst call (UDP flow); new: time of a request of 1 kB on a new
connection, with its round trip; loaded: mean queueing delay of both directions, which a request on
a busy connection waits; worst: the same in the worst twentieth of a run; page: mean time of a
transfer of 50 kB; use: payload of TCP as a share of the line; hosts: Jain's index of the hosts with
bulk flows, 1 is equal"""
"""Explanation of the columns."""


def recommend(
    down: Annotated[
        str | None, typer.Option(help="rate of the downlink, like 50mbit, or a trace")
    ] = None,
    up: Annotated[
        str | None, typer.Option(help="rate of the uplink, like 10mbit, or a trace (a file)")
    ] = None,
    rtt: Annotated[
        str | None, typer.Option(help="round-trip time, or a range like 20ms..120ms")
    ] = None,
    line: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="scenario of the line, as sojourn line measure --out writes it, in place of "
            "--down, --up, --rtt and --buffer",
        ),
    ] = None,
    traffic: Annotated[
        str,
        typer.Option(help="home, office, server, datacentre, or a scenario with links up and down"),
    ] = "home",
    wanted: Annotated[
        str | None,
        typer.Option(
            "--for",
            help="home, office, server, datacentre, calls, games, throughput or fairness (default: "
            "as --traffic)",
        ),
    ] = None,
    only: Annotated[
        str | None, typer.Option(help="linux (what its tc has), or names like codel,pie")
    ] = None,
    buffer: Annotated[
        str | None,
        typer.Option(
            help="buffer of the present drop-tail queue, like 250kB or 100ms, or 50ms/150ms for "
            "down and up (default: 1000p)"
        ),
    ] = None,
    shaper: Annotated[
        bool | None,
        typer.Option("--shaper/--no-shaper", help="shape to 95 % (default: for home and office)"),
    ] = None,
    dev: Annotated[str, typer.Option(help="device of the tc commands")] = "eth0",
    link_layer: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="overhead of the line: docsis, adsl-pppoe, gpon, ..."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="print the setting alone, for shell, sqm, networkd, networkmanager, routeros or "
            "libreqos",
        ),
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="print the commands that undo those for --dev, and stop")
    ] = False,
    seed: Annotated[int, typer.Option(help="seed of the search")] = 1,
    jobs: Annotated[int | None, typer.Option(min=1, help="parallel runs (default: cores)")] = None,
    out: Annotated[Path | None, typer.Option(help="table of everything tried: .parquet")] = None,
    open_browser: Annotated[
        bool,
        typer.Option("--open", help="then open the line with the answer in the playground"),
    ] = False,
    as_json: Json = False,
    trust: Trust = False,
) -> None:
    """Recommend a discipline and its parameters for a line.

    Defaults win unless a round value gains more than 5 % on seeds and loads on which nothing was
    chosen. The commands can be run again and be undone.
    """
    from sojourn._util.files import check_file, parquet, replacing
    from sojourn._util.inputs import check_device, shown
    from sojourn.cli.playground import page_files, serve
    from sojourn.recommendation import script
    from sojourn.recommendation.answer import answer, prepare
    from sojourn.recommendation.configuration import FORMATS

    check_device("--dev", dev)
    if form is not None and form not in FORMATS:
        raise InputError(f"--format: {shown(form)} is none of {', '.join(FORMATS)}")
    if form is not None and (as_json or open_browser):
        raise InputError("--format: prints the setting alone, without --json and --open")
    if out is not None:
        check_file(out, (".parquet",))
    values = {"down": down, "up": up, "rtt": rtt, "buffer": buffer}
    question = prepare(
        **_described(line, values), traffic=traffic, objective=wanted, only=only, shaper=shaper,
        link_layer=link_layer, seed=seed, trust=trust,
    )  # fmt: skip
    if undo:
        lines = script.undo(dev, script.ifb_name(dev), shaped=question.line.shaped)
        print("\n".join(lines))
        return
    if open_browser and as_json:
        raise InputError("--open: prints an address, so it cannot be combined with --json")
    # Before the search, so that a page that was not built is noticed at once.
    page = page_files() if open_browser else {}
    print("sojourn: searching; this takes seconds, or minutes for fast lines", file=sys.stderr)
    recommendation = answer(question, jobs=jobs, progress=True)
    if out is not None:
        with replacing(out) as file:
            file.write(parquet(recommendation.frame()))
    if as_json:
        print(json.dumps(recommendation.summary(), indent=2, allow_nan=False))
    elif form is not None:
        print(recommendation.configuration(form, dev))
    else:
        _show(recommendation, dev)
    if open_browser:
        serve({**page, "/scenario.json": _scenario(recommendation)}, open_browser=True)


def _described(file: Path | None, values: Mapping[str, str | None]) -> dict[str, str]:
    """Return rates, round-trip time and buffer: given values, then the file, then the default."""
    from sojourn.line.model import options

    known = {"buffer": "1000p", **(options(file) if file is not None else {})}
    words = {**known, **{key: text for key, text in values.items() if text is not None}}
    missing = next((key for key in ("down", "up", "rtt") if key not in words), None)
    if missing:
        raise InputError(
            f"--{missing}: is missing; or give --line FILE with a scenario of the line"
        )
    return words


PLAYED = "600s"
"""Duration of a scenario in the playground, which runs it until it is stopped."""


def _scenario(recommendation: "Recommendation") -> bytes:
    """Return the line with the answer as the playground reads a scenario."""
    scenario = {**recommendation.scenario(), "duration": PLAYED}
    for key in ("sample", "sample_flows"):
        del scenario[key]
    return json.dumps({"name": "recommendation", "scenario": scenario}).encode()


def _show(recommendation: "Recommendation", dev: str) -> None:
    from textwrap import wrap

    from sojourn._util import units
    from sojourn.display.console import console
    from sojourn.display.table import Table
    from sojourn.recommendation.objective import FORMULAS
    from sojourn.recommendation.settings import in_linux
    from sojourn.scenario.variants import labels

    screen = console()

    def say(text: str = "") -> None:
        screen.print(text, markup=False)

    def item(text: str) -> None:
        for line in wrap(text, screen.width, initial_indent="  ", subsequent_indent="    "):
            say(line)

    screen.print(next(iter(recommendation.table)), style="bold", markup=False)
    shaped = (
        ", shaped to 95 % of the line"
        if recommendation.line.shaped
        else ", at the rate of the line"
    )
    formula = FORMULAS[recommendation.objective]
    say(f"in both directions{shaped}; {recommendation.deviation}")
    if equal := recommendation.ties:
        names = ", ".join(labels(equal[:TIES]))
        more = f" and {len(equal) - TIES} more" if len(equal) > TIES else ""
        say(f"no clear difference (within 5 %): {names}{more}")
    say(f"objective: {formula}; less is better\n")
    if in_linux(recommendation.qdisc["name"]):
        print(recommendation.commands(dev))
    else:
        name = recommendation.qdisc["name"]
        say(f"Linux has no qdisc for {name}: --only linux restricts the search.")
    print(f"\n{recommendation.toml()}\n")
    table = Table(*COLUMNS)
    for label, facts in recommendation.table.items():
        table.add_row(
            label if label in recommendation.gains else "recommended",
            units.duration(facts["delay_s"]),
            units.share(facts["loss"]),
            *(units.duration(facts[key]) if facts[key] else "-" for key in TIMES),
            units.share(facts["use"]),
            f"{facts['hosts']:.3f}",
        )
    screen.print(table, soft_wrap=True)
    say(EXPLAINED)
    say("\nhow sure (seeds and loads on which nothing was chosen):")
    for label, gain in recommendation.gains.items():
        verdict = (
            "better" if gain.low > 0 else "worse" if gain.high < 0 else "not clearly different"
        )
        cost = units.with_half(abs(gain.mean), gain.half)
        side = "lower" if gain.mean >= 0 else "higher"
        item(f"against {label}: {verdict}; the objective is {cost} {side} (95 % interval)")
    say("\nwhen it would be wrong:")
    for text in losses(recommendation.wins, [*recommendation.gains]):
        item(text)
    tried = len({trial.qdisc["name"] for trial in recommendation.tried})
    say(f"\n{len(recommendation.tried)} settings of {units.counted(tried, 'discipline')}")


def losses(wins: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> list[str]:
    """Return, for each other discipline, the round-trip times and loads at which it is better.

    `wins` are the tests of the range, `labels` the names of the other disciplines.
    """
    from sojourn._util import units

    lines = []
    tested = sorted({one["rtt_s"] for one in wins})
    span = f"{units.duration(tested[0])} to {units.duration(tested[-1])}, light to heavy load"
    for label in labels:
        lost = [one for one in wins if one[label] <= 0]
        if not lost:
            lines.append(f"never behind {label} at {span}")
            continue
        at = ", ".join(f"{units.duration(one['rtt_s'])} {one['load']}" for one in lost)
        lines.append(f"behind {label} at {len(lost)} of {len(wins)} points: {at}")
    return lines
