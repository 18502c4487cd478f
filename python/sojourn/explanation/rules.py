"""Rules that explain a result: each finding is a sentence with the metrics that it rests on.

A rule yields a finding only if its condition on measured values holds. The thresholds are constants
of this module.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sojourn._util.paths import compared_link, links_of
from sojourn._util.public import public
from sojourn._util.units import counted, duration, figures, rate, seconds, share
from sojourn.explanation import links, queues, senders
from sojourn.explanation.acks import delayed_acks
from sojourn.explanation.finding import Finding
from sojourn.explanation.live_link import explain_report
from sojourn.explanation.parameters import parameters
from sojourn.result import select, steady_state
from sojourn.result.result import Columns, Result
from sojourn.scenario.describe import varies

GROUPS = 20
"""Largest number of groups that are all evidence of their unfairness; of more, the extremes are."""

UNFAIR = 0.8
"""Jain's index of a group below which it is unfair."""

TIMEOUTS = 0.0005
"""Retransmission timeouts per packet sent from which they are reported."""


Rule = Callable[[Result], Iterator[Finding]]


@public
def explain(result: Result | Mapping[str, Any]) -> list[Finding]:
    """Explain a result by rules: bottleneck, queue, fairness, losses, marks, set-up.

    Parameters
    ----------
    result : Result or Mapping
        A run; one with series (`sample`) allows more rules. Or what `sojourn link --json` prints,
        as read by `json.loads`.

    Returns
    -------
    list of Finding
        The findings. Without any of kind "unusual" there was nothing unusual.

    Examples
    --------
    >>> import sojourn as sj
    >>> found = sj.explain(sj.simulate("home_uplink"))
    >>> [one.rule for one in found][:2]
    ['bottleneck', 'standing queue']
    """
    if not isinstance(result, Result):
        return explain_report(result)
    return [finding for rule in RULES for finding in rule(result)]


def _bottleneck(result: Result) -> Iterator[Finding]:
    """Name the links that were full, and an expected bottleneck that had no queue."""
    expected = compared_link(result.scenario, None)
    full: list[str] = []
    for name, link in links.listed(result):
        for one in links.busy(name, link, result.scenario["links"][name]):
            full.append(f"link {name}")
            yield one
    spec = result.scenario["links"][expected]
    yield from links.no_queue(expected, result.links[expected], spec, full)


def _queue(result: Result) -> Iterator[Finding]:
    """Report a standing queue or bursts, and the group that sent most."""
    for name, link in links.listed(result):
        for one in links.queue(name, link, result.scenario["links"][name]):
            yield one
            yield from _sender(result, name)


def _sender(result: Result, name: str) -> Iterator[Finding]:
    """Name the group that made a queue grow, or, without a packet log, that sent most."""
    log = result.links[name].packet_log
    grown = _grown(result, log) if log and len(log.arrived_s) else {}
    groups = [flow["name"] for flow in result.scenario["flows"] if name in links_of(flow)]
    members = select.by_group(result)
    sent = {group: sum(one["goodput_bps"] for one in members[group]) for group in groups}
    by_group = grown or sent
    total = sum(by_group.values())
    if len(groups) < 2 or not total:
        return
    most = max(by_group, key=lambda group: by_group[group])
    part = by_group[most] / total
    if part <= 0.5:
        return
    if grown:
        text = (
            f"{most} caused most of it: it sent {share(part)} of the bytes that arrived while the "
            "queue grew."
        )
        evidence = {f"links.{name}.packet_log, share of {most} while the queue grew": part}
    else:
        text = (
            f"{most} sent {share(part)} of the payload that crossed {name} ({rate(sent[most])}); "
            "`packet_log = true` would tell who made the queue grow."
        )
        evidence = {f"groups.{most}.goodput_bps": sent[most], f"links.{name} payload_bps": total}
    yield Finding("sender", text, evidence, "fact")


GROWTH_PACKETS = 10
"""Mean number of packets of the intervals in which the growth of a queue is measured."""


