"""One recording through our discipline: equal packets, the first difference, and totals."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sojourn import _sojourn
from sojourn.result.result import Array
from sojourn_lab.validation.linux.recordings import (
    DROPPED,
    MARKED,
    Recording,
    probabilities,
    recording,
)
from sojourn_lab.validation.linux.timer import Controller, updates


@dataclass(frozen=True)
class Header:
    """Fields of the header of a flow's packets."""

    dscp: int = 0
    sender: int = 0
    """Number of the host."""
    receiver: int = 0


@dataclass(frozen=True)
class Case:
    """A recording and our discipline for it."""

    name: str
    """Name of the recording."""
    tc: str
    """Words after `tc qdisc add dev ... `."""
    qdisc: Mapping[str, Any]
    """Our discipline."""
    rate: str = "10mbit"
    htb_burst: str | None = "1514B"
    """Burst of HTB, None if the discipline has no shaper above it."""
    seed: int | None = None
    """Seed of xorshift32."""
    phase_ns: int | None = None
    """Time of the first periodic update."""
    timer: Controller | None = None
    """Controller whose updates are made at the times that follow from the recorded probability."""
    frames: Sequence[int] = ()
    """Arrival times (ns) of frames that the recording does not list: ARP, 42 bytes."""
    headers: Mapping[int, Header] = field(default_factory=dict)
    """Headers by flow, for disciplines that read them; flow 0 has the header of `frames`."""
    clock_ns: int = 0
    """Time of the kernel's clock at the start of the recording, modulo its unit."""
    ends_ns: int | None = None
    """End of the recording: packets that leave later are listed as dropped."""
    late_timers: bool = False
    """True if departures are delayed as the recorded ones, by less than 1 us."""
    monitored: str = ""
    """Our variable for the probability, if it was recorded."""
    follows: bool = False
    """True if the random numbers are chosen such that the recorded decisions are repeated."""
    cause: str = ""
    """Cause of the first difference that is left."""
    recorded: Recording | None = None
    """The recording, if it is none of the stored ones."""

    @property
    def recording(self) -> Recording:
        """The recording."""
        return recording(self.name) if self.recorded is None else self.recorded


ARP_BYTES = 42

ACK_BYTES, ACK_STEP = 66, 2896
"""Length of a TCP ACK, and the difference of the numbers of consecutive ones."""


@dataclass(frozen=True)
class Compared:
    """A recording and our replay of it."""

    case: Case
    theirs: Recording
    dropped: Array
    marked: Array
    out_ns: Array
    gauges: Mapping[str, Array] = field(default_factory=dict)

    @cached_property
    def differing(self) -> Array:
        """Rows whose fate differs."""
        drop, mark = self.theirs.fate == DROPPED, self.theirs.fate == MARKED
        return np.flatnonzero((drop != self.dropped) | (mark != self.marked))

    @property
    def prefix(self) -> int:
        """Number of packets before the first one whose fate differs."""
        return int(self.differing[0]) if len(self.differing) else len(self.dropped)

    @property
    def latest_ns(self) -> int:
        """Largest difference of a departure time in the equal prefix, ns."""
        before = np.arange(len(self.dropped)) < self.prefix
        sent = before & (self.theirs.out_ns >= 0) & (self.out_ns >= 0)
        return int(np.abs(self.theirs.out_ns - self.out_ns)[sent].max(initial=0))

    @property
    def totals(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Dropped packets, theirs and ours; marked packets, theirs and ours."""
        fate = self.theirs.fate
        drops = (int((fate == DROPPED).sum()), int(self.dropped.sum()))
        return drops, (int((fate == MARKED).sum()), int(self.marked.sum()))

    @property
    def probability_error(self) -> float | None:
        """Largest difference of p' in the equal prefix, in units of 2^-32; None if not recorded.

        Compared at arrivals, with the last value that the monitor saw. It reads once per
        millisecond, so arrivals less than that after a change are left out.
        """
        if not self.case.monitored or self.prefix == 0:
            return None
        times, values = probabilities(self.case.name)
        at = self.theirs.t_ns[: self.prefix]
        last = np.searchsorted(times, at, side="right") - 1
        following = np.append(times, np.iinfo(np.int64).max)[last + 1]
        known = (last >= 0) & (following - at > 1_000_000)
        ours = self.gauges[self.case.monitored][: self.prefix] * 0xFFFF_FFFF
        return float(np.abs(ours - values[last])[known].max(initial=0))


def compared(case: Case, *, frames: bool = True, gauges: bool = False) -> Compared:
    """Replay a recording; without `frames`, only the packets that it lists.

    Internal variables are read if `gauges`, or if the recording has one of them.
    """
    out, listed = replayed(case, frames=frames, gauges=gauges or bool(case.monitored))
    theirs = case.recording
    values = {k.removeprefix("gauge:"): v[listed] for k, v in out.items() if "gauge:" in k}
    dropped, left = out["dropped"][listed], out["t_deq_ns"][listed]
    # A packet may be marked and then dropped, by BLUE of cake.
    marked = out["marked"][listed] & ~dropped.astype(bool)
    out_ns = np.where(left >= 0, left - case.clock_ns, -1)
    if case.ends_ns is not None:
        unseen = out_ns >= case.ends_ns
        dropped, marked, out_ns = dropped | unseen, marked & ~unseen, np.where(unseen, -1, out_ns)
    return Compared(case, theirs, dropped, marked, out_ns, values)


def replayed(
    case: Case, *, frames: bool = True, gauges: bool = False
) -> tuple[dict[str, Array], Array]:
    """Replay a recording; return the columns, and where a row is one of the recording."""
    theirs = case.recording
    times = np.array(case.frames if frames else (), dtype=np.int64)
    at = np.searchsorted(theirs.t_ns, times)
    listed = np.ones(len(theirs.t_ns) + len(times), dtype=bool)
    listed[at + np.arange(len(times))] = False

    def column(values: Array, other: int | Array, kind: type) -> Array:
        return np.insert(values, at, other).astype(kind)

    left = theirs.out_ns[theirs.out_ns >= 0] + case.clock_ns
    out = _sojourn.replay(
        column(theirs.t_ns, times, np.int64) + case.clock_ns,
        column(theirs.flow, 0, np.uint32),
        column(theirs.size, ARP_BYTES, np.uint32),
        column(theirs.ecn, 0, np.uint8),
        json.dumps(case.qdisc),
        case.rate,
        column(theirs.fate == DROPPED, 0, np.uint8) if case.follows else None,
        column(theirs.fate == MARKED, 0, np.uint8) if case.follows else None,
        None,
        timer_phase=None if case.phase_ns is None else f"{case.phase_ns + case.clock_ns}ns",
        xorshift32=case.seed,
        htb_burst=case.htb_burst,
        headers=_headers(case, *(column(v, 0, np.int64) for v in (theirs.flow, theirs.size))),
        departures_ns=left if case.late_timers else None,
        updates_ns=updates(case.name, case.timer) if case.timer else None,
        no_gauges=not gauges,
    )
    return out, listed


def _headers(case: Case, flow: Array, size: Array) -> Array | None:
    """Return DSCP, sender, receiver and acknowledgement number (-1 for none) of each packet."""
    if not case.headers:
        return None
    acks = size == ACK_BYTES
    rows = np.zeros((4, len(flow)), dtype=np.int64)
    for number, header in case.headers.items():
        rows[:3, flow == number] = [[header.dscp], [header.sender], [header.receiver]]
    rows[:3, acks] = [[0], [1], [1]]
    rows[3] = np.where(acks, ACK_STEP * np.cumsum(acks), -1)
    return rows
