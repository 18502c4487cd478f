"""Set-ups of ns-2 with short flows: web sessions, queries to many servers, Poisson flows.

Everything is under the profile `ns2`, and what a flow took is counted as ns-2's scripts did: from
its SYN to the last ack at the sender.
"""

from typing import Any

import sojourn as sj
from sojourn_lab.validation.systems import (
    WIDE,
    Table,
    flow,
    ftp_only,
    link,
    propagation,
    scenario,
    tail,
)

HOSTS = 50
"""Number of servers of web sessions."""

QUERIES = 20
"""Number of queries in the runs of ns-2."""


def with_sessions(seed: int, q: str, n: int, qmax: int, tcp: str) -> Table:
    """Set up `hred_dumbbell.csv`: long flows as in `hred_ftp_only.csv`, and web sessions.

    A session is ten transfers with pauses of a second on average, each on a fresh connection from
    any of 50 hosts with an RTT and an access link of its own; n/12 sessions come per second.
    """
    qdisc = {"Vq": "AVQ", "REDng": "RED"}.get(q, q)
    table = ftp_only(seed, qdisc, n, qmax, tcp)
    links = table["links"]
    if q == "REDng":
        links["bottleneck"]["qdisc"]["gentle"] = "none"
    # The hosts' times are of another stream than the long flows', but of the same set.
    for i, rtt in enumerate(propagation(seed, n + HOSTS)[n:]):
        delay = f"{(rtt / 2 - 0.010) * 1e9:.0f}ns"
        links[f"web-{i}"] = link("100mbit", delay)
        links[f"web-home-{i}"] = link("100mbit", delay)
    web = flow("web", ["web-{i}", "bottleneck"], 500, return_path=["back", "web-home-{i}"])
    web |= {
        "count": HOSTS,
        "source": {
            "name": "sessions",
            "interval": f"exponential({12e9 / n:.0f}ns)",
            "transfers": 10,
            "size": "lomax(mean=4600B, shape=1.2)",  # ten packets of 460 B of payload, rounded up
            "gap": "exponential(1s)",
            "until": "acked",
        },
    }
    table["flows"].append(web)
    return table


def _qdisc(q: str, wq: float) -> Table:
    """Return a discipline of the switch, as in ns-2, with a buffer of 200 packets."""
    if q == "DropTail":
        return tail("p", 200)
    if q == "CoDel":
        codel: Table = {"name": "codel", "variant": "ns2_v1", "limit": "200p"}
        return codel | {"target": "300us", "interval": "750us"}
    return {
        "name": "ared",
        "limit": "200p",
        "min_th": "25p",
        "max_th": "51p",
        "w_q": "auto" if wq < 0 else wq,
        "bottom": "auto",
        "max_p": 0.1,
        "gentle": "two_max_th",
        "stale_gentle": True,
        "wait": "yes",
        "spare_short": True,
        "packet": "1000B",
    }


def _switch(
    q: str, wq: float, n: int, short: Table, seed: int, end: str, spread_ns: int = 0
) -> Table:
    """Return `n` servers and one with a long flow behind a switch, and their client.

    Every server's link has the same discipline. With a spread each is that much longer
    than the one before, and the long flow's is 50 ns longer: no two packets meet to the instant.
    """
    qdisc = _qdisc(q, wq)
    links = {"port": link("1gbit", "75us", qdisc), "back": link("1gbit", "75us", WIDE)}
    delays = {str(i): 75_000 + i * spread_ns for i in range(n)}
    for i, ns in (delays | {"long": 75_050 if spread_ns else 75_000}).items():
        links[f"nic-{i}"] = link("1gbit", f"{ns}ns", qdisc)
        links[f"home-{i}"] = link("1gbit", "75us", WIDE)
    flows = []
    for name, number, source in (("long", "long", {"name": "bulk"}), ("short", "{i}", short)):
        ends = flow(name, [f"nic-{number}", "port"], 1000, "sack")
        ends["return_path"] = ["back", f"home-{number}"]
        ends["tcp"] |= {"rto_min": "10ms", "tick": "100us", "rto_initial": "10ms"}
        flows.append(ends | {"source": source})
    flows[1]["count"] = n
    return scenario(end, "100ms", seed, links, flows)


def queries(seed: int, q: str, kb: float, n: int, wq: float, spread_ns: int = 0) -> Table:
    """Set up `codel_dc_incast.csv` and `codel_dc_vary.csv`: twenty queries to n servers.

    ns-2 ends with the last answer, and so does this: a first run finds out when that is.
    """
    short = {
        "name": "incast",
        "start": "100ms",
        "size": f"{-(-kb // 1) * 960:.0f}B",  # a packet for each kB that is begun
        "jitter": "uniform(0us, 20us)",
        "gap": "300us",
        "number": QUERIES,
        "until": "acked",
    }
    table = _switch(q, wq, n, short, seed, "10s", spread_ns)
    # The long flow would go on for the rest of the ten seconds: it is cut in steps.
    for seconds in (0.6, 1.2, 2.4, 10.0):
        answers = sj.simulate(table | {"duration": f"{seconds * 1000:.0f}ms"}).queries
        if len(answers["start_s"]) == QUERIES:
            break
    last = float(answers["start_s"][-1] + answers["duration_s"][-1])
    return table | {"duration": f"{last * 1e9 + 1000:.0f}ns"}


def poisson(seed: int, q: str, load: float, n: int, wq: float) -> Table:
    """Set up `codel_dc_poisson.csv`: random arrivals of flows of 2 to 98 packets for 3 s."""
    short = {
        "name": "poisson",
        "start": "100ms",
        "size": f"uniform({1.5 * 960:.0f}B, {97.5 * 960:.0f}B)",
        "interval": f"exponential({4e5 / load:.0f}ns)",
        "until": "acked",
    }
    return _switch(q, wq, n, short, seed, "3100ms")


def answers_ms(result: sj.Result) -> Any:
    """Return the completion times of the short flows, in ms."""
    done = result.completions
    long = list(result.flows).index("long")
    return done["duration_s"][done["flow"] != long] * 1e3


def web_fct_s(result: sj.Result) -> float:
    """Return the mean completion time of the transfers that ended in the measured time."""
    done = result.completions
    ended = done["start_s"] + done["duration_s"] >= 150
    return float(done["duration_s"][ended].mean())


def web_done(result: sj.Result) -> float:
    """Return the number of transfers that ended in the measured time."""
    done = result.completions
    return float((done["start_s"] + done["duration_s"] >= 150).sum())
