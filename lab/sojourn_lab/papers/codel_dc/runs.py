"""Scenarios and measures of `codel_dc`: one switch, its disciplines, its traffic."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sojourn._util.units import bps_of
from sojourn.result.result import Result
from sojourn_lab.papers.codel_dc.set_up import BASE, WIDE, SetUp, Table
from sojourn_lab.papers.codel_dc.set_up import CODEL as CODEL
from sojourn_lab.papers.codel_dc.set_up import LAWS as LAWS

SPREAD_NS = 137
"""Difference in length between the links of two servers, where they differ: no two packets arrive
simultaneously."""

SAMPLED: Table = {"sample": "1ms", "sample_flows": False}
FINE: Table = {"sample": "50us", "sample_flows": False}
HALF_SAMPLED: Table = {"sample": "20ms", "sample_flows": False}

FIRST = 20
"""Number of queries of ns-2's runs."""


def switch(
    law: Table,
    servers: int,
    source: Table,
    duration: str,
    *,
    set_up: SetUp = BASE,
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
    rate, ns = set_up.rate, round(250 * set_up.rtt_us)
    own = {"rate": rate, "qdisc": law, **(nic or {})}
    back = {"rate": rate, "delay": set_up.delay, "qdisc": WIDE}
    links: Table = {"port": {"rate": rate, "delay": set_up.delay, "qdisc": law}, "back": back}
    delays = {str(i): ns + i * spread_ns for i in range(servers)}
    delays |= {f"long-{i}": ns + long_ns + i * 1_013 for i in range(longs)}
    for i, length in delays.items():
        links[f"nic-{i}"] = {**own, "delay": f"{length}ns"}
        links[f"home-{i}"] = back
    flows = []
    for name, number, count, sends in (
        ("long", "long-{i}", longs, {"name": "bulk"}),
        ("short", "{i}", servers, source),
    ):
        agent = set_up.sender | dict(tcp or {})
        one: Table = {"name": name, "count": count, "source": sends, "tcp": agent}
        one |= {"path": [f"nic-{number}", "port"], "return_path": ["back", f"home-{number}"]}
        flows.append(one)
    return {"duration": duration, "warmup": "100ms", "links": links, "flows": flows}


def queries(kb: float, set_up: SetUp = BASE, **more: Any) -> Table:
    """Return the source of successive queries: each server answers with `kb` packets."""
    incast = {"name": "incast", "start": "100ms", "size": f"{-(-kb // 1) * set_up.payload:.0f}B"}
    return {**incast, "jitter": "uniform(0us, 20us)", "gap": set_up.gap, "until": "acked", **more}


def poisson(percent: int, set_up: SetUp = BASE) -> Table:
    """Return the source of short flows of 2 to 98 packets with an offered load of `percent`."""
    smallest, largest = 1.5 * set_up.payload, 97.5 * set_up.payload
    return {
        "name": "poisson",
        "start": "100ms",
        "size": f"uniform({smallest:.0f}B, {largest:.0f}B)",
        "interval": f"exponential({1e5 * 50 * set_up.slot_us / percent:.0f}ns)",
        "until": "acked",
    }


def long_flows(target: str, flows: int, duration: str, set_up: SetUp = BASE) -> Table:
    """Return long flows alone, behind links ten times as fast, under CoDel with that target."""
    own = {"rate": set_up.rate, "delay": set_up.delay}
    links: Table = {"port": {**own, "qdisc": {**set_up.codel, "target": target}}}
    links["back"] = {**own, "qdisc": WIDE}
    fast = {**own, "rate": f"{10 * bps_of(set_up.rate):.0f}bit", "qdisc": WIDE}
    links |= {f"nic-{i}": fast for i in range(flows)}
    rtt = f"{set_up.rtt_us:.0f}us"
    long: Table = {"name": "long", "count": flows, "path": ["nic-{i}", "port"]}
    long |= {"return_path": ["back"], "rtt": rtt, "tcp": set_up.sender}
    long["source"] = {"name": "bulk", "start": f"uniform(0us, {rtt})"}
    return {"duration": duration, "warmup": "1s", "links": links, "flows": [long]}


def of_port(result: Result) -> dict[str, Any]:
    """Keep utilisation, loss, queue and drops of the port to the client."""
    port = result.links["port"]
    buffer = int(str(result.scenario["links"]["port"]["qdisc"]["limit"]).removesuffix("p"))
    return {
        "utilisation": port.utilisation,
        "loss": port.loss_rate,
        "queue_packets": port.queue_mean_packets,
        "occupancy": port.queue_mean_packets / round(buffer, -1),  # DropTail's limit is one less
        "aqm_drops": port.dropped_early_packets + port.dropped_late_packets,
        "overflow_drops": port.dropped_full_packets,
    }


def of_answers(result: Result) -> dict[str, Any]:
    """Keep the mean time of answers to finished queries (None if none finished), and the port.

    If the run was sampled: `loss_asked` is the loss at the port while a query is open; `in_timeout`
    is the mean number of flows in timeout; names with `first_` are of the first `FIRST` queries.
    """
    incast, done = result.queries, result.completions
    ended = incast["start_s"] + incast["duration_s"]
    end = float(np.max(ended, initial=0.0)) + 1e-9
    took = done["duration_s"][done["start_s"] + done["duration_s"] <= end]
    return {
        "afct_s": float(took.mean()) if len(took) else None,
        "query_s": float(incast["duration_s"].mean()) if len(took) else None,
        "queries": len(incast["start_s"]),
        "loss_asked": _loss_while_asked(result),
        "in_timeout": _in_timeout(result),
        **_of_first(result),
        **of_port(result),
    }


def _in_timeout(result: Result) -> float | None:
    """Return the mean number of short flows that wait for their retransmission timer."""
    series = result.group_series
    if "short" not in series or not len(result.time_s):
        return None
    return float(series["short"]["stalled_flows"][result.time_s > 0.1].mean())


def _of_first(result: Result) -> dict[str, float | None]:
    """Keep mean time, utilisation, loss and queue until the end of query number `FIRST`."""
    incast, done = result.queries, result.completions
    names = [f"first_{name}" for name in ("afct_s", "utilisation", "loss", "queue_packets")]
    ended = np.sort(incast["start_s"] + incast["duration_s"])
    series, time = result.links["port"].series, result.time_s
    if len(ended) < FIRST or not len(time):
        return dict.fromkeys(names)
    end = float(ended[FIRST - 1]) + 1e-9
    took = done["duration_s"][done["start_s"] + done["duration_s"] <= end]
    there = (time > 0.1 + 1e-9) & (time <= end + float(time[1] - time[0]))
    lost = float(series["dropped_packets"][there].sum())
    loss = lost / float(series["arrived_packets"][there].sum())
    used, queue = (float(series[x][there].mean()) for x in ("utilisation", "queue_packets"))
    return dict(zip(names, (float(took.mean()), used, loss, queue), strict=True))


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
    """Keep the mean time and the number of finished short flows, flows in timeout, and the port."""
    took = result.completions["duration_s"]
    own = {"afct_s": float(took.mean()), "ended": len(took), "in_timeout": _in_timeout(result)}
    return {**own, **of_port(result)}


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
