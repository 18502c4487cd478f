"""Steady-state means of one long run: MSER-5 removes the warm-up, batch means give intervals.

The warm-up of a link is the warm-up of its queue. A cut that MSER-5 chooses in the throughput
itself is late after random dips, so that the intervals of its mean would cover 0.87 in place of
0.95 (`make coverage`).
"""

from dataclasses import dataclass

import numpy as np

from sojourn._sojourn import InputError
from sojourn.result.result import Array, Result
from sojourn.result.statistics import BATCHES, Interval, batch_means, mser5

LEAST = 40 * BATCHES
"""Smallest number of samples of a run."""


@dataclass(frozen=True)
class Steady:
    """Steady-state mean of a quantity of a link, with its 95 % interval.

    MSER-5 removed the first `cut_s` of `of_s` seconds as warm-up. `doubtful` is True if it removed
    half of the series: the run is then too short.
    """

    link: str
    what: str
    unit: str
    mean: Interval
    cut_s: float
    of_s: float
    doubtful: bool


def steady(result: Result) -> list[Steady]:
    """Return the steady-state queue length and throughput of each link of a run with `sample`.

    The series include the warm-up of the scenario.

    Raises
    ------
    InputError
        If the run has no series, or fewer than 800 samples.
    """
    if not result.sampled:
        raise InputError('there are no series: the scenario needs `sample`, like "10ms"')
    if len(result.time_s) < LEAST:
        raise InputError(
            f"{len(result.time_s)} samples are too few to find the warm-up, "
            f"allowed: {LEAST} or more"
        )
    interval_s = float(result.time_s[1] - result.time_s[0])
    estimates = []
    for name, link in result.links.items():
        queue: Array = link.series.queue_bytes
        sent: Array = link.series.departed_bytes * 8e-6 / interval_s
        cut = mser5(queue)
        for what, unit, series in (("queue", "bytes", queue), ("throughput", "Mbit/s", sent)):
            estimates.append(
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
    return estimates
