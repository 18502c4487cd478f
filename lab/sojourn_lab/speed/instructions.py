"""Count the instructions that a packet of S1 costs, and hold them to what was written down.

Callgrind counts instructions, not seconds: the same binary gives the same number whatever else the
machine does. Two runs of different length are subtracted, so that set-up does not count. More than
TOLERANCE above the number in tests/golden/instructions.txt fails; `--write` writes it anew.

`--links` counts instead what a packet costs through a link, for every discipline, and prints the
table of reports/performance.md (`make instructions-links`).
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from sojourn_lab import ROOT

KEPT = ROOT / "tests" / "golden" / "instructions.txt"
BINARY = ROOT / "target" / "release" / "examples" / "s1_small"
TOLERANCE = 0.05
"""A compiler's release moves the number by about as much."""


def counted(*command: object) -> tuple[int, str]:
    """Return the instructions of a program, and what it printed."""
    with tempfile.TemporaryDirectory() as room:
        out = Path(room) / "callgrind"
        line = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *map(str, command)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        total = re.search(r"^totals: (\d+)", out.read_text(), re.MULTILINE)
    assert total, "callgrind writes its total"
    return int(total[1]), done.stdout


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


def main() -> int:
    """Count, compare, and report."""
    if "--links" in sys.argv:
        return links()
    build = ["cargo", "build", "--quiet", "--release", "-p", "sojourn-sim", "--example", "s1_small"]
    subprocess.run(build, check=True, cwd=ROOT)
    (short, few), (long, many) = (counted(BINARY, seconds) for seconds in (5, 15))
    each = round((long - short) / (int(many) - int(few)))
    if "--write" in sys.argv:
        KEPT.write_text(f"{each}\n")
    kept = int(KEPT.read_text())
    print(f"S1 in small: {each} instructions per packet, {kept} written down")
    if each > kept * (1 + TOLERANCE):
        print(f"that is more than {TOLERANCE:.0%} above: find out why, or write it anew (--write)")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
