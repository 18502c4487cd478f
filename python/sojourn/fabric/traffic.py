"""Traffic between hosts: the key `traffic` of a group of flows.

It has a list of flows from a file, or a load with a pattern. The group gets a source, and a path
for each pair of hosts, over the links of the scenario.
"""

import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn._sojourn import InputError, ParsedScenario
from sojourn._util import size_table
from sojourn._util.inputs import near, shown
from sojourn._util.units import bps_of, bytes_of
from sojourn.fabric import flow_list, sizes
from sojourn.fabric.routes import Network

Table = dict[str, Any]

KEY = "traffic"
"""Key of a group of flows that has a table of this page."""

OF_LIST = ("file", "format")
"""Keys of a list of flows."""

PATTERNS = ("all-to-all", "permutation", "racks", "incast")
"""Pairs of hosts."""

MEASURES = ("payload", "wire")
"""Bytes that a load counts."""

HASHES = ("per-switch", "shared")
"""Hash functions of switches."""

OF_LOAD = (
    "load", "of", "measure", "pattern", "matrix", "hosts", "senders", "size", "gaps", "paths",
    "start", "stop", "number", "until", "most",
)  # fmt: skip
"""Keys of a load."""

COMMON = ("hash", "seed")
"""Keys of both."""

PASSED = ("start", "stop", "number", "until", "most")
"""Keys that the source `cluster` has, too."""

MEMBERS_MAX = 50_000
"""Number of pairs and paths of a group, unless `paths` is given."""

PATHS = 16
"""Largest number of paths of a pair of hosts, unless `paths` is given."""

OF_SWITCHES = ("hash", "paths")
"""Keys that a group with `spread` does not have: each connection has a path of its own."""

EXCLUDED = ("source", "path", "return_path", "count", "sender", "receiver", "receiver_port")
"""Keys of a group that its traffic sets."""


def has_traffic(flow: Any) -> bool:
    """Return True if a group of flows has the key `traffic`."""
    return isinstance(flow, Mapping) and KEY in flow


def with_files(flow: Table, folder: Path | None) -> Table:
    """Return a group whose names of files do not depend on `folder`, and with its table of sizes.

    Raises InputError if a table of sizes cannot be read.
    """
    traffic = flow[KEY]
    if not isinstance(traffic, Mapping):
        return flow
    own = dict(traffic)
    if folder is not None and isinstance(own.get("file"), str):
        own["file"] = str(folder / own["file"])
    if isinstance(own.get("size"), str):
        with_source = {"name": flow.get("name"), "source": {"size": own["size"]}}
        own["size"] = size_table.inline([with_source], folder)[0]["source"]["size"]
    return {**flow, KEY: own}


def resolve(tree: Table) -> Table:
    """Return a scenario with groups that Rust knows in place of those with traffic.

    Raises InputError with the path of a key, or with file and line.
    """
    flows = tree.get("flows")
    if not isinstance(flows, list) or not any(map(has_traffic, flows)):
        return tree
    groups: list[Any] = []
    for flow in flows:
        if not has_traffic(flow):
            groups.append(flow)
            continue
        name = flow.get("name")
        try:
            groups += _groups(tree, flow)
        except InputError as error:
            where = f"flows.{name}" if isinstance(name, str) else "flows"
            raise InputError(f"{where}.{KEY}: {error}") from None
    return {**tree, "flows": groups}


