"""Rules of the claims of sections III.D and VI, and of two more on the testbed."""

from itertools import pairwise
from typing import Any

import numpy.typing as npt

from sojourn_lab.papers.hred.checks import OF_B, PERCENT, RULES, averaged, places
from sojourn_lab.papers.hred.common import NAMES
from sojourn_lab.reproduction.claims import Runs, values
from sojourn_lab.reproduction.parts import Part, bound, equal, order

EMPTY = 5.0
"""Largest mean of a queue that is not built up, in per cent of the buffer: five packets of 100."""

SIMILAR = 12.5
"""Tolerance of a mean queue with marks, in points of the buffer: half the width of the band."""


def red_has_no_queue(runs: Runs) -> list[Part]:
    """C21: RED's mean queue on the testbed with few flows.

    Fails wrongly: the paper's RED has integer averages, which our RED has not. Passes wrongly: on a
    queue of a few packets, which the paper may call a queue.
    """
    frame = runs["testbed"]
    return [
        bound(f"RED, {x} flows", values(frame, "mean", qdisc="red", flows=x), "<", EMPTY, **OF_B)
        for x in places(frame, "flows", qdisc="red")
        if x < 70
    ]


def avq_grows_again(runs: Runs) -> list[Part]:
    """C22: AVQ's mean queue on the testbed rises from 80 flows on.

    Fails wrongly: "again" may mean from 100 to 120 flows only; each step is a part. Passes wrongly:
    on a rise that is significant but too small to be seen.
    """
    frame = runs["testbed"]
    at = [x for x in places(frame, "flows", qdisc="avq") if x >= 80]
    return [
        order(f"AVQ, {a} below {b} flows",
              *(values(frame, "mean", qdisc="avq", flows=x) for x in (a, b)), **OF_B)
        for a, b in pairwise(at)
    ]  # fmt: skip


def corrections_help(runs: Runs) -> list[Part]:
    """C23: with a correction fewer drops by overflow, and a shorter time near the full buffer.

    Fails wrongly: the sizes of the corrections are our choice. Passes wrongly: on a significant but
    small reduction; so it must be a half.
    """
    frame, parts = runs["overflow"], []
    for band in places(frame, "band"):
        for one in ("step", "reset"):
            for column, name, unit in (("drops", "overflows", ""), ("full_s", "time full", "s")):
                none, with_it = (
                    values(frame, column, band=band, correction=c) for c in ("none", one)
                )
                what = f"{name}, {band}, {one}: below half of those without"
                parts.append(order(what, with_it, none / 2, unit=unit))
    return parts


def t_alpha_trades(runs: Runs) -> list[Part]:
    """C24: a small T_alpha is unstable, a large one responds slowly.

    Fails wrongly: "below the round-trip time" is 50 ms against a mean of 120 ms. Passes wrongly: a
    queue that has not settled before the step has a large deviation as well; so the slow end is
    judged by the time from the start and from the step until the queue stays in the band.
    """
    frame = runs["t_alpha"]
    at = places(frame, "t_alpha")
    least, usual, most = at[0], 400, at[-1]

    def of(column: str, ms: int) -> npt.NDArray[Any]:
        return values(frame, column, t_alpha=ms)

    return [
        order(f"deviation with {usual} ms below {least} ms", of("std", usual), of("std", least),
              **OF_B),
        *(order(f"time until the queue stays in the band, {name}: {usual} ms below {most} ms",
                of(column, usual), of(column, most), unit="s")
          for column, name in (("start_s", "from the start"), ("back_s", "from the step"))),
    ]  # fmt: skip


def marks_replace_drops(runs: Runs) -> list[Part]:
    """C25: with ECN few drops, and queues as with drops.

    Fails wrongly: "rarely" may allow more than a tenth of the drops; at T 600 windows are so small
    that marks cannot reduce them further. Passes wrongly: the mean loss over T hides one load.
    """
    frame, parts = runs["ecn"], []
    signals = ("marks", "drops")
    for one in RULES:
        less, more = (averaged(frame, "loss", qdisc=one, signal=it) for it in signals)
        parts.append(order(f"{NAMES[one]}: ten times the loss with marks below the loss with drops",
                           10 * less, more, **PERCENT))  # fmt: skip
    for one in RULES:
        for column, name in (("mean", "mean queue"), ("std", "deviation")):
            both = {
                t: tuple(values(frame, column, qdisc=one, T=t, signal=it) for it in signals)
                for t in places(frame, "T")
            }
            worst = max(both, key=lambda t: abs(float(both[t][0].mean() - both[t][1].mean())))
            what = (
                f"{NAMES[one]}: {name} with marks and with drops, largest difference at T {worst}"
            )
            parts.append(equal(what, *both[worst], points=SIMILAR, **OF_B))
    return parts
