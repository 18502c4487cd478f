"""Reports of live links."""

from typing import Any


def report(**changes: Any) -> dict[str, Any]:
    """Return what `sojourn link --json` prints after an upload; `changes` are of its uplink."""
    codel = {"name": "codel", "limit": "1000p", "target": "5ms", "interval": "100ms", "ecn": True}
    up = {
        "arrived_packets": 1000, "dropped_packets": 4, "dropped_full_packets": 0,
        "marked_packets": 20, "utilisation": 0.98, "sojourn_p50_s": 0.004, "sojourn_p99_s": 0.012,
        "sojourn_max_s": 0.04,
    }  # fmt: skip
    idle = {**up, "arrived_packets": 500, "utilisation": 0.02, "marked_packets": 0,
            "dropped_packets": 0, "sojourn_p50_s": 0.0, "sojourn_p99_s": 0.0}  # fmt: skip
    spec = {"rate": "5mbit", "delay": "20ms", "loss": 0.0, "qdisc": codel}
    return {
        "sojourn": "0.1.0", "command": ["upload"], "exit_code": 0, "trusted": True, "warnings": [],
        "spec": {"up": spec, "down": spec}, "links": {"up": up | changes, "down": idle},
    }  # fmt: skip
