"""Experiments of the paper on EWFQ."""

from dataclasses import replace
from typing import Any

from sojourn_lab.papers.ewfq import measurement, shares
from sojourn_lab.papers.ewfq.runs import (
    CHANGES,
    LOW_UDP,
    MEMBERS,
    OTHERS,
    OURS,
    QUICK_CHANGES,
    SetUp,
    measure,
    measure_lone,
    measure_losses,
    network,
    one_class,
    tiny_queue,
    touches,
)
from sojourn_lab.reproduction.claims import Setting, overlay
from sojourn_lab.reproduction.paper import Experiment, Point

LOSSES_AT = ((10, 1), (30, 1), (90, 1), (10, 10))
"""Buffer in kB, TCPs per source."""
WINDOWS = (10, 20, 50, 100)
LAWS = {"d": 0, "n d": 1, "n² d": 2}

JUDGED = {"ewfq": (5, 7, 10, 30, 90, 150), "wfq": (5, 7, 10, 30, 45, 60, 75, 90, 120, 150)}
"""Buffers in kB that the claims about figure 4 read; every setting runs them all."""

NODE_SCHEMES = ("ewfq", "wfq", "wfq_varied")
PLACES = ("Uniform", "Varied")


def scenarios(full: bool, set_up: SetUp = OURS) -> dict[str, Experiment]:
    """Return the experiments: figures, other schedulers, settings, single TCPs, measurement."""
    every = sorted({*range(5, 20), *range(20, 151, 10), *JUDGED["wfq"]})
    sizes = {one: every if full else JUDGED[one] for one in ("ewfq", "wfq")}
    few = (5, 10, 20, 30, 60, 90, 120, 150) if full else (5, 10, 30, 90)
    fq = replace(set_up, wfq="scfq", head_counts=False)
    nodes: list[Point] = [
        ({"network": name, "qdisc": scheme}, network(name, scheme, set_up.node_kb, set_up))
        for name in PLACES
        for scheme in NODE_SCHEMES
    ]
    alone: list[Point] = [
        ({"network": "Uniform", "qdisc": "ewfq"}, network("Uniform", "ewfq", set_up.node_kb,
                                                          set_up))
    ]  # fmt: skip
    sweep: list[Point] = [
        ({"qdisc": scheme, "kb": kb}, network("Five", scheme, kb, set_up))
        for scheme in JUDGED
        for kb in sizes[scheme]
    ]
    others: list[Point] = [
        ({"qdisc": scheme, "kb": kb}, network("Five", scheme, kb, set_up))
        for scheme in OTHERS
        for kb in few
    ]
    others += [({"qdisc": "ns2_fq", "kb": kb}, network("Five", "wfq", kb, fq)) for kb in few]
    varied: list[Point] = [
        ({"qdisc": scheme}, network("Varied", scheme, set_up.node_kb, set_up)) for scheme in OTHERS
    ]
    losses: list[Point] = [
        ({"kb": kb, "n": n}, network("Five", "ewfq", kb, replace(set_up, tcps=n)) | LOGGED)
        for kb, n in LOSSES_AT
    ]
    single: list[Point] = [
        ({"case": case, "P": window}, tree)
        for window in WINDOWS
        for case, tree in (
            ("tail", tiny_queue(window, set_up)),
            ("3/8", one_class(1, window, 8 / 3 / window**2, set_up)),
            ("2/3", one_class(1, window, 3 / 2 / window**2, set_up)),
        )
    ]
    classes: list[Point] = [
        ({"law": law, "n": n}, one_class(n, 100, n**power * 1.5e-4, set_up))
        for law, power in LAWS.items()
        for n in MEMBERS
    ]
    many, some = (10, 5) if full else (5, 3)
    return {
        "nodes": Experiment(nodes, measure, many),
        "single runs": Experiment(alone, measure, 40 if full else 5),
        "sweep": Experiment(sweep, measure, 10 if full else 3),
        "others": Experiment(others, measure, some),
        "varied": Experiment(varied, measure, many),
        **_settings(full, set_up),
        "losses": Experiment(losses, measure_losses, some),
        "single": Experiment(single, measure_lone, many),
        "classes": Experiment(classes, measure_lone, some),
        **measurement.experiments(full, set_up),
        **shares.experiments(full, set_up),
    }


LOGGED: dict[str, Any] = {"packet_log": True}


def _settings(full: bool, set_up: SetUp) -> dict[str, Experiment]:
    """Return the runs with other settings: all points that the claims read."""
    names = list(CHANGES if full else QUICK_CHANGES)
    own = {what: replace(set_up, **CHANGES[what]) for what in names}
    nodes: list[Point] = [
        ({"setting": what, "network": name, "qdisc": scheme},
         network(name, scheme, own[what].node_kb, own[what]))
        for what in names
        for name in PLACES
        for scheme in NODE_SCHEMES
        if touches(scheme, what)
    ]  # fmt: skip
    sweep: list[Point] = [
        ({"setting": what, "qdisc": scheme, "kb": kb}, network("Five", scheme, kb, own[what]))
        for what in names
        for scheme, sizes in JUDGED.items()
        for kb in sizes
        if touches(scheme, what)
    ]
    low = [one for one in sweep if one[0]["setting"] in LOW_UDP]
    rest = [one for one in sweep if one[0]["setting"] not in LOW_UDP]
    some = 4 if full else 3
    return {
        "nodes settings": Experiment(nodes, measure, some),
        "sweep settings": Experiment(rest, measure, some),
        "sweep, low UDP": Experiment(low, measure, 10 if full else 3),
    }


def _setting(what: str) -> Setting:
    """Return the setting with a change of the set-up, in all experiments that ran with it."""
    sweep = "sweep, low UDP" if what in LOW_UDP else "sweep settings"
    replaces = {
        "nodes": overlay("nodes settings", setting=what),
        "sweep": overlay(sweep, setting=what),
    }
    if what in shares.WEIGHTED_CHANGES:
        replaces["weights"] = overlay("weights settings", setting=what)
    return Setting(what, replaces)


SETTINGS = [_setting(what) for what in CHANGES]
