"""Environments of Gymnasium: the interface, determinism, rewards, threads, errors."""

import importlib
import warnings
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import sojourn as sj
from sojourn._sojourn import InputError
from sojourn.gym import OBSERVED, TUNED, AqmEnv, RateEnv, ThreadVectorEnv
from support.pages import blocks

SHORT = sj.dumbbell(2, rate="5mbit", qdisc="pie", duration="2s", warmup="500ms")


@pytest.mark.parametrize("make", [AqmEnv, RateEnv, lambda: AqmEnv(SHORT)])
def test_the_checker_of_gymnasium_passes(make: Any) -> None:
    """Without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(), skip_render_check=True)


def episode(env: Any, seed: int, action: float) -> tuple[list[Any], float]:
    """Return all observations, and the sum of rewards, of one episode with a constant action."""
    observation, _ = env.reset(seed=seed)
    seen, total, over = [observation], 0.0, False
    while not over:
        observation, reward, terminated, over, info = env.step(
            np.full(env.action_space.shape, action, np.float32)
        )
        assert env.observation_space.contains(observation)
        assert set(OBSERVED) <= set(info)
        assert not terminated
        seen.append(observation)
        total += reward
    return seen, total


def test_an_episode_is_repeated_by_its_seed() -> None:
    """Another seed gives another line; a fixed scenario has 20 steps of 100 ms."""
    one, other = AqmEnv(), AqmEnv()
    first = one.reset(seed=3)[1]["scenario"]
    assert first == other.reset(seed=3)[1]["scenario"] != one.reset(seed=4)[1]["scenario"]
    fixed = AqmEnv(SHORT)
    seen, total = episode(fixed, 1, 0.0)
    again, same = episode(fixed, 1, 0.0)
    assert (len(seen), total) == (21, same)
    assert all(map(np.array_equal, seen, again))
    with pytest.raises(RuntimeError, match="the episode is over: call reset"):
        fixed.step(np.zeros(3, np.float32))


def test_actions_are_parameters_on_a_logarithmic_scale() -> None:
    """The ends of the action are the ends of the range; a higher target has a longer queue."""
    env = AqmEnv(SHORT, parameters={"target": (0.002, 0.2)})
    env.reset(seed=1)
    for action, target in [(-1.0, "2000us"), (0.0, "20000us"), (1.0, "200000us")]:
        info = env.step(np.array([action], np.float32))[4]
        assert info["parameters"] == {"target": target}
        assert env.sim is not None
        tree = env.sim.scenario["changes"][-1]["links"]["bottleneck"]["qdisc"]
        assert tree == {"target": target}
    for name in ("max_burst", "burst"):
        env = AqmEnv(SHORT, parameters={name: (0.01, 0.1)})
        env.reset(seed=1)
        assert env.step(np.ones(1, np.float32))[4]["parameters"] == {name: "100000us"}
    long = sj.dumbbell(2, rate="5mbit", qdisc="pie", duration="20s")
    weighted = AqmEnv(long, parameters={"target": (0.002, 0.2)}, delay_weight=5.0)
    assert episode(weighted, 1, -1.0)[1] > episode(weighted, 1, 1.0)[1]


def test_the_reward_is_the_formula_of_the_page() -> None:
    """Utilisation, less delay in units of 100 ms, less loss; each with its weight."""
    env = AqmEnv(SHORT, delay_weight=0.3, loss_weight=7.0)
    env.reset(seed=2)
    for _ in range(20):
        _, reward, _, _, info = env.step(np.zeros(3, np.float32))
        formula = info["utilisation"] - 0.3 * info["sojourn"] - 7.0 * info["dropped"]
        assert reward == pytest.approx(formula)


def test_the_throughput_of_a_sender_follows_the_actions() -> None:
    """The reward is the formula of the page."""
    env = RateEnv()
    env.reset(seed=5)
    rates: list[float] = []
    assert env.sim is not None
    fair = env.sim.links["bottleneck"].rate_bps / 2
    for action in [0.0, 0.0, 0.5, 0.5, 0.0, -1.0, -1.0, -1.0, 0.0]:
        _, reward, _, _, info = env.step(np.array([action], np.float32))
        rates.append(info["throughput_bps"])
        gain = np.clip(np.log2(max(rates[-1], 1.0) / fair), -2.0, 1.0)
        assert reward == pytest.approx(gain - info["sojourn"] - info["dropped"])
    assert max(rates[2:5]) > 1.5 * rates[1]
    assert rates[-1] < rates[4] / 3


def test_threads_give_the_same_as_one_after_the_other() -> None:
    """Episodes that end are reset by the next step."""
    vector = ThreadVectorEnv([lambda: AqmEnv(SHORT)] * 3, threads=2)
    observations, _ = vector.reset(seed=7)
    assert observations.shape == (3, len(OBSERVED) + len(TUNED))
    actions = np.zeros((3, 3), np.float32)
    total = np.zeros(3)
    for _ in range(20):
        observations, rewards, _, truncated, info = vector.step(actions)
        total += rewards
    assert truncated.all()
    assert info["utilisation"].shape == (3,)
    for i in range(3):
        seen, alone = episode(AqmEnv(SHORT), 7 + i, 0.0)
        assert total[i] == pytest.approx(alone)
        assert np.array_equal(observations[i], seen[-1])
    _, rewards, _, truncated, _ = vector.step(actions)
    assert not truncated.any()
    assert not rewards.any()
    assert vector.step(actions)[1].any()
    vector.close()


def test_code_of_the_page_runs() -> None:
    """The blocks of docs/how-to/gym.md run in order."""
    names: dict[str, Any] = {}
    for block in blocks("python", "docs/how-to/gym.md"):
        exec(compile(block, "docs/how-to/gym.md", "exec"), names)
    assert names["total"] != 0


def test_errors_name_the_value() -> None:
    """Unknown links and parameters, and ranges that are none."""
    with pytest.raises(InputError, match='link: unknown link "bottlenek", did you mean'):
        AqmEnv(SHORT, link="bottlenek").reset(seed=1)
    with pytest.raises(InputError, match=r"parameters.target: \[0, 1\] is not a range"):
        AqmEnv(SHORT, parameters={"target": (0, 1)})
    env = AqmEnv(SHORT, parameters={"targte": (0.001, 1)})
    env.reset(seed=1)
    with pytest.raises(InputError, match=r"qdisc\.targte: unknown parameter"):
        env.step(np.zeros(1, np.float32))


def test_the_example_trains_an_agent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A short training gives a policy, and a row for each group of lines."""
    pytest.importorskip("cmaes")
    example = importlib.import_module("examples.train_aqm")
    for name, value in (("POPULATION", 4), ("TRAINING", range(1)), ("HELD_OUT", range(14))):
        monkeypatch.setattr(example, name, value)
    example.main(["--iterations", "2"])
    out = capsys.readouterr().out
    assert out.count("mean reward") == 2
    total, *groups = [line.split() for line in out.splitlines() if "%" in line]
    counts = [int(line[-7]) for line in (total, *groups)]
    assert counts[0] == counts[1] + counts[2] == counts[3] + counts[4] == 14
    assert all(0.2 < float(line[-6]) < 1.0 for line in (total, *groups))
