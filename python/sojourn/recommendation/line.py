"""The line of a question, and the scenarios that test a discipline on it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.inputs import near, of_link, shown
from sojourn._util.paths import links_of
from sojourn._util.units import bps_of, seconds
from sojourn.scenario import link_trace

Table = dict[str, Any]

SHAPED = 0.95
"""Rate of a shaper as a share of the line: the queue then forms in the shaper, not in the modem."""

LOADS = {"light": 0.5, "usual": 1.0, "heavy": 2.0}
"""Loads, as factors of the numbers of flows."""

HELD_OUT = {"low": 0.75, "high": 1.5}
"""Loads of the final test, on which nothing was tuned."""

TRAFFICS = ("home", "office", "server", "datacentre")
"""Names of traffic."""

UNSHAPED = ("server", "datacentre")
"""Traffic of hosts whose own link is the bottleneck, so that no shaper is needed."""

PACKETS = 60_000
"""Packets of a run, from which its duration follows; it has at least 200 round-trip times."""

ENOUGH_S, ENOUGH_RTTS = 17.2, 2000
"""Duration of a run in seconds, or in round-trip times if these are shorter.

70 % of it are measured, 12 s: with 4.5 s the throughput of fast lines depends on slow start.
"""

WINDOWS = 20
"""Windows of a run; 14 of them are measured. The worst one is a fact of the run."""

OBJECT_BYTES = 50_000
"""Mean size of a page or transfer."""

TRACE_S = 60.0
"""Longest part of a trace for which a run lasts; `PACKETS` is a second limit."""

RATE_MIN_BPS, RATE_MAX_BPS = 64e3, 1e12
"""Range of rates: below it a call fills the line, above it a run takes minutes."""

RTT_MIN_S, RTT_MAX_S = 1e-6, 5.0
"""Range of round-trip times."""


@dataclass(frozen=True)
class Line:
    """Line of a question: rates, range of round-trip times, traffic, buffer of the present queue.

    `buffer` is a limit of drop-tail, or a time that is converted at the rate of each direction. It
    may have two values, "50ms/150ms" for down and up.

    `flows` has the flows of a scenario file, if traffic is a file. `traces` has the traces of
    directions whose rates vary; their rates are then means.
    """

    down_bps: float
    up_bps: float
    rtt_s: tuple[float, float]
    traffic: str
    shaped: bool
    buffer: str
    flows: tuple[Table, ...] = ()
    traces: Mapping[str, "Trace"] = field(default_factory=dict)

    @property
    def duration_s(self) -> float:
        """Duration of a run, of which the first 30 % are not measured."""
        fast = max(self.down_bps, self.up_bps)
        period_s = max((one.period_s for one in self.traces.values()), default=0.0)
        rtt_s = self.rtt_s[1]
        packets_s = min(30.0, PACKETS * 12_000 / fast)
        enough_s = max(packets_s, 200 * rtt_s, min(ENOUGH_S, ENOUGH_RTTS * rtt_s), 0.02)
        return max(enough_s, min(period_s, TRACE_S))


@dataclass(frozen=True)
class Trace:
    """Recorded rates of a direction, which repeat: file, columns, mean rate, period."""

    file: str
    columns: Table
    mean_bps: float
    period_s: float

    def table(self) -> Table:
        """Return the trace of a link that names the file."""
        repeat = {key: self.columns[key] for key in ("repeat",) if key in self.columns}
        return {"file": self.file, **repeat}


def rate_of(option: str, value: str) -> tuple[float, Trace | None]:
    """Return a rate of the command line in bit/s, and the trace if it is the name of a file."""
    path = Path(value)
    if not path.is_file():
        try:
            bps = bps_of(of_link(option, "rate", value))
            if not RATE_MIN_BPS <= bps <= RATE_MAX_BPS:
                text = f"{shown(value)} is out of range, allowed: 64kbit to 1000gbit"
                raise InputError(f"{option}: {text}")
            return bps, None
        except InputError as error:
            hint = "; or the file of a trace" if re.search(r"/|[.][a-z]", value) else ""
            raise InputError(f"{error}{hint}") from None
    try:
        columns, mean_bps, period_s = link_trace.repeated(path)
    except InputError as error:
        raise InputError(f"{option}: {error}") from None
    of_link(option, "trace", columns)
    return mean_bps, Trace(value, columns, mean_bps, period_s)


def rtt_of(value: str) -> tuple[float, float]:
    """Return a range of round-trip times like "20ms..120ms", or a single one, in seconds."""
    ends = value.split("..")
    if len(ends) > 2:
        raise InputError(f"--rtt: {shown(value)} is not a time or a range like 20ms..120ms")
    low, high = (seconds(of_link("--rtt", "delay", one.strip())) for one in (ends[0], ends[-1]))
    if not RTT_MIN_S <= low <= high <= RTT_MAX_S:
        raise InputError(f"--rtt: {shown(value)} is out of range, allowed: 1us to 5s, ascending")
    return low, high


def make(
    down: str,
    up: str,
    rtt: str,
    traffic: str,
    *,
    buffer: str = "1000p",
    shaper: bool | None = None,
    trust: bool = False,
) -> Line:
    """Return a validated line. Raises InputError with the option that is wrong."""
    flows: tuple[Table, ...] = ()
    name = traffic.lower().replace("center", "centre")
    if re.search(r"[./]", traffic):
        flows, name = _flows_of(Path(traffic), trust), traffic
    elif name not in TRAFFICS:
        hint = near(name, TRAFFICS)
        raise InputError(f"--traffic: unknown traffic {shown(traffic)}{hint}; or a scenario file")
    _check_buffer(buffer)
    rates = {"down": rate_of("--down", down), "up": rate_of("--up", up)}
    traces = {way: trace for way, (_, trace) in rates.items() if trace}
    if traces and shaper:
        raise InputError("--shaper: requires a constant rate in both directions, not a trace")
    shaped = name not in UNSHAPED and not traces if shaper is None else shaper
    bps = rates["down"][0], rates["up"][0]
    return Line(*bps, rtt_of(rtt), name, shaped, buffer, flows, traces)


def _check_buffer(buffer: str) -> None:
    """Raise InputError unless a buffer is packets, bytes or a time, or two of them with a slash."""
    parts = buffer.split("/")
    if len(parts) > 2:
        raise InputError(f"--buffer: {shown(buffer)} has more than two values, down and up")
    if len(parts) == 2:
        for part in parts:
            _check_buffer(part)
        return
    if buffer.endswith("s"):
        of_link("--buffer", "delay", buffer)
        return
    tree = {"link": {"rate": "1mbit", "qdisc": {"name": "droptail", "limit": buffer}}}
    try:
        _sojourn.canonical_links(json.dumps(tree))
    except InputError as error:
        text = str(error).removeprefix("link.qdisc.limit: ")
        raise InputError(f"--buffer: {text}; or a time like 100ms") from None


ASYMMETRY = 10
"""Ratio of the rates from which acknowledgements fill the uplink, so that CAKE thins them."""


def installed(line: Line, qdisc: Mapping[str, Any], way: str, *, shaped: bool) -> Table:
    """Return the link of a direction as the commands of `script` install it.

    CAKE has its own shaper, of whose rate its target depends, and shares the line among the hosts
    of the home; on the way in, dropped packets count as sent. Other disciplines are behind a
    shaper at `SHAPED` of the line.
    """
    bps = line.down_bps if way == "down" else line.up_bps
    sized = _sized(qdisc, bps, way)
    shaped_bps = round(bps * (SHAPED if shaped else 1.0))
    if not shaped or qdisc["name"] != "cake":
        return {"rate": f"{shaped_bps}bit", "qdisc": sized}
    own: Table = {"name": "cake", "bandwidth": f"{shaped_bps}bit"}
    if way == "down":
        own |= {"tins": "besteffort", "isolation": "dual_dsthost", "wash": True, "ingress": True}
    else:
        own["isolation"] = "dual_srchost"
        if line.down_bps >= ASYMMETRY * line.up_bps:
            own["ack_filter"] = "on"
    return {"rate": f"{round(bps)}bit", "qdisc": {**own, **sized}}


def _sized(qdisc: Mapping[str, Any], bps: float, way: str) -> Table:
    """Return a discipline with the limit of a direction; a time is that time's bytes at a rate."""
    if "limit" not in qdisc:
        return dict(qdisc)
    ends = str(qdisc["limit"]).split("/")
    limit = ends[0] if way == "down" else ends[-1]
    if not limit.endswith("s"):
        return {**qdisc, "limit": limit}
    return {**qdisc, "limit": f"{max(1514, round(seconds(limit) * bps / 8))}B"}


