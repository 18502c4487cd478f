"""Does a new `cake` serve web pages like one that has been in use? A table of `home_line.md`."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

import sojourn as sj
from sojourn.result.statistics import interval

QUEUES = ("cake", "cake(rtt=1s)", "fq_codel")
EDGES_S = (0, 20, 60, 120, 300, 600, 1200)
"""Edges of the intervals of age, in seconds since the start."""


def scenario(queue: str, seed: int, seconds: int = EDGES_S[-1]) -> sj.Scenario:
    """Return one user who loads pages of 50 objects (as in RFC 7928, section 7.2)."""
    pages = sj.source.Web(
        sessions=1,
        pages="auto",
        page_gap="100ms",
        objects=50,
        object_gap="exponential(10ms)",
        parallel=6,
        size="pareto(mean=20kB, shape=1.2)",
    )
    return sj.Scenario(
        duration=f"{seconds}s",
        seed=seed,
        links={"down": sj.Link(rate="10mbit", delay="5ms", qdisc=queue)},
        flows=[sj.Flow(name="web", path=["down"], rtt="100ms", source=pages)],
    )


def completion_ms(result: sj.Result, edges_s: Sequence[int] = EDGES_S) -> list[float]:
    """Return the mean completion time of the objects that started in each interval of age."""
    start = np.asarray(result.completions["start_s"])
    took = np.asarray(result.completions["duration_s"]) * 1e3
    return [float(took[(start >= a) & (start < b)].mean()) for a, b in pairwise(edges_s)]


def table(seeds: int) -> str:
    """Return the means over seeds, a row per discipline and a column per interval of age."""
    columns = [f"{a} to {b} s" for a, b in pairwise(EDGES_S)]
    lines = [f"| queue | {' | '.join(columns)} |", "|---" * (1 + len(columns)) + "|"]
    for queue in QUEUES:
        runs = sj.simulate_many([scenario(queue, seed) for seed in range(1, seeds + 1)])
        means = [interval(column) for column in zip(*map(completion_ms, runs), strict=True)]
        cells = " | ".join(f"{one.mean:.0f} ± {one.half:.1f}" for one in means)
        lines.append(f"| `{queue}` | {cells} |")
    return "\n".join(lines)
