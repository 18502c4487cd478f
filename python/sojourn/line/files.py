"""Files of tools that measure lines: flent, iperf3 -J, crusader, irtt, ping."""

import gzip
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sojourn._sojourn import InputError
from sojourn._util.inputs import shown
from sojourn._util.reading import bytes_of_file
from sojourn.line import crusader
from sojourn.result.result import Array

FORMS = (
    "a data file of flent (.flent.gz) or crusader (.crr), iperf3 -J, irtt's JSON, or the text of "
    "ping"
)
"""Forms that can be read, in words of messages."""

PING = re.compile(
    r"^(?:\[(?P<at>\d+\.\d+)\] )?\d+ bytes from .*?(?:icmp_)?seq=(?P<seq>\d+).*? "
    r"time=(?P<ms>\d+(?:\.\d+)?) ms",
    re.MULTILINE,
)
"""Line of ping about an answer, of iputils or busybox, with or without -D."""


@dataclass(frozen=True)
class Samples:
    """Samples of a file: goodput in each direction and round-trip times, NaN where missing.

    Attributes
    ----------
    source : str
        The file, and the tool that wrote it.
    time_s : ndarray of float, shape (n,)
        Times since the start, ascending.
    down_bps, up_bps : ndarray of float, shape (n,)
        Payload received per second, all streams together.
    rtt_s : ndarray of float, shape (n,)
        Round-trip times.
    of_transfers : bool
        True if the transfers themselves measured the round-trip times, as iperf3 does. A queue per
        flow lets packets of ping pass them.
    by_sender : bool
        True if `up_bps` counts what the sender wrote into the buffer of its socket, as iperf3 does:
        right on average, and in steps.
    """

    source: str
    time_s: Array
    down_bps: Array
    up_bps: Array
    rtt_s: Array
    of_transfers: bool = False
    by_sender: bool = False


def read(path: str | Path) -> Samples:
    """Read a file of a tool. Raises InputError if it cannot be read, as `parse` does."""
    return parse(str(path), bytes_of_file(Path(path)))


def parse(path: str, raw: bytes) -> Samples:
    """Parse what a tool wrote, whose form the contents show; `path` is for messages.

    Raises
    ------
    InputError
        If it has another form, or has no sample.
    """
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error):
            raise InputError(f"{path}: the compressed file is damaged or cut") from None
    tree: Mapping[str, Any] | None
    if crusader.is_crusader(raw):
        text, tree = "", crusader.decoded(path, raw)
    else:
        text = raw.decode("utf-8", "replace")
        tree = _json(text)
    try:
        if tree is None:
            samples = _ping(path, text)
        elif "x_values" in tree:
            samples = _flent(path, tree)
        elif "intervals" in tree or "error" in tree:
            samples = _iperf3(path, tree)
        elif "stream_groups" in tree:
            samples = Samples(f"{Path(path).name} (crusader)", *crusader.series(tree))
        elif "round_trips" in tree:
            samples = _irtt(path, tree)
        else:
            raise InputError(f"{path}: is neither {FORMS}")
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = str(error) or type(error).__name__
        raise InputError(f"{path}: is damaged: {shown(what)}") from None
    if not len(samples.time_s):
        raise InputError(f"{path}: has no sample")
    return samples


def _json(text: str) -> Mapping[str, Any] | None:
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) else None


def _array(values: Sequence[Any]) -> Array:
    return np.array([np.nan if one is None else float(one) for one in values])


def _flent(path: str, tree: Mapping[str, Any]) -> Samples:
    """Read series of flent: Mbit/s and milliseconds at common times."""
    time_s = _array(tree["x_values"])
    totals: dict[str, list[Array]] = {"download": [], "upload": [], "ping": []}
    for name, values in tree["results"].items():
        words = name.lower()
        if re.search(r"\b(avg|sum|totals?|mean)\b", words):
            continue
        for kind, series in totals.items():
            if kind in words:
                series.append(_array(values))
    streams = [_sum(totals[way], len(time_s)) * 1e6 for way in ("download", "upload")]
    pings = np.array(totals["ping"])
    rtt_s = _mean(pings) / 1e3 if len(pings) else np.full(len(time_s), np.nan)
    return Samples(f"{Path(path).name} (flent)", time_s, streams[0], streams[1], rtt_s)


def _sum(series: Sequence[Array], count: int) -> Array:
    """Return the sum of series where any of them has a value."""
    if not series:
        return np.full(count, np.nan)
    whole = np.array(series)
    known = np.isfinite(whole)
    return np.where(known.any(axis=0), np.where(known, whole, 0.0).sum(axis=0), np.nan)


def _mean(series: Array) -> Array:
    known = np.isfinite(series)
    total = np.where(known, series, 0.0).sum(axis=0)
    return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), np.nan)


def _iperf3(path: str, tree: Mapping[str, Any]) -> Samples:
    """Read intervals of iperf3: the receiver is here with -R, and there otherwise.

    Intervals that -O omits are left out. A test of UDP is refused: it sends at a set rate.
    """
    if "error" in tree and not tree.get("intervals"):
        raise InputError(f"{path}: iperf3 failed: {shown(str(tree['error']))}")
    test = tree["start"]["test_start"]
    if test.get("protocol", "TCP") != "TCP":
        protocol = shown(test["protocol"])
        raise InputError(f"{path}: is a test of {protocol}: only TCP fills a line by itself")
    reverse = bool(test.get("reverse"))
    times, down, up, rtt = [], [], [], []
    for one in tree["intervals"]:
        whole = one["sum"]
        if whole.get("omitted"):
            continue
        back = one.get("sum_bidir_reverse", {}).get("bits_per_second")
        times.append((whole["start"] + whole["end"]) / 2)
        down.append(whole["bits_per_second"] if reverse else back)
        up.append(None if reverse else whole["bits_per_second"])
        each = [stream["rtt"] / 1e6 for stream in one["streams"] if stream.get("rtt")]
        rtt.append(sum(each) / len(each) if each else None)
    at, received, sent, round_trips = map(_array, (times, down, up, rtt))
    return Samples(
        f"{Path(path).name} (iperf3)",
        at,
        received,
        sent,
        round_trips,
        of_transfers=True,
        by_sender=not reverse,
    )


def _irtt(path: str, tree: Mapping[str, Any]) -> Samples:
    """Read round trips of irtt, in nanoseconds; lost ones have none."""
    trips = tree["round_trips"]
    sent = [one["timestamps"]["client"]["send"]["wall"] for one in trips]
    rtt = _array([one["delay"].get("rtt") for one in trips]) / 1e9
    time_s = (np.array(sent, float) - sent[0]) / 1e9 if sent else np.zeros(0)
    nothing = np.full(len(rtt), np.nan)
    return Samples(f"{Path(path).name} (irtt)", time_s, nothing, nothing, rtt)


def _ping(path: str, text: str) -> Samples:
    """Read answers of ping; without -D they are taken as a second apart."""
    answers = list(PING.finditer(text))
    if not answers:
        raise InputError(f"{path}: is neither {FORMS}")
    stamped = all(one["at"] for one in answers)
    times = np.array([float(one["at"] if stamped else one["seq"]) for one in answers])
    rtt = np.array([float(one["ms"]) for one in answers]) / 1e3
    nothing = np.full(len(rtt), np.nan)
    return Samples(f"{Path(path).name} (ping)", times - times[0], nothing, nothing, rtt)
