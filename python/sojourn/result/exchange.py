"""Files that other tools read: flent's data files, logs of Mahimahi's mm-link."""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sojourn._sojourn import InputError
from sojourn._util.files import check_file, replacing, write_text
from sojourn._util.inputs import shown
from sojourn._util.public import public
from sojourn._util.units import bps_of, seconds
from sojourn.result.result import Array, Result

FLENT_TESTS = ("rrul", "rrul_be", "tcp_nup", "tcp_ndown")
"""Named scenarios whose results flent can plot as its tests."""

EPOCH = "2000-01-01T00:00:00.000000Z"
"""Start of every run in files of flent, so that equal runs give equal files."""

EPOCH_S = 946684800.0
"""`EPOCH` in seconds since 1970."""

FORMAT = 4
"""Version of flent's data files (flent 2.3.0)."""

OPPORTUNITY_BYTES = 1504
"""Bytes of a delivery opportunity of mm-link."""


@public
def write_flent(result: Result, path: str | Path) -> None:
    """Write the result of one of flent's tests as a data file of flent.

    The series have the names of the test: goodput of each flow in each sampling interval, and
    round-trip times from the probes in both directions with the propagation time.

    Parameters
    ----------
    result : Result
        Result of a named scenario in `FLENT_TESTS`, with `sample` and `packet_log`.
    path : str or Path
        The file, .flent.gz.

    Raises
    ------
    InputError
        If the scenario is not one of these, lacks recorded data, or the file cannot be written.
    """
    path = Path(path)
    check_flent(result.scenario, path)
    name = result.scenario["name"]
    series, raw = _series(result, name)
    tree = {
        "version": FORMAT,
        "metadata": _metadata(result, name, path.name, list(series)),
        "x_values": [round(float(t), 6) for t in result.time_s],
        "results": series,
        "raw_values": raw,
    }
    data = json.dumps(tree, allow_nan=False).encode()
    with replacing(path) as file:
        file.write(gzip.compress(data, mtime=0))


def check_flent(scenario: Mapping[str, Any], path: Path) -> None:
    """Raise InputError if a canonical scenario cannot be written as a data file of flent."""
    if not path.name.endswith(".flent.gz"):
        raise InputError(f"{path}: the name must end in .flent.gz")
    check_file(path)
    name = scenario["name"]
    if name not in FLENT_TESTS:
        known = ", ".join(FLENT_TESTS)
        raise InputError(f"--flent: {shown(name)} is not a test that flent plots, allowed: {known}")
    for key in ("sample", "packet_log"):
        if not scenario.get(key):
            raise InputError(f"--flent: the scenario needs {key}")


def _metadata(result: Result, name: str, file: str, series: list[str]) -> dict[str, Any]:
    scenario = result.scenario
    links = {link: spec["qdisc"]["name"] for link, spec in scenario["links"].items()}
    first = scenario["links"][next(iter(links))]
    step = seconds(scenario["sample"])
    counts = {flow["name"]: flow["count"] for flow in scenario["flows"]}
    streams = {f"{way}_streams": counts[way] for way in ("upload", "download") if way in counts}
    title = ", ".join(f"{link} {scenario['links'][link]['rate']} {q}" for link, q in links.items())
    qdisc = {"name": first["qdisc"]["name"], "id": "1:", "parent": "root", "params": {}}
    return {
        "NAME": name,
        "TITLE": title,
        "HOST": "sojourn",
        "HOSTS": ["sojourn"],
        "LOCAL_HOST": "sojourn",
        "TIME": EPOCH,
        "T0": EPOCH,
        "LENGTH": round(seconds(scenario["duration"])),
        "TOTAL_LENGTH": round(seconds(scenario["duration"])),
        "STEP_SIZE": step,
        "IP_VERSION": 4,
        "FLENT_VERSION": "2.3.0",
        "NOTE": f"simulated by sojourn {result.version}, seed {scenario['seed']}",
        "TEST_PARAMETERS": streams,
        "DATA_FILENAME": file,
        "EGRESS_INFO": {"qdiscs": [qdisc]},
        "SERIES_META": {one: {} for one in series},
    }


