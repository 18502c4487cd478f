"""Disciplines of ns-3 and ours in the same dumbbells of ns-3, compared: `make validate-ns3`.

Writes reports/validation-ns3.md. Both run in ns-3, with its TCP: only the queue of the bottleneck
differs. The program is adapters/ns3/dumbbell.cc; the installed ns-3 is used.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sojourn_lab import ROOT
from sojourn_lab.validation.statistics import Compared, compare

PAGE = ROOT / "reports/validation-ns3.md"
TEXT = Path(__file__).with_name("ns3.md")
RUNS = ROOT / "out/validation-ns3.jsonl"
RUNS_AGAIN = ROOT / "out/validation-ns3-again.jsonl"
PROGRAM = ROOT / "out/ns3-dumbbell"

PAIRS: Mapping[str, tuple[str, str]] = {
    "CoDel": ("ns3::CoDelQueueDisc", "codel(variant=linux,limit=1000p,mtu=1499B)"),
    "COBALT": ("ns3::CobaltQueueDisc", "cobalt(limit=1000p,mtu=1499B)"),
    "FQ-CoDel": (
        "ns3::FqCoDelQueueDisc",
        "fq_codel(variant=linux,quantum=1500B,limit=1000p,mtu=1499B)",
    ),
    "PIE": ("ns3::PieQueueDisc", "pie(packet=1500B,hold=true,limit=1000p)"),
    "FQ-PIE": ("ns3::FqPieQueueDisc", "fq_pie(packet=1500B,hold=true,quantum=1500B,limit=1000p)"),
    "RED": (
        "ns3::RedQueueDisc",
        "red(max_p=0.02,gentle=two_max_th,wait=yes,packet=1500B,limit=1000p,spare_short=true)",
    ),
}
"""Discipline of ns-3, and ours with its parameters."""

RANDOM = ("PIE", "FQ-PIE", "RED")
"""Disciplines that draw random numbers, so that differences may be random."""

STARTS = 20
"""Number of random starts of each case."""

STARTS_AGAIN = 180
"""Number of further starts of a case of `RANDOM` with a difference outside of its interval."""

FLOWS = (2, 4, 8, 12)
TCPS = ("TcpNewReno", "TcpCubic")
SECONDS = 20
WARMUP = 6

COLUMNS: Mapping[str, tuple[str, float, str]] = {
    "goodput_bps": ("goodput, Mbit/s", 1e-6, "{:.2f}"),
    "sojourn_mean_s": ("mean delay, ms", 1e3, "{:.2f}"),
    "sojourn_p99_s": ("p99 delay, ms", 1e3, "{:.1f}"),
    "dropped": ("drops", 1, "{:.1f}"),
}
"""Measured columns: heading, factor, format."""

Row = Mapping[str, Any]
Cell = tuple[str, str, int]
"""Discipline, TCP, and number of flows."""


def build(program: Path = PROGRAM, library: Path = ROOT / "target/release") -> Path:
    """Compile the dumbbell with the installed ns-3 and our library; return the program."""
    modules = ("applications", "point-to-point", "traffic-control", "internet", "network", "core")
    program.parent.mkdir(parents=True, exist_ok=True)
    adapter = ROOT / "adapters/ns3"
    command = [
        *("c++", "-std=c++17", "-O1", "-Wall", "-Werror"),
        *(f"-I{folder}" for folder in (adapter, ROOT / "crates/capi/include")),
        *(str(adapter / "dumbbell.cc"), str(library / "libsojourn.a")),
        *(f"-lns3-{module}" for module in modules),
        *("-lpthread", "-ldl", "-lm", "-o", str(program)),
    ]
    subprocess.run(command, check=True)
    return program


def run(program: Path, cell: Cell, starts: range) -> list[Row]:
    """Run a dumbbell with several random starts of its flows."""
    queue, tcp, flows = cell
    command = [
        str(program),
        f"--queue={queue}",
        f"--tcp={tcp}",
        f"--flows={flows}",
        f"--start={starts.start}",
        f"--starts={len(starts)}",
        f"--seconds={SECONDS}",
        f"--warmup={WARMUP}",
    ]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def run_all(program: Path, cases: Iterable[Cell], starts: range, path: Path) -> list[Row]:
    """Run what `path` does not have yet, one run at a time, and return all rows.

    The discipline of a case is a name of `PAIRS`: both disciplines of the pair run.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(row["queue"], row["tcp"], row["flows"]) for row in rows}
    todo = [(queue, tcp, flows) for name, tcp, flows in cases for queue in PAIRS[name]]
    for i, cell in enumerate(todo):
        if cell in done:
            continue
        queue, tcp, flows = cell
        print(f"{i + 1}/{len(todo)}: {flows} {tcp} flows, {queue}", file=sys.stderr)
        new = run(program, cell, starts)
        with path.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in new)
        rows += new
    return rows


