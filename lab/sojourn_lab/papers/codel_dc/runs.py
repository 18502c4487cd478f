"""Scenarios and measures of `codel_dc`: one switch, its disciplines, its traffic."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sojourn.plotting.lines import style
from sojourn.result.result import Result
from sojourn.result.statistics import quantile
from sojourn_lab.reproduction.claims import values

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

Table = dict[str, Any]

WIDE: Table = {"name": "droptail", "limit": "99999p"}
"""A queue that never fills."""

RED: Table = {
    "name": "ared",
    "limit": "200p",
    "min_th": "25p",
    "max_th": "51p",
    "w_q": 0.002,
    "max_p": 0.1,
    "bottom": "auto",
    "gentle": "two_max_th",
    "stale_gentle": True,
    "wait": "yes",
    "spare_short": True,
    "packet": "1000B",
}

CODEL: Table = {
    "name": "codel",
    "variant": "ns2_v1",
    "limit": "200p",
    "target": "300us",
    "interval": "750us",
}

LAWS: dict[str, Table] = {
    "droptail": {"name": "droptail", "limit": "199p"},  # ns-2's of limit 200 holds 199
    "red": RED,
    "codel": CODEL,
    "red-auto": {**RED, "w_q": "auto"},
}

SPREAD_NS = 137
"""Difference in length between the links of two servers, where they differ: no two packets arrive
simultaneously."""


def switch(
    law: Table,
    servers: int,
    source: Table,
    duration: str,
    *,
    tcp: Mapping[str, Any] | None = None,
    nic: Mapping[str, Any] | None = None,
    longs: int = 1,
    spread_ns: int = 0,
    long_ns: int = 0,
) -> Table:
    """Return `servers` and one with a long flow, the switch with `law`, and their client.

    `nic` replaces parameters of the servers' own links (rate, qdisc), `tcp` parameters of the TCPs.
    `long_ns` is the difference in length between the long flow's link and the first server's.
    """
    own = {"rate": "1gbit", "qdisc": law, **(nic or {})}
    back = {"rate": "1gbit", "delay": "75us", "qdisc": WIDE}
    links: Table = {"port": {"rate": "1gbit", "delay": "75us", "qdisc": law}, "back": back}
    delays = {str(i): 75_000 + i * spread_ns for i in range(servers)}
    delays |= {f"long-{i}": 75_000 + long_ns + i * 1_013 for i in range(longs)}
    for i, ns in delays.items():
        links[f"nic-{i}"] = {**own, "delay": f"{ns}ns"}
        links[f"home-{i}"] = back
    flows = []
    for name, number, count, sends in (
        ("long", "long-{i}", longs, {"name": "bulk"}),
        ("short", "{i}", servers, source),
    ):
        agent = {
            "name": "sack",
            "profile": "ns2",
            "packet": "1000B",
            "receive_window": "10000p",
            "rto_min": "10ms",
            "rto_initial": "10ms",
            "tick": "100us",
            **(tcp or {}),
        }
        one: Table = {"name": name, "count": count, "source": sends, "tcp": agent}
        one |= {"path": [f"nic-{number}", "port"], "return_path": ["back", f"home-{number}"]}
        flows.append(one)
    return {"duration": duration, "warmup": "100ms", "links": links, "flows": flows}


def queries(kb: float, **more: Any) -> Table:
    """Return the source of successive queries: each server answers with `kb` packets."""
    incast = {"name": "incast", "start": "100ms", "size": f"{-(-kb // 1) * 960:.0f}B"}
    return {**incast, "jitter": "uniform(0us, 20us)", "gap": "300us", "until": "acked", **more}


def poisson(percent: int) -> Table:
    """Return the source of short flows of 2 to 98 packets with an offered load of `percent`."""
    return {
        "name": "poisson",
        "start": "100ms",
        "size": f"uniform({1.5 * 960:.0f}B, {97.5 * 960:.0f}B)",
        "interval": f"exponential({4e7 / percent:.0f}ns)",
        "until": "acked",
    }


def long_flows(target_ms: float, flows: int, seconds: int) -> Table:
    """Return long flows alone, behind links of 10 Gbit/s, under CoDel with that target."""
    links: Table = {
        "port": {"rate": "1gbit", "delay": "75us"},
        "back": {"rate": "1gbit", "delay": "75us", "qdisc": WIDE},
        "nic-{i}": {"rate": "10gbit", "delay": "75us", "qdisc": WIDE},
    }
    links["port"]["qdisc"] = {**CODEL, "target": f"{target_ms * 1000:.0f}us"}
    nic = links.pop("nic-{i}")
    links |= {f"nic-{i}": nic for i in range(flows)}
    long: Table = {"name": "long", "count": flows, "path": ["nic-{i}", "port"]}
    long |= {"return_path": ["back"], "rtt": "300us"}
    long["source"] = {"name": "bulk", "start": "uniform(0us, 300us)"}
    long["tcp"] = {"name": "sack", "profile": "ns2", "packet": "1000B", "tick": "100us"}
    long["tcp"] |= {"receive_window": "10000p", "rto_min": "10ms"}
    return {"duration": f"{seconds}s", "warmup": "1s", "links": links, "flows": [long]}


def of_port(result: Result) -> dict[str, Any]:
    """Keep utilisation, loss, queue and drops of the port to the client."""
    port = result.links["port"]
    return {
        "utilisation": port.utilisation,
        "loss": port.loss_rate,
        "queue_packets": port.queue_mean_packets,
        "occupancy": port.queue_mean_packets / 200,
        "aqm_drops": port.dropped_early_packets + port.dropped_late_packets,
        "overflow_drops": port.dropped_full_packets,
    }


def of_answers(result: Result) -> dict[str, Any]:
    """Keep the mean time of answers to finished queries (None if none finished), and the port.

    `loss_asked` is the loss at the port while a query is open, if the run was sampled.
    """
    incast, done = result.queries, result.completions
    end = float(np.max(incast["start_s"] + incast["duration_s"], initial=0.0)) + 1e-9
    took = done["duration_s"][done["start_s"] + done["duration_s"] <= end]
    return {
        "afct_s": float(took.mean()) if len(took) else None,
        "query_s": float(incast["duration_s"].mean()) if len(took) else None,
        "queries": len(incast["start_s"]),
        "loss_asked": _loss_while_asked(result),
        **of_port(result),
    }


def _loss_while_asked(result: Result) -> float | None:
    """Return dropped over arrived packets in the samples during which a query is open."""
    series, incast, time = result.links["port"].series, result.queries, result.time_s
    if "arrived_packets" not in series or not len(incast["start_s"]):
        return None
    step = float(time[1] - time[0])
    begin, end = incast["start_s"], incast["start_s"] + incast["duration_s"]
    # The sample at time t counts from t - step to t. Queries do not overlap.
    last = np.searchsorted(begin, time, side="left") - 1
    is_open = (last >= 0) & (time - step < end[np.maximum(last, 0)])
    arrived = float(series["arrived_packets"][is_open].sum())
    return float(series["dropped_packets"][is_open].sum()) / arrived if arrived else None


def of_flows(result: Result) -> dict[str, Any]:
    """Keep the mean time and the number of finished short flows, and the port."""
    took = result.completions["duration_s"]
    return {"afct_s": float(took.mean()), "ended": len(took), **of_port(result)}


def over_time(result: Result) -> dict[str, Any]:
    """Keep flows in timeout, cumulative drops by cause, and the first AQM drop, from 100 ms on.

    Without an AQM drop, the first one counts as at the end of the run.
    """
    series, after = result.links["port"].series, result.time_s > 0.1
    law = (series["dropped_early_packets"] + series["dropped_late_packets"])[after]
    time = result.time_s[after]
    return {
        "time_ms": np.round(1e3 * time, 3).tolist(),
        "stalled": result.group_series["short"]["stalled_flows"][after].astype(float).tolist(),
        "aqm": np.cumsum(law).astype(float).tolist(),
        "overflow": np.cumsum(series["dropped_full_packets"][after]).astype(float).tolist(),
        "first_drop_ms": float(1e3 * (time[np.argmax(law > 0) if law.any() else -1] - 0.1)),
    }


def model(ratio: float) -> float:
    """Return the paper's utilisation (its equation 7) for target/RTT = `ratio`."""
    if ratio >= 1:
        return 1.0
    return (3 + ratio) / 4 * (1 - ratio) / (1 + ratio) + 2 * ratio / (1 + ratio)