def _series(result: Result, name: str) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Return the series of a test by name, and the raw values."""
    step = seconds(result.scenario["sample"])
    series: dict[str, list[Any]] = {}
    for flow, record in result.flows.items():
        if record["kind"] == "tcp":
            series[_flow_name(name, flow)] = _rounded(
                record.series["delivered_bytes"] * 8e-6 / step
            )
    pings, raw = _pings(result)
    sums = {}
    for way in ("upload", "download"):
        members = [values for one, values in series.items() if one.startswith(f"TCP {way}")]
        if members:
            total = np.sum(members, axis=0)
            sums[f"TCP {way} avg"] = _rounded(total / len(members))
            sums[f"TCP {way} sum"] = _rounded(total)
    if len(sums) == 4:
        both = np.add(
            *(np.asarray(sums[f"TCP {way} sum"], float) for way in ("upload", "download"))
        )
        sums["TCP totals"] = _rounded(both)
    if len(pings) > 1:
        known = [[np.nan if v is None else v for v in values] for values in pings.values()]
        sums["Ping (ms) avg"] = _rounded(np.mean(known, axis=0))
    times = EPOCH_S + result.time_s
    for one, values in series.items():
        raw[one] = [{"t": round(float(t), 6), "val": v} for t, v in zip(times, values, strict=True)]
    return {**series, **pings, **sums}, raw


def _flow_name(test: str, flow: str) -> str:
    """Return flent's name of a flow, like "TCP upload BE" of upload-BE in rrul."""
    group, _, number = flow.partition(".")
    way, _, kind = group.partition("-")
    index = int(number) + 1 if number else 1
    if test == "rrul":
        return f"TCP {way} {kind}"
    return (
        f"TCP {way} BE{index if index > 1 else ''}" if test == "rrul_be" else f"TCP {way}::{index}"
    )


