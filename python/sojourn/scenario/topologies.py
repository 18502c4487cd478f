"""Scenarios of common topologies: dumbbell, parking lot, star, leaf-spine, fat tree, two-way line.

Each function returns a plain `Scenario`, which can be changed with `replace`, saved with
`save_scenario`, and used wherever a scenario can. Delays of links are one-way. Keys that a function
does not have (`warmup`, `seed`, `sample`, ...) are given by keyword, as for `Scenario`.
"""

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from sojourn._sojourn import InputError
from sojourn._util.inputs import near, of_link, shown
from sojourn._util.public import public
from sojourn._util.units import bps_of
from sojourn.fabric.shared_buffers import shared_buffers
from sojourn.scenario.draft import canonical
from sojourn.scenario.keys import Flow, Link, Scenario
from sojourn.scenario.named import FLOWS_MAX
from sojourn.scenario.variants import table

Named = str | Mapping[str, Any] | Any
"""Discipline, TCP or source: a name, a text with parameters, a table, or an object."""

LINKS_MAX = 100_000
"""Largest number of links of a kind, or of pairs of hosts: a scenario of some ten seconds."""

HOPS_MAX = 10_000
"""Largest number of hops of a parking lot, each of which is a link and a group of flows."""

ROUTES = ("hash", "spread")
"""Choices among equal paths of a fat tree."""


@public
def dumbbell(
    flows: int = 2,
    *,
    rate: str = "10mbit",
    delay: str = "1ms",
    rtt: str = "50ms",
    qdisc: Named = "droptail",
    tcp: Named = "cubic",
    source: Named = "bulk",
    access: str | None = None,
    duration: str = "60s",
    **settings: Any,
) -> Scenario:
    """Return flows that share one bottleneck.

    Parameters
    ----------
    flows : int, optional
        Number of flows, the group `flow`; with `access` up to 100,000.
    rate, delay : str, optional
        Rate and one-way delay of the link `bottleneck`.
    rtt : str, optional
        Round-trip propagation time of the flows, or a distribution like "uniform(20ms, 80ms)".
    qdisc : str, mapping or Qdisc, optional
        Discipline of the bottleneck.
    tcp, source : str, mapping or object, optional
        TCP and traffic source of the flows.
    access : str, optional
        Rate of a link of its own in front of the bottleneck for each flow, `access-0` and so on.
        Without it a sender is connected to the bottleneck directly.
    duration : str, optional
        Simulated time.
    **settings
        Other keys of `Scenario`.

    Returns
    -------
    Scenario
        A valid scenario.

    Raises
    ------
    InputError
        If a value is invalid. The message names the path of the key.

    Examples
    --------
    >>> import sojourn as sj
    >>> case = sj.dumbbell(3, rate="20mbit", qdisc="codel", rtt="uniform(20ms, 80ms)")
    >>> sj.simulate(case).links["bottleneck"].utilisation > 0.9
    True
    """
    count = _count("flows", flows, most=FLOWS_MAX if access is None else LINKS_MAX)
    links = {"bottleneck": Link(rate=rate, delay=delay, qdisc=qdisc)}
    path = ["bottleneck"]
    if access is not None:
        links |= {f"access-{i}": Link(rate=access) for i in range(count)}
        path = [_each("access", count), *path]
    flow = Flow(name="flow", count=count, path=path, rtt=rtt, tcp=tcp, source=source)
    return _scenario("dumbbell", duration, links, [flow], settings)


@public
def parking_lot(
    hops: int = 3,
    *,
    long: int = 1,
    cross: int = 1,
    rate: str = "10mbit",
    delay: str = "5ms",
    rtt: str | None = None,
    qdisc: Named = "droptail",
    tcp: Named = "cubic",
    source: Named = "bulk",
    duration: str = "60s",
    **settings: Any,
) -> Scenario:
    """Return flows over several bottlenecks in a row, and cross traffic at each.

    Parameters
    ----------
    hops : int, optional
        Number of links `hop-0`, `hop-1`, ..., up to 10,000.
    long, cross : int, optional
        Number of flows over all hops, the group `long`, and over each hop alone, the groups
        `cross-0`, `cross-1`, ...
    rate, delay : str, optional
        Rate and one-way delay of each hop.
    rtt : str, optional
        Round-trip propagation time of all flows; by default twice the delays that each crosses.
    qdisc, tcp, source, duration, **settings
        As of `dumbbell`; each hop has the discipline.

    Returns
    -------
    Scenario
        A valid scenario.

    Raises
    ------
    InputError
        If a value is invalid. The message names the path of the key.

    Examples
    --------
    >>> import sojourn as sj
    >>> [flow.name for flow in sj.parking_lot(2).flows]
    ['long', 'cross-0', 'cross-1']
    """
    count, each = _count("hops", hops, most=HOPS_MAX), _count("cross", cross)
    if count * each > FLOWS_MAX:
        total = f"{each} flows over each of {count} hops are {count * each}"
        raise InputError(f"cross: {total}, allowed: {FLOWS_MAX} in all")
    names = [f"hop-{i}" for i in range(count)]
    links = {name: Link(rate=rate, delay=delay, qdisc=qdisc) for name in names}

    def group(name: str, count: int, path: list[str]) -> Flow:
        trip = _round_trip(delay, len(path)) if rtt is None else rtt
        return Flow(name=name, count=count, path=path, rtt=trip, tcp=tcp, source=source)

    flows = [group("long", _count("long", long), names)]
    flows += [group(f"cross-{i}", each, [name]) for i, name in enumerate(names)]
    return _scenario("parking-lot", duration, links, flows, settings)


