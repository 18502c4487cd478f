"""Bulk transfers of quinn in virtual time, compared with the profile `quic`.

`make validate-quic` writes reports/validation-quic.md. The crate lab/quinn runs quinn over a
link of sojourn; both sides have the same link, discipline, one-way delays and random loss rate.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

import sojourn as sj
from sojourn_lab import ROOT

PAGE = ROOT / "reports/validation-quic.md"
CRATE = ROOT / "lab/quinn"
BINARY = CRATE / "target/release/sojourn-quinn"
VECTOR = ROOT / "lab/vectors/quinn.json"
"""Rows of quinn by control and path, for the tests."""

RATE = 20e6
"""Rate of the link, bit/s."""
DURATION, WARMUP = 60.0, 10.0
"""Seconds of a run, and those that are not measured."""
SEEDS = range(5)
CONTROLS = {"newreno": "reno", "cubic": "cubic", "bbr": "bbr"}
"""Name of the TCP here, and of the control in the crate."""

Setup = dict[str, Any]


def setups() -> dict[str, Setup]:
    """Return the paths by name: round-trip time, discipline with its settings, random loss."""
    paths: dict[str, Setup] = {}
    for rtt in (0.01, 0.1):
        for part in (0.5, 1, 2):
            limit = f"{max(part * RATE * rtt / 8, 3000):.0f}B"
            paths[f"{rtt * 1e3:g} ms, droptail {part:g} BDP"] = {
                "rtt": rtt,
                "qdisc": "droptail",
                "settings": {"limit": limit},
                "loss": 0.0,
            }
        paths[f"{rtt * 1e3:g} ms, codel"] = {
            "rtt": rtt,
            "qdisc": "codel",
            "settings": {},
            "loss": 0.0,
        }
        paths[f"{rtt * 1e3:g} ms, loss 1 %"] = {
            "rtt": rtt,
            "qdisc": "droptail",
            "settings": {"limit": f"{2 * RATE * rtt / 8:.0f}B"},
            "loss": 0.01,
        }
    return paths


def quinn(path: Setup, control: str) -> list[dict[str, float]]:
    """Return the results of quinn, one per seed."""
    runs = [
        {
            "qdisc": path["qdisc"],
            "settings": path["settings"],
            "rate_bps": RATE,
            "rtt_s": path["rtt"],
            "loss": path["loss"],
            "control": CONTROLS[control],
            "seed": seed,
            "duration_s": DURATION,
            "warmup_s": WARMUP,
        }
        for seed in SEEDS
    ]
    done = subprocess.run(
        [BINARY], input=json.dumps(runs), capture_output=True, text=True, check=True
    )
    results: list[dict[str, float]] = json.loads(done.stdout)
    return results


def ours(path: Setup, control: str, **tcp: Any) -> list[dict[str, float]]:
    """Return our results, one per seed, with the keys of quinn's."""
    settings = {"hystart": False} if control == "cubic" else {}
    results = []
    for seed in SEEDS:
        link = {
            "rate": f"{RATE:.0f}bit",
            "delay": f"{path['rtt'] / 2 * 1e3:g}ms",
            "qdisc": {"name": path["qdisc"], **path["settings"]},
        }
        if path["loss"]:
            link["loss"] = path["loss"]
        result = sj.simulate(
            {
                "duration": f"{DURATION:g}s",
                "warmup": f"{WARMUP:g}s",
                "seed": seed,
                "links": {"link": link},
                "flows": [
                    {
                        "name": "quic",
                        "path": ["link"],
                        "rtt": f"{path['rtt'] * 1e3:g}ms",
                        "tcp": {"name": control, "profile": "quic", **settings, **tcp},
                        "source": {"name": "bulk"},
                    }
                ],
            }
        )
        flow, counters = result.flows["quic"], result.links["link"]
        results.append(
            {
                "goodput_bps": flow["goodput_bps"],
                "arrived_packets": counters["arrived_packets"],
                "dropped_packets": counters["dropped_packets"],
                "retransmitted_packets": flow["retransmitted_packets"],
                "queue_delay_s": counters["sojourn_mean_s"],
            }
        )
    return results


