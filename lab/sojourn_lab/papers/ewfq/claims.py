"""Claims of the paper on EWFQ."""

from dataclasses import replace

from sojourn_lab.papers.ewfq.measurement import missed, square, swings
from sojourn_lab.papers.ewfq.rules import (
    classes,
    five_times,
    less_in_small,
    more_in_large,
    only_above,
    ratio,
    single,
    small_buffers,
    uniform_ewfq,
    uniform_wfq,
    varied_ewfq,
    varied_wfq,
)
from sojourn_lab.papers.ewfq.shares import by_weight, spared
from sojourn_lab.reproduction.claims import Claim

INDEX = "Jain's index J of the sources' bandwidth; within 0.005, and 1 - J within a factor of 2."
PAIRS = "Paired by seed; the 95 % interval of the difference is above 0."
NODES, SWEEP = ("nodes",), ("sweep",)

CLAIMS = [
    Claim(
        "002-C1", "EWFQ's fairness in the Uniform network.", "2", "0.9999", INDEX,
        uniform_ewfq, NODES,
    ),
    Claim(
        "002-C2", "WFQ's fairness in the Uniform network.", "2",
        "0.9998 (even buffers), 0.9963 (15/5/10 kB)", INDEX,
        uniform_wfq, NODES,
    ),
    Claim(
        "002-C3", "EWFQ's fairness in the Varied network, above WFQ's.", "3", "0.9978",
        f"{INDEX} And the order. {PAIRS}",
        varied_ewfq, NODES,
    ),
    Claim(
        "002-C4", "WFQ's fairness in the Varied network; better with uneven buffers.", "3",
        "0.9765 (15/5/10 kB), 0.9733 (even)", f"{INDEX} And the order. {PAIRS}", varied_wfq, NODES,
    ),
    Claim(
        "002-C5", "Under WFQ with small buffers, flows with a short RTT get many times the "
        "bandwidth of those with a long RTT.", "4a", "10 times",
        "Bandwidth of s1 (8 ms) over s4's (404 ms) at 5 kB; within 20 %.", ratio, SWEEP,
    ),
    Claim(
        "002-C6", "WFQ's fairness approaches 1 only above 90 kB, and flows still differ at 150 kB.",
        "4c, 4a", "not at 90 kB; a spread at 150 kB",
        f"Near 1 means within 0.005: not at 90 kB, but at 150 kB, where s4 has less than UDP. "
        f"{PAIRS}",
        only_above, SWEEP,
    ),
    Claim(
        "002-C7", "EWFQ's fairness is already near 1 at 10 kB.", "4c",
        "near 1 at 10 kB, > 0.98 in very small buffers",
        "Above 0.995 at 10 kB; above 0.98 at 5 kB, the smallest.",
        small_buffers, SWEEP,
    ),
    Claim(
        "002-C8", "EWFQ's total bandwidth is below WFQ's in buffers of up to 10 kB.", "4d", "less",
        PAIRS, less_in_small, SWEEP,
    ),
    Claim(
        "002-C9", "EWFQ's total matches WFQ's at 30 kB and exceeds it with larger buffers.", "4d",
        "equal at 30 kB, then more",
        f"Equal within 3 points of the link; then at 90 and 150 kB. {PAIRS}",
        more_in_large, SWEEP,
    ),
    Claim(
        "002-C10", "WFQ needs five times EWFQ's buffer for the same bandwidth and fairness.",
        "4c, 4d", "150 kB for 30 kB",
        "WFQ with 150 kB and EWFQ with 30 kB: index within 0.005, total within 3 points. The "
        "smallest buffer at which both of WFQ reach EWFQ's at 30 kB, over 30 kB: within 20 % of 5.",
        five_times, SWEEP,
    ),
    Claim(
        "002-C11", "A single TCP with a small queue has a drop rate of 1 / (3/8 P²) and gets 75 % "
        "of R; at 1 / (2/3 P²) it gets R.", "C11", "0.75 R, R",
        "P = 50. With a buffer of one packet: rate within 3 points, drop rate within 20 %. "
        "With random losses at both rates: within 20 %.",
        single, ("single",),
    ),
    Claim(
        "002-C12", "A class of n TCPs needs n² times the drop rate.", "C12", "its share at n² d",
        "P = 100, n = 1, 2, 4, 8: within 20 % of the share. At d and at n d, n = 8 gets more than "
        "1.2 times the share.",
        classes, ("classes",),
    ),
    Claim(
        "002-C13", "Classes get bandwidth in proportion to their weights (III.A).", "weights",
        "shares by weight",
        "Jain's index of the bandwidths over the weights is near 1, above 0.995: weights of the "
        "two TCPs and UDP, in both networks with three sources.",
        by_weight, ("weights",),
    ),
    Claim(
        "002-C14", "The probability that a class is found grows with the square of its size "
        "(III.B).", "III.B", "square",
        "Constant rates; exponent of the size in the rate of detection, from 1.9 % to 7.5 % of the "
        "packets, within 20 % of 2.",
        square, ("detection",),
    ),
    Claim(
        "002-C15", "A flow above its share is missed with a probability of less than 10 % (V).",
        "V", "< 10 %",
        "Share of the pairs of an interval and a class above m_fair in which the class is missed. "
        "Only the number of classes found is known, which gives a lower and an upper bound.",
        missed, ("intervals",),
    ),
    Claim(
        "002-C16", "The queue of a very small buffer oscillates between empty and full (V).", "V",
        "0 to 100 %",
        "Five sources, samples of 10 ms. At 5 kB the 5th percentile of the queue is below 20 %, "
        "the 95th above 80 % of the buffer; the range is larger than at 150 kB.",
        swings, ("intervals",),
    ),
    Claim(
        "002-C17", "Short flows below their share are spared (II, III).", "short",
        "no early drops",
        "Five sources and a class of flows of 10 packets. Less than 0.1 % of their packets are "
        "dropped early.",
        spared, ("short",),
    ),
]  # fmt: skip

WHY = {
    "002-C1": "single runs spread around the paper's single run",
    "002-C2": "uneven buffers cost WFQ almost nothing, also in ns-2",
    "002-C4": "the start of a run is unfair; counting it decides",
    "002-C6": "150 kB are at the limit of near 1",
    "002-C7": "overflow losses exceed what the 404 ms TCP sustains",
    "002-C8": "needs several TCPs per source",
    "002-C9": "UDP saturates the link, so early drops only cost",
    "002-C10": "WFQ needs less than twice the buffer, not five times",
    "002-C13": "a long RTT stays below a large share",
    "002-C15": "only the number of classes found is known",
    "002-C16": "a queue of five packets is rarely full",
}
"""Reasons, in at most ten words, of verdicts other than `holds`."""

CLAIMS = [replace(one, why=WHY.get(one.id, "")) for one in CLAIMS]
