"""Claims of `codel_dc`, and numbers of its findings."""

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from sojourn_lab.papers.codel_dc import open_facts, rules, rules_flows
from sojourn_lab.papers.codel_dc.model import DRAWN, formulas
from sojourn_lab.papers.codel_dc.series import gain, known_mean
from sojourn_lab.papers.codel_dc.settings import FAST
from sojourn_lab.reproduction.claims import Claim, Runs, mean, values
from sojourn_lab.reproduction.parts import short

PAIRS = "Paired by seed; the 95 % interval of the difference is above 0."
PERCENT = "Within 20 % of the number."


EVERY = ("incast", "servers", "loads")
MOST = f"The largest mean gain over the sweep, 1 - (time / time of the other). {PERCENT}"

CLAIMS = [
    Claim(
        "000-C1",
        "Flows finish sooner with CoDel than with RED and DropTail.",
        "5b, 9b, 11b",
        "up to 35 % and 65 % less",
        f"Over all experiments. {MOST}",
        rules.gains_of_all,
        EVERY,
    ),
    Claim(
        "000-C2",
        "The model: utilisation at a target of one round trip and of half a round trip.",
        "model",
        "1 and 23/24",
        "Equation 7 evaluated; within 0.01 %.",
        rules.model_values,
        ("targets",),
    ),
    Claim(
        "000-C3",
        "Simulated utilisation at half a round trip is slightly above the model.",
        "3a",
        "about 96 %, above 95.83 %",
        "One flow; within 1 point, and above.",
        rules.at_half_a_round_trip,
        ("targets",),
    ),
    Claim(
        "000-C4",
        "Utilisation rises with the target up to 300 us; above, only delay does.",
        "3a, 3b",
        "300 us",
        "One flow. Rises: the 95 % interval of every step is above 0. Constant: within half a "
        "point.",
        rules.saturates,
        ("targets",),
    ),
    Claim(
        "000-C5",
        "A small interval drops early, a large one late and with a longer queue.",
        "4a, 4b",
        "order",
        "The time of CoDel's first drop after a query of 40 x 50 kB (no drop within 100 ms counts "
        f"as 100 ms), and the mean queue. {PAIRS}",
        rules.by_interval,
        ("intervals", "first drops"),
    ),
    Claim(
        "000-C6",
        "All disciplines keep utilisation high under incast.",
        "5a",
        "> 98 %",
        "Utilisation of the port, from the first query on.",
        rules.busy,
        ("incast",),
    ),
    Claim(
        "000-C7",
        "Mean time of an answer, 40 servers.",
        "5b",
        "up to 62 % below DropTail, 35 % below RED",
        MOST,
        rules.gains_by_size,
        ("incast",),
    ),
    Claim(
        "000-C8",
        "Loss with 100 kB from each of 40 servers.",
        "6b",
        "16 % RED, 11 % CoDel",
        f"While a query is open. {PERCENT} And the order. {PAIRS}",
        rules.losses,
        ("incast",),
    ),
    Claim(
        "000-C9",
        "RED and CoDel keep the queue short.",
        "6a",
        "below 10 % of the buffer",
        "Mean over time, of 200 packets.",
        rules.short_queues,
        ("incast",),
    ),
    Claim(
        "000-C10",
        "RED drops far more than CoDel right after the burst; later both are equal.",
        "8a",
        "equal from 150 ms",
        f"Drops by the AQM. At least twice as many in the first 10 ms. {PAIRS} From 150 ms on "
        "within 2 % of RED's drops in the first 10 ms.",
        rules_flows.after_burst,
        ("burst",),
    ),
    Claim(
        "000-C11",
        "More flows are in timeout with RED shortly after 100 ms, as many at 150 ms.",
        "7",
        "order",
        f"Means over 1 ms samples. {PAIRS} At 150 ms within 2 flows.",
        rules_flows.in_timeout,
        ("burst",),
    ),
    Claim(
        "000-C12",
        "1 MB from n servers: CoDel is faster than RED and DropTail.",
        "9-gain",
        "up to 65 % over RED, 85 % over DropTail",
        f"{PAIRS} {MOST}",
        rules.by_servers,
        ("servers",),
    ),
    Claim(
        "000-C13",
        "1 MB from n servers: RED's queue is shorter than CoDel's and DropTail's.",
        "10a",
        "shorter",
        f"Mean queue. {PAIRS}",
        rules.red_is_shortest,
        ("servers",),
    ),
    Claim(
        "000-C14",
        "Short flows: CoDel uses more of the link than RED, DropTail all of it.",
        "11a",
        "up to 6 % more; about 100 %",
        f"Within 3 % absolute; the order at each load. {PAIRS}",
        rules_flows.spare_capacity,
        ("loads",),
    ),
    Claim(
        "000-C15",
        "Short flows: CoDel is faster, except than RED at 90 % load.",
        "11b",
        "up to 63 % over DropTail, 7 % over RED",
        f"{MOST} The order at 90 %. {PAIRS}",
        rules_flows.short_flows,
        ("loads",),
    ),
    Claim(
        "000-C16",
        "Short flows: RED drops more than CoDel, and the gap grows with time.",
        "8b",
        "order",
        f"Drops by the AQM at 50 % load. {PAIRS} Mean gap after each quarter.",
        rules_flows.gap_grows,
        ("half load",),
    ),
    Claim(
        "000-C17",
        "RED does not handle bursty traffic as well as CoDel or DropTail.",
        "9b",
        "not as well",
        f"1 MB from n servers: mean times with RED above DropTail's (above CoDel's: C12). {PAIRS}",
        rules.handles_bursts,
        ("servers",),
    ),
    Claim(
        "000-C18",
        "Short flows are faster with CoDel due to lower loss rates.",
        "11d",
        "lower",
        f"Loss at the port at each load below 90 %, at which RED is to be faster. {PAIRS}",
        rules_flows.loses_less,
        ("loads",),
    ),
    Claim(
        "000-C19",
        "Short flows: RED starts to drop at a queue of 25 packets, CoDel at 38 or more.",
        "8b",
        "25 packets; 38 or more",
        "The smallest queue that a packet dropped by the AQM had found on arrival, at 50 % load; "
        f"for RED also its smallest average. {PERCENT}",
        rules_flows.starts_at,
        ("queue at drops",),
    ),
]


