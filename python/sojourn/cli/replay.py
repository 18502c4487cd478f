"""The command `sojourn replay`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from sojourn._sojourn import InputError
from sojourn._util.plain import indented
from sojourn.cli import suggest
from sojourn.cli.options import Force, Json


def replay(
    arrivals: Annotated[
        Path,
        typer.Argument(
            help="packet capture (pcap or pcapng), or CSV with "
            "i,t_us,flow,size_B[,ecn,dscp,sender,receiver,ack], or t_ns in place of t_us",
            show_default=False,
        ),
    ],
    qdisc: Annotated[
        str,
        typer.Option(metavar="NAME", help="the discipline", autocompletion=suggest.disciplines),
    ],
    rate: Annotated[str, typer.Option(help="rate of the link, like 800kbit")],
    out: Annotated[Path, typer.Option(help="CSV file to write")],
    force: Force = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="K=V", help="set a parameter of the discipline"),
    ] = None,
    direction: Annotated[
        str | None,
        typer.Option(
            metavar="in|out|both",
            help="read the packets of a capture that came in or went out; both are one queue",
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="ADDRESS", help="read the packets of a capture from this host or /net"
        ),
    ] = None,
    destination: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="ADDRESS", help="read the packets of a capture to this host or /net"
        ),
    ] = None,
    follow: Annotated[
        Path | None, typer.Option(help="CSV with decisions (dropped, marked) to repeat")
    ] = None,
    timer_phase: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="time of the first periodic update, like 3.2ms "
            "(default: one period after the first arrival)",
        ),
    ] = None,
    rng: Annotated[
        str | None,
        typer.Option(
            metavar="xorshift32:SEED",
            help="generator of the random numbers, one 32-bit number per comparison",
        ),
    ] = None,
    htb_burst: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="serve the queue as HTB of Linux does, with this burst, like 1514B",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Send recorded arrivals through a link, and write the decisions."""
    from sojourn._util.captures import Selection
    from sojourn.engines import replay as replays
    from sojourn.result.folders import claim_table
    from sojourn.scenario.parsing import split_setting
    from sojourn.scenario.variants import table

    changes = dict(split_setting(setting) for setting in settings or ())
    if "name" in changes:
        raise InputError("--set name: use --qdisc to choose the discipline")
    try:
        qdisc_table = table(qdisc) | changes
    except InputError as error:
        raise InputError(f"--qdisc: {error}") from None
    for option, read in (("ARRIVALS", arrivals), ("--follow", follow)):
        if read is not None and out.exists() and read.exists() and out.samefile(read):
            raise InputError(f"--out {out}: this is the file of {option}")
    claim_table(out, replays.WRITTEN, force=force)
    replayed = replays.replay(
        arrivals,
        qdisc_table,
        rate,
        select=Selection(direction, source, destination),
        follow=follow,
        timer_phase=timer_phase,
        rng=rng,
        htb_burst=htb_burst,
        progress=True,
    )
    replays.write(replayed, out)
    if replayed.note is not None:
        print(f"sojourn: {arrivals}: {replayed.note}", file=sys.stderr)
    summary = replayed.summary()
    if follow is not None:
        _print_divergences(follow, summary["divergences"], len(replayed.columns["i"]))
    if as_json:
        from sojourn import __version__

        print(indented({"sojourn": __version__, "qdisc": qdisc_table, **summary}))
    else:
        from sojourn.display.summary import replay_report

        replay_report(summary, out)


def _print_divergences(follow: Path, diverged: list[int], rows: int) -> None:
    first = ", ".join(map(str, diverged[:10])) + (", ..." if len(diverged) > 10 else "")
    where = f", at i = {first}" if diverged else ""
    print(f"sojourn: {follow}: {len(diverged)} of {rows} decisions diverge{where}", file=sys.stderr)
