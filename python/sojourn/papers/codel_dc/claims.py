"""Claims of `codel_dc`, and the rules that judge them, fixed before the runs."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import polars as pl

from sojourn.papers.codel_dc.ns2 import (
    NS2_INCAST,
    NS2_POISSON,
    NS2_TARGETS,
    NS2_VARY,
    faster,
    util,
)
from sojourn.papers.codel_dc.runs import best, columns, model, times
from sojourn.reproduction.claims import (
    Claim,
    Part,
    Runs,
    bound,
    equal,
    mean,
    number,
    order,
    shape,
    values,
)

NAMES = {"droptail": "DropTail", "red": "RED", "codel": "CoDel"}

PAIRS = "Paired by seed; the 95 % interval of the difference is above 0."
PERCENT = "Within 20 % of the number."


def _model(_: Runs) -> list[Part]:
    """Evaluate equation 7 at a target of one round trip and of half a round trip."""
    return [
        number("U(T)", [100 * model(1)], 100, unit="%", points=0.01),
        number("U(T/2)", [100 * model(0.5)], 100 * 23 / 24, unit="%", points=0.01),
    ]


def _half(runs: Runs) -> list[Part]:
    found = values(runs["targets"], "utilisation", target=0.15, flows=1)
    ns2 = f"{NS2_TARGETS[0.15]:.1f} %"
    return [
        number("at 150 us", found, 96, unit="%", points=3, scale=100).beside(ns2),
        bound("above the model", found, ">", 100 * 23 / 24, unit="%", scale=100).beside(ns2),
    ]


def _saturates(runs: Runs) -> list[Part]:
    """C4: where one flow's utilisation stops rising with the target, and that delay does not."""
    one = runs["targets"].filter(pl.col("flows") == 1)
    targets = sorted(one["target"].unique().to_list())
    use = {t: 100 * mean(one, "utilisation", target=t) for t in targets}
    queue = {t: mean(one, "queue_packets", target=t) for t in targets}
    rising = [t for t in targets if t <= 0.3]
    beyond = [t for t in targets if t >= 0.3]
    climbs = all(use[a] < use[b] for a, b in pairwise(rising))
    flat = max(abs(use[t] - use[0.3]) for t in beyond)
    grows = all(queue[a] < queue[b] for a, b in pairwise(beyond))
    ends = " to ".join(f"{use[t]:.1f} %" for t in (rising[0], rising[-1]))
    lengths = " to ".join(f"{queue[t]:.0f}" for t in (beyond[0], beyond[-1]))
    return [
        shape("utilisation rises up to 300 us", climbs, ends, "at every step").beside(
            f"{NS2_TARGETS[0.01]:.1f} to {NS2_TARGETS[0.3]:.1f} %"
        ),
        shape("above, it is constant", flat <= 0.5, f"within {flat:.2f} %", "within 0.5 %"),
        shape("above, the queue grows", grows, f"{lengths} packets", "at every step"),
    ]


def _intervals(runs: Runs) -> list[Part]:
    """C5: the smallest interval against the largest, and the trend of the queue in between."""
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
    """Compare a column with a bound for each discipline and size, with ns-2's result."""
    return [
        bound(
            f"{NAMES[s]}, {kb} kB",
            values(runs["incast"], what, scheme=s, kB=kb),
            relation,
            percent,
            unit="%",
            scale=100,
        ).beside(ns2(NS2_INCAST[s, kb]))
        for s in schemes
        for kb in (10, 50, 100)
    ]


def _busy(runs: Runs) -> list[Part]:
    return _bounds(runs, "utilisation", ">", 98, NAMES, util)


