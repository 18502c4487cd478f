"""Rules of the claims of the paper on HRED, fixed before the runs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sojourn.result.statistics import Interval, paired
from sojourn_lab.papers.hred.common import NAMES
from sojourn_lab.reproduction.claims import NoRunsError, Runs, mean, values
from sojourn_lab.reproduction.parts import (
    POINTS,
    Part,
    bound,
    equal,
    monotone,
    number,
    order,
    result_of,
    shape,
    with_interval,
)

if TYPE_CHECKING:
    import polars as pl

NS2 = {
    ("red", 100): (0.228, 0.137, 0.0111),
    ("red", 300): (0.457, 0.067, 0.0597),
    ("red", 600): (0.574, 0.039, 0.155),
    ("pi", 100): (0.378, 0.124, 0.0085),
    ("pi", 300): (0.461, 0.089, 0.0607),
    ("pi", 600): (0.975, 0.024, 0.152),
    ("rem", 100): (0.376, 0.236, 0.0089),
    ("rem", 300): (0.361, 0.092, 0.0650),
    ("rem", 600): (0.335, 0.086, 0.164),
    ("avq", 100): (0.352, 0.168, 0.0146),
    ("avq", 300): (0.106, 0.032, 0.0894),
    ("avq", 600): (0.049, 0.012, 0.185),
    ("droptail", 100): (0.756, 0.173, 0.0111),
    ("droptail", 300): (0.953, 0.042, 0.0605),
    ("droptail", 600): (0.989, 0.011, 0.158),
}
"""By discipline and T: normalised mean and deviation of the queue, loss; 300 kB, means of three
runs of ns-2."""

BUFFERS = (300, 500)
OTHERS = ("red", "blue", "pi", "rem", "hred")
RESPONDING = ("blue", "pi", "avq", "hred")
RULES = ("red", "blue", "pi", "rem", "avq", "hred")
BAND = 0.125
"""Half the width of the band from min_th to max_th, as a share of the buffer."""

LIGHT, MID, HEAVY = 100, 300, 600

OF_B: dict[str, Any] = {"unit": "% of B", "scale": 100}
"""Format of queues: in per cent of the buffer."""

PERCENT: dict[str, Any] = {"unit": "%", "scale": 100}
"""Format of shares."""


def averaged(frame: "pl.DataFrame", column: str, **labels: Any) -> npt.NDArray[Any]:
    """Return for each seed the mean of a column over all points with these labels."""
    import polars as pl

    chosen = frame.filter(*(pl.col(name) == value for name, value in labels.items()))
    means = chosen.group_by("seed").agg(pl.col(column).mean()).sort("seed")
    return means[column].to_numpy()


def places(frame: "pl.DataFrame", x: str, **labels: Any) -> list[Any]:
    """Return the values of the axis `x` at which there are runs with these labels.

    Raises NoRunsError if there are none.
    """
    import polars as pl

    chosen = frame.filter(*(pl.col(name) == value for name, value in labels.items()))
    if not len(chosen):
        raise NoRunsError(f"no runs with {labels}")
    return sorted(chosen[x].unique().to_list())


def below(
    what: str, frame: "pl.DataFrame", x: str, column: str, less: str, more: str, **labels: Any
) -> Part:
    """Return the part: one discipline is below another on average over `x`, and nowhere above.

    Fails wrongly: one place where the order is reversed fails it. Passes wrongly: on a difference
    that is significant but too small to matter.
    """
    part = order(
        what,
        averaged(frame, column, qdisc=less, **labels),
        averaged(frame, column, qdisc=more, **labels),
        **(OF_B if column in ("mean", "std") else {"unit": "s"}),
    )
    against = [
        place
        for place in places(frame, x, qdisc=less, **labels)
        if paired(
            values(frame, column, qdisc=more, **labels, **{x: place}),
            values(frame, column, qdisc=less, **labels, **{x: place}),
        ).high
        < 0
    ]
    if not against:
        return part
    text = f"{part.measured}; above it at {x} {', '.join(str(one) for one in against)}"
    return replace(part, result="fails", measured=text)


def not_below(what: str, gap: Interval, text: str, stated: str = "so") -> Part:
    """Compare a paired difference with 0: undecided if its interval straddles 0."""
    return Part(what, stated, text, result_of(gap, gap.low >= 0, gap.high < 0), gap, brief=text)


def farthest(
    what: str, frame: "pl.DataFrame", x: str, column: str, stated: float, **labels: Any
) -> Part:
    """Compare a stated number with the mean over `x` that has the largest error, in points of B."""
    by_place = {
        place: values(frame, column, **labels, **{x: place}) for place in places(frame, x, **labels)
    }
    worst = max(by_place, key=lambda place: abs(float(by_place[place].mean()) - stated))
    what = f"{what}, largest error at {x} {worst}"
    return number(what, by_place[worst], 100 * stated, points=POINTS, **OF_B)


def largest(frame: "pl.DataFrame", column: str, x: Sequence[str]) -> npt.NDArray[Any]:
    """Return the values over seeds of the point, by the labels `x`, with the largest mean."""
    import polars as pl

    means = frame.group_by(list(x)).agg(pl.col(column).mean()).sort(column)
    top = means.row(-1, named=True)
    return values(frame, column, **{name: top[name] for name in x})


def hred_holds_the_middle(runs: Runs) -> list[Part]:
    """C1: one part for each buffer.

    Fails wrongly: if the paper measured the mean over a time in which the queue had not settled.
    Passes wrongly: a fifth of 37.5 % would accept 44.7 %, so the tolerance is 3 points of B.
    """
    frame = runs["sweep"]
    return [
        farthest(f"{b} kB", frame, "T", "mean", 0.375, qdisc="hred", buffer=b)
        for b in places(frame, "buffer", qdisc="hred")
    ]


def hred_varies_little(runs: Runs) -> list[Part]:
    """C2: small everywhere, less with T, less with B.

    Fails wrongly: the smallest buffer, 200 kB, is our choice; without it is a setting. Passes
    wrongly: "small" is half the width of the band, which a queue that leaves the band half of the
    time can have.
    """
    import polars as pl

    frame = runs["sweep"].filter(pl.col("qdisc") == "hred")
    most = largest(frame, "std", ["buffer", "T"])
    parts = [bound("largest of all", most, "<", 100 * BAND, **OF_B)]
    sizes = places(frame, "buffer")
    for b in sizes:
        ends = (values(frame, "std", buffer=b, T=t) for t in (HEAVY, LIGHT))
        parts.append(order(f"T 600 below T 100, {b} kB", *ends, **OF_B))
    for t in (LIGHT, MID, HEAVY):
        ends = (values(frame, "std", buffer=b, T=t) for b in (sizes[-1], sizes[0]))
        parts.append(order(f"{sizes[-1]} kB below {sizes[0]} kB, T {t}", *ends, **OF_B))
    return parts


def red_grows(runs: Runs) -> list[Part]:
    """C3: a straight line through the means.

    Fails wrongly: a fit through six means fails on one bend, such as where gentle mode begins.
    Passes wrongly: R² is high for any smooth rise; growth at every step is a part of its own.
    """
    frame, parts = runs["sweep"], []
    for b in BUFFERS:
        at = places(frame, "T", qdisc="red")
        means = [mean(frame, "mean", qdisc="red", buffer=b, T=t) for t in at]
        fit = float(np.corrcoef(at, means)[0, 1] ** 2)
        text = f"R² = {fit:.3f}; {means[0]:.3f} at T {at[0]}, {means[-1]:.3f} at T {at[-1]}"
        part = shape(f"{b} kB: straight", fit > 0.95, text, "R² > 0.95")
        parts.append(part.with_ns2("R² = 0.925; 0.228, 0.574") if b == 300 else part)
        each = [values(frame, "mean", qdisc="red", buffer=b, T=t) for t in at]
        parts.append(monotone(f"{b} kB: rises", each, **OF_B))
    return parts


def red_varies_less(runs: Runs) -> list[Part]:
    """C4: below three others, for both buffers.

    Fails wrongly: one load at which the order is reversed fails a part that holds on average.
    Passes wrongly: as `below`.
    """
    return [
        below(f"RED below {NAMES[one]}, {b} kB", runs["sweep"], "T", "std", "red", one, buffer=b)
        for b in BUFFERS
        for one in ("blue", "pi", "rem")
    ]


def blue_is_arbitrary(runs: Runs) -> list[Part]:
    """C5: the mean varies with T by more than the band; the deviation is above HRED's.

    Fails wrongly: if Blue had settled before the measurement; it has not after 150 s. Passes
    wrongly: a queue that is full at one load and empty at another is "arbitrary" for any reason.
    """
    frame, parts = runs["sweep"], []
    for b in BUFFERS:
        at = places(frame, "T", qdisc="blue")
        each = [averaged(frame, "mean", qdisc="blue", buffer=b, T=t) for t in at]
        width = np.max(each, axis=0) - np.min(each, axis=0)
        what = f"mean queue, maximum minus minimum over T, {b} kB"
        parts.append(bound(what, width, ">", 200 * BAND, **OF_B))
        what = f"HRED's deviation below Blue's, {b} kB"
        parts.append(below(what, frame, "T", "std", "hred", "blue", buffer=b))
    return parts


def integrators_hold_the_mean(runs: Runs) -> list[Part]:
    """C6: the mean at three eighths, the deviation not below Blue's.

    Fails wrongly: PIC starts with a drop probability of 0, so the warm-up decides (a setting).
    Passes wrongly: the mean over T hides a load at which the deviation is below Blue's.
    """
    frame, parts = runs["sweep"], []
    for b in BUFFERS:
        for one in ("pi", "rem"):
            what = f"{NAMES[one]}, {b} kB"
            part = farthest(f"mean queue of {what}", frame, "T", "mean", 0.375, qdisc=one, buffer=b)
            worst = int(part.what.rsplit(" ", 1)[1])
            ns2 = NS2.get((one, worst)) if b == 300 else None
            parts.append(part.with_ns2(f"{100 * ns2[0]:.1f}") if ns2 else part)
            blue = averaged(frame, "std", qdisc="blue", buffer=b)
            gap = paired(100 * averaged(frame, "std", qdisc=one, buffer=b), 100 * blue)
            text = f"minus Blue's: {with_interval(gap, '% of B')}"
            parts.append(not_below(f"deviation of {what}", gap, text, "not below Blue's"))
    return parts


def rem_swings(runs: Runs) -> list[Part]:
    """C7: the largest deviation at mid load, over the whole buffer; a short queue at light load.

    Fails wrongly: the extremes of 50 s depend on single bursts. Passes wrongly: the order alone
    would hold for a queue that barely moves; the extremes are parts of their own.
    """
    frame = runs["rem"]
    std = {t: values(frame, "std", T=t) for t in (LIGHT, MID, HEAVY)}
    return [
        order("deviation at T 100 below T 300", std[LIGHT], std[MID], **OF_B),
        order("deviation at T 600 below T 300", std[HEAVY], std[MID], **OF_B),
        bound("smallest queue at T 300", values(frame, "least", T=MID), "<", 5, **OF_B),
        bound("largest queue at T 300", values(frame, "most", T=MID), ">", 95, **OF_B),
        bound("time below 300 kB, T 100", values(frame, "below_60", T=LIGHT), ">", 75, **PERCENT),
    ]


def small_gamma(runs: Runs) -> list[Part]:
    """C8: at some smaller gamma the deviation is PIC's.

    Fails wrongly: if the gammas run are too coarse. Passes wrongly: the best of several gammas is
    chosen, which favours agreement; the interval must be within 20 % too.
    """
    frame, parts = runs["gamma"], []
    for t in (LIGHT, MID):
        theirs = values(runs["sweep"], "std", qdisc="pi", buffer=500, T=t)
        each = {g: values(frame, "std", gamma=g, T=t) for g in places(frame, "gamma") if g < 0.001}
        near = min(each, key=lambda g: abs(each[g].mean() - theirs.mean()))
        what = f"REM's and PIC's deviation, T {t}, closest at gamma {near:g}"
        parts.append(equal(what, each[near], theirs, within=0.20, **OF_B))
    return parts


def avq_is_short(runs: Runs) -> list[Part]:
    """C9: the smallest queue; a large deviation at light load with any buffer.

    Fails wrongly: "not cured by buffer" may be meant in bytes; as a share of the buffer it falls (a
    setting). Passes wrongly: as `below`.
    """
    frame, parts = runs["sweep"], []
    for b in BUFFERS:
        for one in OTHERS:
            what = f"mean queue below {NAMES[one]}'s, {b} kB"
            parts.append(below(what, frame, "T", "mean", "avq", one, buffer=b))
        std = {t: values(frame, "std", qdisc="avq", buffer=b, T=t) for t in (LIGHT, HEAVY)}
        what = f"deviation at T 600 below T 100, {b} kB"
        parts.append(order(what, std[HEAVY], std[LIGHT], **OF_B))
    small, wide = (100 * values(frame, "std", qdisc="avq", buffer=b, T=LIGHT) for b in BUFFERS)
    gap = paired(wide, small)
    text = (
        f"{wide.mean():.1f} with 500 kB against {small.mean():.1f}; difference {with_interval(gap)}"
    )
    parts.append(not_below("deviation at T 100 not smaller with more buffer", gap, text))
    return parts


def losses(runs: Runs) -> list[Part]:
    """C10: the smallest and the largest loss rate of all disciplines.

    Fails wrongly: the paper rounds the smallest to one digit. Passes wrongly: the extremes of many
    points are biased outwards; both are means over seeds.
    """
    import polars as pl

    frame, keys = runs["sweep"], ["qdisc", "buffer", "T"]
    least = -largest(frame.with_columns(-pl.col("loss")), "loss", keys)
    return [
        number("smallest loss", least, 0.5, **PERCENT).with_ns2("0.85 (PIC, 300 kB)"),
        bound("largest loss", largest(frame, "loss", keys), ">", 10, **PERCENT).with_ns2(
            "18.5 (AVQ)"
        ),
    ]


def quiet_without_web(runs: Runs) -> list[Part]:
    """C11: the deviation of each discipline with FTPs alone.

    Fails wrongly: if the paper had other FTPs than 300. Passes wrongly: the bound is loose for most
    disciplines; it is the paper's.
    """
    ns2 = {"red": "7.2", "pi": "7.7", "avq": "4.2"}
    return [
        bound(NAMES[one], values(runs["web"], "std", qdisc=one, web=0), "<", 11, **OF_B).with_ns2(
            ns2.get(one, "")
        )
        for one in ("red", "blue", "pi", "avq", "hred")
    ]


def order_with_web(runs: Runs) -> list[Part]:
    """C12: AVQ, then RED and HRED, then Blue and PIC.

    Fails wrongly: as `below`. Passes wrongly: as `below`.
    """
    import polars as pl

    frame = runs["web"].filter(pl.col("web") > 0)
    pairs = [("avq", "red"), ("avq", "hred")]
    pairs += [(good, bad) for good in ("red", "hred") for bad in ("blue", "pi")]
    return [below(f"{NAMES[a]} below {NAMES[b]}", frame, "web", "std", a, b) for a, b in pairs]


def after_web_starts(runs: Runs) -> list[Part]:
    """C13: HRED stays in its band, Blue's and PIC's deviations are above 1.5 times HRED's.

    Fails wrongly: "swing" may be meant for a trace, not for the deviation over 100 s. Passes
    wrongly: a queue that drifts without swinging has a large deviation too.
    """
    frame = runs["web_on"]
    hred = values(frame, "std", qdisc="hred")
    stays = values(frame, "in_band", qdisc="hred")
    return [
        bound("HRED: time in the band", stays, ">", 75, **PERCENT),
        *(
            order(f"1.5 HRED's deviation below {NAMES[one]}'s", 1.5 * hred, theirs, **OF_B)
            for one, theirs in ((one, values(frame, "std", qdisc=one)) for one in ("blue", "pi"))
        ),
    ]


STATED_SHARES = {"red": 76.9, "blue": 73.8, "pi": 76.2, "avq": 89.7, "hred": 76.0, "droptail": 91.6}


def short_paths_get_more(runs: Runs) -> list[Part]:
    """C14: the shares; AVQ's and tail drop's are above the randomised AQMs'.

    Fails wrongly: the buffer of table 2 is not stated (a setting), nor are access links, which
    decide under tail drop. Passes wrongly: a fifth of 91.6 % would accept any share up to 100, so
    the tolerance is 3 points.
    """
    frame = runs["shares"]
    parts = [
        number(NAMES[one], values(frame, "share", qdisc=one), stated, points=POINTS, **PERCENT)
        for one, stated in STATED_SHARES.items()
    ]
    randomised = [values(frame, "share", qdisc=one) for one in ("red", "blue", "pi", "hred")]
    for one in ("avq", "droptail"):
        what = f"largest of RED, Blue, PIC, HRED below {NAMES[one]}"
        theirs = values(frame, "share", qdisc=one)
        parts.append(order(what, np.max(randomised, axis=0), theirs, **PERCENT))
    return parts


def full_use(runs: Runs) -> list[Part]:
    """C15: all goodput over the rate.

    Fails wrongly: "goodput" may be the utilisation of the link, without retransmissions subtracted
    (a setting). Passes wrongly: cannot: the whole interval must be above 99 %.
    """
    return [
        bound(NAMES[one], values(runs["shares"], "goodput", qdisc=one), ">", 99, **PERCENT)
        for one in STATED_SHARES
    ]
