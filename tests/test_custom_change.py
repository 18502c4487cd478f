"""Parameters of disciplines in Python that change while a simulation runs; memory of forks."""

import resource
import threading
from typing import Any

import numpy as np
import pytest

import sojourn as sj
from examples import my_aqm, my_control, my_source
from sojourn.custom.base import same_state
from test_custom_aqm import SMALL


class Changeable(sj.Aqm):
    """Has parameters of every kind, and state that does not depend on them."""

    target: sj.Duration = "40ms"
    share: float = 1.0
    marks: bool = False

    def start(self) -> None:
        self.drops = 0
        self.turns = np.zeros(3, np.int64)

    def on_dequeue(self, packet: Any, queue: Any) -> Any:
        self.turns[self.drops % 3] += 1
        if packet.sojourn > self.target and queue.random() < self.share:
            self.drops += 1
            return sj.MARK if self.marks else sj.DROP
        return sj.PASS


class Depends(Changeable):
    """Has state that depends on a parameter."""

    size: int = 3

    def start(self) -> None:
        super().start()
        self.turns = np.zeros(self.size, np.int64)
        self.limit_ns = 2 * self.target


@pytest.mark.parametrize("compiled", [False, True])
def test_parameters_change_while_it_runs(compiled: bool) -> None:
    """State and queue stay; the recorded scenario, a fork and steps give the same bytes."""
    link = {"rate": "4mbit", "qdisc": Changeable(compiled=compiled)}
    case = {**SMALL, "duration": "8s", "sample": "500ms", "links": {"up": link}}
    sim = sj.Simulation(case)
    sim.run_until("3s")
    before = sim.links["up"]
    unchanged = sim.fork()
    sim.set("up.qdisc.target", "5ms")
    assert sim.links["up"].gauges["drops"] == before.gauges["drops"]
    assert sim.links["up"].queue_packets == before.queue_packets
    fork = sim.fork()
    sim.run_until("5s")
    sim.change(links={"up": {"qdisc": {"share": 0.5, "marks": True, "ecn": True, "limit": "30p"}}})
    result = sim.run()
    assert sj.simulate(sim.scenario).summary == result.summary == sj.simulate(
        result.scenario
    ).summary  # fmt: skip
    assert unchanged.run().summary == sj.simulate(case).summary
    low, high = fork.run().links["up"], unchanged.result().links["up"]
    assert low.sojourn_mean_s < 0.8 * high.sojourn_mean_s
    assert fork.result().summary != result.summary


@pytest.mark.parametrize("compiled", [False, True])
def test_parameters_on_which_the_state_depends_cannot_change(compiled: bool) -> None:
    """The refusal says why, and changes nothing."""
    own = Depends(compiled=compiled)
    sim = sj.Simulation({**SMALL, "links": {"up": {"rate": "4mbit", "qdisc": own}}})
    sim.run_until("1s")
    for key, value in (("target", "5ms"), ("size", 4)):
        with pytest.raises(sj.InputError, match=f"cannot change {key} while it runs: its state"):
            sim.set(f"up.qdisc.{key}", value)
    sim.set("up.qdisc.share", 0.1)
    with pytest.raises(sj.InputError, match=r"share: .* is not a finite"):
        sim.set("up.qdisc.share", "x")
    for key, value in (("compiled", not compiled), ("source", "0123456789abcdef")):
        with pytest.raises(sj.InputError, match=r"cannot change compiled|has changed since"):
            sim.set(f"up.qdisc.{key}", value)
    assert sj.simulate(sim.scenario).summary == sim.run().summary


def test_state_that_cannot_be_compared_keeps_parameters_fixed() -> None:
    """A lock has no value."""
    assert not same_state({"a": threading.Lock()}, {"a": threading.Lock()})
    assert same_state({"a": [1.0, {"b": np.ones(2)}]}, {"a": [1.0, {"b": np.ones(2)}]})
    assert not same_state({"a": np.ones(2)}, {"a": np.ones(2, np.int64)})
    assert not same_state({"a": 1}, {"b": 1})


def test_an_environment_tunes_a_discipline_in_python() -> None:
    """Its durations are set in seconds, as for other disciplines."""
    gym = pytest.importorskip("sojourn.gym")
    case = sj.dumbbell(3, rate="10mbit", qdisc=Changeable(), duration="5s")
    env = gym.AqmEnv(case, parameters={"target": (0.001, 0.05), "share": (0.1, 1.0)})
    env.reset(seed=1)
    observed = env.step(np.array([-1.0, 1.0], np.float32))[4]
    assert observed["parameters"] == {"target": "1000us", "share": 1.0}


@pytest.mark.parametrize("compiled", [False, True])
def test_steps_and_forks_of_objects_take_no_memory(compiled: bool) -> None:
    """10,000 steps and 1,000 forks: the peak of the process grows by less than 4 MB."""
    how: dict[str, Any] = {"compiled": compiled}
    case = {
        "duration": "40s",
        "links": {"up": {"rate": "1mbit", "qdisc": my_aqm.MyCoDel(**how)}},
        "flows": [
            {"name": "bulk", "path": ["up"], "rtt": "50ms", "tcp": my_control.MyReno(**how)},
            {"name": "ticks", "path": ["up"], "source": my_source.MyCbr(**how)},
        ],
    }
    sim = sj.Simulation(case)

    def go(steps: int) -> None:
        for n in range(steps):
            sim.step("3ms")
            if n % 10 == 0:
                sim.fork().flows["bulk"]

    go(1_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    go(10_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4_000
    assert sim.run().summary == sj.simulate(case).summary
