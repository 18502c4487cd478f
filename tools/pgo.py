"""Profile-guided builds: train an instrumented wheel, and measure what the profile gains.

`make wheel-pgo` builds a wheel with a profile. maturin runs `python tools/pgo.py train` on an
instrumented build for it. `make bench-pgo` compares that wheel with one that has no profile, on
the benchmarks, which the training contains, and on the templates of `sojourn new`, which it does
not contain.

The training has every discipline and every congestion control, because the compiler makes code
small instead of fast where the profile has no calls.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from itertools import cycle
from math import inf
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from sojourn import _sojourn
from sojourn.cli import new
from sojourn.scenario.draft import Draft, parse

ROUNDS = 5
"""Measurements of each wheel, in turn. The fastest run counts."""
TURN = 0.3
"""Processor time of one measurement of a case in s; runs are repeated for as long."""

Measured = dict[str, tuple[float, str]]
"""For each case, what `measure` returns."""


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


BENCHMARKS = {
    "300 newreno, red": many("red", "newreno", 100),
    "300 newreno, codel": many("codel", "newreno", 100),
    "300 newreno, droptail": many("droptail", "newreno", 60),
    "300 sack, fq_codel": many("fq_codel", "sack", 60),
    "incast, droptail": incast("droptail", 3),
    "two ways, cubic, pie": two_way("pie", "cubic", 100),
}


def every_part() -> list[dict[str, Any]]:
    """Return short cases that contain every discipline and every congestion control."""
    specs = json.loads(_sojourn.specs())
    qdiscs, tcps = ([entry["name"] for entry in specs[kind]] for kind in ("disciplines", "tcp"))
    return [
        case
        for qdisc, tcp in zip(qdiscs, cycle(tcps), strict=False)
        for case in (many(qdisc, tcp, 40), two_way(qdisc, "cubic", 80))
    ]


def templates() -> dict[str, dict[str, Any]]:
    """Return the templates of `sojourn new`."""
    return {name: Draft.read(new.FOLDER / f"{name}.toml").tree for name in new.ORDER}


def measure(case: dict[str, Any]) -> tuple[float, str]:
    """Return the processor time of a case in seconds, and a hash of its results."""
    scenario = parse(case)
    best, end = inf, time.process_time() + TURN
    while (start := time.process_time()) < end:
        summary, _ = scenario.simulate()
        best = min(best, time.process_time() - start)
    return best, sha256(summary.encode()).hexdigest()


def install(wheel: Path, room: Path) -> Path:
    """Unpack a wheel into a new folder of `room` and return the folder."""
    to = room / wheel.parent.name
    line = ["pip", "install", "--quiet", "--no-deps", "--target", str(to), str(wheel)]
    subprocess.run([sys.executable, "-m", *line], check=True)
    return to


def compare(plain: Path, trained: Path) -> None:
    """Measure two wheels in turn, and print a report."""
    best: list[Measured] = [{}, {}]
    with tempfile.TemporaryDirectory() as directory:
        folders = [install(wheel, Path(directory)) for wheel in (plain, trained)]
        for _ in range(ROUNDS):
            for of_wheel, folder in zip(best, folders, strict=True):
                line = [sys.executable, __file__, "measure"]
                environment = {**os.environ, "PYTHONPATH": str(folder)}
                out = subprocess.run(line, env=environment, stdout=subprocess.PIPE, check=True)
                for name, measured in json.loads(out.stdout).items():
                    of_wheel[name] = min(measured, of_wheel.get(name, measured))
    report(*best)


def report(plain: Measured, trained: Measured) -> None:
    """Print the time of each case with the trained wheel, as a ratio to that without a profile.

    Exit with an error if the wheels differ in a result.
    """
    for title, names in (("benchmarks", BENCHMARKS), ("templates", new.ORDER)):
        print(f"\n{title:<28} {'s':>6} {'trained, s':>11} {'ratio':>6}")
        ratios = []
        for name in names:
            (before, expected), (after, result) = plain[name], trained[name]
            if result != expected:
                sys.exit(f"{name}: the wheels differ in their results")
            ratios.append(after / before)
            print(f"  {name:<26} {before:>6.3f} {after:>11.3f} {ratios[-1]:>6.2f}")
        print(f"  {'geometric mean':<26} {'':>6} {'':>11} {geometric_mean(ratios):>6.2f}")


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
    commands.add_parser("train", help="run all cases of the training")
    commands.add_parser("measure", help="print times and hashes of results as JSON")
    both = commands.add_parser("compare", help="compare the wheels in two folders")
    both.add_argument("plain", type=Path)
    both.add_argument("trained", type=Path)
    chosen = parser.parse_args()
    if chosen.command == "train":
        for case in (*BENCHMARKS.values(), *every_part()):
            parse(case).simulate()
    elif chosen.command == "measure":
        cases = BENCHMARKS | templates()
        print(json.dumps({name: measure(case) for name, case in cases.items()}))
    else:
        compare(_newest(chosen.plain), _newest(chosen.trained))


if __name__ == "__main__":
    main()
