"""Network, traffic, disciplines, experiments and measure of `red_vs_taildrop`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sojourn.result.result import Result
from sojourn_lab.reproduction.paper import Experiment, Point

Table = dict[str, Any]

NAMES = {"td": "Tail Drop", "red": "REDstd", "gred": "GREDstd", "opt": "REDopt"}
"""Disciplines, in the order of all figures."""

FTPS = (16, 32, 64, 128, 256)
SESSIONS = (800, 1000, 1200, 1400)
LIGHT, SATURATED = 600, 1600

ACTIVE = {800: 40, 1000: 60, 1200: 137, 1400: 1060}
"""By sessions: mean number of open connections under Tail Drop with 300 packets over 5000 s; median
of six runs (experiment `first`). REDopt is configured for this number of flows."""

MODEL_FLOWS = (5, 10, 16, 20, 32, 40, 60, 90, 137, 200, 300, 500, 800, 1300, 2100, 3400, 5500)
"""Numbers of flows for which REDopt's model is evaluated; others are interpolated."""

SHARES = (0.3, 0.45, 0.6, 0.8)
"""Tail Drop's smaller buffers, as shares of the common one."""

PLAIN: Table = {"name": "droptail", "limit": "300p"}
"""Tail Drop with the bandwidth-delay product that the paper names."""

PATH = ["access-{i}", "trunk", "bottleneck"]
HOSTS = range(4)

SIMULATED: Table = {"name": "sack", "profile": "ns2", "receive_window": "10000p"}
"""ns-2's Sack1: an ack for every packet."""

TESTBED: Table = {
    "name": "sack",
    "profile": "rfc",
    "packet": "1514B",
    "initial_window": "2p",
    "rto_min": "200ms",
    "rto_initial": "3s",
    "delayed_ack": True,
}
"""Linux of 2001, as far as known: delayed acks, an initial window of two packets."""

MORE_WEB: dict[str, Table] = {
    "as chosen": {},
    "pages wait for the last": {"overlap": False},
    **{
        f"objects {k} times as large, as many times fewer pages": {
            "size": f"pareto(mean={12 * k}kB, shape=1.2)",
            "page_gap": f"pareto(mean={50 * k}s, shape=2)",
            "first": f"uniform(0s, {50 * k}s)",
        }
        for k in (3, 10)
    },
    "ns-2's example": {
        "objects": 1,
        "object_gap": "exponential(10ms)",
        "page_gap": "exponential(15s)",
        "first": "exponential(15s)",
        "size": "lomax(mean=17688B, shape=1.2)",
    },
}
"""Other web users with about the same offered load."""


def gap(n: float) -> float:
    """Return max_th - min_th (packets) of REDopt's model for `n` flows.

    As `red_opt` in sojourn-aqm: 0.02158 of the packets in flight in a round trip, plus 0.567 per
    flow, plus 85. The round trip includes the mean queue, which is 0.8 of this.
    """
    return (0.02158 * 10e6 / 8 / 1514 * 0.150 + 0.567 * n + 85) / (1 - 0.8 * 0.02158)


def room(n: float) -> int:
    """Return the common buffer (packets) of all disciplines for `n` flows, from the model."""
    return round(2 * gap(n))


def law(q: str, n: int, *, limit: int = 0, acks: int = 1, **more: Any) -> Table:
    """Return a discipline for `n` flows whose receivers ack every `acks`-th packet.

    Its buffer is `limit` packets, or the `room` for `n`.
    """
    limit = limit or room(n)
    buffer = {"limit": f"{limit}p"}
    if q == "td":
        return {"name": "droptail", **buffer}
    if q == "opt":
        model = {"flows": n, "rtt": "150ms", "udp_rate": "1mbit", "delayed_acks": acks == 2}
        return {"name": "red_opt", **buffer, **model, "wait": "bernoulli", **more}
    thresholds = {"min_th": f"{round(limit * 3 / 20)}p", "max_th": f"{round(limit * 13 / 20)}p"}
    red = {"gentle": {"red": "none", "gred": "buffer"}[q], "max_p": 0.1, "w_q": 0.002}
    return {
        "name": "red",
        **buffer,
        **thresholds,
        **red,
        "packet": "1514B",
        "wait": "bernoulli",
        **more,
    }


