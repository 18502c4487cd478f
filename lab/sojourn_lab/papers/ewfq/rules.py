"""Rules that judge the claims of the paper on EWFQ, fixed before the runs."""

from typing import Any

import numpy as np
import numpy.typing as npt

from sojourn.result.statistics import Interval, interval, paired
from sojourn_lab.papers.ewfq.experiments import JUDGED
from sojourn_lab.papers.ewfq.runs import MEMBERS, NAMES
from sojourn_lab.reproduction.claims import Runs, values
from sojourn_lab.reproduction.parts import (
    Part,
    Result,
    bound,
    equal,
    number,
    order,
    result_of,
)

NEAR = 0.005
"""Tolerance of a fairness index: between the stated one and ours, and for "near 1"."""

ROUNDING = 0.00005
"""Half a unit of the last digit that the paper prints."""


def _index(what: str, samples: npt.ArrayLike, stated: float, *, least: bool = False) -> Part:
    """Compare a fairness index with a stated one: within 0.005, and within a factor of 2 from 1.

    With `least`, more fairness than stated holds as well. Fails wrongly: if the paper's runs are
    short, since the start of a run is unfair (a setting). Passes wrongly: 0.005 alone accepts an
    unfairness of 1 - J many times smaller than the stated one; hence the factor of 2.
    """
    mine, unfair = interval(samples), 1 - stated
    bottom = max(stated - NEAR, 1 - 2 * unfair - 2 * ROUNDING) - 1e-12  # the limit itself holds
    top = 1.0 if least else min(stated + NEAR, 1 - unfair / 2 + ROUNDING) + 1e-12
    holds = bottom <= mine.mean <= top and mine.half <= NEAR
    result = result_of(mine, holds, mine.high < bottom or mine.low > top)
    return _part(what, f"{stated:.4f}", mine, result, is_number=True)


def _above(what: str, samples: npt.ArrayLike, limit: float, less: bool = False) -> Part:
    """Return the part: the interval of a fairness index is above `limit`, or below with `less`.

    Fails wrongly: if "near 1" is meant more loosely than 0.005. Passes wrongly: if more tightly.
    """
    mine = interval(samples)
    ends = (mine.low > limit, mine.high <= limit)
    result = result_of(mine, *((mine.high < limit, mine.low >= limit) if less else ends))
    return _part(what, f"{'<' if less else '>'} {limit:.4g}", mine, result)


def _part(
    what: str, stated: str, mine: Interval, result: Result, *, is_number: bool = False
) -> Part:
    """Return a part about an index, with four digits, since all are near 1."""
    measured = f"{mine.mean:.4f} ± {mine.half:.4f}"
    brief = f"{mine.mean:.4f}"
    return Part(what, stated, measured, result, mine, brief=brief, is_number=is_number)


def uniform_ewfq(runs: Runs) -> list[Part]:
    """C1: EWFQ's index in the Uniform network, at least as fair as stated.

    Fails and passes wrongly: as `_index`.
    """
    return [_index("EWFQ", _of_nodes(runs, "Uniform", "ewfq"), 0.9999, least=True)]


def uniform_wfq(runs: Runs) -> list[Part]:
    """C2: WFQ's index in the Uniform network: fair with even buffers, less with others.

    Fails and passes wrongly: as `_index`.
    """
    even, uneven = (_of_nodes(runs, "Uniform", one) for one in ("wfq", "wfq_varied"))
    return [
        _index("even", even, 0.9998, least=True).with_ns2("1.0000"),
        _index("15/5/10 kB", uneven, 0.9963).with_ns2("0.9998"),
    ]


def varied_ewfq(runs: Runs) -> list[Part]:
    """C3: EWFQ's index in the Varied network, and its order with WFQ.

    Fails and passes wrongly: as `_index`; the orders have parts of their own.
    """
    ours = _of_nodes(runs, "Varied", "ewfq")
    return [
        _index("EWFQ", ours, 0.9978),
        *(
            order(f"{NAMES[one]} less fair than EWFQ", _of_nodes(runs, "Varied", one), ours)
            for one in ("wfq", "wfq_varied")
        ),
    ]


