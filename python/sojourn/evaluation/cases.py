"""Cases of the suite: what each asks, its scenarios, and the columns that answer.

The numbers that RFC 7928 does not state are listed in `CHOICES`, which the scorecard prints.
"""

from dataclasses import dataclass
from typing import Literal

from sojourn.evaluation.traffic import (
    Build,
    background,
    bursts,
    congestion,
    in_series,
    mix,
    one_flow,
    packet_sizes,
    round_trips,
    short_transfers,
    sparse,
    two_way,
    unresponsive,
    varying_load,
    varying_rate,
)

Better = Literal["less", "more", "one"]

CHOICES = (
    "The rate of the link is --rate; the round-trip time is 100 ms, packets have 1500 bytes.",
    "The buffer is the bandwidth-delay product of the largest round-trip time of a run, the same "
    "for every discipline (section 3.2 allows it). A discipline has its default parameters "
    "otherwise, or those given.",
    "TCP is NewReno with SACK as the standard sender, CUBIC as the aggressive one. The initial "
    "window is 10 packets unless stated.",
    "Measurements start after a warm-up of 20 s (10 s with --quick), when all flows are in "
    "congestion avoidance, and take 300 s (50 s with --quick).",
    "10 seeds (4 with --quick, 3 above 50 Mbit/s), the same for every discipline. Intervals have a "
    "confidence of 95 % (Student's t); differences from drop-tail are paired by seed.",
    "Time series have means over 1 s, ten times the round-trip time (section 2.7 asks for a "
    "multiple of it).",
    "A page has 50 objects of 20 kB on average (Pareto, shape 1.2), requested 10 ms apart on "
    "average over at most six parallel connections. Each object has a connection of its own; the "
    "next page starts 100 ms after the last one.",
    "Video in bursts (D3, D4, E8) has 2 Mbit/s, 30 frames a second, every 15th eight times as "
    "large; each frame is a burst at ten times the rate of the link.",
    "Adaptive video (F1) has segments of 2 s at 0.5, 1, 2 or 4 Mbit/s over one TCP connection. "
    "The rate follows the buffer of the player (BBA-0 with the start-up phase of BBA-2): 30 s, of "
    "which 8 s are the reservoir and 18 s the cushion.",
    "A call has 80 kbit/s: 200 bytes every 20 ms. Constant bit rate traffic in bursts and mixes "
    "has 1 Mbit/s in packets of 1000 bytes.",
    "In the trade-off graphs, an ellipse is the 1-sigma contour of a Gaussian fitted to the runs "
    "by maximum likelihood (r = 1, 39 % of it); a circle is the median.",
    "Recovery after a change is the time until the mean delay of the next second stays within 50 % "
    "(or 2 ms) of the mean of the second half of the phase.",
)
"""Choices where RFC 7928 leaves a number or a method open."""


@dataclass(frozen=True)
class Question:
    """Line of the scorecard: what was asked, the column that answers, and its better direction.

    `better` is "one" if values near 1 are better. `scale` converts the column to `unit`.
    """

    asked: str
    column: str
    unit: str
    better: Better = "less"
    scale: float = 1.0


@dataclass(frozen=True)
class Case:
    """Case of the suite.

    Attributes
    ----------
    id, section : str
        Name, and section of RFC 7928.
    weight : str
        "must", "should", "recommended" or "may": how the RFC asks for it.
    title, flows : str
        What it tests; traffic and phases in words.
    build : callable
        Function of the plan that returns the scenarios by the name of the variant.
    questions : tuple of Question
        Lines of the scorecard.
    trade_off : bool
        True for a graph of delay against goodput, and a CDF of the delay.
    varying : bool
        True for a time series.
    ecn : bool
        True if the case requires a discipline that marks.
    """

    id: str
    section: str
    weight: str
    title: str
    flows: str
    build: Build
    questions: tuple[Question, ...]
    trade_off: bool = False
    varying: bool = False
    ecn: bool = False


DELAY = Question("mean queueing delay", "sojourn_mean_s", "ms", "less", 1e3)
DELAY_P99 = Question("99th percentile of the queueing delay", "sojourn_p99_s", "ms", "less", 1e3)
USE = Question("utilisation of the link", "utilisation", "%", "more", 100)
CALL = Question(
    "delay of the call without propagation, 99 %", "call.delay_p99_s", "ms", "less", 1e3
)
PAGE = Question("mean time to load a page", "page_mean_s", "s", "less")
BULK = Question("goodput of the bulk TCP", "bulk.goodput_bps", "Mbit/s", "more", 1e-6)


