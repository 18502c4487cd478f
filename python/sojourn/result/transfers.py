"""Finished transfers as tables, and their slowdowns by the definitions of papers.

Simulators of data centres divide the completion time of a transfer by an ideal. They differ in
the end of the transfer (the last byte at the receiver, or the last ack at the sender), in headers,
and in the handshake. Here a flow has the packets of its TCP, and the links of its path.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from sojourn._sojourn import InputError
from sojourn._util.files import check_file, replacing, write_text
from sojourn._util.inputs import near, shown
from sojourn._util.lazy import Lazy
from sojourn._util.paths import host_of, path_of
from sojourn._util.public import public
from sojourn._util.units import bytes_of
from sojourn.result.ideal import Line, completion_times_s, line_of, numbers_of
from sojourn.result.result import Array, Result
from sojourn.result.select import completed, declared

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")

Definition: TypeAlias = Literal["alone", "hpcc", "pfabric", "homa"]
"""Definition of a slowdown."""

DEFINITIONS = ("alone", "hpcc", "pfabric", "homa")
"""All definitions; `fct_table` describes them."""

ENDINGS = (".csv", ".parquet", ".txt")
"""Endings of files of `write_fct`; .txt is HPCC's format."""

HPCC_PACKET = 1000
"""Bytes of the packet of HPCC's base round-trip time."""

ACK = 40
"""Bytes of an acknowledgement of pFabric's simulator."""

FRAME = 18
"""Bytes of an Ethernet frame around the IP packet, in Homa's definition."""

FRAME_MIN = 64
"""Smallest Ethernet frame, bytes."""

PREAMBLE = 20
"""Bytes of preamble and gap between frames."""


@public
def fct_table(
    result: Result, group: str | None = None, definition: Definition = "alone"
) -> "pl.DataFrame":
    """Return a row per finished transfer that started after the warm-up, in order of starts.

    Parameters
    ----------
    result : Result
        Result of a run.
    group : str, optional
        Group of flows; by default all.
    definition : {"alone", "hpcc", "pfabric", "homa"}, optional
        Definition of the ideal. "alone": a lone transfer that no window limits, with its handshake
        (`metrics.slowdowns`). "hpcc": twice the delays of the path, one packet of 1000 bytes by
        each link, and all bytes with headers by the slowest link; the transfer ends with the last
        ack at the sender, and slowdowns below 1 are 1. "pfabric": twice the delays, all bytes with
        headers by the first link, an ack of 40 bytes, and with more than two links the first packet
        by the second link; it ends at the sender. "homa": one way, in Ethernet frames with preamble
        and gap by the first link, and the first frame by each other link; it ends at the receiver.

    Returns
    -------
    polars.DataFrame
        Columns `flow`, `group`, `sender`, `receiver` (null without names), `bytes`, `start_s`,
        `fct_s` (by the definition), `ideal_s` and `slowdown`. `to_pandas()` converts it.

    Raises
    ------
    InputError
        If a link has delivery opportunities in place of a rate, or the definition is unknown.

    Notes
    -----
    The end at the sender is the end at the receiver and the time of an ack on the empty way back.
    """
    done = completed(result, group)
    order = np.argsort(done["start_s"], kind="stable")
    done = {name: column[order] for name, column in done.items()}
    flows, numbers = list(result.flows.values()), numbers_of(result)
    ends: dict[int, tuple[str | None, str | None]] = {}
    for place in np.unique(done["flow"]):
        flow = flows[place]
        table, i = declared(result, flow["group"]), numbers[flow["name"]]
        ends[int(place)] = (host_of(table, i, "sender"), host_of(table, i, "receiver"))
    took, ideal = _times(result, done, definition)
    slowdown = np.divide(took, ideal, out=np.ones(len(took)), where=ideal > 0)
    return pl.DataFrame(
        {
            "flow": [flows[i]["name"] for i in done["flow"]],
            "group": [flows[i]["group"] for i in done["flow"]],
            "sender": [ends[int(i)][0] for i in done["flow"]],
            "receiver": [ends[int(i)][1] for i in done["flow"]],
            "bytes": done["bytes"].astype(np.uint64),
            "start_s": done["start_s"],
            "fct_s": took,
            "ideal_s": ideal,
            "slowdown": np.maximum(slowdown, 1.0) if definition == "hpcc" else slowdown,
        },
        schema_overrides=dict.fromkeys(("flow", "group", "sender", "receiver"), pl.String),
    )