def small_buffers(runs: Runs) -> list[Part]:
    """C7: EWFQ's index at 10 kB and at 5 kB.

    Fails and passes wrongly: as `_above`; the number of TCPs per source is a setting.
    """
    return [
        _above("index at 10 kB", _at(runs, "jain", "ewfq", 10), 1 - NEAR),
        _above("index at 5 kB", _at(runs, "jain", "ewfq", 5), 0.98),
    ]


def _of_nodes(runs: Runs, name: str, scheme: str) -> npt.NDArray[Any]:
    return values(runs["nodes"], "jain", network=name, qdisc=scheme)


def varied_wfq(runs: Runs) -> list[Part]:
    """C4: the two allocations, and their order.

    Fails and passes wrongly: as `_index`; the order has a part of its own.
    """
    even, uneven = (_of_nodes(runs, "Varied", one) for one in ("wfq", "wfq_varied"))
    return [
        _index("15/5/10 kB", uneven, 0.9765).with_ns2("0.9849"),
        _index("even", even, 0.9733).with_ns2("0.9782"),
        order("even less fair than 15/5/10 kB", even, uneven),
    ]


def _at(runs: Runs, what: str, scheme: str, kb: int) -> npt.NDArray[Any]:
    return values(runs["sweep"], what, qdisc=scheme, kb=kb)


def ratio(runs: Runs) -> list[Part]:
    """C5: the bandwidth of the 8 ms flow over the 404 ms flow's, paired by seed.

    Fails wrongly: at 5 kB a class holds one packet, and whether the packet at the head counts
    doubles or halves the ratio (`ns2_fq`). Passes wrongly: for the same reason.
    """
    ratio = _at(runs, "s1", "wfq", 5) / _at(runs, "s4", "wfq", 5)
    return [number("s1 over s4, 5 kB", ratio, 10).with_ns2("5.4 (one more packet per class)")]


def only_above(runs: Runs) -> list[Part]:
    """C6: not near 1 at 90 kB, near at 150, where the flows still differ.

    Fails wrongly: if "near 1" is meant more loosely than 0.005. Passes wrongly: a spread at 150 kB
    is any significant one; its size is printed.
    """
    return [
        _above("index at 90 kB", _at(runs, "jain", "wfq", 90), 1 - NEAR, less=True)
        .with_ns2("0.9936"),
        _above("index at 150 kB", _at(runs, "jain", "wfq", 150), 1 - NEAR).with_ns2("0.9978"),
        order("150 kB: s4 has less than UDP", _at(runs, "s4", "wfq", 150),
              _at(runs, "s5", "wfq", 150), unit="Mbit/s"),
    ]  # fmt: skip


def less_in_small(runs: Runs) -> list[Part]:
    """C8: the order at buffers of up to 10 kB.

    Fails wrongly: with other numbers of TCPs, which the paper does not state (a setting). Passes
    wrongly: on a difference that is significant but invisible in the paper's figure.
    """
    small = [kb for kb in JUDGED["ewfq"] if kb <= 10]
    both = (((_at(runs, "total", one, kb) for one in ("ewfq", "wfq")), kb) for kb in small)
    return [order(f"EWFQ below WFQ, {kb} kB", *pair, unit="Mbit/s") for pair, kb in both]


def more_in_large(runs: Runs) -> list[Part]:
    """C9: equal totals at 30 kB, more with EWFQ above.

    Fails wrongly: where both fill the link, neither can be ahead; UDP below its share leaves room
    (a setting). Passes wrongly: as C8.
    """
    ours, theirs = (_at(runs, "total", one, 30) for one in ("ewfq", "wfq"))
    return [
        equal("30 kB", ours, theirs, points=POINTS_MBPS, unit="Mbit/s"),
        *(
            order(f"WFQ below EWFQ, {kb} kB", _at(runs, "total", "wfq", kb),
                  _at(runs, "total", "ewfq", kb), unit="Mbit/s")
            for kb in (90, 150)
        ),
    ]  # fmt: skip