@public
def star(
    senders: int = 16,
    *,
    rate: str = "10gbit",
    delay: str = "5us",
    buffer: str = "250kB",
    qdisc: Named = "droptail",
    tcp: Named = "cubic",
    source: Named = "incast(size=64kB)",
    duration: str = "1s",
    **settings: Any,
) -> Scenario:
    """Return senders and one receiver at a switch: incast.

    Parameters
    ----------
    senders : int, optional
        Number of senders, the group `servers`, each with a link `uplink-0`, `uplink-1`, ...; up to
        100,000.
    rate, delay : str, optional
        Rate and one-way delay of each link.
    buffer : str, optional
        Buffer of the link `downlink` from the switch to the receiver, the bottleneck. It is the
        limit of `qdisc` unless that has one.
    qdisc : str, mapping or Qdisc, optional
        Discipline of `downlink`.
    source : str, mapping or Source, optional
        Traffic source. The default answers one query of the receiver after the other, all senders
        at the same time.
    tcp, duration, **settings
        As of `dumbbell`.

    Returns
    -------
    Scenario
        A valid scenario. Acknowledgements return with a pure delay.

    Raises
    ------
    InputError
        If a value is invalid. The message names the path of the key.

    Examples
    --------
    >>> import sojourn as sj
    >>> result = sj.simulate(sj.star(4, duration="100ms"))
    >>> len(result.queries["duration_s"]) > 50
    True
    """
    count = _count("senders", senders, most=LINKS_MAX)
    down = {"limit": buffer, **table(qdisc)}
    links = {f"uplink-{i}": Link(rate=rate, delay=delay) for i in range(count)}
    links["downlink"] = Link(rate=rate, delay=delay, qdisc=down)
    flow = Flow(
        name="servers",
        count=count,
        path=[_each("uplink", count), "downlink"],
        rtt=_round_trip(delay, 2),
        tcp=tcp,
        source=source,
    )
    return _scenario("star", duration, links, [flow], settings)


@public
def two_way_line(
    *,
    down: str = "50mbit",
    up: str = "10mbit",
    delay: str = "10ms",
    down_qdisc: Named = "droptail",
    up_qdisc: Named = "droptail",
    downloads: int = 1,
    uploads: int = 1,
    calls: int = 1,
    tcp: Named = "cubic",
    duration: str = "60s",
    **settings: Any,
) -> Scenario:
    """Return an access line with traffic in both directions; acknowledgements cross it, too.

    Parameters
    ----------
    down, up : str, optional
        Rates of the links `down` and `up`.
    delay : str, optional
        One-way delay of each direction.
    down_qdisc, up_qdisc : str, mapping or Qdisc, optional
        Disciplines of the links.
    downloads, uploads : int, optional
        Number of bulk flows of the groups `download` and `upload`; 0 for none.
    calls : int, optional
        Number of voice calls, 64 kbit/s of UDP in each direction: the groups `call-down` and
        `call-up`; 0 for none.
    tcp, duration, **settings
        As of `dumbbell`.

    Returns
    -------
    Scenario
        A valid scenario.

    Raises
    ------
    InputError
        If a value is invalid. The message names the path of the key.

    Examples
    --------
    >>> import sojourn as sj
    >>> line = sj.two_way_line(down="20mbit", up="2mbit", up_qdisc="fq_codel")
    >>> sj.simulate(line.replace(duration="10s")).flows["call-up"].delay_p99_s < 0.1
    True
    """
    links = {
        "down": Link(rate=down, delay=delay, qdisc=down_qdisc),
        "up": Link(rate=up, delay=delay, qdisc=up_qdisc),
    }
    flows = []
    for name, count, way in [
        ("download", downloads, ["down", "up"]),
        ("upload", uploads, ["up", "down"]),
    ]:
        if _count(f"{name}s", count, least=0):
            flows.append(Flow(name=name, count=count, path=way[:1], return_path=way[1:], tcp=tcp))
    voice = {"name": "cbr", "rate": "64kbit", "packet": "200B"}
    if _count("calls", calls, least=0):
        flows += [Flow(name=f"call-{d}", count=calls, path=[d], source=voice) for d in links]
    if not flows:
        raise InputError("downloads, uploads, calls: all are 0; a scenario needs a flow")
    return _scenario("two-way-line", duration, links, flows, settings)


