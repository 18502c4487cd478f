"""The testbed of the paper of HRED on real packets: which runs, and what is told of them."""

from itertools import product

from sojourn.papers.hred.checks import RULES
from sojourn.papers.hred.common import NAMES, TESTBED, Table, gateway, scheme, steady
from sojourn.reproduction.paper import Experiment, Live, Point

LINUX: Table = {
    "name": "sack",
    "profile": "rfc",
    "packet": "500B",
    "initial_window": "4p",
    "rto_min": "200ms",
}
"""Linux of 2001, as far as the kernel of today can be told: SACK, delayed acks, a first window of
four packets of this size (RFC 2414), a least time-out of 200 ms."""

LIVE = Live(
    about="""\
On real packets: the testbed alone (figures 13a to 13d, claim 003-C19), since the paper had real
ones only there. 10 Mbit/s, 100 ms, 50 kB, packets of 500 bytes with their headers; x long flows
and x/2 flows of 10 packets per second; x 20 to 120, the paper's 50 to 120 and what comes before.
The schemes have the parameters of the simulated testbed.

TCP is the kernel's Reno with SACK, as Linux 2.4 had it by default, with delayed acks, a first
window of four packets and a least time-out of 200 ms; the simulated testbed on the other page
has NewReno with an ack per packet. Here both sides, live and simulated, have SACK and delayed
acks.

How long the testbed's runs were the paper does not say; its simulations are of 200 s, of which
150 are cut. Full runs here have 60 s, of which 20 are cut: PIC and Blue may still be on their
way by then, and they are as much so in the simulation beside. One seed: it decides when flows
begin, how dice fall on the link, and nothing in the kernel.""",
    theirs="The simulations of the paper, which does not say how long its testbed ran,",
    paper_s=200,
    columns={
        "mean": ("mean queue, kB", 50),
        "std": ("its deviation, kB", 50),
        "utilisation": ("utilisation, %", 100),
        "loss": ("loss, %", 100),
    },
    names=NAMES,
)


def live(full: bool) -> dict[str, Experiment]:
    """Give the testbed of figures 13a to 13d; quick runs have two loads and three schemes.

    Six runs at once make the full ones in 6 minutes; a second seed would make it more than 12.
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
    return {"testbed": Experiment(points, steady, 1)}