def _most(
    frame: pl.DataFrame, by: str, over: str, stated: float, ns2: dict[tuple[str, int], Any]
) -> Part:
    """Compare the largest mean gain of CoDel over the sweep with a stated one."""
    place, found = best(frame, "codel", over, by)
    part = number(f"over {NAMES[over]}, largest (at {by} {place})", found, stated, unit="%")
    theirs = [x for name, x in ns2 if name == over and ("codel", x) in ns2]
    most = max(theirs, key=lambda x: 1 - ns2["codel", x][0] / ns2[over, x][0])
    return part.beside(f"{faster(ns2['codel', most], ns2[over, most])} (at {most})")


def _most_of_all(runs: Runs, over: str, stated: float) -> Part:
    """Compare the largest gain in any experiment with a stated one."""
    swept = (("incast", "kB", NS2_INCAST), ("servers", "servers", NS2_VARY))
    parts = [
        _most(runs[name], by, over, stated, ns2)
        for name, by, ns2 in (*swept, ("loads", "load", NS2_POISSON))
    ]
    return max(parts, key=lambda part: part.value.mean if part.value else 0.0)


def _losses(runs: Runs) -> list[Part]:
    loss = {s: values(runs["incast"], "loss", scheme=s, kB=100) for s in ("red", "codel")}
    return [
        *(
            number(NAMES[s], loss[s], stated, unit="%", scale=100).beside(
                f"{NS2_INCAST[s, 100][2]:.1f} %"
            )
            for s, stated in (("red", 16), ("codel", 11))
        ),
        order("CoDel below RED", loss["codel"], loss["red"], unit="%", scale=100),
    ]


def _short(runs: Runs) -> list[Part]:
    return _bounds(runs, "occupancy", "<", 10, ("red", "codel"), lambda row: f"{row[3] / 2:.1f} %")


def _between(frame: pl.DataFrame, what: str, scheme: str, begin: float, end: float) -> Any:
    """Return the increase of a cumulative list from `begin` to `end` (ms), for each seed."""
    time = columns(frame, "time_ms", scheme)[0]
    each = columns(frame, what, scheme)
    first = each[:, np.searchsorted(time, begin, side="right") - 1] if begin >= time[0] else 0.0
    return each[:, np.searchsorted(time, end, side="right") - 1] - first


def _after_burst(runs: Runs) -> list[Part]:
    frame = runs["burst"]
    red, codel = (_between(frame, "aqm", s, 100, 110) for s in ("red", "codel"))
    late = [_between(frame, "aqm", s, 150, 300) for s in ("red", "codel")]
    return [
        order("100 to 110 ms: twice CoDel's below RED's", 2 * codel, red, unit="packets"),
        equal("150 to 300 ms: equal", *late, within=0.2, unit="packets"),
    ]


def _waiting(runs: Runs) -> list[Part]:
    frame = runs["burst"]
    time = columns(frame, "time_ms", "red")[0]

    def on_average(scheme: str, begin: float, end: float) -> Any:
        chosen = (time > begin) & (time <= end)
        return columns(frame, "stalled", scheme)[:, chosen].mean(axis=1)

    early = [on_average(s, 100, 125) for s in ("codel", "red")]
    late = [on_average(s, 145, 155) for s in ("codel", "red")]
    gap = float(np.mean(late[1]) - np.mean(late[0]))
    both = " against ".join(f"{np.mean(one):.1f}" for one in late)
    return [
        order("100 to 125 ms: fewer with CoDel", *early, unit="flows"),
        shape("145 to 155 ms: equal", abs(gap) <= 2, f"{both} flows", "within 2 of 40 flows"),
    ]


def _servers(runs: Runs) -> list[Part]:
    frame = runs["servers"]
    sooner = [
        order(
            f"CoDel below {NAMES[s]}, {n} servers",
            *times(frame, "codel", s, servers=n),
            unit="ms",
            scale=1e3,
        ).beside(f"{NS2_VARY['codel', n][0]:.1f} against {NS2_VARY[s, n][0]:.1f} ms")
        for s in ("red", "droptail")
        for n in sorted(frame["servers"].unique().to_list())
    ]
    return [
        _most(frame, "servers", "red", 65, NS2_VARY),
        _most(frame, "servers", "droptail", 85, NS2_VARY),
        *sooner,
    ]


