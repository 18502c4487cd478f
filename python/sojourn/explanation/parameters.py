"""Rules about parameters outside their usual range for the rate and the round-trip time."""

from collections.abc import Iterator, Mapping
from typing import Any

from sojourn._util.units import bps_of, duration, figures, rate
from sojourn.explanation.finding import Finding
from sojourn.explanation.queues import PACKET_BYTES, queue_s, time_s

LONG_INTERVAL = 10.0
"""Ratio of an interval to the longest round-trip time above which it is called long.

RFC 8289, 4.3: 100 ms suits round-trip times from 10 ms up.
"""

LOW_THRESHOLD = 0.25
"""Share of a bandwidth-delay product below which the upper threshold of RED is called low."""

SMALL_BUFFER = 0.1
"""Share of a bandwidth-delay product below which a buffer is called small."""

BLOATED_RTTS = 4.0
"""Queue in round-trip times from which it is called bloated, if it exceeds `BLOATED_S`."""

BLOATED_S = 0.1
"""Queue from which it can be called bloated."""

LONGEST = "the longest round-trip time"
"""Words of the messages for the time that parameters are compared with."""

Table = Mapping[str, Any]


def parameters(name: str, spec: Table, rtt_s: float, what: str) -> Iterator[Finding]:
    """Report parameters of a link that do not fit its rate or round-trip time.

    `rtt_s` is the longest round-trip time of its TCP flows, and `what` the path of that value. If
    it is 0, the parameters are only compared with the rate and with each other.
    """
    for rule in (_target_of_a_packet, _threshold_of_a_buffer):
        yield from rule(name, spec)
    if rtt_s > 0:
        for compare in (_target, _interval, _thresholds, _buffer):
            yield from compare(name, spec, rtt_s, what)


def _target_of_a_packet(name: str, spec: Table) -> Iterator[Finding]:
    qdisc, bps = spec["qdisc"], bps_of(spec["rate"])
    target, packet_s = time_s(qdisc, "target"), PACKET_BYTES * 8 / bps
    if target is not None and target < packet_s:
        yield Finding(
            "target below a packet",
            f"The target of {qdisc['name']} at {name} ({duration(target)}) is below the time of "
            f"one packet at {rate(bps)} ({duration(packet_s)}): set it to {duration(packet_s)} or "
            "longer.",
            {f"links.{name}.qdisc.target": target, f"links.{name}.rate_bps": bps},
            change=(f"{name}.qdisc.target={packet_s * 1e6:.0f}us",),
        )


def _target(name: str, spec: Table, rtt_s: float, what: str) -> Iterator[Finding]:
    qdisc, bps = spec["qdisc"], bps_of(spec["rate"])
    target = time_s(qdisc, "target")
    if target is not None and target > max(rtt_s, PACKET_BYTES * 8 / bps):
        yield Finding(
            "target above the RTT",
            f"The target of {qdisc['name']} at {name} ({duration(target)}) is longer than the "
            f"longest round-trip time ({duration(rtt_s)}): the queue may add more delay than the "
            "path has.",
            {f"links.{name}.qdisc.target": target, what: rtt_s},
        )


def _interval(name: str, spec: Table, rtt_s: float, what: str) -> Iterator[Finding]:
    qdisc = spec["qdisc"]
    every = time_s(qdisc, "interval")
    if every is None or time_s(qdisc, "target") is None:
        return
    subject = f"The interval of {qdisc['name']} at {name} ({duration(every)}) is"
    evidence = {f"links.{name}.qdisc.interval": every, what: rtt_s}
    if every < rtt_s:
        yield Finding(
            "interval below the RTT",
            f"{subject} shorter than the longest round-trip time ({duration(rtt_s)}); RFC 8289, "
            "4.3 asks for the longest one.",
            evidence,
            change=(f"{name}.qdisc.interval={rtt_s * 1e6:.0f}us",),
        )
    elif every > LONG_INTERVAL * rtt_s:
        yield Finding(
            "interval far above the RTT",
            f"{subject} {every / rtt_s:.0f} times the longest round-trip time ({duration(rtt_s)}): "
            "a queue may stand that long before the first drop.",
            evidence,
        )


def _thresholds(name: str, spec: Table, rtt_s: float, what: str) -> Iterator[Finding]:
    """Compare the thresholds of RED and its kin with the bandwidth-delay product."""
    qdisc, bps = spec["qdisc"], bps_of(spec["rate"])
    low_s, high_s = (queue_s(str(qdisc.get(key, "")), bps) for key in ("min_th", "max_th"))
    if low_s is None or high_s is None:
        return
    place, where = f"of {qdisc['name']} at {name}", f"links.{name}.qdisc"
    if high_s < LOW_THRESHOLD * rtt_s:
        yield Finding(
            "low thresholds",
            f"max_th {place} ({qdisc['max_th']}) is {duration(high_s)} at {rate(bps)}, less than a "
            f"quarter of the longest round-trip time ({duration(rtt_s)}): the link may fall idle.",
            {f"{where}.max_th": qdisc["max_th"], what: rtt_s},
        )
    elif low_s > max(BLOATED_S, BLOATED_RTTS * rtt_s):
        yield Finding(
            "high thresholds",
            f"min_th {place} ({qdisc['min_th']}) is {duration(low_s)} at {rate(bps)}, "
            f"{low_s / rtt_s:.0f} times the longest round-trip time: it acts late.",
            {f"{where}.min_th": qdisc["min_th"], what: rtt_s},
        )


def _threshold_of_a_buffer(name: str, spec: Table) -> Iterator[Finding]:
    qdisc, bps = spec["qdisc"], bps_of(spec["rate"])
    high_s, buffer_s = (queue_s(str(qdisc.get(key, "")), bps) for key in ("max_th", "limit"))
    if high_s is not None and buffer_s is not None and high_s > buffer_s:
        where = f"links.{name}.qdisc"
        yield Finding(
            "threshold above the buffer",
            f"max_th of {qdisc['name']} at {name} ({qdisc['max_th']}) is above its buffer "
            f"({qdisc['limit']}): the buffer overflows first.",
            {f"{where}.max_th": qdisc["max_th"], f"{where}.limit": qdisc["limit"]},
        )


def _buffer(name: str, spec: Table, rtt_s: float, what: str) -> Iterator[Finding]:
    qdisc, bps = spec["qdisc"], bps_of(spec["rate"])
    limit = str(qdisc.get("limit", ""))
    buffer_s = queue_s(limit, bps)
    if buffer_s is None:
        return
    subject = f"The buffer of {name} ({limit}) holds {duration(buffer_s)} at {rate(bps)}"
    evidence = {f"links.{name}.qdisc.limit": limit, what: rtt_s}
    if buffer_s < SMALL_BUFFER * rtt_s:
        yield Finding(
            "small buffer",
            f"{subject}, less than a tenth of the longest round-trip time ({duration(rtt_s)}): a "
            f"limit of one bandwidth-delay product is {figures(bps * rtt_s / 8e3)} kB.",
            evidence,
            change=(f"{name}.qdisc.limit={bps * rtt_s / 8:.0f}B",),
        )
    elif qdisc["name"] == "droptail" and buffer_s > max(BLOATED_S, BLOATED_RTTS * rtt_s):
        yield Finding(
            "large buffer",
            f"{subject}, {buffer_s / rtt_s:.0f} times the longest round-trip time: drop-tail fills "
            "it; set a smaller limit, or an AQM like fq_codel.",
            evidence,
        )
