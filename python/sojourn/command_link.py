"""The command `sojourn link`: from its options to links, and to what is told of them."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from sojourn._sojourn import InputError

KEYS = ("rate", "delay", "qdisc", "loss", "trace")
"""What a direction has."""

Text = str | None
Words = list[str] | None


def link(
    command: Annotated[
        Words, typer.Argument(help="what to run inside (default: a shell)", show_default=False)
    ] = None,
    rate: Annotated[Text, typer.Option(help="of both directions, like 10mbit")] = None,
    delay: Annotated[Text, typer.Option(help="one way, like 25ms (default 0ms)")] = None,
    qdisc: Annotated[Text, typer.Option(metavar="NAME", help="default droptail")] = None,
    settings: Annotated[
        Words, typer.Option("--set", metavar="K=V", help="a parameter of the discipline")
    ] = None,
    loss: Annotated[Text, typer.Option(help="chance that the wire loses a packet")] = None,
    trace: Annotated[
        Text, typer.Option(metavar="FILE", help="recorded rates, or mahimahi's format")
    ] = None,
    up: Annotated[
        Words, typer.Option(metavar="K=V", help="of the way up alone, like rate=1mbit")
    ] = None,
    down: Annotated[Words, typer.Option(metavar="K=V", help="of the way down alone")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="show it while it goes")] = False,
    log: Annotated[
        Path | None, typer.Option(help="write the series there: .jsonl or .parquet")
    ] = None,
    pcap: Annotated[Path | None, typer.Option(help="write the packets there: .pcapng")] = None,
    tape: Annotated[
        Path | None,
        typer.Option(help="write a row per packet there, up.csv and down.csv, for sojourn replay"),
    ] = None,
    sample: Annotated[str, typer.Option(help="from one row of the series to the next")] = "100ms",
    seed: Annotated[int, typer.Option(help="of the dice of laws and wires")] = 1,
    as_json: Annotated[
        bool, typer.Option("--json", help="print one JSON object at the end")
    ] = False,
) -> int:
    """Run a command, or a shell, whose traffic crosses a link in both directions (Linux)."""
    from sojourn.inputs import brief
    from sojourn.output import check_directory, check_file

    if not sys.platform.startswith("linux"):
        raise InputError("link: real packets take Linux")
    shared = {"rate": rate, "delay": delay, "qdisc": qdisc, "loss": loss, "trace": trace}
    links = _links(shared, settings or (), {"up": up or (), "down": down or ()})
    run = command or [os.environ.get("SHELL") or "/bin/sh"]
    if shutil.which(run[0]) is None:
        raise InputError(f"{brief(run[0])}: there is no such command")
    if watch and (not command or not sys.stderr.isatty()):
        raise InputError("--watch: it takes a COMMAND, and a terminal as standard error")
    if log is not None:
        from sojourn.live_log import ENDINGS

        check_file(log, ENDINGS)
    if pcap is not None:
        check_file(pcap, (".pcapng",))
    if tape is not None:
        check_directory(tape)
    return _play(links, run, watch, log, pcap, tape, sample, seed, as_json)


def _play(
    links: dict[str, Any],
    command: list[str],
    watch: bool,
    log: Path | None,
    pcap: Path | None,
    tape: Path | None,
    sample: str,
    seed: int,
    as_json: bool,
) -> int:
    from sojourn import live, live_report, network

    with ExitStack() as stack:
        takers: list[Callable[[live.Rows], None]] = []
        if log is not None:
            from sojourn.live_log import logging

            takers.append(stack.enter_context(logging(log, links, ["sojourn", *sys.argv[1:]])))
        if watch:
            view, show = live_report.watching()
            takers.append(show)
            stack.enter_context(view)

        def seen(rows: live.Rows) -> None:
            for take in takers:
                take(rows)

        try:
            played = live.play(
                links,
                command,
                seed=seed,
                sample=sample,
                pcap=None if pcap is None else str(pcap),
                tape=tape is not None,
                started=live_report.start,
                seen=seen,
            )
        except network.NoRightError:
            live.enter_own_network(sys.argv[1:])
            raise
    if tape is not None:
        from sojourn.live_log import write_tapes

        tape.mkdir(parents=True, exist_ok=True)
        write_tapes(tape, played.tapes)
    live_report.finish(played)
    if as_json:
        from sojourn import __version__

        told = {
            "sojourn": __version__,
            "command": command,
            "exit_code": played.code,
            "spec": links,
            "links": played.links,
            "trusted": not played.warnings,
            "warnings": played.warnings,
        }
        print(json.dumps(told, indent=2, allow_nan=False))
    return played.code


def _links(
    shared: dict[str, str | None], settings: Sequence[str], own: dict[str, Sequence[str]]
) -> dict[str, Any]:
    """Give the canonical links that the options mean; Rust judges their values."""
    from sojourn import _sojourn
    from sojourn.disciplines import table
    from sojourn.inputs import brief
    from sojourn.scenario import plain
    from sojourn.settings import read_value, split_setting

    given = {key: read_value(text) for key, text in shared.items() if text is not None}
    tree: dict[str, dict[str, Any]] = {}
    for name, changes in own.items():
        tree[name] = {**given}
        if settings:
            parameters = dict(split_setting(setting) for setting in settings)
            tree[name]["qdisc"] = table(given.get("qdisc", "droptail")) | parameters
        for change in changes:
            with _about(f"--{name} {brief(change)}"):
                key, value = split_setting(change)
                _change(tree[name], key, value)
        with _about(f"--{name}" if changes else ""):
            _resolve(tree[name])
            one = json.loads(_sojourn.canonical_links(json.dumps(plain({name: tree[name]}))))
            tree[name] = one[name]
    return tree


def _change(link: dict[str, Any], key: str, value: Any) -> None:
    """Change what a direction has: a key of it, or a parameter of its discipline."""
    from sojourn.disciplines import table
    from sojourn.inputs import near, shown

    first, _, parameter = key.partition(".")
    if first not in KEYS or (parameter and first != "qdisc"):
        raise InputError(f"unknown key {shown(key)}{near(key, KEYS)}")
    if not parameter:
        link[key] = value
        return
    qdisc = link.get("qdisc", "droptail")
    link["qdisc"] = table(qdisc) | {parameter: value}


def _resolve(link: dict[str, Any]) -> None:
    """Read the trace of a direction; the highest rate of it is the rate where none is given."""
    from sojourn import link_trace

    if "trace" in link:
        try:
            link["trace"] = link_trace.resolve(link["trace"])
        except InputError as error:
            raise InputError(f"trace: {error}") from None
        rate = _rate_of(link["trace"]) if isinstance(link["trace"], dict) else None
        if "rate" not in link and rate:
            link["rate"] = f"{rate}bit"


def _rate_of(trace: dict[str, Any]) -> int | None:
    """Give the highest rate of a trace, or the mean one of delivery opportunities."""
    from sojourn.link_trace import FULL_PACKET_BYTES

    if moments := trace.get("opportunities_ms"):
        return len(moments) * FULL_PACKET_BYTES * 8000 // max(1, int(moments[-1]))
    rates: list[int] = trace.get("rate_bps") or [0]
    return max(rates)


@contextmanager
def _about(option: str) -> Iterator[None]:
    """Put before an error which option it is about; where that is open, its own path tells."""
    try:
        yield
    except InputError as error:
        text = str(error).removeprefix("up.").removeprefix("down.")
        text = text.partition(": ")[2] if text.startswith("--set ") else text
        if option:
            raise InputError(f"{option}: {text}") from None
        text = f"--set {text[6:]}" if text.startswith("qdisc.") else f"--{text}"
        raise InputError(text) from None