@public
def leaf_spine(
    leaves: int = 4,
    spines: int = 4,
    hosts: int = 8,
    *,
    oversubscription: float = 1.0,
    pairs: Sequence[tuple[int, int]] | None = None,
    spread: Named = "connection",
    switch_hash: Literal["per-switch", "shared"] = "per-switch",
    rate: str = "10gbit",
    delay: str = "1us",
    qdisc: Named = "droptail",
    tcp: Named = "cubic",
    source: Named = "bulk",
    seed: int = 1,
    duration: str = "100ms",
    **settings: Any,
) -> Scenario:
    """Return a leaf-spine network: each leaf switch has hosts, and a link to each spine switch.

    Links are called by their ends: `h3-l0` from host 3 to leaf 0, `l0-s1` from leaf 0 to spine 1,
    and `s1-l0` in the other direction. Switches choose the paths while the scenario runs.

    Parameters
    ----------
    leaves, spines : int, optional
        Number of leaf switches, from 2, and of spine switches, from 1.
    hosts : int, optional
        Number of hosts of each leaf.
    oversubscription : float, optional
        Rate of the hosts of a leaf together, divided by the rate of its links to the spines
        together: 1 for none, 2 for 2:1. It sets the rate of the links to the spines.
    pairs : sequence of (int, int), optional
        Sender and receiver of each flow by their numbers, up to 100,000. By default a random
        permutation: each host sends to one other and receives from one other.
    spread : str or mapping, optional
        "connection" (ECMP), "flowlet(gap=100us)", "packet" or "round-robin".
    switch_hash : {"per-switch", "shared"}, optional
        A hash function of its own in each switch, or the same in all.
    rate : str, optional
        Rate of the link of a host.
    delay : str, optional
        One-way delay of each link.
    qdisc : str, mapping or Qdisc, optional
        Discipline of every link.
    seed : int, optional
        Seed of the permutation and of the scenario.
    tcp, source, duration, **settings
        As of `dumbbell`.

    Returns
    -------
    Scenario
        A valid scenario. Flow `h0-h5` is from host 0 to host 5.

    Raises
    ------
    InputError
        If a value is invalid. The message names the path of the key.

    Examples
    --------
    >>> import sojourn as sj
    >>> case = sj.leaf_spine(2, 2, 4, oversubscription=2, pairs=[(0, 5)])
    >>> case.links["l0-s1"].rate
    '10gbit'
    >>> case.flows[0].sender, case.flows[0].receiver
    ('h0', 'h5')
    """
    for name, value, least in (("leaves", leaves, 2), ("spines", spines, 1), ("hosts", hosts, 1)):
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 1000:
            raise InputError(f"{name}: {shown(value)} is not a whole number from {least} to 1000")
    if 2 * leaves * (hosts + spines) > LINKS_MAX:
        number = 2 * leaves * (hosts + spines)
        raise InputError(f"leaves: {number} links are too many, allowed: up to {LINKS_MAX}")
    number = isinstance(oversubscription, int | float) and not isinstance(oversubscription, bool)
    if not number or not 0.01 <= oversubscription <= 1000:
        text = "is not a number from 0.01 to 1000, like 2 for 2:1"
        raise InputError(f"oversubscription: {shown(oversubscription)} {text}")
    bps = bps_of(of_link("rate", "rate", rate)) * hosts / (spines * oversubscription)
    rng = random.Random(seed)
    count = leaves * hosts
    chosen = _permutation(count, rng) if pairs is None else _pairs(pairs, count)
    below = [(f"h{h}", f"l{h // hosts}") for h in range(count)]
    above = [(f"l{leaf}", f"s{spine}") for leaf in range(leaves) for spine in range(spines)]
    links = _both_ways(below, rate, delay, qdisc)
    links |= _both_ways(above, of_link("rate", "rate", f"{round(bps)}bit"), delay, qdisc)
    flows = _between(chosen, spread, switch_hash, tcp, source)
    return _scenario("leaf-spine", duration, links, flows, {"seed": seed, **settings})


