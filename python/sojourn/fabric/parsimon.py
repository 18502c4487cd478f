"""Topologies and flows of Parsimon in JSON.

**Source**: netiken/parsimon at 4a83a5c, crates `parsimon-utils` (files) and `parsimon-core` (nodes,
links, flows); netiken/parsimon-eval at 4d612d0, `workload/src/fabric/cluster.rs` (clusters).

A topology has `nodes` and `links`, or is a cluster with the same nodes and links by plane, pod and
rack. Flows are a list. Rates are in bit/s, times in nanoseconds, sizes in bytes.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import msgspec

from sojourn._sojourn import InputError
from sojourn._util.reading import bytes_of_file, unpacked
from sojourn._util.typed_json import checked, decoded

Number = Annotated[int, msgspec.Meta(ge=0, lt=10**15)]
Count = Annotated[int, msgspec.Meta(ge=1, lt=10**15)]


class Node(msgspec.Struct):
    """Host or switch."""

    id: Number
    kind: Literal["Host", "Switch"]


class Link(msgspec.Struct):
    """Both directions of a connection of two nodes: rate in bit/s, delay in nanoseconds."""

    a: Number
    b: Number
    bandwidth: Count
    delay: Number


class Flow(msgspec.Struct):
    """Flow: size in bytes, start in nanoseconds."""

    id: Number
    src: Number
    dst: Number
    size: Count
    start: Number


class _Network(msgspec.Struct):
    nodes: list[Node]
    links: list[Link]


class _Rack(msgspec.Struct):
    tor: Node
    hosts: list[Node]
    host2tor: list[Link]


class _Pod(msgspec.Struct):
    fabs: list[Node]
    racks: list[_Rack]
    tor2fab: list[Link]


class _Cluster(msgspec.Struct):
    planes: list[list[Node]]
    pods: list[_Pod]
    fab2spine: list[Link]


def is_json(path: Path) -> bool:
    """Return True if a file begins as JSON does: with a bracket."""
    return unpacked(path, bytes_of_file(path)).lstrip()[:1] in (b"{", b"[")


def read_network(path: Path) -> tuple[list[Node], list[tuple[str, Link]]]:
    """Return the nodes of a topology, and its links with their places in the file.

    Raises
    ------
    InputError
        If the file is no such topology. The message names the file and the place.
    """
    tree = _decoded(path)
    if isinstance(tree, dict) and "pods" in tree:
        cluster = _checked(path, tree, _Cluster)
        nodes, links = _nodes(cluster), list(_links(cluster))
    else:
        network = _checked(path, tree, _Network)
        nodes = network.nodes
        links = [(f"links.{i}", link) for i, link in enumerate(network.links)]
    kinds: dict[int, str] = {}
    for node in nodes:
        if node.id in kinds:
            _fail(path, "nodes", f"two nodes have the number {node.id}")
        kinds[node.id] = node.kind
    for place, link in links:
        for end, number in (("a", link.a), ("b", link.b)):
            if number not in kinds:
                _fail(path, f"{place}.{end}", f"there is no node {number}")
        if link.a == link.b:
            _fail(path, place, f"node {link.a} cannot have a link to itself")
    return nodes, links


def read_flows(path: Path) -> list[Flow]:
    """Return the flows of a list.

    Raises
    ------
    InputError
        If the file is no such list. The message names the file and the place.
    """
    flows: list[Flow] = _checked(path, _decoded(path), list[Flow])
    for i, flow in enumerate(flows):
        if flow.src == flow.dst:
            _fail(path, str(i), f"host {flow.src} cannot send to itself")
    return flows


def _nodes(cluster: _Cluster) -> list[Node]:
    nodes = [node for plane in cluster.planes for node in plane]
    for pod in cluster.pods:
        nodes += pod.fabs
        for rack in pod.racks:
            nodes += [rack.tor, *rack.hosts]
    return nodes


def _links(cluster: _Cluster) -> Iterator[tuple[str, Link]]:
    """Yield the links of a cluster with their places."""
    for i, link in enumerate(cluster.fab2spine):
        yield f"fab2spine.{i}", link
    for k, pod in enumerate(cluster.pods):
        for i, link in enumerate(pod.tor2fab):
            yield f"pods.{k}.tor2fab.{i}", link
        for r, rack in enumerate(pod.racks):
            for i, link in enumerate(rack.host2tor):
                yield f"pods.{k}.racks.{r}.host2tor.{i}", link


def _decoded(path: Path) -> Any:
    return decoded(path, unpacked(path, bytes_of_file(path)))


def _checked(path: Path, tree: Any, kind: Any) -> Any:
    try:
        return checked(tree, kind)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _fail(path: Path, place: str, text: str) -> NoReturn:
    raise InputError(f"{path}: {place}: {text}")
