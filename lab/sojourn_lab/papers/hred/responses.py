"""Rules of the claims of the paper on HRED about changes of load, the testbed and stability."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from sojourn_lab.papers.hred.checks import (
    BAND,
    OF_B,
    PERCENT,
    RESPONDING,
    RULES,
    averaged,
    below,
    largest,
    places,
)
from sojourn_lab.papers.hred.common import NAMES
from sojourn_lab.papers.hred.theory import largest_change, smallest_stable_buffer
from sojourn_lab.reproduction.claims import Runs, mean, values
from sojourn_lab.reproduction.parts import Part, bound, exact, order, shape, short

if TYPE_CHECKING:
    import polars as pl


def answers_to_a_rise(runs: Runs) -> list[Part]:
    """C16: Blue overflows, PIC leaves its target for some time, AVQ and HRED do not.

    Fails wrongly: one second with a burst counts as away. Passes wrongly: if PIC had not reached
    its target before the step; then it cannot leave it (see C6).
    """
    frame = runs["step"]
    away = {one: values(frame, "away_up_s", qdisc=one, size=30) for one in ("pi", "avq", "hred")}
    top = values(frame, "most", qdisc="blue", size=30)
    return [
        bound("Blue: largest queue", top, ">", 98, **OF_B),
        bound("PIC: seconds away from its mean", away["pi"], ">", 5, unit="s"),
        bound("AVQ: seconds away from its mean", away["avq"], "<", 2, unit="s"),
        bound("HRED: seconds away from its mean", away["hred"], "<", 2, unit="s"),
    ]


def use_after_a_fall(runs: Runs) -> list[Part]:
    """C17: Blue and PIC below AVQ and HRED, which keep full utilisation.

    Fails wrongly: a PIC whose queue is still full at the step cannot lose utilisation (a setting).
    Passes wrongly: on a difference of hundredths of a point that is significant; so it must exceed
    0.1 points.
    """
    frame = runs["step"]
    used = {one: values(frame, "used_after", qdisc=one, size=30) for one in RESPONDING}
    parts = [
        order(f"{NAMES[a]} more than 0.1 points below {NAMES[b]}", used[a] + 0.001, used[b],
              **PERCENT)
        for a in ("blue", "pi")
        for b in ("avq", "hred")
    ]  # fmt: skip
    return parts + [bound(NAMES[one], used[one], ">", 97, **PERCENT) for one in ("avq", "hred")]


def response_times(runs: Runs) -> list[Part]:
    """C18: short and flat for AVQ and HRED, rising for PIC, irregular for Blue.

    The response ends when the deviation over 5 s, about the mean before the change, is below 1.5
    times the one before it. About its own mean a queue that is constant at a wrong level would have
    responded at once. Fails wrongly: "short" and "independent of the step" may allow a rise of a
    second over the sizes; flat is therefore below 1 s per 10 %. Passes wrongly: a response that
    does not end before the next change counts as the whole 50 s. Parts that only such times would
    decide are undecided.
    """
    import polars as pl

    both = (pl.col("rise_about_s") + pl.col("fall_about_s")) / 2
    frame = runs["step"].with_columns(both=both)
    parts = [
        below(f"{NAMES[a]} below {NAMES[b]}", frame, "size", "both", a, b)
        for a in ("avq", "hred")
        for b in ("blue", "pi")
    ]
    sizes = places(frame, "size")
    for one in ("avq", "hred", "pi"):
        for way in ("rise", "fall"):
            each = np.array([_times(frame, one, way, size) for size in sizes])
            what = f"{NAMES[one]}, {way}: slope over the size of the step"
            if _all_cut(frame, each):
                parts.append(shape(what, None, "all times are cut at 50 s", undecided=True))
                continue
            slope = np.round(np.polyfit(sizes, each, 1)[0] * 10, 9)  # of a constant: exactly 0
            relation: Literal["<", ">"] = ">" if one == "pi" else "<"
            parts.append(bound(what, slope, relation, 0 if one == "pi" else 1, unit="s per 10 %"))
    return parts + [_irregular(frame, way, sizes) for way in ("rise", "fall")]


def _times(frame: "pl.DataFrame", name: str, way: str, size: int) -> npt.NDArray[Any]:
    """Return the response times of one discipline to one step, by seed."""
    return values(frame, f"{way}_about_s", qdisc=name, size=size)


def _all_cut(frame: "pl.DataFrame", times: npt.NDArray[Any]) -> bool:
    """Return True if no response has ended before the next change."""
    return bool((times >= float(frame["cut_s"].to_numpy()[0])).all())


def _irregular(frame: "pl.DataFrame", way: str, sizes: Sequence[int]) -> Part:
    """Return the part: Blue's times differ between seeds by more than half of their mean.

    At one size at least. Undecided if all times are cut.
    """
    each = {size: _times(frame, "blue", way, size) for size in sizes}
    cut = float(frame["cut_s"].to_numpy()[0])
    spread = {size: float(np.ptp(times) / max(times.mean(), 1)) for size, times in each.items()}
    widest = max(sizes, key=lambda size: spread[size])
    texts = ["cut" if one >= cut else f"{short(float(one))} s" for one in each[widest]]
    text = f"{', '.join(texts)} for {widest} %"
    what = f"Blue, {way}: irregular"
    if _all_cut(frame, np.array(list(each.values()))):
        text = f"all times are cut at {cut:g} s"
        return shape(what, None, text, "differs between seeds", undecided=True)
    return shape(what, spread[widest] > 0.5, text, "differs between seeds by half its mean")


def gateway_use(runs: Runs) -> list[Part]:
    """C19: full utilisation except RED with few flows; RED and AVQ have the highest loss.

    Fails wrongly: the lowest of several points is biased downwards; its interval must be above 97
    %. Passes wrongly: RED may lack utilisation for another reason than the testbed's integer
    arithmetic.
    """
    frame, parts = runs["testbed"], []
    for one in RULES:
        at = places(frame, "flows", qdisc=one)
        if one == "red":
            for x in (x for x in at if x < 70):
                used = values(frame, "utilisation", qdisc=one, flows=x)
                parts.append(bound(f"RED, {x} flows", used, "<", 97, **PERCENT))
            continue
        worst = min(at, key=lambda x: mean(frame, "utilisation", qdisc=one, flows=x))
        used = values(frame, "utilisation", qdisc=one, flows=worst)
        what = f"{NAMES[one]}, lowest at {worst} flows"
        parts.append(bound(what, used, ">", 97, **PERCENT))
    rest = [averaged(frame, "loss", qdisc=one) for one in ("blue", "pi", "rem", "hred")]
    for one in ("red", "avq"):
        what = f"loss: largest of the others below {NAMES[one]}"
        more = averaged(frame, "loss", qdisc=one)
        parts.append(order(what, np.max(rest, axis=0), more, **PERCENT))
    return parts


def stability(runs: Runs) -> list[Part]:
    """C20: the bounds by their formulas; within them the deviation stays in the band.

    Fails wrongly: the deviation is no proof of instability. Passes wrongly: the bound is
    sufficient, not necessary: a system is also stable outside of it.
    """
    import polars as pl

    parts = [
        exact(f"smallest stable B / CR, kappa 2, max_th {name}", smallest_stable_buffer(high, 2),
              stated, within=0.001)
        for name, high, stated in (("B/2", 1 / 2, 4 / 7), ("3B/4", 3 / 4, 4 / 11))
    ]  # fmt: skip
    cuts = {
        ratio: 1 - largest_change(ratio, 0.75) / largest_change(ratio, 0.5)
        for ratio in (0.0, 675 / 500, 675 / 300)
    }
    text = ", ".join(f"{100 * cut:.1f} % at CR/B {ratio:g}" for ratio, cut in cuts.items())
    what = "max_th from B/2 to 3B/4 reduces the largest change by"
    parts.append(shape(what, max(cuts.values()) > 2 / 3 + 1e-9, text, "more than two thirds"))
    frame = runs["bound"]
    inside = frame.filter(pl.col("ratio") >= 4 / (4 * pl.col("kappa") - 1) - 1e-3)
    worst = largest(inside, "std", ["kappa", "ratio"])
    what = "largest deviation with B within the bound"
    parts.append(bound(what, worst, "<", 100 * BAND, **OF_B))
    return parts
