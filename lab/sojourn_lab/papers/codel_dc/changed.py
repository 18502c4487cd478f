"""Sensitivities of `codel_dc`: one parameter changed at a time, in four kinds of query."""

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sojourn_lab.papers.codel_dc.runs import (
    CODEL,
    LAWS,
    RED,
    SPREAD_NS,
    WIDE,
    Table,
    of_answers,
    of_flows,
    poisson,
    queries,
    switch,
)
from sojourn_lab.reproduction.claims import values
from sojourn_lab.reproduction.paper import Experiment, Point

if TYPE_CHECKING:
    import polars as pl

SCHEMES = ("droptail", "red", "codel")
"""Disciplines compared in all experiments."""

CASES = {
    "40 x 10 kB": (40, 10.0),
    "40 x 100 kB": (40, 100.0),
    "8 x 125 kB": (8, 125.0),
    "128 x 7.8 kB": (128, 7.8125),
}
"""Queries of the sensitivities: servers, and kB from each."""

BASE = "as chosen"

LINKS: dict[str, dict[str, Any]] = {
    BASE: {},
    "the long flow's link 1 ns shorter": {"long_ns": -1},
    "the long flow's link 1 ns longer": {"long_ns": 1},
    "servers' links with DropTail of 50": {"nic": {"qdisc": {"name": "droptail", "limit": "49p"}}},
    "four long flows": {"longs": 4},
    "initial window 1": {"tcp": {"initial_window": "1p"}},
    "initial window 4": {"tcp": {"initial_window": "4p"}},
    "initial window 10": {"tcp": {"initial_window": "10p"}},
    "receiver's window 20 (ns-2's default)": {"tcp": {"receive_window": "20p"}},
    "delayed acks": {"tcp": {"delayed_ack": True}},
    "NewReno": {"tcp": {"name": "newreno"}},
    "persistent connections": {"source": {"persistent": True}},
}
"""Changes for all three disciplines, as keywords of `switch`."""

Way: TypeAlias = tuple[str, dict[str, Any], dict[str, Any]]

WIDE_NIC: Table = {"nic": {"qdisc": WIDE}}
FAST_NIC: Table = {"nic": {"rate": "10gbit"}}
COARSE: Table = {"tcp": {"tick": "10ms"}}