def _groups(tree: Table, flow: Table) -> list[Table]:
    traffic = flow[KEY]
    if not isinstance(traffic, Mapping):
        raise InputError(f'{shown(traffic)} is no table, like {{ file = "flow.txt" }}')
    if both := [key for key in EXCLUDED if key in flow]:
        raise InputError(f"sets {both[0]}, which the group has: leave it out")
    links = tree.get("links")
    links = links if isinstance(links, dict) else {}
    is_list = "file" in traffic
    known = (*(OF_LIST if is_list else OF_LOAD), *COMMON)
    for key in traffic:
        if key not in known:
            raise InputError(f"unknown key {shown(key)}{near(key, known)}")
    if "spread" in flow and (fixed := [key for key in OF_SWITCHES if key in traffic]):
        text = "goes with paths that are fixed, and the group has spread: "
        instead = "set hash of the group" if fixed[0] == "hash" else "leave it out"
        raise InputError(f"{fixed[0]}: {text}{instead}")
    shared = _choice(traffic, "hash", HASHES) == "shared"
    network = Network(links, _integer(traffic, "seed", 1, 0, 2**53), shared=shared)
    own = {key: value for key, value in flow.items() if key != KEY}
    if is_list:
        return _of_list(traffic, own, network)
    return _of_load(tree, traffic, own, network)


def _choice(traffic: Mapping[str, Any], key: str, known: Sequence[str]) -> str:
    value = traffic.get(key, known[0])
    if value not in known:
        raise InputError(f"{key}: unknown value {shown(value)}{near(value, known)}")
    return str(value)


def _integer(traffic: Mapping[str, Any], key: str, default: int, least: int, most: int) -> int:
    value = traffic.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InputError(f"{key}: {shown(value)} is no whole number from {least} to {most}")
    return value


def _of_list(traffic: Mapping[str, Any], own: Table, network: Network) -> list[Table]:
    """Return a group for each priority group and destination port of a list of flows."""
    file, form = traffic["file"], traffic.get("format")
    if not isinstance(file, str) or not isinstance(form, str | None):
        raise InputError(f"file: {shown(file)} is no name of a file, with a format by name")
    flows = flow_list.read(Path(file), form)
    kinds = sorted({*zip(flows.priority, flows.port, strict=True)})
    groups = []
    for kind in kinds:
        rows = [
            i
            for i, own_kind in enumerate(zip(flows.priority, flows.port, strict=True))
            if own_kind == kind
        ]
        name = str(own.get("name"))
        suffix = (
            ""
            if len(kinds) == 1
            else f"-{kind[1]}"
            if len({p for p, _ in kinds}) == 1
            else (f"-{kind[0]}-{kind[1]}")
        )
        group = _list_group(flows, rows, network, own | {"name": name + suffix})
        if kind[1]:
            group["receiver_port"] = kind[1]
        if kind[0] and "class" not in own and "dscp" not in own:
            group["class"] = kind[0]
        groups.append(group)
    return groups


def _list_group(
    flows: flow_list.FlowList, rows: Sequence[int], network: Network, own: Table
) -> Table:
    """Return the group of some rows of a list. Flows of equal path are one member."""
    members: dict[Member, int] = {}
    of_row = []
    for i in rows:
        a, b = f"h{flows.src[i]}", f"h{flows.dst[i]}"
        member = (a, b, *_ways(network, own, a, b, i))
        of_row.append(members.setdefault(member, len(members)))
    source = {
        "name": "trace",
        "time_s": [flows.start_ns[i] / 1e9 for i in rows],
        "size_bytes": [flows.size[i] for i in rows],
        "flow": of_row,
    }
    return _with_members(own, list(members), source)


Pair = tuple[str, str]

Member = tuple[str, str, tuple[str, ...], tuple[str, ...]]
"""Sender, receiver, path and return path; both paths are empty in a group with `spread`."""


