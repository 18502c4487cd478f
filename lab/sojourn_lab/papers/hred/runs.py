"""Experiments of the paper on HRED, and sensitivities with one parameter changed."""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

from sojourn_lab.papers.hred.checks import BUFFERS, RESPONDING, RULES, STATED_SHARES
from sojourn_lab.papers.hred.common import (
    NEWRENO,
    TESTBED,
    dumbbell,
    gateway,
    over_time,
    response,
    scheme,
    shares,
    steady,
    step,
    two_groups,
    web,
)
from sojourn_lab.reproduction.paper import Experiment, Point

BDP_KB = 675
"""Bandwidth-delay product: 45 Mbit/s times 120 ms, the mean round-trip time."""

WITH_WEB = ("red", "blue", "pi", "avq", "hred")
"""Disciplines of figure 8."""

GAMMAS = (0.01, 0.003, 0.001, 0.0005, 0.0002, 0.0001)
AVQ_GAMMAS = (1, 0.98, 0.95)
KAPPAS = (1, 2, 4)
ALL_KAPPAS = (0.1, 0.15, 0.25, 0.5, 1, 2, 4)
MANY = (100, 300)
"""Numbers of FTPs in the figures of the stability bound."""

LONG_FLOWS = (50, 60, 80, 100, 120)
"""Long flows of the testbed."""

TCPS: dict[str, Any] = {
    "SACK": {**NEWRENO, "name": "sack"},
    "delayed acks": {**NEWRENO, "delayed_ack": True},
    "SACK by the RFCs": {"name": "sack", "packet": "500B"},
}
PLAIN_WEB: dict[str, Any] = {"size": "pareto(mean=4600B, shape=1.2)", "gap": "0s"}

PATHS: dict[str, tuple[int, dict[str, Any]]] = {
    "no access links": (300, {"access": ""}),
    "access links of 100 Mbit/s": (300, {}),
    "access links of 10 Mbit/s": (300, {"access": "10mbit"}),
    "round trips spread by 10 %": (300, {"spread": 0.1}),
    "SACK": (300, {"tcp": TCPS["SACK"]}),
    "25 kB": (25, {}),
    "25 kB, no access links": (25, {"access": ""}),
    "100 kB": (100, {}),
}
"""Variants of table 2 under tail drop: buffer in kB, and changes of the scenario."""

REDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "as in figure 13": ({}, NEWRENO),
    "w_q 2^-9": ({"w_q": 2**-9}, NEWRENO),
    "not gentle": ({"gentle": "none"}, NEWRENO),
    "w_q 0.0002": ({"w_q": 0.0002}, NEWRENO),
    "max_p 0.05": ({"max_p": 0.05}, NEWRENO),
    "delayed acks": ({}, TCPS["delayed acks"]),
}
"""Variants of the testbed's RED: its parameters, and TCP's."""


