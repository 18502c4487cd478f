"""Recordings of Linux: arrivals, fates and departures, as lab/vectors/README-linux.md says."""

import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from sojourn.result.result import Array
from sojourn_lab import ROOT

VECTORS = ROOT / "lab/vectors/linux"

SENT, MARKED, DROPPED = 0, 1, 2
"""Fates of a packet."""


@dataclass(frozen=True)
class Recording:
    """Packets in order of arrival."""

    t_ns: Array
    """Arrival times."""
    flow: Array
    size: Array
    """Lengths of the frames, bytes."""
    ecn: Array
    """ECN fields at arrival."""
    fate: Array
    """`SENT`, `MARKED` or `DROPPED`."""
    out_ns: Array
    """Start of transmission, -1 for a drop."""


@cache
def recording(name: str) -> Recording:
    """Read a recording."""
    with gzip.open(VECTORS / f"{name}.csv.gz", "rt") as file:
        file.readline()
        rows = [[int(cell or 0) for cell in line.strip().split(",")] for line in file]
    gap, flow, size, ecn, fate, out = np.array(rows, dtype=np.int64).T
    sent = fate != DROPPED
    return Recording(
        t_ns=np.cumsum(gap),
        flow=flow,
        size=size,
        ecn=ecn,
        fate=fate,
        out_ns=np.where(sent, np.cumsum(out), -1),
    )


def store(name: str, rows: Recording) -> None:
    """Write a recording, equal bytes for an equal one."""
    lines = ["dt,flow,len,ecn,fate,dsent"]
    arrived = left = 0
    columns = (rows.t_ns, rows.flow, rows.size, rows.ecn, rows.fate, rows.out_ns)
    for at, flow, size, ecn, fate, out_ns in zip(*(v.tolist() for v in columns), strict=True):
        out = "" if fate == DROPPED else str(out_ns - left)
        lines.append(f"{at - arrived},{flow},{size},{ecn},{fate},{out}")
        arrived, left = at, left if fate == DROPPED else out_ns
    write(VECTORS / f"{name}.csv.gz", lines)


def write(path: Path, lines: Iterable[str]) -> None:
    """Write a gzipped file, equal bytes for equal lines."""
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(("\n".join(lines) + "\n").encode())


@cache
def probabilities(name: str) -> tuple[Array, Array]:
    """Return the times (ns) at which a changed probability was seen, and the values (2^-32)."""
    with gzip.open(VECTORS / f"{name}.p.csv.gz", "rt") as file:
        file.readline()
        rows = [[int(cell) for cell in line.strip().split(",")] for line in file]
    times, values = np.array(rows, dtype=np.int64).T
    return times, values
