"""Disciplines, dumbbell, testbed and measures of the paper on HRED."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from sojourn import metrics
from sojourn._util.units import seconds
from sojourn.result.result import Result
from sojourn.result.select import buffer_of

Table = dict[str, Any]

NAMES = {
    "red": "RED",
    "blue": "Blue",
    "pi": "PIC",
    "rem": "REM",
    "avq": "AVQ",
    "hred": "HRED",
    "droptail": "tail drop",
}
"""Disciplines, in the order of the paper's table 1; each has one colour in all figures."""

NEWRENO: Table = {
    "name": "newreno",
    "profile": "ns2",
    "packet": "500B",
    "receive_window": "10000p",
}

TESTBED: Table = {
    "pi": {"flows": 30, "rtt": "100ms", "w": 100},
    "rem": {"period": "10ms"},
    "avq": {"gamma": 0.975},
    "hred": {"t_alpha": "200ms", "t_beta": "100ms"},
}
"""Parameters that differ on the testbed."""

_FIXED = random.Random(45)
RTTS = [f"{_FIXED.uniform(40, 200):.6f}ms" for _ in range(1000)]
"""Base round-trip times, shared by all runs; a run with n flows uses the first n."""


def scheme(name: str, kb: int, **other: Any) -> Table:
    """Return a discipline with the parameters of the paper's table 1, for a buffer of `kb` kB."""
    b = kb * 1000
    reference = f"{3 * b // 8}B"
    of: dict[str, Table] = {
        "red": {
            "min_th": f"{b // 4}B",
            "max_th": f"{b // 2}B",
            "w_q": 0.002,
            "max_p": 0.1,
            "gentle": "two_max_th",
            "wait": "yes",
            "byte_mode": "mean",
            "packet": "500B",
        },
        "blue": {"d1": 0.0002, "d2": 0.00002, "freeze": "10ms"},
        "pi": {"q_ref": reference, "flows": 100, "rtt": "200ms", "w": 160, "byte_mode": True},
        "rem": {
            "b_star": reference,
            "period": "1ms",
            "gamma": 0.001,
            "phi": 1.001,
            "alpha": 0.1,
            "packet": "500B",
            "byte_mode": True,
        },
        "avq": {"alpha": 0.15, "gamma": 1, "packet": "500B"},
        "hred": {"kappa": 2, "t_alpha": "400ms", "t_beta": "200ms"},
        "droptail": {},
    }
    return {"name": name, "limit": f"{b}B", **of[name], **other}


def ftp(name: str, rtt: str, start: str = "uniform(0s, 10s)", tcp: Table = NEWRENO) -> Table:
    """Return a flow with unlimited data."""
    source = {"name": "bulk", "start": start}
    return {"name": name, "path": ["bottleneck"], "rtt": rtt, "source": source, "tcp": tcp}


def web(
    rate: float,
    name: str = "web",
    start: str = "0s",
    size: str = "lomax(mean=4600B, shape=1.2)",
    gap: str = "exponential(1s)",
    tcp: Table = NEWRENO,
) -> Table:
    """Return `rate` sessions per second of ten transfers each, from 50 hosts."""
    source = {
        "name": "sessions",
        "start": start,
        "interval": f"exponential({1e9 / rate:.0f}ns)",
        "transfers": 10,
        "size": size,
        "gap": gap,
    }
    base = {"name": name, "count": 50, "path": ["bottleneck"], "tcp": tcp}
    return {**base, "rtt": "uniform(40ms, 200ms)", "source": source}


def dumbbell(
    qdisc: Table,
    flows: int,
    sessions: Table | None,
    *,
    rtts: Sequence[str] = RTTS,
    tcp: Table = NEWRENO,
    end: float = 200,
    warmup: float = 150,
    **more: Any,
) -> Table:
    """Return `flows` FTPs and web sessions over 45 Mbit/s."""
    declared = [ftp(f"ftp-{i}", rtts[i], tcp=tcp) for i in range(flows)]
    return {
        "duration": f"{end:g}s",
        "warmup": f"{warmup:g}s",
        "links": {"bottleneck": {"rate": "45mbit", "delay": "10ms", "qdisc": qdisc}},
        "flows": declared + ([sessions] if sessions else []),
        "sample_flows": False,
        **more,
    }