def _shortest(runs: Runs) -> list[Part]:
    frame = runs["servers"]
    return [
        order(
            f"below {NAMES[s]}, {n} servers",
            values(frame, "queue_packets", scheme="red", servers=n),
            values(frame, "queue_packets", scheme=s, servers=n),
            unit="packets",
        ).beside(f"{NS2_VARY['red', n][3]:.0f} against {NS2_VARY[s, n][3]:.0f} packets")
        for s in ("codel", "droptail")
        for n in sorted(frame["servers"].unique().to_list())
    ]


def _spare(runs: Runs) -> list[Part]:
    frame = runs["loads"]
    use = {
        (s, x): values(frame, "utilisation", scheme=s, load=x)
        for s in NAMES
        for x in sorted(frame["load"].unique().to_list())
    }
    loads = sorted({x for _, x in use})
    gap = {x: use["codel", x] - use["red", x] for x in loads}
    most = max(loads, key=lambda x: float(np.mean(gap[x])))
    least = min(loads, key=lambda x: float(np.mean(use["droptail", x])))
    ns2 = max(NS2_POISSON["codel", x][1] - NS2_POISSON["red", x][1] for x in (10, 30, 50, 70, 90))
    return [
        number(
            f"CoDel - RED, largest (at {most} %)", gap[most], 6, unit="%", points=3, scale=100
        ).beside(f"{ns2:.1f} %"),
        number(
            f"DropTail, smallest (at {least} %)",
            use["droptail", least],
            100,
            unit="%",
            points=3,
            scale=100,
        ).beside("100.0 %"),
        *(
            order(f"RED below CoDel at {x} %", use["red", x], use["codel", x], unit="%", scale=100)
            for x in loads
        ),
    ]


def _flows(runs: Runs) -> list[Part]:
    frame = runs["loads"]
    at = {s: values(frame, "afct_s", scheme=s, load=90) for s in ("red", "codel")}
    theirs = f"{NS2_POISSON['red', 90][0]:.1f} against {NS2_POISSON['codel', 90][0]:.1f} ms"
    lower = frame.filter(pl.col("load") < 90)
    return [
        _most(frame, "load", "droptail", 63, NS2_POISSON),
        _most(lower, "load", "red", 7, NS2_POISSON),
        order("RED below CoDel at 90 %", at["red"], at["codel"], unit="ms", scale=1e3).beside(
            theirs
        ),
    ]


def _gap_grows(runs: Runs) -> list[Part]:
    frame = runs["half load"]
    end = float(columns(frame, "time_ms", "red")[0][-1])
    places = np.linspace(100, end, 5)[1:]
    drops = {s: [_between(frame, "aqm", s, 100, at) for at in places] for s in ("red", "codel")}
    gaps = [float(np.mean(a - b)) for a, b in zip(drops["red"], drops["codel"], strict=True)]
    grows = all(a < b for a, b in pairwise([0.0, *gaps]))
    told = ", ".join(f"{gap:.0f}" for gap in gaps) + " packets"
    return [
        order(
            "CoDel below RED at the end", drops["codel"][-1], drops["red"][-1], unit="packets"
        ).beside("1680 against 2350 (all losses, 3 s)"),
        shape("the gap grows in every quarter", grows, told, "at every step"),
    ]


def _most_by_size(runs: Runs) -> list[Part]:
    return [
        _most(runs["incast"], "kB", "droptail", 62, NS2_INCAST),
        _most(runs["incast"], "kB", "red", 35, NS2_INCAST),
    ]


def _all(runs: Runs) -> list[Part]:
    return [_most_of_all(runs, "red", 35), _most_of_all(runs, "droptail", 65)]


EVERY = ("incast", "servers", "loads")
MOST = f"The largest mean gain over the sweep, 1 - (time / time of the other). {PERCENT}"

