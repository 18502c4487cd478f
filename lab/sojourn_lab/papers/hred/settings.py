"""Values of what the paper does not state, other than ours, for all claims that they touch."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import polars as pl

from sojourn_lab.papers.hred.checks import BUFFERS, RESPONDING, RULES, STATED_SHARES
from sojourn_lab.papers.hred.measures import over_time, response, shares, steady
from sojourn_lab.papers.hred.runs import FEW, WITH_WEB, Plan
from sojourn_lab.reproduction.claims import Setting, overlay
from sojourn_lab.reproduction.paper import Experiment, Point

FASTER_PIC = "beta 0.2 for PIC"
"""PIC reconfigured for a faster response, as section IV.B of the paper says without numbers: the
crossover frequency times R+ (0.07 by the stated R+ and N-)."""

STARTED_PIC = "initial probability T/4000 of PIC"
"""PIC with an initial drop probability, which footnote 8 of the paper mentions: 0.15 for T 600, the
loss rate there, and in proportion to the traffic. PIC lowers its probability slowly, so that 0.15
at light load would leave the queue empty."""

INDEPENDENT = "independent drops of RED"
FASTER_REM = "gamma 0.01 for REM"
Parameters = Callable[[int], dict[str, Any]]
"""Parameters by the traffic T, or the number of long flows."""

ONE: dict[str, tuple[str, Parameters]] = {
    FASTER_PIC: ("pi", lambda _: {"beta": 0.2}),
    STARTED_PIC: ("pi", lambda flows: {"p_init": flows / 4000}),
    INDEPENDENT: ("red", lambda _: {"wait": "bernoulli"}),
    FASTER_REM: ("rem", lambda _: {"gamma": 0.01}),
}
"""Settings of one discipline, in every experiment that has it."""

PIC = (FASTER_PIC, STARTED_PIC)

SIZES = "packets of 250 to 750 bytes"
NO_PAUSES = "web sessions without pauses"
WIDE = "500 kB"
WIDE_AND_50 = "500 kB, tail drop with 50 packets"
LINUX_TCP = "SACK and delayed acks"
PLAIN_WEB: dict[str, Any] = {"size": "pareto(mean=4600B, shape=1.2)", "gap": "0s"}
SACK: dict[str, Any] = {"name": "sack", "profile": "rfc", "packet": "500B"}


def mixed(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario whose FTPs have packets of 250 to 750 bytes, 500 on average.

    Sizes are spread evenly over the FTPs, by the golden ratio. Groups of flows are split.
    """
    flows: list[dict[str, Any]] = []
    for flow in tree["flows"]:
        if flow["source"]["name"] != "bulk":
            flows.append(flow)
            continue
        for i in range(flow.get("count", 1)):
            size = 250 + round(500 * (len(flows) * 0.6180339887498949 % 1))
            one = {**flow, "tcp": {**flow["tcp"], "packet": f"{size}B"}}
            if "count" in flow:
                path = [link.replace("{i}", str(i)) for link in flow["path"]]
                one |= {"count": 1, "path": path, "name": f"{flow['name']}-{i}"}
            flows.append(one)
    return {**tree, "flows": flows}


def varied(plan: Plan) -> dict[str, Experiment]:
    """Return the runs with other values, by experiment; the label `setting` names the value.

    What a setting does not affect has no runs here. Every setting runs all points of the
    experiments that it affects, so that claims are judged on all their parts.
    """
    seeds = 3 if plan.full else 2
    measures: Mapping[str, Any] = {
        "sweep": steady,
        "rem": over_time,
        "web_on": over_time,
        "web": steady,
        "shares": shares,
        "step": response,
        "testbed": steady,
    }
    runs: dict[str, list[Point]] = {name: [] for name in measures}
    for setting, (name, own) in ONE.items():
        for base, labels, tree in _of_one(plan, name, own):
            runs[base].append(({"setting": setting, **labels}, tree))
    for base, labels, tree in _of_sizes(plan):
        runs[base].append(({"setting": SIZES, **labels}, tree))
    runs["web_on"] += [
        ({"setting": NO_PAUSES, "qdisc": q}, plan.web_on(q, PLAIN_WEB)) for q in RESPONDING
    ]
    for q in STATED_SHARES:
        fifty = 25 if q == "droptail" else 500
        runs["shares"] += [
            ({"setting": WIDE, "qdisc": q}, plan.two(q, 500)),
            ({"setting": WIDE_AND_50, "qdisc": q}, plan.two(q, fifty)),
        ]
    runs["testbed"] += [
        ({"setting": LINUX_TCP, "qdisc": q, "flows": x}, plan.bed(q, x, tcp=SACK))
        for q in RULES
        for x in plan.long_flows
    ]
    return {
        f"{name} settings": Experiment(group, measures[name], seeds) for name, group in runs.items()
    }


