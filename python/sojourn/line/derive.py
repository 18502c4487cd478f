"""A line as measurements show it: rates, round-trip time, delay under load, buffers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sojourn._sojourn import InputError
from sojourn.line import shapers
from sojourn.line.files import Samples, read
from sojourn.result.result import Array
from sojourn.result.statistics import interval

WAYS = ("down", "up")
"""Directions of a line."""

LOADED = 0.3
"""Share of the largest goodput from which a direction is loaded."""

IDLE = 0.02
"""Share of the largest goodput below which a direction is idle."""

FEW = 0.5
"""Share of the samples with both loads below which those with one load do not count."""

SETTLED = 0.2
"""Share of the loaded samples, at the beginning, that do not count for rates: slow start."""

BATCHES = 10
"""Number of batches of successive samples whose means give an interval."""

FULL = 0.02
"""Share of the loaded round-trip times, the longest ones, whose mean shows a full buffer."""

ENOUGH = 50
"""Number of round-trip times under load from which a buffer is called measured, not rough."""

FILLS_S, FILLS_SHARE = 0.03, 0.4
"""A queue whose median delay is at least this share of its longest delay, and whose longest delay
is at least this long, fills its buffer: drop-tail."""

HEADERS = 1500 / 1448
"""Bytes of a packet by bytes of payload of TCP with timestamps, without the link layer."""

ACKS = 52 / (2 * 1448)
"""Bytes of acknowledgements by bytes of payload in the other direction: one for two segments."""

GRADES = ((0.005, "A+"), (0.030, "A"), (0.060, "B"), (0.200, "C"), (0.400, "D"))
"""Grades by the mean increase of the round-trip time under load, in seconds (dslreports)."""


@dataclass(frozen=True)
class Quantity:
    """A measured value with its 95 % interval, and a note how it was measured.

    Attributes
    ----------
    value : float
        The value, in bit/s or seconds.
    low, high : float
        Ends of the interval; NaN if there are too few samples.
    note : str
        Number of samples, and how sure the value is.
    """

    value: float
    low: float
    high: float
    note: str


@dataclass(frozen=True)
class MeasuredLine:
    """A line as measurements show it. A value that was not measured is None.

    Attributes
    ----------
    down_bps, up_bps : Quantity or None
        Rates of packets with headers of IP and TCP, without the link layer.
    rtt_s : Quantity or None
        Round-trip time of the idle line.
    down_delay_s, up_delay_s, both_delay_s : Quantity or None
        Mean increase of the round-trip time while this direction, or both, carry load.
    down_buffer_s, up_buffer_s, both_buffer_s : Quantity or None
        Increase when the buffer is full; of both directions, the sum of the two buffers.
    drop_tail : dict of str to bool
        True for "down", "up" or "both" if the queue fills its buffer, as drop-tail does.
    loaded_s : dict of str to ndarray
        Round-trip times under load, by "down", "up" and "both".
    sources : tuple of str
        The files.
    shapers : tuple of str
        Sentences on shapers and queues that are there already.
    """

    down_bps: Quantity | None
    up_bps: Quantity | None
    rtt_s: Quantity | None
    down_delay_s: Quantity | None
    up_delay_s: Quantity | None
    both_delay_s: Quantity | None
    down_buffer_s: Quantity | None
    up_buffer_s: Quantity | None
    both_buffer_s: Quantity | None
    drop_tail: Mapping[str, bool]
    loaded_s: Mapping[str, Array]
    sources: tuple[str, ...]
    shapers: tuple[str, ...] = ()

    def grade(self) -> str | None:
        """Return the grade of the worst direction, A+ to F; None without load."""
        delays = [one for one in (self.down_delay_s, self.up_delay_s, self.both_delay_s) if one]
        if not delays:
            return None
        worst = max(one.value for one in delays)
        return next((name for limit, name in GRADES if worst < limit), "F")


def measure(
    *files: str | Path,
    idle: Sequence[str | Path] = (),
    download: Sequence[str | Path] = (),
    upload: Sequence[str | Path] = (),
) -> MeasuredLine:
    """Derive a line from files of flent, iperf3, crusader, irtt and ping.

    Parameters
    ----------
    *files : str or Path
        Files whose samples show by themselves which direction carries load: of flent, of
        crusader, or of iperf3.
        Or folders that `sojourn line measure --keep` wrote, and output of `tc -s -j qdisc show`
        after the load, whose shapers are stated.
    idle, download, upload : sequence of str or Path
        Files recorded while the line was idle, or while a download or an upload filled it.

    Returns
    -------
    MeasuredLine
        Rates, round-trip time, delay under load and buffers, each with an interval and a note.

    Raises
    ------
    InputError
        If a file cannot be read, or none has a round-trip time or a rate.
    """
    roles = {"idle": list(idle), "download": list(download), "upload": list(upload)}
    folders = [Path(path) for path in files if Path(path).is_dir()]
    for folder in folders:
        for role, paths in roles.items():
            paths += sorted(folder.glob(f"{role}-*"))
        if not any(roles.values()):
            raise InputError(f"{folder}: has no file like idle-ping.txt or upload-iperf3.json")
    alone, notes = [], []
    for path in files:
        if Path(path).is_dir():
            continue
        texts = shapers.read(Path(path))
        if texts is None:
            alone.append(read(path))
        else:
            notes += texts
    line = derived(alone, {role: [read(path) for path in paths] for role, paths in roles.items()})
    return replace(line, shapers=(*notes, *line.shapers))


LOADS: Mapping[str, tuple[str, ...]] = {"idle": (), "download": ("down",), "upload": ("up",)}
"""Directions that are loaded while a file of a role is written."""


def derived(alone: Sequence[Samples], roles: Mapping[str, Sequence[Samples]]) -> MeasuredLine:
    """Derive a line from samples that show their load themselves, and others by their role.

    Raises InputError if there is neither a round-trip time nor a rate.
    """
    phases = [_classed(one) for one in alone]
    for role, samples in roles.items():
        phases += [_recorded(one, LOADS[role]) for one in samples]
    line = _line(phases)
    if line.rtt_s is None and line.down_bps is None and line.up_bps is None:
        raise InputError("the files have neither round-trip times nor rates")
    return line


@dataclass(frozen=True)
class _Phase:
    """Samples of a file, and which direction is loaded at each of them."""

    samples: Samples
    loaded: Mapping[str, Array]
    idle: Array


def _classed(samples: Samples) -> _Phase:
    """Find the load of each sample from the goodput at its time.

    A test whose loads begin together has some samples with one of them only, when the other makes
    a pause after a loss. They are too few to count.
    """
    busy, idle = {}, np.ones(len(samples.time_s), bool)
    for way, bps in zip(WAYS, (samples.down_bps, samples.up_bps), strict=True):
        known = np.nan_to_num(bps)
        most = np.percentile(known, 98) if len(known) else 0.0
        busy[way] = (known >= LOADED * most) & (most > 0)
        idle &= known <= IDLE * most
    both = busy["down"] & busy["up"]
    loaded = {}
    for way, other in zip(WAYS, reversed(WAYS), strict=True):
        alone = busy[way] & ~busy[other]
        loaded[way] = busy[way] if alone.sum() >= FEW * both.sum() else both
    return _Phase(samples, loaded, idle)


def _recorded(samples: Samples, loads: Iterable[str]) -> _Phase:
    """Return samples that were all taken under the same load."""
    count = len(samples.time_s)
    loaded = {way: np.full(count, way in loads) for way in WAYS}
    return _Phase(samples, loaded, np.full(count, not list(loads)))


def _line(phases: Sequence[_Phase]) -> MeasuredLine:
    """Derive the line from all phases."""
    idle = _joined(one.samples.rtt_s[one.idle] for one in phases)
    rtts = {"down": [], "up": [], "both": []}  # type: dict[str, list[Array]]
    for one in phases:
        down, up = one.loaded["down"], one.loaded["up"]
        for kind, chosen in (("down", down & ~up), ("up", up & ~down), ("both", down & up)):
            if not (one.samples.of_transfers and _has_pings(phases, kind)):
                rtts[kind].append(one.samples.rtt_s[chosen])
    loaded = {kind: _joined(parts) for kind, parts in rtts.items()}
    base = _base(idle, loaded)
    values: dict[str, Any] = {}
    drop_tail = {}
    for kind, series in loaded.items():
        delay = buffer = None
        if base is not None and len(series):
            more = np.maximum(series - base.value, 0.0)
            delay = _mean(more, "round-trip times under load")
            buffer, drop_tail[kind] = _buffer(more)
        values |= {f"{kind}_delay_s": delay, f"{kind}_buffer_s": buffer}
    longest_s = {kind: values[f"{kind}_buffer_s"].value for kind in drop_tail}
    stated = tuple(shapers.of_delays(drop_tail, longest_s))
    rates = {f"{way}_bps": _rate(phases, way) for way in WAYS}
    sources = tuple(one.samples.source for one in phases)
    return MeasuredLine(
        rtt_s=base,
        drop_tail=drop_tail,
        loaded_s=loaded,
        sources=sources,
        shapers=stated,
        **rates,
        **values,
    )


def _has_pings(phases: Sequence[_Phase], kind: str) -> bool:
    """Return True if a ping ran while this direction, or both, were loaded."""
    ways = WAYS if kind == "both" else (kind,)
    return any(
        bool(np.isfinite(one.samples.rtt_s[np.all([one.loaded[w] for w in ways], axis=0)]).any())
        for one in phases
        if not one.samples.of_transfers
    )


def _joined(parts: Iterable[Array]) -> Array:
    """Return the known values of all parts."""
    whole = np.concatenate([*parts, np.zeros(0)])
    return np.asarray(whole[np.isfinite(whole)])


def _base(idle: Array, loaded: Mapping[str, Array]) -> Quantity | None:
    """Return the round-trip time without queues."""
    if len(idle):
        low, value = np.percentile(idle, [0, 10])
        note = f"tenth percentile of {len(idle)} round-trip times of the idle line"
        return Quantity(float(value), float(low), float(np.median(idle)), note)
    every = _joined(loaded.values())
    if not len(every):
        return None
    least = float(every.min())
    return Quantity(
        least, np.nan, np.nan, f"smallest of {len(every)} round-trip times under load: too long"
    )


def _mean(values: Array, what: str) -> Quantity:
    """Return the mean with an interval from the means of batches, which are nearly independent."""
    batches = np.array_split(values, BATCHES) if len(values) >= 2 * BATCHES else []
    half = interval([float(one.mean()) for one in batches]).half if batches else np.nan
    value = float(values.mean())
    return Quantity(value, value - half, value + half, f"{len(values)} {what}")


def _buffer(more: Array) -> tuple[Quantity, bool]:
    """Return the delay of a full buffer, and True if the queue fills it as drop-tail does."""
    longest = np.sort(more)[-max(1, round(FULL * len(more))) :]
    value = float(longest.mean())
    fills = value >= FILLS_S and float(np.median(more)) >= FILLS_SHARE * value
    how = "the queue fills it: drop-tail" if fills else "an AQM or a small buffer: an upper bound"
    sure = "" if len(more) >= ENOUGH else "; rough"
    low, high = float(longest.min()), float(longest.max())
    note = f"longest {len(longest)} of {len(more)} increases{sure}; {how}"
    return Quantity(value, low, high, note), fills


def _rate(phases: Sequence[_Phase], way: str) -> Quantity | None:
    """Return the rate of a direction, with headers and the acknowledgements of the other one."""
    parts = []
    for one in phases:
        mine, other = one.samples.down_bps, one.samples.up_bps
        if way == "up":
            mine, other = other, mine
        chosen = one.loaded[way] & np.isfinite(mine)
        steady = np.flatnonzero(chosen)[round(SETTLED * chosen.sum()) :]
        parts.append(mine[steady] * HEADERS + np.nan_to_num(other[steady]) * ACKS)
    series = _joined(parts)
    if not len(series):
        return None
    used = [one.samples for one, part in zip(phases, parts, strict=True) if len(part)]
    if way == "up" and all(one.by_sender for one in used):
        return _mean(series, "samples of what the sender wrote under load")
    return _median(series, "samples of goodput under load")


def _median(values: Array, what: str) -> Quantity:
    """Return the median with its interval by order statistics.

    Data behind a loss is delivered in bursts after the retransmission, also data that arrived
    before the first sample, so the mean exceeds the rate of the line.
    """
    count = len(values)
    ordered = np.sort(values)
    reach = 0.98 * np.sqrt(count)
    low, high = int(np.floor(count / 2 - reach)), int(np.ceil(count / 2 + reach))
    ends = (float(ordered[low]), float(ordered[high])) if low >= 0 and high < count else None
    sure = "" if ends else "; rough"
    return Quantity(
        float(np.median(values)), *(ends or (np.nan, np.nan)), f"median of {count} {what}{sure}"
    )
