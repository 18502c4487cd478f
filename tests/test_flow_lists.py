"""Lists of flows of other simulators: all formats, round trips, random files, faults."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn.fabric import flow_list

LISTS = {
    "hpcc": "2\n1 0 3 100 5000 2\n2 0 4 200 700 2.000001\nnotes\n",
    "conweave": "2\n1 0 3 5000 2\n2 0 4 700 2.000001\n",
    "parsimon": "2\n7 1 0 3 100 5000 2\n9 2 0 4 200 700 2.000001\n",
    "homa": "1 0 5000 2\n2 0 700 0.000001\n",
    "htsim": "# comment\nNodes 3\nConnections 2\n1->0 id 4 start 2000000000000 size 5000 prio 3\n"
    "2->0 start 2000001000000 size 700 prio 4\n",
}


@pytest.mark.parametrize("form", LISTS)
def test_a_format_is_found_and_read(form: str, tmp_path: Path) -> None:
    """Hosts, sizes and times are equal in all; ports and priorities where the format has them."""
    (tmp_path / "flows").write_text(LISTS[form])
    flows = flow_list.read(tmp_path / "flows")
    assert (flows.form, flows.src, flows.dst, flows.size) == (form, [1, 2], [0, 0], [5000, 700])
    assert flows.start_ns == [2_000_000_000, 2_000_001_000]
    assert flows.priority == ([0, 0] if form == "homa" else [3, 4])
    assert flows.port == ([100, 200] if form in ("hpcc", "parsimon") else [0, 0])


FAULTS = {
    "count": ("3\n1 0 3 100 5000 2\n", "the list has 1 flows, and its first line says 3"),
    "itself": ("1\n1 1 3 100 5000 2\n", "line 2: host 1 cannot send to itself"),
    "size": ("1\n1 0 3 100 0 2\n", 'line 2: "0" is no size in bytes'),
    "word": ("1\nx 0 3 100 5 2\n", 'line 2: "x" is no number of a host'),
    "time": ("1\n1 0 3 100 5 -2\n", 'line 2: "-2" is no start in seconds'),
    "port": ("1\n1 0 3 65536 5 2\n", "line 2: a priority group and a port are at most 65535"),
    "columns": ("2\n1 0 3 100 5 2\n\n1 0 3 100 5\n", "line 4: 5 fields, not 6 (src dst class port"),
    "unknown": ("1\n1 0 3\n", "line 2: is no flow of a known list (hpcc: src dst class port"),
    "empty": ("\n", "the file is empty"),
    "none": ("0\n", "line 1: is no flow of a known list"),
    "node": ("Nodes 2\n1->2 start 0 size 5\n", "line 2: 1->2: hosts are two different numbers"),
    "trigger": ("Nodes 2\n1->0 trigger 3 size 5\n", "line 2: flows that a trigger starts cannot"),
    "endless": ("Nodes 2\n1->0 start 0 size 0\n", "line 2: the flow has no size, so it has no end"),
    "no start": ("Nodes 2\n1->0 size 5\n", "line 2: the flow has no start"),
    "failures": ("Nodes 2\nFailures 2\n", "line 2: Failures of htsim cannot be read"),
    "key": ("Nodes 2\n1->0 start 0 size_ 5\n", 'unknown word "size_", did you mean "size"?'),
    "odd": ("Nodes 2\n1->0 start 0 size\n", 'line 2: "size" has no value'),
    "connections": ("Nodes 2\nConnections 2\n1->0 start 0 size 5\n", "and Connections says 2"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str, tmp_path: Path) -> None:
    """With the file and the line."""
    text, message = FAULTS[fault]
    file = tmp_path / "flow.txt"
    file.write_text(text)
    with pytest.raises(sj.InputError) as caught:
        flow_list.read(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert message in str(caught.value)


def random_list(rng: random.Random, form: str) -> flow_list.FlowList:
    """Return a list with what the format can say."""
    flows = flow_list.FlowList(form)
    time = 0
    for _ in range(rng.randint(1, 40)):
        src, dst = rng.sample(range(20), 2)
        time += rng.choice([0, 1, 999, 10**9 - 1, rng.randrange(10**10)])
        port = rng.randrange(65536) if form in ("hpcc", "parsimon") else 0
        priority = rng.randrange(8) if form in ("hpcc", "parsimon", "conweave") else 0
        size = rng.choice([1, 10**14, rng.randrange(1, 10**7)])
        flows.add(src, dst, size, time, (priority, port))
    return flows


@pytest.mark.parametrize("form", flow_list.FORMATS)
def test_round_trips_keep_every_flow(form: str, tmp_path: Path) -> None:
    """To the nanosecond, for random lists."""
    rng = random.Random(form)
    for _ in range(30):
        flows = random_list(rng, form)
        (tmp_path / "list").write_text(flow_list.text(flows, form))
        assert flow_list.read(tmp_path / "list") == flows


def test_random_files_are_read_or_refused_with_the_line(tmp_path: Path) -> None:
    """A few bytes of a good file are changed; there is no other exception."""
    rng = random.Random(5)
    file, refused = tmp_path / "list", 0
    for _ in range(600):
        text = list(rng.choice([*LISTS.values()]))
        for _ in range(rng.randint(1, 4)):
            text[rng.randrange(len(text))] = rng.choice("0123456789 \n.->eNx#é\t")
        file.write_text("".join(text))
        try:
            flows = flow_list.read(file)
        except sj.InputError as error:
            refused += 1
            message = str(error)
        else:
            message = f"{file}: "
            assert flows.start_ns == sorted(flows.start_ns)
        assert message.startswith(f"{file}: ")
    assert 200 < refused < 590


def star(hosts: int) -> dict[str, Any]:
    """Return links of hosts at a switch."""
    rate = {"rate": "10gbit", "delay": "1us"}
    return {f"h{i}-s9": rate for i in range(hosts)} | {f"s9-h{i}": rate for i in range(hosts)}


def test_a_scenario_runs_a_list(tmp_path: Path) -> None:
    """Each flow starts at its time with its size, between its hosts; ports are groups."""
    (tmp_path / "flow.txt").write_text(
        "3\n1 0 3 100 5000 0.001\n2 0 3 200 700 0.002\n1 2 3 100 900 0.0005\n"
    )
    file = tmp_path / "case.json"
    tree = {"duration": "10ms", "links": star(3), "flows": "flow.txt"}
    file.write_text(json.dumps(tree))
    frame = sj.fct_table(sj.simulate(file))
    columns = ["group", "sender", "receiver", "bytes", "start_s"]
    assert frame.select(columns).rows() == [
        ("list-100", "h1", "h2", 900, 0.0005),
        ("list-100", "h1", "h0", 5000, 0.001),
        ("list-200", "h2", "h0", 700, 0.002),
    ]


def test_a_list_that_does_not_fit_the_links_is_refused(tmp_path: Path) -> None:
    """With the path of the key."""
    (tmp_path / "flow.txt").write_text("1\n1 7 3 100 5000 0\n")
    traffic = {"file": str(tmp_path / "flow.txt")}
    tree = {"duration": "1ms", "links": star(3), "flows": [{"name": "all", "traffic": traffic}]}
    with pytest.raises(sj.InputError, match=r"flows.all.traffic: h7 is no node of the links"):
        sj.simulate(tree)
    tree["flows"][0]["path"] = ["h1-s9"]  # type: ignore[index]
    with pytest.raises(sj.InputError, match=r"flows.all.traffic: sets path, which the group has"):
        sj.simulate(tree)
    tree["flows"] = [{"name": "all", "traffic": {**traffic, "load": 0.5}}]
    with pytest.raises(sj.InputError, match=r'flows.all.traffic: unknown key "load"'):
        sj.simulate(tree)
