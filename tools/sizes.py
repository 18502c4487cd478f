"""Measure the code of small programs for bare processors, and compare it with its bounds.

Builds `tests/sizes` for each target and prints the bytes that a program takes in flash memory:
code, constants and initial values. A program above its bound fails. `--full` adds the text form
with all disciplines, which has no bound.
"""

import argparse
import os
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

BOUNDS = {
    "thumbv7em-none-eabihf": {"empty": 100, "codel": 12_000, "link": 20_000, "text": 125_000},
    "riscv32imac-unknown-none-elf": {
        "empty": 100,
        "codel": 13_500,
        "link": 24_000,
        "text": 145_000,
    },
}
"""Largest number of bytes of each program. Each bound is up to a tenth above the measured size."""

ALLOCATED, NO_BITS = 2, 8
"""Flag of a section that is in memory, and type of a section without bytes in the file."""


def flash_bytes(elf: bytes) -> int:
    """Return the bytes of the sections that a 32-bit ELF file puts into flash memory.

    Tables for unwinding are left out: a program that halts on a panic discards them.
    """
    if elf[:6] != b"\x7fELF\x01\x01":
        raise ValueError("not a little-endian 32-bit ELF file")
    start = struct.unpack_from("<I", elf, 32)[0]
    size, count, names = struct.unpack_from("<3H", elf, 46)
    headers = [struct.unpack_from("<6I", elf, start + i * size) for i in range(count)]
    texts = headers[names][4]

    def kept(header: tuple[int, ...]) -> bool:
        name = elf[texts + header[0] : elf.index(0, texts + header[0])]
        unwinds = name.startswith((b".eh_frame", b".ARM.ex"))
        return bool(header[2] & ALLOCATED) and header[1] != NO_BITS and not unwinds

    return sum(header[5] for header in headers if kept(header))


def build(target: str, *options: str) -> Path:
    """Build the programs for `target`; return their folder."""
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--target", target, *options]
    out = ROOT / "target" / "sizes"
    subprocess.run(
        command,
        cwd=ROOT / "tests" / "sizes",
        env={**os.environ, "CARGO_TARGET_DIR": str(out)},
        check=True,
    )
    return out / target / "release"


def measure(target: str, full: bool) -> list[tuple[str, int, int | None]]:
    """Return name, bytes and bound of each program for `target`."""
    folder = build(target)
    rows: list[tuple[str, int, int | None]] = [
        (name, flash_bytes((folder / name).read_bytes()), bound)
        for name, bound in BOUNDS[target].items()
    ]
    if full:
        folder = build(target, "--features", "full", "--bin", "text")
        rows.append(("text, all", flash_bytes((folder / "text").read_bytes()), None))
    return rows


def faults(target: str, rows: list[tuple[str, int, int | None]]) -> list[str]:
    """Return a sentence for each program above its bound."""
    return [
        f"{name} for {target} has {size:,} bytes of code, more than {bound:,}"
        for name, size, bound in rows
        if bound is not None and size > bound
    ]


def main() -> int:
    """Measure all targets; return 1 if a program is above its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="also measure all disciplines by name")
    full = parser.parse_args().full
    above = []
    print(f"{'target':<30}{'program':<12}{'bytes':>9}{'bound':>9}")
    for target in BOUNDS:
        rows = measure(target, full)
        for name, size, bound in rows:
            limit = "" if bound is None else f"{bound:,}"
            print(f"{target:<30}{name:<12}{size:>9,}{limit:>9}")
        above += faults(target, rows)
    for fault in above:
        print(fault, file=sys.stderr)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
