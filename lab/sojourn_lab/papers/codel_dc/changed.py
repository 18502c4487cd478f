"""Sensitivities of `codel_dc`: one parameter changed at a time, in four kinds of query."""

from typing import TYPE_CHECKING, Any

from sojourn_lab.papers.codel_dc.runs import of_answers, queries, switch
from sojourn_lab.papers.codel_dc.series import known_mean
from sojourn_lab.papers.codel_dc.set_up import SCHEMES, SetUp, Table
from sojourn_lab.reproduction.claims import values
from sojourn_lab.reproduction.paper import Experiment, Point

if TYPE_CHECKING:
    import polars as pl

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


def tuned(set_up: SetUp) -> dict[str, tuple[str, Table]]:
    """Return changes in one discipline only, by name."""
    red, codel = set_up.red, set_up.codel
    return {
        "RED: weight automatic": ("red", {**red, "w_q": "auto"}),
        "RED: weight 0.02": ("red", {**red, "w_q": 0.02}),
        "RED: weight 1": ("red", {**red, "w_q": 1.0}),
        "RED: not gentle": ("red", {**red, "gentle": "none"}),
        "RED: slope follows max_p": ("red", {**red, "stale_gentle": False}),
        "RED: also drops from short queues": ("red", {**red, "spare_short": False}),
        "CoDel: ns-2 of 2013": ("codel", {**codel, "variant": "ns2_v2"}),
        "CoDel: RFC 8289": ("codel", {**codel, "variant": "rfc"}),
    }


def sensitivities(full: bool, set_up: SetUp) -> dict[str, Experiment]:
    """Return the experiments that change one parameter."""
    seeds, end = (2, "600ms") if full else (1, "300ms")
    changed: list[Point] = []
    lost_syns: list[Point] = []
    slow = {"rto_initial": "3s"}
    for case, (n, kb) in CASES.items():
        for s in SCHEMES:
            own, law = {"case": case, "scheme": s}, set_up.laws[s]
            for what, how in LINKS.items():
                rest = {key: value for key, value in how.items() if key != "source"}
                source = queries(kb, set_up, **how.get("source", {}))
                tree = switch(law, n, source, end, set_up=set_up, **rest)
                changed.append(({"what": what, **own}, tree))
            if full or n > 40:
                tree = switch(law, n, queries(kb, set_up), "3600ms", set_up=set_up, tcp=slow)
                lost_syns.append((own, tree))
        for what, (s, law) in tuned(set_up).items():
            labels = {"what": what, "case": case, "scheme": s}
            changed.append((labels, switch(law, n, queries(kb, set_up), end, set_up=set_up)))
    return {
        "changed": Experiment(changed, of_answers, seeds),
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

    frame = frame.filter(pl.col("setting").str.starts_with("RED"))
    chosen = chosen.filter(pl.col("seed").is_in(frame["seed"].unique().to_list()))
    rows = []
    for what in (BASE, *frame["setting"].unique(maintain_order=True)):
        for load in frame["load"].unique(maintain_order=True):
            place = {"load": load}
            red = chosen if what == BASE else frame
            label = {"scheme": "red"} if what == BASE else {"setting": what}
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
