"""The paper's model of one flow (equations 2 to 7), drop curves, and runs that measure them."""

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sojourn._util.units import bps_of, bytes_of, seconds
from sojourn.plotting.lines import style
from sojourn.plotting.run import legend
from sojourn.result.result import Result
from sojourn.result.statistics import interval
from sojourn_lab.papers.codel_dc.runs import FINE, long_flows, poisson, switch
from sojourn_lab.papers.codel_dc.series import by_time, model
from sojourn_lab.papers.codel_dc.set_up import BASE, SetUp, Table
from sojourn_lab.reproduction.claims import Runs, values
from sojourn_lab.reproduction.drawings import drop_curve, topology
from sojourn_lab.reproduction.paper import Experiment, figure, table
from sojourn_lab.reproduction.theirs import level, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WINDOWS = (30, 100, 150, 200, 250, 300)
"""Targets in microseconds of the runs that measure equations 2 to 6."""

DRAWN = 150
"""Target in microseconds of figures 2b and `window`: half a round trip."""

OVERLOAD = 1.2
"""Offered load, relative to the link, of the packets that figure 1b drops."""

Formula = dict[str, float]


def formulas(target_us: float, set_up: SetUp = BASE) -> Formula:
    """Return equations 2 to 6 in packets and round trips, for a target of at most a round trip."""
    rate, full = 1 / set_up.slot_us, set_up.bdp
    largest = rate * (set_up.rtt_us + target_us)
    smallest = largest / 2
    return {
        "largest": largest,
        "smallest": smallest,
        "below": max(0.0, full - smallest),
        "above": largest - max(full, smallest),
        "utilisation": model(target_us / set_up.rtt_us),
    }


def experiments(full: bool, set_up: SetUp) -> dict[str, Experiment]:
    """Return the runs of one flow's window, of queues at drops, and of CoDel under overload."""
    targets = WINDOWS if full else (DRAWN, 300)
    law, servers, rate = set_up.laws, set_up.servers, set_up.rate
    udp = {
        "source": {
            "name": "cbr", "rate": f"{OVERLOAD * bps_of(rate):.0f}bit",
            "packet": set_up.packet,
        },
        "path": ["port"], "name": "udp",
    }  # fmt: skip
    port = {"rate": rate, "delay": set_up.delay, "qdisc": {**set_up.codel, "limit": "99999p"}}
    overload: Table = {"duration": "30ms", "links": {"port": port}, "flows": [udp]}
    busy = poisson(50, set_up)
    end = "1100ms" if full else "400ms"
    return {
        "window": Experiment(
            [
                ({"target_us": t}, long_flows(f"{t}us", 1, "1500ms", set_up) | FINE | FLOWS)
                for t in targets
            ],
            of_window,
            2,
        ),
        "queue at drops": Experiment(
            [
                (
                    {"scheme": s},
                    switch(law[s], servers, busy, end, set_up=set_up) | FINE | {"packet_log": True},
                )
                for s in ("red", "codel")
            ],
            of_drops,
            3,
        ),
        "overload": Experiment([({"scheme": "codel"}, overload | FINE | LOG)], of_overload, 1),
    }


FLOWS: Table = {"sample_flows": True}
LOG: Table = {"packet_log": True}


def of_window(result: Result) -> dict[str, Any]:
    """Keep the mean window before and after a reduction, and the round trips of a cycle.

    Round trips are counted with the delay of the queue. `below` are those from the first growth
    after a reduction until the window is the bandwidth-delay product, `above` the rest until the
    next reduction, `idle` those without growth after a reduction. The lists have the first two
    cycles: round trips since the first reduction, window, and throughput over a round trip.
    """
    time = result.time_s
    after = time > seconds("1s")
    window = np.asarray(result.flows["long"].series["cwnd_packets"], dtype=float)[after]
    port = result.links["port"].series
    queue, used = (
        np.asarray(port[x], dtype=float)[after] for x in ("queue_packets", "utilisation")
    )
    step_us = 1e6 * float(time[1] - time[0])
    rtt_us = 1e6 * seconds(result.scenario["flows"][0]["rtt"])
    packet = bytes_of(result.scenario["flows"][0]["tcp"]["packet"])
    slot_us = 8e6 * packet / bps_of(result.scenario["links"]["port"]["rate"])
    full = rtt_us / slot_us
    trips = np.cumsum(step_us / (rtt_us + queue * slot_us))
    cuts = np.flatnonzero(np.diff(window) < -2)
    cycles: list[tuple[float, ...]] = []
    for begin, end in pairwise(cuts):
        grows = begin + 1 + int(np.argmax(window[begin + 1 : end + 1] > window[begin + 1] + 1e-6))
        reached = grows + int(np.argmax(window[grows : end + 1] >= full))
        idle, below = trips[grows] - trips[begin], trips[reached] - trips[grows]
        above = trips[end] - trips[reached]
        cycles.append((window[begin], window[begin + 1], idle, below, above))
    names = ("largest", "smallest", "idle", "below", "above")
    means = np.mean(cycles, axis=0)
    width = round(rtt_us / step_us)
    smooth = np.convolve(used, np.ones(width) / width, mode="same")
    two = slice(int(cuts[0]), int(cuts[2]) + 1)
    return {
        **dict(zip(names, map(float, means), strict=True)),
        "utilisation": float(used.mean()),
        "trips": (trips[two] - trips[two][0]).tolist(),
        "cwnd": window[two].tolist(),
        "share": smooth[two].tolist(),
    }


