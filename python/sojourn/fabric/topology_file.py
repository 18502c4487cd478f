"""Topologies of simulators of data centres: HPCC (also ConWeave), htsim, Parsimon.

A link is called by its ends, as in `fat_tree`: `h3-s20` is from host 3 to switch 20.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn.fabric import parsimon
from sojourn.fabric.lines import Lines

FORMATS = ("hpcc", "htsim", "parsimon")
"""Names of formats."""

LINKS_MAX = 200_000
"""Largest number of links of a topology."""

RATES = {"gbps": 10**9, "mbps": 10**6, "kbps": 10**3, "bps": 1}
"""Bits per second of the units of HPCC's files."""

DELAYS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
"""Nanoseconds of the units of HPCC's files."""


@dataclass(frozen=True)
class Wire:
    """Both directions of a connection of two nodes.

    Attributes
    ----------
    ends : tuple of str
        Names of the nodes.
    bps : int
        Rate of each direction.
    delay_ns : int
        One-way delay.
    loss : float
        Share of the packets that are lost.
    latency_ns : tuple of int
        Latency of each of the nodes, which packets have before they leave it.
    """

    ends: tuple[str, str]
    bps: int
    delay_ns: int
    loss: float = 0.0
    latency_ns: tuple[int, int] = (0, 0)


@dataclass
class Topology:
    """Hosts and switches with the wires between them.

    Attributes
    ----------
    form : str
        Format of the file.
    hosts, switches : int
        Number of hosts and switches.
    wires : list of Wire
        The wires in the order of the file.
    """

    form: str
    hosts: int = 0
    switches: int = 0
    wires: list[Wire] = field(default_factory=list)

    def links(self, qdisc: str | None = None) -> dict[str, dict[str, str]]:
        """Return the links of a scenario: both directions of every wire.

        Links of hosts have no `qdisc`: only switches have the discipline.
        """
        links = {}
        for wire in self.wires:
            for (a, b), latency in zip((wire.ends, wire.ends[::-1]), wire.latency_ns, strict=True):
                link = {"rate": _rate(wire.bps), "delay": f"{wire.delay_ns + latency}ns"}
                if wire.loss:
                    link["loss"] = repr(wire.loss)
                if qdisc is not None and not a.startswith("h"):
                    link["qdisc"] = qdisc
                links[f"{a}-{b}"] = link
        return links


def read(path: Path, form: str | None = None) -> Topology:
    """Read a topology.

    Parameters
    ----------
    path : Path
        The file.
    form : str, optional
        Name of the format. By default, it is found by the first word.

    Raises
    ------
    InputError
        If the file cannot be read or is no such topology. The message names file and line, or
        the place in JSON.
    """
    if form is not None and form not in FORMATS:
        raise InputError(f"--format: unknown format {shown(form)}{near(form, FORMATS)}")
    if form == "parsimon" or (form is None and parsimon.is_json(path)):
        topology = _parsimon(path)
    else:
        lines = Lines(path)
        words = next((words for _, words in lines if not words[0].startswith("#")), [])
        if form is None:
            form = "hpcc" if words and words[0].isdigit() else "htsim"
        topology = _hpcc(lines) if form == "hpcc" else _htsim(lines)
    if 2 * len(topology.wires) > LINKS_MAX:
        text = f"{2 * len(topology.wires)} links, allowed: up to {LINKS_MAX}"
        raise InputError(f"{path}: {text}")
    return topology


def _rate(bps: int) -> str:
    """Return a rate in the largest unit that keeps it whole."""
    units = ((10**9, "gbit"), (10**6, "mbit"), (1, "bit"))
    size, unit = next(one for one in units if bps % one[0] == 0)
    return f"{bps // size}{unit}"


