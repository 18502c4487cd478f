"""Published measurements of Prague under Linux's DualPI2, compared with ours.

`python -m sojourn_lab.validation.senders` puts the section into reports/validation-senders.md.
"""

from typing import Any

import numpy as np

import sojourn as sj

SEEDS = 3

PRAGUE = {
    "name": "prague",
    "profile": "rfc",
    "packet": "1514B",
    "header": "78B",
    "rto_min": "200ms",
    "rack": True,
    "rtt_per_ack": True,
}
DEPENDENT = {**PRAGUE, "virtual_rtt": "1ns"}
"""Without the independence of the round-trip time."""

CUBIC = {"name": "linux_cubic", "packet": "1514B", "header": "66B"}

ALONE = {
    (20, 5): (19.1, 0.83, 1.87),
    (20, 20): (19.1, 0.82, 1.54),
    (20, 40): (18.9, 0.41, 1.93),
    (20, 80): (18.2, 0.25, 1.70),
    (100, 5): (95.6,),
    (100, 20): (95.6,),
    (100, 40): (95.5,),
}
"""Rate (Mbit/s) and round-trip time (ms): goodput (Mbit/s), delay in L: mean and 99 % (ms)."""

PAIRS = {
    (100, 20): (70.2, 25.5),
    (50, 10): (34.57, 12.65),
    (50, 20): (32.39, 14.94),
    (50, 80): (29.58, 17.85),
    (10, 10): (6.22, 2.93),
    (10, 20): (5.93, 3.28),
    (10, 80): (5.90, 3.48),
}
"""Rate and round-trip time: goodputs of Prague and CUBIC."""

SHORT = "dualpi2 min_qlen_step 2"
"""Without step marks where fewer than two packets wait."""

TEXT = f"""
## Published measurements

Prague alone, and with one CUBIC, under `dualpi2`: published / sojourn (mean of {SEEDS} seeds, 60
s of which 20 s are warm-up). Published are results of L4STeam/l4steam.github.io (Prague alone, and
pairs at 100 Mbit/s) and [heistp/l4s-tests](https://github.com/heistp/l4s-tests) (the other pairs),
of November 2020 and with the Prague and the DualPI2 of that time, not of the kernel above. The
links of ours are token buckets, as above.

| Mbit/s | RTT, ms | goodput, Mbit/s | L mean, ms | L p99, ms |
| --- | --- | --- | --- | --- |
"""

CAUSES = f"""
The last column has the ratio of ours with `{SHORT}`, and with a Prague that does not
behave as on a path of 25 ms (`virtual_rtt = 1ns`):

- At 10 Mbit/s a frame takes 1.2 ms, so that the step of 1 ms marks each packet of Prague behind a
  frame of CUBIC. With `min_qlen_step 2` it does not.
- On paths shorter than 25 ms, the Prague of today (version 0.7) takes less than the Prague of 2020.
  The kernel above has the same: 1.42 at 40 Mbit/s and 10 ms, where ours has {{short:.2f}} at 50
  Mbit/s. Without the independence of the round-trip time the ratio is {{long:.2f}}, and 2.73 was
  published.

The published runs at 100 Mbit/s with long paths are left out: they ended in the start.
"""


def run(rate: int, rtt: int, *tcps: dict[str, Any], tc: str = "dualpi2") -> np.ndarray:
    """Return goodputs (Mbit/s), then the delay of all packets: mean and 99th percentile (ms)."""
    flows = [
        {
            "name": f"flow{i}",
            "path": ["link"],
            "rtt": f"{rtt}ms",
            "tcp": tcp,
            "source": {"name": "bulk", "start": f"{100 * i}ms"},
        }
        for i, tcp in enumerate(tcps)
    ]
    link = {
        "rate": f"{rate}mbit",
        "burst": "1514B",
        "delay": f"{rtt / 2:g}ms",
        "qdisc": f"tc: {tc}",
    }
    measured = []
    for seed in range(SEEDS):
        result = sj.simulate(
            {
                "duration": "60s",
                "warmup": "20s",
                "seed": seed,
                "links": {"link": link},
                "flows": flows,
            }
        )
        delays = [1e3 * result.links["link"][f"sojourn_{what}_s"] for what in ("mean", "p99")]
        goodputs = [flow["goodput_bps"] / 1e6 for flow in result.flows.values()]
        measured.append([*goodputs, *delays])
    mean: np.ndarray = np.mean(measured, axis=0)
    return mean


def section() -> str:
    """Return the section."""
    lines = []
    for (rate, rtt), published in ALONE.items():
        cells = [""] * 3
        for i, (theirs, ours) in enumerate(
            zip(published, run(rate, rtt, PRAGUE), strict=len(published) == 3)
        ):
            cells[i] = f"{theirs} / {ours:.2f}"
        lines.append(f"| {rate} | {rtt} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "| Mbit/s | RTT, ms | Prague, Mbit/s | CUBIC, Mbit/s | ratio | as in 2020 |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    causes = {}
    for (rate, rtt), (prague, cubic) in PAIRS.items():
        ours = run(rate, rtt, PRAGUE, CUBIC)
        former = run(rate, rtt, DEPENDENT, CUBIC, tc=SHORT)
        ratios = ours[0] / ours[1], former[0] / former[1]
        lines.append(
            f"| {rate} | {rtt} | {prague} / {ours[0]:.2f} | {cubic} / {ours[1]:.2f}"
            f" | {prague / cubic:.2f} / {ratios[0]:.2f} | {ratios[1]:.2f} |"
        )
        if (rate, rtt) == (50, 10):
            causes = {"short": ratios[0], "long": ratios[1]}
    return TEXT + "\n".join(lines) + "\n" + CAUSES.format(**causes)
