"""Messages of a live link: description at the start, summary and accuracy report at the end."""

import math
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from sojourn._util import units
from sojourn.live import netdev
from sojourn.live.link import LinkRun, Ready
from sojourn.scenario import describe

FULL_BYTES = netdev.MTU_BYTES


def say(text: str) -> None:
    """Print a line on standard error, wrapped at spaces. Standard output belongs to the command."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        wrapped = textwrap.wrap(
            text, width, subsequent_indent="     ", break_long_words=False, break_on_hyphens=False
        )
        text = "\n".join(wrapped)
    print(text, file=sys.stderr)


def start(ready: Ready, *, shell: bool) -> None:
    """Print each direction and both ends; for a `shell`, also print how to reach other machines."""
    for name, link in ready.links.items():
        say(f"{name:4} {described(link)}")
    ends = [f"inside {ready.block.near}", f"outside {ready.block.far}"]
    if netdev.has_v6():
        ends = [
            f"inside {ready.block.near}, {netdev.v6(ready.block.near)}",
            f"outside {ready.block.far}, {netdev.v6(ready.block.far)}",
        ]
    say("; ".join(ends))
    if not ready.tun:
        say(f"ends are veth pairs: {netdev.TUN} is missing or not accessible")
    if ready.own_network:
        say("outside is a new, empty network: no right to change this one")
    if not ready.realtime:
        say("no right to real-time scheduling: packets may be milliseconds late")
    if shell:
        say_no_way_out(ready)


def say_no_way_out(ready: Ready) -> None:
    """Print how the command could reach other machines, if it cannot."""
    from sojourn.live.marks import forwards
    from sojourn.live.nat import BY_HAND

    if ready.nat or ready.own_network or forwards():
        return
    say("inside reaches only this machine; to reach others over IPv4, use --nat, or run:")
    for command in BY_HAND:
        print(f"  {command}", file=sys.stderr)


def described(link: Mapping[str, Any]) -> str:
    """Return the description of a direction: rate, delay, discipline, buffer in time, loss."""
    trace = link.get("trace", {})
    rows = next((len(c) for c in trace.values() if isinstance(c, list)), 0)
    rate_bps = units.bps_of(link["rate"])
    rate = link["rate"]
    if "opportunities_ms" in trace:
        rate = f"trace of {rows} opportunities ({units.rate(rate_bps)} on average)"
    elif "rate_bps" in trace:
        rate = f"trace of {rows} rates ({units.rate(max(trace['rate_bps']))} at most)"
    elif "process" in link:
        rate = describe.rate(link)
    delay = f"trace of {rows} delays" if "delay_ns" in trace else describe.delay(link)
    text = f"{rate}, {delay}, {describe.qdisc(link['qdisc'])}"
    limit = link["qdisc"]["limit"]
    if limit != "auto":
        count = int(limit[:-1]) * FULL_BYTES if limit.endswith("p") else units.bytes_of(limit)
        full = " of full packets" if limit.endswith("p") else ""
        at = f"at {link['rate']}" if "rate_min" in link.get("process", {}) else "at that rate"
        text += f", which is {units.duration(count * 8 / rate_bps)}{full} {at}"
    if isinstance(link["loss"], dict) and "probability" not in link["loss"]:
        text += ", bursts of loss on the wire"
    elif isinstance(link["loss"], dict):
        text += f", {units.share(link['loss']['probability'])} loss on the wire"
    elif link["loss"]:
        text += f", {units.share(link['loss'])} loss on the wire"
    for key, impairment in describe.impairments(link):
        text += f", {impairment}" if key != "loss" else ""
    return text + "; hidden queues: none"


def finish(run: LinkRun, *, quiet: bool = False) -> None:
    """Print the traffic summary and the accuracy report; with `quiet`, its warnings only."""
    if not quiet:
        _tables(run)
    for warning in run.warnings:
        say(f"not to be trusted: {warning}")
    if not run.warnings and not quiet:
        say("the processor kept up")


def _tables(run: LinkRun) -> None:
    from sojourn.display.console import console
    from sojourn.display.table import Table

    out = console(file=sys.stderr, width=None, soft_wrap=True)
    happened = Table(
        "", "sent", "utilisation", "packets", "lost", "marked", "mean delay", "50 %", "99 %"
    )
    for name, link in run.links.items():
        happened.add_row(
            name,
            _or_dash(link["sent_bps"], units.rate),
            _or_dash(link["utilisation"], units.share),
            str(link["arrived_packets"]),
            str(link["dropped_packets"] + link["lost_on_wire_packets"]),
            str(link["marked_packets"]),
            _or_dash(link["sojourn_mean_s"], units.duration),
            _or_dash(link["sojourn_p50_s"], units.duration),
            _or_dash(link["sojourn_p99_s"], units.duration),
        )
    faithful = Table("lateness", "50 %", "99 %", "max", "over 1 ms", "processor", "malformed")
    for name, link in run.links.items():
        faithful.add_row(
            name,
            _or_dash(link["lateness_p50_s"], units.duration),
            _or_dash(link["lateness_p99_s"], units.duration),
            _or_dash(link["lateness_max_s"], units.duration),
            _or_dash(link["late_share"], units.share),
            _or_dash(link["cpu_share"], units.share),
            str(link["malformed_packets"]),
        )
    out.print(happened)
    out.print(faithful)


def _or_dash(value: float | None, write: Callable[[float], str]) -> str:
    return "-" if value is None or math.isnan(value) else write(value)
