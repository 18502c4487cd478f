"""Rules about one link, simulated or live: its summary and its canonical description.

A rule yields a finding only if its condition on measured values holds.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sojourn._util.units import bps_of, counted, duration, rate, share
from sojourn.explanation import queues
from sojourn.explanation.finding import Finding
from sojourn.explanation.queues import PACKET_BYTES
from sojourn.result.result import Record, Result
from sojourn.result.select import links_by_queue
from sojourn.scenario.describe import MANY, varies

BUSY = 0.9
"""Utilisation from which a link is a bottleneck."""

STANDING_S = 0.005
"""Median queueing delay from which a queue is a standing queue (RFC 8289, 4.3: acceptable)."""

BURSTY = 10.0
"""Ratio of the 99th percentile to the median from which the queue consists of bursts."""

OVERFLOWS = 20
"""Number of drops from which their cause is reported."""

LOSSY = 0.05
"""Share of the packets from which drops at a full buffer are reported under any discipline."""

AQM_KEYS = {"target", "max_p", "q_ref", "p_max", "t_update", "min_th"}
"""Parameters of which a discipline with an AQM algorithm has at least one."""

Table = Mapping[str, Any]


def listed(result: Result) -> list[tuple[str, Record]]:
    """Return the links of a result; if they are many, those with the longest queues first."""
    return [(name, result.links[name]) for name in links_by_queue(result, MANY)]


def busy(name: str, link: Table, spec: Table) -> Iterator[Finding]:
    """Report a link that was full, or whose shaper was."""
    use, shaped = queues.used(link, spec), queues.shaper_bps(spec)
    if use is None or use < BUSY:
        return
    sent = f"it sent {share(use)} of the time"
    if shaped is not None:
        sent = f"it sent at {share(use)} of the rate of its shaper ({rate(shaped)})"
    yield Finding(
        "bottleneck",
        f"Link {name} was a bottleneck: {sent}.",
        {f"links.{name}.utilisation": link["utilisation"]},
        "fact",
    )


def no_queue(name: str, link: Table, spec: Table, others: Sequence[str]) -> Iterator[Finding]:
    """Report an expected bottleneck that had no queue; `others` are the links that were full."""
    longest = link["sojourn_max_s"]
    packet_s = PACKET_BYTES * 8 / bps_of(spec["rate"])
    if longest is None or longest > packet_s or varies(spec):
        return
    elsewhere = "look for the limit elsewhere: application, window, or another link"
    if others:
        elsewhere = f"the bottleneck was {' and '.join(others)}"
    yield Finding(
        "no queue",
        f"Link {name} was not a bottleneck: no packet waited longer than one packet of "
        f"{PACKET_BYTES} bytes takes ({duration(packet_s)}); {elsewhere}.",
        {f"links.{name}.sojourn_max_s": longest},
    )


def queue(name: str, link: Table, spec: Table) -> Iterator[Finding]:
    """Report a standing queue with the size of the buffer and the cause, or bursts."""
    median, high = link["sojourn_p50_s"], link["sojourn_p99_s"]
    if median is None or high is None:
        return
    evidence = {f"links.{name}.sojourn_p50_s": median, f"links.{name}.sojourn_p99_s": high}
    if median >= STANDING_S:
        text = (
            f"Link {name} had a standing queue: half of the packets waited {duration(median)} "
            f"or longer, one in a hundred {duration(high)}."
        )
        parts = (text, queues.buffer(spec), queues.cause(spec, median))
        full = spec["qdisc"]["name"] in queues.BUFFER_ONLY and queues.has_one_queue(spec["qdisc"])
        change = (f"{name}.qdisc=fq_codel",) if full else ()
        yield Finding("standing queue", " ".join(filter(None, parts)), evidence, change=change)
    elif high >= max(STANDING_S, BURSTY * median):
        text = (
            f"The queue of link {name} came in bursts: half of the packets waited less than "
            f"{duration(max(median, 1e-6))}, one in a hundred {duration(high)} or longer."
        )
        yield Finding("bursts", text, evidence)


def overflow(name: str, link: Table, spec: Table) -> Iterator[Finding]:
    """Report a buffer that overflowed: often, or more often than its AQM dropped."""
    qdisc = spec["qdisc"]
    full, every, came = (link[f"{what}_packets"] for what in ("dropped_full", "dropped", "arrived"))
    if every < OVERFLOWS or full <= 0.5 * every:
        return
    limit = qdisc.get("limit", "")
    if set(qdisc) & AQM_KEYS:
        yield Finding(
            "overflow",
            f"{share(full / every)} of the drops at {name} were at its full buffer ({limit}), not "
            f"decisions of {qdisc['name']}: a larger limit lets it decide.",
            {f"links.{name}.dropped_full_packets": full, f"links.{name}.dropped_packets": every},
            change=_larger(name, str(limit)),
        )
    elif full >= LOSSY * came:
        use = link["utilisation"]
        evidence = {
            f"links.{name}.dropped_full_packets": full,
            f"links.{name}.arrived_packets": came,
        }
        text = f"The buffer of {name} ({limit}) overflowed: {share(full / came)} of the packets "
        text += "that arrived were dropped"
        if use is not None:
            text += f", and the link sent {share(use)} of the time"
            evidence[f"links.{name}.utilisation"] = use
        remedy = "a larger limit, fewer senders at a time, or an AQM with ECN would help"
        change = _larger(name, str(limit))
        yield Finding("overflow", f"{text}; {remedy}.", evidence, change=change)


def _larger(name: str, limit: str) -> tuple[str, ...]:
    """Return the setting of four times a limit in packets or bytes; nothing for another limit."""
    match = re.fullmatch(r"(\d+)(p|B|kB|MB)", limit)
    return (f"{name}.qdisc.limit={4 * int(match[1])}{match[2]}",) if match else ()


def dropped(link: Table, spec: Table) -> str:
    """Describe the drops of a link; ACKs that cake removes on purpose are counted as drops."""
    filters = spec["qdisc"].get("ack_filter", "off") != "off"
    note = ", among them ACKs that its ACK filter removed" if filters else ""
    return f"dropped {counted(link['dropped_packets'], 'packet')}{note}"


def no_marks(name: str, link: Table, spec: Table, where: str) -> Iterator[Finding]:
    """Report a link with ECN that marked nothing; `where` says where else ECN is on."""
    if link["marked_packets"] or not link["arrived_packets"]:
        return
    drops = link["dropped_packets"]
    rest = f"it {dropped(link, spec)}" if drops else "its queue stayed short"
    yield Finding(
        "no marks",
        f"Link {name} marked nothing, although ECN is on {where}; {rest}.",
        {f"links.{name}.marked_packets": 0, f"links.{name}.dropped_packets": drops},
    )