WAYS: dict[str, Way] = {
    "a pause of 100 ms": ("2100ms", {"gap": "100ms"}, {}),
    "a pause of 1 s": ("4100ms", {"gap": "1s"}, {}),
    "a pause of 100 ms and servers' links of 10 Gbit/s": ("2100ms", {"gap": "100ms"}, FAST_NIC),
    "a pause of 100 ms and a clock of 10 ms": ("2100ms", {"gap": "100ms"}, COARSE),
    "a pause of 100 ms and servers' links that never drop": (
        "2100ms", {"gap": "100ms"}, WIDE_NIC,
    ),
    "a clock of 10 ms": ("600ms", {}, COARSE),
    "servers' links that never drop": ("600ms", {}, WIDE_NIC),
    "links that differ by 137 ns": (
        "600ms", {}, {"spread_ns": SPREAD_NS, "long_ns": SPREAD_NS // 2},
    ),
}  # fmt: skip
"""Settings of the queries that the paper does not state: duration of a run, changes of the source,
keywords of `switch`. Between queries there is a pause of 300 us otherwise."""

SERVER_WAYS = ("a pause of 100 ms", "a pause of 1 s", "a clock of 10 ms")
"""Those that are also varied with the number of servers."""

SAMPLED: Table = {"sample": "1ms", "sample_flows": False}


TUNED: dict[str, tuple[str, Table]] = {
    "RED: wq automatic": ("red", {**RED, "w_q": "auto"}),
    "RED: wq 0.02": ("red", {**RED, "w_q": 0.02}),
    "RED: wq 1": ("red", {**RED, "w_q": 1.0}),
    "RED: not gentle": ("red", {**RED, "gentle": "none"}),
    "RED: slope follows max_p": ("red", {**RED, "stale_gentle": False}),
    "RED: also drops from short queues": ("red", {**RED, "spare_short": False}),
    "CoDel: ns-2 of 2013": ("codel", {**CODEL, "variant": "ns2_v2"}),
    "CoDel: RFC 8289": ("codel", {**CODEL, "variant": "rfc"}),
}
"""Changes in one discipline only."""


def varied(full: bool, sizes: Sequence[int], counts: Sequence[int]) -> dict[str, Experiment]:
    """Return the queries of figures 5 and 9 with each setting of `WAYS`; quick mode has three."""
    sweeps = {
        "incast settings": [({"kB": kb}, 40, float(kb)) for kb in sizes],
        "servers settings": [({"servers": n}, n, 1000 / n) for n in counts],
    }
    experiments = {}
    for name, places in sweeps.items():
        points: list[Point] = []
        ways = SERVER_WAYS if name == "servers settings" or not full else tuple(WAYS)
        for way in ways:
            end, how, keywords = WAYS[way]
            for (at, n, kb), s in product(places, SCHEMES):
                tree = switch(LAWS[s], n, queries(kb, **how), end if full else "600ms", **keywords)
                points.append(({"setting": way, "scheme": s, **at}, tree | SAMPLED))
        experiments[name] = Experiment(points, of_answers, 3 if full else 2)
    return experiments


def sensitivities(full: bool) -> dict[str, Experiment]:
    """Return the experiments that change one parameter."""
    seeds, end = (2, "600ms") if full else (1, "300ms")
    changed: list[Point] = []
    lost_syns: list[Point] = []
    slow = {"rto_initial": "3s"}
    for case, (n, kb) in CASES.items():
        for s in SCHEMES:
            own = {"case": case, "scheme": s}
            for what, how in LINKS.items():
                rest = {key: value for key, value in how.items() if key != "source"}
                source = queries(kb, **how.get("source", {}))
                tree = switch(LAWS[s], n, source, end, **rest)
                changed.append(({"what": what, **own}, tree))
            if full or n > 40:
                tree = switch(LAWS[s], n, queries(kb), "3600ms", tcp=slow)
                lost_syns.append((own, tree))
        for what, (s, law) in TUNED.items():
            labels = {"what": what, "case": case, "scheme": s}
            changed.append((labels, switch(law, n, queries(kb), end)))
    short: list[Point] = [
        (
            {"what": what, "scheme": s, "load": x},
            switch(law, 40, poisson(x), "3100ms" if full else "1100ms"),
        )
        for what, (s, law) in TUNED.items()
        if s == "red"
        for x in (10, 50, 90)
    ]
    return {
        "changed": Experiment(changed, of_answers, seeds),
        "RED by load": Experiment(short, of_flows, 3 if full else 2),
        "lost SYNs": Experiment(lost_syns, of_answers, 2 if full else 1),
    }


def compared(frame: "pl.DataFrame", whats: list[str]) -> "pl.DataFrame":
    """Return a row per change and case: times of answers, gains, utilisation, losses, queues.

    A discipline that a change does not affect has its results without the change. A time is missing
    if no query finished in any run.
    """
    import polars as pl

    rows = []
    there = set(frame.select("what", "scheme").iter_rows())
    for what in whats or sorted(frame["what"].unique().to_list()):
        for case in frame["case"].unique(maintain_order=True):
            means = {}
            for s in SCHEMES:
                changed = what if (what, s) in there else BASE
                labels = {"what": changed, "case": case, "scheme": s}
                means[s] = {x: known_mean(values(frame, x, **labels)) for x in SHOWN}
            times = [means[s]["afct_s"] for s in SCHEMES]
            ours = times[2]
            shorter = [100 * (1 - ours / t) if ours and t else None for t in times[:2]]
            times_ms = [None if t is None else 1e3 * t for t in times]
            used = [100 * (means[s]["utilisation"] or 0) for s in SCHEMES]
            losses = [100 * (means[s]["loss"] or 0) for s in SCHEMES]
            lengths = [means[s]["queue_packets"] for s in SCHEMES]
            rows.append((what, case, *times_ms, *shorter, *used, *losses[1:], *lengths[1:]))
    three = ("DropTail", "RED", "CoDel")
    heads = [f"{name}: time, ms" for name in three]
    heads += [f"CoDel's gain over {name}, %" for name in three[:2]]
    heads += [f"{name}: utilisation, %" for name in three]
    heads += [f"{name}: {what}" for what in ("loss, %", "queue, packets") for name in three[1:]]
    return pl.DataFrame(rows, schema=["changed", "query", *heads], orient="row")


def compared_by_load(frame: "pl.DataFrame", chosen: "pl.DataFrame") -> "pl.DataFrame":
    """Return a row per RED setting and load of short flows, with CoDel of `chosen` (same seeds)."""
    import polars as pl

    chosen = chosen.filter(pl.col("seed").is_in(frame["seed"].unique().to_list()))
    rows = []
    for what in (BASE, *frame["what"].unique(maintain_order=True)):
        for load in frame["load"].unique(maintain_order=True):
            place = {"load": load}
            red = chosen if what == BASE else frame
            label = {"scheme": "red"} if what == BASE else {"what": what}
            took, used, lost = (float(values(red, x, **label, **place).mean()) for x in SHOWN[:3])
            ours, busy = (
                float(values(chosen, x, scheme="codel", **place).mean()) for x in SHOWN[:2]
            )
            gain, more = 100 * (1 - ours / took), 100 * (busy - used)
            rows.append((what, load, 1e3 * took, 1e3 * ours, gain, more, 100 * lost))
    heads = ["RED: time, ms", "CoDel: time, ms", "CoDel's gain, %", "utilisation: CoDel - RED, %"]
    heads = ["changed", "load, %", *heads, "RED: loss, %"]
    return pl.DataFrame(rows, schema=heads, orient="row")


SHOWN = ("afct_s", "utilisation", "loss", "queue_packets")


def known_mean(column: Any) -> float | None:
    """Return the mean over the seeds that have a value; None if none has."""
    known = np.asarray(column, dtype=float)
    known = known[np.isfinite(known)]
    return float(known.mean()) if len(known) else None
