"""Overview of a run: values per group of flows and per link, with their better direction."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

import numpy as np

from sojourn import metrics
from sojourn._util.units import figures
from sojourn.result import select
from sojourn.result.distribution import Distribution
from sojourn.result.estimate import Estimate, mean_of, without_interval
from sojourn.result.percentiles import percentile_difference_of, percentile_of
from sojourn.result.result import Array, Record, Result
from sojourn.result.statistics import separate
from sojourn.scenario import describe

Number = float | int | None

GROUPS = 8
"""Largest number of groups that are drawn one by one; of more, groups alike are drawn as one."""

LINKS = 4
"""Largest number of links that are all in a comparison, also if their discipline is the same."""

DELAY, OF_WORST = "one-way delay, 99 %", " of the worst"
"""Quantity of a group of UDP flows, and what its name has if there are several."""

COMBINED = ("bulk", "cbr", "onoff", "transfers")
"""Sources whose groups can be seen as one."""


COMPLETED = "completed transfers"

UNFINISHED = "unfinished transfers"
"""Row of a comparison that is shown only if there are any."""

IDLE = 50.0
"""Utilisation in percent below which a link is idle most of the time."""

MS = 1e3
"""Milliseconds per second: percentiles of a comparison are in ms."""


@dataclass(frozen=True)
class Group:
    """Group of flows with the name of its traffic source, or several groups that are alike."""

    name: str
    source: str
    flows: tuple[Record, ...]
    members: tuple[str, ...] = ()
    """Names of the groups, if it stands for several."""

    @property
    def udp(self) -> bool:
        """True if the flows send over UDP."""
        return bool(self.flows[0]["kind"] == "udp")

    @property
    def endless(self) -> bool:
        """True if each flow is one endless TCP stream, without transfers that complete."""
        return not self.udp and self.source in ("bulk", "cbr", "onoff")

    @property
    def unfinished(self) -> int:
        """Number of transfers that had started and were not finished at the end of the run."""
        return sum(flow.get("unfinished", 0) for flow in self.flows)

    @property
    def title(self) -> str:
        """Name, and number of flows if there are several, or of groups."""
        if self.members:
            return f"{self.name} ({len(self.members)} groups)"
        return self.name if len(self.flows) == 1 else f"{self.name} ({len(self.flows)})"

    def total(self, what: str) -> float:
        """Return the sum of `what` over the flows that have a value."""
        return float(sum(flow[what] for flow in self.flows if flow[what] is not None))

    def worst(self, what: str) -> Number:
        """Return the largest `what` of any flow, or None if no flow has one."""
        return max((flow[what] for flow in self.flows if flow[what] is not None), default=None)

    def loss_rate(self) -> Number:
        """Return the share of the datagrams sent that were lost."""
        return select.loss_of_datagrams(self.flows)


def groups(result: Result) -> list[Group]:
    """Return the flows of `result` by group, in the order of declaration."""
    members: dict[str, list[Record]] = {}
    for flow in result.flows.values():
        members.setdefault(flow["group"], []).append(flow)
    return [
        Group(declared["name"], declared["source"]["name"], tuple(members[declared["name"]]))
        for declared in result.scenario["flows"]
    ]


def combined(result: Result) -> list[Group]:
    """Return the groups that differ in marking or parameters only, each time as one group.

    They have the same source, protocol and links. The list is empty if there are few groups.
    """
    every = groups(result)
    if len(every) <= GROUPS:
        return []
    alike: dict[str, list[Group]] = {}
    for group, declared in zip(every, result.scenario["flows"], strict=True):
        route = [declared["path"], declared.get("return_path")]
        kind = json.dumps([group.source, group.udp, *route])
        if group.source in COMBINED:
            alike.setdefault(kind, []).append(group)
    return [_as_one(members) for members in alike.values() if len(members) > 1]


def _as_one(members: Sequence[Group]) -> Group:
    names = tuple(group.name for group in members)
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    common = "".join(letters[0] for letters in alike).rstrip("-_.0123456789")
    flows = tuple(flow for group in members for flow in group.flows)
    return Group(common or f"{names[0]} ...", members[0].source, flows, names)


def drawn(result: Result) -> list[Group]:
    """Return the groups that a figure shows, in the order of declaration: those alike as one."""
    sets = combined(result)
    home = {name: one for one in sets for name in one.members}
    unique: dict[str, Group] = {}
    for group in groups(result):
        one = home.get(group.name, group)
        unique[one.title] = one
    return list(unique.values())


def in_sections(groups: Sequence[Group]) -> list[Group]:
    """Return groups in the order of a comparison: UDP, transfers, endless streams."""
    return sorted(groups, key=lambda g: (not g.udp, g.endless))


def compared_links(runs: Mapping[str, Sequence[Result]], link: str) -> list[str]:
    """Return the links of a comparison: those whose discipline differs, `link` first, then all.

    If there are many links, the others are left out. If the discipline of many differs, the list is
    the links with the longest mean queue in the runs of the first seed.
    """
    scenarios = [results[0].scenario for results in runs.values()]
    names = describe.differing(scenarios, link)
    if len(names) > describe.NAMES:

        def queue(name: str) -> float:
            return max(one[0].links[name]["queue_mean_bytes"] or 0.0 for one in runs.values())

        return sorted(names, key=queue, reverse=True)[:LINKS]
    every = list(scenarios[0]["links"])
    return list(dict.fromkeys([*names, *(every if len(every) <= LINKS else [])]))


def completion_times(result: Result, group: Group) -> Array:
    """Return the completion times (s) of a group's transfers that started after the warm-up."""
    names = group.members or (group.name,)
    return np.sort(np.concatenate([metrics.completion_times_s(result, one) for one in names]))


