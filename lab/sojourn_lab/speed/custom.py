"""Cost of a packet for the same algorithm in Rust, in compiled Python and in plain Python.

Three tables in ns of processor time per arriving packet, measured in one process: the best of
several turns, in which the three take turns. The first is for disciplines; DropTail through the
same link is its last column. The second is for congestion controls: a packet with its ack. The
third is for traffic sources: a datagram, or a transfer of 1 kB on a connection of its own.
"""

import json
import time
from typing import Any

import sojourn as sj
from examples import my_aqm, my_control, my_source
from sojourn.scenario.draft import parse

TURNS = 5

ALGORITHMS: dict[str, tuple[Any, Any]] = {
    "CoDel": (sj.CoDel(), my_aqm.MyCoDel()),
    "PIE": (sj.Pie(), my_aqm.MyPie()),
}
"""Discipline in Rust, and the same in Python."""

CONTROLS: dict[str, tuple[Any, Any]] = {"Reno": ("sack", my_control.MyReno())}
"""Congestion control in Rust, and the same in Python."""

SMALL: dict[str, Any] = {"interval": "200us", "smallest": "1kB", "largest": "1kB"}
SOURCES: dict[str, tuple[Any, Any]] = {
    "constant rate": (
        sj.source.Cbr(rate="90mbit", packet="1000B"),
        my_source.MyCbr(rate="90mbit", packet="1000B"),
    ),
    "short flows": (
        sj.source.Poisson(interval="uniform(0us, 200us)", size="uniform(1kB, 1kB)"),
        my_source.MyFlows(**SMALL),
    ),
}
"""Traffic source in Rust, and the same in Python."""


def cost_ns(qdisc: Any, duration: str) -> float:
    """Return the processor time per packet of an overloaded link of 100 Mbit/s."""
    case = {
        "duration": duration,
        "links": {"up": {"rate": "100mbit", "qdisc": qdisc}},
        "flows": [{"name": "f", "source": "cbr(rate=110mbit)", "path": ["up"]}],
    }
    return cost_of(case)


def cost_of_control(tcp: Any, duration: str) -> float:
    """Return the processor time per packet of a TCP that fills a link of 100 Mbit/s."""
    case = {
        "duration": duration,
        "links": {"up": {"rate": "100mbit", "qdisc": "droptail(limit=200p)"}},
        "flows": [{"name": "f", "tcp": tcp, "path": ["up"], "rtt": "20ms"}],
    }
    return cost_of(case)


def cost_of_source(source: Any, duration: str) -> float:
    """Return the processor time per packet of a source on a link of 100 Mbit/s."""
    case = {
        "duration": duration,
        "links": {"up": {"rate": "100mbit", "qdisc": "droptail"}},
        "flows": [{"name": "f", "source": source, "path": ["up"], "rtt": "20ms"}],
    }
    return cost_of(case)


def cost_of(case: dict[str, Any]) -> float:
    """Return the processor time of a run per packet that arrives at its link."""
    parsed = parse(case)
    begin = time.process_time()
    summary, _ = parsed.simulate()
    took = time.process_time() - begin
    return 1e9 * took / float(json.loads(summary)["links"]["up"]["arrived_packets"])


def main() -> None:
    """Measure, and print the table."""
    print("| algorithm | Rust | compiled | plain | DropTail |\n|---|---|---|---|---|")
    for name, (rust, plain) in ALGORITHMS.items():
        forms = [(rust, "8s"), (plain.replace(compiled=True), "8s"), (plain, "2s"),
                 ("droptail", "8s")]  # fmt: skip
        turns = [[cost_ns(*form) for form in forms] for _ in range(TURNS)]
        print(row(name, turns))
    print("\n| congestion control | Rust | compiled | plain |\n|---|---|---|---|")
    for name, (rust, plain) in CONTROLS.items():
        forms = [(rust, "20s"), (plain.replace(compiled=True), "20s"), (plain, "5s")]
        print(row(name, [[cost_of_control(*form) for form in forms] for _ in range(TURNS)]))
    print("\n| traffic source | Rust | compiled | plain |\n|---|---|---|---|")
    for name, (rust, plain) in SOURCES.items():
        forms = [(rust, "20s"), (plain.replace(compiled=True), "20s"), (plain, "10s")]
        print(row(name, [[cost_of_source(*form) for form in forms] for _ in range(TURNS)]))


def row(name: str, turns: list[list[float]]) -> str:
    """Return a row of a table: the best turn of each form."""
    return f"| {name} | {' | '.join(f'{min(times):.0f}' for times in zip(*turns, strict=True))} |"


if __name__ == "__main__":
    main()
