"""Topologies and flows of Parsimon in JSON: both forms, faults by place, and the command."""

import json
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from conftest import Command
from sojourn.fabric import flow_list, topology_file


def node(number: int, kind: str = "Switch") -> dict[str, Any]:
    """Return a node."""
    return {"id": number, "kind": kind}


def link(a: int, b: int, bandwidth: int = 40_000_000_000) -> dict[str, int]:
    """Return a link."""
    return {"a": a, "b": b, "bandwidth": bandwidth, "delay": 1000}


RACKS = [
    {"tor": node(4), "hosts": [node(0, "Host"), node(1, "Host")],
     "host2tor": [link(0, 4, 10_000_000_000), link(1, 4, 10_000_000_000)]},
    {"tor": node(5), "hosts": [node(2, "Host"), node(3, "Host")],
     "host2tor": [link(2, 5, 10_000_000_000), link(3, 5, 10_000_000_000)]},
]  # fmt: skip

CLUSTER = {
    "planes": [[node(7)]],
    "pods": [{"fabs": [node(6)], "racks": RACKS, "tor2fab": [link(4, 6), link(5, 6)]}],
    "fab2spine": [link(6, 7)],
}

NETWORK = {
    "nodes": [node(number, "Host" if number < 4 else "Switch") for number in range(8)],
    "links": [link(6, 7), link(4, 6), link(5, 6), *RACKS[0]["host2tor"], *RACKS[1]["host2tor"]],
}

FLOWS = [
    {"id": 1, "src": 2, "dst": 0, "size": 700, "start": 2_000_001_000},
    {"id": 0, "src": 1, "dst": 0, "size": 5000, "start": 2_000_000_000},
]


def write(file: Path, tree: object) -> Path:
    """Write a JSON file."""
    file.write_text(json.dumps(tree))
    return file


def test_both_forms_of_a_topology_are_one(tmp_path: Path) -> None:
    """Both directions of each link; hosts and switches by their numbers."""
    cluster = topology_file.read(write(tmp_path / "cluster.json", CLUSTER))
    network = topology_file.read(write(tmp_path / "network.json", NETWORK), "parsimon")
    assert (cluster.hosts, cluster.switches) == (4, 4)
    assert cluster == network
    links = cluster.links("step_mark")
    assert len(links) == 14
    assert links["h0-s4"] == {"rate": "10gbit", "delay": "1000ns"}
    assert links["s6-s7"] == {"rate": "40gbit", "delay": "1000ns", "qdisc": "step_mark"}


def test_flows_are_read_and_sorted(tmp_path: Path) -> None:
    """Times are in nanoseconds."""
    file = write(tmp_path / "flows.json", FLOWS)
    for form in (None, "parsimon"):
        flows = flow_list.read(file, form)
        assert (flows.form, flows.src, flows.dst, flows.size) == (
            "parsimon", [1, 2], [0, 0], [5000, 700],
        )  # fmt: skip
        assert flows.start_ns == [2_000_000_000, 2_000_001_000]


FAULTS = {
    "kind": ({**NETWORK, "nodes": [node(0, "Router")]}, "nodes.0.kind: invalid enum value"),
    "missing": ({"nodes": []}, "links: is missing"),
    "rate": ({**NETWORK, "links": [link(0, 4, 0)]}, "links.0.bandwidth: expected"),
    "float": ({**NETWORK, "links": [{**link(0, 4), "delay": 0.5}]}, "links.0.delay: expected"),
    "node": ({**NETWORK, "links": [link(0, 9)]}, "links.0.b: there is no node 9"),
    "itself": ({**NETWORK, "links": [link(4, 4)]}, "links.0: node 4 cannot have a link to itself"),
    "twice": (
        {**NETWORK, "links": [link(0, 4), link(4, 0)]},
        "links.1: nodes 4 and 0 are linked by links.0 already",
    ),
    "number": ({**NETWORK, "nodes": [node(0), node(0)]}, "two nodes have the number 0"),
    "pod": (
        {**CLUSTER, "pods": [{"fabs": [], "racks": [{}], "tor2fab": []}]},
        "pods.0.racks.0.tor: is missing",
    ),
    "place": ({**CLUSTER, "fab2spine": [link(6, 8)]}, "fab2spine.0.b: there is no node 8"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_topology_is_named(fault: str, tmp_path: Path) -> None:
    """With the file and the place."""
    tree, message = FAULTS[fault]
    file = write(tmp_path / "network.json", tree)
    with pytest.raises(sj.InputError) as error:
        topology_file.read(file)
    assert str(error.value).startswith(f"{file}: {message}") or message in str(error.value)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([{**FLOWS[0], "dst": 2}], "0: host 2 cannot send to itself"),
        ([FLOWS[0], {**FLOWS[1], "size": 0}], "1.size: expected"),
        ([{"id": 0}], "0.src: is missing"),
        ({"flows": []}, "expected array"),
        ([], "has no flow"),
    ],
)
def test_a_fault_of_a_list_is_named(tree: object, message: str, tmp_path: Path) -> None:
    """With the file and the place."""
    file = write(tmp_path / "flows.json", tree)
    with pytest.raises(sj.InputError) as error:
        flow_list.read(file)
    assert str(error.value).startswith(f"{file}: {message}")


def test_text_that_is_not_json_is_refused(tmp_path: Path) -> None:
    """Also if the format is given."""
    (tmp_path / "network.json").write_text('{"nodes": [')
    with pytest.raises(sj.InputError, match=r"network\.json: this is not JSON"):
        topology_file.read(tmp_path / "network.json")


def test_the_command_writes_a_scenario_that_runs(tmp_path: Path, sojourn: Command) -> None:
    """The flows arrive."""
    topology = write(tmp_path / "cluster.json", CLUSTER)
    flows = write(tmp_path / "flows.json", FLOWS)
    case = tmp_path / "case.toml"
    sojourn("topology", "import", topology, "--flows", flows, "-o", case)
    result = sj.simulate(case)
    assert sum(flow["completed"] for flow in result.flows.values()) == 2
