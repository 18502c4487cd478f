"""Measure what features of data centres cost per packet-hop (`make bench-features`).

Fat trees of 10 Gbit/s, each run in a process of its own. The default is k = 8 with 100,000
transfers of web search. `--quick` has 2,000 transfers, in turns; the fastest of three runs counts.
`--large` is k = 16 with 1,000,000 transfers of Hadoop, and with 250,000 of web search: up to 40
minutes for each run.
"""

import sys
from collections.abc import Mapping
from typing import Any

import sojourn as sj
from sojourn_lab.speed import workloads

TIMERS = {"rto_min": "5ms", "rto_initial": "5ms", "tick": "100us"}

EVERYTHING = {"spread": "connection", "buffer": "4MB"}


def powertcp(variant: str) -> dict[str, Any]:
    """Return PowerTCP, with telemetry (`int`) or with the round-trip time alone (`theta`)."""
    sender = {"name": "powertcp", "variant": variant, "header": "82B", "min_rate": "100mbit"}
    return {"tcp": {**sender, **TIMERS}, **EVERYTHING}


HPCC = {"tcp": {"name": "hpcc", "header": "82B", "min_rate": "100mbit", **TIMERS}, **EVERYTHING}

ROWS: Mapping[str, Mapping[str, Any]] = {
    "DCTCP, fixed paths, a buffer for each port": {},
    "and ECMP per connection": {"spread": "connection"},
    "and a buffer of 4 MB for each switch": EVERYTHING,
    "the same with PowerTCP, `theta`": powertcp("theta"),
    "the same with PowerTCP, telemetry": powertcp("int"),
    "the same with HPCC, telemetry": HPCC,
}
"""Settings of each row of the table."""


def tree(settings: Mapping[str, Any], **of_tree: Any) -> sj.Scenario:
    """Return a fat tree with step marking at 65 packets in each port."""
    limit = settings.get("buffer", "400kB")
    qdisc = sj.qdisc.StepMark(k_min="65p", k_max="65p", limit=limit)
    return workloads.fat_tree(qdisc=qdisc, **of_tree, **settings)


Sizes = Mapping[str, Mapping[str, Any]]
"""Topology and traffic by the title of the table."""

SIZES: Sizes = {
    "k = 8, 100,000 transfers of web search": {"k": 8, "transfers": 100_000, "shifts": 8},
}

QUICK: Sizes = {
    "k = 8, 2,000 transfers of web search": {"k": 8, "transfers": 2_000, "shifts": 8},
}

LARGE: Sizes = {
    "k = 16, 1,000,000 transfers of Hadoop": {
        "k": 16,
        "transfers": 1_000_000,
        "shifts": 2,
        "size": "hadoop_hpcc",
    },
    "k = 16, 250,000 transfers of web search": {"k": 16, "transfers": 250_000, "shifts": 2},
}


def table(title: str, costs: Mapping[str, workloads.Cost]) -> str:
    """Return the table of costs as Markdown."""
    lines = [
        f"| {title} | packet-hops | time, s | ns per packet-hop | memory, MB |",
        "|---|---|---|---|---|",
    ]
    for name, cost in costs.items():
        memory = "-" if cost.run_kb is None else f"{cost.run_kb / 1e3:.0f}"
        hops = f"{cost.hops / 1e6:,.0f} M"
        lines.append(f"| {name} | {hops} | {cost.run_s:.1f} | {cost.ns:.0f} | {memory} |")
    return "\n".join(lines)


def main() -> None:
    """Build, measure, and print."""
    workloads.build()
    sizes, turns = SIZES, 1
    if "--quick" in sys.argv:
        sizes, turns = QUICK, 3
    elif "--large" in sys.argv:
        sizes = LARGE
    print(workloads.machine())
    for title, of_tree in sizes.items():
        scenarios = {name: tree(row, **of_tree) for name, row in ROWS.items()}
        print(table(title, workloads.measure_in_turns(scenarios, turns)), flush=True)


if __name__ == "__main__":
    main()
