"""CoDel against DRR on a dumbbell with traffic both ways.

The paper uses ns-2 and a dumbbell with FTP over TCP and CBR in both directions. It reports the
range of the queueing delay and the packets dropped per second, against the bottleneck rate (2, 4,
10, 100 Mbit/s) and against the MTU (500, 1000, 1500 bytes).

It states nothing else. Our choices:

- Traffic in each direction: 4 FTPs (NewReno, as ns-2's agents: an ack per packet, no receiver's
  limit) with 1000-byte packets, and one CBR flow with 500-byte packets and a tenth of the
  bottleneck rate.
- Base round-trip time 40 ms (bottleneck 10 ms each way, access 5 ms); access links that never
  queue; 100 s, the first 10 s not counted.
- CoDel of 2012 (as in ns-2), target 5 ms, interval 100 ms, with a buffer of 1000 packets that
  never fills. DRR with ns-2's defaults: 25 000 bytes for all flows, a quantum of 250 bytes, 10
  hash buckets.
- MTU scenario: 2 Mbit/s, because the CoDel range that the paper gives for 1500 bytes is the one
  that it gives for 2 Mbit/s. All packets have the size of the MTU.

The paper labels delays in ms. Its 0.01 ms is impossible: a packet of 1000 bytes takes 4 ms at 2
Mbit/s. The numbers make sense as seconds, so they are read as seconds here. A range is the 5th to
the 95th percentile (the paper does not say) of the FTPs' data packets. The smallest delays of the
paper are above the delays of an empty queue. So they include propagation and transmission, which
are added to the sojourn time here.

Settings varied: 1, 2 and 8 FTPs, round-trip times of 2 and 10 ms, a receiver's window of 20 packets
(ns-2's default `window_`), no CBR, 4 Mbit/s in the MTU scenario; the range taken over all packets,
from the smallest to the largest delay, or of the delay in the queue alone. Further runs: a DRR
buffer as large as CoDel's, other disciplines.

The future work that the paper names, with our choices:

- Wireless: the bottleneck of 10 Mbit/s loses 0.1, 1 or 3 % of the packets at random.
- Calls: a call of 80 kbit/s (G.711, 200 bytes every 20 ms) in each direction.
- Buffers: the same buffer of 12.5 to 400 kB for both disciplines, at 2 and 10 Mbit/s.
"""

from sojourn_lab.papers.codel_vs_drr import future, runs
from sojourn_lab.papers.codel_vs_drr.claims import CLAIMS, PROPAGATION_MS, SETTINGS
from sojourn_lab.papers.codel_vs_drr.drawings import (
    figure_0,
    figure_4_1,
    figure_4_2,
    figure_4_3,
    figure_4_4,
    figure_flows,
    table_changed,
    table_ns2,
)
from sojourn_lab.papers.codel_vs_drr.future import (
    figure_buffers,
    figure_calls,
    figure_loss,
    table_buffers,
    table_calls,
    table_loss,
)
from sojourn_lab.papers.codel_vs_drr.runs import NAMES, OURS, SetUp
from sojourn_lab.reproduction.claims import Runs, mean
from sojourn_lab.reproduction.paper import Experiment
from sojourn_lab.reproduction.parts import short

__all__ = [
    "CLAIMS",
    "REFERENCE",
    "SETTINGS",
    "TITLE",
    "SetUp",
    "figure_0",
    "figure_4_1",
    "figure_4_2",
    "figure_4_3",
    "figure_4_4",
    "figure_buffers",
    "figure_calls",
    "figure_flows",
    "figure_loss",
    "scenarios",
    "table_buffers",
    "table_calls",
    "table_changed",
    "table_loss",
    "table_ns2",
]

TITLE = "CoDel against DRR"
REFERENCE = "Ali, Khan and Quaid, IJCET 2015"

LEFT_OUT = {
    "1.2 to 1.6": "explanations without measurements, which our notes on the paper do not describe",
    "table 4.1": "not described in our notes on the paper",
    "Patil and Raina's threshold policy (related work)": "not readable: the abstract has no rule",
    "load based AQM (related work)": "a survey: the abstract describes no algorithm",
}


def scenarios(full: bool, set_up: SetUp = OURS) -> dict[str, Experiment]:
    """Return the scenarios of the paper, the settings varied, and its future work."""
    return {**runs.scenarios(full, set_up), **future.experiments(full, set_up)}


def _with_short_paths(runs: Runs) -> str:
    """Return CoDel's drops per second with a round-trip time of 2 ms."""
    own = {"what": "RTT 2 ms", "qdisc": "codel"}
    slow, fast = (mean(runs["changed"], "drops_per_s", rate=rate, **own) for rate in (2, 100))
    return f"{short(slow)} /s at 2 Mbit/s, {short(fast)} /s at 100 Mbit/s"


def _alone(runs: Runs) -> str:
    """Return the ranges of the delay in the queue alone at 10 Mbit/s."""
    texts = []
    for name, label in NAMES.items():
        own = {"qdisc": name, "rate": 10}
        ends = (mean(runs["bandwidth"], f"data_wait_{end}_s", **own) for end in ("low", "high"))
        texts.append(f"{' to '.join(short(1e3 * one) for one in ends)} ms with {label}")
    return " and ".join(texts)


FACTS = {
    "rtt": _with_short_paths,
    "alone": _alone,
    "propagation": lambda _: f"{PROPAGATION_MS:g} ms",
    "buffers": future.least_buffer,
    "goodput": future.goodput_at,
    "call_delay": future.call_at,
    "call_lost": future.call_lost,
}
