"""Experiments beyond the paper's figures: sections III.D and VI, and one parameter changed."""

from dataclasses import replace
from typing import Any

from sojourn_lab.papers.hred.checks import BUFFERS, RULES
from sojourn_lab.papers.hred.common import (
    NEWRENO,
    PAPER,
    SetUp,
    dumbbell,
    ftp,
    joining,
    scheme,
    two_groups,
    web,
)
from sojourn_lab.papers.hred.measures import overflow, response, shares, steady
from sojourn_lab.papers.hred.runs import FEW, Plan, of_the_paper, points
from sojourn_lab.papers.hred.settings import PLAIN_WEB, varied
from sojourn_lab.reproduction.paper import Experiment, Point

BDP_KB = 675
"""Bandwidth-delay product: 45 Mbit/s times 120 ms, the mean round-trip time."""

GAMMAS = (0.01, 0.003, 0.001, 0.0005, 0.0002, 0.0001)
AVQ_GAMMAS = (1, 0.98, 0.95)
KAPPAS = (1, 2, 4)
ALL_KAPPAS = (0.1, 0.15, 0.25, 0.5, 1, 2, 4)
MANY = (100, 300)
"""Numbers of FTPs in the figures of the stability bound."""

T_ALPHAS = (50, 100, 200, 400, 800, 1600)
"""Values of T_alpha in ms, each with half of it as T_beta."""

BANDS: dict[str, dict[str, Any]] = {
    "asymmetric": {},
    "symmetric": {"max_th": 0.75, "t_alpha": "200ms"},
}
"""Configurations of section III.D, as changes of the set-up."""

CORRECTIONS = ("none", "step", "reset")
"""Corrections of p_min at overflows."""

RATIOS = ((400, 200), (200, 200), (400, 400), (200, 400))
"""T_alpha and T_beta in ms: K_beta is 4, 1, 1 and 1/4 times K_alpha."""

P_INITS = (0.0, 0.05, 0.15)
"""Initial drop probabilities of PIC."""

GROUPS = (15, 50, 150)
"""Flows of each round-trip time in the comparison with XCP."""

XCP: dict[str, Any] = {"name": "xcp", "profile": "rfc", "packet": "500B"}

TCPS: dict[str, Any] = {
    "SACK": {**NEWRENO, "name": "sack"},
    "delayed acks": {**NEWRENO, "delayed_ack": True},
    "SACK by the RFCs": {"name": "sack", "packet": "500B"},
}

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

REDS: dict[str, dict[str, Any]] = {
    "as in figure 13": {},
    "w_q 2^-9": {"w_q": 2**-9},
    "not gentle": {"gentle": "none"},
    "w_q 0.0002": {"w_q": 0.0002},
    "max_p 0.05": {"max_p": 0.05},
    "delayed acks": {"tcp": TCPS["delayed acks"]},
}
"""Variants of the testbed's RED: its parameters, and TCP's."""


def _overflowing(plan: Plan, band: str, correction: str) -> dict[str, Any]:
    """Return HRED with 100 FTPs, which 600 more join at 30 s."""
    own = replace(plan.set_up, **BANDS[band])
    qdisc = scheme("hred", own.kb, own, overflow=correction)
    base = dumbbell(qdisc, 100, None, end=60, warmup=20, sample="20ms", set_up=own)
    rtts = own.rtts(700)
    more = [ftp(f"more-{i}", rtts[i], own.newreno, "0s") for i in range(100, 700)]
    return joining(base, more, 30)


def _responding(plan: Plan, t_alpha: int) -> dict[str, Any]:
    times = {"t_alpha": f"{t_alpha}ms", "t_beta": f"{t_alpha / 2:g}ms"}
    return plan.step("hred", 30, **times)


def _signalling(plan: Plan, signal: str, name: str, t: int) -> dict[str, Any]:
    """Return traffic T with drops, or with ECN at all senders and marks instead."""
    if signal == "drops":
        return plan.sweep(name, plan.set_up.kb, t)
    tcp = {**plan.set_up.newreno, "ecn": True}
    qdisc = plan.qdisc(name, plan.set_up.kb, ecn=True)
    sessions = web(t / 12, set_up=plan.set_up, tcp=tcp)
    return dumbbell(qdisc, t, sessions, tcp=tcp, set_up=plan.set_up, **plan.span)