def _grown(result: Result, log: Columns) -> dict[str, float]:
    """Return the growth of a queue by group of flows, in bytes, after the warm-up.

    The growth in an interval is shared out by the bytes that arrived in it. Intervals in which the
    queue shrank do not count: a group whose packets merely wait behind a burst is not its cause.
    """
    interval_s = seconds(result.scenario["duration"]) * GROWTH_PACKETS / len(log.arrived_s)
    entered = log.arrived_s < log.left_s
    size = np.where(entered, log.size_bytes, 0).astype(float)
    # Packets that leave after the end are in one more interval, in which none arrives.
    end_s = seconds(result.scenario["duration"]) + interval_s
    came, left = (
        np.floor(np.minimum(time_s, end_s) / interval_s).astype(np.int64)
        for time_s in (log.arrived_s, log.left_s)
    )
    number = int(max(came.max(), left.max())) + 1
    arrived = np.bincount(came, weights=size, minlength=number)
    growth = arrived - np.bincount(left, weights=size, minlength=number)
    growth[: int(seconds(result.scenario["warmup"]) / interval_s)] = 0.0
    part = np.divide(growth, arrived, out=np.zeros(number), where=(growth > 0) & (arrived > 0))
    by_flow = np.bincount(log.flow, weights=size * part[came], minlength=len(result.flows))
    amounts: dict[str, float] = {}
    for flow, amount in zip(result.flows.values(), by_flow, strict=True):
        amounts[flow["group"]] = amounts.get(flow["group"], 0.0) + float(amount)
    return amounts


def _fairness(result: Result) -> Iterator[Finding]:
    """Report groups whose endless flows have unequal goodputs."""
    by_group = select.by_group(result)
    for flow in result.scenario["flows"]:
        members = by_group[flow["name"]]
        if len(members) < 2 or flow["source"]["name"] != "bulk":
            continue
        goodputs = [one["goodput_bps"] for one in members]
        index = select.jain(goodputs)
        if index >= UNFAIR:
            continue
        times = sorted({one["rtt_s"] for one in members})
        spread = len(times) > 1 and times[-1] > 1.5 * times[0]
        why = f"; their round-trip times are {duration(times[0])} to {duration(times[-1])}" * spread
        yield Finding(
            "unfair",
            f"The {len(members)} flows of {flow['name']} got unequal shares: {rate(min(goodputs))} "
            f"to {rate(max(goodputs))}, Jain's index {index:.2f}{why}.",
            {f"groups.{flow['name']}.jain": index},
        )


def _groups(result: Result) -> Iterator[Finding]:
    """Report groups of endless flows on the same path whose flows have unequal goodputs."""
    by_group = select.by_group(result)
    paths: dict[tuple[str, ...], list[str]] = {}
    for flow in result.scenario["flows"]:
        if flow["source"]["name"] == "bulk" and "tcp" in flow:
            paths.setdefault((*map(str, flow["path"]),), []).append(flow["name"])
    for path, names in paths.items():
        members = {name: by_group[name] for name in names}
        means = {
            name: sum(one["goodput_bps"] for one in flows) / len(flows)
            for name, flows in members.items()
        }
        index = select.jain(list(means.values()))
        if len(names) < 2 or index >= UNFAIR:
            continue
        most, least = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
        times = [max(one["rtt_s"] for one in members[name]) for name in (most, least)]
        apart = max(times) > 1.5 * min(times)
        why = f"; their round-trip times are {' and '.join(map(duration, times))}" * apart
        yield Finding(
            "unfair groups",
            f"On {' and '.join(path)} a flow of {most} got {rate(means[most])} and one of {least} "
            f"{rate(means[least])}; Jain's index of the {len(names)} groups is {index:.2f}{why}.",
            {
                f"groups.{name}.goodput_bps / number of flows": means[name]
                for name in (means if len(means) <= GROUPS else (most, least))
            },
        )