def _times(result: Result, done: dict[str, Array], definition: str) -> tuple[Array, Array]:
    """Return completion times and ideals (s) of finished transfers by a definition."""
    if definition not in DEFINITIONS:
        raise InputError(f"definition: unknown {shown(definition)}{near(definition, DEFINITIONS)}")
    if definition == "alone":
        return done["duration_s"], completion_times_s(result, done)
    ideal_of: Callable[..., Array] = {"hpcc": _hpcc, "pfabric": _pfabric, "homa": _homa}[definition]
    took, ideal = done["duration_s"].copy(), np.zeros(len(done["flow"]))
    flows, numbers = list(result.flows.values()), numbers_of(result)
    lines: dict[str, Line] = {}
    for place in np.unique(done["flow"]):
        mine = done["flow"] == place
        flow = flows[place]
        group = declared(result, flow["group"])
        i = numbers[flow["name"]]
        there = [lines.setdefault(name, line_of(result, name)) for name in path_of(group, i)]
        return_path = path_of(group, i, "return_path")
        back = [lines.setdefault(name, line_of(result, name)) for name in return_path]
        header = bytes_of(group["tcp"]["header"])
        payload = bytes_of(group["tcp"]["packet"]) - header
        way = sum(line.delay_s for line in there)
        ack_s = sum(8 * header / line.bps for line in back) + flow["rtt_s"] - way
        if definition != "homa":
            took[mine] += ack_s
        sizes = done["bytes"][mine].astype(float)
        ideal[mine] = ideal_of(there, flow["rtt_s"], sizes, payload, header)
    return took, ideal


def _hpcc(there: Sequence[Line], rtt_s: float, size: Array, payload: int, header: int) -> Array:
    base = rtt_s + sum(8 * HPCC_PACKET / line.bps for line in there)
    packets = np.ceil(size / payload)
    time: Array = base + 8 * (size + packets * header) / min(line.bps for line in there)
    return time


def _pfabric(there: Sequence[Line], rtt_s: float, size: Array, payload: int, header: int) -> Array:
    packets = np.ceil(size / payload)
    first = 8 * (np.minimum(size, payload) + header)
    bits = 8 * (size + packets * header)
    again = first / there[1].bps if len(there) > 2 else np.zeros(len(size))
    time: Array = rtt_s + (bits + 8 * ACK) / there[0].bps + again
    return time


def _homa(there: Sequence[Line], rtt_s: float, size: Array, payload: int, header: int) -> Array:
    def frame(data: Array) -> Array:
        bits: Array = 8 * (np.maximum(data + header + FRAME, FRAME_MIN) + PREAMBLE)
        return bits

    packets = np.ceil(size / payload)
    full = frame(np.full(len(size), float(payload)))
    bits = (packets - 1) * full + frame(size - (packets - 1) * payload)
    first = frame(np.minimum(size, payload))
    time: Array = sum(line.delay_s for line in there) + bits / there[0].bps
    return time + sum((first / line.bps for line in there[1:]), np.zeros(len(size)))


def check_fct(path: Path) -> None:
    """Raise InputError if `write_fct` cannot write to `path`."""
    check_file(path, ENDINGS)


@public
def write_fct(result: Result, path: str | Path, definition: Definition | None = None) -> None:
    """Write the finished transfers of a run.

    Parameters
    ----------
    result : Result
        Result of a run.
    path : str or Path
        A .csv or .parquet file with the columns of `fct_table`, or a .txt file in the format of
        HPCC's simulator, which its scripts read.
    definition : {"alone", "hpcc", "pfabric", "homa"}, optional
        Definition of the ideal; by default "alone", and HPCC's for a .txt file.

    Raises
    ------
    InputError
        As for `fct_table`, or if the file cannot be written.

    Notes
    -----
    A line of HPCC has the addresses of sender and receiver in hexadecimal digits, source and
    destination port, bytes, start, completion time and ideal in nanoseconds, in the order of the
    ends. The number of a host is the number in its name; hosts with other names count from 0. The
    destination port is the `receiver_port` of the group, or 100.
    """
    path = Path(path)
    check_fct(path)
    if path.suffix == ".txt":
        if definition not in (None, "hpcc"):
            raise InputError(f"{path}: HPCC's format has the definition hpcc")
        write_text(path, hpcc_text(result))
        return
    frame = fct_table(result, definition=definition or "alone")
    with replacing(path) as file:
        if path.suffix == ".csv":
            frame.write_csv(file)
        else:
            frame.write_parquet(file)


def hpcc_text(result: Result) -> str:
    """Return the finished transfers in the format of HPCC's simulator."""
    frame = fct_table(result, definition="hpcc").with_row_index("row")
    numbers: dict[str, int] = {}

    def address(host: str | None, flow: str, end: str) -> str:
        name = host or f"{flow}.{end}"
        if name[:1] == "h" and name[1:].isdecimal():
            number = int(name[1:])
        else:
            number = numbers.setdefault(name, len(numbers))
        return f"{0x0B000001 + (number // 256 << 16) + (number % 256 << 8):08x}"

    ports = {flow["name"]: flow.get("receiver_port", 100) for flow in result.scenario["flows"]}
    rows: list[tuple[int, str]] = []
    for one in frame.iter_rows(named=True):
        start, took, ideal = (round(one[key] * 1e9) for key in ("start_s", "fct_s", "ideal_s"))
        words: list[Any] = [
            address(one["sender"], one["flow"], "sender"),
            address(one["receiver"], one["flow"], "receiver"),
            10_000 + one["row"] % 50_000,
            ports[one["group"]],
            one["bytes"],
            start,
            took,
            ideal,
        ]
        rows.append((start + took, " ".join(map(str, words))))
    rows.sort(key=lambda row: row[0])
    return "".join(f"{line}\n" for _, line in rows)
