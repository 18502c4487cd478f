"""Measure packet-hops/s of topologies, and their ratio to S1 in the same run (`make bench`).

Each workload runs in a process of its own, in turns with the others, and the fastest of TURNS runs
counts. Times are processor times of a run with set-up and outcome. `--quick` runs once.
"""

import sys

from sojourn_lab.speed import workloads

TURNS = 3


def table(costs: dict[str, workloads.Cost]) -> str:
    """Return the table of costs as Markdown; the first workload is the reference."""
    reference = next(iter(costs.values()))
    lines = [
        "| workload | packet-hops | M packet-hops/s | ratio to S1 | ns | reading, s | memory, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, cost in costs.items():
        memory = "-" if cost.run_kb is None else f"{cost.run_kb / 1e3:.0f}"
        lines.append(
            f"| {name} | {cost.hops / 1e6:.2f} M | {1e3 / cost.ns:.2f} "
            f"| {reference.ns / cost.ns:.2f} | {cost.ns:.0f} | {cost.read_s:.2f} | {memory} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Build, measure, and print."""
    workloads.build()
    scenarios = {name: scenario() for name, scenario in workloads.FULL.items()}
    turns = 1 if "--quick" in sys.argv else TURNS
    print(table(workloads.measure_in_turns(scenarios, turns)))


if __name__ == "__main__":
    main()
