"""EWFQ's measurement of classes: detection by size, missed classes, queues of small buffers."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sojourn._util.units import bytes_of, seconds
from sojourn.plotting.lines import lines
from sojourn.plotting.run import legend
from sojourn.result.result import Result
from sojourn.result.statistics import interval
from sojourn_lab.papers.ewfq.runs import SetUp, Tree, network
from sojourn_lab.reproduction.claims import Runs, values
from sojourn_lab.reproduction.paper import Experiment, Point, figure, table
from sojourn_lab.reproduction.parts import Part, bound, number, order, result_of, with_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLASSES = (4, 5, 8, 16, 32)
"""Numbers of small classes, for the probability of detection."""
LARGE = 0.4
"""Share of the packets of the one large class."""
LOAD_MBPS = 9
STAGES = (0, 1, 2)
MEASURED: tuple[tuple[str, int], ...] = (
    ("Uniform", 30), ("Varied", 30), ("Five", 5), ("Five", 10), ("Five", 30), ("Five", 90),
    ("Five", 150),
)  # fmt: skip
"""Networks and buffers (kB) of the measurement of missed classes and of queues."""


def constant(n: int, k: int, set_up: SetUp) -> Tree:
    """Return a large class and `n` equal small ones at constant rates over an idle link.

    T follows the largest class, so that no small one is carried into the next interval. With the
    default p of five classes.
    """
    rates = [LARGE, *[(1 - LARGE) / n] * n]
    flows = [
        {"name": f"c{i}", "class": i, "path": ["bottleneck"],
         "source": {"name": "cbr", "rate": f"{rate * LOAD_MBPS * 1e6:.0f}bit", "jitter": 0.5,
                    "packet": set_up.packet, "start": "uniform(0s, 10ms)" if i else "0s"}}
        for i, rate in enumerate(rates)
    ]  # fmt: skip
    qdisc: Tree = {"name": "ewfq", "flows": n + 1, "by": "class", "expected": 5, "k": k}
    qdisc |= {"responsive": [0], "limit": "1MB"}
    link = {"rate": "10mbit", "delay": "1ms", "qdisc": qdisc}
    times = {"duration": "100s", "warmup": "5s", "sample": "1s", "sample_flows": False}
    return {**times, "links": {"bottleneck": link}, "flows": flows}


def measure_detection(result: Result) -> dict[str, Any]:
    """Keep the share of the small classes that were found at the end of an interval."""
    counted = result.time_s > seconds(result.scenario["warmup"])
    classes = result.links["bottleneck"].series["gauge_found"][counted]
    return {"found": float(classes.mean() - 1) / (len(result.flows) - 1)}


def measure_intervals(result: Result) -> dict[str, Any]:
    """Keep bounds of the share of classes above their share that were missed, and the queue.

    A class is above its share if its bytes in an interval exceed the mean of m_fair. The number of
    classes found is known, not which: at least as many are missed as exceed that number
    (`least`), at most as many as are not found (`most`). `occupied_` are percentiles of the queue
    in % of the buffer; `empty` and `full` the shares of the samples within a packet of the ends.
    """
    bottleneck, n = result.links["bottleneck"], len(result.flows)
    log, series, time_s = bottleneck.packet_log, bottleneck.series, result.time_s
    begin, end = (seconds(result.scenario[one]) for one in ("warmup", "duration"))
    first = float(log.arrived_s.min())
    numbers = np.floor(log.arrived_s - first).astype(int)
    above = least = most = total = 0
    last = int(end - first) - 1
    for i in range(int(begin), last):
        inside = numbers == i
        sent = np.bincount(log["class"][inside], weights=log.size_bytes[inside], minlength=n)
        sampled = (time_s >= first + i) & (time_s < first + i + 1)
        over = int((sent > series["gauge_m_fair"][sampled].mean()).sum())
        seen = int(series["gauge_found"][sampled][-1])
        above, total = above + over, total + seen
        least, most = least + max(0, over - seen), most + min(over, n - seen)
    buffer = bytes_of(result.scenario["links"]["bottleneck"]["qdisc"]["limit"])
    queue = series["queue_bytes"][time_s >= begin]
    low, high = np.percentile(queue, [5, 95]) * 100 / buffer
    packet = bytes_of(result.scenario["flows"][-1]["source"]["packet"])
    return {
        "least": 100 * least / above,
        "most": 100 * most / above,
        "found": total / (last - int(begin)),
        "occupied_low": float(low),
        "occupied_high": float(high),
        "empty": float((queue < packet).mean()),
        "full": float((queue > buffer - packet).mean()),
    }


def experiments(full: bool, set_up: SetUp) -> dict[str, Experiment]:
    """Return the experiments of this module."""
    detection: list[Point] = [
        ({"n": n, "k": k}, constant(n, k, set_up))
        for n in CLASSES
        for k in (STAGES if full else STAGES[1:2])
    ]
    logged = {"packet_log": True, "sample": "10ms", "sample_flows": False}
    intervals: list[Point] = [
        ({"network": name, "kb": kb}, network(name, "ewfq", kb, set_up) | logged)
        for name, kb in MEASURED
    ]
    return {
        "detection": Experiment(detection, measure_detection, 10 if full else 5),
        "intervals": Experiment(intervals, measure_intervals, 5 if full else 3),
    }


def _size(n: int) -> float:
    """Return the share of the packets of each of `n` small classes."""
    return (1 - LARGE) / n


def exponent(runs: Runs, k: int = 1) -> "np.ndarray[Any, Any]":
    """Return for each seed the exponent of size in the rate of detection, from 1.9 % to 7.5 %.

    The rate is -ln(1 - P), which is proportional to the size to this power at all sizes.
    """
    few, many = (-np.log1p(-values(runs["detection"], "found", n=n, k=k)) for n in CLASSES[2::2])
    steps = math.log(CLASSES[-1] / CLASSES[2])
    return np.asarray(np.log(few / many) / steps)


def square(runs: Runs) -> list[Part]:
    """C14: the exponent of the size in the probability of detection.

    Fails wrongly: if the cache has not yet the composition of the traffic; the first 5 s are not
    counted. Passes wrongly: an exponent of 1.6 is within 20 % of 2; the figure shows k = 0 and 2.
    """
    return [number("exponent of the size, k = 1", exponent(runs), 2)]


def missed(runs: Runs) -> list[Part]:
    """C15: the share of classes above their share that an interval misses, in each network.

    Fails wrongly: cannot, as the lower bound has to exceed 10 %. Passes wrongly: cannot, as the
    upper bound has to be below.
    """
    parts = []
    for name, kb in MEASURED:
        at = {"network": name, "kb": kb}
        low, high = (interval(values(runs["intervals"], one, **at)) for one in ("least", "most"))
        result = result_of(high, high.high < 10, low.low > 10)
        measured = f"{with_interval(low, '%')} to {with_interval(high, '%')}"
        brief = f"{low.mean:.1f} to {high.mean:.1f} %"
        what = f"{name}, {kb} kB: missed"
        parts.append(Part(what, "< 10 %", measured, result, high, brief=brief))
    return parts


def swings(runs: Runs) -> list[Part]:
    """C16: the queue of the smallest buffer visits both ends, and a large one's does not.

    Fails wrongly: if the paper looks at single extremes; both ends are judged by percentiles.
    Passes wrongly: a buffer of five packets has steps of 20 %.
    """
    frame = runs["intervals"].filter(pl.col("network") == "Five")

    def width(kb: int) -> "np.ndarray[Any, Any]":
        ends = (values(frame, f"occupied_{end}", kb=kb) for end in ("high", "low"))
        return np.asarray(np.subtract(*ends))

    return [
        bound("5 kB: 5th percentile of the queue", values(frame, "occupied_low", kb=5), "<", 20,
              unit="%"),
        bound("5 kB: 95th percentile of the queue", values(frame, "occupied_high", kb=5), ">", 80,
              unit="%"),
        order("range of the queue, 150 kB below 5 kB", width(150), width(5), unit="%"),
    ]  # fmt: skip


@figure("III.B", "Classes found in an interval, by their size", needs=["detection"])
def figure_detection(runs: Runs, ax: "Axes") -> None:
    """Draw the probability of detection against the share of the packets, and its square."""
    sized = runs["detection"].with_columns(
        size=(100 * (1 - LARGE) / pl.col("n")), percent=100 * pl.col("found")
    )
    names = {1: "k = 1 (the paper)", 0: "k = 0", 2: "k = 2"}
    lines(ax, sized, "size", "percent", by="k", names=names)
    sizes = [100 * _size(n) for n in CLASSES]
    top = float(np.mean(values(sized, "percent", n=CLASSES[-1], k=1)))
    ax.plot(sizes, [top * (one / sizes[-1]) ** 2 for one in sizes], color="#555555", lw=0.8,
            ls=":", label="square of the size")  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="packets of the class, % of all")
    ax.set(ylabel="intervals in which it is found, %", ylim=(0.02, 150))
    ax.set_xticks(sizes, [f"{one:.3g}" for one in sizes])
    ax.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    ax.minorticks_off()
    legend(ax)


@table("V", "EWFQ: classes found, missed classes, queues", needs=["intervals"])
def table_intervals(runs: Runs) -> pl.DataFrame:
    """Tabulate what the measurement finds in each network, and how the queue moves."""
    frame, rows = runs["intervals"], []
    for name, kb in MEASURED:
        at = {"network": name, "kb": kb}
        cells = [_text(values(frame, "found", **at)) + f" of {3 if name != 'Five' else 5}"]
        cells += [_text(values(frame, one, **at)) for one in ("least", "most")]
        ends = (values(frame, f"occupied_{one}", **at) for one in ("low", "high"))
        cells.append(" to ".join(f"{one.mean():.0f}" for one in ends))
        cells += [_text(100 * values(frame, one, **at)) for one in ("empty", "full")]
        rows.append([name, kb, *cells])
    names = ["network", "buffer, kB", "classes found", "missed, at least, %", "missed, at most, %"]
    names += ["queue, 5th to 95th percentile, % of the buffer", "less than a packet, % of samples"]
    return pl.DataFrame(rows, schema=[*names, "room for no packet, % of samples"], orient="row")


def _text(sample: Sequence[float] | Any) -> str:
    mine = interval(sample)
    return f"{mine.mean:.2f} ± {mine.half:.2f}"