def _timeouts(result: Result) -> Iterator[Finding]:
    """Report retransmission timeouts."""
    by_group = select.by_group(result)
    for flow in result.scenario["flows"]:
        members = [one for one in by_group[flow["name"]] if one["kind"] == "tcp"]
        # Some kernels do not count timeouts.
        number = sum(one["timeouts"] or 0 for one in members)
        sent = sum(one["sent_packets"] for one in members)
        if number < 2 or number < TIMEOUTS * sent or not sent:
            continue
        again = sum(one["retransmitted_packets"] for one in members)
        yield Finding(
            "timeouts",
            f"{flow['name']} had {counted(round(number), 'retransmission timeout')} and sent "
            f"{share(again / sent)} of its packets again.",
            {f"groups.{flow['name']}.timeouts": number,
             f"groups.{flow['name']}.retransmitted_packets": again},
        )  # fmt: skip


def _marks(result: Result) -> Iterator[Finding]:
    """Report links that could have marked and did not, and drops of ECN-capable traffic."""
    for name, link in links.listed(result):
        if result.scenario["links"][name]["qdisc"].get("ecn") is not True:
            continue
        capable = [
            flow["name"]
            for flow in result.scenario["flows"]
            if name in links_of(flow) and ("ecn" in flow or flow.get("tcp", {}).get("ecn"))
        ]
        if capable:
            spec = result.scenario["links"][name]
            yield from links.no_marks(name, link, spec, f"there and in {' and '.join(capable)}")


def _overflow(result: Result) -> Iterator[Finding]:
    """Report AQMs whose buffers overflowed more often than they dropped."""
    for name, link in links.listed(result):
        yield from links.overflow(name, link, result.scenario["links"][name])


def _underused(result: Result) -> Iterator[Finding]:
    """Report a link that was not full, although endless flows had drops or losses there."""
    for name, link in links.listed(result):
        spec = result.scenario["links"][name]
        use, shaped = queues.used(link, spec), queues.shaper_bps(spec)
        endless = [
            f["name"]
            for f in result.scenario["flows"]
            if f["source"]["name"] == "bulk" and name in links_of(f)
        ]
        lost, sent = link.get("lost_on_wire_packets") or 0, link.get("departed_packets") or 0
        if use is None or use >= links.BUSY or not endless or not link["dropped_packets"] + lost:
            continue
        idle = f"Link {name} was idle {share(1 - use)} of the time"
        if shaped is not None:
            idle = f"Link {name} used {share(use)} of the rate of its shaper ({rate(shaped)})"
        if lost > link["dropped_packets"]:
            yield Finding(
                "random loss",
                f"{idle}, although {', '.join(endless)} always had data; {share(lost / sent)} of "
                f"its packets were lost on the wire, and it {links.dropped(link, spec)}. Senders "
                "that take each loss for congestion slow down, whatever the queue does: bbr does "
                "not.",
                {f"links.{name}.utilisation": link["utilisation"],
                 f"links.{name}.lost_on_wire_packets": lost,
                 f"links.{name}.departed_packets": sent},
            )  # fmt: skip
            continue
        yield Finding(
            "unused",
            f"{idle}, although {', '.join(endless)} always had data; "
            f"it {links.dropped(link, spec)}.",
            {f"links.{name}.utilisation": link["utilisation"],
             f"links.{name}.dropped_packets": link["dropped_packets"]},
        )  # fmt: skip


def _parameters(result: Result) -> Iterator[Finding]:
    """Report parameters that do not fit the rate and the round-trip times."""
    by_group = select.by_group(result)
    for name, spec in result.scenario["links"].items():
        times = [
            one["rtt_s"]
            for flow in result.scenario["flows"]
            if name in links_of(flow)
            for one in by_group[flow["name"]]
            if one["kind"] == "tcp"
        ]
        if times:
            yield from parameters(name, spec, max(times), "flows.rtt_s")


