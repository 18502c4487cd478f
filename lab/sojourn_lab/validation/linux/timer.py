"""Times of DualPI2's updates, from the probability that was recorded.

The kernel sets its timer anew from the time at which it ran, so that each delay of the timer stays
for the rest of a recording. An update changes p' by the queueing delay, 14.4 units of 2^-32 per
nanosecond. So the recorded values give this delay to a nanosecond, and, with the arrival of the
packet at the head of the queue, the time of the update. No model of the discipline is used.
"""

from dataclasses import dataclass

import numpy as np

from sojourn.result.result import Array
from sojourn_lab.validation.linux.recordings import Recording, probabilities, recording

FULL = 0xFFFF_FFFF
"""Probability 1."""

STEP_NS = 256
"""Step of the kernel's clock. Timers run at its multiples, seen from the first packet."""

GRAIN_NS = 128
"""Resolution of the recorded arrivals, and of the times at which timers are due."""

ROUNDING_NS = 0.5
"""Largest error of a delay, from the rounding of two recorded probabilities to nine digits."""

MOST_PAIRS = 3000
"""Most pairs of a packet and a delay that are tried. Of more, one would fit by chance."""

SAMPLE_NS = 100_000
"""Least time from the sample that shows the probability of an update to the next update."""


@dataclass(frozen=True)
class Controller:
    """Settings of the controller, as tc sends them."""

    target_ns: int = 15_000_000
    period_ns: int = 16_000_000
    alpha: int = 41
    """Gain, 1/256 Hz."""
    beta: int = 819
    p_max: int = FULL
    started_ns: int = 0
    """Time at which the timer was set for the first time."""

    def delay(self, change: int, before: Array) -> Array:
        """Return the delay (ns) that changes p' by `change`, for each delay one period before."""
        alpha, beta = (gain * FULL // 4_000_000_000 for gain in (self.alpha, self.beta))
        delays: Array = (64 * change + alpha * self.target_ns + beta * before) / (alpha + beta)
        return delays


class Queues:
    """Both queues of a recording."""

    def __init__(self, rows: Recording) -> None:
        self.lanes = []
        for lane in (0, 1):
            mine = rows.ecn % 2 == lane
            sent = np.flatnonzero(rows.out_ns[mine] >= 0)
            self.lanes.append((rows.t_ns[mine], sent, rows.out_ns[mine][sent]))

    def heads(self, at: int) -> Array:
        """Return the arrival times of the packets that may be at the head of a queue at `at`.

        A queue sends in order of arrival, so its head is not before the last one sent, and not
        after the next one; those in between were dropped, at a time that was not recorded.
        """
        departures = []
        for t_ns, sent, out_ns in self.lanes:
            n = np.searchsorted(out_ns, at)
            first = sent[n - 1] + 1 if n > 0 else 0
            last = sent[n] if n < len(sent) else len(t_ns) - 1
            departures.append(t_ns[first : last + 1])
        heads = np.concatenate(departures)
        return heads[heads <= at]


@dataclass
class Before:
    """Possible states at the last update, one per element."""

    delay: Array
    """Queueing delay, ns."""
    late: Array
    """Delay of the timer since its time was last known, ns, for this queueing delay."""
    slack: Array
    """Number of updates in which the timer may have been delayed further."""


def updates(name: str, controller: Controller) -> Array:
    """Return the times (ns) of all updates since the first packet.

    If the probability does not tell the delay (it is 0 or at its maximum, or the packet at the head
    is not listed), the time is the first step of the clock at which the timer was due.
    """
    rows = recording(name)
    times, values = probabilities(name)
    queues, end = Queues(rows), int(rows.out_ns.max())
    at, p, unknown = controller.started_ns, 0, 0
    before: Before | None = None
    expiries: list[int] = []
    while at < end:
        ran, due, unknown = at, at + controller.period_ns, unknown + 1
        at = -(-due // STEP_NS) * STEP_NS
        if due < 0:
            continue
        seen = np.searchsorted(times, due + controller.period_ns - SAMPLE_NS, side="right") - 1
        old, p = p, int(values[seen]) if seen >= 0 else 0
        if 0 < p < controller.p_max - 2:
            before = before or possible(queues, ran, unknown)
            before.delay = controller.delay(p - old, before.delay)
            before.slack = before.slack + 1
            fits = fitting(before, queues.heads(at) - due)
            if len(fits) == 1:
                late_before, late, delay = fits.pop()
                if expiries:
                    expiries[-1] += late_before
                at, unknown = due + late, 0
                before = Before(np.array([float(delay)]), np.zeros(1), np.zeros(1))
        else:
            before = None
        expiries.append(at)
    return np.array(expiries, dtype=np.int64)


def possible(queues: Queues, at: int, unknown: int) -> Before:
    """Return the states after `unknown` updates that the probability does not tell.

    The timer ran at a multiple of the clock's step, and the known update before these did.
    """
    late = np.arange(0, STEP_NS * unknown, STEP_NS)
    heads = queues.heads(at)
    if len(heads) * len(late) > MOST_PAIRS:
        heads = heads[:0]
    delay = (at + late[:, None] - heads).ravel()
    return Before(
        np.append(delay, 0.0),
        np.append(np.repeat(late, len(heads)), 0),
        np.append(np.zeros(len(delay)), unknown),
    )


def fitting(before: Before, heads: Array) -> set[tuple[int, int, int]]:
    """Return the delays of the timer, the last and this one, and of the queue that are possible.

    One of `heads` must be the packet at the head of the queue. They are arrival times, relative to
    the time at which the timer was due.
    """
    late = heads[:, None] + before.delay
    steps = GRAIN_NS * np.rint(late / GRAIN_NS)
    further = steps - before.late
    fits = (np.abs(late - steps) < ROUNDING_NS) & (further >= 0)
    fits &= further < STEP_NS * (1 + before.slack)
    return {
        (int(before.late[j]), int(steps[i, j]), int(steps[i, j] - heads[i]))
        for i, j in np.argwhere(fits)
    }