def of_drops(result: Result) -> dict[str, Any]:
    """Keep the smallest queue that a dropped packet found, and RED's smallest average at a drop."""
    port = result.links["port"]
    log = {name: np.asarray(port.packet_log[name]) for name in ("arrived_s", "left_s", "fate")}
    early = (log["fate"] >= 2) & (log["arrived_s"] > 0.1)
    arrived, left = np.sort(log["arrived_s"]), np.sort(log["left_s"])
    at = log["arrived_s"][early]
    queue = np.searchsorted(arrived, at, "left") - np.searchsorted(left, at, "right")
    series, least = port.series, None
    if "gauge_avg" in series:
        dropped = (np.asarray(series["dropped_early_packets"]) > 0) & (result.time_s > 0.1)
        least = float(np.asarray(series["gauge_avg"])[dropped].min())
    return {"queue": int(queue.min()), "average": least, "drops": len(queue)}


def of_overload(result: Result) -> dict[str, Any]:
    """Keep the times of CoDel's drops in milliseconds."""
    log = result.links["port"].packet_log
    drops = np.sort(np.asarray(log["left_s"])[np.asarray(log["fate"]) >= 2])
    return {"drops_ms": (1e3 * drops).tolist()}


@figure("network", "Own drawing of the tree: 40 servers and a client on one switch", needs=(),
        size=(6.4, 2.4))  # fmt: skip
def switch_drawn(_: Runs, ax: "Axes") -> None:
    """Draw the topology of the experiments."""
    nodes = {"server 1": (0.0, 2.0), "server n": (0.0, 1.0), "long flow": (0.0, 0.0)}
    nodes |= {"switch": (4.0, 1.0), "client": (8.0, 1.0)}
    links = [(name, "switch", "1 Gbit/s, 75 us") for name in list(nodes)[:3]]
    links.append(("switch", "client", "1 Gbit/s, 75 us"))
    topology(ax, nodes, links, [(one, other) for one, other, _ in links])


@figure("1a", "Drop probability of RED, and of DropTail, against the queue", needs=())
def drop_laws(_: Runs, ax: "Axes") -> None:
    """Draw the drop curves of RED (average queue, first max_p) and DropTail (queue)."""
    low, high, full, top = BASE.min_th, BASE.max_th, BASE.buffer, BASE.max_p
    end = 1.1 * full
    curves: dict[str, list[tuple[float, float]]] = {
        "DropTail": [(0, 0), (full, 0), (full, 1), (end, 1)],
        "RED, gentle (as here)": [(0, 0), (low, 0), (high, top), (2 * high, 1), (end, 1)],
        "RED, not gentle": [(0, 0), (low, 0), (high, top), (high, 1), (end, 1)],
    }
    ticks = {float(x): f"{x}" for x in (0, low, high, 2 * high, full)}
    heights = {0: "0", top: f"{top:g}", 1: "1"}
    drop_curve(ax, curves, ticks, heights, "queue (RED: its average), packets")


@figure("1b", "CoDel's drops under constant overload", needs=["overload"])
def drop_times(runs: Runs, ax: "Axes") -> None:
    """Draw the time from each drop to the next, and interval / sqrt(count)."""
    drops = np.array(runs["overload"]["drops_ms"][0])
    gaps = np.diff(drops)
    count = np.arange(1, len(gaps) + 1)
    law = 1e3 * seconds(BASE.interval) / np.sqrt(count)
    ax.plot(count, gaps, color=style(2)["color"], ls="", marker=".", ms=4, label="simulated")
    ax.plot(count, law, color="black", lw=1, label="interval / sqrt(count)")
    ax.set(xlabel="number of the drop", ylabel="time to the next drop, ms", ylim=(0, None))
    legend(ax)


