"""Means with intervals from one long run: what is warm-up is found and cut, the rest is batched."""

from dataclasses import dataclass

import numpy as np

from sojourn._sojourn import InputError
from sojourn.result.result import Array, Result
from sojourn.result.statistics import BATCHES, Interval, batch_means, mser5

LEAST = 40 * BATCHES
"""How many samples a run must have."""


@dataclass(frozen=True)
class Steady:
    """A quantity of a link in its steady state: its mean with a 95 % interval.

    `cut_s` of the series were warm-up by MSER-5, of `of_s` seconds in all. `doubtful` says that the
    cut came to half of them: then the run is too short to tell.
    """

    link: str
    what: str
    unit: str
    mean: Interval
    cut_s: float
    of_s: float
    doubtful: bool


def steady(result: Result) -> list[Steady]:
    """Give the queue and the throughput of each link of a run with `sample`.

    The whole run is looked at, the scenario's own warm-up too. Raises InputError if there are
    fewer than 800 samples.
    """
    if not result.sampled:
        raise InputError('there are no series: the scenario needs a sample, like "10ms"')
    if len(result.time_s) < LEAST:
        raise InputError(
            f"{len(result.time_s)} samples are too few to tell warm-up from the rest, "
            f"allowed: {LEAST} or more"
        )
    interval_s = float(result.time_s[1] - result.time_s[0])
    found = []
    for name, link in result.links.items():
        queue: Array = link.series.queue_bytes
        sent: Array = link.series.departed_bytes * 8e-6 / interval_s
        for what, unit, series in (("queue", "bytes", queue), ("throughput", "Mbit/s", sent)):
            cut = mser5(series)
            found.append(
                Steady(
                    name,
                    what,
                    unit,
                    batch_means(np.asarray(series[cut:], dtype=float)),
                    cut * interval_s,
                    len(series) * interval_s,
                    cut >= len(series) // 2 - 5,
                )
            )
    return found
