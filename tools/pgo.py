"""Profile-guided builds: train an instrumented wheel, and measure what the profile gains.

`make wheel-pgo` builds a wheel with a profile. maturin runs `python tools/pgo.py train` on an
instrumented build for it. `make bench-pgo` compares that wheel with one that has no profile, on
the training scenarios and on others: disciplines, congestion controls, sources and topologies
that the training does not contain.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from math import exp, log
from pathlib import Path
from typing import Any

ROUNDS = 5
"""Measurements of each wheel, in turn. The fastest counts."""


def many(qdisc: str, tcp: str, seconds: int) -> dict[str, Any]:
    """Return 300 bulk flows on 45 Mbit/s (S1 of the benchmarks)."""
    return {
        "duration": f"{seconds}s",
        "links": {"up": {"rate": "45mbit", "delay": "1ms", "qdisc": f"{qdisc}(limit=300kB)"}},
        "flows": [
            {
                "name": "ftp",
                "count": 300,
                "path": ["up"],
                "rtt": "uniform(40ms, 200ms)",
                "source": {"name": "bulk", "start": f"uniform(0s, {seconds}s)"},
                "tcp": {"name": tcp, "packet": "500B"},
            }
        ],
    }


def incast(qdisc: str, seconds: int) -> dict[str, Any]:
    """Return 40 senders of 100 kB transfers and one bulk flow on 1 Gbit/s (S2)."""
    tcp = {"name": "sack", "packet": "1000B", "rto_min": "10ms", "rto_initial": "10ms"}
    path = {"path": ["up"], "rtt": "300us", "tcp": tcp}
    source = {"name": "transfers", "size": "100kB", "start": "uniform(0s, 20us)"}
    return {
        "duration": f"{seconds}s",
        "links": {"up": {"rate": "1gbit", "delay": "75us", "qdisc": f"{qdisc}(limit=200p)"}},
        "flows": [{"name": "short", "count": 40, "source": source, **path}, {"name": "l", **path}],
    }


def two_way(qdisc: str, tcp: str, seconds: int) -> dict[str, Any]:
    """Return uploads and downloads whose acknowledgements share the queues, with web and a call."""
    link = {"delay": "10ms", "qdisc": qdisc}
    to = {"path": ["up"], "return_path": ["down"]}
    back = {"path": ["down"], "return_path": ["up"]}
    return {
        "duration": f"{seconds}s",
        "links": {"up": {"rate": "10mbit", **link}, "down": {"rate": "50mbit", **link}},
        "flows": [
            {"name": "u", "count": 4, "tcp": tcp, **to},
            {"name": "d", "count": 4, "tcp": tcp, **back},
            {"name": "web", "count": 8, "source": {"name": "web"}, "tcp": tcp, **back},
            {"name": "call", "source": {"name": "cbr", "rate": "64kbit", "packet": "200B"}, **to},
        ],
    }


TRAINING = {
    "300 newreno, red": many("red", "newreno", 100),
    "300 newreno, codel": many("codel", "newreno", 100),
    "300 newreno, droptail": many("droptail", "newreno", 60),
    "300 sack, fq_codel": many("fq_codel", "sack", 60),
    "incast, droptail": incast("droptail", 3),
    "two ways, cubic, pie": two_way("pie", "cubic", 100),
}
OTHERS = {
    "300 cubic, sfq": many("sfq", "cubic", 40),
    "300 vegas, blue": many("blue", "vegas", 60),
    "incast, pi2": incast("pi2", 3),
    "two ways, bbr, cake": two_way("cake", "bbr", 60),
    "two ways, compound, wfq": two_way("wfq", "compound", 60),
    "two ways, prague, dualpi2": two_way("dualpi2", "prague", 60),
}


def seconds_of(cases: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Return the processor time of a run of each case in seconds."""
    from sojourn import _sojourn

    took = {}
    for name, case in cases.items():
        scenario = _sojourn.ParsedScenario(json.dumps(case))
        start = time.process_time()
        scenario.simulate()
        took[name] = time.process_time() - start
    return took


def install(wheel: Path, room: Path) -> Path:
    """Unpack a wheel into a new folder of `room` and return the folder."""
    to = room / wheel.parent.name
    line = ["pip", "install", "--quiet", "--no-deps", "--target", str(to), str(wheel)]
    subprocess.run([sys.executable, "-m", *line], check=True)
    return to


def compare(plain: Path, trained: Path) -> None:
    """Print the time of each case with the trained wheel, as a ratio to that without a profile."""
    with tempfile.TemporaryDirectory() as directory:
        folders = [install(wheel, Path(directory)) for wheel in (plain, trained)]
        best: list[dict[str, float]] = [{}, {}]
        for _ in range(ROUNDS):
            for times, folder in zip(best, folders, strict=True):
                line = [sys.executable, __file__, "time"]
                environment = {**os.environ, "PYTHONPATH": str(folder)}
                out = subprocess.run(line, env=environment, stdout=subprocess.PIPE, check=True)
                for name, took in json.loads(out.stdout).items():
                    times[name] = min(took, times.get(name, took))
    for title, cases in (("training scenarios", TRAINING), ("other scenarios", OTHERS)):
        ratios = {name: best[1][name] / best[0][name] for name in cases}
        print(f"\n{title:<28} {'s':>6} {'trained, s':>11} {'ratio':>6}")
        for name, ratio in ratios.items():
            print(f"  {name:<26} {best[0][name]:>6.3f} {best[1][name]:>11.3f} {ratio:>6.2f}")
        mean = exp(sum(log(ratio) for ratio in ratios.values()) / len(ratios))
        print(f"  {'geometric mean':<26} {'':>6} {'':>11} {mean:>6.2f}")


def _newest(folder: Path) -> Path:
    """Return the newest wheel in `folder`."""
    wheels = sorted(folder.glob("sojourn-*.whl"), key=lambda wheel: wheel.stat().st_mtime)
    if not wheels:
        sys.exit(f"{folder} has no wheel: make wheel, make wheel-pgo")
    return wheels[-1].resolve()


def main() -> None:
    """Run one of the three commands."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("train", help="run the training scenarios")
    commands.add_parser("time", help="print the seconds of all scenarios as JSON")
    both = commands.add_parser("compare", help="compare the wheels in two folders")
    both.add_argument("plain", type=Path)
    both.add_argument("trained", type=Path)
    chosen = parser.parse_args()
    if chosen.command == "train":
        seconds_of(TRAINING)
    elif chosen.command == "time":
        print(json.dumps(seconds_of(TRAINING | OTHERS)))
    else:
        compare(_newest(chosen.plain), _newest(chosen.trained))


if __name__ == "__main__":
    main()