def network(
    qdisc: Mapping[str, Any], tcp: Sequence[Table], seconds: int, jitter: float = 0
) -> Table:
    """Return the scenario: the hosts' TCP flows and CBR sources over the 10 Mbit/s bottleneck."""
    wide = {"name": "droptail", "limit": "1000p"}
    links: Table = {
        f"access-{i}": {"rate": "100mbit", "delay": f"{20 * (i + 1)}ms", "qdisc": wide}
        for i in HOSTS
    }
    links["trunk"] = {"rate": "100mbit", "qdisc": wide}
    links["bottleneck"] = {"rate": "10mbit", "delay": "100ms", "qdisc": dict(qdisc)}
    cbr: Table = {"name": "cbr", "rate": "250kbit", "packet": "573B", "start": "uniform(0s, 10s)"}
    if jitter:
        cbr |= {"jitter": jitter}
    udp = {"name": "udp", "count": len(HOSTS), "path": PATH, "source": cbr}
    gauges = {} if qdisc["name"] == "droptail" else {"sample": "1s", "sample_flows": False}
    times = {"duration": f"{seconds}s", "warmup": "100s"}
    return {**times, **gauges, "links": links, "flows": [*tcp, udp]}


def ftp(name: str, host: int, count: int, tcp: Table) -> Table:
    """Return FTPs of one host that start in the first ten seconds."""
    path = [link.replace("{i}", str(host)) for link in PATH]
    source = {"name": "bulk", "start": "uniform(0s, 10s)"}
    return {"name": name, "count": count, "path": path, "source": source, "tcp": tcp}


