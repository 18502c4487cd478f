"""Replay recorded arrivals through one link: arrivals in, one decision per packet out.

The input is a packet capture, or a CSV file with the columns `i,t_us,flow,size_B[,ecn]` in time
order; `t_ns` may stand in place of `t_us`. `ecn` is the ECN field of the IP header (0 Not-ECT, 1
ECT(1), 2 ECT(0), 3 CE). The columns `HEADERS` are optional as well. Files may be gzipped.
"""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util import captures
from sojourn._util.csv_table import numbers, read_table
from sojourn._util.files import replacing
from sojourn._util.inputs import brief
from sojourn._util.lazy import Lazy
from sojourn._util.plain import plain
from sojourn._util.progress import Meter, visible
from sojourn._util.units import counted
from sojourn.result.result import Array

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")

US_MAX = 9e15
"""Latest time in microseconds: 285 years, which is below 2^63 nanoseconds."""

TIMES = ("t_us", "t_drop_us", "t_deq_us")
"""Columns of the output that hold times."""

WRITTEN = ("i", "t_us", "flow", "size_B", "dropped", "marked", "t_drop_us", "t_deq_us")
"""First columns of the output. `ecn_out` and the gauges of the discipline follow."""

UINT32_MAX = 4_294_967_295

HEADERS = {
    "dscp": (0, 63),
    "sender": (0, UINT32_MAX),
    "receiver": (0, UINT32_MAX),
    "ack": (-1, UINT32_MAX),
}
"""Optional columns with their ranges: the DSCP (class), numbers of the hosts, and the
acknowledgement number of a TCP ACK without payload (-1 for other packets)."""


@dataclass(frozen=True)
class Arrivals:
    """Recorded arrivals in order of time, one row each."""

    i: Array
    """Numbers of the packets."""
    t_ns: Array
    """Times in nanoseconds."""
    flow: Array
    """Numbers of the flows."""
    size: Array
    """Lengths in bytes."""
    ecn: Array
    """ECN fields."""
    headers: Array | None
    """The columns `HEADERS` as rows; None if the file has none of them."""
    note: str | None = None
    """Note about frames that were left out; None if nothing was."""


@dataclass(frozen=True)
class Replayed:
    """Result of a replay: one row per arrival."""

    columns: dict[str, Array]
    """Columns by name: the names in `WRITTEN`, then `ecn_out` (the ECN field with which the packet
    left or was dropped), then the gauges of the discipline."""
    diverged: Array | None
    """Mask of the arrivals whose decision differs from the recorded one; None without `follow`."""
    note: str | None = None
    """Note about frames of a capture that were left out; None if nothing was."""

    def summary(self) -> dict[str, Any]:
        """Return packet counts, queueing delays (s) and the `i` of each diverging arrival."""
        dropped, marked = self.columns["dropped"], self.columns["marked"]
        sent = self.columns["t_deq_us"] >= 0
        wait_us = (self.columns["t_deq_us"] - self.columns["t_us"])[sent]
        summary: dict[str, Any] = {
            "arrived_packets": len(dropped),
            "departed_packets": int(sent.sum()),
            "dropped_packets": int(dropped.sum()),
            "marked_packets": int(marked.sum()),
            "sojourn_mean_s": float(wait_us.mean() / 1e6) if len(wait_us) else None,
            "sojourn_max_s": float(wait_us.max() / 1e6) if len(wait_us) else None,
        }
        if self.diverged is not None:
            summary["divergences"] = self.columns["i"][self.diverged].tolist()
        return summary


