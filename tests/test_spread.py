"""Paths that switches choose while a scenario runs: shares of links, loads, topologies."""

from typing import Any

import pytest

import sojourn as sj
from sojourn.fabric.routes import Network
from sojourn.scenario.draft import Draft, canonical

SPREADS = ("connection", "flowlet(gap=100us)", "packet", "round-robin")


def shares(result: sj.Result, links: list[str]) -> list[float]:
    """Return the share of the departed packets that each link has."""
    packets = [result.links[name]["departed_packets"] for name in links]
    return [count / sum(packets) for count in packets]


def load(spread: str, **keys: Any) -> dict[str, Any]:
    """Return a load between the hosts of a leaf-spine network with two spines."""
    links = Draft.read(sj.leaf_spine(2, 2, 4, rate="1gbit")).tree["links"]
    traffic = {"load": 0.1, "size": "5kB"}
    group = {"name": "load", "spread": spread, "traffic": traffic, **keys}
    return {"duration": "500ms", "links": links, "flows": [group]}


@pytest.mark.parametrize("spread", SPREADS)
def test_a_load_with_spread_has_its_mean_and_uses_all_uplinks(spread: str) -> None:
    """10,000 flows: the load within three standard errors, each uplink about half."""
    result = sj.simulate(load(spread))
    frame = sj.fct_table(result)
    assert float(8 * frame["bytes"].sum()) / 0.5 / 8e9 == pytest.approx(0.1, rel=3 * 1.4 / 100)
    for leaf in range(2):
        uplinks = [f"l{leaf}-s0", f"l{leaf}-s1"]
        assert shares(result, uplinks) == pytest.approx([0.5, 0.5], abs=0.03)


def test_the_load_of_a_link_counts_equal_shares_of_the_paths() -> None:
    """Half of the flows between the leaves cross an uplink."""
    case = load("connection")
    case["flows"][0]["traffic"] |= {"load": 0.2, "of": "l0-s1"}
    result = sj.simulate(case)
    link = result.links["l0-s1"]
    assert case["links"]["l0-s1"]["rate"] == "2gbit"
    assert link["goodput_bps"] / 2e9 == pytest.approx(0.2, rel=0.05)
    network = Network(case["links"], 1)
    assert network.shares("h0", "h4") == {
        "h0-l0": 1.0,
        "l0-s0": 0.5,
        "l0-s1": 0.5,
        "s0-l1": 0.5,
        "s1-l1": 0.5,
        "l1-h4": 1.0,
    }
    assert network.shares("h0", "h1") == {"h0-l0": 1.0, "l0-h1": 1.0}


def test_the_load_of_hosts_with_two_uplinks_counts_both() -> None:
    """40 % of four links of 1 Gbit/s between two hosts; a host without links is refused."""
    ends = [("h0", "s0"), ("h0", "s1"), ("h1", "s0"), ("h1", "s1")]
    links = {f"{a}-{b}": {"rate": "1gbit"} for x, y in ends for a, b in ((x, y), (y, x))}
    traffic = {"load": 0.4, "size": "5kB"}
    group = {"name": "load", "spread": "connection", "traffic": traffic}
    case = {"duration": "100ms", "links": links, "flows": [group]}
    source = canonical(case)["flows"][0]["source"]
    assert source["arrivals"] == pytest.approx(0.4 * 4e9 / 8 / 5000)
    links["h2-s2"] = {"rate": "1gbit"}
    with pytest.raises(sj.InputError, match=r"flows\.load\.traffic: no links lead from h0 to h2"):
        sj.simulate(case)


def test_a_shared_hash_function_polarises_a_fat_tree() -> None:
    """With k = 4, half of the core links idle; the finer choices are independent."""
    pairs = [(a, b) for a in range(4) for b in range(4, 8)]
    cores = ["a0-c0", "a0-c1", "a1-c2", "a1-c3"]
    source = {"name": "poisson", "interval": "500us", "size": "5kB"}
    idle = {}
    for kind in ("per-switch", "shared"):
        case = sj.fat_tree(
            4,
            pairs=pairs,
            spread="connection",
            switch_hash=kind,
            source=source,
        )
        result = sj.simulate(case)
        of_core = shares(result, cores)
        idle[kind] = of_core.count(0.0)
        assert sum(of_core) == pytest.approx(1)
    assert idle == {"per-switch": 0, "shared": 2}


def test_a_list_of_flows_with_spread_names_hosts_only(tmp_path: Any) -> None:
    """Members are pairs of hosts; every flow of the list is a connection."""
    rows = [f"{i % 4} {4 + i % 2} 3 100 20000 {2 + i * 1e-4:.6f}" for i in range(400)]
    file = tmp_path / "flow.txt"
    file.write_text("400\n" + "\n".join(rows) + "\n")
    case = load("connection")
    case["duration"] = "2.1s"
    case["flows"] = [{"name": "list", "spread": "connection", "traffic": {"file": str(file)}}]
    group = canonical(case)["flows"][0]
    assert group["count"] == 4
    result = sj.simulate(case)
    assert len(sj.fct_table(result)) == 400
    assert shares(result, ["l0-s0", "l0-s1"]) == pytest.approx([0.5, 0.5], abs=0.1)


@pytest.mark.parametrize(
    ("traffic", "message"),
    [
        ({"hash": "shared"}, "traffic: hash: goes with paths that are fixed, and the group has"),
        ({"paths": 4}, "traffic: paths: goes with paths that are fixed"),
    ],
)
def test_keys_of_fixed_paths_do_not_go_with_spread(traffic: Any, message: str) -> None:
    """The key is named, with what to write instead."""
    case = load("connection")
    case["flows"][0]["traffic"] |= traffic
    with pytest.raises(sj.InputError, match=message):
        canonical(case)


def test_oversubscription_sets_the_rate_of_uplinks() -> None:
    """Hosts of a leaf can send as many times what its uplinks carry."""
    for ratio, rate in [(1, "20gbit"), (2, "10gbit"), (0.5, "40gbit")]:
        links = Draft.read(sj.leaf_spine(3, 2, 4, oversubscription=ratio)).tree["links"]
        assert links["l2-s1"]["rate"] == links["s1-l2"]["rate"] == rate
        assert len(links) == 2 * (12 + 6)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"leaves": 1}, "leaves: 1 is not a whole number from 2 to 1000"),
        ({"leaves": 1000, "hosts": 1000}, "leaves: 2008000 links are too many, allowed: up to"),
        ({"oversubscription": "2"}, "oversubscription: .* is not a number from 0.01 to 1000, like"),
        ({"rate": "10"}, "rate: .* has no unit"),
        ({"pairs": [(0, 99)]}, r"pairs.0: .* is not two hosts from 0 to 31"),
        ({"spread": "connections"}, 'spread: unknown spread "connections", did you mean'),
        ({"switch_hash": "one"}, 'hash: unknown choice "one"'),
    ],
)
def test_wrong_arguments_of_leaf_spine_are_named(keys: Any, message: str) -> None:
    """One message with the path, the value and what is allowed."""
    with pytest.raises(sj.InputError, match=message):
        sj.leaf_spine(**keys)
