"""Random arrivals: four patterns of frames from eight flows."""

from collections.abc import Callable

import numpy as np

from sojourn.result.result import Array

FLOWS = 8
FRAMES = 6000
RATE_KBPS = 15_625
"""Rate of the link: a byte takes 512 ns."""

DSCP = (0, 46, 8, 34, 0, 0, 40, 0)
"""DSCP by flow: best effort, EF, CS1, AF41, CS5."""

SENDERS, RECEIVERS = 3, 2
"""Hosts: flow f goes from host f mod 3 to host f mod 2."""

SHORTEST, LONGEST = 100, 1514
"""Lengths of frames, bytes."""

Random = np.random.Generator


def poisson(random: Random, load: Array | float = 1.15) -> Array:
    """Return exponential gaps (ns) of a load, relative to the rate of the link."""
    mean = (SHORTEST + LONGEST) / 2 * 8e6 / RATE_KBPS
    return random.exponential(mean, FRAMES) / load


def ramp(random: Random) -> Array:
    """Return exponential gaps of a load that grows from a half to twice the link."""
    return poisson(random, np.linspace(0.5, 2, FRAMES))


def onoff(random: Random) -> Array:
    """Return gaps of three times the link, with pauses of 100 to 300 ms every 400 frames."""
    gaps = poisson(random, 3)
    gaps[::400] += random.uniform(100e6, 300e6, len(gaps[::400]))
    return gaps


def bursts(random: Random) -> Array:
    """Return gaps of 1 us in bursts of about 30 frames, and of 20 ms on average between them."""
    first = random.random(FRAMES) < 1 / 30
    return np.where(first, random.exponential(11e6, FRAMES), 1e3)


PATTERNS: dict[str, Callable[[Random], Array]] = {
    "poisson": poisson,
    "ramp": ramp,
    "onoff": onoff,
    "bursts": bursts,
}


def rows(pattern: str, seed: int, shortest: int = SHORTEST) -> list[tuple[int, int, int, int]]:
    """Return time (ns), flow (from 1 on), length and TOS of each frame; odd flows have ECT(0)."""
    random = np.random.default_rng([seed, list(PATTERNS).index(pattern)])
    times = np.cumsum(np.ceil(PATTERNS[pattern](random))).astype(int)
    shares = np.arange(1, FLOWS + 1) / (FLOWS * (FLOWS + 1) / 2)
    flows = random.choice(FLOWS, FRAMES, p=shares)
    sizes = random.integers(shortest, LONGEST + 1, FRAMES)
    return [
        (int(t), int(f), int(n), DSCP[f - 1] << 2 | 2 * (f % 2))
        for t, f, n in zip(times, flows + 1, sizes, strict=True)
    ]