def of_sections(plan: Plan, seeds: int = 3) -> dict[str, Experiment]:
    """Return the experiments for sections III.D and VI: overflows, T_alpha, ECN and XCP."""
    kb, brief = plan.set_up.kb, plan.brief
    groups = GROUPS if plan.full else GROUPS[::2]

    def compared(name: str, each: int) -> dict[str, Any]:
        tcp = XCP if name == "xcp" else None
        return two_groups(plan.qdisc(name, kb), each=each, tcp=tcp, set_up=plan.set_up, **brief)

    def explicit(t: int) -> dict[str, Any]:
        sessions = web(t / 12, set_up=plan.set_up, tcp=XCP)
        return dumbbell(plan.qdisc("xcp", kb), t, sessions, tcp=XCP, set_up=plan.set_up, **brief)

    return {
        "overflow": Experiment(
            points(
                lambda band, correction: _overflowing(plan, band, correction),
                band=BANDS,
                correction=CORRECTIONS,
            ),
            overflow,
            5 if plan.full else 2,
        ),
        "t_alpha": Experiment(
            points(
                lambda t: _responding(plan, t),
                t_alpha=T_ALPHAS if plan.full else (50, 400, 1600),
            ),
            response,
            seeds,
        ),
        "ratio": Experiment(
            [
                (
                    {"buffer": b, "T": t, "t_alpha": up, "t_beta": down},
                    plan.sweep("hred", b, t, t_alpha=f"{up}ms", t_beta=f"{down}ms"),
                )
                for b, t in ((200, 100), (1000, 600))
                for up, down in RATIOS
            ],
            steady,
            seeds,
        ),
        "ecn": Experiment(
            points(
                lambda signal, q, t: _signalling(plan, signal, q, t),
                signal=("marks", "drops"),
                qdisc=RULES,
                T=FEW,
            ),
            steady,
            seeds,
        ),
        "xcp": Experiment(points(compared, qdisc=("xcp", "hred"), each=groups), shares, seeds),
        "xcp sweep": Experiment(points(explicit, T=FEW), steady, seeds),
    }


def one_changed(plan: Plan) -> dict[str, Experiment]:
    """Return tables and figures with one parameter changed."""
    full, extra = plan.full, 3 if plan.full else 2
    brief: dict[str, Any] = plan.brief
    ratios = (0.15, 0.27, 0.4, 4 / 7, 0.8, 4 / 3, 2) if full else (0.15, 4 / 7, 4 / 3)
    late: dict[str, Any] = {"end": 400, "warmup": 350} if full else {"end": 80, "warmup": 65}

    def of_hred(kb: int, kappa: float, flows: int) -> dict[str, Any]:
        same = ["120ms"] * flows
        qdisc = plan.qdisc("hred", kb, kappa=kappa)
        return dumbbell(qdisc, flows, None, rtts=same, set_up=plan.set_up, **brief)

    def other_tcp(what: str, name: str) -> dict[str, Any]:
        plain, tcp = (PLAIN_WEB, None) if what == "web without pauses" else ({}, TCPS[what])
        own = plan.set_up
        sessions = web(own.web_rate, set_up=own, tcp=tcp, **plain)
        return dumbbell(plan.qdisc(name, own.kb), own.ftps, sessions, tcp=tcp, set_up=own, **brief)

    gammas: list[Point] = [
        ({"gamma": g, "T": t}, plan.sweep("rem", 500, t, gamma=g))
        for g in (GAMMAS if full else GAMMAS[::2])
        for t in FEW
        if g > 0.0005 or t < 600
    ]
    return {
        "gamma": Experiment(gammas, steady, extra),
        "bound": Experiment(
            points(lambda k, r: of_hred(round(BDP_KB * r), k, 300), kappa=KAPPAS, ratio=ratios),
            steady,
            extra,
        ),
        "gain": Experiment(
            points(
                lambda k, n: of_hred(300, k, n),
                kappa=ALL_KAPPAS if full else ALL_KAPPAS[::2],
                flows=MANY,
            ),
            steady,
            5 if full else 2,
        ),
        "late": Experiment(
            points(
                lambda b, t: {
                    **plan.sweep("pi", b, t),
                    "duration": f"{late['end']}s",
                    "warmup": f"{late['warmup']}s",
                },
                buffer=BUFFERS,
                T=(300, 600),
            ),
            steady,
            extra,
        ),
        "p_init": Experiment(
            points(
                lambda p, t: plan.sweep("pi", plan.set_up.kb, t, p_init=p), p_init=P_INITS, T=FEW
            ),
            steady,
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
                other_tcp,
                what=(*TCPS, "web without pauses"),
                qdisc=("red", "blue", "avq", "hred"),
            ),
            steady,
            2,
        ),
        "avq": Experiment(
            points(lambda g, t: plan.sweep("avq", 300, t, gamma=g), gamma=AVQ_GAMMAS, T=(100, 300)),
            steady,
            2,
        ),
        "reds": Experiment(
            [
                ({"what": what, "flows": x}, plan.bed("red", x, **changed))
                for what, changed in REDS.items()
                for x in (50, 60)
            ],
            steady,
            2,
        ),
    }


def scenarios(full: bool, set_up: SetUp = PAPER) -> dict[str, Experiment]:
    """Return the paper's experiments, the settings varied, and further experiments."""
    plan = Plan(full, set_up)
    return {**of_the_paper(plan), **varied(plan), **of_sections(plan), **one_changed(plan)}