@dataclass(frozen=True)
class Reading:
    """Compared value: owner, quantity, unit (empty for a count), value, better direction."""

    of: str
    what: str
    unit: str
    value: Number
    better: Literal["less", "more"]
    pooled: Distribution | None = None
    """Values of the run, if the quantity is a percentile over the values of all runs."""
    percent: float = 99
    events: Number = None
    """Number of events in the run, if the quantity counts them or is a share of them."""
    skewed: bool = False
    """True for a quantity whose mean over runs has no interval."""

    def text(self, value: float) -> str:
        """Format a value of this quantity."""
        return figures(value) if self.unit else f"{value:.0f}"


def readings(result: Result, links: Sequence[str]) -> list[Reading]:
    """Return the compared values of one run: groups that are seen as one, each group, `links`."""
    rows: list[Reading] = []
    for group in [*in_sections(combined(result)), *in_sections(groups(result))]:
        name = group.title
        if group.udp:
            delay = DELAY + OF_WORST * (len(group.flows) > 1)
            worst, several = _times(group.worst("delay_p99_s"), 1e3), len(group.flows) > 1
            # The largest percentile of several flows is no percentile of the packets of all.
            pooled = None if several else result.distributions.get(f"delay/{group.name}")
            rows.append(Reading(name, delay, "ms", worst, "less", pooled, skewed=True))
            lost = group.total("lost_packets")
            loss = _times(group.loss_rate(), 100)
            rows.append(Reading(name, "loss", "%", loss, "less", events=lost))
            rows += _call(result, group) if group.source == "call" else []
        elif group.source == "video":
            rows += _video(result, group)
        elif not group.endless:
            took = completion_times(result, group)
            mean, p99 = _times(_mean(took), 1e3), _times(select.nearest_rank(took, 0.99), 1e3)
            left, every = group.unfinished, Distribution.of(took)
            rows.append(Reading(name, "completion time, mean", "ms", mean, "less"))
            rows.append(Reading(name, "completion time, 99 %", "ms", p99, "less", every))
            rows.append(Reading(name, COMPLETED, "", len(took), "more", events=len(took)))
            rows.append(Reading(name, UNFINISHED, "", left, "less", events=left))
        else:
            throughput = "goodput" + ", total" * (len(group.flows) > 1)
            mbit = group.total("goodput_bps") / 1e6
            rows.append(Reading(name, throughput, "Mbit/s", mbit, "more"))
    for link in links:
        of = result.links[link]
        delay_ms = _times(of["sojourn_p99_s"], 1e3)
        pooled = result.distributions.get(f"sojourn/{link}")
        rows.append(Reading(link, "queueing delay, 99 %", "ms", delay_ms, "less", pooled))
        rows.append(Reading(link, "utilisation", "%", _times(of["utilisation"], 100), "more"))
    return rows


def _call(result: Result, group: Group) -> list[Reading]:
    """Return the readings of calls: delay of frames, lost frames, rate."""
    name, of = group.title, group.name
    delay = _times(metrics.frame_delay_percentile_s(result, 95, of), 1e3)
    single = len(group.flows) == 1
    pooled = result.distributions.get(f"frame_delay/{of}") if single else None
    lost = _times(metrics.lost_frames(result, of), 100)
    frames = group.total("lost_frames")
    return [
        Reading(name, "delay of frames, 95 %", "ms", delay, "less", pooled, 95, skewed=True),
        Reading(name, "lost frames", "%", lost, "less", events=frames),
        Reading(name, "rate", "Mbit/s", _times(metrics.call_rate_bps(result, of), 1e-6), "more"),
    ]


