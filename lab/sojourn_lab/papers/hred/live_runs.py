"""Testbed of the paper on HRED on real packets: runs, and notes for the report."""

from itertools import product

from sojourn_lab.papers.hred.checks import RULES
from sojourn_lab.papers.hred.common import NAMES, TESTBED, Table, gateway, scheme
from sojourn_lab.papers.hred.measures import steady
from sojourn_lab.reproduction.paper import Experiment, Live, Point

LINUX: Table = {
    "name": "sack",
    "profile": "rfc",
    "packet": "500B",
    "initial_window": "4p",
    "rto_min": "200ms",
    "rack": True,
    "prr": True,
}
"""Linux of 2001, as far as today's kernel can be configured: SACK, delayed acks, an initial window
of four packets of this size (RFC 2414), a minimum RTO of 200 ms. RACK and proportional rate
reduction are what today's kernel always has, so that the simulated counterparts have them too."""

LIVE = Live(
    about="""\
On real packets: the testbed alone (figures 13a to 13d, claim 003-C19), since the paper used real
packets only there. 10 Mbit/s, 100 ms, 50 kB, packets of 500 bytes with headers; x long flows and
x/2 flows of 10 packets per second; x from 20 to 120 (the paper: 50 to 120). The disciplines have
the parameters of the simulated testbed.

TCP is the kernel's Reno with SACK, the default of Linux 2.4, with delayed acks, an initial window
of four packets and a minimum RTO of 200 ms. The simulated testbed on the other page has NewReno
with an ack per packet. Here both sides, live and simulated, have SACK, delayed acks, and RACK and
proportional rate reduction for losses, which today's kernel always has.

The paper does not state the duration of its testbed runs; its simulations last 200 s, the first
150 s not counted. Full runs here last 60 s, the first 20 s not counted. PIC and Blue may not have
converged by then, in the simulated counterparts as well. Full runs have two seeds. A seed
determines the start of the flows and the random numbers of the link, and nothing in the kernel.""",
    theirs="The simulations of the paper, which does not state the duration of its testbed runs,",
    paper_s=200,
    columns={
        "mean": ("mean queue, kB", 50),
        "std": ("deviation of the queue, kB", 50),
        "utilisation": ("utilisation, %", 100),
        "loss": ("loss, %", 100),
    },
    names=NAMES,
    why={"003-C19": "two seeds: three intervals reach beyond their limits"},
)


def live(full: bool) -> dict[str, Experiment]:
    """Return the testbed of figures 13a to 13d; quick mode has two loads and three disciplines.

    With six runs at once, full mode takes 12 minutes.
    """
    loads = (20, 40, 60, 80, 100, 120) if full else (40, 120)
    rules = RULES if full else ("red", "avq", "hred")
    end, cut = (60, 20) if full else (12, 4)
    points: list[Point] = [
        (
            {"qdisc": q, "flows": x},
            gateway(scheme(q, 50, **TESTBED.get(q, {})), x, end, cut, tcp=LINUX),
        )
        for q, x in product(rules, loads)
    ]
    return {"testbed": Experiment(points, steady, 2 if full else 1)}
