"""Cases of the suite: what each asks, its scenarios, and the columns that answer.

The numbers that RFC 7928 does not state are listed in `CHOICES`, which the scorecard prints.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from sojourn import _sojourn
from sojourn.evaluation.setup import (
    LINK,
    RTT_S,
    Plan,
    Table,
    alternating,
    call,
    rate,
    scenario,
    tcp,
    time,
    udp,
    video,
    web,
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
    "A page has 50 objects of 20 kB on average (Pareto, shape 1.2), each on a connection of its "
    "own, requested 10 ms apart on average. The RFC asks for six parallel connections, which the "
    "source does not limit.",
    "Video has 2 Mbit/s, 30 frames a second, every 15th eight times as large; each frame is a "
    "burst at ten times the rate of the link. It does not adapt, also where the RFC asks for "
    "adaptive video.",
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
    build: Callable[[Plan], dict[str, Table]]
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


@cache
def tcps() -> dict[str, list[str]]:
    """Return the TCPs of this version, each with its parameters."""
    specs = json.loads(_sojourn.specs())["tcp"]
    return {spec["name"]: [p["name"] for p in spec["params"]] for spec in specs}


def _a1(control: str) -> Callable[[Plan], dict[str, Table]]:
    return lambda plan: {"": scenario("one", plan, [tcp("bulk", control=control)])}


def _a2(plan: Plan) -> dict[str, Table]:
    made = {}
    for packets in (30,) if plan.quick else (11, 30, 99):
        for window in (3, 10):
            short = {"name": "transfers", "size": f"{packets * 1460}B", "gap": "exponential(5s)"}
            flows = [
                tcp("bulk"),
                tcp("short", source=short, initial_window=f"{window}p"),
            ]
            made[f"{packets} packets, initial window {window}"] = scenario("short", plan, flows)
    return made


def _unresponsive(
    shares: tuple[float, ...], *, with_tcp: bool
) -> Callable[[Plan], dict[str, Table]]:
    def build(plan: Plan) -> dict[str, Table]:
        return {
            f"UDP at {share:g} of the rate": scenario(
                "udp",
                plan,
                [udp("udp", share * plan.rate_bps, 1000)] + ([tcp("bulk")] if with_tcp else []),
            )
            for share in shares
        }

    return build


def _ledbat(plan: Plan) -> dict[str, Table]:
    given: Table = {"target": "5ms", "gain": 10}
    known = {key: value for key, value in given.items() if key in tcps()["ledbat"]}
    flows = [tcp("bulk"), tcp("background", control="ledbat", **known)]
    return {"": scenario("ledbat", plan, flows)}


def _rtt(control: str, **parameters: Any) -> Callable[[Plan], dict[str, Table]]:
    def build(plan: Plan) -> dict[str, Table]:
        quick = (5, 20, 100, 250, 560)
        full = (5, 10, 20, 50, 80, 100, 120, 150, 200, 250, 300, 350, 400, 480, 560)
        made = {}
        for ms in quick if plan.quick else full:
            flows = [
                tcp("first", control=control, **parameters),
                tcp("second", control=control, rtt_s=ms / 1e3, **parameters),
            ]
            made[f"{ms}"] = scenario("rtt", plan, flows, rtt_s=max(RTT_S, ms / 1e3))
        return made

    return build


def _sizes(plan: Plan) -> dict[str, Table]:
    half = max(1, plan.flows("mild") // 2)
    flows = [tcp("small", half, packet="500B"), tcp("large", half)]
    return {"": scenario("sizes", plan, flows)}


def _bursts(with_video: bool, bulk: int) -> Callable[[Plan], dict[str, Table]]:
    def build(plan: Plan) -> dict[str, Table]:
        flows = [web(), udp("cbr", 1e6, 1000)]
        flows += video(plan) if with_video else []
        flows += [tcp("bulk", bulk)] if bulk else []
        return {"": scenario("bursts", plan, flows)}

    return build


def _level(level: str, **parameters: Any) -> Callable[[Plan], dict[str, Table]]:
    return lambda plan: {"": scenario(level, plan, [tcp("bulk", plan.flows(level), **parameters)])}


PHASE_S = 20.0
"""Length of a phase of cases with varying load or capacity."""


def _varying_load(plan: Plan) -> dict[str, Table]:
    mild, medium, heavy = (plan.flows(one) for one in ("mild", "medium", "heavy"))
    cycles = 1 if plan.quick else 4
    flows = [tcp("bulk", mild)]
    changes: list[Table] = []
    for k in range(cycles):
        begin = 3 * PHASE_S * k
        more, most = f"medium-{k}", f"heavy-{k}"
        flows += [tcp(more, medium - mild), tcp(most, heavy - medium)]
        changes += [
            {"at": time(begin + PHASE_S), "join": [more]},
            {"at": time(begin + 2 * PHASE_S), "join": [most]},
            {"at": time(begin + 3 * PHASE_S), "leave": [more, most]},
        ]
    lasts = 3 * PHASE_S * cycles + PHASE_S
    return {"": scenario("load", plan, flows, duration_s=lasts, changes=changes)}


def _varying_rate(
    phase_s: float, lasts_s: float, first_s: float | None = None, *, bursts: bool = False
) -> Callable[[Plan], dict[str, Table]]:
    def build(plan: Plan) -> dict[str, Table]:
        link = alternating(
            10 * plan.rate_bps, plan.rate_bps, phase_s, phase_s if first_s is None else first_s
        )
        flows = [tcp("bulk", 10)]
        flows += [web(), udp("cbr", 1e6, 1000), *video(plan)] if bursts else []
        lasts = 2 * phase_s * (lasts_s if not plan.quick else min(lasts_s, max(2, 15 / phase_s)))
        made = scenario("capacity", plan, flows, link=link, duration_s=lasts + phase_s)
        return {"": {**made, "packet_log": False}}

    return build


def _mix(plan: Plan) -> dict[str, Table]:
    flows = [call(), web(count=6), udp("cbr", 1e6, 1000), *video(plan), tcp("bulk", 5)]
    return {"": scenario("mix", plan, flows)}


def _two_way(plan: Plan) -> dict[str, Table]:
    made = {}
    for name, back in (
        ("symmetric", plan.rate_bps),
        ("a tenth of the rate back", plan.rate_bps / 10),
    ):
        there = {**tcp("bulk", plan.flows("mild")), "return_path": ["back"]}
        number = plan.flows("mild", back)
        other = {**tcp("upload", number, path=("back",)), "return_path": [LINK]}
        buffer = f"{plan.buffer(RTT_S, back)}B"
        reverse = {"rate": rate(back), "qdisc": {"name": "droptail", "limit": buffer}}
        flows = [there, other, call(), call("answer", ("back",))]
        made[name] = scenario("two-way", plan, flows, links={"back": reverse})
    return made


SERIES = "other"
"""Name of the second link of the case with two links in series."""


def _series(plan: Plan) -> dict[str, Table]:
    half = max(1, plan.flows("mild") // 2)
    flows = [tcp("bulk", half, path=(LINK, SERIES)), tcp("joining", half, path=(SERIES,))]
    second = {
        "rate": rate(1.5 * plan.rate_bps),
        "qdisc": {"name": "droptail", "limit": f"{plan.buffer(RTT_S, 1.5 * plan.rate_bps)}B"},
    }
    same = scenario("series", plan, flows, links={SERIES: second})
    return {"the same discipline": same, "drop-tail behind it": same}


def _sparse(plan: Plan) -> dict[str, Table]:
    flows = [tcp("bulk", 4), tcp("cubic", 4, "cubic"), call()]
    return {"": scenario("sparse", plan, flows)}


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

VIDEO = Question("packets of large video frames lost", "video-key.loss_rate", "%", "less", 100)

CASES: tuple[Case, ...] = (
    Case(
        "A1",
        "5.1.1",
        "must",
        "One TCP flow",
        "1 TCP (NewReno with SACK), endless",
        _a1("sack"),
        (DELAY, DELAY_P99, USE),
        trade_off=True,
    ),
    Case(
        "A2",
        "5.1.2",
        "must",
        "Short transfers beside a TCP flow",
        "1 endless TCP; transfers of 11, 30 and 99 packets (quick: 30)",
        _a2,
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
        _a1("cubic"),
        (DELAY, DELAY_P99, USE),
        trade_off=True,
    ),
    Case(
        "A4",
        "5.3",
        "must",
        "Unresponsive traffic above the rate",
        "UDP at 1.1 and 1.5 of the rate",
        _unresponsive((1.1, 1.5), with_tcp=False),
        (DELAY,),
    ),
    Case(
        "A5",
        "5.3",
        "must",
        "TCP beside unresponsive traffic",
        "UDP at 0.6 and 0.8 of the rate, and 1 endless TCP",
        _unresponsive((0.6, 0.8), with_tcp=True),
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
        _ledbat,
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
        _rtt("sack"),
        (RATIO,),
    ),
    Case(
        "B2", "6.2", "must", "RTT fairness with CUBIC", "2 CUBIC, as in B1", _rtt("cubic"), (RATIO,)
    ),
    Case(
        "C",
        "4.4",
        "may",
        "Packet sizes",
        "mild congestion, half of the flows with 500 B packets",
        _sizes,
        (Question("loss of small packets over that of large ones", "size_bias", "", "one"),),
    ),
    Case(
        "D1", "7.2 I", "must", "Bursts: web and CBR", "web pages, 1 CBR", _bursts(False, 0), BURST
    ),
    Case(
        "D2",
        "7.2 II",
        "must",
        "Bursts: web, CBR and bulk",
        "web pages, 1 CBR, 1 endless TCP",
        _bursts(False, 1),
        (*BURST, BULK),
        trade_off=True,
    ),
    Case(
        "D3",
        "7.2 III",
        "must",
        "Bursts: video, web and CBR",
        "video, web pages, 1 CBR",
        _bursts(True, 0),
        (*BURST, VIDEO),
    ),
    Case(
        "D4",
        "7.2 IV",
        "must",
        "Bursts: all",
        "video, web pages, 1 CBR, 1 endless TCP",
        _bursts(True, 1),
        (*BURST, VIDEO, BULK),
        trade_off=True,
    ),
    Case(
        "E1",
        "8.2.2",
        "should",
        "Mild congestion",
        "N for a loss of 0.1 % under drop-tail",
        _level("mild"),
        (DELAY, DELAY_P99, USE),
        trade_off=True,
    ),
    Case(
        "E2",
        "8.2.3",
        "should",
        "Medium congestion",
        "N for a loss of 0.5 % under drop-tail",
        _level("medium"),
        (DELAY, DELAY_P99, USE),
        trade_off=True,
    ),
    Case(
        "E3",
        "8.2.4",
        "should",
        "Heavy congestion",
        "N for a loss of 1 % under drop-tail",
        _level("heavy"),
        (DELAY, DELAY_P99, USE),
        trade_off=True,
    ),
    Case(
        "E4",
        "8.2.5",
        "must",
        "Varying congestion",
        "mild, medium, heavy congestion for 20 s each, 4 times (quick: once)",
        _varying_load,
        VARYING,
        varying=True,
    ),
    Case(
        "E5",
        "8.2.6",
        "must",
        "Varying capacity",
        "10 endless TCP; ten times the rate for 20 s, the rate for 20 s, 6 times (quick: twice)",
        _varying_rate(20.0, 6),
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
        _varying_rate(0.1, 300),
        (DELAY, USE),
        varying=False,
    ),
    Case(
        "E7",
        "8.2.6",
        "should",
        "A drop of capacity during slow start",
        "as E5, the first change after 0.5 s",
        _varying_rate(20.0, 3, 0.5),
        VARYING,
        varying=True,
    ),
    Case(
        "E8",
        "8.2.6",
        "should",
        "Varying capacity with bursts",
        "as E5 with web, video and CBR",
        _varying_rate(20.0, 3, bursts=True),
        (DELAY, PAGE, USE),
    ),
    Case(
        "F1",
        "9.1",
        "recommended",
        "Traffic mix",
        "1 call, web pages of 6 users, 1 CBR, video, 5 endless TCP",
        _mix,
        (CALL, Question("loss of the call", "call.loss_rate", "%", "less", 100), PAGE, BULK),
        trade_off=True,
    ),
    Case(
        "F2",
        "9.2",
        "may",
        "Traffic in both directions",
        "mild congestion in both directions and a call; the discipline is on both links",
        _two_way,
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
        _series,
        (Question("mean delay of both queues", "both_delay_s", "ms", "less", 1e3), BULK),
    ),
    Case(
        "H1",
        "4.6",
        "should",
        "Interaction with scheduling: a sparse flow",
        "4 TCP, 4 CUBIC and a call",
        _sparse,
        (CALL, Question("Jain's index of the eight TCP flows", "jain_all", "", "more")),
    ),
    Case(
        "H2",
        "4.5",
        "must if supported",
        "ECN: medium congestion",
        "as E2, with ECN in the flows and the discipline",
        _level("medium", ecn=True),
        (DELAY, USE, Question("packets dropped", "loss_rate", "%", "less", 100)),
        ecn=True,
    ),
    Case(
        "H3",
        "4.5",
        "must if supported",
        "ECN: RTT fairness",
        "as B1, with ECN",
        _rtt("sack", ecn=True),
        (RATIO,),
        ecn=True,
    ),
)
"""Cases in the order of the RFC. C.f. its figure 4 for the weights."""

RTT_CASES = ("B1", "B2", "H3")
"""Cases whose variants are round-trip times in ms."""


def cases() -> list[Case]:
    """Return the cases that this version can run: LEDBAT's only if there is such a sender."""
    return [case for case in CASES if case.id != "A6" or "ledbat" in tcps()]


def left_out() -> Mapping[str, str]:
    """Return the cases that this version cannot run, with the reason."""
    if "ledbat" in tcps():
        return {}
    return {"A6": "background transfers (5.4): this version has no LEDBAT sender"}
