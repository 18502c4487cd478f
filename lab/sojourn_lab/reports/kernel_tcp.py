"""Compare the kernel's TCP with the simulated one; update docs/concepts/live-accuracy.md.

`make kernel-tcp` runs examples/real-tcp.toml with 1, 4 and 30 flows under seven disciplines, with
reno and cubic, live and simulated with the settings of Linux. It takes a quarter of an hour.
With `--simulated` only the simulated half is done again, and the live half of the page is kept.
"""

import os
import sys
import tomllib
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from typing import Any

import numpy as np

from sojourn_lab import ROOT

PAGE = ROOT / "docs/concepts/live-accuracy.md"
BEGIN, END = "<!-- measured by make kernel-tcp -->\n", "<!-- end of make kernel-tcp -->\n"

QDISCS = ("droptail", "red", "codel", "fq_codel", "pie", "hred", "ewfq")
FLOWS = (1, 4, 30)
TCPS = ("reno", "cubic")
"""Congestion controls, by the kernel's name."""
SEEDS = (1, 2, 3)
AT_ONCE = 7
"""Number of live runs at once; each needs about a tenth of a core."""

SCALES = {"utilisation": 100, "sojourn_mean_s": 1e3, "sojourn_p99_s": 1e3, "loss_rate": 100}
"""Numbers of the table, and their factors: per cent and ms."""
WIDTH = 3 + 2 * len(SCALES)
"""Cells of a row: flows, TCP, discipline, and each number live and simulated."""

Case = tuple[str, int, str, int]
Row = dict[str, Any]


def scenario(qdisc: str, flows: int, tcp: str, seed: int) -> dict[str, Any]:
    """Return the scenario of a case."""
    from sojourn.scenario.draft import Draft

    tree = tomllib.loads((ROOT / "examples" / "real-tcp.toml").read_text(encoding="utf-8"))
    settings = [f"up.qdisc.name={qdisc}", f"long.count={flows}", f"long.tcp=linux_{tcp}"]
    return Draft.read(tree).set(settings).with_keys(seed=seed).tree


def one(case: Case, live: bool) -> Row:
    """Run a case on real packets or in the simulator; return the results of its link."""
    from sojourn.engines.simulate import simulate
    from sojourn.live.emulate import emulate

    tree = scenario(*case)
    result = emulate(tree) if live else simulate(tree, threads=1)
    link = result.links["up"]
    keys = ("utilisation", "sojourn_mean_s", "sojourn_p99_s", "loss_rate")
    row: Row = {key: link[key] for key in keys}
    row["timeouts"] = sum(flow["timeouts"] or 0 for flow in result.flows.values())
    if live:
        summary = result.summary["live"]
        row |= {key: summary[key] for key in ("lateness_p99_s", "application_p99_s", "cpu_share")}
        row["warnings"] = summary["warnings"]
    return row


def measure() -> dict[tuple[Case, bool], Row]:
    """Run all cases on real packets and in the simulator."""
    cases = list(product(QDISCS, FLOWS, TCPS, SEEDS))
    rows: dict[tuple[Case, bool], Row] = {}
    with ProcessPoolExecutor(AT_ONCE) as pool:
        jobs = {pool.submit(one, case, True): case for case in cases}
        for i, job in enumerate(as_completed(jobs)):
            rows[jobs[job], True] = job.result()
            print(f"\r{i + 1} of {len(cases)} runs", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    with ProcessPoolExecutor() as pool:
        for case, row in zip(cases, pool.map(one, cases, [False] * len(cases)), strict=True):
            rows[case, False] = row
    return rows


def cell(key: str, values: list[float]) -> str:
    """Return the mean of a number over the seeds, in the unit of the table."""
    places = 2 if key == "loss_rate" else 1
    return f"{SCALES[key] * float(np.mean(values)):.{places}f}"


def table(rows: dict[tuple[Case, bool], Row]) -> str:
    """Return the text and the table as Markdown."""
    live_rows = [row for (_, live), row in rows.items() if live]
    late = max(row["lateness_p99_s"] for row in live_rows)
    trusted = sum(not row["warnings"] for row in live_rows)
    out = [
        f"{len(live_rows)} live runs of 60 s, {AT_ONCE} at once, on Linux {os.uname().release}.\n"
        f"The first 20 s are discarded.\nEach cell is the mean of {len(SEEDS)} runs.\n"
        "In the worst run, 1 % of the packets were more than "
        f"{late * 1e3:.2f} ms late; {trusted} runs had no warnings.\n\n",
        "| flows | TCP | discipline | utilisation, %: live | sim | queueing delay, mean, ms: live "
        "| sim | 99 %, ms: live | sim | loss, %: live | sim |\n",
        "|---|---|---|---|---|---|---|---|---|---|---|\n",
    ]
    for flows, tcp, qdisc in product(FLOWS, TCPS, QDISCS):
        cells = [str(flows), tcp, qdisc]
        for key in SCALES:
            for live in (True, False):
                values = [rows[(qdisc, flows, tcp, seed), live][key] for seed in SEEDS]
                cells.append(cell(key, values))
        out.append(f"| {' | '.join(cells)} |\n")
    return "".join(out)


def simulate_again(measured: str) -> str:
    """Return the table with the simulated half done again."""
    cases = list(product(QDISCS, FLOWS, TCPS, SEEDS))
    with ProcessPoolExecutor() as pool:
        rows = dict(zip(cases, pool.map(one, cases, [False] * len(cases)), strict=True))
    out = []
    for line in measured.splitlines(keepends=True):
        cells = line.strip("|\n ").split(" | ")
        if len(cells) == WIDTH and cells[0].isdigit():
            flows, tcp, qdisc = int(cells[0]), cells[1], cells[2]
            for i, key in enumerate(SCALES):
                values = [rows[qdisc, flows, tcp, seed][key] for seed in SEEDS]
                cells[4 + 2 * i] = cell(key, values)
            line = f"| {' | '.join(cells)} |\n"
        out.append(line)
    return "".join(out)


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    kept, after = rest.split(END)
    measured = (
        simulate_again(kept.strip("\n") + "\n") if "--simulated" in sys.argv else table(measure())
    )
    PAGE.write_text(f"{before}{BEGIN}\n{measured}\n{END}{after}", encoding="utf-8")
