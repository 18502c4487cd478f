"""The command `sojourn recommend`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn.cli.options import Json, Trust

if TYPE_CHECKING:
    from sojourn.recommendation.answer import Recommendation


def recommend(
    down: Annotated[str, typer.Option(help="rate of the downlink, like 50mbit, or a trace")],
    up: Annotated[str, typer.Option(help="rate of the uplink, like 10mbit, or a trace (a file)")],
    rtt: Annotated[str, typer.Option(help="round-trip time, or a range like 20ms..120ms")],
    traffic: Annotated[
        str,
        typer.Option(help="home, office, server, datacentre, or a scenario with links up and down"),
    ] = "home",
    wanted: Annotated[
        str, typer.Option("--for", help="balance, calls, games, throughput or fairness")
    ] = "balance",
    only: Annotated[
        str | None, typer.Option(help="linux (what its tc has), or names like codel,pie")
    ] = None,
    buffer: Annotated[
        str, typer.Option(help="buffer of the present drop-tail queue, like 1000p, 250kB or 100ms")
    ] = "1000p",
    shaper: Annotated[
        bool | None,
        typer.Option("--shaper/--no-shaper", help="shape to 95 % (default: for home and office)"),
    ] = None,
    dev: Annotated[str, typer.Option(help="device of the tc commands")] = "eth0",
    trials: Annotated[int, typer.Option(help="number of trials")] = 60,
    seed: Annotated[int, typer.Option(help="seed of the search")] = 1,
    jobs: Annotated[int | None, typer.Option(min=1, help="parallel runs (default: cores)")] = None,
    out: Annotated[Path | None, typer.Option(help="table of everything tried: .parquet")] = None,
    as_json: Json = False,
    trust: Trust = False,
) -> None:
    """Recommend a discipline and its parameters for a line.

    Disciplines and parameters are searched by simulation. The answer is judged on seeds and loads
    on which nothing was tuned.
    """
    from sojourn._util.files import check_file, parquet, replacing
    from sojourn._util.inputs import check_device
    from sojourn.recommendation.answer import answer, prepare

    check_device("--dev", dev)
    if out is not None:
        check_file(out, (".parquet",))
    question = prepare(
        down, up, rtt, traffic, objective=wanted, only=only, buffer=buffer, shaper=shaper,
        trials=trials, seed=seed, trust=trust,
    )  # fmt: skip
    print("sojourn: searching; this takes seconds, or minutes for fast lines", file=sys.stderr)
    recommendation = answer(question, jobs=jobs, progress=True)
    if out is not None:
        with replacing(out) as file:
            file.write(parquet(recommendation.frame()))
    if as_json:
        print(json.dumps(recommendation.summary(), indent=2, allow_nan=False))
    else:
        _show(recommendation, dev)


def _show(recommendation: "Recommendation", dev: str) -> None:
    from textwrap import wrap

    from sojourn._util import units
    from sojourn.display.console import console
    from sojourn.display.table import Table
    from sojourn.recommendation.objective import FORMULAS
    from sojourn.recommendation.search import in_linux

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
    say(f"in both directions{shaped}; objective: {formula}, less is better\n")
    if in_linux(recommendation.qdisc["name"]):
        print(recommendation.commands(dev))
    else:
        name = recommendation.qdisc["name"]
        say(f"Linux has no qdisc for {name}: --only linux restricts the search.")
    print(f"\n{recommendation.toml()}\n")
    table = Table("", "delay, 99 %", "UDP loss", "transfer", "use of the line", "Jain")
    for label, facts in recommendation.table.items():
        table.add_row(
            label if label in recommendation.gains else "recommended",
            units.duration(facts["delay_s"]),
            units.share(facts["loss"]),
            units.duration(facts["transfer_s"]) if facts["transfer_s"] else "-",
            units.share(facts["use"]),
            f"{facts['jain']:.3f}",
        )
    screen.print(table, soft_wrap=True)
    say("\nhow sure (seeds and loads on which nothing was tuned):")
    for label, gain in recommendation.gains.items():
        verdict = (
            "better" if gain.low > 0 else "worse" if gain.high < 0 else "not clearly different"
        )
        cost = units.with_half(abs(gain.mean), gain.half)
        side = "lower" if gain.mean >= 0 else "higher"
        item(f"against {label}: {verdict}; the objective is {cost} {side} (95 % interval)")
    say("\nwhen it would be wrong:")
    for text in losses(recommendation):
        item(text)
    tried = len({trial.qdisc["name"] for trial in recommendation.tried})
    say(f"\n{len(recommendation.tried)} trials of {units.counted(tried, 'discipline')}")


def losses(recommendation: "Recommendation") -> list[str]:
    """Return, for each other discipline, the round-trip times and loads at which it is better."""
    from sojourn._util import units

    lines = []
    tested = sorted({one["rtt_s"] for one in recommendation.wins})
    span = f"{units.duration(tested[0])} to {units.duration(tested[-1])}, light to heavy load"
    for label in recommendation.gains:
        lost: list[dict[str, Any]] = [dict(one) for one in recommendation.wins if one[label] <= 0]
        if not lost:
            lines.append(f"never behind {label} at {span}")
            continue
        at = ", ".join(f"{units.duration(one['rtt_s'])} {one['load']}" for one in lost)
        lines.append(f"behind {label} at {len(lost)} of {len(recommendation.wins)} points: {at}")
    return lines