def _video(result: Result, group: Group) -> list[Reading]:
    """Return the readings of videos: rate, stalled time."""
    rate = _times(metrics.video_rate_bps(result, group.name), 1e-6)
    stalled = metrics.video_stalled_s(result, group.name)
    return [
        Reading(group.title, "video rate", "Mbit/s", rate, "more"),
        Reading(group.title, "stalled", "s", stalled, "less", skewed=True),
    ]


@dataclass(frozen=True)
class Row:
    """Row of a comparison: a quantity, and its reading by seed for every discipline."""

    like: Reading
    readings: tuple[Mapping[int, Reading], ...]

    @property
    def values(self) -> list[dict[int, float]]:
        """Values by seed under each discipline, of the runs that have one."""
        return [
            {seed: one.value for seed, one in runs.items() if one.value is not None}
            for runs in self.readings
        ]

    @property
    def pools(self) -> bool:
        """True for a percentile over the values of all runs: every run with a value has them."""
        every = [one for runs in self.readings for one in runs.values() if one.value is not None]
        return bool(every) and all(one.pooled is not None for one in every)

    @property
    def estimates(self) -> list[Estimate]:
        """Estimate over seeds under each discipline."""
        if self.pools:
            return self.percentiles(self.like.percent)
        estimates = []
        for runs in self.readings:
            counted = self.like.events is not None
            events = [one.events for one in runs.values()] if counted else None
            mean = mean_of([one.value for one in runs.values()], events)
            plain = self.like.skewed or self.like.pooled is not None
            estimates.append(without_interval(mean) if plain else mean)
        return estimates

    def percentiles(self, percent: float) -> list[Estimate]:
        """Return a percentile (ms) over the values of all runs, under each discipline."""
        every = [[one.pooled for one in runs.values()] for runs in self.readings]
        return [percentile_of(runs, percent).times(MS) for runs in every]

    def _separate(self, a: int, b: int) -> bool:
        """Return True if two disciplines differ with 95 % confidence."""
        if not self.pools:
            return separate(self.values[a], self.values[b])
        ours, theirs = self.readings[a], self.readings[b]
        both = [seed for seed in ours if seed in theirs]
        pooled = [[runs[seed].pooled for seed in both] for runs in (ours, theirs)]
        gap = percentile_difference_of(pooled[0], pooled[1], self.like.percent)
        return gap.low is not None and gap.high is not None and (gap.low > 0 or gap.high < 0)

    @property
    def texts(self) -> list[str]:
        """Cells: the estimate, its interval, and how many runs or values it has if too few."""
        return [estimate.text(self.like.text) for estimate in self.estimates]

    @property
    def hidden(self) -> bool:
        """True for unfinished transfers if there are none."""
        values = (one.value for runs in self.readings for one in runs.values())
        return self.like.what == UNFINISHED and not any(values)

    @property
    def best(self) -> list[bool]:
        """True for each best cell: the best mean, and means with the same text.

        All are False unless each best cell differs from each other cell with 95 % confidence,
        which requires several seeds. The utilisation of a link that is idle most of the time under
        every discipline has no best: the load decides it.
        """
        values = [one.value for one in self.estimates]
        known = {k: value for k, value in enumerate(values) if value is not None}
        idle = self.like.what == "utilisation" and all(v < IDLE for v in known.values())
        if not known or idle:
            return [False] * len(self.values)
        top = (min if self.like.better == "less" else max)(known.values())
        # Means with the same text are equal for a reader.
        ahead = [k for k, mean in known.items() if self.like.text(mean) == self.like.text(top)]
        behind = [k for k in known if k not in ahead]
        ranked = bool(behind) and all(self._separate(a, b) for a in ahead for b in behind)
        return [ranked and k in ahead for k in range(len(self.values))]


def rows(runs: Mapping[str, Sequence[Result]], link: str) -> list[Row]:
    """Return the rows of a comparison; `runs` has the results by discipline, one per seed."""
    links = compared_links(runs, link)
    read = [
        [(int(result.scenario["seed"]), readings(result, links)) for result in results]
        for results in runs.values()
    ]
    all_rows = [
        Row(like, tuple({seed: one[i] for seed, one in runs} for runs in read))
        for i, like in enumerate(read[0][0][1])
    ]
    return [row for row in all_rows if not row.hidden]


def _times(value: Number, scale: float) -> Number:
    return None if value is None else value * scale


def _mean(values: Array) -> Number:
    return float(values.mean()) if len(values) else None