def _flows_of(path: Path, trust: bool) -> tuple[Table, ...]:
    """Return the flows of a scenario file, which must use links called up and down only."""
    from sojourn.scenario.draft import Draft, canonical

    draft = Draft.read(path, trust=trust)
    try:
        whole = canonical(draft)
    except InputError as error:
        raise InputError(f"--traffic: {error}") from None
    used = {
        link
        for flow in whole["flows"]
        for link in (*links_of(flow), *links_of(flow, "return_path"))
    }
    if not used <= {"up", "down"}:
        names = ", ".join(sorted(used))
        raise InputError(f"--traffic: {path}: its links must be called up and down, not {names}")
    return tuple(whole["flows"])


def scenario(
    line: Line,
    qdisc: Mapping[str, Any],
    *,
    load: float,
    seed: int,
    shaped: bool,
    rtt_s: tuple[float, float] | None = None,
) -> Table:
    """Return a run of the line with a discipline in both directions."""
    low, high = rtt_s or line.rtt_s
    links = {way: installed(line, qdisc, way, shaped=shaped) for way in ("down", "up")}
    for way, trace in line.traces.items():
        links[way]["trace"] = trace.columns
    rtt = (
        f"{round(low * 1e9)}ns"
        if low == high
        else (f"uniform({round(low * 1e9)}ns, {round(high * 1e9)}ns)")
    )
    lasts = line.duration_s if rtt_s is None else max(line.duration_s, 200 * high)
    flows = [{**flow, "rtt": rtt} for flow in _flows(line, load, lasts)]
    return {
        "name": "recommend",
        "duration": f"{round(lasts * 1e9)}ns",
        "warmup": f"{round(0.3 * lasts * 1e9)}ns",
        "seed": seed,
        "sample": f"{round(lasts * 1e9 / WINDOWS)}ns",
        "sample_flows": False,
        "links": links,
        "flows": flows,
    }


