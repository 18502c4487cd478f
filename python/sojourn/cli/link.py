"""The command `sojourn link`: options, checks, and the order of setup and reports."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn.cli import suggest

if TYPE_CHECKING:
    from sojourn.live.link import LinkRun

SAMPLE = "100ms"
"""Default sampling interval of the series."""

LOSS = "share of packets lost on the wire, like 2%, or bursts, like '{ p = 0.01, r = 0.2 }'"

JITTER = "random part of the delay, like 5ms, or '{ size = 5ms, distribution = normal }'"

OUTAGES = "times without delivery, like '[10s..11s]', or '{ up = 10s, down = 200ms }'"

NOT_EXECUTABLE, NOT_FOUND = 126, 127
"""Exit codes for commands that cannot be executed, or do not exist, as in the shell."""

Text = str | None
Words = list[str] | None


@dataclass(frozen=True)
class Outputs:
    """Displays and output files of a link."""

    watch: bool
    watch_to: Path | None
    log: Path | None
    pcap: Path | None
    packet_log: Path | None
    as_json: bool
    json_to: Path | None
    quiet: bool


def link(
    command: Annotated[
        Words, typer.Argument(help="command to run (default: a shell)", show_default=False)
    ] = None,
    rate: Annotated[Text, typer.Option(help="rate of both directions, like 10mbit")] = None,
    delay: Annotated[Text, typer.Option(help="one-way delay, like 25ms (default 0ms)")] = None,
    qdisc: Annotated[
        Text,
        typer.Option(
            metavar="NAME", help="discipline (default droptail)", autocompletion=suggest.disciplines
        ),
    ] = None,
    settings: Annotated[
        Words, typer.Option("--set", metavar="K=V", help="set a parameter of the discipline")
    ] = None,
    loss: Annotated[Text, typer.Option(help=LOSS)] = None,
    jitter: Annotated[Text, typer.Option(help=JITTER)] = None,
    reorder: Annotated[
        Text, typer.Option(help="share of packets sent without the delay, like 25%")
    ] = None,
    duplicate: Annotated[Text, typer.Option(help="share of packets that arrive twice")] = None,
    corrupt: Annotated[Text, typer.Option(help="share of packets with a wrong bit")] = None,
    outages: Annotated[Text, typer.Option(help=OUTAGES)] = None,
    slot: Annotated[
        Text, typer.Option(help="times of arrival, like '{ min = 10ms, max = 20ms }'")
    ] = None,
    in_flight_limit: Annotated[
        Text, typer.Option(help="packets behind the queue at most, like 1000p")
    ] = None,
    overhead: Annotated[
        Text, typer.Option(help="bytes of the link layer per packet, like 18 or '44 atm'")
    ] = None,
    trace: Annotated[
        Text, typer.Option(metavar="FILE", help="recorded link: CSV, or mahimahi's format")
    ] = None,
    process: Annotated[
        Text,
        typer.Option(help="random rate, like '{ every = 1s, rate_min = 5mbit, rate_max = 9mbit }'"),
    ] = None,
    profile: Annotated[
        Text,
        typer.Option(
            metavar="LINE",
            help="access line, like lte (sojourn line list); other options change it",
            autocompletion=suggest.lines,
        ),
    ] = None,
    up: Annotated[
        Words, typer.Option(metavar="K=V", help="option of the uplink only, like rate=1mbit")
    ] = None,
    down: Annotated[Words, typer.Option(metavar="K=V", help="option of the downlink only")] = None,
    nat: Annotated[
        bool,
        typer.Option(
            "--nat", help="let the command reach other machines by address translation (IPv4)"
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="show the link below the output of the command")
    ] = False,
    watch_to: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE|TTY", help="show the link on this terminal, or as lines in this file"
        ),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="write the series to this file: .jsonl or .parquet")
    ] = None,
    pcap: Annotated[
        Path | None, typer.Option(help="write the packets to this file: .pcapng")
    ] = None,
    packet_log: Annotated[
        Path | None,
        typer.Option(help="folder for up.csv and down.csv, one row per packet, for sojourn replay"),
    ] = None,
    sample: Annotated[
        Text, typer.Option(help=f"sampling interval of the series (default {SAMPLE})")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="seed of the random numbers of disciplines, loss and process")
    ] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="print a JSON object after the output of the command")
    ] = False,
    json_to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write the JSON object to this file")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="print warnings only, no description and summary")
    ] = False,
) -> int:
    """Run a command with all its traffic through an emulated link.

    Without a command, run a shell. Requires Linux.
    """
    from sojourn.cli.link_options import links_of

    if not sys.platform.startswith("linux"):
        raise InputError("link: real packets require Linux")
    shared = {"rate": rate, "delay": delay, "qdisc": qdisc, "loss": loss, "trace": trace}
    shared |= {"jitter": jitter, "reorder": reorder, "duplicate": duplicate, "corrupt": corrupt}
    shared |= {"outages": outages, "slot": slot, "in_flight_limit": in_flight_limit}
    shared |= {"overhead": overhead, "process": process}
    own = {"up": up or (), "down": down or ()}
    links = links_of(shared, settings or (), own, profile)
    run = command or [os.environ.get("SHELL") or "/bin/sh"]
    if code := _check_command(run[0]):
        return code
    outputs = Outputs(watch, watch_to, log, pcap, packet_log, as_json, json_to, quiet)
    _check_outputs(outputs, shell=not command)
    if sample is not None and not (watch or watch_to or log):
        raise InputError("--sample: has no effect without --watch, --watch-to or --log")
    _sojourn.check_sample(sample or SAMPLE)
    if nat:
        from sojourn.live.nat import check_tools

        check_tools()
    return _run(links, run, outputs, sample or SAMPLE, seed, nat=nat, shell=not command)


def _check_command(name: str) -> int:
    """Return 0, or for a command that cannot be executed the exit code, after a message."""
    from sojourn._util.inputs import brief, shown

    if shutil.which(name) is not None:
        return 0
    path = Path(name)
    if "/" not in name or not path.exists():
        print(f"sojourn: {brief(name) or shown(name)}: command not found", file=sys.stderr)
        return NOT_FOUND
    why = "is a directory" if path.is_dir() else "is not executable (chmod +x makes it so)"
    print(f"sojourn: {brief(name)}: {why}", file=sys.stderr)
    return NOT_EXECUTABLE


def _check_outputs(outputs: Outputs, *, shell: bool) -> None:
    """Raise InputError for a file that cannot be written, or is given twice."""
    from sojourn._util.files import check_directory, check_file

    if outputs.watch or outputs.watch_to:
        from sojourn.live import watch as live_watch

        live_watch.check(outputs.watch, outputs.watch_to, shell=shell)
    files: list[tuple[str, Path]] = []
    if outputs.log is not None:
        from sojourn.live.log import ENDINGS

        check_file(outputs.log, ENDINGS)
        files.append(("--log", outputs.log))
    if outputs.pcap is not None:
        check_file(outputs.pcap, (".pcapng",))
        files.append(("--pcap", outputs.pcap))
    if outputs.packet_log is not None:
        check_directory(outputs.packet_log)
        files += [("--packet-log", outputs.packet_log / f"{name}.csv") for name in ("up", "down")]
    if outputs.json_to is not None:
        check_file(outputs.json_to)
        files.append(("--json-to", outputs.json_to))
    if outputs.watch_to is not None:
        files.append(("--watch-to", outputs.watch_to))
    written: dict[Path, str] = {}
    for option, path in files:
        place = path.parent.resolve() / path.name  # a link there is replaced, not followed
        if twice := written.get(place):
            raise InputError(f"{option}: {path} is a file of {twice} as well")
        written[place] = option


def _run(
    links: dict[str, Any],
    command: list[str],
    outputs: Outputs,
    sample: str,
    seed: int,
    *,
    nat: bool,
    shell: bool,
) -> int:
    from sojourn.live import link as live_link
    from sojourn.live import netdev, shells
    from sojourn.live import summary as live_summary
    from sojourn.live.signals import requests

    line, environment = shells.interactive(command, links)
    is_shown = outputs.watch or outputs.watch_to is not None or outputs.log is not None
    with ExitStack() as stack:
        takers: list[Callable[[live_link.Rows], None]] = []
        ready_links: list[live_link.Ready] = []

        def started(ready: live_link.Ready) -> None:
            ready_links.append(ready)
            if not outputs.quiet:
                live_summary.start(ready, shell=shell)
            takers.extend(_takers(stack, outputs, links))

        def seen(rows: live_link.Rows) -> None:
            for take in takers:
                take(rows)

        with requests() as signals:
            try:
                ended = live_link.run(
                    links,
                    line,
                    signals,
                    environment=environment,
                    nat=nat,
                    terminal=shells.takes_terminal(command, shell=shell),
                    watched=outputs.watch,
                    seed=seed,
                    sample=sample if is_shown else None,
                    pcap=None if outputs.pcap is None else str(outputs.pcap),
                    packet_log=outputs.packet_log is not None,
                    started=started,
                    seen=seen if is_shown else None,
                )
            except netdev.NoRightError:
                live_link.enter_own_network(sys.argv[1:], nat=nat)
                raise
            stack.close()  # displays restore the terminal
            live_summary.finish(ended, quiet=outputs.quiet)
            is_cut_off = ended.code and not ended.links["down"]["arrived_packets"]
            if is_cut_off and not shell and not outputs.quiet:
                live_summary.say_no_way_out(ready_links[0])
    if outputs.packet_log is not None:
        from sojourn.live.log import write_packet_logs

        outputs.packet_log.mkdir(parents=True, exist_ok=True)
        write_packet_logs(outputs.packet_log, ended.packet_logs)
    _write_json(outputs, links, command, ended)
    return ended.code


def _takers(
    stack: ExitStack, outputs: Outputs, links: Mapping[str, Any]
) -> list[Callable[[Mapping[str, Any]], None]]:
    """Open the displays and logs, and return their functions that receive rows of the series."""
    takers: list[Callable[[Mapping[str, Any]], None]] = []
    if outputs.log is not None:
        from sojourn.live.log import logging

        line = ["sojourn", *sys.argv[1:]]
        takers.append(stack.enter_context(logging(outputs.log, links, line)))
    if outputs.watch or outputs.watch_to is not None:
        from sojourn.live.watch import watching

        takers.append(stack.enter_context(watching(outputs.watch_to)))
    return takers


def _write_json(
    outputs: Outputs, links: Mapping[str, Any], command: Sequence[str], ended: "LinkRun"
) -> None:
    """Print or write the command, the links and their summary as a JSON object."""
    from sojourn import __version__
    from sojourn._util.files import write_text

    report = {
        "sojourn": __version__,
        "command": command,
        "exit_code": ended.code,
        "spec": links,
        "links": ended.links,
        "trusted": not ended.warnings,
        "warnings": ended.warnings,
    }
    text = json.dumps(report, indent=2, allow_nan=False)
    if outputs.json_to is not None:
        write_text(outputs.json_to, f"{text}\n")
    if outputs.as_json:
        print(text)