Varied = Iterable[tuple[str, dict[str, Any], dict[str, Any]]]
"""Base experiment, labels, scenario."""


def _of_one(plan: Plan, name: str, of: Parameters) -> Varied:
    """Yield all points of one discipline with other parameters."""
    own = of(plan.set_up.ftps)
    for b in BUFFERS if "sweep" in TOUCHED[name][0] else ():
        for t in plan.traffic:
            yield "sweep", {"qdisc": name, "buffer": b, "T": t}, plan.sweep(name, b, t, **of(t))
    for x in plan.long_flows:
        yield "testbed", {"qdisc": name, "flows": x}, plan.bed(name, x, **of(x))
    if name == "rem":
        for t in FEW:
            yield "rem", {"T": t}, plan.rem(t, **of(t))
    if name in STATED_SHARES:
        yield "shares", {"qdisc": name}, plan.two(name, **own)
    if name in WITH_WEB:
        for rate in plan.rates:
            yield "web", {"qdisc": name, "web": rate}, plan.with_web(name, rate, **own)
    if name in RESPONDING:
        yield "web_on", {"qdisc": name}, plan.web_on(name, {}, **own)
        for size in plan.sizes:
            yield "step", {"qdisc": name, "size": size}, plan.step(name, size, **own)


def _of_sizes(plan: Plan) -> Varied:
    """Yield the points of table 2 and the testbed with packets of several sizes."""
    for q in STATED_SHARES:
        yield "shares", {"qdisc": q}, mixed(plan.two(q))
    for q in RULES:
        for x in plan.long_flows:
            yield "testbed", {"qdisc": q, "flows": x}, mixed(plan.bed(q, x))


TOUCHED: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "pi": (("sweep", "step", "web_on", "web", "shares", "testbed"),
           (4, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)),
    "red": (("sweep", "web", "shares", "testbed"), (3, 4, 9, 10, 11, 12, 14, 15, 19, 21)),
    "rem": (("rem", "testbed"), (7, 19)),
    SIZES: (("shares", "testbed"), (14, 15, 19, 21, 22)),
    NO_PAUSES: (("web_on",), (13,)),
    WIDE: (("shares",), (14, 15)),
    WIDE_AND_50: (("shares",), (14, 15)),
    LINUX_TCP: (("testbed",), (19, 21, 22)),
}  # fmt: skip
"""By discipline or setting: the experiments whose rows it replaces, and the claims that read them.

A claim that reads the same experiment, but none of these rows, is not judged with the setting.
"""


def _setting(name: str, touched: str) -> Setting:
    bases, claims = TOUCHED[touched]
    replaced = {base: overlay(f"{base} settings", setting=name) for base in bases}
    return Setting(name, replaced, tuple(f"003-C{n}" for n in claims))


def _in_bytes(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(std=pl.col("std") * pl.col("buffer") / 300)


Change = Callable[[pl.DataFrame], pl.DataFrame]

READINGS: dict[str, tuple[str, Change, str]] = {
    "buffers of 300 kB and more": (
        "sweep", lambda frame: frame.filter(pl.col("buffer") >= 300), "003-C2"
    ),
    "deviations in bytes": ("sweep", _in_bytes, "003-C9"),
    "goodput read as utilisation": (
        "shares", lambda frame: frame.with_columns(goodput=pl.col("utilisation")), "003-C15"
    ),
}  # fmt: skip
"""The same runs read differently: experiment, change of its rows, claim."""

SETTINGS = [
    *(_setting(name, qdisc) for name, (qdisc, _) in ONE.items()),
    *(_setting(name, name) for name in (SIZES, NO_PAUSES, WIDE, WIDE_AND_50, LINUX_TCP)),
    *(
        Setting(name, {base: change}, claims=(claim,))
        for name, (base, change, claim) in READINGS.items()
    ),
]