def _ways(
    network: Network, own: Table, a: str, b: str, port: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return path and return path of a pair of hosts and a port."""
    return ((), ()) if "spread" in own else (network.path(a, b, port), network.path(b, a, port))


def _with_members(own: Table, members: Sequence[Member], source: Table) -> Table:
    """Return a group of these pairs of hosts, each with its path and return path.

    With `spread`, the simulator knows the paths.
    """
    senders, receivers, paths, back = zip(*members, strict=True)
    group = {
        "tcp": "cubic",
        **own,
        "count": len(members),
        "source": source,
        "sender": list(senders),
        "receiver": list(receivers),
    }
    if "spread" not in own:
        group |= {"path": [list(p) for p in paths], "return_path": [list(p) for p in back]}
    return group


def _of_load(tree: Table, traffic: Mapping[str, Any], own: Table, network: Network) -> list[Table]:
    """Return the group, or with a matrix of racks the groups, of a load."""
    pattern = _choice(traffic, "pattern", PATTERNS)
    if "senders" in traffic and pattern != "incast":
        raise InputError("senders: is of the pattern incast")
    if "matrix" in traffic and pattern != "racks":
        raise InputError("matrix: is of the pattern racks")
    hosts = _hosts(traffic, network)
    rng = random.Random(_integer(traffic, "seed", 1, 0, 2**53))
    size, payload, header = _canonical(traffic, own)
    parts = _parts(pattern, traffic, hosts, network, rng)
    rates = {name: _bps(link) for name, link in tree["links"].items()}
    spread = "spread" in own
    paths = 1 if spread else _paths(traffic, pattern, sum(len(pairs) for pairs, _ in parts))
    shares = [
        (
            [(a, b, *_ways(network, own, a, b, port)) for a, b in pairs for port in range(paths)],
            weight,
        )
        for pairs, weight in parts
    ]
    bits = 8 * sizes.mean(size)
    if _choice(traffic, "measure", MEASURES) == "wire":
        bits += 8 * header * sizes.mean_packets(size, payload)
    burst = _integer(traffic, "senders", 1, 1, len(hosts) - 1)
    flows_per_s = _flows_per_s(traffic, shares, network, rates, bits)
    groups = []
    for place, (members, weight) in enumerate(shares):
        source = {
            "name": "cluster",
            "size": size,
            "arrivals": flows_per_s * weight / burst,
            **{key: traffic[key] for key in PASSED if key in traffic},
        }
        if sigma := _sigma(traffic):
            source["sigma"] = sigma
        if pattern == "incast":
            source |= {"senders": burst, "receivers": len(hosts)}
        name = f"{own.get('name')}" + (f"-{place}" if len(shares) > 1 else "")
        groups.append(_with_members(own | {"name": name}, members, source))
    return groups


def _canonical(traffic: Mapping[str, Any], own: Table) -> tuple[str, int, int]:
    """Return the canonical distribution of sizes, and payload and header of a packet."""
    source = {"name": "cluster", "size": traffic.get("size", "100kB")}
    flow = {"name": "flow", "path": ["a"], "source": source, "tcp": own.get("tcp", "cubic")}
    tree = {"duration": "1s", "links": {"a": {"rate": "1mbit"}}, "flows": [flow]}
    try:
        parsed = json.loads(ParsedScenario(json.dumps(tree)).canonical())["flows"][0]
    except InputError as error:
        raise InputError(str(error).removeprefix("flows.flow.").removeprefix("source.")) from None
    tcp = parsed["tcp"]
    header = bytes_of(tcp["header"])
    return parsed["source"]["size"], bytes_of(tcp["packet"]) - header, header


def _hosts(traffic: Mapping[str, Any], network: Network) -> list[str]:
    hosts = traffic.get("hosts", network.hosts)
    if not isinstance(hosts, list) or len({*map(str, hosts)}) < max(2, len(hosts)):
        raise InputError('hosts: write the names of two or more hosts, like ["h0", "h1"]')
    for host in hosts:
        if host not in network.next or host not in network.hosts:
            raise InputError(f"hosts: {shown(host)} is no host{near(host, network.hosts)}")
    return hosts


def _parts(
    pattern: str,
    traffic: Mapping[str, Any],
    hosts: list[str],
    network: Network,
    rng: random.Random,
) -> list[tuple[list[Pair], float]]:
    """Return lists of pairs of hosts, each with its share of the flows."""
    if pattern == "permutation":
        order = list(hosts)
        rng.shuffle(order)
        return [(sorted(zip(order, [*order[1:], order[0]], strict=True)), 1.0)]
    if pattern == "incast":  # as the source wants it: one receiver after the other
        return [([(a, b) for b in hosts for a in hosts if a != b], 1.0)]
    if pattern == "all-to-all":
        return [([(a, b) for a in hosts for b in hosts if a != b], 1.0)]
    racks: dict[str, list[str]] = {}
    for host in hosts:
        racks.setdefault(network.next[host][0], []).append(host)
    members = list(racks.values())
    matrix = _matrix(traffic.get("matrix"), len(members))
    total = sum(map(sum, matrix))
    parts = []
    for i, row in enumerate(matrix):
        for j, share in enumerate(row):
            pairs = [(a, b) for a in members[i] for b in members[j] if a != b]
            if share and not pairs:
                raise InputError(f"matrix: rack {i} has one host, which cannot send to itself")
            if share:
                parts.append((pairs, share / total))
    return parts


def _matrix(value: Any, racks: int) -> list[list[float]]:
    """Check a matrix of shares, a row per sending rack."""
    number = (int, float)
    fits = (
        isinstance(value, list)
        and len(value) == racks
        and all(isinstance(row, list) and len(row) == racks for row in value)
        and all(isinstance(x, number) and 0 <= x < 1e12 for row in value for x in row)
    )
    if not fits or not sum(map(sum, value)):
        text = f"is no list of {racks} rows (a rack each, in the order of hosts)"
        raise InputError(f"matrix: {text} of {racks} numbers from 0, not all 0")
    return [[float(x) for x in row] for row in value]


def _paths(traffic: Mapping[str, Any], pattern: str, pairs: int) -> int:
    """Return the number of ports, and so of paths, that the flows of a pair of hosts have."""
    if "paths" not in traffic:
        return 1 if pattern == "incast" else max(1, min(PATHS, MEMBERS_MAX // max(1, pairs)))
    paths = _integer(traffic, "paths", 1, 1, 1024)
    if pattern == "incast" and paths > 1:
        raise InputError("paths: a burst has one path from each sender")
    return paths


def _bps(link: Any) -> float:
    """Return the rate of a link."""
    from sojourn._util.inputs import of_link

    rate = link.get("rate") if isinstance(link, Mapping) else None
    return 0.0 if rate is None else bps_of(of_link("rate", "rate", rate))


def _sigma(traffic: Mapping[str, Any]) -> float | None:
    gaps = traffic.get("gaps", "poisson")
    if gaps == "poisson":
        return None
    if isinstance(gaps, str) and gaps.startswith("lognormal(sigma=") and gaps.endswith(")"):
        try:
            sigma = float(gaps[16:-1])
        except ValueError:
            sigma = math.nan
        if 0 < sigma <= 5:
            return sigma
    raise InputError(f"gaps: {shown(gaps)} is not poisson or lognormal(sigma=S), S up to 5")


def _flows_per_s(
    traffic: Mapping[str, Any],
    parts: Sequence[tuple[list[Member], float]],
    network: Network,
    rates: Mapping[str, float],
    bits: float,
) -> float:
    """Return the number of flows per second that makes the load of the stated link."""
    load, of = traffic.get("load"), traffic.get("of", "hosts")
    if not isinstance(load, int | float) or isinstance(load, bool) or not 0 < load <= 10:
        raise InputError(f"load: {shown(load)} is no share of the rate, above 0 and up to 10")
    if of == "hosts":
        first = {
            link
            for members, _ in parts
            for a, b, path, _ in members
            for link in path[:1] or network.first_links(a, b)
        }
        return float(load) * sum(rates[link] for link in first) / bits
    crossing: dict[str, float] = {}
    for members, weight in parts:
        each = weight / len(members)
        for a, b, path, _ in members:
            shares = dict.fromkeys(path, 1.0) or network.shares(a, b)
            for link, share in shares.items():
                crossing[link] = crossing.get(link, 0.0) + each * share
    if of == "most":
        return float(load) * min(rates[link] / share for link, share in crossing.items()) / bits
    if of not in rates:
        raise InputError(f"of: unknown link {shown(of)}{near(of, ['hosts', 'most', *rates])}")
    if of not in crossing:
        raise InputError(f"of: no flow crosses the link {of}")
    return float(load) * rates[of] / crossing[of] / bits