CLAIMS = [
    Claim(
        "000-C1", "Flows finish sooner with CoDel than with RED and DropTail.", "5b, 9b, 11b",
        "up to 35 % and 65 % less", f"Over all experiments. {MOST}", _all, EVERY,
    ),
    Claim(
        "000-C2", "The model: utilisation at a target of one round trip and of half a round trip.",
        "2b", "1 and 23/24", "Equation 7 evaluated; within 0.01 % absolute.", _model, ("targets",),
    ),
    Claim(
        "000-C3", "Simulated utilisation at half a round trip is slightly above the model.", "3a",
        "about 96 %, above 95.83 %", "One flow; within 3 % absolute, and above.", _half,
        ("targets",),
    ),
    Claim(
        "000-C4", "Utilisation rises with the target up to 300 us; above, only delay does.",
        "3a, 3b", "300 us", "One flow, means over seeds.", _saturates, ("targets",),
    ),
    Claim(
        "000-C5", "A small interval drops early, a large one late and with a longer queue.",
        "4a, 4b", "order",
        "The time of CoDel's first drop after a query of 40 x 50 kB (no drop within 100 ms counts "
        f"as 100 ms), and the mean queue. {PAIRS}",
        _intervals, ("intervals", "first drops"),
    ),
    Claim(
        "000-C6", "All disciplines keep utilisation high under incast.", "5a", "> 98 %",
        "Utilisation of the port, from the first query on.", _busy, ("incast",),
    ),
    Claim(
        "000-C7", "Mean time of an answer, 40 servers.", "5b",
        "up to 62 % below DropTail, 35 % below RED", MOST, _most_by_size, ("incast",),
    ),
    Claim(
        "000-C8", "Loss with 100 kB from each of 40 servers.", "6b", "16 % RED, 11 % CoDel",
        f"{PERCENT} And the order. {PAIRS}", _losses, ("incast",),
    ),
    Claim(
        "000-C9", "RED and CoDel keep the queue short.", "6a", "below 10 % of the buffer",
        "Mean over time, of 200 packets.", _short, ("incast",),
    ),
    Claim(
        "000-C10", "RED drops far more than CoDel right after the burst; later both are equal.",
        "8a", "equal from 150 ms",
        f"Drops by the AQM. At least twice as many in the first 10 ms. {PAIRS} Within 20 % from "
        "150 ms on.",
        _after_burst, ("burst",),
    ),
    Claim(
        "000-C11", "More flows are in timeout with RED shortly after 100 ms, as many at 150 ms.",
        "7", "order", f"Means over 1 ms samples. {PAIRS} At 150 ms within 2 flows.", _waiting,
        ("burst",),
    ),
    Claim(
        "000-C12", "1 MB from n servers: CoDel is faster than RED and DropTail.", "9b",
        "up to 65 % over RED, 85 % over DropTail", f"{PAIRS} {MOST}", _servers, ("servers",),
    ),
    Claim(
        "000-C13", "1 MB from n servers: RED's queue is shorter than CoDel's and DropTail's.",
        "10a", "shorter", f"Mean queue. {PAIRS}", _shortest, ("servers",),
    ),
    Claim(
        "000-C14", "Short flows: CoDel uses more of the link than RED, DropTail all of it.", "11a",
        "up to 6 % more; about 100 %", f"Within 3 % absolute; the order at each load. {PAIRS}",
        _spare,
        ("loads",),
    ),
    Claim(
        "000-C15", "Short flows: CoDel is faster, except than RED at 90 % load.", "11b",
        "up to 63 % over DropTail, 7 % over RED", f"{MOST} The order at 90 %. {PAIRS}", _flows,
        ("loads",),
    ),
    Claim(
        "000-C16", "Short flows: RED drops more than CoDel, and the gap grows with time.", "8b",
        "order", f"Drops by the AQM at 50 % load. {PAIRS} Mean gap after each quarter.", _gap_grows,
        ("half load",),
    ),
]  # fmt: skip
