"""Environments of Gymnasium: an agent that tunes an AQM, and one that sets the rate of a sender.

    >>> from sojourn.gym import AqmEnv
    >>> env = AqmEnv()
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())

Needs Gymnasium: ``pip install gymnasium``. The simulator releases the GIL, so that
`ThreadVectorEnv` runs environments on several cores without further processes.
"""

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn.custom import identity
from sojourn.engines.stepping import Simulation, State
from sojourn.scenario.draft import Described, Draft, parse
from sojourn.scenario.keys import Scenario
from sojourn.scenario.topologies import dumbbell

try:
    import gymnasium
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "sojourn.gym needs Gymnasium: pip install gymnasium", name=error.name
    ) from None

Vector = npt.NDArray[np.float32]
Make = Callable[[random.Random], Described]

DELAY_S = 0.1
"""Queueing delay that is 1 in an observation, seconds."""

OBSERVED = ("utilisation", "sojourn", "queue", "arrivals", "dropped", "marked")
"""First components of every observation, over the last step."""

CLIP = 10.0
"""Largest component of an observation."""

TUNED = {"target": (0.002, 0.05), "alpha": (0.01, 2.0), "beta": (0.1, 20.0)}
"""Parameters of PIE that `AqmEnv` tunes by default, with their ranges; times in seconds."""


def line(rng: random.Random) -> Scenario:
    """Return a random line with PIE: 4 to 40 Mbit/s, 1 to 16 flows, 10 to 150 ms of round trip."""
    mbit = math.exp(rng.uniform(math.log(4), math.log(40)))
    flows = round(math.exp(rng.uniform(0, math.log(16))))
    rtt = math.exp(rng.uniform(math.log(10), math.log(150)))
    buffer = max(50, round(mbit * 1e6 / 8 * 0.5 / 1500))  # 500 ms
    return dumbbell(
        flows,
        rate=f"{round(mbit * 1000)}kbit",
        rtt=f"{round(rtt)}ms",
        qdisc={"name": "pie", "limit": f"{buffer}p"},
        duration="20s",
        seed=rng.randrange(1 << 31),
    )


def path(rng: random.Random) -> Scenario:
    """Return a random path for `RateEnv`: a pacer, then a bottleneck shared with a TCP flow."""
    mbit = math.exp(rng.uniform(math.log(4), math.log(40)))
    buffer = max(20, round(mbit * 1e6 / 8 * 0.1 / 1500))  # 100 ms
    case = Draft.read(dumbbell(1, rate=f"{round(mbit * 1000)}kbit", duration="20s")).tree
    case["links"]["bottleneck"]["qdisc"] = f"droptail(limit={buffer}p)"
    case["links"]["pacer"] = {"rate": "1mbit", "qdisc": "droptail(limit=2p)"}
    source = {"name": "cbr", "rate": "50mbit", "packet": "1500B"}
    paced = {"name": "paced", "path": ["pacer", "bottleneck"], "source": source}
    tcp = {**case["flows"][0], "name": "tcp", "rtt": f"{round(rng.uniform(10, 100))}ms"}
    return Scenario(**{**case, "flows": [paced, tcp], "seed": rng.randrange(1 << 31)})


class _LinkEnv(gymnasium.Env[Vector, Vector]):
    """A simulation whose steps an agent controls, and the observation of its bottleneck."""

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's interface)

    def __init__(
        self,
        scenario: Described | Make,
        link: str,
        step: str,
        actions: int,
        weights: tuple[float, float],
    ) -> None:
        self._make: Make = scenario if callable(scenario) else _fixed(scenario)
        self._link = link
        self._step = step
        self._weights = weights
        size = len(OBSERVED) + actions
        self.observation_space = gymnasium.spaces.Box(0.0, CLIP, (size,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (actions,), np.float32)
        self._action = np.zeros(actions, np.float32)
        self.sim: Simulation | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Vector, dict[str, Any]]:
        """Start an episode; `info` has the scenario."""
        super().reset(seed=seed)
        rng = random.Random(int(self.np_random.integers(1 << 31)))
        self.sim = Simulation(self._make(rng), threads=1)
        if self._link not in self.sim.links:
            links = list(self.sim.links)
            raise InputError(f"link: unknown link {shown(self._link)}{near(self._link, links)}")
        self._last = self.sim.links[self._link]
        self._action[:] = 0
        return self._observation(dict.fromkeys(OBSERVED, 0.0)), {"scenario": self.sim.scenario}

    def _apply(self, action: Vector) -> Simulation:
        """Remember the action and return the simulation, before its next step."""
        if self.sim is None or self.sim.ended:
            raise RuntimeError("the episode is over: call reset")
        self._action = np.clip(np.asarray(action, np.float32), -1.0, 1.0)
        return self.sim

    def _advance(self, sim: Simulation) -> tuple[Vector, dict[str, float], bool]:
        """Simulate a step; return observation, its parts by name, and True at the end."""
        before = sim.now
        sim.step(self._step)
        now, last = sim.links[self._link], self._last
        self._last = now
        seen = _seen(now, last, sim.now - before)
        return self._observation(seen), seen, sim.ended

    def _reward(self, gain: float, seen: Mapping[str, float]) -> float:
        """Return `gain` less the weighted delay and loss."""
        delay, loss = self._weights
        return gain - delay * seen["sojourn"] - loss * seen["dropped"]

    def _observation(self, seen: Mapping[str, float]) -> Vector:
        values = [seen[name] for name in OBSERVED] + [(a + 1) / 2 for a in self._action]
        return np.clip(np.array(values, np.float32), 0.0, CLIP)