def _pings(result: Result) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Return the round-trip times of the probes in ms at each sample, and the raw values."""
    names = {flow["name"] for flow in result.scenario["flows"]}
    order = list(result.flows)
    base = sum(seconds(link["delay"]) for link in result.scenario["links"].values())
    series: dict[str, list[Any]] = {}
    raw: dict[str, list[Any]] = {}
    for kind in ("-EF", "-BE", "-BK", ""):
        pair = [f"probe-{way}{kind}" for way in ("up", "down")]
        if not set(pair) <= names:
            continue
        total = np.full(len(result.time_s), base)
        for probe, link in zip(pair, ("up", "down"), strict=True):
            total = total + _waited(result, link, order.index(probe))
        values = [None if np.isnan(v) else round(v * 1e3, 4) for v in total.tolist()]
        label = f"Ping (ms) UDP {kind[1:]}" if kind else "Ping (ms) ICMP"
        labels = [label, "Ping (ms) ICMP"] if kind == "-BE" else [label]
        for one in labels:
            series[one] = values
            raw[one] = [
                {"t": round(EPOCH_S + float(t), 6), "val": v, "seq": n}
                for n, (t, v) in enumerate(zip(result.time_s, values, strict=True))
                if v is not None
            ]
    if result.scenario["name"] == "rrul_be" and "Ping (ms) ICMP" in series:
        series["Ping (ms) UDP BE1"] = series["Ping (ms) ICMP"]
        raw["Ping (ms) UDP BE1"] = raw["Ping (ms) ICMP"]
    return series, raw


def _waited(result: Result, link: str, flow: int) -> Array:
    """Return the delay (s) of the last packet of a flow up to each sample; NaN before the first."""
    log = result.links[link].packet_log
    mine = (log["flow"] == flow) & (log["fate"] == 0)
    at, waited = log["left_s"][mine], (log["left_s"] - log["arrived_s"])[mine]
    index = np.searchsorted(at, result.time_s, side="right") - 1
    waits: Array = np.where(
        index >= 0, waited[np.maximum(index, 0)] if len(waited) else 0.0, np.nan
    )
    return waits


def _rounded(values: Any) -> list[float | None]:
    return [None if np.isnan(v) else round(float(v), 6) for v in np.asarray(values, dtype=float)]


@public
def write_mahimahi(result: Result, path: str | Path, link: str | None = None) -> None:
    """Write the packet log of a link as mm-link logs it, for its graphs.

    The lines are ``TIME + BYTES`` (arrival), ``TIME - BYTES DELAY`` (departure) and
    ``TIME # BYTES`` (delivery opportunity), with times in ms. A drop is a comment,
    ``# TIME d PACKETS BYTES``, since mm-throughput-graph refuses the lines with d of mm-link.

    Parameters
    ----------
    result : Result
        A run with `packet_log`.
    path : str or Path
        The file.
    link : str, optional
        The link. The default is the same as in `compare`.

    Raises
    ------
    InputError
        If the run has no packet log, the link is unknown, or the file cannot be written.
    """
    from sojourn._util.paths import compared_link

    path = Path(path)
    check_file(path)
    name = compared_link(result.scenario, link)
    if not result.scenario["packet_log"]:
        raise InputError("--mahimahi: the scenario needs packet_log")
    spec = result.scenario["links"][name]
    head = [
        f"# mahimahi mm-link ({name}) [{spec['rate']}] > {path.name}",
        f"# command line: sojourn {result.version}, {spec['qdisc']['name']}",
        f"# queue: {spec['qdisc']['name']}",
        "# init timestamp: 0",
        "# base timestamp: 0",
    ]
    write_text(path, "\n".join([*head, *_events(result, name)]) + "\n")


def _events(result: Result, name: str) -> Iterator[str]:
    """Yield the lines of a link in order of time."""
    log = result.links[name].packet_log
    pieces = _pieces(result, name)
    events: list[tuple[int, int, str]] = []
    for arrived, left, size, fate in zip(
        log["arrived_s"], log["left_s"], log["size_bytes"], log["fate"], strict=True
    ):
        came = int(arrived * 1e3)
        events.append((came, 0, f"{came} + {size}"))
        if fate == 0:
            bps = next((rate for start, rate in reversed(pieces) if start <= left), 0.0)
            gone = int((left + (size * 8 / bps if bps else 0.0)) * 1e3)
            events.append((gone, 2, f"{gone} - {size} {gone - came}"))
        else:
            at = int((left if fate == 3 else arrived) * 1e3)
            events.append((at, 3, f"# {at} d 1 {size}"))
    times = _opportunities(result, name, pieces)
    events += [(at, 1, f"{at} # {OPPORTUNITY_BYTES}") for at in times]
    events.sort(key=lambda one: one[:2])
    return (line for _, _, line in events)


def _pieces(result: Result, name: str) -> list[tuple[float, float]]:
    """Return the rates of a link over time: (start in s, bit/s), ascending."""
    scenario = result.scenario
    spec = scenario["links"][name]
    end = seconds(scenario["duration"])
    pieces = [(0.0, bps_of(spec["rate"]))]
    trace = spec.get("trace", {})
    if "rate_bps" in trace:
        rows = [(t / 1e9, float(r)) for t, r in zip(trace["t_ns"], trace["rate_bps"], strict=True)]
        period = seconds(trace["repeat"]) if "repeat" in trace else end
        pieces += [(k * period + t, r) for k in range(int(end / period) + 1) for t, r in rows]
    for change in scenario.get("changes", ()):
        rate = change.get("links", {}).get(name, {}).get("rate")
        if rate is not None:
            pieces.append((seconds(change["at"]), bps_of(rate)))
    return sorted(pieces, key=lambda piece: piece[0])


def _opportunities(result: Result, name: str, pieces: list[tuple[float, float]]) -> Iterator[int]:
    """Yield the times in ms at which the link could have delivered an opportunity."""
    end = seconds(result.scenario["duration"])
    trace = result.scenario["links"][name].get("trace", {})
    if "opportunities_ms" in trace:
        times = trace["opportunities_ms"]
        for k in range(int(end * 1e3 / times[-1]) + 1):
            yield from (t + k * times[-1] for t in times if t + k * times[-1] <= end * 1e3)
        return
    bits = 0.0
    for (start, rate), (until, _) in zip(pieces, [*pieces[1:], (end, 0.0)], strict=True):
        at = start
        while rate > 0:
            at += (OPPORTUNITY_BYTES * 8 - bits) / rate
            if at > until:
                bits = OPPORTUNITY_BYTES * 8 - (at - until) * rate
                break
            bits = 0.0
            yield int(at * 1e3)
