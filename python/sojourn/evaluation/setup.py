"""Plan of an evaluation: sizes of its runs, and the parts that its scenarios are built from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Table = dict[str, Any]

LINK = "bottleneck"
"""Name of the link under test."""

RTT_S = 0.1
"""Round-trip time of the base set-up, in seconds."""

PACKET_BYTES = 1500
"""Packet size of the base set-up."""

LEVELS = {"mild": 0.036, "medium": 0.081, "heavy": 0.114}
"""Number of flows of a level of congestion, as a share of S (RFC 7928, 8.2.2 to 8.2.4)."""


@dataclass(frozen=True)
class Plan:
    """Sizes of the runs: rate of the link, duration, warm-up, seeds.

    `quick` reduces the number of variants of a case as well.
    """

    rate_bps: float
    quick: bool

    @property
    def warmup_s(self) -> float:
        """Time at the start that is not measured: 20 s, or 10 s if quick."""
        return 10.0 if self.quick else 20.0

    @property
    def duration_s(self) -> float:
        """Duration of a run with constant load, with its warm-up."""
        return self.warmup_s + (50.0 if self.quick else 300.0)

    @property
    def seeds(self) -> int:
        """Number of seeds: 10, or 4 if quick; 3 above 50 Mbit/s."""
        if self.rate_bps > 50e6:
            return 3
        return 4 if self.quick else 10

    def buffer(self, rtt_s: float = RTT_S, rate_bps: float | None = None) -> int:
        """Return the buffer in bytes: the bandwidth-delay product, at least 10 packets."""
        bdp = (self.rate_bps if rate_bps is None else rate_bps) * rtt_s / 8
        return max(round(bdp), 10 * PACKET_BYTES)

    def flows(self, level: str, rate_bps: float | None = None) -> int:
        """Return the number of flows of a level of congestion, from S = BDP + buffer in packets."""
        bdp = (self.rate_bps if rate_bps is None else rate_bps) * RTT_S / 8
        packets = (bdp + self.buffer(RTT_S, rate_bps)) / PACKET_BYTES
        return max(1, int(LEVELS[level] * packets + 0.5))


def rate(bps: float) -> str:
    """Return a rate as text of a scenario."""
    return f"{max(1, round(bps))}bit"


def time(value_s: float) -> str:
    """Return a duration as text of a scenario."""
    return f"{round(value_s * 1e9)}ns"


def scenario(
    name: str,
    plan: Plan,
    flows: Sequence[Table],
    *,
    link: Mapping[str, Any] = {},
    links: Mapping[str, Table] = {},
    duration_s: float | None = None,
    rtt_s: float = RTT_S,
    **more: Any,
) -> Table:
    """Return a scenario with the link under test, whose discipline is set later."""
    own = {
        "rate": rate(plan.rate_bps),
        "qdisc": {"name": "droptail", "limit": f"{plan.buffer(rtt_s)}B"},
        **link,
    }
    return {
        "name": name,
        "duration": time(plan.duration_s if duration_s is None else duration_s),
        "warmup": time(plan.warmup_s),
        "sample": "100ms",
        "sample_flows": False,
        "packet_log": plan.rate_bps <= 20e6,
        "links": {LINK: own, **links},
        "flows": list(flows),
        **more,
    }


def tcp(
    name: str,
    count: int = 1,
    control: str = "sack",
    *,
    rtt_s: float = RTT_S,
    path: Sequence[str] = (LINK,),
    source: Table | None = None,
    **parameters: Any,
) -> Table:
    """Return endless TCP flows, or flows of another `source`, with `parameters` of the TCP.

    The senders have the profile rfc, since RFC 7928 names TCPs of the RFCs.
    """
    return {
        "name": name,
        "count": count,
        "source": source or {"name": "bulk", "start": "uniform(0s, 1s)"},
        "tcp": {"name": control, "profile": "rfc", **parameters},
        "path": list(path),
        "rtt": time(rtt_s),
    }


def udp(
    name: str, bps: float, packet: int, *, path: Sequence[str] = (LINK,), rtt_s: float = RTT_S
) -> Table:
    """Return a UDP flow of constant rate."""
    source = {"name": "cbr", "rate": rate(bps), "packet": f"{packet}B"}
    return {"name": name, "source": source, "path": list(path), "rtt": time(rtt_s)}


def call(name: str = "call", path: Sequence[str] = (LINK,)) -> Table:
    """Return one direction of a call: G.711, 160 B of voice and 40 B of headers every 20 ms."""
    return udp(name, 80e3, 200, path=path)


def web(name: str = "web", count: int = 1, path: Sequence[str] = (LINK,)) -> Table:
    """Return users who load pages of 50 objects, one page after the other."""
    source = {
        "name": "web",
        "sessions": count,
        "start": "uniform(0s, 1s)",
        "pages": "auto",
        "page_gap": "100ms",
        "objects": OBJECTS,
        "object_gap": "exponential(10ms)",
        "parallel": CONNECTIONS,
        "size": "pareto(mean=20kB, shape=1.2)",
    }
    return tcp(name, 1, source=source, path=path)


OBJECTS = 50
"""Objects of a web page."""

CONNECTIONS = 6
"""Connections that a web page uses at the same time (RFC 7928, 7.2)."""


def frames(plan: Plan, path: Sequence[str] = (LINK,)) -> list[Table]:
    """Return video of 2 Mbit/s as bursts: 30 frames a second, every 15th eight times as large.

    Each frame leaves at the rate of the access link, ten times the bottleneck's rate. The
    additional part of the large frames is a flow of its own.
    """
    access, small = 10 * plan.rate_bps, 2e6 * 0.5 / 22
    flows = []
    for name, bits, period_s in (("video", small, 1 / 30), ("video-key", 7 * small, 0.5)):
        on_s = bits / access
        source = {"name": "onoff", "rate": rate(access), "packet": "1200B"}
        source |= {"on": time(on_s), "off": time(period_s - on_s)}
        flows.append({"name": name, "source": source, "path": list(path), "rtt": time(RTT_S)})
    return flows


def adaptive_video(path: Sequence[str] = (LINK,)) -> Table:
    """Return video over TCP whose rate follows the buffer of the player.

    Segments last 2 s; rates are 0.5, 1, 2 and 4 Mbit/s. The buffer is an eighth of the source's
    default, so that a run of 60 s is long enough to fill it.
    """
    source = {
        "name": "video",
        "segment": "2s",
        "lowest": "500kbit",
        "highest": "4mbit",
        "levels": 4,
        "buffer": "30s",
        "reservoir": "8s",
        "cushion": "18s",
        "resume": "2s",
    }
    return tcp("video", source=source, path=path)


def alternating(high_bps: float, low_bps: float, phase_s: float, first_s: float) -> Table:
    """Return the trace of a rate that is high for `first_s`, then alternates from low to high."""
    if first_s == phase_s:
        rows = [(0.0, high_bps), (phase_s, low_bps)]
        repeat: Table = {"repeat": time(2 * phase_s)}
    else:
        starts = [0.0, *(first_s + k * phase_s for k in range(40))]
        rows = [(t, low_bps if k % 2 else high_bps) for k, t in enumerate(starts)]
        repeat = {}
    columns = {"t_ns": [round(t * 1e9) for t, _ in rows], "rate_bps": [round(r) for _, r in rows]}
    return {"trace": {**columns, **repeat}}
