"""The future work of `codel_vs_drr`: links that lose packets, calls, and sizes of buffers."""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sojourn._util.units import seconds
from sojourn.metrics import tcp_goodput_bps
from sojourn.plotting.lines import lines
from sojourn.result.result import FATES, Result
from sojourn_lab.papers.codel_vs_drr.runs import FQ_CODEL, NAMES, RATES, SetUp, dumbbell, measure
from sojourn_lab.reproduction.claims import Runs, mean
from sojourn_lab.reproduction.paper import Experiment, Point, figure, table
from sojourn_lab.reproduction.parts import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Table = dict[str, Any]

LOSSES = (0.0, 0.001, 0.01, 0.03)
"""Probabilities that a link loses a packet, independently of other packets."""
BUFFERS_KB = (12.5, 25, 50, 100, 400)
SLOW, FAST = 2, 10
"""Rates of the bottleneck in Mbit/s."""
LABELS = {**NAMES, "fq_codel": "FQ-CoDel"}
CALL = {"name": "cbr", "rate": "80kbit", "packet": "200B", "start": "uniform(0s, 1s)"}
"""A telephone call: G.711, 160 bytes every 20 ms, with 40 bytes of headers."""


def lossy(qdisc: Table, rate: int, loss: float, set_up: SetUp) -> Table:
    """Return the dumbbell with a bottleneck that loses packets at random in each direction."""
    tree = dumbbell(qdisc, rate, set_up=set_up)
    return tree | {"links": {name: {**one, "loss": loss} for name, one in tree["links"].items()}}


def with_calls(qdisc: Table, rate: int, set_up: SetUp) -> Table:
    """Return the dumbbell with a telephone call in each direction."""
    tree = dumbbell(qdisc, rate, set_up=set_up)
    calls = [{"name": f"call-{way}", "path": [way], "source": CALL} for way in tree["links"]]
    return tree | {"flows": [*tree["flows"], *calls]}


def measure_lossy(result: Result) -> dict[str, Any]:
    """Keep the goodput of the FTPs of one direction in Mbit/s, with headers, and the queue."""
    goodput = tcp_goodput_bps(result, "ftp-forward", wire=True) / 1e6
    return {"goodput_mbps": goodput, **measure(result)}


def measure_call(result: Result) -> dict[str, Any]:
    """Keep the loss of the call in % and percentiles of its queueing delay, in one direction."""
    log = result.links["forward"].packet_log
    call = list(result.flows).index("call-forward")
    counted = (log.arrived_s >= seconds(result.scenario["warmup"])) & (log.flow == call)
    sent = counted & (log.fate == FATES.index("sent"))
    waited = (log.left_s - log.arrived_s)[sent]
    half, most = np.percentile(waited, [50, 99])
    return {
        "lost": 100 * (1 - float(sent.sum() / counted.sum())),
        "median_s": float(half),
        "p99_s": float(most),
    }


def experiments(full: bool, set_up: SetUp) -> dict[str, Experiment]:
    """Return the experiments of this module."""
    both = {"codel": set_up.codel, "drr": set_up.drr}
    losses: list[Point] = [
        ({"qdisc": name, "loss": loss}, lossy(qdisc, FAST, loss, set_up))
        for name, qdisc in both.items()
        for loss in LOSSES
    ]
    calls: list[Point] = [
        ({"qdisc": name, "rate": rate}, with_calls(qdisc, rate, set_up))
        for name, qdisc in {**both, "fq_codel": FQ_CODEL}.items()
        for rate in RATES
    ]
    buffers: list[Point] = [
        ({"qdisc": name, "rate": rate, "kb": kb},
         dumbbell({**qdisc, "limit": f"{1000 * kb:.0f}B"}, rate, set_up=set_up))
        for name, qdisc in both.items()
        for rate in (SLOW, FAST)
        for kb in BUFFERS_KB
    ]  # fmt: skip
    some = 3 if full else 2
    return {
        "losses": Experiment(losses, measure_lossy, some),
        "calls": Experiment(calls, measure_call, some),
        "buffers": Experiment(buffers, measure, some),
    }


@figure("loss", "10 Mbit/s, a link that loses packets at random: goodput of the FTPs",
        needs=["losses"])  # fmt: skip
def figure_loss(runs: Runs, ax: "Axes") -> None:
    """Draw the goodput against the loss of the link."""
    places = {loss: i for i, loss in enumerate(LOSSES)}
    placed = runs["losses"].with_columns(place=pl.col("loss").replace_strict(places))
    lines(ax, placed, "place", "goodput_mbps", by="qdisc", names=NAMES)
    ax.set_xticks(range(len(LOSSES)), [f"{100 * one:g}" for one in LOSSES])
    ax.set(xlabel="packets lost by the link, %", ylabel="goodput, Mbit/s", ylim=(0, None))


@figure("calls", "A call among the FTPs: its queueing delay", needs=["calls"])
def figure_calls(runs: Runs, ax: "Axes") -> None:
    """Draw the delay of the call against the rate."""
    lines(ax, runs["calls"], "rate", "p99_s", by="qdisc", names=LABELS, scale=1e3)
    ax.set(xlabel="bottleneck, Mbit/s", ylabel="99th percentile, ms", xscale="log", yscale="log")
    ax.set_xticks(RATES, [str(one) for one in RATES])
    ax.set_yticks([1, 10, 100], ["1", "10", "100"])
    ax.minorticks_off()