def _flows(line: Line, load: float, lasts: float) -> list[Table]:
    """Return the traffic at a load."""
    if line.flows:
        return [
            {**flow, "count": max(1, round(flow["count"] * load))}
            if flow["source"]["name"] == "bulk"
            else dict(flow)
            for flow in line.flows
        ]
    start = f"uniform(0s, {round(0.1 * lasts * 1e9)}ns)"

    def tcp(name: str, count: float, way: str, source: Table, control: str = "cubic") -> Table:
        return {
            "name": name, "count": max(1, round(count)), "source": source, "path": [way],
            "tcp": {"name": control, "profile": "rfc", "ecn": control == "dctcp"},
            "return_path": ["up" if way == "down" else "down"],
        }  # fmt: skip

    def bulk(name: str, count: float, way: str, control: str = "cubic") -> Table:
        return tcp(name, count, way, {"name": "bulk", "start": start}, control)

    def hosts(name: str, count: float, way: str) -> list[Table]:
        """Return bulk flows of two hosts: all but one, and one."""
        flows = round(count)
        busy = {**bulk(name, flows - 1, way), **_host(way, "busy")}
        return [busy, {**bulk(f"{name}_one", 1, way), **_host(way, "quiet")}]

    def udp(name: str, way: str, bps: float, packet: int) -> Table:
        source = {"name": "cbr", "rate": f"{round(bps)}bit", "packet": f"{packet}B", "jitter": 0.1}
        return {"name": name, "source": source, "path": [way]}

    def web(users: float) -> Table:
        source = {"name": "transfers", "size": "lomax(mean=50kB, shape=1.5)",
                  "gap": "exponential(500ms)", "start": start}  # fmt: skip
        return tcp("web", 6 * users, "down", source)

    def request(way: str) -> Table:
        gap = f"exponential({round(min(1.0, lasts / 25) * 1e9)}ns)"
        return tcp("request", 8, way, {"name": "transfers", "size": "1kB", "gap": gap})

    call = [udp("hear", "down", 80e3, 200), udp("speak", "up", 80e3, 200)]
    if line.traffic == "home":
        return [
            *hosts("download", 3 * load, "down"),
            *hosts("upload", 2 * load, "up"),
            web(load),
            request("down"),
            *call,
        ]
    if line.traffic == "office":
        return [*hosts("download", 10 * load, "down"), *hosts("upload", 6 * load, "up"),
                web(8 * load), request("down"), *call]  # fmt: skip
    control = "dctcp" if line.traffic == "datacentre" else "cubic"
    probe = udp("probe", "up", max(80e3, 100 * 1600 / lasts), 200)
    load_bps = line.up_bps * min(0.8, 0.4 * load)
    source = {"name": "poisson", "size": "lomax(mean=50kB, shape=1.5)",
              "load": f"{round(load_bps)}bit"}  # fmt: skip
    return [
        bulk("bulk", 4 * load, "up", control),
        tcp("short", 8, "up", source, control),
        request("up"),
        probe,
    ]


def _host(way: str, name: str) -> Table:
    """Return the host of the home or office of a flow: it receives downloads and sends uploads."""
    return {"receiver" if way == "down" else "sender": name}