def replay(
    arrivals: str | Path,
    qdisc: Mapping[str, Any],
    rate: str,
    *,
    select: captures.Selection | None = None,
    follow: str | Path | None = None,
    timer_phase: str | None = None,
    rng: str | None = None,
    htb_burst: str | None = None,
    progress: bool = False,
) -> Replayed:
    """Replay the arrivals of a file through a link.

    Parameters
    ----------
    arrivals : str or Path
        Packet capture (pcap or pcapng), or CSV file with the columns `i,t_us,flow,size_B[,ecn]`,
        or `t_ns` in place of `t_us`. Further columns, for disciplines that read them: `dscp`,
        `sender` and `receiver` (numbers of the hosts), `ack` (the acknowledgement number of a TCP
        ACK without payload, -1 for others).
    qdisc : mapping
        The discipline: its `name` and parameters.
    rate : str
        Rate of the link, like "800kbit".
    select : Selection, optional
        Packets of a capture to read: one direction, or between some hosts.
    follow : str or Path, optional
        CSV file with a column `dropped` and optionally `marked`, one row per arrival. The random
        numbers are then chosen such that the discipline repeats the recorded decisions.
    timer_phase : str, optional
        Time of the first periodic update of the discipline on the clock of the recording, like
        "3.2ms". The default is one period after the first arrival; the result is then independent
        of a shift of all arrivals in time.
    rng : str, optional
        Generator of the random numbers, "xorshift32:SEED": each comparison with a probability
        uses one number of 32 bits. For recordings of other implementations that used it. The
        default is the generator of the simulator.
    htb_burst : str, optional
        Size of a token bucket, like "1514B", that serves the queue in place of the link, as the
        shaper HTB of Linux does: after an idle time a burst leaves at once, and an empty
        discipline is not asked for a packet.
    progress : bool, optional
        True shows a progress bar on a terminal and in a notebook.

    Returns
    -------
    Replayed
        The decision about each arrival, and its times.

    Raises
    ------
    InputError
        If a file cannot be read, or a value is invalid.
    """
    recorded = read(Path(arrivals), select)
    t_ns = recorded.t_ns
    seed = None if rng is None else _seed(rng)
    dropped, marked = _decisions(Path(follow), len(t_ns)) if follow is not None else (None, None)
    lasts_s = float(t_ns[-1]) / 1e9 if len(t_ns) else 0.0
    try:
        with Meter([lasts_s], progress and visible()) as meter:
            out = _sojourn.replay(
                t_ns,
                recorded.flow.astype(np.uint32),
                recorded.size.astype(np.uint32),
                recorded.ecn.astype(np.uint8),
                json.dumps(plain(qdisc)),
                rate,
                dropped,
                marked,
                lambda share, packets: meter.update(0, share, packets),
                timer_phase,
                seed,
                htb_burst,
                recorded.headers,
            )
    except InputError as error:
        path, _, rest = str(error).partition(": ")
        own = ("rate", "timer_phase", "rng", "htb_burst")
        option = f"--{path.replace('_', '-')}" if path in own else None
        refused = f"{option}: {rest}" if option else f"--qdisc {qdisc.get('name')}: {error}"
        raise InputError(refused) from None
    columns: dict[str, Array] = {
        "i": recorded.i.astype(np.int64),
        "t_us": t_ns / 1000,
        "flow": recorded.flow.astype(np.int64),
        "size_B": recorded.size.astype(np.int64),
        "dropped": out["dropped"].astype(np.uint8),
        "marked": out["marked"].astype(np.uint8),
        "t_drop_us": _us(out["t_drop_ns"]),
        "t_deq_us": _us(out["t_deq_ns"]),
        "ecn_out": out["ecn_out"],
    }
    gauges = {k.removeprefix("gauge:"): v for k, v in out.items() if k.startswith("gauge:")}
    return Replayed({**columns, **gauges}, out.get("diverged"), recorded.note)


def read(path: Path, select: captures.Selection | None = None) -> Arrivals:
    """Read recorded arrivals from a packet capture or a CSV file.

    Parameters
    ----------
    path : Path
        The file.
    select : Selection, optional
        Packets of a capture to read. The default is all of them.

    Raises
    ------
    InputError
        If the file cannot be read or is invalid, or `select` is given for a CSV file.
    """
    if captures.is_capture(path):
        capture = captures.read(path, select)
        i = np.arange(len(capture.t_ns))
        columns = (capture.t_ns, capture.flow, capture.size, capture.ecn, capture.headers)
        return Arrivals(i, *columns, captures.note(capture))
    if select is not None and select != captures.Selection():
        raise InputError(f"{path}: is a CSV file; only packets of a capture can be selected")
    table = read_table(path, ("i", "flow", "size_B"), ("t_us", "t_ns", "ecn", *HEADERS))
    i = numbers(path, table, "i", -(2.0**53), 2.0**53)
    clock, t_ns = _times(path, table)
    flow = numbers(path, table, "flow", 0, UINT32_MAX)
    size = numbers(path, table, "size_B", 1, UINT32_MAX)
    ecn = numbers(path, table, "ecn", 0, 3) if "ecn" in table.columns else np.zeros(len(i))
    back = np.flatnonzero(np.diff(t_ns) < 0)
    if len(back):
        row = int(back[0]) + 1
        raise InputError(
            f"{path}: row {row + 1}, column {clock}: {brief(table[clock][row])} "
            "is before the row above"
        )
    return Arrivals(i, t_ns, flow, size, ecn, _headers(path, table))


