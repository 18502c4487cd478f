"""Senders of Linux on paths that lose packets, compared with the kernel's own TCP.

The numbers of Linux 6.18 are means of two live runs of each scenario (`--engine live`).
"""

from typing import Any

import numpy as np
import pytest

import sojourn as sj


def case(
    flows: dict[str, int],
    rate: str,
    rtt: str,
    qdisc: str,
    start: str = "uniform(0s, 1s)",
    **tcp: Any,
) -> dict[str, Any]:
    """Bulk flows over one link: the number of flows by name of the TCP."""
    return {
        "duration": "16s",
        "links": {"up": {"rate": rate, "delay": f"{float(rtt[:-2]) / 2}ms", "qdisc": qdisc}},
        "flows": [
            {
                "name": name,
                "count": count,
                "path": ["up"],
                "rtt": rtt,
                "tcp": {"name": name, **tcp},
                "source": {"name": "bulk", "start": start},
            }
            for name, count in flows.items()
        ],
    }


# Name: scenario, warm-up, and of Linux: goodput in Mbit/s, loss in %.
CASES = {
    "4 cubic, cake": (
        case({"linux_cubic": 4}, "700kbit", "40ms", "cake", start="0s"), "10s", 0.676, 33.0,
    ),
    "6 reno and 1 cubic, fq_codel": (
        case({"linux_reno": 6, "linux_cubic": 1}, "801kbit", "94.4ms", "fq_codel"), "4s", 0.77, 9,
    ),
    "8 bbr, cake": (
        case({"linux_bbr": 8}, "14721kbit", "150.9ms", "cake"), "0s", 13.1, 11.8,
    ),
    "12 cubic, fq_codel: HyStart": (
        case({"linux_cubic": 12}, "17644kbit", "200.7ms", "fq_codel"), "4s", 17.1, 0.8,
    ),
    "1 cubic, dualpi2: acks while the window grows": (
        case({"linux_cubic": 1}, "7136kbit", "80.5ms", "dualpi2"), "0s", 5.97, 0.3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_goodput_and_losses_are_those_of_linux(name: str) -> None:
    """Goodput within 10 %, losses within a factor of 2 or 0.5 points."""
    scenario, warmup, goodput, loss = CASES[name]
    if warmup == "10s":
        scenario = {**scenario, "duration": "30s"}
    runs = [sj.simulate({**scenario, "warmup": warmup, "seed": seed}) for seed in range(1, 5)]
    ours = np.mean([sum(f["goodput_bps"] for f in run.summary["flows"]) / 1e6 for run in runs])
    lost = 100 * np.mean([run.summary["links"]["up"]["loss_rate"] for run in runs])
    assert abs(ours / goodput - 1) < 0.1, f"{ours:.3f} Mbit/s"
    assert abs(lost - loss) < 0.5 or 0.5 < lost / loss < 2, f"{lost:.2f} %"


def test_marks_with_cwr_are_acknowledged_at_once() -> None:
    """16 CUBIC with ECN behind cake wait 98.1 ms on Linux; it was 58.8 ms without quick acks."""
    scenario = case({"linux_cubic": 16}, "3691kbit", "2.7ms", "cake", ecn=True)
    run = sj.simulate({**scenario, "warmup": "4s"})
    assert run.links["up"].sojourn_mean_s == pytest.approx(0.0981, rel=0.05)