def _both_ways(
    ends: Sequence[tuple[str, str]], rate: str, delay: str, qdisc: Named
) -> dict[str, Link]:
    """Return the links between pairs of nodes in both directions."""
    names = [f"{one}-{other}" for a, b in ends for one, other in ((a, b), (b, a))]
    return {name: Link(rate=rate, delay=delay, qdisc=qdisc) for name in names}


def _between(
    pairs: Sequence[tuple[int, int]], spread: Named, switch_hash: str, tcp: Named, source: Named
) -> list[Flow]:
    """Return a flow with `spread` for each pair of hosts; names of equal pairs get a number."""
    seen: dict[tuple[int, int], int] = {}
    flows = []
    for a, b in pairs:
        seen[a, b] = seen.get((a, b), -1) + 1
        flows.append(
            Flow(
                name=f"h{a}-h{b}" + (f"-{seen[a, b]}" if seen[a, b] else ""),
                sender=f"h{a}",
                receiver=f"h{b}",
                spread=spread,
                hash=switch_hash,
                tcp=tcp,
                source=source,
            )
        )
    return flows


@public
def fat_tree(
    k: int = 4,
    ecmp: Literal["hash", "spread"] = "hash",
    *,
    pairs: Sequence[tuple[int, int]] | None = None,
    spread: Named | None = None,
    switch_hash: Literal["per-switch", "shared"] = "per-switch",
    rate: str = "10gbit",
    delay: str = "1us",
    qdisc: Named = "droptail",
    buffer: str | None = None,
    alpha: float = 1.0,
    tcp: Named = "cubic",
    source: Named = "bulk",
    seed: int = 1,
    duration: str = "100ms",
    **settings: Any,
) -> Scenario:
    """Return a fat tree of switches with `k` ports: k^3/4 hosts with equal paths between them.

    Al-Fares, Loukissas and Vahdat, SIGCOMM 2008. A pod has k/2 edge switches with k/2 hosts each,
    and k/2 aggregation switches; (k/2)^2 core switches connect the pods. Links are called by their
    ends: `h3-e1` from host 3 to edge switch 1, `e1-a0`, `a0-c2`, and `c2-a0` in the other
    direction.

    Parameters
    ----------
    k : int, optional
        Number of ports of a switch, even, from 2 to 16.
    ecmp : {"hash", "spread"}, optional
        Choice among equal paths: random for each flow and direction, as a hash of addresses and
        ports does, or in turn, so that as few flows as possible share a link upwards. Flows can
        still share links downwards.
    pairs : sequence of (int, int), optional
        Sender and receiver of each flow by their numbers, up to 100,000. By default a random
        permutation: each host sends to one other and receives from one other.
    spread : str or mapping, optional
        Choice of paths while the scenario runs, in place of `ecmp`: "connection",
        "flowlet(gap=100us)", "packet" or "round-robin". The scenario then has all links.
    switch_hash : {"per-switch", "shared"}, optional
        With `spread`, a hash function of its own in each switch, or the same in all.
    rate, delay : str, optional
        Rate and one-way delay of each link.
    qdisc : str, mapping or Qdisc, optional
        Discipline of every link.
    buffer : str, optional
        Buffer that the ports of each switch share, like ``"4MB"``. By default each port has the
        buffer of its discipline alone.
    alpha : float, optional
        With `buffer`: bytes that a port may hold in relation to those that are free.
    seed : int, optional
        Seed of the permutation, of the paths, and of the scenario.
    tcp, source, duration, **settings
        As of `dumbbell`.

    Returns
    -------
    Scenario
        A valid scenario with the links that are used. Flow `h0-h5` is from host 0 to host 5; its
        acknowledgements have a path of their own.

    Raises
    ------
    InputError
        If a value is invalid. The message names the path of the key.

    Examples
    --------
    >>> import sojourn as sj
    >>> case = sj.fat_tree(4, "spread", pairs=[(0, 15)])
    >>> case.flows[0].path
    ['h0-e0', 'e0-a0', 'a0-c0', 'c0-a6', 'a6-e7', 'e7-h15']
    """
    if not isinstance(k, int) or isinstance(k, bool) or k % 2 or not 2 <= k <= 16:
        raise InputError(f"k: {shown(k)} is not an even number from 2 to 16")
    if ecmp not in ROUTES:
        raise InputError(f"ecmp: unknown choice {shown(ecmp)}{near(ecmp, ROUTES)}")
    hosts = k**3 // 4
    rng = random.Random(seed)
    chosen = _permutation(hosts, rng) if pairs is None else _pairs(pairs, hosts)
    half = k // 2

    def choice(n: int) -> int:
        if ecmp == "hash":
            return rng.randrange(half**2)
        return n % half * half + n // half % half  # the aggregation switches in turn

    if spread is not None:
        pairs_of_nodes = [(f"h{h}", f"e{h // half}") for h in range(hosts)]
        for low in range(k * half):
            for up in range(half):
                above = f"a{low // half * half + up}"
                pairs_of_nodes.append((f"e{low}", above))
                pairs_of_nodes.append((f"a{low}", f"c{low % half * half + up}"))
        links = _both_ways(pairs_of_nodes, rate, delay, qdisc)
        flows = _between(chosen, spread, switch_hash, tcp, source)
        return _scenario("fat-tree", duration, links, flows, {"seed": seed, **settings})
    flows = []
    used: dict[str, None] = {}
    names: dict[tuple[int, int], int] = {}
    for n, (a, b) in enumerate(chosen):
        path, back = _route(k, a, b, choice(n)), _route(k, b, a, choice(n))
        used |= dict.fromkeys([*path, *back])
        names[a, b] = names.get((a, b), -1) + 1
        name = f"h{a}-h{b}" + (f"-{names[a, b]}" if names[a, b] else "")
        flows.append(Flow(name=name, path=path, return_path=back, tcp=tcp, source=source))
    links = {name: Link(rate=rate, delay=delay, qdisc=qdisc) for name in used}
    if buffer is not None:
        settings["switches"] = shared_buffers(links, buffer, alpha)
    return _scenario("fat-tree", duration, links, flows, {"seed": seed, **settings})