def _delays(result: Result) -> Iterator[Finding]:
    """Report a scenario in which no TCP flow has a round-trip time."""
    times = [one["rtt_s"] for one in result.flows.values() if one["kind"] == "tcp"]
    if times and max(times) == 0.0:
        yield Finding(
            "no delay",
            "The round-trip time of all TCP flows is 0, so the queue is the only delay and "
            "parameters cannot be compared with the path: set rtt of the flows, or delay of the "
            "links.",
            {"flows.rtt_s": 0.0},
        )


def _warmup(result: Result) -> Iterator[Finding]:
    """Report measurements that begin before the flows are steady."""
    warmup = seconds(result.scenario["warmup"])
    endless = [
        flow
        for flow in result.scenario["flows"]
        if flow["source"]["name"] == "bulk" and "tcp" in flow
    ]
    if not endless:
        return
    if warmup == 0.0:
        yield Finding(
            "no warm-up",
            "Measurements begin at the start: slow start is part of every mean; set warmup.",
            {"scenario.warmup": "0s"},
        )
        return
    times = [flow["rtt_s"] for flow in result.flows.values() if flow["kind"] == "tcp"]
    longest = max(times, default=0.0)
    if warmup < 10 * longest:
        yield Finding(
            "short warm-up",
            f"The warm-up ({duration(warmup)}) is shorter than ten round-trip times "
            f"({duration(10 * longest)}): set it to that or longer.",
            {"scenario.warmup": warmup, "flows.rtt_s": longest},
        )
    if "changes" not in result.scenario:
        yield from _settling(result, warmup)


def _settling(result: Result, warmup: float) -> Iterator[Finding]:
    """Report queues that became steady later than the warm-up, by MSER-5.

    A later cut alone is no evidence, since MSER-5 also cuts random excursions: the mean from the
    warm-up on must lie outside the 95 % interval of the steady mean, and differ by a tenth.
    """
    if not result.sampled or len(result.time_s) < steady_state.LEAST:
        return
    for one in steady_state.steady(result):
        link, spec = result.links[one.link], result.scenario["links"][one.link]
        if one.what != "queue" or one.cut_s <= warmup or varies(spec):
            continue
        measured = float(np.mean(link.series.queue_bytes[result.time_s > warmup]))
        gap = abs(measured - one.mean.mean)
        if gap <= max(one.mean.half, 0.1 * measured):
            continue
        text = (
            f"The queue of link {one.link} became steady {duration(one.cut_s)} after the start, "
            f"the warm-up takes {duration(warmup)}: its mean is {figures(measured / 1e3)} kB from "
            f"the warm-up on and {figures(one.mean.mean / 1e3)} kB in the steady part."
        )
        if one.doubtful:
            text = (
                f"The queue of link {one.link} did not become steady in the first half of the run: "
                f"its mean is {figures(measured / 1e3)} kB from the warm-up on and "
                f"{figures(one.mean.mean / 1e3)} kB in the second half."
            )
        yield Finding(
            "not steady",
            text,
            {"scenario.warmup": warmup, f"links.{one.link}.series.queue_bytes, MSER-5": one.cut_s},
        )


def _live(result: Result) -> Iterator[Finding]:
    """Repeat the warnings of a run on real packets."""
    for warning in result.summary.get("live", {}).get("warnings", ()):
        yield Finding(
            "accuracy", f"{warning[:1].upper()}{warning[1:]}.", {"live.warnings": warning}
        )


def _advice(result: Result) -> Iterator[Finding]:
    """Repeat the warnings about the scenario."""
    for warning in result.warnings:
        path = warning.partition(": ")[0]
        yield Finding("scenario", f"{warning}.", {path: warning})


RULES: Sequence[Rule] = (
    _bottleneck, _queue, delayed_acks, senders.incast, _underused, _fairness, _groups, _timeouts,
    senders.spurious, _overflow, _marks, senders.threshold, _delays,
    _parameters, _warmup, _live, _advice,
)  # fmt: skip
"""Rules in the order of their sentences."""