def scenarios(full: bool) -> dict[str, Experiment]:
    """Return the paper's experiments and the sensitivities."""
    seeds, extra = 3, (3 if full else 2)
    span: dict[str, Any] = {"end": 200, "warmup": 150} if full else {"end": 30, "warmup": 18}
    brief: dict[str, Any] = {"end": 100, "warmup": 50} if full else {"end": 30, "warmup": 15}
    times = (100, 150, 200) if full else (40, 60, 80)
    late_times = (300, 350, 400) if full else (60, 80, 100)
    late_span: dict[str, Any] = {"end": 400, "warmup": 350} if full else {"end": 80, "warmup": 65}
    traffic = range(100, 601, 100) if full else (100, 300, 600)
    ratios = (0.15, 0.27, 0.4, 4 / 7, 0.8, 4 / 3, 2) if full else (0.15, 4 / 7, 4 / 3)

    def at(name: str, kb: int, t: int, when: dict[str, Any] = span, **other: Any) -> dict[str, Any]:
        return dumbbell(scheme(name, kb, **other), t, web(t / 12), **when)

    def of_hred(kb: int, kappa: float, flows: int) -> dict[str, Any]:
        same = ["120ms"] * flows
        return dumbbell(scheme("hred", kb, kappa=kappa), flows, None, rtts=same, **brief)

    def with_web(name: str, sessions: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
        return dumbbell(scheme(name, 300), 300, sessions, **{**span, **more})

    def points(of: Callable[..., dict[str, Any]], **axes: Iterable[Any]) -> list[Point]:
        """Return the points of a grid: `of` is called with the axes' values, in their order."""
        grid = product(*axes.values())
        return [(dict(zip(axes, one, strict=True)), of(*one)) for one in grid]

    few = (100, 300, 600)
    sweep = points(at, qdisc=RULES, buffer=BUFFERS, T=traffic)
    sweep += points(at, qdisc=["hred"], buffer=(200, 1000), T=traffic)
    sweep += points(at, qdisc=["droptail"], buffer=[300], T=few)
    up = times[0]
    on: dict[str, Any] = {"end": times[2], "warmup": up, "sample": "10ms"}
    gammas = [
        (g, t) for g in (GAMMAS if full else GAMMAS[::2]) for t in few if g > 0.0005 or t < 600
    ]
    return {
        **_settings(full, span, times),
        "sweep": Experiment(sweep, steady, seeds),
        "rem": Experiment(
            points(lambda t: {**at("rem", 500, t), "sample": "10ms"}, T=few), over_time, seeds
        ),
        "web_on": Experiment(
            points(lambda q: with_web(q, web(25, start=f"{up}s"), **on), qdisc=RESPONDING),
            over_time,
            seeds,
        ),
        "web": Experiment(
            points(
                lambda q, rate: with_web(q, web(rate) if rate else None),
                qdisc=WITH_WEB,
                web=(0, 10, 25, 50) if full else (0, 50),
            ),
            steady,
            seeds,
        ),
        "shares": Experiment(
            points(lambda q: two_groups(scheme(q, 300), **span), qdisc=STATED_SHARES), shares, seeds
        ),
        "step": Experiment(
            points(
                lambda q, size: step(scheme(q, 300), size, *times),
                qdisc=RESPONDING,
                size=(10, 20, 30, 40, 50) if full else (30, 50),
            ),
            response,
            seeds,
        ),
        "testbed": Experiment(
            points(
                lambda q, x: gateway(scheme(q, 50, **TESTBED.get(q, {})), x, **span),
                qdisc=RULES,
                flows=LONG_FLOWS if full else LONG_FLOWS[::2],
            ),
            steady,
            seeds,
        ),
        "gamma": Experiment(
            [({"gamma": g, "T": t}, at("rem", 500, t, gamma=g)) for g, t in gammas], steady, extra
        ),
        "bound": Experiment(
            points(
                lambda kappa, ratio: of_hred(round(BDP_KB * ratio), kappa, 300),
                kappa=KAPPAS,
                ratio=ratios,
            ),
            steady,
            extra,
        ),
        "gain": Experiment(
            points(
                lambda kappa, n: of_hred(300, kappa, n),
                kappa=ALL_KAPPAS if full else ALL_KAPPAS[::2],
                flows=MANY,
            ),
            steady,
            2,
        ),
        "late": Experiment(
            points(lambda b, t: at("pi", b, t, late_span), buffer=BUFFERS, T=(300, 600)),
            steady,
            extra,
        ),
        "late_step": Experiment(
            points(
                lambda q, size: step(scheme(q, 300), size, *late_times),
                qdisc=("blue", "pi"),
                size=(10, 30, 50) if full else (30, 50),
            ),
            response,
            extra,
        ),
        "paths": Experiment(
            [
                ({"what": what}, two_groups(scheme("droptail", kb), **brief, **changed))
                for what, (kb, changed) in PATHS.items()
            ],
            shares,
            2,
        ),
        "tcp": Experiment(
            points(
                lambda what, q: (
                    with_web(q, web(25, **PLAIN_WEB), **brief)
                    if what == "web without pauses"
                    else with_web(q, web(25, tcp=TCPS[what]), tcp=TCPS[what], **brief)
                ),
                what=(*TCPS, "web without pauses"),
                qdisc=("red", "blue", "avq", "hred"),
            ),
            steady,
            2,
        ),
        "avq": Experiment(
            points(lambda g, t: at("avq", 300, t, gamma=g), gamma=AVQ_GAMMAS, T=(100, 300)),
            steady,
            2,
        ),
        "reds": Experiment(
            [
                (
                    {"what": what, "flows": x},
                    gateway(scheme("red", 50, **changed), x, **span, tcp=tcp),
                )
                for what, (changed, tcp) in REDS.items()
                for x in (50, 60)
            ],
            steady,
            2,
        ),
    }


PIC = {f"PIC with beta {beta:g}": {"beta": beta} for beta in (0.2, 0.3)}
"""PIC reconfigured for a faster response, as section IV.B of the paper says without numbers: the
crossover frequency times R+ (0.07 by the stated R+ and N-)."""

SIZES = "packets of 250 to 750 bytes"
NO_PAUSES = "web sessions without pauses"
INDEPENDENT = "independent drops of RED"
FASTER_REM = "gamma 0.01 for REM"
WIDE = "500 kB"
WIDE_AND_50 = "500 kB, tail drop with 50 packets"
LINUX_TCP = "SACK and delayed acks"
FEW = (100, 300, 600)


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


def _settings(
    full: bool, span: dict[str, Any], times: tuple[int, int, int]
) -> dict[str, Experiment]:
    """Return runs with other values of what the paper does not state, by experiment.

    The label `setting` names the value. What a setting does not affect has no runs here.
    """
    seeds = 3 if full else 2
    on: dict[str, Any] = {"end": times[2], "warmup": times[0], "sample": "10ms"}
    pics = PIC if full else dict(list(PIC.items())[:1])

    def at(name: str, kb: int, t: int, **other: Any) -> dict[str, Any]:
        return dumbbell(scheme(name, kb, **other), t, web(t / 12), **span)

    def starting(name: str, sessions: dict[str, Any], **other: Any) -> dict[str, Any]:
        return dumbbell(scheme(name, 300, **other), 300, sessions, **{**span, **on})

    late: dict[str, Any] = {"start": f"{times[0]}s"}
    sweep: list[Point] = [
        ({"setting": what, "qdisc": "pi", "buffer": b, "T": t}, at("pi", b, t, **own))
        for what, own in pics.items()
        for b in BUFFERS
        for t in FEW
    ]
    sweep += [
        ({"setting": INDEPENDENT, "qdisc": "red", "buffer": b, "T": t},
         at("red", b, t, wait="bernoulli"))
        for b in BUFFERS
        for t in FEW
    ]  # fmt: skip
    both = list(product(RULES, BUFFERS))
    sweep += [
        ({"setting": SIZES, "qdisc": q, "buffer": b, "T": t}, mixed(at(q, b, t)))
        for q, b in both
        for t in FEW
    ]
    web_on: list[Point] = [
        ({"setting": what, "qdisc": "pi"}, starting("pi", web(25, **late), **own))
        for what, own in pics.items()
    ]
    web_on += [
        ({"setting": NO_PAUSES, "qdisc": q}, starting(q, web(25, **late, **PLAIN_WEB)))
        for q in RESPONDING
    ]
    web_on += [
        ({"setting": SIZES, "qdisc": q}, mixed(starting(q, web(25, **late)))) for q in RESPONDING
    ]
    steps: list[Point] = [
        ({"setting": what, "qdisc": "pi", "size": size},
         step(scheme("pi", 300, **own), size, *times))
        for what, own in pics.items()
        for size in ((10, 20, 30, 40, 50) if full else (30, 50))
    ]  # fmt: skip
    table: list[Point] = []
    for q in STATED_SHARES:
        fifty = 25 if q == "droptail" else 500
        table += [
            ({"setting": WIDE, "qdisc": q}, two_groups(scheme(q, 500), **span)),
            ({"setting": WIDE_AND_50, "qdisc": q}, two_groups(scheme(q, fifty), **span)),
            ({"setting": SIZES, "qdisc": q}, mixed(two_groups(scheme(q, 300), **span))),
        ]
    sack = {"name": "sack", "profile": "rfc", "packet": "500B"}
    bed: list[Point] = [
        ({"setting": LINUX_TCP, "qdisc": q, "flows": x},
         gateway(scheme(q, 50, **TESTBED.get(q, {})), x, **span, tcp=sack))
        for q in RULES
        for x in (LONG_FLOWS if full else LONG_FLOWS[::2])
    ]  # fmt: skip
    rem: list[Point] = [
        ({"setting": FASTER_REM, "T": t}, {**at("rem", 500, t, gamma=0.01), "sample": "10ms"})
        for t in FEW
    ]
    return {
        "sweep settings": Experiment(sweep, steady, seeds),
        "rem settings": Experiment(rem, over_time, seeds),
        "web_on settings": Experiment(web_on, over_time, seeds),
        "shares settings": Experiment(table, shares, seeds),
        "step settings": Experiment(steps, response, seeds),
        "testbed settings": Experiment(bed, steady, seeds),
    }
