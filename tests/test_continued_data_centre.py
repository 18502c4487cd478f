"""Interrupted runs of data-centre senders and shared buffers: steps, snapshots, warm starts.

Each result has every byte of the uninterrupted run.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj

TIMERS = {"rto_min": "2ms", "tick": "10us", "delayed_ack_timeout": "1ms"}

CONTROLS: dict[str, dict[str, Any]] = {
    "hpcc": {"name": "hpcc", **TIMERS},
    "powertcp": {"name": "powertcp", "rate_ai": "4mbit", **TIMERS},
    "theta": {"name": "powertcp", "variant": "theta", "rate_ai": "4mbit", **TIMERS},
    "dctcp": {"name": "dctcp", **TIMERS},
}

LEAVES = ("t0", "t1")


def case(control: str, *, shared: bool) -> dict[str, Any]:
    """Return a leaf-spine with transfers to one host and long flows.

    Shared buffers are so small that their thresholds drop packets.
    """
    qdisc = "step_mark(k=20p, limit=1000p)" if control == "dctcp" else "droptail(limit=1000p)"
    link = {"rate": "10gbit", "delay": "1us", "qdisc": qdisc}
    wires = [(f"h{i}", LEAVES[i // 2]) for i in range(4)]
    wires += [(leaf, spine) for leaf in LEAVES for spine in ("s0", "s1")]
    links = {f"{a}-{b}": link for wire in wires for a, b in (wire, wire[::-1])}
    source = {"name": "poisson", "interval": "60us", "size": "exponential(60kB)"}
    flow = {"spread": "connection", "tcp": CONTROLS[control]}
    hosts = {"sender": ["h0", "h1"], "receiver": ["h2", "h2"]}
    flows = [
        {**flow, **hosts, "name": "rpc", "count": 2, "source": source},
        {**flow, "name": "long", "sender": "h3", "receiver": "h0", "spread": "flowlet(gap=10us)"},
        {**flow, "name": "other", "sender": "h1", "receiver": "h2"},
    ]
    whole = {"duration": "8ms", "warmup": "1ms", "seed": 4, "sample": "500us", "packet_log": True}
    ports = {leaf: [name for name in links if name.startswith(f"{leaf}-")] for leaf in LEAVES}
    switches = {
        leaf: {"buffer": "40kB", "alpha": 0.5, "reserve": "2kB", "ports": ports[leaf]}
        for leaf in LEAVES
    }
    return {**whole, "links": links, "flows": flows, **({"switches": switches} if shared else {})}


CASES = [(control, shared) for control in CONTROLS for shared in (True, False)]

every_case = pytest.mark.parametrize(("control", "shared"), CASES)


def contents(result: sj.Result, folder: Path) -> dict[str, bytes]:
    """Return the files of a saved result."""
    result.save(folder)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@cache
def uninterrupted(control: str, shared: bool) -> sj.Result:
    """Return the result of a run without interruptions."""
    return sj.simulate(case(control, shared=shared))


def at_5_ms(scenario: dict[str, Any]) -> sj.Simulation:
    """Return a simulation in the middle of transfers, and of the repair of losses."""
    simulation = sj.Simulation(scenario)
    simulation.run_until("5003us")
    return simulation


def steps(scenario: dict[str, Any], _: Path) -> sj.Result:
    """Run in steps, and look at links and flows after each."""
    simulation = sj.Simulation(scenario)
    while not simulation.ended:
        simulation.step("333us")
        seen = [*map(dict, simulation.links.values()), *map(dict, simulation.flows.values())]
        assert len(seen) == len(scenario["links"]) + len(scenario["flows"])
    return simulation.result()


def fork(scenario: dict[str, Any], _: Path) -> sj.Result:
    """Continue in a copy, after the original went on."""
    simulation = at_5_ms(scenario)
    copy = simulation.fork()
    simulation.run_until("7ms")
    return copy.run()


def reload(scenario: dict[str, Any], folder: Path) -> sj.Result:
    """Save and load three times."""
    simulation = sj.Simulation(scenario)
    for until in ("1500us", "5003us", "6ms"):
        simulation.run_until(until)
        simulation.save(folder / "state")
        simulation = sj.Simulation.load(folder / "state")
    return simulation.run()


@pytest.mark.parametrize("way", [steps, fork, reload])
@every_case
def test_an_interrupted_run_has_the_bytes_of_the_whole_run(
    control: str, shared: bool, way: Callable[..., sj.Result], tmp_path: Path
) -> None:
    """Also while segments are lost, held by the pacer, and on paths that switches choose."""
    whole = uninterrupted(control, shared)
    drops = whole.frame("links")["dropped_packets"].sum()
    assert drops > 30 if shared else drops == 0
    assert sum(flow["retransmitted_packets"] for flow in whole.summary["flows"]) > 0 or not shared
    expected = contents(whole, tmp_path / "whole")
    assert contents(way(case(control, shared=shared), tmp_path), tmp_path / "parts") == expected
    assert len(expected) > 3


@every_case
def test_a_warm_start_has_the_bytes_of_a_run_from_the_start(
    control: str, shared: bool, tmp_path: Path
) -> None:
    """Without a change, and with another delay, discipline, seed and duration."""
    scenario = case(control, shared=shared)
    state = tmp_path / "state"
    at_5_ms(scenario).save(state)
    link = scenario["links"]["t1-h2"]
    slower = {**link, "delay": "3us", "qdisc": link["qdisc"].replace("1000p", "30p")}
    other = {**scenario, "links": {**scenario["links"], "t1-h2": slower}}
    for number, wanted in enumerate(
        (scenario, {**scenario, "seed": 9, "duration": "9ms"}, {**other, "seed": 7})
    ):
        warm = sj.simulate(wanted, warm_from=state)
        assert warm.scenario["warmup"] == "5003us"
        cold = sj.simulate(warm.scenario)
        folders = [tmp_path / f"{kind}-{number}" for kind in ("warm", "cold")]
        assert contents(warm, folders[0]) == contents(cold, folders[1])
    same = sj.simulate({**scenario, "warmup": "5003us"})
    again = sj.simulate(scenario, warm_from=state)
    assert again.frame("links").equals(same.frame("links"), null_equal=True)
    assert again.frame("flows").equals(same.frame("flows"), null_equal=True)