def _gain_with(way: str, over: str, name: str, x: str, place: int) -> Callable[[Runs], str]:
    """Return the fact: CoDel's mean gain with a setting, at one point."""

    def fact(runs: Runs) -> str:
        frame = runs[f"{name} settings"].filter(pl.col("setting") == way)
        return f"{float(gain(frame, 'codel', over, **{x: place}).mean()):.3g} %"

    return fact


def _busy(runs: Runs) -> str:
    """Return RED's utilisation with a pause of 1 s."""
    frame = runs["incast settings"].filter(pl.col("setting") == "a pause of 1 s")
    each = (100 * mean(frame, "utilisation", scheme="red", kB=kb) for kb in (10, 50, 100))
    return ", ".join(f"{one:.1f} %" for one in each)


def _measured(what: str, digits: str, scale: float = 1.0) -> Callable[[Runs], str]:
    """Return the fact: a measured value of the window and its formula, at half a round trip."""

    def fact(runs: Runs) -> str:
        ours = scale * mean(runs["window"], what, target_us=DRAWN)
        return f"{ours:{digits}} (formula: {scale * formulas(DRAWN).get(what, 0):{digits}})"

    return fact


def _first(kb: int) -> Callable[[Runs], str]:
    """Return the fact: automatic RED's mean time in the first 20 queries, and in all."""

    def fact(runs: Runs) -> str:
        each = [
            known_mean(1e3 * values(runs["incast"], x, scheme="red-auto", kB=kb).astype(float))
            for x in ("first_afct_s", "afct_s")
        ]
        queries = mean(runs["incast"], "queries", scheme="red-auto", kB=kb)
        first, every = (short(one or 0.0) for one in each)
        return f"{first} ms in the first 20 queries, {every} ms in all {queries:.0f}"

    return fact


FACTS = {
    "busy": _busy,
    "clock": _gain_with("a clock of 10 ms", "droptail", "incast", "kB", 10),
    "nic": _gain_with(FAST, "droptail", "incast", "kB", 10),
    "servers": _gain_with("a pause of 1 s", "droptail", "servers", "servers", 64),
    "largest": _measured("largest", ".1f"),
    "smallest": _measured("smallest", ".1f"),
    "below": _measured("below", ".1f"),
    "above": _measured("above", ".1f"),
    "first-10": _first(10),
    **open_facts.FACTS,
}

WHY = {
    "000-C1": "gains exceed these numbers in some queries",
    "000-C6": "while answers wait for timers only the long flow sends",
    "000-C7": "depends on DropTail's lock-outs and on the pause",
    "000-C8": "servers' own links drop first, before the port",
    "000-C9": "back-to-back queries keep the port's queue filled",
    "000-C12": "both gains are smaller than stated",
    "000-C14": "at 90 % load no capacity is spare",
    "000-C11": "some seeds have flows that still wait under RED",
    "000-C15": "RED's weight sets the gain over RED",
    "000-C17": "DropTail is the faster one with 128 servers only",
    "000-C18": "at high load CoDel drops more than RED",
    "000-C19": "RED compares its average, not the queue",
}
"""Reasons, in at most ten words, of verdicts other than `holds`."""

CLAIMS = [replace(one, why=WHY.get(one.id, "")) for one in CLAIMS]