@figure("buffers", "Queueing delay with equal buffers, 2 Mbit/s", needs=["buffers"])
def figure_buffers(runs: Runs, ax: "Axes") -> None:
    """Draw the mean queueing delay against the buffer, at the slow rate."""
    slow = runs["buffers"].filter(pl.col("rate") == SLOW)
    lines(ax, slow, "kb", "wait_mean_s", by="qdisc", names=NAMES, scale=1e3)
    ax.set(xlabel="buffer, kB", ylabel="mean queueing delay, ms", xscale="log", yscale="log")
    ax.set_xticks(BUFFERS_KB, [f"{one:g}" for one in BUFFERS_KB])
    ax.set_yticks([10, 30, 100, 300], ["10", "30", "100", "300"])
    ax.minorticks_off()


def _means(runs: Runs, experiment: str, what: dict[str, float], **at: Any) -> list[str]:
    """Return the means of columns, each with its factor, as text."""
    return [short(scale * mean(runs[experiment], one, **at)) for one, scale in what.items()]


@table("loss", "10 Mbit/s, a link that loses packets at random", needs=["losses"])
def table_loss(runs: Runs) -> pl.DataFrame:
    """Tabulate goodput, queueing delay and drops of the queue by the loss of the link."""
    what = {"goodput_mbps": 1, "wait_mean_s": 1e3, "drops_per_s": 1}
    rows = [
        [f"{100 * loss:g}", label, *_means(runs, "losses", what, qdisc=name, loss=loss)]
        for loss in LOSSES
        for name, label in NAMES.items()
    ]
    names = ["lost by the link, %", "qdisc", "goodput of the FTPs, Mbit/s"]
    names += ["mean queueing delay, ms", "dropped by the queue, /s"]
    return pl.DataFrame(rows, schema=names, orient="row")


@table("calls", "A call among the FTPs", needs=["calls"])
def table_calls(runs: Runs) -> pl.DataFrame:
    """Tabulate loss and queueing delay of the call."""
    what = {"lost": 1, "median_s": 1e3, "p99_s": 1e3}
    rows = [
        [str(rate), label, *_means(runs, "calls", what, qdisc=name, rate=rate)]
        for rate in RATES
        for name, label in LABELS.items()
    ]
    names = ["Mbit/s", "qdisc", "lost, %", "median queueing delay, ms", "99th percentile, ms"]
    return pl.DataFrame(rows, schema=names, orient="row")


@table("buffers", "CoDel and DRR with equal buffers", needs=["buffers"])
def table_buffers(runs: Runs) -> pl.DataFrame:
    """Tabulate queueing delay, drops and utilisation by rate and buffer."""
    what = {"wait_mean_s": 1e3, "drops_per_s": 1, "utilisation": 100}
    rows = [
        [str(rate), f"{kb:g}", label, *_means(runs, "buffers", what, qdisc=name, rate=rate, kb=kb)]
        for rate in (SLOW, FAST)
        for kb in BUFFERS_KB
        for name, label in NAMES.items()
    ]
    names = ["Mbit/s", "buffer, kB", "qdisc", "mean queueing delay, ms", "dropped, /s"]
    return pl.DataFrame(rows, schema=[*names, "utilisation, %"], orient="row")


def least_buffer(runs: Runs) -> str:
    """Return mean queueing delays of both at 2 Mbit/s with DRR's default buffer and the largest."""
    texts = []
    for kb in (25, BUFFERS_KB[-1]):
        at = {"rate": SLOW, "kb": kb}
        both = (1e3 * mean(runs["buffers"], "wait_mean_s", qdisc=one, **at) for one in NAMES)
        texts.append(f"{' against '.join(short(one) for one in both)} ms with {kb} kB")
    return " and ".join(texts)


def goodput_at(runs: Runs) -> str:
    """Return goodputs of both on a link that loses nothing, and one that loses most."""
    texts = []
    for loss in (LOSSES[0], LOSSES[-1]):
        each = (mean(runs["losses"], "goodput_mbps", qdisc=one, loss=loss) for one in NAMES)
        texts.append(f"{' against '.join(short(one) for one in each)} Mbit/s at {100 * loss:g} %")
    return " and ".join(texts)


def call_at(runs: Runs) -> str:
    """Return the 99th percentile of the call's delay with each discipline at the slow rate."""
    each = (
        f"{short(1e3 * mean(runs['calls'], 'p99_s', qdisc=name, rate=SLOW))} ms with {label}"
        for name, label in LABELS.items()
    )
    return ", ".join(each)


def call_lost(runs: Runs) -> str:
    """Return the loss of the call with each discipline at the slow rate."""
    each = (
        f"{short(mean(runs['calls'], 'lost', qdisc=name, rate=SLOW))} % with {label}"
        for name, label in LABELS.items()
    )
    return ", ".join(each)
