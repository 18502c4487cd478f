"""Results of crusader (.crr, or its JSON): magic number, version, MessagePack in frames of Snappy.

Sources: file_format.rs of crusader, and the descriptions of Snappy's blocks and frames.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from sojourn._sojourn import InputError
from sojourn.result.result import Array

MAGIC = (0x5372AB82AE7C59CB).to_bytes(8, "little")
"""First bytes of a file."""

VERSIONS = (1, 2)
"""Versions that can be read; version 0 has another encoding."""

STEP_S = 0.2
"""Time between two samples, over which bytes and pings are averaged."""

LARGEST = 1 << 30
"""Largest size of the contents in bytes, a guard against damaged files."""


def is_crusader(raw: bytes) -> bool:
    """Return True if a file begins as the files of crusader do."""
    return raw[:8] == MAGIC


def decoded(path: str, raw: bytes) -> Mapping[str, Any]:
    """Return the contents of a file. Raises InputError if it is damaged or of another version."""
    version = int.from_bytes(raw[8:16], "little")
    if version not in VERSIONS:
        raise InputError(f"{path}: version {version} of crusader's format is not read, but 1 and 2")
    try:
        tree = msgspec.msgpack.decode(_frames(raw[16:]))
    except (msgspec.DecodeError, IndexError, ValueError):
        raise InputError(f"{path}: the file of crusader is damaged or cut") from None
    if not isinstance(tree, dict):
        raise InputError(f"{path}: the file of crusader is damaged or cut")
    return tree


def _frames(data: bytes) -> bytes:
    """Return the contents of a stream of Snappy's frames."""
    parts, at = [], 0
    while at < len(data):
        kind, size = data[at], int.from_bytes(data[at + 1 : at + 4], "little")
        body = data[at + 4 : at + 4 + size]
        if len(body) < size or (kind < 2 and size < 4):
            raise ValueError("a frame is cut")
        if kind == 0:
            parts.append(_block(body[4:]))  # the first four bytes are a checksum
        elif kind == 1:
            parts.append(body[4:])
        elif kind < 0x80:
            raise ValueError("unknown frame")
        at += 4 + size
    return b"".join(parts)


def _block(data: bytes) -> bytes:
    """Return the contents of a block of Snappy: literals, and copies of earlier contents."""
    size, at = _varint(data)
    if size > LARGEST:
        raise ValueError("too large")
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                more = length - 59
                length = int.from_bytes(data[at : at + more], "little")
                at += more
            out += data[at : at + length + 1]
            at += length + 1
            continue
        if tag & 3 == 1:
            length, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at]
            at += 1
        else:
            wide = 2 if tag & 3 == 2 else 4
            length, offset = (tag >> 2) + 1, int.from_bytes(data[at : at + wide], "little")
            at += wide
        if not 0 < offset <= len(out):
            raise ValueError("a copy from before the beginning")
        for _ in range(length):
            out.append(out[-offset])
    if len(out) != size:
        raise ValueError("wrong size")
    return bytes(out)


def _varint(data: bytes) -> tuple[int, int]:
    """Return a number with seven bits per byte, and the place behind it."""
    value = 0
    for n in range(5):
        value |= (data[n] & 127) << 7 * n
        if data[n] < 128:
            return value, n + 1
    raise ValueError("a number is too long")


def series(tree: Mapping[str, Any]) -> tuple[Array, Array, Array, Array]:
    """Return times (s), goodput down and up (bit/s), and round-trip times (s) of a result.

    Bytes of streams are totals since their beginning, in both encodings.
    """
    pings = [(_seconds(one["sent"]), _total(one)) for one in tree["pings"]]
    ends = [sent for sent, _ in pings]
    for group in tree["stream_groups"]:
        ends += [_seconds(one["data"][-1]["time"]) for one in group["streams"] if one["data"]]
    edges = np.arange(0.0, max(ends, default=0.0) + STEP_S, STEP_S)
    time_s = (edges[1:] + edges[:-1]) / 2
    goodput = {True: np.full(len(time_s), np.nan), False: np.full(len(time_s), np.nan)}
    for group in tree["stream_groups"]:
        for stream in group["streams"]:
            points = [(_seconds(one["time"]), float(one["bytes"])) for one in stream["data"]]
            if len(points) > 1:
                at, total = np.array(points).T
                bps = np.diff(np.interp(edges, at, total)) * 8 / STEP_S
                inside = (edges[:-1] >= at[0]) & (edges[1:] <= at[-1])
                known = goodput[bool(group["download"])]
                known[inside] = np.nan_to_num(known[inside]) + bps[inside]
    sums, counts = np.zeros(len(time_s)), np.zeros(len(time_s))
    for sent, rtt in pings:
        if rtt is not None and len(time_s):
            place = min(int(sent / STEP_S), len(time_s) - 1)
            sums[place] += rtt
            counts[place] += 1
    rtt_s = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return time_s, goodput[True], goodput[False], rtt_s


def _seconds(value: Any) -> float:
    """Return a duration, which is a map or a pair of seconds and nanoseconds."""
    whole, part = (value["secs"], value["nanos"]) if isinstance(value, dict) else value
    return float(whole) + float(part) / 1e9


def _total(ping: Mapping[str, Any]) -> float | None:
    """Return the round-trip time of a ping; None if it was lost."""
    latency = ping["latency"]
    total = latency[0] if isinstance(latency, list) else latency and latency["total"]
    return None if total is None else _seconds(total)