RATIO = Question(
    "goodput ratio of two flows at 5 to 560 ms against 100 ms (geometric mean of how far from 1)",
    "rtt_bias", "", "one",
)  # fmt: skip

VARYING = (DELAY, USE, Question("time to recover after a change", "recovery_s", "s", "less"))

BURST = (
    PAGE,
    Question(
        "delay of the CBR flow without propagation, 99 %", "cbr.delay_p99_s", "ms", "less", 1e3
    ),
)

FRAMES = Question("packets of large video frames lost", "video-key.loss_rate", "%", "less", 100)

CASES: tuple[Case, ...] = (
    Case(
        "A1",
        "5.1.1",
        "must",
        "One TCP flow",
        "1 TCP (NewReno with SACK), endless",
        one_flow("sack"),
        (DELAY, DELAY_P99, USE),
        trade_off=True,
    ),
    Case(
        "A2",
        "5.1.2",
        "must",
        "Short transfers with a TCP flow",
        "1 endless TCP; transfers of 11, 30 and 99 packets (quick: 30)",
        short_transfers,
        (
            Question(
                "mean completion time of the transfers", "short.fct_mean_s", "ms", "less", 1e3
            ),
            USE,
        ),
    ),
    Case(
        "A3",
        "5.2",
        "must",
        "One aggressive TCP flow",
        "1 CUBIC, endless",
        one_flow("cubic"),
        (DELAY, DELAY_P99, USE),
        trade_off=True,
    ),
    Case(
        "A4",
        "5.3",
        "must",
        "Unresponsive traffic above the rate",
        "UDP at 1.1 and 1.5 of the rate",
        unresponsive((1.1, 1.5), with_tcp=False),
        (DELAY,),
    ),
    Case(
        "A5",
        "5.3",
        "must",
        "TCP with unresponsive traffic",
        "UDP at 0.6 and 0.8 of the rate, and 1 endless TCP",
        unresponsive((0.6, 0.8), with_tcp=True),
        (
            DELAY,
            Question(
                "goodput of TCP as a share of what UDP leaves", "left_share", "%", "more", 100
            ),
        ),
    ),
    Case(
        "A6",
        "5.4",
        "may",
        "Background transfers (LEDBAT)",
        "1 endless TCP and 1 LEDBAT with a target of 5 ms and a gain of 10",
        background,
        (
            DELAY,
            Question("goodput of the standard flow", "bulk.goodput_bps", "Mbit/s", "more", 1e-6),
        ),
        trade_off=True,
    ),
    Case(
        "B1",
        "6.2",
        "must",
        "RTT fairness",
        "2 endless TCP; one at 100 ms, the other at 5 to 560 ms",
        round_trips("sack"),
        (RATIO,),
    ),
    Case(
        "B2",
        "6.2",
        "must",
        "RTT fairness with CUBIC",
        "2 CUBIC, as in B1",
        round_trips("cubic"),
        (RATIO,),
    ),
    Case(
        "C",
        "4.4",
        "may",
        "Packet sizes",
        "mild congestion, half of the flows with 500 B packets",
        packet_sizes,
        (Question("loss ratio, small to large packets", "size_bias", "", "one"),),
    ),
    Case("D1", "7.2 I", "must", "Bursts: web and CBR", "web pages, 1 CBR", bursts(False, 0), BURST),
    Case(
        "D2",
        "7.2 II",
        "must",
        "Bursts: web, CBR and bulk",
        "web pages, 1 CBR, 1 endless TCP",
        bursts(False, 1),
        (*BURST, BULK),
        trade_off=True,
    ),
    Case(
        "D3",
        "7.2 III",
        "must",
        "Bursts: video, web and CBR",
        "video, web pages, 1 CBR",
        bursts(True, 0),
        (*BURST, FRAMES),
    ),
    Case(
        "D4",
        "7.2 IV",
        "must",
        "Bursts: all",
        "video, web pages, 1 CBR, 1 endless TCP",
        bursts(True, 1),
        (*BURST, FRAMES, BULK),
        trade_off=True,
    ),
    Case(
        "E1",
        "8.2.2",
        "should",
        "Mild congestion",
        "N for a loss of 0.1 % under drop-tail",
        congestion("mild"),
        (DELAY, DELAY_P99, USE),
        trade_off=True,
    ),
    Case(
        "E2",
        "8.2.3",
        "should",
        "Medium congestion",
        "N for a loss of 0.5 % under drop-tail",
        congestion("medium"),
        (DELAY, DELAY_P99, USE),
        trade_off=True,
    ),
    Case(
        "E3",
        "8.2.4",
        "should",
        "Heavy congestion",
        "N for a loss of 1 % under drop-tail",
        congestion("heavy"),
        (DELAY, DELAY_P99, USE),
        trade_off=True,
    ),
    Case(
        "E4",
        "8.2.5",
        "must",
        "Varying congestion",
        "mild, medium, heavy congestion for 20 s each, 4 times (quick: once)",
        varying_load,
        VARYING,
        varying=True,
    ),
    Case(
        "E5",
        "8.2.6",
        "must",
        "Varying capacity",
        "10 endless TCP; ten times the rate for 20 s, the rate for 20 s, 6 times (quick: twice)",
        varying_rate(20.0, 6),
        (
            *VARYING,
            Question("utilisation in the 2 s after a rise", "rise_utilisation", "%", "more", 100),
            Question(
                "largest delay (mean of 100 ms) after a drop", "drop_peak_s", "ms", "less", 1e3
            ),
        ),
        varying=True,
    ),
    Case(
        "E6",
        "8.2.6",
        "must",
        "Capacity that changes every 100 ms",
        "as E5, every 100 ms",
        varying_rate(0.1, 300),
        (DELAY, USE),
        varying=False,
    ),
    Case(
        "E7",
        "8.2.6",
        "should",
        "A drop of capacity during slow start",
        "as E5, the first change after 0.5 s",
        varying_rate(20.0, 3, 0.5),
        VARYING,
        varying=True,
    ),
    Case(
        "E8",
        "8.2.6",
        "should",
        "Varying capacity with bursts",
        "as E5 with web, video and CBR",
        varying_rate(20.0, 3, bursts=True),
        (DELAY, PAGE, USE),
    ),
    Case(
        "F1",
        "9.1",
        "recommended",
        "Traffic mix",
        "1 call, web pages of 6 users, 1 CBR, 1 adaptive video, 5 endless TCP",
        mix,
        (
            CALL,
            Question("loss of the call", "call.loss_rate", "%", "less", 100),
            PAGE,
            Question("mean rate of the video", "video_rate_bps", "Mbit/s", "more", 1e-6),
            Question("time that the video stood still", "video_stalled_s", "s", "less"),
            BULK,
        ),
        trade_off=True,
    ),
    Case(
        "F2",
        "9.2",
        "may",
        "Traffic in both directions",
        "mild congestion in both directions and a call; the discipline is on both links",
        two_way,
        (
            CALL,
            BULK,
            Question(
                "goodput in the other direction", "upload.goodput_bps", "Mbit/s", "more", 1e-6
            ),
        ),
    ),
    Case(
        "G",
        "10.2",
        "may",
        "Two bottlenecks in series",
        "mild congestion, half of it joins at a second link of 1.5 times the rate",
        in_series,
        (Question("mean delay of both queues", "both_delay_s", "ms", "less", 1e3), BULK),
    ),
    Case(
        "H1",
        "4.6",
        "should",
        "Interaction with scheduling: a sparse flow",
        "4 TCP, 4 CUBIC and a call",
        sparse,
        (CALL, Question("Jain's index of the eight TCP flows", "jain_all", "", "more")),
    ),
    Case(
        "H2",
        "4.5",
        "must if supported",
        "ECN: medium congestion",
        "as E2, with ECN in the flows and the discipline",
        congestion("medium", ecn=True),
        (DELAY, USE, Question("packets dropped", "loss_rate", "%", "less", 100)),
        ecn=True,
    ),
    Case(
        "H3",
        "4.5",
        "must if supported",
        "ECN: RTT fairness",
        "as B1, with ECN",
        round_trips("sack", ecn=True),
        (RATIO,),
        ecn=True,
    ),
)
"""Cases in the order of the RFC. C.f. its figure 4 for the weights."""

RTT_CASES = ("B1", "B2", "H3")
"""Cases whose variants are round-trip times in ms."""
