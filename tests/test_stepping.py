"""Simulations in steps: the same results, changes that are recorded, forks, samples, errors."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sojourn as sj
from sojourn._sojourn import InputError
from support.pages import blocks

CASE: dict[str, Any] = {
    "name": "home",
    "duration": "4s",
    "warmup": "500ms",
    "sample": "100ms",
    "packet_log": True,
    "links": {
        "up": {"rate": "4mbit", "delay": "5ms", "qdisc": "pie"},
        "back": {"rate": "1mbit", "loss": 0.001},
    },
    "flows": [
        {"name": "bulk", "count": 2, "path": ["up"], "return_path": ["back"], "tcp": "cubic"},
        {"name": "web", "path": ["up"], "rtt": "40ms", "source": "web"},
        {"name": "voice", "path": ["up"], "source": "cbr"},
    ],
    "changes": [{"at": "2s", "links": {"up": {"rate": "2mbit"}}}],
}


def same(one: sj.Result, other: sj.Result) -> None:
    """Assert that two results have equal summaries and columns."""
    assert one.summary == other.summary
    for table in ("links", "flows", "series", "group_series", "packet_log", "fct"):
        assert one.frame(table).equals(other.frame(table), null_equal=True), table


def test_steps_give_the_result_of_one_run() -> None:
    """Steps of a length that does not divide the duration, with looks in between."""
    sim = sj.Simulation(CASE)
    assert (sim.now, sim.end, sim.ended) == (0.0, 4.0, False)
    steps = 0
    while not sim.ended:
        sim.step("7ms")
        steps += 1
        assert sim.links["up"].queue_packets >= 0
        assert sim.flows["bulk"].cwnd_packets > 0
    assert (steps, sim.now) == (572, 4.0)
    same(sim.result(), sj.simulate(CASE))


def test_a_fork_continues_in_the_same_way_and_alone() -> None:
    """A changed fork does not affect the others."""
    sim = sj.Simulation(CASE)
    sim.run_until("1s")
    sim.sample()
    fork, other = sim.fork(), sim.fork()
    other.set("up.rate", "1mbit")
    other.stop("bulk", "voice")
    assert sim.links["up"].rate_bps == 4e6
    assert other.links["up"].rate_bps == 1e6
    assert other.run().flows["voice"].sent_packets < sim.run().flows["voice"].sent_packets
    same(fork.run(), sj.simulate(CASE))
    same(sim.result(), fork.result())
    fork.sample()
    assert (len(sim.frame("flows")), len(fork.frame("flows"))) == (3, 6)


def test_changes_are_recorded_and_can_be_run_again() -> None:
    """A run of the recorded scenario gives the same bytes."""
    sim = sj.Simulation(CASE)
    sim.run_until("1500ms")
    sim.set("links.up.delay", "20ms")
    sim.run_until("2s")  # the scenario changes the rate at this time, before what follows
    assert sim.links["up"].rate_bps == 4e6
    sim.change(links={"up": {"delay": "1ms"}}, leave="web")
    assert (sim.links["up"].rate_bps, sim.links["up"].delay_s) == (2e6, 0.001)
    result = sim.run()
    assert [change["at"] for change in sim.scenario["changes"]] == ["2s", "1500ms", "2s"]
    same(result, sj.simulate(sim.scenario))
    same(result, sj.simulate(result.scenario))


def test_parameters_of_a_discipline_change_and_are_recorded() -> None:
    """PIE keeps its drop probability and its queue; a higher target makes the queue longer."""
    case = sj.dumbbell(4, rate="5mbit", qdisc="pie", duration="30s")
    sim = sj.Simulation(case)
    sim.run_until("8s")
    before = sim.links["bottleneck"]
    lower, higher = sim.fork(), sim.fork()
    lower.set("bottleneck.qdisc.target", "2ms")
    higher.change(links={"bottleneck": {"qdisc": {"target": "100ms", "alpha": 0.5}}})
    assert lower.links["bottleneck"].gauges["p"] == before.gauges["p"] > 0
    assert lower.links["bottleneck"].queue_packets == before.queue_packets
    queues = [run.run().links["bottleneck"].sojourn_mean_s for run in (lower, sim, higher)]
    assert queues == sorted(queues)
    (change,) = higher.scenario["changes"]
    assert change["links"] == {"bottleneck": {"qdisc": {"alpha": "0.5", "target": "100ms"}}}
    same(higher.result(), sj.simulate(higher.scenario))


@pytest.mark.parametrize("source", ["bulk", "cbr", "web", "poisson"])
def test_flows_join_while_it_runs(source: str) -> None:
    """The past stays; the recorded scenario, a fork and a run in steps give the same bytes."""
    sim = sj.Simulation(CASE)
    sim.run_until("1500ms")
    sim.sample()
    alone, before = sim.fork(), {name: dict(sim.links[name]) for name in sim.links}
    sim.add_flow(sj.Flow(name="new", count=2, path=["up"], rtt="30ms", source=source))
    assert sim.now == 1.5
    assert {name: dict(sim.links[name]) for name in sim.links} == before
    assert sim.flows["new"].sent_packets == 0
    assert dict(sim.flows["bulk"]) == dict(alone.flows["bulk"])
    sim.run_until("3s")
    sim.stop("new")
    fork = sim.fork()
    while not fork.ended:
        fork.step("130ms")
    result = sim.run()
    same(fork.result(), result)
    same(sj.simulate(sim.scenario), result)
    same(alone.run(), sj.simulate(CASE))
    assert sim.flows["new"].sent_packets > 0
    assert len(sim.frame("flows")) == 3
    with pytest.raises(InputError, match="the run ended at 4s: no flow can join"):
        sim.add_flow({"name": "late", "path": ["up"]})


def test_several_groups_join() -> None:
    """Also at time zero, and two at the same time."""
    sim = sj.Simulation(CASE)
    sim.add_flow({"name": "first", "path": ["up"]})
    sim.run_until("1s")
    sim.add_flow({"name": "second", "path": ["up"], "source": "cbr"})
    sim.add_flow({"name": "third", "path": ["up"], "source": "cbr"})
    result = sim.run()
    same(sj.simulate(sim.scenario), result)
    assert list(sim.flows) == ["bulk", "web", "voice", "first", "second", "third"]


CHANGEABLE = (
    "Blue",
    "CoDel",
    "Cobalt",
    "DropTail",
    "FqCoDel",
    "FqPie",
    "FqRed",
    "Pi",
    "Pi2",
    "Pie",
    "Red",
)
"""Disciplines with a limit whose parameters can change, as docs/how-to/simulation.md says."""


FIXED = ("Afd", "Api", "Ared", "Avq", "Choke", "Fred", "Hred", "Rem", "Sfb", "Sfq", "Sred")
"""Disciplines that refuse."""


@pytest.mark.parametrize("name", [*CHANGEABLE, *FIXED])
def test_a_limit_changes_or_the_discipline_says_why(name: str) -> None:
    """The recorded scenario gives the same bytes."""
    up = {"rate": "4mbit", "qdisc": getattr(sj.qdisc, name)()}
    sim = sj.Simulation({**CASE, "links": {**CASE["links"], "up": up}})
    sim.run_until("1s")
    if name in FIXED:
        with pytest.raises(InputError, match="while it runs: all its parameters are fixed"):
            sim.set("up.qdisc.limit", "50p")
        return
    sim.set("up.qdisc.limit", "50p")
    result = sim.run()
    same(sj.simulate(sim.scenario), result)


def test_an_early_result_equals_a_shorter_run() -> None:
    """The result is the same as of a scenario that ends then."""
    sim = sj.Simulation(CASE)
    sim.run_until("1700ms")
    short = {**CASE, "duration": "1700ms", "changes": []}
    same(sim.result(), sj.simulate(short))
    same(sim.run(), sj.simulate(CASE))


def test_samples_have_a_row_per_time_and_name() -> None:
    """Samples become a frame; the state becomes HTML."""
    sim = sj.Simulation(CASE)
    for _ in range(5):
        sim.step("200ms")
        sim.sample()
    links = sim.frame()
    assert links.shape[0] == 10
    assert links["time_s"].unique().to_list() == [0.2, 0.4, 0.6, 0.8, 1.0]
    up = links.filter(links["link"] == "up")
    assert (up["queue_packets"] > 0).any()
    assert up["gauge/p"].is_not_null().all()
    assert set(sim.frame("flows")["flow"]) == {"bulk", "web", "voice"}
    text = sim._repr_html_()
    assert text is not None
    assert "home: 1 s of 4 s" in text
    assert "4.00 mbit" in text
    assert repr(sim) == "<sojourn.Simulation at 1 s of 4 s>"
    with sim:
        pass
    assert repr(sim) == "<sojourn.Simulation, closed>"
    assert "closed" in (sim._repr_html_() or "")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda sim: sim.run_until("500ms"), "500ms is before the current time, 1s"),
        (lambda sim: sim.run_until("5s"), "5s is after the end at 4s"),
        (lambda sim: sim.run_until(2), 'until: "2" has no unit'),
        (lambda sim: sim.step(0.1), 'duration: "0.1" has no unit'),
        (lambda sim: sim.step("-1s"), "duration: "),
        (lambda sim: sim.set("pu.rate", "1mbit"), 'unknown link "pu", did you mean "up"?'),
        (lambda sim: sim.set("up.rate", "1mbps"), 'links.up.rate: "1mbps" is ambiguous'),
        (lambda sim: sim.set("up", "1mbit"), '"up": write it as LINK.KEY'),
        (lambda sim: sim.set("up.los", 0.5), 'links.up.los: unknown key "los"'),
        (lambda sim: sim.set("up.loss", 0.5), "links.up: has no wire in this simulation"),
        (lambda sim: sim.set("up.qdisc.targte", "1ms"), "links.up.qdisc.targte: unknown parameter"),
        (lambda sim: sim.set("up.qdisc.t_update", "1ms"), "links.up.qdisc: pie cannot change t_u"),
        (lambda sim: sim.change(), "changes nothing"),
        (lambda sim: sim.add_flow(5), "5: give a Flow, or a table with a name"),
        (lambda sim: sim.add_flow({"path": ["up"]}), '{"path": ["up"]}: give a Flow'),
        (lambda sim: sim.add_flow({"name": "bulk", "path": ["up"]}), "flows.3.name: "),
        (lambda sim: sim.add_flow({"name": "x", "path": ["pu"]}), "flows.x.path.0: "),
        (lambda sim: sim.stop("blk"), 'leave.0: unknown flow "blk", did you mean "bulk"?'),
        (lambda sim: sim.frame("link"), 'unknown kind "link", did you mean "links"?'),
        (lambda sim: sim.fork().run_until("400ms"), "400ms is before the current time"),
    ],
)
def test_errors_name_the_value(call: Any, message: str) -> None:
    """A refused call changes nothing."""
    sim = sj.Simulation(CASE)
    sim.run_until("1s")
    with pytest.raises(InputError) as error:
        call(sim)
    assert str(error.value).startswith(message)
    with pytest.raises(KeyError, match="did you mean"):
        sim.links["pu"]
    with pytest.raises(KeyError, match="did you mean"):
        sim.flows["bulk.2"]
    assert (sim.now, sim.scenario["changes"]) == (1.0, sj.Simulation(CASE).scenario["changes"])


def test_nothing_happens_before_the_warm_up_and_after_the_end() -> None:
    """Results need a measured interval, steps and changes a running one."""
    sim = sj.Simulation(CASE)
    with pytest.raises(InputError, match="nothing is measured yet: it is 0s"):
        sim.result()
    result = sim.run()
    same(sim.run(), result)
    with pytest.raises(InputError, match="the run ended at 4s: there is no step left"):
        sim.step("1ms")
    with pytest.raises(InputError, match="the run ended at 4s: nothing can change"):
        sim.set("up.rate", "1mbit")


def test_a_stopped_step_can_be_continued() -> None:
    """A stopped run continues; a callback cannot use the simulation that calls it."""
    long = {**CASE, "duration": "60s", "packet_log": False}
    sim = sj.Simulation(long)
    with pytest.raises(KeyboardInterrupt):
        sim.run(progress=lambda share, packets: False)
    assert 0 < sim.now < 60
    same(sim.run(), sj.simulate(long))

    def call_itself(share: float, packets: int) -> bool:
        with pytest.raises(RuntimeError, match="the simulation is running"):
            sj_sim.step("1ms")
        return True

    sj_sim = sj.Simulation(long)
    sj_sim.run(progress=call_itself)


def test_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of simulation.md run in order; the recorded changes give the same result."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks("python", "docs/how-to/simulation.md"):
        exec(compile(block, "docs/how-to/simulation.md", "exec"), names)
    assert [change["at"] for change in names["again"].scenario["changes"]] == ["10s", "20s", "20s"]
    assert names["outcomes"]["2mbit"] > names["outcomes"]["20mbit"]


def test_forks_run_in_threads() -> None:
    """Forks of one simulation run at the same time."""
    sim = sj.Simulation(CASE)
    sim.run_until("1s")
    forks = [sim.fork() for _ in range(4)]
    results: list[sj.Result] = []
    threads = [threading.Thread(target=lambda f=f: results.append(f.run())) for f in forks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        same(result, sim.fork().run())


def test_steps_and_forks_take_no_memory() -> None:
    """10,000 steps and 1,000 forks: the peak of the process grows by less than 4 MB."""
    import resource

    case = {
        "duration": "40s",
        "links": {"up": {"rate": "1mbit", "qdisc": "codel"}},
        "flows": [{"name": "bulk", "path": ["up"], "rtt": "50ms"}],
    }
    sim = sj.Simulation(case)

    def go(steps: int) -> None:
        for n in range(steps):
            sim.step("3ms")
            if n % 10 == 0:
                sim.fork().links["up"]

    go(1_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    go(10_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4_000
    expected = sj.simulate(case).summary
    assert sim.run().summary == expected
    assert np.isclose(expected["links"]["up"]["utilisation"], 1.0, atol=0.1)