def _parsimon(path: Path) -> Topology:
    """Read a topology of Parsimon in JSON."""
    nodes, links = parsimon.read_network(path)
    names = {node.id: f"{'h' if node.kind == 'Host' else 's'}{node.id}" for node in nodes}
    hosts = sum(node.kind == "Host" for node in nodes)
    topology = Topology("parsimon", hosts, len(nodes) - hosts)
    pairs: dict[frozenset[int], str] = {}
    for place, link in links:
        if other := pairs.get(frozenset((link.a, link.b))):
            text = f"{place}: nodes {link.a} and {link.b} are linked by {other} already"
            raise InputError(f"{path}: {text}")
        pairs[frozenset((link.a, link.b))] = place
        ends = (names[link.a], names[link.b])
        topology.wires.append(Wire(ends, link.bandwidth, link.delay))
    return topology


def _hpcc(lines: Lines) -> Topology:
    """Read `nodes switches links`, the switches, and a line per wire."""
    rows = list(lines)
    if len(rows) < 2 or len(rows[0][1]) != 3:
        lines.fail(1, "a topology begins with the numbers of nodes, switches and links")
    number, words = rows[0]
    nodes, switches, wires = (lines.integer(number, word, "number") for word in words)
    ids: list[int] = []
    used = 1
    while len(ids) < switches and used < len(rows):
        number, words = rows[used]
        ids += [lines.integer(number, word, "number of a switch") for word in words]
        used += 1
    if len(ids) != switches or len({*ids}) != switches or any(one >= nodes for one in ids):
        lines.fail(number, f"the switches are {switches} different numbers below {nodes}")
    if len(rows) - used < wires:
        text = f"the file has {len(rows) - used} links, and its first line says {wires}"
        raise InputError(f"{lines.path}: {text}")
    switch = {*ids}
    topology = Topology("hpcc", nodes - switches, switches)
    seen: dict[frozenset[str], int] = {}
    for number, words in rows[used : used + wires]:
        if len(words) != 5:
            lines.fail(number, f"{len(words)} fields, not 5 (node node rate delay error_rate)")
        ends = [lines.integer(number, word, "number of a node") for word in words[:2]]
        if ends[0] == ends[1] or max(ends) >= nodes:
            lines.fail(number, f"a link has two different nodes below {nodes}")
        a, b = (f"{'s' if end in switch else 'h'}{end}" for end in ends)
        if frozenset((a, b)) in seen:
            first = seen[frozenset((a, b))]
            lines.fail(number, f"{a} and {b} have a link already (line {first})")
        seen[frozenset((a, b))] = number
        bps = _quantity(lines, number, words[2], RATES, "rate, like 100Gbps")
        delay = _quantity(lines, number, words[3], DELAYS, "delay, like 1000ns")
        loss = lines.decimal(number, words[4], "error rate", 10**9) / 1e9
        if not bps or loss > 1:
            lines.fail(number, "the rate is 0" if not bps else "the error rate is above 1")
        topology.wires.append(Wire((a, b), bps, delay, loss))
    return topology


def _quantity(lines: Lines, number: int, word: str, units: dict[str, int], what: str) -> int:
    match = re.fullmatch(r"([0-9.]+)([A-Za-z]+)", word)
    if match is None or match[2].lower() not in units:
        lines.fail(number, f"{shown(word)} is no {what}")
    return lines.decimal(number, match[1], what, units[match[2].lower()])


TIER_KEYS = {
    "downlink_speed_gbps": 1,
    "radix_down": 1,
    "radix_up": 1,
    "downlink_latency_ns": 0,
    "switch_latency_ns": 0,
    "oversubscribed": 1,
    "bundle": 1,
    "queue_up": 0,
    "queue_down": 0,
}
"""Keys of a tier of htsim, with their least value."""

NEEDED = ("downlink_speed_gbps", "radix_down", "downlink_latency_ns")
"""Keys that each tier must have."""


