"""Rules of the claims of `codel_dc` about the model and queries, fixed before the runs."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
import polars as pl

from sojourn_lab.papers.codel_dc.ns2 import (
    NS2_INCAST,
    NS2_POISSON,
    NS2_TARGETS,
    NS2_VARY,
    faster,
    util,
)
from sojourn_lab.papers.codel_dc.series import best, model, times
from sojourn_lab.reproduction.claims import Runs, mean, values
from sojourn_lab.reproduction.parts import Part, bound, equal, exact, monotone, number, order, shape

NAMES = {"droptail": "DropTail", "red": "RED", "codel": "CoDel"}


def model_values(_: Runs) -> list[Part]:
    """C2: equation 7 at a target of one round trip and of half a round trip.

    Fails wrongly: cannot, a formula has no random error. Passes wrongly: it tests the algebra
    alone; C3 compares it with a simulation.
    """
    return [
        exact("U(T)", 100 * model(1), 100, unit="%", within=1e-4),
        exact("U(T/2)", 100 * model(0.5), 100 * 23 / 24, unit="%", within=1e-4),
    ]


def at_half_a_round_trip(runs: Runs) -> list[Part]:
    """C3: within one point of the stated 96 %, and above the model.

    Fails wrongly: if packets in flight outside the port count towards the paper's round trip.
    Passes wrongly: at 3 points any utilisation from 93 to 99 % would agree, so it is 1 point.
    """
    utilisation = values(runs["targets"], "utilisation", target=0.15, flows=1)
    ns2 = f"{NS2_TARGETS[0.15]:.1f} %"
    return [
        number("at 150 us", utilisation, 96, unit="%", points=1, scale=100).with_ns2(ns2),
        bound("above the model", utilisation, ">", 100 * 23 / 24, unit="%", scale=100).with_ns2(
            ns2
        ),
    ]


def saturates(runs: Runs) -> list[Part]:
    """C4: where one flow's utilisation stops rising with the target, and that delay does not.

    Fails wrongly: on a step between neighbouring targets that is smaller than the noise. Passes
    wrongly: if utilisation still rose above 300 us by less than the tolerance of half a point.
    """
    one = runs["targets"].filter(pl.col("flows") == 1)
    targets = sorted(one["target"].unique().to_list())
    use = {t: values(one, "utilisation", target=t) for t in targets}
    queue = {t: values(one, "queue_packets", target=t) for t in targets}
    rising = [use[t] for t in targets if t <= 0.3]
    beyond = [t for t in targets if t > 0.3]
    ns2 = f"{NS2_TARGETS[0.01]:.1f} to {NS2_TARGETS[0.3]:.1f} %"
    rises = monotone("utilisation rises up to 300 us", rising, unit="%", scale=100)
    return [
        rises.with_ns2(ns2),
        *(
            equal(f"{t * 1000:.0f} us: utilisation as at 300 us", use[t], use[0.3], points=0.5,
                  unit="%", scale=100)
            for t in beyond
        ),
        monotone("above, the queue grows", [queue[t] for t in (0.3, *beyond)], unit="packets"),
    ]  # fmt: skip


def by_interval(runs: Runs) -> list[Part]:
    """C5: the smallest interval against the largest, and the trend of the queue in between.

    Fails wrongly: if one seed has no drop within the run, which counts as at its end. Passes
    wrongly: rank correlation ignores how much the queue grows; the ends are a part of their own.
    """
    frame, burst = runs["intervals"], runs["first drops"]
    spans = sorted(frame["interval"].unique().to_list())
    queue = [mean(frame, "queue_packets", interval=t) for t in spans]
    ranks = np.argsort(np.argsort(queue))
    rank = float(np.corrcoef(np.arange(len(spans)), ranks)[0, 1])
    ends = {"interval": spans[0]}, {"interval": spans[-1]}
    return [
        order(
            "time of the first drop after a query: smallest interval below largest",
            *(values(burst, "first_drop_ms", **at) for at in ends),
            unit="ms",
        ),
        order(
            "mean queue: smallest interval below largest",
            *(values(frame, "queue_packets", **at) for at in ends),
            unit="packets",
        ),
        shape("the queue grows with the interval", rank >= 0.8, f"{rank:.2f}", "rank corr. >= 0.8"),
    ]


def _bounds(
    runs: Runs,
    what: str,
    relation: Literal["<", ">"],
    percent: float,
    schemes: Iterable[str],
    ns2: Callable[[tuple[float, ...]], str],
) -> list[Part]:
    """Compare a column with a bound for each discipline and size, with ns-2's result.

    Fails wrongly: if the mean includes the time between queries, during which the long flow alone
    decides (the pause is a setting). Passes wrongly: the same, for a long pause.
    """
    return [
        bound(
            f"{NAMES[s]}, {kb} kB",
            values(runs["incast"], what, scheme=s, kB=kb),
            relation,
            percent,
            unit="%",
            scale=100,
        ).with_ns2(ns2(NS2_INCAST[s, kb]))
        for s in schemes
        for kb in (10, 50, 100)
    ]


def busy(runs: Runs) -> list[Part]:
    """C6: utilisation of the port above 98 % for each discipline and size.

    Fails and passes wrongly: as `_bounds`.
    """
    return _bounds(runs, "utilisation", ">", 98, NAMES, util)


def largest_gain(
    frame: pl.DataFrame, by: str, over: str, stated: float, ns2: dict[tuple[str, int], Any]
) -> Part:
    """Compare the largest mean gain of CoDel over the sweep with a stated one.

    Fails wrongly: if the paper's "up to" is of a point that we do not run. Passes wrongly: the
    largest of several noisy means is biased upwards; the interval is the chosen point's.
    """
    place, gains = best(frame, "codel", over, by)
    part = number(f"over {NAMES[over]}, largest (at {by} {place})", gains, stated, unit="%")
    theirs = [x for name, x in ns2 if name == over and ("codel", x) in ns2]
    most = max(theirs, key=lambda x: 1 - ns2["codel", x][0] / ns2[over, x][0])
    return part.with_ns2(f"{faster(ns2['codel', most], ns2[over, most])} (at {most})")


def _most_of_all(runs: Runs, over: str, stated: float) -> Part:
    """Compare the largest gain in any experiment with a stated one.

    Fails and passes wrongly: as `largest_gain`.
    """
    swept = (("incast", "kB", NS2_INCAST), ("servers", "servers", NS2_VARY))
    parts = [
        largest_gain(runs[name], by, over, stated, ns2)
        for name, by, ns2 in (*swept, ("loads", "load", NS2_POISSON))
    ]
    return max(parts, key=lambda part: part.value.mean if part.value else 0.0)


def losses(runs: Runs) -> list[Part]:
    """C8: two loss rates while a query is open, and their order.

    Fails wrongly: if the paper counts losses at the servers' own links, or over all time. Passes
    wrongly: 20 % of 16 and of 11 % nearly touch, so the order is a part of its own.
    """
    loss = {s: values(runs["incast"], "loss_asked", scheme=s, kB=100) for s in ("red", "codel")}
    return [
        *(
            number(NAMES[s], loss[s], stated, unit="%", scale=100).with_ns2(
                f"{NS2_INCAST[s, 100][2]:.1f} %"
            )
            for s, stated in (("red", 16), ("codel", 11))
        ),
        order("CoDel below RED", loss["codel"], loss["red"], unit="%", scale=100),
    ]


def short_queues(runs: Runs) -> list[Part]:
    """C9: mean queue of RED and CoDel below 10 % of the buffer.

    Fails and passes wrongly: as `_bounds`. A queue in the server's own link does not count here.
    """
    return _bounds(runs, "occupancy", "<", 10, ("red", "codel"), lambda row: f"{row[3] / 2:.1f} %")


def by_servers(runs: Runs) -> list[Part]:
    """C12: the largest gains, and the order at each number of servers.

    Fails wrongly: a discipline with lock-outs has no mean time; such seeds are left out, which
    favours it. Passes wrongly: as `largest_gain`.
    """
    frame = runs["servers"]
    sooner = [
        order(
            f"CoDel below {NAMES[s]}, {n} servers",
            *times(frame, "codel", s, servers=n),
            unit="ms",
            scale=1e3,
        ).with_ns2(f"{NS2_VARY['codel', n][0]:.1f} against {NS2_VARY[s, n][0]:.1f} ms")
        for s in ("red", "droptail")
        for n in sorted(frame["servers"].unique().to_list())
    ]
    return [
        largest_gain(frame, "servers", "red", 65, NS2_VARY),
        largest_gain(frame, "servers", "droptail", 85, NS2_VARY),
        *sooner,
    ]


def red_is_shortest(runs: Runs) -> list[Part]:
    """C13: RED's mean queue below both others' at each number of servers.

    Fails wrongly: if all queues are empty most of the time (long pauses). Passes wrongly: on a
    difference that is significant but smaller than a packet.
    """
    frame = runs["servers"]
    return [
        order(
            f"below {NAMES[s]}, {n} servers",
            values(frame, "queue_packets", scheme="red", servers=n),
            values(frame, "queue_packets", scheme=s, servers=n),
            unit="packets",
        ).with_ns2(f"{NS2_VARY['red', n][3]:.0f} against {NS2_VARY[s, n][3]:.0f} packets")
        for s in ("codel", "droptail")
        for n in sorted(frame["servers"].unique().to_list())
    ]


def handles_bursts(runs: Runs) -> list[Part]:
    """C17: mean times with RED above DropTail's, for each number of servers. CoDel's are in C12.

    Fails wrongly: if "handle" is about losses or timeouts, not about times. Passes wrongly: on
    lock-outs under DropTail that other links would not have; such links are a setting.
    """
    frame = runs["servers"]
    return [
        order(
            f"DropTail below RED, {n} servers",
            *times(frame, "droptail", "red", servers=n),
            unit="ms",
            scale=1e3,
        ).with_ns2(f"{NS2_VARY['droptail', n][0]:.1f} against {NS2_VARY['red', n][0]:.1f} ms")
        for n in sorted(frame["servers"].unique().to_list())
    ]


def gains_by_size(runs: Runs) -> list[Part]:
    """C7: the largest gains over the sizes of figure 5b.

    Fails and passes wrongly: as `largest_gain`.
    """
    return [
        largest_gain(runs["incast"], "kB", "droptail", 62, NS2_INCAST),
        largest_gain(runs["incast"], "kB", "red", 35, NS2_INCAST),
    ]


def gains_of_all(runs: Runs) -> list[Part]:
    """C1: the largest gains over all experiments.

    Fails and passes wrongly: as `largest_gain`. Since the paper's C12 exceeds its own
    C1, a set-up that agrees with C12 must fail here.
    """
    return [_most_of_all(runs, "red", 35), _most_of_all(runs, "droptail", 65)]