class AqmEnv(_LinkEnv):
    """An agent that tunes the parameters of the AQM of one link while flows cross it.

    **Observation**, float32, clipped to 0 to 10: utilisation of the link; mean sojourn time of the
    packets sent and the time to drain the queue, both in units of 100 ms; arrived, dropped and
    marked bytes or packets as shares (arrivals: of the capacity, the others: of the packets that
    arrived), all over the last step; then the last action, scaled to 0 to 1.

    **Action**, one number from -1 to 1 per parameter: its value between the ends of the range, on a
    logarithmic scale. 0 is the geometric mean.

    **Reward** of a step: utilisation - `delay_weight` x mean sojourn time / 100 ms -
    `loss_weight` x share of packets dropped. It is at most 1 per step.

    An episode is truncated at the end of the scenario; it never terminates earlier.

    Parameters
    ----------
    scenario : callable, Scenario, mapping, str or Path, optional
        Called with a `random.Random` at each reset; returns a scenario. A fixed scenario gets
        another seed at each reset. The default is `line`: random lines with PIE.
    link : str, optional
        Link whose AQM is tuned.
    parameters : mapping of str to (float, float), optional
        Range of each tuned parameter; times in seconds. The default is `TUNED`, for PIE. The
        discipline must be able to change them while it runs.
    step : str, optional
        Simulated time between two actions.
    delay_weight, loss_weight : float, optional
        Weights in the reward.
    """

    def __init__(
        self,
        scenario: Described | Make = line,
        *,
        link: str = "bottleneck",
        parameters: Mapping[str, tuple[float, float]] = TUNED,
        step: str = "100ms",
        delay_weight: float = 1.0,
        loss_weight: float = 1.0,
    ) -> None:
        for name, (low, high) in parameters.items():
            if not 0 < low < high:
                raise InputError(f"parameters.{name}: {shown([low, high])} is not a range above 0")
        super().__init__(scenario, link, step, len(parameters), (delay_weight, loss_weight))
        self._parameters = dict(parameters)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Vector, dict[str, Any]]:
        """Start an episode; `info` has the scenario."""
        observation, info = super().reset(seed=seed)
        qdisc = info["scenario"]["links"][self._link]["qdisc"]
        self._times = _times(qdisc["name"], qdisc.get("source"))
        return observation, info

    def step(self, action: Vector) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        """Set the parameters and simulate a step; `info` has what was observed, by name."""
        sim = self._apply(action)
        values = {}
        for (name, (low, high)), a in zip(self._parameters.items(), self._action, strict=True):
            value = low * (high / low) ** ((float(a) + 1) / 2)
            values[name] = f"{round(value * 1e6)}us" if name in self._times else round(value, 6)
        sim.change(links={self._link: {"qdisc": values}})
        observation, seen, over = self._advance(sim)
        reward = self._reward(seen["utilisation"], seen)
        return observation, reward, False, over, {**seen, "parameters": values}


class RateEnv(_LinkEnv):
    """An agent that sets the sending rate of a UDP sender which shares a bottleneck with others.

    The sender is a flow behind a link `pacer`, whose rate is the action. What the pacer drops was
    never sent.

    **Observation** as of `AqmEnv`, of the bottleneck.

    **Action**, one number from -1 to 1: the rate is multiplied by 2 to that power.

    **Reward** of a step: log2(throughput / fair share), at least -2 and at most 1, -
    `delay_weight` x mean sojourn time / 100 ms - `loss_weight` x share of packets dropped at the
    bottleneck. The fair share is the capacity of the bottleneck, divided by the number of groups of
    flows.

    An episode is truncated at the end of the scenario; it never terminates earlier.

    Parameters
    ----------
    scenario : callable, Scenario, mapping, str or Path, optional
        As of `AqmEnv`, with a link `pacer`. The default is `path`.
    flow, link : str, optional
        The paced flow, and the bottleneck.
    step : str, optional
        Simulated time between two actions.
    delay_weight, loss_weight : float, optional
        Weights in the reward.
    """

    def __init__(
        self,
        scenario: Described | Make = path,
        *,
        flow: str = "paced",
        link: str = "bottleneck",
        step: str = "100ms",
        delay_weight: float = 1.0,
        loss_weight: float = 1.0,
    ) -> None:
        super().__init__(scenario, link, step, 1, (delay_weight, loss_weight))
        self._flow = flow

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Vector, dict[str, Any]]:
        """Start an episode; `info` has the scenario."""
        self._received = 0
        return super().reset(seed=seed)

    def step(self, action: Vector) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        """Set the rate and simulate a step; `info` has what was observed, by name."""
        sim = self._apply(action)
        rate = sim.links["pacer"].rate_bps * 2 ** float(self._action[0])
        rate = min(max(rate, 50e3), 1e9)
        sim.set("pacer.rate", f"{round(rate)}bit")
        before = sim.now
        observation, seen, over = self._advance(sim)
        received = sim.flows[self._flow].received_bytes
        throughput = (received - self._received) * 8 / (sim.now - before)
        self._received = received
        fair = sim.links[self._link].rate_bps / len(sim.flows)
        gain = min(max(math.log2(max(throughput, 1.0) / fair), -2.0), 1.0)
        reward = self._reward(gain, seen)
        return observation, reward, False, over, {**seen, "throughput_bps": throughput}