@figure("2b", "Throughput of one flow, target of half a round trip", needs=["window"])
def throughput(runs: Runs, ax: "Axes") -> None:
    """Draw the port's throughput over two cycles of the window, and the model's."""
    _cycles(runs, "share", 100, ax)
    ours, full = formulas(DRAWN), BASE.bdp
    low = 100 * ours["smallest"] / full
    xs = np.cumsum([0, ours["below"], ours["above"], 0, ours["below"], ours["above"]])
    ax.plot(xs, [low, 100, 100, low, 100, 100], color="black", lw=1, label="model: X, then Y")
    ax.set(xlabel="round trips since a reduction", ylabel="throughput, % of the link")
    ax.set(ylim=(50, 105), xlim=(0, None))
    legend(ax)


@figure("window", "Own drawing: window of the flow of figure 2b", needs=["window"])
def window_drawn(runs: Runs, ax: "Axes") -> None:
    """Draw the window of figure 2b, with equations 2 and 3."""
    _cycles(runs, "cwnd", 1, ax)
    ours = formulas(DRAWN)
    level(ax, ours["largest"], "Wmax and Wmin of the model")
    level(ax, ours["smallest"], "Wmax and Wmin of the model")
    ax.axhline(BASE.bdp, color="black", lw=0.8, ls=":", label="K")
    ax.set(xlabel="round trips since a reduction", ylabel="window, packets", ylim=(0, None))
    legend(ax)


def _cycles(runs: Runs, what: str, scale: float, ax: "Axes") -> None:
    """Draw a list over two cycles of the run with seed 1."""
    row = runs["window"].filter((pl.col("target_us") == DRAWN) & (pl.col("seed") == 1))
    ys = scale * np.array(row[what][0].to_list())
    ax.plot(row["trips"][0].to_list(), ys, color=style(2)["color"], label="simulated")


@figure("model", "Own drawing: utilisation of one flow and the paper's model", needs=["targets"])
def model_and_flow(runs: Runs, ax: "Axes") -> None:
    """Draw utilisation against target / RTT: equation 7, its time-weighted form, simulation."""
    ratios = np.linspace(0, 1.5, 151)
    curves = ((model, "equation 7"), (by_time, "equation 7, time-weighted"))
    for n, (curve, label) in enumerate(curves):
        ys = [100 * curve(x) for x in ratios]
        ax.plot(ratios, ys, color=style(n)["color"], ls=style(n)["ls"], label=label)
    one = runs["targets"].filter(pl.col("flows") == 1)
    rtt_ms = 1e-3 * BASE.rtt_us
    for target in sorted(one["target"].unique().to_list()):
        utilisation = interval(100 * values(one, "utilisation", target=target))
        named = "CoDel, one flow" if target == rtt_ms else None
        dot = {**style(2), "ls": ""}
        ax.errorbar(
            [target / rtt_ms], [utilisation.mean], yerr=[utilisation.half], label=named, **dot
        )
    points(ax, [0.5, 1.0], [100 * 23 / 24, 100])
    ax.set(xlabel="target, round trips of 300 us", ylabel="utilisation, %", xlim=(0, 1.55))
    legend(ax)


@table("equations", "Equations 2 to 7, and the same measured from one flow's window",
       needs=["window"])  # fmt: skip
def equations(runs: Runs) -> pl.DataFrame:
    """Tabulate the formulas next to the measured window, round trips and utilisation."""
    frame, rows = runs["window"], []
    for target in sorted(frame["target_us"].unique().to_list()):
        ours = formulas(target)
        here = {x: float(np.mean(values(frame, x, target_us=target))) for x in MEASURED}
        pairs = [(ours[x], here[x]) for x in ("largest", "smallest", "below", "above")]
        used = (100 * ours["utilisation"], 100 * here["utilisation"])
        rows.append((target, *(one for pair in pairs for one in pair), here["idle"], *used))
    heads = ["Wmax, packets", "Wmin, packets", "X, round trips", "Y, round trips"]
    names = [f"{head}: {whose}" for head in heads for whose in ("formula", "measured")]
    names += ["without growth after a reduction, round trips"]
    names += [f"utilisation, %: {whose}" for whose in ("equation 7", "measured")]
    return pl.DataFrame(rows, schema=["target, us", *names], orient="row", strict=False)


MEASURED = ("largest", "smallest", "below", "above", "idle", "utilisation")