def column(rows: Iterable[Row], queue: str, tcp: str, flows: int, name: str) -> np.ndarray:
    """Return a column of the runs of a cell."""
    cell = [r for r in rows if (r["queue"], r["tcp"], r["flows"]) == (queue, tcp, flows)]
    return np.array([row[name] for row in sorted(cell, key=lambda row: row["start"])], dtype=float)


def is_outside(compared: Compared) -> bool:
    """Return True if the difference of the means is not within its interval."""
    return abs(compared.difference) > compared.half


def cells(rows: list[Row], name: str) -> Iterable[tuple[str, int, dict[str, Compared], int]]:
    """Iterate over TCP, flows, comparison of each column, and the number of equal runs."""
    theirs, ours = PAIRS[name]
    for tcp in TCPS:
        for flows in FLOWS:
            pairs = {
                key: tuple(column(rows, queue, tcp, flows, key) for queue in (theirs, ours))
                for key in (*COLUMNS, "packets")
            }
            if not len(pairs["packets"][0]) or not len(pairs["packets"][1]):
                continue
            equal = np.all([a == b for a, b in pairs.values()], axis=0)
            compared = {key: compare(*pairs[key]) for key in COLUMNS}
            yield tcp, flows, compared, int(equal.sum())


def comparisons(compared: Mapping[str, Compared]) -> str:
    """Return the cells of a row: ns-3's mean, ours, and the interval of the difference."""
    shown = []
    for key, (_, factor, form) in COLUMNS.items():
        c = compared[key]
        a, b, half = (form.format(x * factor) for x in (c.theirs, c.ours, c.half))
        mark = " **≠**" if is_outside(c) else ""
        shown.append(f"{a} / {b} ± {half}{mark}")
    return " | ".join(shown)


HEADS = " | ".join(heading for heading, *_ in COLUMNS.values())


def table(rows: list[Row], name: str) -> str:
    """Return the table of a discipline."""
    lines = [f"| sender | flows | equal runs | {HEADS} |", "|---" * (3 + len(COLUMNS)) + "|"]
    for tcp, flows, compared, equal in cells(rows, name):
        start = f"| {tcp.removeprefix('Tcp')} | {flows} | {equal} | "
        lines.append(start + comparisons(compared) + " |")
    return "\n".join(lines)


def table_again(rows: list[Row]) -> str:
    """Return the table of the cases that were run again."""
    lines = [f"| discipline | sender | flows | {HEADS} |", "|---" * (3 + len(COLUMNS)) + "|"]
    for name in RANDOM:
        for tcp, flows, compared, _ in cells(rows, name):
            start = f"| {name} | {tcp.removeprefix('Tcp')} | {flows} | "
            lines.append(start + comparisons(compared) + " |")
    return "\n".join(lines)


def outside_cells(rows: list[Row]) -> list[Cell]:
    """Return the cases of `RANDOM` in which a difference is outside of its interval."""
    return [
        (name, tcp, flows)
        for name in RANDOM
        for tcp, flows, compared, _ in cells(rows, name)
        if any(is_outside(c) for c in compared.values())
    ]


def summary(rows: list[Row]) -> str:
    """Return a table with a line for each discipline."""
    lines = [
        "| discipline | in ns-3 | here | equal runs | comparisons within the interval |",
        "|---|---|---|---|---|",
    ]
    for name, (theirs, ours) in PAIRS.items():
        results = list(cells(rows, name))
        compared = [c for _, _, columns, _ in results for c in columns.values()]
        inside = sum(not is_outside(c) for c in compared)
        runs = sum(len(column(rows, theirs, tcp, flows, "packets")) for tcp, flows, *_ in results)
        equal = sum(equal for *_, equal in results)
        lines.append(
            f"| {name} | `{theirs.removeprefix('ns3::')}` | `{ours}` | {equal} of {runs} "
            f"| {inside} of {len(compared)} |"
        )
    return "\n".join(lines)


def page(rows: list[Row], again: list[Row]) -> str:
    """Return the text of the report."""
    parts = {
        "summary": summary(rows),
        "again": table_again(again),
        "tables": "\n\n".join(f"### {name}\n\n{table(rows, name)}" for name in PAIRS),
    }
    text = TEXT.read_text()
    for name, part in parts.items():
        text = text.replace(f"{{{{{name}}}}}", part)
    return text


def main() -> None:
    """Run the dumbbells and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=STARTS, help="random starts of each case")
    first = range(1, parser.parse_args().starts + 1)
    os.nice(19)
    program = build()
    cases = [(name, tcp, flows) for flows in FLOWS for tcp in TCPS for name in PAIRS]
    rows = run_all(program, cases, first, RUNS)
    further = range(first.stop, first.stop + STARTS_AGAIN)
    again = run_all(program, outside_cells(rows), further, RUNS_AGAIN)
    PAGE.write_text(page(rows, again))


if __name__ == "__main__":
    main()