class ThreadVectorEnv(VectorEnv[Any, Any, Any]):
    """Several environments side by side, each stepped in a thread of its own.

    An episode that has ended is reset by the next step, whose action is ignored for it and whose
    reward is 0 (`AutoresetMode.NEXT_STEP`).

    Parameters
    ----------
    makes : sequence of callables
        One per environment; each returns a new environment.
    threads : int, optional
        Number of threads. The default is the number of environments.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 (Gymnasium's interface)

    def __init__(self, makes: Sequence[Callable[[], _LinkEnv]], threads: int | None = None) -> None:
        self.envs = [make() for make in makes]
        self.num_envs = len(self.envs)
        first = self.envs[0]
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        self.observation_space = batch_space(first.observation_space, self.num_envs)
        self.action_space = batch_space(first.action_space, self.num_envs)
        self._pool = ThreadPoolExecutor(threads or self.num_envs)
        self._over = np.zeros(self.num_envs, bool)

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode in each; environment i gets the seed `seed` + i."""
        if isinstance(seed, list):
            seeds: list[int | None] = seed
        else:
            seeds = [None if seed is None else seed + i for i in range(self.num_envs)]
        starts = self._pool.map(lambda e, s: e.reset(seed=s), self.envs, seeds)
        self._over[:] = False
        return np.stack([observation for observation, _ in starts]), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step each environment; `info` has the values of `info` of each, by name."""

        def one(i: int) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
            if self._over[i]:
                return self.envs[i].reset()[0], 0.0, False, False, {}
            observation, reward, *ends, info = self.envs[i].step(actions[i])
            return observation, float(reward), bool(ends[0]), bool(ends[1]), info

        rows = list(self._pool.map(one, range(self.num_envs)))
        observations, rewards, terminated, truncated, infos = zip(*rows, strict=True)
        self._over = np.array(terminated) | np.array(truncated)
        info: dict[str, Any] = {}
        for i, own in enumerate(infos):
            info = self._add_info(info, own, i)
        return (
            np.stack(observations),
            np.array(rewards),
            np.array(terminated),
            np.array(truncated),
            info,
        )

    def close_extras(self, **_: Any) -> None:
        """End the threads."""
        self._pool.shutdown()


def _seen(now: State, last: State, passed: float) -> dict[str, float]:
    """Return what happened at a link between two states, `passed` seconds apart."""
    # Counters restart when the warm-up ends.
    fresh = (
        now.arrived_packets < last.arrived_packets or now.departed_packets < last.departed_packets
    )

    def since(name: str) -> float:
        return float(now[name] - (0 if fresh else last[name]))

    arrived, sent = since("arrived_packets"), since("departed_packets")
    sizes = since("departed_bytes")
    mean = sizes / sent if sent else 0.0
    capacity = now.rate_bps / 8 * passed
    return {
        "utilisation": min(sizes / capacity, 1.0),
        "sojourn": since("sojourn_total_s") / sent / DELAY_S if sent else 0.0,
        "queue": now.queue_bytes * 8 / now.rate_bps / DELAY_S,
        "arrivals": arrived * mean / capacity,
        "dropped": since("dropped_packets") / arrived if arrived else 0.0,
        "marked": since("marked_packets") / arrived if arrived else 0.0,
    }


@cache
def _times(qdisc: str, source: str | None) -> frozenset[str]:
    """Return the names and aliases of the parameters of a discipline that are durations.

    `source` is the hash of the source of a discipline in Python.
    """
    if source is not None:
        own = identity.version(qdisc, source)[1]._parameters  # type: ignore[attr-defined]
        return frozenset(name for name, (kind, _) in own.items() if kind == "duration")
    specs = [s for s in json.loads(_sojourn.specs())["disciplines"] if s["name"] == qdisc]
    rows = [row for spec in specs for row in spec["params"] if row["kind"] == "duration"]
    return frozenset(name for row in rows for name in (row["name"], *row["aliases"]))


def _fixed(scenario: Described) -> Make:
    """Return a function that gives a scenario a random seed."""
    tree = json.loads(parse(scenario).canonical())
    return lambda rng: {**tree, "seed": rng.randrange(1 << 31)}
