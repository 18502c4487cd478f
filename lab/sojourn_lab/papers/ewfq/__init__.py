"""Weighted fair queueing with differential dropping (EWFQ): early drops instead of split buffers.

The paper uses ns-2. Sources, each behind its own router, share a bottleneck under EWFQ (alpha 0.85,
beta 0.9, f_s 100 Hz, p_c 0.1, k = 1, q_target half the buffer, intervals of 1 s) or under WFQ with
a part of the buffer for each class. Two networks have two TCPs and a UDP source over 5 Mbit/s with
30 kB; their access delays are 10, 10, 1 ms ("Uniform") or 50, 100, 1 ms ("Varied"). A third
("Five") has four TCPs (RTT 8, 44, 204, 404 ms) and a UDP source, each behind 2.5 Mbit/s, over 10
Mbit/s with 5 to 150 kB. Weights are equal.

Our choices where the paper states nothing (for the algorithm itself see the page of `ewfq`):

- One TCP per source, NewReno as ns-2's agents (an ack per packet, no receiver's limit). Packets of
  1000 bytes with headers. RTT_o 0.25 s, with five sources 0.5 s.
- UDP of 3.33 Mbit/s (twice its share) and of 2.5 Mbit/s (its access link), gaps jittered by half.
- WFQ has tail drop in each class. EWFQ drops from the longest queue when the buffer is full (with
  plain tail drop it settles in a bad state), and the UDP class is configured as unresponsive.
- Access links with large buffers; acks meet no queue. 200 s, the first 50 s not counted.

The paper's buffers are 5 to 150 kB in steps of 1 kB; here the steps are 1 kB up to 20 kB and 10 kB
above. It has one curve per figure; here there are 10 seeds (other schedulers: 5, settings: 4).
Claims about figure 4 read a few of these buffers, and every setting runs all of them. Bandwidth
counts packets delivered once and in order, with headers. The paper does not state which of figures
4a and 4b is WFQ.

The two analytic claims are tested with NewReno: a single TCP over a link with a buffer of one
packet, and TCPs over a link with random losses at the rates of equation 2.

Further experiments, on statements of the text that have no figure:

- Unequal weights (III.A) in both networks with three sources; WFQ's buffers are proportional to
  the weights. EWFQ samples the bytes of a class with probability p / w.
- Detection by size (III.B): a large class and equal small ones at constant rates.
- Missed classes and the queue of small buffers (V): the networks of the paper, with the number of
  classes found at the end of each interval.
- Short flows (II, III): 10 packets each, at random times, in a class of their own with less than
  its share, in the network with five sources.
"""

from functools import partial

from sojourn_lab.papers.ewfq.claims import CLAIMS
from sojourn_lab.papers.ewfq.drawings import (
    figure_1,
    figure_2,
    figure_3,
    figure_4a,
    figure_4b,
    figure_4c,
    figure_4c_others,
    figure_4c_tcps,
    figure_4d,
    figure_4d_others,
    figure_c11,
    figure_c12,
)
from sojourn_lab.papers.ewfq.experiments import SETTINGS, scenarios
from sojourn_lab.papers.ewfq.measurement import figure_detection, table_intervals
from sojourn_lab.papers.ewfq.runs import SetUp
from sojourn_lab.papers.ewfq.shares import (
    figure_short,
    figure_weights,
    filled,
    table_short,
    table_weights,
    times,
)
from sojourn_lab.papers.ewfq.tables import (
    as_fair,
    low_udp,
    table_1,
    table_3_others,
    table_losses,
    table_nodes,
    table_ns2,
    table_settings,
    table_single_runs,
)
from sojourn_lab.reproduction.claims import mean

__all__ = [
    "CLAIMS",
    "REFERENCE",
    "SETTINGS",
    "TITLE",
    "SetUp",
    "figure_1",
    "figure_2",
    "figure_3",
    "figure_4a",
    "figure_4b",
    "figure_4c",
    "figure_4c_others",
    "figure_4c_tcps",
    "figure_4d",
    "figure_4d_others",
    "figure_c11",
    "figure_c12",
    "figure_detection",
    "figure_short",
    "figure_weights",
    "scenarios",
    "table_1",
    "table_3_others",
    "table_intervals",
    "table_losses",
    "table_nodes",
    "table_ns2",
    "table_settings",
    "table_short",
    "table_single_runs",
    "table_weights",
]

TITLE = "Weighted fair queueing with differential dropping (EWFQ)"
REFERENCE = "Lu, Voelker and Snoeren, INFOCOM 2012"

LEFT_OUT = {
    "4a or 4b, which is which": "the text does not say which panel is WFQ; both are drawn",
}

FACTS = {
    "shared": lambda runs: " and ".join(
        f"{mean(runs['varied'], 'jain', qdisc=one):.3f}" for one in ("wfq_shared", "drr")
    ),
    "as_fair": as_fair,
    "low_udp": low_udp,
    "short_10": partial(times, kb=10),
    "short_150": partial(times, kb=150),
    "short_full": partial(filled, kb=10),
}