def mean(results: list[dict[str, float]], key: str) -> float:
    """Return the mean of `key` over the seeds."""
    return float(np.mean([result[key] for result in results]))


def row(results: list[dict[str, float]]) -> list[float]:
    """Return goodput (Mbit/s), drops of the queue and retransmissions (%), mean delay (ms)."""
    sent = mean(results, "arrived_packets")
    return [
        mean(results, "goodput_bps") / 1e6,
        100 * mean(results, "dropped_packets") / sent,
        100 * mean(results, "retransmitted_packets") / sent,
        1e3 * mean(results, "queue_delay_s"),
    ]


def table(control: str, rows: dict[str, list[float]]) -> tuple[list[str], list[float]]:
    """Return the lines of the page for a control with the `rows` of quinn, and the log ratios."""
    lines, ratios = [], []
    for name, path in setups().items():
        theirs, here = rows[name], row(ours(path, control))
        ratios.append(float(np.log(here[0] / theirs[0])))
        cells = [
            f"{a:.{digits}f} / {b:.{digits}f}"
            for a, b, digits in zip(theirs, here, (2, 2, 2, 2), strict=True)
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines, ratios


HEAD = """# The profile `quic` compared with quinn

The goodput of `profile = "quic"` is within {within:g} % of quinn's on {close} of {all} paths.
The others, NewReno and CUBIC at a random loss of 1 %, differ by up to {worst:.0f} %
([causes](#causes-of-the-differences)).

`profile = "quic"` is compared with [quinn](https://github.com/quinn-rs/quinn) {version}, an
independent implementation of QUIC, in virtual time: the crate `lab/quinn` runs its client
and server as state machines over a link of sojourn. Written by `make validate-quic`.

One bulk transfer over {rate:g} Mbit/s, mean of {seeds} seeds, {duration:g} s of which the first
{warmup:g} s are not measured; a cell is quinn / sojourn. Packets have 1500 bytes on both sides,
without path MTU discovery; quinn's flow control does not limit. CUBIC is without HyStart++
(`hystart = false`), which quinn does not have. Drops and retransmissions are percentages of the
packets that arrive at the link (quinn's: packets declared lost); the delay is the mean sojourn
time. With random loss, the buffer is 2 BDP, and both sides draw the same random numbers.
"""


WITHIN = 0.03
"""Largest relative difference of goodputs that the page calls close."""


def version() -> str:
    """Return the version of quinn-proto in the lock file of the crate."""
    lines = (CRATE / "Cargo.lock").read_text().splitlines()
    at = lines.index('name = "quinn-proto"')
    return lines[at + 1].split('"')[1]


def main() -> None:
    """Build the crate, run both, and write the page."""
    subprocess.run(["cargo", "build", "--release", "--locked"], cwd=CRATE, check=True)
    rows = {
        control: {name: row(quinn(path, control)) for name, path in setups().items()}
        for control in CONTROLS
    }
    VECTOR.write_text(json.dumps(rows, indent=1) + "\n")
    parts, gaps = [], []
    for control in CONTROLS:
        lines, ratios = table(control, rows[control])
        rms = np.sqrt(np.mean(np.square(ratios)))
        gaps += [abs(np.expm1(ratio)) for ratio in ratios]
        parts.append(
            f"\n## {control}\n\n"
            "| path | goodput, Mbit/s | drops, % | retransmitted, % | mean delay, ms |\n"
            "| --- | --- | --- | --- | --- |\n" + "\n".join(lines) + "\n\n"
            f"Root mean square of the log ratio of goodput: {rms:.3f}.\n"
        )
    causes = (Path(__file__).parent / "quic_causes.md").read_text()
    head = HEAD.format(
        within=100 * WITHIN,
        close=sum(gap <= WITHIN for gap in gaps),
        all=len(gaps),
        worst=100 * max(gaps),
        version=version(),
        rate=RATE / 1e6,
        seeds=len(SEEDS),
        duration=DURATION,
        warmup=WARMUP,
    )
    PAGE.write_text("".join([head, *parts]) + "\n" + causes)


if __name__ == "__main__":
    main()
