"""Results with columns made by hand, for the tests of metrics."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sojourn.result.result import Result
from sojourn.scenario.draft import canonical

SCENARIO: dict[str, Any] = {
    "duration": "110s",
    "warmup": "10s",
    "sample": "1s",
    "packet_log": True,
    "links": {"l": {"rate": "8mbit", "delay": "20ms", "qdisc": {"name": "red", "limit": "50kB"}}},
    "flows": [
        {
            "name": "ftp",
            "count": 2,
            "path": ["l"],
            "rtt": "100ms",
            "tcp": {"name": "reno", "packet": "1040B", "header": "40B", "initial_window": "2p"},
        },
        {
            "name": "web",
            "path": ["l"],
            "rtt": "100ms",
            "source": "transfers",
            "tcp": {"name": "reno", "packet": "1040B", "header": "40B", "initial_window": "2p"},
        },
        {"name": "call", "path": ["l"], "source": "cbr"},
    ],
}

LINK = {
    "departed_bytes": 50_000_000, "dropped_packets": 300, "utilisation": 0.75, "loss_rate": 0.02,
    "mark_rate": 0.01, "goodput_bps": 3e6, "consecutive_loss": [6, 2, 0, 2],
    "queue_mean_bytes": 20_000.0, "queue_std_bytes": 5_000.0, "sojourn_mean_s": 0.02,
    "sojourn_std_s": 0.005, "sojourn_p50_s": 0.018, "sojourn_p95_s": 0.03, "sojourn_p99_s": 0.04,
    "sojourn_max_s": 0.05,
}  # fmt: skip

TCP = {"kind": "tcp", "rtt_s": 0.1}

FLOWS = [
    {"name": "ftp.0", "group": "ftp", "goodput_bps": 3e6, **TCP},
    {"name": "ftp.1", "group": "ftp", "goodput_bps": 1e6, **TCP},
    {"name": "web", "group": "web", "goodput_bps": 0.5e6, **TCP},
    {"name": "call", "group": "call", "goodput_bps": 0.5e6, "kind": "udp", "rtt_s": 0.04,
     "lost_packets": 5, "received_packets": 95, "jitter_s": 0.003},
]  # fmt: skip


def result_with(
    columns: Mapping[str, Any] | None = None, change: Mapping[str, Any] | None = None
) -> Result:
    """Return a Result of the scenario (with `change`) with the given columns."""
    scenario = canonical({**SCENARIO, **(change or {})})
    summary = {"scenario": scenario, "links": {"l": LINK}, "flows": FLOWS}
    none: list[float] = []
    empty = dict.fromkeys(("fct/start_s", "fct/duration_s", "fct/flow", "fct/bytes"), none)
    arrays = {name: np.asarray(column) for name, column in {**empty, **(columns or {})}.items()}
    return Result(json.dumps(summary), arrays)


def transfers(rows: Sequence[tuple[int, float, float, int]]) -> dict[str, Any]:
    """Return completions from rows (flow, start, duration, bytes)."""
    names = ("flow", "start_s", "duration_s", "bytes")
    return {f"fct/{n}": np.array(c) for n, c in zip(names, zip(*rows, strict=True), strict=True)}