def step(qdisc: Table, percent: int, up: float, down: float, end: float, **more: Any) -> Table:
    """Return 300 FTPs and 25 sessions/s, and `percent` more of both from `up` to `down` (s)."""
    count = 3 * percent
    base = dumbbell(qdisc, 300, web(25), end=end, warmup=up / 2, sample="10ms", **more)
    extra = [ftp(f"more-{i}", RTTS[300 + i], "0s") for i in range(count)]
    extra.append(web(25 * percent / 100, "more-web"))
    base["flows"] += extra
    names = [one["name"] for one in extra]
    base["changes"] = [
        {"at": f"{up:g}s", "join": names},
        {"at": f"{down:g}s", "leave": names},
    ]
    return base


def two_groups(
    qdisc: Table,
    end: float,
    warmup: float,
    *,
    tcp: Table = NEWRENO,
    access: str = "100mbit",
    spread: float = 0,
) -> Table:
    """Return 150 FTPs of 20 ms and 150 of 200 ms, each with its own access link.

    With equal round-trip times the interleaving of packets matters, so the access links are
    modelled; an empty `access` omits them. With `spread`, round-trip times are uniform within that
    share to either side.
    """
    table = dumbbell(qdisc, 0, None, end=end, warmup=warmup)
    table["links"]["bottleneck"]["delay"] = "5ms"
    for name, ms in (("short", 20), ("long", 200)):
        rtt = f"uniform({ms * (1 - spread):g}ms, {ms * (1 + spread):g}ms)"
        flow = ftp(name, rtt if spread else f"{ms}ms", tcp=tcp) | {"count": 150}
        if access:
            line = {"rate": access, "qdisc": {"name": "droptail", "limit": "10000p"}}
            table["links"] |= {f"{name}-{i}": line for i in range(150)}
            flow["path"] = [name + "-{i}", "bottleneck"]
        table["flows"].append(flow)
    return table


def gateway(qdisc: Table, flows: int, end: float, warmup: float, tcp: Table = NEWRENO) -> Table:
    """Return `flows` FTPs and half as many 10-packet flows per second over 10 Mbit/s, 100 ms."""
    short = {
        "name": "poisson",
        "interval": f"exponential({2e9 / flows:.0f}ns)",
        "size": "4600B",
    }
    path = {"path": ["bottleneck"], "rtt": "100ms", "tcp": tcp}
    return {
        "duration": f"{end:g}s",
        "warmup": f"{warmup:g}s",
        "links": {"bottleneck": {"rate": "10mbit", "delay": "10ms", "qdisc": qdisc}},
        "flows": [
            ftp("long", "100ms", tcp=tcp) | {"count": flows},
            {"name": "short", "source": short, **path},
        ],
    }


def steady(result: Result) -> Table:
    """Keep mean and deviation of the queue, loss, utilisation and overflows after the warm-up."""
    link = result.links["bottleneck"]
    return {
        "mean": metrics.queue_mean_normalised(result, "bottleneck"),
        "std": metrics.queue_std_normalised(result, "bottleneck"),
        "loss": link.loss_rate,
        "utilisation": link.utilisation,
        "overflows": link.dropped_full_packets,
    }


def shares(result: Result) -> Table:
    """Keep the share of the 20 ms flows in the goodput, goodput over rate, and the utilisation.

    The 20 ms flows are one group, or one group per flow if their packets have different sizes.
    Goodput counts packets delivered in order with their headers: 500 bytes each on average.
    """
    short = [metrics.goodput_share(result, name) for name in result.group_series if "short" in name]
    return {
        "share": None if None in short else sum(filter(None, short)),
        "goodput": metrics.tcp_goodput_bps(result, wire=True) / 45e6,
        "utilisation": result.links["bottleneck"].utilisation,
    }


def over_time(result: Result) -> Table:
    """Keep the queue every 0.1 s, as a share of the buffer, and its statistics after warm-up."""
    buffer, _ = buffer_of(result, "bottleneck")
    time, queue = result.time_s, result.links["bottleneck"].series["queue_bytes"] / buffer
    late = queue[time > seconds(result.scenario["warmup"])]
    tenth = round(0.1 / float(time[0]))
    return {
        "queue": queue[tenth - 1 :: tenth].tolist(),
        "std": float(late.std()),
        "least": float(late.min()),
        "most": float(late.max()),
        "in_band": float(np.mean((late >= 0.25) & (late <= 0.5))),
        "below_60": float(np.mean(late < 0.6)),
    }


