"""FTPs of Tail Drop against RED on real packets: runs, and notes for the report."""

from sojourn_lab.papers.red_vs_taildrop.measure import measure
from sojourn_lab.papers.red_vs_taildrop.runs import (
    DEFAULT,
    FTPS,
    NAMES,
    TESTBED,
    Table,
    ftp,
    law,
    network,
)
from sojourn_lab.reproduction.paper import Experiment, Live, Point

LINUX: Table = {
    **{key: value for key, value in TESTBED.items() if key != "rto_initial"},
    "packet": "1500B",
    "rack": True,
    "prr": True,
}
"""The testbed's TCP, except packets above the MTU and the initial RTO, which Linux fixes. RACK and
proportional rate reduction are what today's kernel always has, so that the simulated counterparts
have them too."""

LIVE = Live(
    about="""\
On real packets: bulk data (figure 3, claims 001-C1 to 001-C8). 16 to 256 FTPs and four CBR
sources of 573-byte packets, 1 Mbit/s together, over the paper's four access links, the trunk and
the bottleneck of 10 Mbit/s; base round-trip times of 120 to 180 ms. Tail Drop, REDstd, GREDstd and
REDopt have the parameters and buffers of the simulated runs.

TCP is the kernel's Reno with SACK: delayed acks, an initial window of two packets, a minimum RTO of
200 ms. Two differences: packets have 1500 bytes instead of 1514, the MTU of the devices, and a lost
SYN is sent again after 1 s instead of 3 s, which Linux fixes. The simulated counterparts have the
same 1500 bytes and 1 s, and RACK and proportional rate reduction for losses, which today's kernel
always has.

The paper ran 10 times 500 s, the first 100 s not counted. Full runs here last as long, with 2
seeds. A seed determines the start of the flows and the random numbers of the link, and nothing in
the kernel. Orders are judged by paired seeds, and two seeds prove little: a difference holds only
if it is much larger than the difference between two runs.""",
    theirs="The ten runs of the paper for each point",
    paper_s=500,
    columns={
        "queue_packets": ("mean queue, packets", 1),
        "delay_std_s": ("deviation of the delay, ms", 1e3),
        "utilisation": ("utilisation, %", 100),
        "loss": ("loss, %", 100),
        "udp_loss": ("loss of UDP, %", 100),
        "goodput_mbps": ("goodput of TCP, Mbit/s", 1),
    },
    names=NAMES,
    why={
        "001-C2": "two seeds: intervals are too wide for an order",
        "001-C3": "two seeds cannot decide the orders; losses differ at 256",
        "001-C4": "averages at or above max_th; one step too small",
        "001-C6": "two seeds cannot decide two of the orders",
    },
)


def live(full: bool) -> dict[str, Experiment]:
    """Return the FTPs of figure 3; quick mode has two loads and two disciplines.

    With six runs at once, full mode takes 56 minutes.
    """
    loads = FTPS if full else (16, 256)
    schemes = tuple(NAMES) if full else ("td", "opt")
    end, cut = (500, 100) if full else (12, 4)
    points: list[Point] = []
    for q in schemes:
        for n in loads:
            each = n // len(DEFAULT.hosts)
            flows = [ftp(f"ftp-{host}", host, each, LINUX) for host in DEFAULT.hosts]
            tree = network(law(q, n, acks=2), flows, end) | {"warmup": f"{cut}s"}
            points.append(({"q": q, "flows": n}, tree))
    return {"ftp": Experiment(points, measure, 2 if full else 1)}
