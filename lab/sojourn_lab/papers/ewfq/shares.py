"""Unequal weights, and short flows, under EWFQ and WFQ."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sojourn._util.units import seconds
from sojourn.plotting.lines import lines, style
from sojourn.plotting.run import legend
from sojourn.result.result import FATES, Result
from sojourn.result.statistics import interval
from sojourn_lab.papers.ewfq.runs import (
    AS_CHOSEN,
    CHANGES,
    NETWORKS,
    SetUp,
    Tree,
    measure,
    network,
    touches,
)
from sojourn_lab.reproduction.claims import Runs, values
from sojourn_lab.reproduction.paper import Experiment, Point, figure, table
from sojourn_lab.reproduction.parts import Part, bound, result_of, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WEIGHTS = {"1:2:1": (1.0, 2.0, 1.0), "1:4:1": (1.0, 4.0, 1.0), "1:1:2": (1.0, 1.0, 2.0)}
"""Weights of the two TCPs and of UDP."""
PLACES = ("Uniform", "Varied")
WEIGHTED_CHANGES = (
    "SACK", "packets of 500 B", "150 s, all counted", "step of m_fair / 1000",
    "no credit for missed bytes",
    "every byte counted (k = 0, p = 1)",
    "RTT_o four times as long", "UDP taken for responsive",
)  # fmt: skip
"""Changes of the set-up that the experiment on weights runs with."""

SHORT_PACKETS = 10
SHORT_LOAD = "1mbit"
SHORT_SCHEMES = {"ewfq": "EWFQ", "wfq": "WFQ, even buffers", "fq_codel": "FQ-CoDel",
                 "droptail": "one FIFO, tail drop"}  # fmt: skip
SHORT_KB = (10, 30, 90, 150)


def with_short_flows(scheme: str, kb: int, set_up: SetUp) -> Tree:
    """Return the network of five sources and a class of short flows that arrive at random."""
    tree = network("Five", scheme, kb, set_up, more=1)
    wide = {"name": "droptail", "limit": set_up.access_buffer}
    tree["links"]["access-short"] = {"rate": "100mbit", "delay": "20ms", "qdisc": wide}
    number = len(NETWORKS["Five"][0])
    size = f"{SHORT_PACKETS * 960}B"
    flow: Tree = {"name": "short", "class": number, "path": ["access-short", "bottleneck"]}
    flow |= {"tcp": set_up.agent, "rtt": "44ms"}
    flow["source"] = {"name": "poisson", "size": size, "load": SHORT_LOAD}
    tree["flows"].append(flow)
    return tree | {"packet_log": True}


def measure_short(result: Result) -> dict[str, Any]:
    """Keep completion times of the short flows, and the shares of their packets dropped, in %."""
    begin = seconds(result.scenario["warmup"])
    done = result.completions
    took = done["duration_s"][done["start_s"] >= begin]
    log = result.links["bottleneck"].packet_log
    fate = log.fate[(log.arrived_s >= begin) & (log["class"] == len(NETWORKS["Five"][0]))]
    drops = {why: 100 * float((fate == FATES.index(why)).mean()) for why in ("full", "early")}
    late = 100 * float((fate == FATES.index("late")).mean())
    return {
        "mean_s": float(took.mean()),
        "p95_s": float(np.quantile(took, 0.95)),
        "flows": len(took),
        "full": drops["full"],
        "early": drops["early"] + late,
    }


def experiments(full: bool, set_up: SetUp) -> dict[str, Experiment]:
    """Return the experiments of this module."""
    cases = [(place, label) for place in PLACES for label in WEIGHTS]

    def weighted(place: str, scheme: str, label: str, own: SetUp) -> Tree:
        return network(place, scheme, own.node_kb, own, WEIGHTS[label])

    weights: list[Point] = [
        ({"network": place, "qdisc": scheme, "weights": label},
         weighted(place, scheme, label, set_up))
        for place, label in cases
        for scheme in ("ewfq", "wfq")
    ]  # fmt: skip
    changed: list[Point] = [
        ({"setting": what, "network": place, "qdisc": "ewfq", "weights": label},
         weighted(place, "ewfq", label, replace(set_up, **CHANGES[what])))
        for what in (WEIGHTED_CHANGES if full else WEIGHTED_CHANGES[:1])
        for place, label in cases
        if touches("ewfq", what)
    ]  # fmt: skip
    mice: list[Point] = [
        ({"qdisc": scheme, "kb": kb}, with_short_flows(scheme, kb, set_up))
        for scheme in SHORT_SCHEMES
        for kb in SHORT_KB
    ]
    return {
        "weights": Experiment(weights, measure, 10 if full else 3),
        "weights settings": Experiment(changed, measure, 4 if full else 3),
        "short": Experiment(mice, measure_short, 5 if full else 3),
    }


def by_weight(runs: Runs) -> list[Part]:
    """C13: Jain's index of the bandwidths divided by the weights, in both networks.

    Fails wrongly: if the paper means shares less exactly than 0.005 of the index. Passes wrongly:
    0.005 accepts a class 10 % off its share; the table has all shares.
    """
    parts = []
    for place in PLACES:
        for label in WEIGHTS:
            at = {"network": place, "qdisc": "ewfq", "weights": label}
            index = interval(values(runs["weights"], "jain", **at))
            result = result_of(index, index.low > 0.995, index.high < 0.995)
            what = f"{place}, {label}: index of bandwidth / weight"
            measured = f"{index.mean:.4f} ± {index.half:.4f}"
            parts.append(Part(what, "> 0.995", measured, result, index, brief=measured[:6]))
    return parts


def spared(runs: Runs) -> list[Part]:
    """C17: early drops of short flows below their share.

    Fails wrongly: bursts of short flows may exceed the share for an interval. Passes wrongly: drops
    by a full buffer are not early drops; the table has both, and completion times.
    """
    return [
        bound(f"{kb} kB: packets of short flows dropped early",
              values(runs["short"], "early", qdisc="ewfq", kb=kb), "<", 0.1, unit="%")
        for kb in SHORT_KB
    ]  # fmt: skip


def times(runs: Runs, kb: int) -> str:
    """Return the mean completion times of short flows with EWFQ and with WFQ."""
    each = (values(runs["short"], "mean_s", qdisc=one, kb=kb).mean() for one in ("ewfq", "wfq"))
    return f"{' against '.join(short(1e3 * one) for one in each)} ms"


def filled(runs: Runs, kb: int) -> str:
    """Return the share of the packets of short flows that a full buffer drops with EWFQ."""
    return f"{short(float(values(runs['short'], 'full', qdisc='ewfq', kb=kb).mean()))} %"


def _share(place: str, label: str, i: int) -> float:
    """Return the share of class `i` in Mbit/s."""
    weights = WEIGHTS[label]
    return NETWORKS[place][1] * weights[i] / sum(weights)


@figure("weights", "Unequal weights, Varied network, 30 kB: bandwidth over share",
        needs=["weights"])  # fmt: skip
def figure_weights(runs: Runs, ax: "Axes") -> None:
    """Draw the bandwidth of each class over its share by weight, disciplines side by side."""
    for n, scheme in enumerate(("ewfq", "wfq")):
        xs, intervals = [], []
        for j, label in enumerate(WEIGHTS):
            at = {"network": "Varied", "qdisc": scheme, "weights": label}
            for i in range(3):
                share = _share("Varied", label, i)
                intervals.append(interval(values(runs["weights"], f"s{i + 1}", **at) / share))
                xs.append(4 * j + i + (n - 0.5) * 0.3)
        look = style(n) | {"ls": "", "ms": 5}
        ax.errorbar(xs, [one.mean for one in intervals], yerr=[one.half for one in intervals],
                    label=("EWFQ", "WFQ, buffers by weight")[n], capsize=2, elinewidth=0.8,
                    **look)  # fmt: skip
    ax.axhline(1, color="#555555", lw=0.8, ls=":")
    classes = ("s1", "s2", "UDP")
    ticks = [4 * j + i for j in range(len(WEIGHTS)) for i in range(3)]
    names = [f"{classes[i]}\nw {int(w[i])}" for w in WEIGHTS.values() for i in range(3)]
    ax.set_xticks(ticks, names)
    ax.set(ylabel="bandwidth / share by weight", ylim=(0.6, None))
    legend(ax)


@figure("short", "Completion time of short flows (10 packets, RTT 44 ms), five sources",
        needs=["short"])  # fmt: skip
def figure_short(runs: Runs, ax: "Axes") -> None:
    """Draw mean completion times against the buffer."""
    lines(ax, runs["short"], "kb", "mean_s", by="qdisc", names=SHORT_SCHEMES, scale=1e3)
    ax.set(xlabel="buffer, kB", ylabel="mean completion time, ms", ylim=(0, None))
    ax.set_xticks(SHORT_KB, [str(kb) for kb in SHORT_KB])


@table("weights", "Unequal weights, 30 kB: bandwidth over share by weight",
       needs=["weights", "weights settings"])  # fmt: skip
def table_weights(runs: Runs) -> pl.DataFrame:
    """Tabulate shares and the index, in our set-up and with other settings."""
    base = runs["weights"].with_columns(setting=pl.lit(AS_CHOSEN))
    frame = pl.concat([base, runs["weights settings"]], how="diagonal_relaxed")
    rows = []
    keys = ["setting", "network", "weights", "qdisc"]
    for at in frame.select(keys).unique(maintain_order=True).iter_rows(named=True):
        means = [values(frame, f"s{i + 1}", **at).mean() for i in range(3)]
        shares = [_share(at["network"], at["weights"], i) for i in range(3)]
        cells = [f"{one / share:.3f}" for one, share in zip(means, shares, strict=True)]
        index = interval(values(frame, "jain", **at))
        total = f"{values(frame, 'total', **at).mean():.2f}"
        rows.append([*at.values(), *cells, f"{index.mean:.4f} ± {index.half:.4f}", total])
    names = ["setting", "network", "weights", "scheduler", "s1", "s2", "UDP"]
    return pl.DataFrame(
        rows, schema=[*names, "index of bandwidth / weight", "total, Mbit/s"], orient="row"
    )


@table("short", "Short flows in the network of five sources", needs=["short"])
def table_short(runs: Runs) -> pl.DataFrame:
    """Tabulate completion times and drops of the short flows."""
    frame, rows = runs["short"], []
    for scheme, name in SHORT_SCHEMES.items():
        for kb in SHORT_KB:
            means = {
                what: values(frame, what, qdisc=scheme, kb=kb).mean()
                for what in ("mean_s", "p95_s", "full", "early")
            }
            times = [f"{1e3 * means[one]:.0f}" for one in ("mean_s", "p95_s")]
            rows.append([name, kb, *times, *(f"{means[one]:.3f}" for one in ("full", "early"))])
    names = ["scheduler", "buffer, kB", "mean time, ms", "95th percentile, ms"]
    names += ["dropped, buffer full, %", "dropped by the algorithm, %"]
    return pl.DataFrame(rows, schema=names, orient="row")