def by_time(ratio: float) -> float:
    """Return the time-weighted utilisation: a round trip takes longer while there is a queue."""
    return 1.0 if ratio >= 1 else 0.75 * (1 + ratio) ** 2 / (1 + ratio + ratio**2)


def times(frame: "pl.DataFrame", one: str, other: str, **labels: Any) -> tuple[Any, Any]:
    """Return the mean times (s) of two disciplines for each seed in which both have a value."""
    pair = [values(frame, "afct_s", scheme=name, **labels).astype(float) for name in (one, other)]
    there = np.isfinite(pair[0]) & np.isfinite(pair[1])
    return pair[0][there], pair[1][there]


def gain(frame: "pl.DataFrame", of: str, over: str, **labels: Any) -> Any:
    """Return by how many per cent the mean time of one discipline is shorter, per such seed."""
    ours, theirs = times(frame, of, over, **labels)
    return 100 * (1 - ours / theirs)


def best(frame: "pl.DataFrame", of: str, over: str, by: str) -> tuple[Any, Any]:
    """Return the value of `by` with the largest mean gain, and the gains there."""
    by_place = {x: gain(frame, of, over, **{by: x}) for x in sorted(frame[by].unique().to_list())}
    means = {x: float(np.mean(one)) if len(one) else -np.inf for x, one in by_place.items()}
    place = max(means, key=lambda x: means[x])
    return place, by_place[place]


def gains(frame: "pl.DataFrame", by: str, over: str, names: Sequence[str]) -> "pl.DataFrame":
    """Return the gains of disciplines over one, as rows with discipline, `by` and seed."""
    import polars as pl

    rows = [
        {"scheme": name, by: x, "seed": seed, "gain": float(one)}
        for name in names
        for x in sorted(frame[by].unique().to_list())
        for seed, one in enumerate(gain(frame, name, over, **{by: x}), 1)
    ]
    return pl.DataFrame(rows)


def columns(frame: "pl.DataFrame", what: str, scheme: str) -> Any:
    """Return the lists of a discipline, a row for each seed."""
    return np.array([list(one) for one in values(frame, what, scheme=scheme)], dtype=float)


def band(
    ax: "Axes", frame: "pl.DataFrame", what: str, scheme: str, n: int, label: str, ls: str = ""
) -> None:
    """Draw the mean over seeds of a list over time, with its interval, as the n-th line."""
    each = columns(frame, what, scheme)
    time = columns(frame, "time_ms", scheme)[0]
    mean = each.mean(axis=0)
    half = quantile(len(each) - 1) * each.std(axis=0, ddof=1) / len(each) ** 0.5
    colour = style(n)["color"]
    ax.plot(time, mean, color=colour, ls=ls or style(n)["ls"], label=label)
    ax.fill_between(time, mean - half, mean + half, color=colour, alpha=0.2, lw=0)
