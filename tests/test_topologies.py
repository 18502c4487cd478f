"""Builders of topologies: links, paths, round trips, files, errors."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn._sojourn import InputError
from sojourn._util.base import Qdisc
from sojourn.scenario.draft import Draft, canonical
from support.pages import blocks


def untyped(value: Any) -> Any:
    """Return the value, of a type that is not allowed."""
    return value


CASES: dict[str, Any] = {
    "dumbbell": lambda: sj.dumbbell(3, rtt="uniform(10ms, 30ms)", access="100mbit"),
    "one": lambda: sj.dumbbell(1, access="100mbit", qdisc=sj.CoDel(target="10ms"), sample="1s"),
    "parking_lot": lambda: sj.parking_lot(3, long=2, cross=2, qdisc="pie"),
    "star": lambda: sj.star(8, qdisc="red(ecn=true)", tcp="dctcp"),
    "fat_tree": lambda: sj.fat_tree(4),
    "fat_tree_with_spread": lambda: sj.fat_tree(4, spread="flowlet(gap=50us)"),
    "leaf_spine": lambda: sj.leaf_spine(2, 2, 4, oversubscription=2),
    "two_way_line": lambda: sj.two_way_line(up_qdisc="fq_codel", downloads=2, calls=3),
}


@pytest.mark.parametrize("name", CASES)
def test_scenarios_run_and_round_trip_through_files(name: str, tmp_path: Path) -> None:
    """A saved scenario is the same scenario, and every flow delivers data."""
    case = CASES[name]()
    whole = canonical(case)
    for ending in ("toml", "json"):
        file = tmp_path / f"case.{ending}"
        sj.save_scenario(case, file)
        assert Draft.read(file).tree == Draft.read(case).tree
        assert canonical(file) == whole
    short = case.name in ("fat-tree", "leaf-spine")
    result = sj.simulate({**Draft.read(case).tree, "duration": "20ms" if short else "1s"})
    for flow in result.flows.values():
        assert flow.goodput_bps > 0, flow.name


def test_any_name_survives_a_file(tmp_path: Path) -> None:
    """Quotes, backslashes, and letters beyond 16 bits, which TOML writes unlike JSON."""
    case = {**Draft.read(sj.dumbbell()).tree, "name": '\U0001f600 \u00e4 \\ "q"'}
    sj.save_scenario(case, tmp_path / "case.toml")
    assert Draft.read(tmp_path / "case.toml").tree == case


def test_a_parking_lot_has_cross_traffic_at_each_hop() -> None:
    """The round trip is the sum of the links crossed; `rtt` replaces it for all."""
    case = canonical(sj.parking_lot(2, delay="5ms"))
    assert {flow["name"]: (flow["path"], flow["rtt"]) for flow in case["flows"]} == {
        "long": (["hop-0", "hop-1"], "20ms"),
        "cross-0": (["hop-0"], "10ms"),
        "cross-1": (["hop-1"], "10ms"),
    }
    assert {flow["rtt"] for flow in canonical(sj.parking_lot(rtt="80ms"))["flows"]} == {"80ms"}


@pytest.mark.parametrize("k", [2, 4, 6])
def test_a_fat_tree_connects_all_hosts(k: int) -> None:
    """Each path is a chain of links; each host sends and receives once; paths have 2 to 6 links."""
    case = sj.fat_tree(k)
    flows: Any = case.flows
    ends = [tuple(flow.name.split("-")) for flow in flows]
    hosts = {f"h{n}" for n in range(k**3 // 4)}
    assert {a for a, _ in ends} == {b for _, b in ends} == hosts
    for (a, b), flow in zip(ends, flows, strict=True):
        for start, end, path in [(a, b, flow.path), (b, a, flow.return_path)]:
            nodes = [tuple(link.split("-")) for link in path]
            assert nodes[0][0] == start
            assert nodes[-1][1] == end
            assert all(x[1] == y[0] for x, y in pairwise(nodes))
            assert len(nodes) in (2, 4, 6)


def test_paths_of_a_fat_tree_are_wired_as_in_the_paper() -> None:
    """Aggregation switch j of each pod has the core switches j k/2 to (j + 1) k/2 - 1."""
    pairs = [(a, b) for a in range(16) for b in range(16) if a // 4 != b // 4]
    case = sj.fat_tree(4, pairs=pairs)
    wires = {tuple(link.split("-")) for link in case.links}
    for a, b in wires:
        if a[0] == "a" and b[0] == "c":
            assert int(a[1:]) % 2 == int(b[1:]) // 2
        if a[0] == "e" and b[0] == "a":
            assert int(a[1:]) // 2 == int(b[1:]) // 2
    assert len([w for w in wires if w[0][0] == "c"]) == 16


def test_spread_paths_use_all_core_switches_equally() -> None:
    """Four flows between two pods have four core switches; hashed paths depend on the seed."""
    pairs = [(0, 4), (1, 5), (2, 6), (3, 7)]
    spread: Any = sj.fat_tree(4, "spread", pairs=pairs).flows
    cores = [flow.path[2].split("-")[1] for flow in spread]
    assert sorted(cores) == ["c0", "c1", "c2", "c3"]
    paths: Any = [sj.fat_tree(4, pairs=pairs, seed=seed).flows for seed in range(2)]
    assert [f.path for f in paths[0]] != [f.path for f in paths[1]]
    assert sj.fat_tree(4, seed=3) == sj.fat_tree(4, seed=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sj.dumbbell(0), "flows: 0 is not a whole number"),
        (lambda: sj.dumbbell(rate="10mbps"), "Link.rate: "),
        (lambda: sj.dumbbell(qdisc="codle"), "Link.qdisc: unknown discipline"),
        (lambda: sj.dumbbell(rtt="1ms", delay="5ms"), "flows.flow.rtt: "),
        (lambda: sj.parking_lot(untyped(1.5)), "hops: 1.5 is not a whole number"),
        (lambda: sj.parking_lot(delay="5"), "Link.delay: "),
        (lambda: sj.parking_lot(10**6), "hops: 1000000 is not a whole number, 1 to 10000"),
        (
            lambda: sj.parking_lot(10**4, cross=1000),
            "cross: 1000 flows over each of 10000 hops are 10000000, allowed: 1000000 in all",
        ),
        (lambda: sj.star(10**6), "senders: 1000000 is not a whole number, 1 to 100000"),
        (
            lambda: sj.dumbbell(10**6, access="1mbit"),
            "flows: 1000000 is not a whole number, 1 to 100000",
        ),
        (lambda: sj.dumbbell(10**7), "flows: 10000000 is not a whole number, 1 to 1000000"),
        (lambda: sj.two_way_line(calls=10**7), "calls: 10000000 is not a whole number, 0 to"),
        (
            lambda: sj.fat_tree(4, pairs=[(0, 1)] * 10**6),
            "pairs: 1000000 pairs are too many, allowed: up to 100000",
        ),
        (
            lambda: sj.fat_tree(12, source="sessions"),
            "flows: 4320432 flows can take 10847 MB of memory with the rest of the scenario, "
            "allowed: 4000 MB: 432 and 4320000 that sources may have open at a time (the sum over "
            "the groups of `most`, or of arrivals where these are fewer; set a smaller `most`)",
        ),
        (lambda: sj.fat_tree(3), "k: 3 is not an even number from 2 to 16"),
        (
            lambda: sj.fat_tree(4, untyped("hsah")),
            'ecmp: unknown choice "hsah", did you mean "hash"?',
        ),
        (lambda: sj.fat_tree(4, pairs=[(0, 16)]), "pairs.0: [0, 16] is not two hosts from 0 to 15"),
        (lambda: sj.fat_tree(4, pairs=[(2, 2)]), "pairs.0: host 2 cannot send to itself"),
        (lambda: sj.fat_tree(4, pairs=[]), "pairs: is empty"),
        (lambda: sj.two_way_line(downloads=0, uploads=0, calls=0), "downloads, uploads, calls: "),
        (lambda: sj.save_scenario(sj.dumbbell(), "case.yaml"), "case.yaml: the name must end in"),
        (lambda: sj.save_scenario({"links": {}}, "case.toml"), "duration: is missing"),
    ],
)
def test_errors_name_the_value(call: Any, message: str) -> None:
    """One line, with the path of the value."""
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value).startswith(message)


def test_unknown_keys_have_the_nearest_name() -> None:
    """Other keys are keys of a scenario."""
    with pytest.raises(TypeError, match='did you mean "warmup"'):
        sj.star(warmpu="1s")


def test_every_discipline_can_be_the_switch_of_a_star() -> None:
    """The buffer is the limit of any discipline that has none of its own."""
    for name in sj.qdisc.__all__:
        model = getattr(sj.qdisc, name)
        if isinstance(model, type) and model.__base__ is Qdisc:
            assert canonical(sj.star(2, qdisc=model()))["links"]["downlink"]["qdisc"]
    own = canonical(sj.star(2, qdisc="droptail(limit=10p)"))
    assert own["links"]["downlink"]["qdisc"]["limit"] == "10p"


def test_code_of_the_page_runs() -> None:
    """The blocks of docs/how-to/topologies.md run in order."""
    names: dict[str, Any] = {}
    for block in blocks("python", "docs/how-to/topologies.md"):
        exec(compile(block, "docs/how-to/topologies.md", "exec"), names)
