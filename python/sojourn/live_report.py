"""What a live link tells people: where it begins, how it goes, what happened."""

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.live import Live

from sojourn import describe, network, units
from sojourn.live import Played, Ready, Rows
from sojourn.tables import Table

FULL_BYTES = network.MTU_BYTES


def console() -> Console:
    """Give the console of standard error: standard output is the command's."""
    return Console(file=sys.stderr, highlight=False, soft_wrap=True)


def start(ready: Ready) -> None:
    """Say of each direction what it is, and where the two ends are."""
    out = console()
    for name, link in ready.links.items():
        out.print(f"{name:4} {_described(link)}", markup=False)
    ends = [f"inside {ready.block.near}", f"outside {ready.block.far}"]
    if network.has_v6():
        ends = [
            f"inside {ready.block.near}, {network.v6(ready.block.near)}",
            f"outside {ready.block.far}, {network.v6(ready.block.far)}",
        ]
    out.print("; ".join(ends), markup=False)
    if not ready.tun:
        out.print(f"ends of veth: {network.TUN} is missing or closed to us", markup=False)
    if ready.own_network:
        out.print("outside is a network of its own and empty: no right to this one", markup=False)
    if not ready.realtime:
        out.print(
            "no right to real-time scheduling: packets may be milliseconds late", markup=False
        )


def _described(link: Mapping[str, Any]) -> str:
    """Write a direction: rate, delay, discipline, its buffer in time, what else there is."""
    said = f"{link['rate']}, {link['delay']}, {describe.qdisc(link['qdisc'])}"
    limit, rate = link["qdisc"]["limit"], units.bps_of(link["rate"])
    count = int(limit[:-1]) * FULL_BYTES if limit.endswith("p") else units.bytes_of(limit)
    full = " of full packets" if limit.endswith("p") else ""
    said += f", which is {units.duration(count * 8 / rate)}{full} at that rate"
    if isinstance(link["loss"], dict):
        said += ", loses packets in bursts on the wire"
    elif link["loss"]:
        said += f", loses {units.share(link['loss'])} on the wire"
    if "trace" in link:
        rows = len(next(c for c in link["trace"].values() if isinstance(c, list)))
        said += f", changes by a trace of {rows} rows"
    return said + "; hidden queues: none"


def finish(played: Played) -> None:
    """Say what happened, and how far it is to be trusted."""
    out = console()
    happened = Table(
        "", "sent", "utilisation", "packets", "lost", "marked", "mean delay", "50 %", "99 %"
    )
    for name, link in played.links.items():
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
    for name, link in played.links.items():
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
    for warning in played.warnings:
        out.print(f"not to be trusted: {warning}", markup=False)
    if not played.warnings:
        out.print("the processor kept up", markup=False)


def watching() -> tuple[Live, Callable[[Rows], None]]:
    """Give a view of standard error, and what shows rows in it."""
    view = Live(console=console(), auto_refresh=False, transient=True)

    def show(rows: Rows) -> None:
        if all(len(columns["time_s"]) for columns in rows.values()):
            view.update(_now(rows), refresh=True)

    return view, show


def _now(rows: Rows) -> Table:
    """Show the last rows; what is counted is counted over all of them."""
    # So wide that nothing moves while numbers change.
    headers = ("", "sent", "queue", "delay 50 %", "99 %", "drops/s", "marks/s", "law")
    table = Table(*headers, prose=[7], least=12)
    for name, columns in rows.items():
        time_s = columns["time_s"]
        step = float(time_s[-1] - time_s[0]) / (len(time_s) - 1) if len(time_s) > 1 else 0.1
        took = step * len(time_s)

        def per_second(what: str, of: Mapping[str, Any] = columns, took: float = took) -> float:
            return float(of[what].sum()) / took

        law = [
            f"{key.removeprefix('gauge/')} {float(values[-1]):.3g}"
            for key, values in columns.items()
            if key.startswith("gauge/")
        ]
        table.add_row(
            name,
            units.rate(8 * per_second("departed_bytes")),
            f"{columns['queue_packets'][-1]} p, {columns['queue_bytes'][-1] / 1e3:.0f} kB",
            _or_dash(columns["sojourn_p50_s"][-1], units.duration),
            _or_dash(columns["sojourn_p99_s"][-1], units.duration),
            f"{per_second('dropped_packets'):.0f}",
            f"{per_second('marked_packets'):.0f}",
            ", ".join(law[:4]),
        )
    return table


def _or_dash(value: float | None, write: Callable[[float], str]) -> str:
    return "-" if value is None or math.isnan(value) else write(value)
