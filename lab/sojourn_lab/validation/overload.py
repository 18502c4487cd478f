"""Published overload of Linux's DualPI2 by unresponsive UDP, compared with ours.

`python -m sojourn_lab.validation.senders` puts the section into reports/validation-senders.md.
"""

from typing import Any

import numpy as np

import sojourn as sj
from sojourn_lab.validation.l4s import CUBIC, PRAGUE

SEEDS = 3

RATES = (10, 20, 50, 75, 100)
"""Rates of the UDP flow, Mbit/s."""

PUBLISHED = {
    None: ((56.9, 29.1), (48.8, 27.7), (36.0, 11.8), (16.9, 7.0), (2.0, 1.5)),
    "ect0": ((50.8, 35.2), (48.8, 27.7), (32.9, 15.0), (15.9, 8.1), (2.1, 1.4)),
    "ect1": ((58.7, 27.2), (53.3, 23.2), (32.1, 15.7), (13.3, 10.6), (0.5, 0.4)),
}
"""Goodput of Prague and of CUBIC (Mbit/s) at each rate, by the ECN field of UDP."""

NAMES = {None: "Not-ECT", "ect0": "ECT(0)", "ect1": "ECT(1)"}

PUBLISHED_L: dict[tuple[str | None, int], float] = {("ect1", 50): 0.59, ("ect1", 75): 1.54}
"""99th percentile of the delay in L, ms."""

TEXT = f"""
### Overload

One Prague, one CUBIC and UDP of a constant rate through `dualpi2` at 100 Mbit/s and 20 ms:
published (L4STeam's overload experiments) / sojourn (median of {SEEDS} seeds, 60 s of which 20 s
are warm-up). UDP has 1500 bytes per packet; its size in the published runs is not known.

| UDP | UDP, Mbit/s | Prague, Mbit/s | CUBIC, Mbit/s | L p99, ms | C median, ms | C p99, ms |
| --- | --- | --- | --- | --- | --- | --- |
"""

CAUSES = """
Published are also a median delay in C of 14.5 to 15 ms with a 99th percentile of 18 to 35 ms, and
in L a 99th percentile of 0.16 to 0.2 ms with UDP in C.

Where UDP alone nearly fills the link, 1 % of its rate decides. With ECT(0), Prague and CUBIC have
0.10 and 4.67 Mbit/s in ours next to 95 Mbit/s of UDP, 0.10 and 0.85 next to 99; with Not-ECT 3.88
and 2.56, then 2.30 and 1.69. ECN-capable UDP is marked in place of dropped until p' reaches 1/k.
Prague is at its least rate of 100 kbit/s with ECT(0), from where it does not grow (its page says
why); so it was in one of three seeds next to 75 Mbit/s of ECT(0).
"""


def run(rate: int, ecn: str | None) -> np.ndarray:
    """Return goodputs of Prague and CUBIC (Mbit/s), L p99, C median and C p99 (ms)."""
    flows: list[dict[str, Any]] = [
        {"name": "prague", "tcp": PRAGUE},
        {"name": "cubic", "tcp": CUBIC, "source": {"name": "bulk", "start": "100ms"}},
        {"name": "udp", "source": {"name": "cbr", "rate": f"{rate}mbit", "packet": "1500B"}},
    ]
    if ecn:
        flows[2]["ecn"] = ecn
    low = [0, 2] if ecn == "ect1" else [0]
    measured = []
    for seed in range(SEEDS):
        result = sj.simulate(
            {
                "duration": "60s",
                "warmup": "20s",
                "seed": seed,
                "packet_log": True,
                "links": {"link": {"rate": "100mbit", "delay": "10ms", "qdisc": "tc: dualpi2"}},
                "flows": [{**flow, "path": ["link"], "rtt": "20ms"} for flow in flows],
            }
        )
        log = result.links["link"].packet_log
        sent = (log["fate"] == 0) & (log["arrived_s"] >= 20)
        in_low = np.isin(log["flow"], low)
        waits = 1e3 * (log["left_s"] - log["arrived_s"])
        delays = [
            np.percentile(waits[sent & of], q) for of, q in ((in_low, 99), (~in_low, (50, 99)))
        ]
        goodputs = [result.flows[name].goodput_bps / 1e6 for name in ("prague", "cubic")]
        measured.append(np.hstack([goodputs, *delays]))
    median: np.ndarray = np.median(measured, axis=0)
    return median


def section() -> str:
    """Return the section."""
    lines = []
    for ecn, published in PUBLISHED.items():
        for rate, theirs in zip(RATES, published, strict=True):
            ours = run(rate, ecn)
            low = f"{ours[2]:.2f}"
            if (ecn, rate) in PUBLISHED_L:
                low = f"{PUBLISHED_L[ecn, rate]} / {low}"
            goodputs = [f"{a} / {b:.1f}" for a, b in zip(theirs, ours, strict=False)]
            cells = [NAMES[ecn], str(rate), *goodputs, low, f"{ours[3]:.1f}", f"{ours[4]:.1f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return TEXT + "\n".join(lines) + "\n" + CAUSES
