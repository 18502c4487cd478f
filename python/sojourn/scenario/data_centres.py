"""Scenarios of data centres: leaf-spine network and fat tree.

Each function returns a plain `Scenario`, as in `topologies`.
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
from sojourn.scenario.keys import Flow, Link, Scenario
from sojourn.scenario.topologies import LINKS_MAX, Named, checked

ROUTES = ("hash", "spread")
"""Choices among equal paths of a fat tree."""


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
    buffer: str | None = None,
    alpha: float = 1.0,
    classes: Mapping[str, Mapping[str, Any]] | None = None,
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
    buffer : str, optional
        Buffer that the ports of each switch share, like ``"4MB"``. By default each port has the
        buffer of its discipline alone.
    alpha : float, optional
        With `buffer`: bytes that a port may hold in relation to those that are free.
    classes : mapping, optional
        With `buffer`: classes with a queue of their own at each port by class or DSCP, like
        ``{"EF": {"alpha": 8}}``. Packets of other classes share one queue per port, with `alpha`.
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
    settings |= _switches(links, buffer, alpha, classes)
    return checked("leaf-spine", duration, links, flows, {"seed": seed, **settings})


def _switches(
    links: Mapping[str, Link],
    buffer: str | None,
    alpha: float,
    classes: Mapping[str, Mapping[str, Any]] | None,
) -> dict[str, Any]:
    """Return the field `switches` of a scenario; no field without `buffer`."""
    if buffer is not None:
        return {"switches": shared_buffers(links, buffer, alpha, classes)}
    if classes is not None:
        raise InputError("classes: needs buffer, the size of the buffer that ports share")
    return {}


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
    classes: Mapping[str, Mapping[str, Any]] | None = None,
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
    classes : mapping, optional
        With `buffer`: classes with a queue of their own at each port by class or DSCP, like
        ``{"EF": {"alpha": 8}}``. Packets of other classes share one queue per port, with `alpha`.
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
        flows = _between(chosen, spread, switch_hash, tcp, source)
        links = _both_ways(_ends(k), rate, delay, qdisc)
    else:
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
    settings |= _switches(links, buffer, alpha, classes)
    return checked("fat-tree", duration, links, flows, {"seed": seed, **settings})


def _ends(k: int) -> list[tuple[str, str]]:
    """Return the two ends of each link of a fat tree, the lower one first."""
    half = k // 2
    ends = [(f"h{h}", f"e{h // half}") for h in range(k**3 // 4)]
    for low in range(k * half):
        for up in range(half):
            above = f"a{low // half * half + up}"
            ends.append((f"e{low}", above))
            ends.append((f"a{low}", f"c{low % half * half + up}"))
    return ends


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