def write(replayed: Replayed, path: str | Path) -> None:
    """Write the columns to a CSV file, gzipped if its name ends in .gz.

    If writing fails, an existing file stays as it was.
    """
    import polars as pl

    path = Path(path)
    columns = {
        name: _times_text(values) if name in TIMES else values
        for name, values in replayed.columns.items()
    }
    frame = pl.DataFrame(columns).with_columns(pl.col(pl.Float64).fill_nan(None))
    with replacing(path) as file:
        if path.suffix == ".gz":
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                packed.write(frame.write_csv().encode())
        else:
            file.write(frame.write_csv().encode())


def _headers(path: Path, table: "pl.DataFrame") -> Array | None:
    """Return the columns `HEADERS` as rows of an array; None if the file has none of them."""
    if not any(name in table.columns for name in HEADERS):
        return None
    absent = {"ack": -1}
    rows = [
        numbers(path, table, name, *limits)
        if name in table.columns
        else np.full(table.height, absent.get(name, 0))
        for name, limits in HEADERS.items()
    ]
    return np.array(rows).astype(np.int64)


def _times(path: Path, table: "pl.DataFrame") -> tuple[str, Array]:
    """Return the name of the column of arrival times, and the times in ns."""
    if "t_ns" not in table.columns:
        if "t_us" not in table.columns:
            raise InputError(f"{path}: column t_us is missing (or t_ns)")
        t_us = numbers(path, table, "t_us", 0, US_MAX, whole=False)
        return "t_us", np.rint(t_us * 1000).astype(np.int64)
    if "t_us" in table.columns:
        raise InputError(f"{path}: has both t_us and t_ns, leave one out")
    return "t_ns", numbers(path, table, "t_ns", 0, US_MAX).astype(np.int64)


def _seed(rng: str) -> int:
    """Return the seed of `xorshift32:SEED`."""
    name, colon, seed = rng.partition(":")
    if name.strip() != "xorshift32" or not colon:
        raise InputError(f"--rng {brief(rng)}: not a generator; write it like xorshift32:12345")
    if not (seed.isascii() and seed.isdigit() and 0 < int(seed[:20]) <= UINT32_MAX):
        raise InputError(f"--rng {brief(rng)}: the seed must be from 1 to {UINT32_MAX}")
    return int(seed)


def _decisions(path: Path, rows: int) -> tuple[Array, Array]:
    """Read recorded decisions (dropped, marked), one row per arrival."""
    table = read_table(path, ("dropped",), ("marked",))
    if table.height != rows:
        message = f"{counted(table.height, 'row')} for {counted(rows, 'arrival')}"
        raise InputError(f"{path}: {message}")
    dropped = numbers(path, table, "dropped", 0, 1).astype(np.uint8)
    if "marked" not in table.columns:
        return dropped, np.zeros(rows, np.uint8)
    return dropped, numbers(path, table, "marked", 0, 1).astype(np.uint8)


def _us(t_ns: Array) -> Array:
    """Convert ns to us; -1 (no such time) stays -1."""
    return np.where(t_ns < 0, -1.0, t_ns / 1000)


def _times_text(t_us: Array) -> list[str]:
    """Format times: as whole microseconds if all are whole, otherwise with 3 decimals."""
    decimals = 0 if np.all(np.mod(t_us, 1) == 0) else 3
    return [f"{t:.{decimals}f}" for t in t_us]