def testbed(n: int) -> list[Table]:
    """Return `n` FTPs as in the testbed, a quarter of them on each host."""
    return [ftp(f"ftp-{host}", host, n // len(HOSTS), TESTBED) for host in HOSTS]


def simulated(n: int) -> list[Table]:
    """Return `n` FTPs as in ns-2, with packet sizes spread evenly from 1400 to 1628 bytes."""
    golden = (math.sqrt(5) - 1) / 2
    sizes = [1400 + math.floor(229 * (i * golden % 1)) for i in range(n)]
    return [
        ftp(f"ftp-{i}", i % len(HOSTS), 1, {**SIMULATED, "packet": f"{size}B"})
        for i, size in enumerate(sizes)
    ]


def web(sessions: int, **more: Any) -> list[Table]:
    """Return web users; each object has its own connection."""
    source: Table = {
        "name": "web",
        "sessions": sessions,
        "start": "uniform(0s, 10s)",
        "first": "uniform(0s, 50s)",
        "pages": "auto",
        "page_gap": "pareto(mean=50s, shape=2)",
        "overlap": True,
        "objects": "pareto(mean=4, shape=1.2)",
        "object_gap": "pareto(mean=500ms, shape=1.5)",
        "size": "pareto(mean=12kB, shape=1.2)",
        "most": 30_000,
        **more,
    }
    tcp = {**SIMULATED, "packet": "1514B"}
    return [{"name": "web", "count": len(HOSTS), "path": PATH, "source": source, "tcp": tcp}]


def measure(result: Result) -> dict[str, Any]:
    """Keep goodput, UDP's loss, delay, loss runs, open connections, REDopt's parameters.

    Goodput counts packets delivered once and in order, with headers of 40 bytes.
    """
    import numpy as np

    link = result.links["bottleneck"]
    flows = result.flows.values()
    sizes = {f["name"]: f["tcp"]["packet"] for f in result.scenario["flows"] if "tcp" in f}
    wire = {name: float(size.removesuffix("B")) for name, size in sizes.items()}
    tcp = [f for f in flows if f.kind == "tcp"]
    udp = [f for f in flows if f.kind == "udp"]
    runs = np.asarray(link.consecutive_loss, dtype=float)
    lengths = np.arange(1, len(runs) + 1)
    events = max(1.0, runs.sum())
    begin, end = (float(result.scenario[k].removesuffix("s")) for k in ("warmup", "duration"))
    done = result.completions
    kept = {
        "goodput_mbps": sum(f.goodput_bps * wire[f.group] / (wire[f.group] - 40) for f in tcp)
        / 1e6,
        "udp_loss": sum(f.lost_packets for f in udp) / sum(f.sent_packets for f in udp),
        "loss": link.loss_rate,
        "utilisation": link.utilisation,
        "delay_s": link.sojourn_mean_s,
        "delay_std_s": link.sojourn_std_s,
        "queue_packets": link.queue_mean_packets,
        "runs": runs.tolist(),
        "run_mean": float((runs * lengths).sum() / events),
        "runs_of_2": float(runs[1:].sum() / events),
        "runs_of_10": float(runs[9:].sum() / events),
    }
    if len(done["start_s"]):
        open_s = np.minimum(done["start_s"] + done["duration_s"], end)
        kept["active"] = float(np.clip(open_s - np.maximum(done["start_s"], begin), 0, None).sum())
        kept["active"] /= end - begin
    if "gauge_avg" in link.series:
        kept["average_packets"] = float(link.series.gauge_avg[int(begin) :].mean())
    if "gauge_p0" in link.series:
        kept |= {k: float(link.series[f"gauge_{k}"][-1]) for k in ("max_p", "w_q", "B")}
        kept |= {k: float(link.series[f"gauge_{k}"][-1]) for k in ("min_th", "max_th")}
    return kept


def scenarios(full: bool) -> dict[str, Experiment]:
    """Return the experiments: `ftp` and `web` are the paper's, the others are sensitivities."""
    three, ends = (16, 64, 256), (16, 256)
    ftp_s, web_s, short_s = (500, 5000, 2000) if full else (200, 500, 300)
    weights = (0.0005, 0.002, 0.01, 0.02) if full else (0.0005, 0.002, 0.02)
    seeds = 3 if full else 2
    experiments = {
        "ftp": (_ftp(FTPS, ftp_s), 6 if full else 3),
        "web": (_web(web_s), 4 if full else 3),
        "first": (_first(web_s), 3 if full else 2),
        "users": (_users(SESSIONS if full else SESSIONS[::3], short_s), 3 if full else 2),
        "model": (_model(), 1),
        "buffers": (_buffers(three, ftp_s), seeds),
        "weights": (_weights(weights, web_s, short_s), 3 if full else 2),
        "simulated": (_simulated(three if full else ends, ftp_s), seeds),
        "ns-2": (_as_ns2_had_it(three, 300, 300 if full else 200), seeds),
        "spread": (_spread(ends, ftp_s, web_s), 3 if full else 2),
        "misjudged": (_misjudged(web_s), 3 if full else 2),
    }
    return {name: Experiment(points, measure, n) for name, (points, n) in experiments.items()}


def _ftp(flows: Sequence[int], seconds: int) -> list[Point]:
    """Return the runs of figure 3: FTPs over the testbed."""
    return [
        ({"q": q, "flows": n}, network(law(q, n, acks=2), testbed(n), seconds))
        for q in NAMES
        for n in flows
    ]


def _web(seconds: int) -> list[Point]:
    """Return the runs of figure 4: web users."""
    return [
        ({"q": q, "sessions": s}, network(law(q, n), web(s), seconds))
        for q in NAMES
        for s, n in ACTIVE.items()
    ]


def _first(seconds: int) -> list[Point]:
    """Return the runs that count open connections, also below and above the paper's loads."""
    every = (LIGHT, *SESSIONS, SATURATED)
    return [({"sessions": s}, network(PLAIN, web(s), seconds)) for s in every]


def _users(sessions: Sequence[int], seconds: int) -> list[Point]:
    """Return such first runs with other users."""
    return [
        ({"users": users, "sessions": s}, network(PLAIN, web(s, **more), seconds))
        for users, more in MORE_WEB.items()
        for s in sessions
    ]


def _model() -> list[Point]:
    """Return runs without TCP that read the parameters of REDopt's model."""
    return [({"flows": n}, network(law("opt", n), [], 101)) for n in MODEL_FLOWS]


def _buffers(flows: Sequence[int], seconds: int) -> list[Point]:
    """Return the runs of Tail Drop with smaller buffers, over the testbed."""
    return [
        (
            {"share": share, "flows": n},
            network(law("td", n, limit=round(share * room(n))), testbed(n), seconds),
        )
        for n in flows
        for share in SHARES
    ]


def _weights(weights: Sequence[float], heavy_s: int, light_s: int) -> list[Point]:
    """Return the runs of RED with other weights, at the lowest and the highest load.

    An overload accumulates sessions for thousands of seconds, so the highest load has longer runs.
    """
    return [
        (
            {"q": q, "w_q": w_q, "sessions": s},
            network(law(q, ACTIVE[s], w_q=w_q), web(s), seconds),
        )
        for s, seconds in ((800, light_s), (1400, heavy_s))
        for q in ("red", "gred")
        for w_q in weights
    ]


def _simulated(flows: Sequence[int], seconds: int) -> list[Point]:
    """Return the runs of FTPs as simulated in the paper, which does not show them."""
    return [
        ({"q": q, "flows": n}, network(law(q, n), simulated(n), seconds))
        for q in NAMES
        for n in flows
    ]


def _as_ns2_had_it(flows: Sequence[int], limit: int, seconds: int) -> list[Point]:
    """Return our runs in ns-2: one buffer, `wait` yes, gentle up to 2 max_th, jittered UDP."""
    laws = {
        "td": {"name": "droptail", "limit": f"{limit - 1}p"},
        "red": law("red", 0, limit=limit, wait="yes"),
        "gred": law("gred", 0, limit=limit, wait="yes", gentle="two_max_th"),
    }
    return [
        ({"q": q, "flows": n}, network(qdisc, simulated(n), seconds, jitter=0.5))
        for q, qdisc in laws.items()
        for n in flows
    ]


def _spread(flows: Sequence[int], ftp_s: int, web_s: int) -> list[Point]:
    """Return the RED variants with drops spaced as in Floyd and Jacobson, and as in ns-2."""
    points: list[Point] = []
    for wait in ("no", "yes"):
        for q in ("red", "gred", "opt"):
            labels = {"wait": wait, "q": q}
            for n in flows:
                tree = network(law(q, n, acks=2, wait=wait), testbed(n), ftp_s)
                points.append((labels | {"load": f"{n} FTPs", "flows": n}, tree))
            tree = network(law(q, ACTIVE[1400], wait=wait), web(1400), web_s)
            points.append((labels | {"load": "1400 sessions", "sessions": 1400}, tree))
        for n in flows:
            tree = network(law("opt", n, wait=wait), simulated(n), ftp_s)
            points.append(({"wait": wait, "q": "opt", "load": f"{n} FTPs, ns-2's TCP"}, tree))
    return points


def _misjudged(seconds: int) -> list[Point]:
    """Return 1400 sessions with parameters for 1200, and REDopt with a faster average."""
    few, faster = "made for 1200 sessions", "w_q by memory"
    laws = [(few, q, 1400, law(q, ACTIVE[1200])) for q in NAMES]
    laws += [(faster, "opt", s, law("opt", ACTIVE[s], w_q_rule="memory")) for s in SESSIONS[:3]]
    return [
        ({"what": what, "q": q, "sessions": s}, network(queue, web(s), seconds))
        for what, q, s, queue in laws
    ]
