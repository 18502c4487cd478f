"""Train a small agent that tunes PIE, and compare it with PIE on lines that it has not seen.

    pip install gymnasium cmaes
    python examples/train_aqm.py [--iterations N]

The agent is a linear policy: each action is tanh of a weighted sum of the observation. Its 30
weights are found by CMA-ES (library cmaes): draw policies from a normal distribution, rank them by
their rewards, fit mean and covariance to the best, repeat. Deep learning (PyTorch and
stable-baselines3 are a gigabyte) is not worth it for 30 weights; `AqmEnv` works with it, too.
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from cmaes import CMA

from sojourn.gym import AqmEnv

POPULATION = 24
TRAINING = range(1000, 1006)
"""Seeds of the lines for training: 6 lines for each policy."""

HELD_OUT = range(100)
"""Seeds of the lines for the comparison."""

PIE = {"target": (0.0149, 0.0151), "alpha": (0.1249, 0.1251), "beta": (1.249, 1.251)}
"""The defaults of RFC 8033, as ranges that leave no choice."""


def episode(weights: np.ndarray | None, seed: int) -> tuple[float, dict[str, float]]:
    """Return the mean reward on the line of `seed`, and the line; None is PIE with its defaults.

    The line has the mean utilisation and sojourn time of the steps, too.
    """
    env = AqmEnv() if weights is not None else AqmEnv(parameters=PIE)
    observation, info = env.reset(seed=seed)
    rewards: list[float] = []
    seen: list[tuple[float, float]] = []
    over = False
    while not over:
        action = np.zeros(3, np.float32)
        if weights is not None:
            action = np.tanh(weights @ np.append(observation, 1.0)).astype(np.float32)
        observation, reward, _, over, step = env.step(action)
        rewards.append(reward)
        seen.append((step["utilisation"], step["sojourn"] * 100))
    (flow,) = info["scenario"]["flows"]
    rtt_ms = float(flow["rtt"].removesuffix("ms"))
    utilisation, sojourn_ms = np.mean(seen, axis=0)
    line = {"flows": flow["count"], "rtt_ms": rtt_ms}
    return float(np.mean(rewards)), {**line, "utilisation": utilisation, "sojourn_ms": sojourn_ms}


def train(iterations: int, pool: ThreadPoolExecutor) -> np.ndarray:
    """Return the weights, one row per action."""
    search = CMA(mean=np.zeros(30), sigma=0.5, population_size=POPULATION, seed=1)
    for n in range(iterations):
        drawn = [search.ask() for _ in range(POPULATION)]
        runs = [(weights.reshape(3, 10), seed) for weights in drawn for seed in TRAINING]
        rewards = [reward for reward, _ in pool.map(episode, *zip(*runs, strict=True))]
        scores = np.reshape(rewards, (POPULATION, len(TRAINING))).mean(axis=1)
        search.tell([(weights, -score) for weights, score in zip(drawn, scores, strict=True)])
        print(f"iteration {n + 1}: mean reward {scores.mean():.3f}, best {scores.max():.3f}")
    return search.mean.reshape(3, 10)


def main(arguments: list[str] | None = None) -> None:
    """Train, compare, and print where the agent is better and where not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=15)
    with ThreadPoolExecutor() as pool:
        weights = train(parser.parse_args(arguments).iterations, pool)
        agent = list(pool.map(lambda seed: episode(weights, seed), HELD_OUT))
        pie = list(pool.map(lambda seed: episode(None, seed), HELD_OUT))
    gain = np.array([a - p for (a, _), (p, _) in zip(agent, pie, strict=True)])
    groups: dict[str, Callable[[dict[str, float]], bool]] = {
        "all lines": lambda line: line["flows"] > 0,
        "1 to 4 flows": lambda line: line["flows"] <= 4,
        "5 to 16 flows": lambda line: line["flows"] > 4,
        "round trip below 40 ms": lambda line: line["rtt_ms"] < 40,
        "round trip from 40 ms": lambda line: line["rtt_ms"] >= 40,
    }
    print(f"\n{'reward per step':24} {'lines':>5} {'PIE':>7} {'agent':>7} {'gain':>15} better in")
    for name, belongs in groups.items():
        chosen = np.array([belongs(line) for _, line in pie])
        own, base = (np.array([r for r, _ in runs])[chosen].mean() for runs in (agent, pie))
        part = gain[chosen]
        half = 1.96 * part.std(ddof=1) / np.sqrt(len(part))
        print(
            f"{name:24} {len(part):5} {base:7.3f} {own:7.3f} {part.mean():7.3f} ± {half:.3f} "
            f"{np.mean(part > 0):8.0%}"
        )
    for key in ("utilisation", "sojourn_ms"):
        base, own = (np.mean([line[key] for _, line in runs]) for runs in (pie, agent))
        print(f"{key:30} {base:7.3f} {own:7.3f}")


if __name__ == "__main__":
    main()
