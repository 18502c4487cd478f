"""Trace-driven links: read a file of rates and delays, or of delivery opportunities.

A link's `trace` is the name of a file, a table `{file = ..., repeat = "60s"}`, or the columns
themselves (`t_ns`, `rate_bps`, `delay_ns`; or `opportunities_ms` alone), which Rust reads. The file
is a CSV with the columns `t_s` and `rate_bps`, `delay_s` or both, or mahimahi's format (see
mm-link(1)): no header, one number of milliseconds per line.

Each of those numbers is a delivery opportunity of 1504 bytes, used as mm-link uses it. Every packet
takes its IP length and 4 bytes more, which is the header that mm-link's TUN device puts before a
packet: a packet of 1500 bytes is exactly one opportunity. Short packets share an opportunity; a
packet that does not fit continues at the next one and arrives with its last byte. An opportunity is
wasted if no packet waits; a packet that arrives at the moment of an opportunity is too late for it.
The file repeats after its last moment. The link's `rate` then only gives disciplines their
defaults.

With `bin_ms` the opportunities are counted in bins of so many milliseconds, and the link has the
mean rate of each bin, at 1500 bytes of IP per opportunity.
"""

import csv
import io
import re
from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import bytes_of_file, shown, text_of

OPPORTUNITY_BYTES, HEADER_BYTES = 1504, 4
"""Bytes that an opportunity carries (mm-link's PACKET_SIZE), and those of it that each packet
takes for the header of mm-link's TUN device."""

FULL_PACKET_BYTES = OPPORTUNITY_BYTES - HEADER_BYTES
"""Bytes of the IP packet that takes exactly one opportunity."""

COLUMNS = {"t_s": ("t_ns", 9), "rate_bps": ("rate_bps", 0), "delay_s": ("delay_ns", 9)}
"""The columns of a file: what Rust calls them, and by how many decimals they are moved."""

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
"""A number in a file; its exponent has few digits, since it becomes a whole number."""

DIGITS_MAX = 19
"""The largest power of ten of a column: 64 bits."""

BIN_MS_MAX = 10_000_000_000
"""The longest bin, and the latest opportunity that Rust takes."""

BINS_MAX = 1_000_000
"""The most bins of a trace: the most rows that Rust takes."""


def resolve(trace: Any, home: Path | None = None) -> Any:
    """Give the columns that `trace` stands for; what names no file is left as it is.

    A name without a directory before it is looked for in `home`.
    """
    if isinstance(trace, str | Path):
        trace = {"file": trace}
    if not isinstance(trace, Mapping) or "file" not in trace:
        return trace
    if not isinstance(trace["file"], str | Path):
        raise InputError(f"file: {shown(trace['file'])} is not the name of a file")
    others = {key: value for key, value in trace.items() if key not in ("file", "bin_ms")}
    path = (home or Path()) / str(trace["file"])
    return {**read(path, trace.get("bin_ms")), **others}


def read(path: Path, bin_ms: Any = None) -> dict[str, list[int] | str]:
    """Read the trace `path`: columns of whole nanoseconds and bits per second."""
    lines = text_of(path, bytes_of_file(path)).splitlines()
    if lines[0].strip().isdigit():
        moments = _moments(path, lines)
        if bin_ms is None:
            return {"opportunities_ms": moments}
        if type(bin_ms) is not int or not 1 <= bin_ms <= BIN_MS_MAX:
            told = f"{shown(bin_ms)} is not a whole number of milliseconds from 1 to {BIN_MS_MAX}"
            raise InputError(f"bin_ms: {told}")
        return _binned(moments, bin_ms)
    if bin_ms is not None:
        raise InputError(f"bin_ms: {path} has rates, not opportunities")
    return _columns(path, lines)


def _columns(path: Path, lines: list[str]) -> dict[str, list[int] | str]:
    names: list[str] = []
    rows = csv.DictReader(io.StringIO("\n".join(lines)))
    try:
        rows.fieldnames = names = [name.strip() for name in rows.fieldnames or ()]
        if "t_s" not in names or not {"rate_bps", "delay_s"} & set(names):
            raise InputError(f"{path}: columns t_s and rate_bps, delay_s or both are due")
        if twice := [name for name in COLUMNS if names.count(name) > 1]:
            raise InputError(f"{path}: column {twice[0]} is given twice")
        return _numbers(path, names, rows)
    except csv.Error as error:
        raise InputError(f"{path}: line {rows.line_num + 1}: {error}") from None


def _numbers(
    path: Path, names: list[str], rows: "csv.DictReader[str]"
) -> dict[str, list[int] | str]:
    """Read the columns of a table as whole numbers of nanoseconds and bits per second."""
    read = [name for name in COLUMNS if name in names]
    columns: dict[str, list[int] | str] = {COLUMNS[name][0]: [] for name in read}
    for row in rows:
        for name in read:
            into, decimals = COLUMNS[name]
            where = f"{path}: line {rows.line_num}: {name}"
            values = columns[into]
            assert isinstance(values, list)
            values.append(_whole(where, row[name], decimals))
    return columns


def _whole(where: str, text: str | None, decimals: int) -> int:
    """Read a number and move it by `decimals`, rounded to a whole one."""
    if not NUMBER.fullmatch((text or "").strip()):
        raise InputError(f"{where}: {shown(text)} is not a number")
    number = Decimal((text or "").strip())
    if number.adjusted() + decimals > DIGITS_MAX:
        raise InputError(f"{where}: {shown(text)} is too large")
    return int(number.scaleb(decimals).to_integral_value())


def _moments(path: Path, lines: list[str]) -> list[int]:
    """Read the opportunities of a file, milliseconds, in order."""
    moments = [_whole(f"{path}: line {i + 1}", line, 0) for i, line in enumerate(lines) if line]
    if any(b < a for a, b in pairwise(moments)):
        raise InputError(f"{path}: the moments are not in order")
    if moments[-1] == 0:
        raise InputError(f"{path}: the last opportunity is at 0: the period must not be zero")
    return moments


def _binned(moments: list[int], bin_ms: int) -> dict[str, list[int] | str]:
    """Count the opportunities of every bin and give the mean rate in it.

    It repeats after its last moment, as mm-link does; a bin that nothing falls into has rate zero.
    """
    bins = max(1, -(-moments[-1] // bin_ms))
    if bins > BINS_MAX:
        raise InputError(f"bin_ms: {bin_ms} makes {bins} bins, allowed: up to {BINS_MAX}")
    counts = [0] * bins
    for moment in moments:
        # A moment at the very end belongs to what it ends.
        counts[min(moment // bin_ms, bins - 1)] += 1
    bits = FULL_PACKET_BYTES * 8 * 1000
    return {
        "t_ns": [i * bin_ms * 1_000_000 for i in range(bins)],
        "rate_bps": [n * bits // bin_ms for n in counts],
        "repeat": f"{bins * bin_ms}ms",
    }
