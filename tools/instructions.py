"""Count the instructions that a packet of S1 costs, and hold them to what was written down.

Callgrind counts instructions, not seconds: the same binary gives the same number whatever else the
machine does. Two runs of different length are subtracted, so that set-up does not count. More than
TOLERANCE above the number in tests/golden/instructions.txt fails; `--write` writes it anew.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "tests" / "golden" / "instructions.txt"
BINARY = ROOT / "target" / "release" / "examples" / "s1_small"
TOLERANCE = 0.05
"""A compiler's release moves the number by about as much."""


def run(seconds: int) -> tuple[int, int]:
    """Return the instructions of a run and the packets that its bottleneck sent."""
    with tempfile.TemporaryDirectory() as room:
        out = Path(room) / "callgrind"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
        done = subprocess.run(
            [*command, BINARY, str(seconds)], capture_output=True, text=True, check=True
        )
        total = re.search(r"^totals: (\d+)", out.read_text(), re.MULTILINE)
    assert total, "callgrind writes its total"
    return int(total[1]), int(done.stdout)


def main() -> int:
    """Count, compare, and report."""
    build = ["cargo", "build", "--quiet", "--release", "-p", "sojourn-sim", "--example", "s1_small"]
    subprocess.run(build, check=True, cwd=ROOT)
    (short, few), (long, many) = run(5), run(15)
    each = round((long - short) / (many - few))
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