def five_times(runs: Runs) -> list[Part]:
    """C10: 150 kB of WFQ against 30 kB of EWFQ; and the buffer that WFQ needs to match EWFQ.

    The buffer needed is found for each seed. Fails wrongly: indices near 1 differ by less than the
    noise, so that the needed buffer is noisy; its interval is printed. Passes wrongly: the sizes
    are 15 to 30 kB apart, up to a fifth of 150 kB.
    """
    index = paired(_at(runs, "jain", "wfq", 150), _at(runs, "jain", "ewfq", 30))
    difference = f"WFQ minus EWFQ {index.mean:+.4f} ± {index.half:.4f}"
    wide = max(abs(index.low), abs(index.high))
    outside = index.low > NEAR or index.high < -NEAR
    near = result_of(index, wide <= NEAR, outside)
    return [
        Part("index, WFQ 150 kB and EWFQ 30 kB", "equal (within 0.005)", difference, near, index,
             brief=f"index {index.mean:+.4f}"),
        equal("total, WFQ 150 kB and EWFQ 30 kB", _at(runs, "total", "wfq", 150),
              _at(runs, "total", "ewfq", 30), points=POINTS_MBPS, unit="Mbit/s"),
        number("smallest buffer of WFQ with index and total of EWFQ at 30 kB, over 30 kB",
               _needed(runs) / 30, 5),
    ]  # fmt: skip


def _needed(runs: Runs) -> npt.NDArray[Any]:
    """Return for each seed the smallest buffer (kB) at which WFQ reaches EWFQ's at 30 kB.

    NaN if none does.
    """
    sizes = JUDGED["wfq"]
    reached = [
        np.all(
            [_at(runs, what, "wfq", kb) >= _at(runs, what, "ewfq", 30) for what in AGAINST], axis=0
        )
        for kb in sizes
    ]
    return np.array([
        next((kb for kb, one in zip(sizes, reached, strict=True) if one[i]), np.nan)
        for i in range(len(reached[0]))
    ])  # fmt: skip


AGAINST = ("jain", "total")
POINTS_MBPS = 0.3
"""Three points of 10 Mbit/s."""


def single(runs: Runs) -> list[Part]:
    """C11: a queue of one packet, and both drop rates, at P = 50.

    Fails wrongly: the formulas are for large P. Passes wrongly: 20 % of R separates 0.75 from 1 by
    little; the tail drop part is judged in points.
    """
    frame, p = runs["single"], 50
    return [
        number("tail drop: rate / R", values(frame, "window", case="tail", P=p) / p, 0.75,
               points=0.03),
        number("tail drop: drop rate over 1 / (3/8 P²)",
               values(frame, "loss", case="tail", P=p) * p**2 * 3 / 8, 1),
        number("random at 1 / (3/8 P²): rate / R", values(frame, "window", case="3/8", P=p) / p,
               0.75),
        number("random at 1 / (2/3 P²): rate / R", values(frame, "window", case="2/3", P=p) / p,
               1),
    ]  # fmt: skip


def classes(runs: Runs) -> list[Part]:
    """C12: at n² d the class gets its share at any n; at d or n d it gets more (n = 8).

    Fails wrongly: at high drop rates timeouts reduce the rate. Passes wrongly: at n = 1 all three
    rules are the same, so the others must fail at n = 8.
    """
    frame = runs["classes"]

    def share(law: str, n: int) -> npt.NDArray[Any]:
        return values(frame, "window", law=law, n=n) / 100

    return [
        *(number(f"n² d, n = {n}: bandwidth / share", share("n² d", n), 1) for n in MEMBERS),
        *(
            bound(f"{law}, n = 8: bandwidth / share", share(law, 8), ">", 1.2)
            for law in ("d", "n d")
        ),
    ]