def _htsim(lines: Lines) -> Topology:
    """Read a fat tree of two or three tiers."""
    head: dict[str, int] = {}
    tiers: dict[int, dict[str, int]] = {}
    tier, number = None, 1
    for number, words in lines:
        if words[0].startswith("#"):
            continue
        key = words[0].lower()
        if len(words) < 2:
            lines.fail(number, f"{words[0]} has no value")
        if key == "tier":
            tier = lines.integer(number, words[1], "tier")
            if tier > 2 or tier in tiers:
                lines.fail(number, f"tier {tier} is given twice, or is not 0, 1 or 2")
            tiers[tier] = {}
            continue
        known = TIER_KEYS if tier is not None else {"nodes": 1, "tiers": 2, "podsize": 1}
        if key not in known:
            lines.fail(number, f"unknown key {shown(words[0])}{near(key, known)}")
        into = head if tier is None else tiers[tier]
        if key in into:
            lines.fail(number, f"{words[0]} is given twice")
        into[key] = lines.integer(number, words[1], words[0], known[key])
    for key in ("nodes", "tiers", "podsize"):
        if key not in head:
            lines.fail(number, f"the file has no {key.capitalize()}")
    if head["tiers"] > 3 or set(tiers) != set(range(head["tiers"])):
        lines.fail(number, f"the tiers are not 0 to {head['tiers'] - 1}, with 2 or 3 in all")
    for place, values in sorted(tiers.items()):
        top = place == head["tiers"] - 1
        for key in (*NEEDED, *(() if top else ("radix_up",))):
            if key not in values:
                lines.fail(number, f"tier {place} has no {key.capitalize()}")
    return _fat_tree(lines, head, [tiers[place] for place in sorted(tiers)])


def _fat_tree(lines: Lines, head: dict[str, int], tiers: list[dict[str, int]]) -> Topology:
    """Return the wires of a fat tree of htsim.

    A top-of-rack switch has a bundle of wires to every aggregation switch of its pod, here one
    wire of their rate together. The aggregation switches of one place in their pods share core
    switches.
    """
    nodes, pod = head["nodes"], head["podsize"]
    bundle = [tier.get("bundle", 1) for tier in tiers]
    tors = pod // tiers[0]["radix_down"]
    aggs = tiers[0]["radix_up"] // bundle[1]
    sizes = (
        nodes % pod == 0
        and pod % tiers[0]["radix_down"] == 0
        and tiers[0]["radix_up"] % bundle[1] == 0
        and bundle[0] == 1
        and tiers[1]["radix_down"] == tors * bundle[1]
    )
    if not sizes:
        text = "the numbers of hosts, racks and pods do not fit Radix_Down, Radix_Up and Bundle"
        raise InputError(f"{lines.path}: {text}")
    pods = nodes // pod
    if len(tiers) == 2 and pods != 1:
        raise InputError(f"{lines.path}: two tiers have one pod: Podsize is Nodes")
    topology = Topology("htsim", nodes, pods * (tors + aggs))

    def connect(low: str, high: str, tier: int) -> None:
        values = tiers[tier]
        bps = values["downlink_speed_gbps"] * 10**9 * bundle[tier]
        below = tiers[tier - 1].get("switch_latency_ns", 0) if tier else 0
        latency = (below, values.get("switch_latency_ns", 0))
        delay = values["downlink_latency_ns"]
        topology.wires.append(Wire((low, high), bps, delay, latency_ns=latency))

    for host in range(nodes):
        connect(f"h{host}", f"t{host // tiers[0]['radix_down']}", 0)
    for place in range(pods):
        for tor in range(tors):
            for agg in range(aggs):
                connect(f"t{place * tors + tor}", f"a{place * aggs + agg}", 1)
    if len(tiers) == 3:
        up = tiers[1]["radix_up"] // bundle[2]
        if tiers[1]["radix_up"] % bundle[2] or tiers[2]["radix_down"] != pods * bundle[2]:
            text = f"Radix_Down of tier 2 must be one Bundle to each of the {pods} pods"
            raise InputError(f"{lines.path}: {text}")
        topology.switches += aggs * up
        for place in range(pods):
            for agg in range(aggs):
                for core in range(up):
                    connect(f"a{place * aggs + agg}", f"c{agg * up + core}", 2)
    return topology