def _route(k: int, a: int, b: int, choice: int) -> list[str]:
    """Return the links from host `a` to host `b`; `choice` is one of the (k/2)^2 core switches."""
    half = k // 2
    edge_a, edge_b = a // half, b // half
    if edge_a == edge_b:
        nodes = [f"h{a}", f"e{edge_a}", f"h{b}"]
    else:
        up, core = choice // half, choice
        pods = [edge_a // half, edge_b // half]
        above = [f"a{pods[0] * half + up}"]
        if pods[0] != pods[1]:
            above += [f"c{core}", f"a{pods[1] * half + up}"]
        nodes = [f"h{a}", f"e{edge_a}", *above, f"e{edge_b}", f"h{b}"]
    return [f"{one}-{other}" for one, other in pairwise(nodes)]


def _permutation(hosts: int, rng: random.Random) -> list[tuple[int, int]]:
    """Return a random cycle over all hosts: nobody sends to itself."""
    order = list(range(hosts))
    rng.shuffle(order)
    return sorted(zip(order, [*order[1:], order[0]], strict=True))


def _pairs(pairs: Sequence[tuple[int, int]], hosts: int) -> list[tuple[int, int]]:
    """Check pairs of hosts."""
    if len(pairs) > LINKS_MAX:
        raise InputError(f"pairs: {len(pairs)} pairs are too many, allowed: up to {LINKS_MAX}")
    for n, pair in enumerate(pairs):
        two = isinstance(pair, Sequence) and len(pair) == 2
        if not two or not all(isinstance(h, int) and 0 <= h < hosts for h in pair):
            raise InputError(f"pairs.{n}: {shown(pair)} is not two hosts from 0 to {hosts - 1}")
        if pair[0] == pair[1]:
            raise InputError(f"pairs.{n}: host {pair[0]} cannot send to itself")
    if not pairs:
        raise InputError("pairs: is empty; a scenario needs a flow")
    return [(a, b) for a, b in pairs]


def _each(name: str, count: int) -> str:
    """Return the link of each flow of a group: with its number, if the group has one."""
    return f"{name}-{{i}}" if count > 1 else f"{name}-0"


def _count(key: str, value: object, *, least: int = 1, most: int = FLOWS_MAX) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InputError(f"{key}: {shown(value)} is not a whole number, {least} to {most}")
    return value


def _round_trip(delay: str, links: int) -> str:
    """Return the round-trip time over so many links of the one-way delay `delay`."""
    one_way = of_link("delay", "delay", delay)
    unit = one_way.lstrip("0123456789")
    return f"{2 * links * int(one_way.removesuffix(unit))}{unit}"


def _scenario(
    name: str, duration: str, links: Mapping[str, Any], flows: Sequence[Any], settings: Any
) -> Scenario:
    """Return the scenario, validated as a whole."""
    case = Scenario(**{"name": name, "duration": duration, **settings}, links=links, flows=flows)
    canonical(case)
    return case