def response(result: Result) -> Table:
    """Keep queue and utilisation over time around a step of the load, and the response to it.

    `away`: number of seconds after a change in which the mean queue differs by a tenth of the
    buffer or more from the mean before the first change. `about`: another reading of the response
    time. The deviation over 5 s is taken about the mean before the first change, and compared with
    1.5 times the deviation before it; the whole time after the change if it is never smaller.
    """
    up, down = (seconds(change["at"]) for change in result.scenario["changes"])
    stay = down - up
    end, link = seconds(result.scenario["duration"]), result.links["bottleneck"]
    buffer, _ = buffer_of(result, "bottleneck")
    time, queue = result.time_s, link.series["queue_bytes"] / buffer
    each = metrics.utilisation_over_time(result, "bottleneck")
    used = each.reshape(-1, round(1 / float(time[0]))).mean(axis=1)
    means = queue.reshape(-1, round(1 / float(time[0]))).mean(axis=1)
    before = means[int(up - stay / 2) : int(up)].mean()

    old = queue[(time > up - stay) & (time <= up)]
    wide = round(5 / float(time[0]))

    def about(begin: float) -> float:
        off = np.cumsum((queue[(time > begin) & (time <= begin + stay)] - old.mean()) ** 2)
        calm = off[wide:] - off[:-wide] < wide * (1.5 * old.std()) ** 2
        return float(time[0] * np.argmax(calm)) if calm.any() else stay

    def away(begin: float) -> int:
        return int(np.sum(abs(means[int(begin) : int(begin + stay)] - before) >= 0.1))

    later = {"after_s": stay / 2}
    rise, risen = metrics.response_time_s(
        result, "bottleneck", up, until_s=down, before_s=min(50, up / 2), **later
    )
    fall, fallen = metrics.response_time_s(
        result, "bottleneck", down, until_s=end, before_s=stay / 2, **later
    )
    full = link.series["dropped_full_packets"]
    return {
        "queue": queue[9::10].tolist(),
        "used": used.tolist(),
        "rise_s": rise,
        "risen": risen,
        "fall_s": fall,
        "fallen": fallen,
        "rise_about_s": about(up),
        "fall_about_s": about(down),
        "away_up_s": away(up),
        "away_down_s": away(down),
        "most": float(queue[(time > up) & (time <= down)].max()),
        "overflows": int(full[(time > up) & (time <= down)].sum()),
        "used_before": float(used[int(up - stay / 2) : int(up)].mean()),
        "used_high": float(used[int(up) : int(down)].mean()),
        "used_after": float(used[int(down) : int(down + stay)].mean()),
    }


def gain(queue: float, cr: float, low: float, high: float, kappa: float) -> float:
    """Return |G| of (9) with (10): the factor on a deviation of the queue per round trip.

    All in one unit; `cr` is the rate times the propagation time, `low` and `high` the thresholds.
    """
    return (queue + cr) / (2 * (kappa * high + queue - low))


def smallest_stable_buffer(high: float, kappa: float) -> float:
    """Return the smallest B / CR with |G| < 1 above min_th = B/4, for max_th = `high` B: (11)."""
    few, many = 1e-3, 1e3
    for _ in range(100):
        middle = (few * many) ** 0.5
        stable = gain(middle / 4, 1, middle / 4, high * middle, kappa) < 1
        few, many = (few, middle) if stable else (middle, many)
    return many


def largest_change(cr: float, high: float) -> float:
    """Return sigma of (16), the largest step of load, for B = 1, min_th = 1/4, max_th = `high`."""
    return min((1 - high) / (high + cr), 0.25 / (0.25 + cr))


def fluid_limit(window: float) -> float:
    """Return the |G| at which the fluid model of TCP with windows of `window` becomes unstable.

    The loop gain is |G| e^-jx / ((1 + jx W/2)(1 + jx)), x the frequency times the round-trip time;
    at the limit its magnitude is 1 at a phase of -180 degrees (Hollot et al. 2001, with HRED's
    proportional controller).
    """
    few, many = 0.0, np.pi
    for _ in range(100):
        x = (few + many) / 2
        few, many = (x, many) if x + np.arctan(x * window / 2) + np.arctan(x) < np.pi else (few, x)
    return float(np.hypot(1, few * window / 2) * np.hypot(1, few))
