"""Count the instructions of a packet of S1 and of packet-hops of topologies, and compare them.

Callgrind counts instructions, not seconds: the same binary gives the same number whatever else the
machine does. Two runs of different length are subtracted, so that set-up does not count. More than
TOLERANCE above a number in tests/golden/instructions.txt (S1) or instructions-per-hop.txt (the
small workloads of `workloads`) fails. `--write` records the numbers of this build.

`--links` counts instead what a packet costs through a link, for every discipline, and prints the
table of reports/performance.md (`make instructions-links`). `--cache` counts cache misses and
mispredicted branches per packet-hop (`make cachegrind`).
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from sojourn_lab import ROOT
from sojourn_lab.speed import workloads

RECORDED = ROOT / "tests" / "golden" / "instructions.txt"
RECORDED_HOPS = ROOT / "tests" / "golden" / "instructions-per-hop.txt"
BINARY = ROOT / "target" / "release" / "examples" / "s1_small"
TOLERANCE = 0.05
"""A compiler's release moves the number by about as much."""

CACHES = ("--cache-sim=yes", "--branch-sim=yes", "--D1=49152,12,64", "--LL=1048576,16,64")
"""Caches of a Zen 5 core: L1 and L2, since cachegrind has two levels."""

MISSES = {
    "D1 misses": ("D1mr", "D1mw"), "L2 misses": ("DLmr", "DLmw"), "mispredictions": ("Bcm", "Bim"),
}  # fmt: skip
"""Columns of the table, and the events of cachegrind that are added."""


def counted(*command: object) -> tuple[int, str]:
    """Return the instructions of a program, and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind"
        line = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *map(str, command)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        total = re.search(r"^totals: (\d+)", out.read_text(), re.MULTILINE)
    assert total, "callgrind writes its total"
    return int(total[1]), done.stdout


def simulated_caches(*command: object) -> tuple[dict[str, int], str]:
    """Return the events of cachegrind in a program, and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "cachegrind"
        line = ["valgrind", "--tool=cachegrind", f"--cachegrind-out-file={out}", *CACHES]
        done = subprocess.run(
            [*line, *map(str, command)], capture_output=True, text=True, check=True
        )
        return cache_events(out.read_text()), done.stdout


def cache_events(text: str) -> dict[str, int]:
    """Return the totals by event of a file of cachegrind."""
    names = re.search(r"^events: (.*)", text, re.MULTILINE)
    totals = re.search(r"^summary: (.*)", text, re.MULTILINE)
    assert names, "cachegrind writes the names of its events"
    assert totals, "cachegrind writes the totals of its events"
    return dict(zip(names[1].split(), map(int, totals[1].split()), strict=True))


def links() -> int:
    """Print the instructions per packet through a link, least first."""
    build = ["cargo", "bench", "--quiet", "-p", "sojourn-aqm", "--bench", "link", "--no-run"]
    build_log = subprocess.run(
        [*build, "--message-format=json"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    executables = [json.loads(line).get("executable") for line in build_log.stdout.splitlines()]
    binary = next(filter(None, executables))
    names = subprocess.run(
        [binary, "names"], check=True, capture_output=True, text=True
    ).stdout.split()
    few, many = 20_000, 60_000
    each = {}
    for name in names:
        short, long = (counted(binary, "count", name, packets)[0] for packets in (few, many))
        each[name] = (long - short) / (many - few)
    print("| discipline | instructions | relative to droptail |\n|---|---|---|")
    for name in sorted(each, key=lambda name: each[name]):
        print(f"| {name} | {each[name]:,.0f} | {each[name] / each['droptail']:.2f} |")
    return 0


def caches() -> int:
    """Print the instructions, cache misses and mispredictions per packet-hop of each workload."""
    workloads.build()
    print(f"| workload | instructions | {' | '.join(MISSES)} |\n|---|---|{'---|' * len(MISSES)}")
    for name in workloads.SMALL:
        short, long = (simulated_caches(*line) for line in small_runs(name))
        hops = hops_of(long[1]) - hops_of(short[1])
        each = {event: (total - short[0][event]) / hops for event, total in long[0].items()}
        sums = [sum(each[event] for event in events) for events in MISSES.values()]
        print(f"| {name} | {each['Ir']:,.0f} | {' | '.join(f'{n:.2f}' for n in sums)} |")
    return 0


def small_runs(name: str) -> list[tuple[Path, Path]]:
    """Write the short and the long run of a small workload; return their command lines."""
    build, *times = workloads.SMALL[name]
    folder = ROOT / "target" / "workloads"
    folder.mkdir(parents=True, exist_ok=True)
    return [
        (workloads.BINARY, workloads.write(build(ms), folder / f"{name}-{ms:g}ms.json"))
        for ms in times
    ]


def hops_of(printed: str) -> int:
    """Return the packet-hops of a run of a workload."""
    return int(json.loads(printed)["hops"])


def per_hop(name: str) -> int:
    """Return the instructions per packet-hop of a small workload."""
    short, long = (counted(*line) for line in small_runs(name))
    return round((long[0] - short[0]) / (hops_of(long[1]) - hops_of(short[1])))


def per_packet_of_s1() -> int:
    """Return the instructions per packet of S1."""
    (short, few), (long, many) = (counted(BINARY, seconds) for seconds in (5, 15))
    return round((long - short) / (int(many) - int(few)))


def read_hops(text: str) -> dict[str, int]:
    """Return the recorded instructions per packet-hop by workload."""
    return {name: int(count) for name, count in map(str.split, text.splitlines())}


def exceeds(name: str, each: int, recorded: int) -> bool:
    """Print a count with the recorded one; return True if it is too high."""
    print(f"{name}: {each} instructions, {recorded} recorded")
    return each > recorded * (1 + TOLERANCE)


def main() -> int:
    """Count, compare, and report."""
    if "--links" in sys.argv:
        return links()
    if "--cache" in sys.argv:
        return caches()
    workloads.build("s1_small")  # both programs at once: linking takes most of the time
    s1 = per_packet_of_s1()
    hops = {name: per_hop(name) for name in workloads.SMALL}
    if "--write" in sys.argv:
        RECORDED.write_text(f"{s1}\n")
        RECORDED_HOPS.write_text("".join(f"{name} {each}\n" for name, each in hops.items()))
    recorded = read_hops(RECORDED_HOPS.read_text())
    high = [exceeds("packet of S1 in small", s1, int(RECORDED.read_text()))]
    high += [exceeds(f"packet-hop of {n}", each, recorded[n]) for n, each in hops.items()]
    if any(high):
        print(f"one is more than {TOLERANCE:.0%} above: find the cause, or record it (--write)")
    return int(any(high))


if __name__ == "__main__":
    sys.exit(main())
