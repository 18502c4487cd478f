"""Claims of `codel_dc`, and the settings that the paper leaves open."""

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from sojourn_lab.papers.codel_dc import rules
from sojourn_lab.papers.codel_dc.changed import SERVER_WAYS, TUNED, WAYS
from sojourn_lab.papers.codel_dc.runs import gain
from sojourn_lab.reproduction.claims import Claim, Runs, Setting, mean, overlay

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
        "2b",
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
        rules.after_burst,
        ("burst",),
    ),
    Claim(
        "000-C11",
        "More flows are in timeout with RED shortly after 100 ms, as many at 150 ms.",
        "7",
        "order",
        f"Means over 1 ms samples. {PAIRS} At 150 ms within 2 flows.",
        rules.in_timeout,
        ("burst",),
    ),
    Claim(
        "000-C12",
        "1 MB from n servers: CoDel is faster than RED and DropTail.",
        "9b",
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
        rules.spare_capacity,
        ("loads",),
    ),
    Claim(
        "000-C15",
        "Short flows: CoDel is faster, except than RED at 90 % load.",
        "11b",
        "up to 63 % over DropTail, 7 % over RED",
        f"{MOST} The order at 90 %. {PAIRS}",
        rules.short_flows,
        ("loads",),
    ),
    Claim(
        "000-C16",
        "Short flows: RED drops more than CoDel, and the gap grows with time.",
        "8b",
        "order",
        f"Drops by the AQM at 50 % load. {PAIRS} Mean gap after each quarter.",
        rules.gap_grows,
        ("half load",),
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


SETTINGS = [
    *(
        Setting(way, {name: overlay(f"{name} settings", setting=way) for name in names})
        for way in WAYS
        for names in [("incast", "servers") if way in SERVER_WAYS else ("incast",)]
    ),
    *(
        Setting(what, {"loads": overlay("RED by load", only=("load",), what=what)})
        for what, (scheme, _) in TUNED.items()
        if scheme == "red"
    ),
]
"""Other values of what the paper leaves open."""

FACTS = {
    "busy": _busy,
    "clock": _gain_with("a clock of 10 ms", "droptail", "incast", "kB", 10),
    "nic": _gain_with(
        "a pause of 100 ms and servers' links of 10 Gbit/s", "droptail", "incast", "kB", 10
    ),
    "servers": _gain_with("a pause of 1 s", "droptail", "servers", "servers", 64),
}

WHY = {
    "000-C1": "gains exceed these numbers in some queries",
    "000-C6": "while answers wait for timers only the long flow sends",
    "000-C7": "depends on DropTail's lock-outs and on the pause",
    "000-C8": "servers' own links drop first, before the port",
    "000-C9": "back-to-back queries keep the port's queue filled",
    "000-C12": "size of the gain depends on lock-outs under DropTail",
    "000-C14": "at 90 % load no capacity is spare",
    "000-C11": "a few flows still wait under RED, none under CoDel",
    "000-C15": "RED's weight sets the gain over RED",
}
"""Reasons, in at most ten words, of verdicts other than `holds`."""

CLAIMS = [replace(one, why=WHY.get(one.id, "")) for one in CLAIMS]
