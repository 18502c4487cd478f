"""Acks of Linux's receiver, compared with the kernel's own TCP.

The numbers of Linux 6.18 are means of two live runs of each scenario (`--engine live`).
"""

from typing import Any

import numpy as np
import pytest

import sojourn as sj

SEEDS = range(1, 13)
"""Means of one run scatter by 1.6 ms."""


def test_compressed_sacks_lengthen_the_queue_of_bbr_at_random_loss() -> None:
    """BBR at 5 % loss: 12.6 ms in Linux, 8.1 ms if all SACKs are sent (`tcp_comp_sack_nr = 0`)."""
    delays = []
    for seed in SEEDS:
        scenario: dict[str, Any] = {
            "duration": "16s",
            "warmup": "4s",
            "seed": seed,
            "links": {
                "up": {
                    "rate": "9183kbit",
                    "delay": "6563us",
                    "qdisc": "droptail(limit=70p)",
                    "loss": 0.0499,
                }
            },
            "flows": [
                {
                    "name": "a",
                    "path": ["up"],
                    "rtt": "13127us",
                    "tcp": "linux_bbr",
                    "source": {"name": "bulk", "start": "uniform(0s, 1s)"},
                }
            ],
        }
        delays.append(sj.simulate(scenario).links["up"].sojourn_mean_s)
    assert np.mean(delays) == pytest.approx(0.0126, rel=0.1)
