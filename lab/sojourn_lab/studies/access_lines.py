"""Twelve lines for `sojourn recommend`, with what others advise for them, and models of two radios.

Advice is from bufferbloat.net (pages Cake, CakeRecipes, Best practices for benchmarking), OpenWrt's
pages on SQM, RFC 8289, RFC 8290, RFC 9332 and tc-cake(8).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

PAGES = "reports/recommendations"

TRACE_S = 60
"""Length of the traces of radio links."""


@dataclass(frozen=True)
class Case:
    """Question about a line: its heading, the arguments of `sojourn.recommend`, the usual advice.

    `names` are the disciplines to try, "linux" for all that Linux has.
    """

    heading: str
    options: dict[str, str]
    advice: str
    names: str = "linux"


HOME = (
    "CAKE behind a shaper with the overhead of the line, with its defaults (bufferbloat.net, "
    "OpenWrt); FQ-CoDel at 5 and 100 ms where CAKE is too slow for the router (RFC 8290)"
)

SLOW = (
    f"{HOME}. Below 4 Mbit/s the target of FQ-CoDel should be at least the time of a packet (RFC "
    "8290), which CAKE does by itself"
)

RADIO = (
    "no fixed shaper holds the queue of a rate that varies: FQ-CoDel or CAKE at the radio, or a "
    "shaper that follows the rate (OpenWrt); longer intervals for longer paths (RFC 8289)"
)

CENTRE = (
    "the defaults are for the Internet: far shorter targets inside a data centre (RFC 8289 leaves "
    "the values open; bufferbloat.net has 500 us and 20 ms); DCTCP expects marks at a threshold, "
    "`ce_threshold` of FQ-CoDel"
)

OFFICE = f"{HOME}; a host of its own for each desk (tc-cake: dual-dsthost, dual-srchost)"


def _line(down: str, up: str, rtt: str, traffic: str = "home", **options: str) -> dict[str, str]:
    return {"down": down, "up": up, "rtt": rtt, "traffic": traffic, **options}


CASES = (
    Case(
        "ADSL, for calls",
        _line("8mbit", "1mbit", "20ms..80ms", objective="calls", link_layer="adsl-pppoe"),
        SLOW,
    ),
    Case("VDSL", _line("50mbit", "10mbit", "10ms..80ms", link_layer="vdsl2-pppoe-vlan"), HOME),
    Case(
        "Cable with a buffer of 100 ms",
        _line("200mbit", "20mbit", "10ms..80ms", buffer="100ms", link_layer="docsis"),
        HOME,
    ),
    Case("LTE", _line(f"{PAGES}/lte-down.trace", f"{PAGES}/lte-up.trace", "40ms..100ms"), RADIO),
    Case(
        "Office at 100 Mbit/s",
        _line("100mbit", "100mbit", "5ms..60ms", "office", link_layer="ethernet"),
        OFFICE,
    ),
    Case(
        "Data centre at 10 Gbit/s",
        _line("10gbit", "10gbit", "50us..200us", "datacentre", buffer="1MB"),
        CENTRE,
    ),
    Case(
        "ADSL at 1000 kbit/s",
        _line("1000kbit", "256kbit", "20ms..80ms", link_layer="adsl-pppoe"),
        SLOW,
    ),
    Case(
        "LTE, fast",
        _line(f"{PAGES}/lte-fast-down.csv", f"{PAGES}/lte-fast-up.csv", "30ms..80ms"),
        RADIO,
    ),
    Case(
        "Starlink",
        _line(f"{PAGES}/starlink-down.csv", f"{PAGES}/starlink-up.csv", "30ms..80ms"),
        RADIO,
        "cake,fq_codel,dualpi2,fq_pie,codel,pie",
    ),
    Case(
        "Office of 60 people at 100 Mbit/s",
        _line("100mbit", "100mbit", "5ms..60ms", f"{PAGES}/office-60.toml",
              objective="office", link_layer="ethernet"),
        OFFICE,
    ),
    Case(
        "GPON 1000/500",
        _line("1gbit", "500mbit", "5ms..60ms", link_layer="gpon"),
        HOME,
        "cake,fq_codel,dualpi2",
    ),
    Case(
        "Rack at 25 Gbit/s",
        _line("25gbit", "25gbit", "20us..100us", "datacentre", buffer="2MB"),
        CENTRE,
        "cake,fq_codel,dualpi2",
    ),
)  # fmt: skip


def cellular(mean_pps: float, seed: int) -> list[int]:
    """Return delivery opportunities in ms of a cellular link, by the model of Sprout.

    Deliveries are a Poisson process whose rate follows a Brownian motion, of 200 packets/s per
    square root of a second at a mean of 500. Winstein, Sivaraman, Balakrishnan, "Stochastic
    Forecasts Achieve High Throughput and Low Delay over Cellular Networks", NSDI 2013, section 3.1.
    Their outages are left out: the rate is reflected at 0 and at twice the mean.
    """
    random = np.random.default_rng(seed)
    step_s, rate = 0.02, mean_pps
    opportunities: list[int] = []
    for k in range(round(TRACE_S / step_s)):
        rate = abs(rate + 0.4 * mean_pps * step_s**0.5 * random.standard_normal())
        rate = 2 * mean_pps - abs(2 * mean_pps - rate)
        times = random.uniform(0, 20, random.poisson(rate * step_s))
        opportunities += sorted(20 * k + 1 + int(t) for t in times)
    return opportunities


def cellular_rates(mean_bps: float, seed: int) -> str:
    """Return the rates of the same motion as CSV, every 100 ms and at least 1 % of the mean."""
    random = np.random.default_rng(seed)
    step_s, rate = 0.1, mean_bps
    rows = ["t_s,rate_bps"]
    for k in range(round(TRACE_S / step_s) + 1):
        rows.append(f"{k / 10},{round(max(rate, 0.01 * mean_bps))}")
        rate = abs(rate + 0.4 * mean_bps * step_s**0.5 * random.standard_normal())
        rate = 2 * mean_bps - abs(2 * mean_bps - rate)
    return "\n".join(rows) + "\n"


def satellites(mean_bps: float, seed: int) -> str:
    """Return the rates of a satellite link as CSV: a new rate every 15 s, and noise every second.

    Starlink plans its links anew every 15 s ("A Multifaceted Look at Starlink Performance", 2024).
    The sizes of the steps, 0.5 to 1.5 times the mean, and of the noise, 10 %, are assumptions.
    """
    random = np.random.default_rng(seed)
    rows = ["t_s,rate_bps"]
    for k in range(TRACE_S + 1):
        if k % 15 == 0:
            level = random.uniform(0.5, 1.5)
        rows.append(f"{k},{round(mean_bps * level * random.uniform(0.9, 1.1))}")
    return "\n".join(rows) + "\n"


def write_traces(folder: Path) -> None:
    """Write the traces of radio links."""
    for name, mean_pps, seed in (("lte-down", 500, 1), ("lte-up", 200, 2)):
        times = cellular(mean_pps, seed)
        (folder / f"{name}.trace").write_text("".join(f"{t}\n" for t in times), encoding="utf-8")
    for name, mean_bps, seed in (("down", 30e6, 3), ("up", 9.6e6, 4)):
        text = cellular_rates(mean_bps, seed)
        (folder / f"lte-fast-{name}.csv").write_text(text, encoding="utf-8")
    for name, mean_bps, seed in (("down", 100e6, 5), ("up", 12e6, 6)):
        text = satellites(mean_bps, seed)
        (folder / f"starlink-{name}.csv").write_text(text, encoding="utf-8")
