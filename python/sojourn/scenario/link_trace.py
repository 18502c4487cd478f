"""Trace-driven links: read files of rates and delays, or of delivery opportunities.

The `trace` of a link is the name of a file, a table `{file = ..., repeat = "60s"}`, or the columns
themselves (`t_ns`, `rate_bps`, `delay_ns`; or `opportunities_ms` alone), which Rust reads. The file
is a CSV with the columns `t_s` and `rate_bps`, `delay_s` or both, or has the format of mahimahi
(mm-link(1)): no header, one time in milliseconds per line. Empty lines and lines that begin with #
are comments in both.

Each time in a mahimahi file is a delivery opportunity of 1504 bytes. As in mm-link, a packet uses
its IP length plus 4 bytes, the header that mm-link's TUN device adds, so that a packet of 1500
bytes uses exactly one opportunity. Short packets share an opportunity. A packet that does not fit
continues at the next one and is delivered with its last byte. An opportunity is wasted if the queue
is empty; a packet that arrives at the time of an opportunity cannot use it. The trace repeats after
its last time. The `rate` of the link then only sets defaults of disciplines.

With `bin_ms`, the opportunities are counted in bins of this length, and the link has the mean rate
of each bin, with 1500 bytes of IP per opportunity.
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
from sojourn._util.inputs import shown
from sojourn._util.reading import bytes_of_file, text_of

OPPORTUNITY_BYTES, HEADER_BYTES = 1504, 4
"""Bytes of an opportunity (PACKET_SIZE of mm-link), and of the header that the TUN device of
mm-link adds to each packet."""

FULL_PACKET_BYTES = OPPORTUNITY_BYTES - HEADER_BYTES
"""Length of the IP packet that uses exactly one opportunity."""

COLUMNS = {"t_s": ("t_ns", 9), "rate_bps": ("rate_bps", 0), "delay_s": ("delay_ns", 9)}
"""Columns of a file: the name in Rust, and the power of ten between the units."""

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
"""Number in a file. Exponents are limited to 3 digits, since numbers are converted to integers."""

DIGITS_MAX = 19
"""Largest power of ten in a column, which is a 64-bit integer."""

BIN_MS_MAX = 10_000_000_000
"""Longest bin, and latest opportunity that Rust accepts."""

BINS_MAX = 1_000_000
"""Largest number of bins of a trace, the largest number of rows that Rust accepts."""


def resolve(trace: Any, home: Path | None = None) -> Any:
    """Return the columns of a trace that is given as a file; other traces are returned unchanged.

    Relative paths are relative to `home`.
    """
    if isinstance(trace, str | Path):
        trace = {"file": trace}
    if not isinstance(trace, Mapping) or "file" not in trace:
        return trace
    if not isinstance(trace["file"], str | Path):
        raise InputError(f"file: {shown(trace['file'])} is not a file name")
    others = {key: value for key, value in trace.items() if key not in ("file", "bin_ms")}
    path = (home or Path()) / str(trace["file"])
    return {**read(path, trace.get("bin_ms")), **others}


def repeated(path: Path) -> tuple[dict[str, Any], float, float]:
    """Read a trace file that is to be repeated; return its columns, mean rate and period.

    Returns
    -------
    tuple
        Columns with `repeat`; mean rate in bit/s from the first row on, of packets of 1500 bytes;
        period in seconds. The last row of a table lasts as long as the row before it, a single row
        1 s.

    Raises
    ------
    InputError
        If the file is not a trace, has no rates, or its mean rate is zero.
    """
    columns: dict[str, Any] = read(path)
    if "opportunities_ms" in columns:
        moments = columns["opportunities_ms"]
        period_s = moments[-1] / 1e3
        return columns, len(moments) * FULL_PACKET_BYTES * 8 / period_s, period_s
    if "rate_bps" not in columns:
        raise InputError(f"{path}: column rate_bps is missing")
    times, rates = columns["t_ns"], columns["rate_bps"]
    steps = [b - a for a, b in pairwise(times)] or [1_000_000_000]
    steps = [*steps, steps[-1]][: len(rates)]
    sent = sum(step * bps for step, bps in zip(steps, rates, strict=True))
    if sent <= 0:
        raise InputError(f"{path}: the mean of rate_bps is 0")
    period = times[-1] + steps[-1]
    return {**columns, "repeat": f"{period}ns"}, sent / sum(steps), period / 1e9


def read(path: Path, bin_ms: Any = None) -> dict[str, list[int] | str]:
    """Read a trace file; return columns of integers in ns and bit/s, or opportunities in ms."""
    lines = [
        "" if line.lstrip().startswith("#") else line
        for line in text_of(path, bytes_of_file(path)).splitlines()
    ]
    first = next((line.strip() for line in lines if line.strip()), "")
    if NUMBER.fullmatch(first):
        moments = _moments(path, lines)
        if bin_ms is None:
            return {"opportunities_ms": moments}
        if type(bin_ms) is not int or not 1 <= bin_ms <= BIN_MS_MAX:
            message = f"{shown(bin_ms)} is not a whole number of ms from 1 to {BIN_MS_MAX}"
            raise InputError(f"bin_ms: {message}")
        return _binned(moments, bin_ms)
    if bin_ms is not None:
        raise InputError(f"bin_ms: {path} has rates, not opportunities")
    return _columns(path, lines)


def _columns(path: Path, lines: list[str]) -> dict[str, list[int] | str]:
    names: list[str] = []
    # The header is the first line that is not a comment.
    before = next((n for n, line in enumerate(lines) if line.strip()), 0)
    rows = csv.DictReader(io.StringIO("\n".join(lines[before:])))
    try:
        rows.fieldnames = names = [name.strip() for name in rows.fieldnames or ()]
        if "t_s" not in names or not {"rate_bps", "delay_s"} & set(names):
            raise InputError(
                f"{path}: requires columns t_s, and rate_bps, delay_s or both; or, as Mahimahi has "
                "it, one whole number of milliseconds per line and nothing else"
            )
        if twice := [name for name in COLUMNS if names.count(name) > 1]:
            raise InputError(f"{path}: column {twice[0]} is given twice")
        return _numbers(path, names, rows, before)
    except csv.Error as error:
        raise InputError(f"{path}: line {before + rows.line_num + 1}: {error}") from None


def _numbers(
    path: Path, names: list[str], rows: "csv.DictReader[str]", before: int
) -> dict[str, list[int] | str]:
    """Convert the columns of a table that `before` lines precede to integers in ns and bit/s."""
    read = [name for name in COLUMNS if name in names]
    columns: dict[str, list[int] | str] = {COLUMNS[name][0]: [] for name in read}
    for row in rows:
        for name in read:
            into, decimals = COLUMNS[name]
            where = f"{path}: line {before + rows.line_num}: {name}"
            values = columns[into]
            assert isinstance(values, list)
            values.append(_whole(where, row[name], decimals))
    return columns


def _whole(where: str, text: str | None, decimals: int) -> int:
    """Parse a number, multiply it by ten to the power of `decimals`, and round it."""
    if not NUMBER.fullmatch((text or "").strip()):
        raise InputError(f"{where}: {shown(text)} is not a number")
    number = Decimal((text or "").strip())
    if number.adjusted() + decimals > DIGITS_MAX:
        raise InputError(f"{where}: {shown(text)} is too large")
    return int(number.scaleb(decimals).to_integral_value())


def _moments(path: Path, lines: list[str]) -> list[int]:
    """Parse delivery opportunities (ms) and check their order."""
    moments = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if not line.strip().isdecimal():
            rule = "a trace of Mahimahi has one whole number of milliseconds per line"
            raise InputError(f"{path}: line {number}: {shown(line.strip())}: {rule}")
        moments.append(_whole(f"{path}: line {number}", line, 0))
    if any(b < a for a, b in pairwise(moments)):
        raise InputError(f"{path}: the times are not in order")
    if moments[-1] == 0:
        raise InputError(f"{path}: the last opportunity is at 0: the period must not be zero")
    return moments


def _binned(moments: list[int], bin_ms: int) -> dict[str, list[int] | str]:
    """Return the mean rate of every bin; the trace repeats after its last time, as in mm-link."""
    bins = max(1, -(-moments[-1] // bin_ms))
    if bins > BINS_MAX:
        raise InputError(f"bin_ms: {bin_ms} makes {bins} bins, allowed: up to {BINS_MAX}")
    counts = [0] * bins
    for moment in moments:
        # An opportunity at the end of the last bin belongs to that bin.
        counts[min(moment // bin_ms, bins - 1)] += 1
    bits = FULL_PACKET_BYTES * 8 * 1000
    return {
        "t_ns": [i * bin_ms * 1_000_000 for i in range(bins)],
        "rate_bps": [n * bits // bin_ms for n in counts],
        "repeat": f"{bins * bin_ms}ms",
    }
