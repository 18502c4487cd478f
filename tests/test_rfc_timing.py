"""Round-trip times in the `rfc` profile during loss recovery (RFC 6298, section 3)."""

from typing import Any

import pytest

import sojourn as sj


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_sender_in_continuous_recovery_ends_its_backoff(seed: int) -> None:
    """BBR at 3 % random loss keeps sending.

    Recovery hardly ever ends. Without round-trip times in recovery, a timeout that doubled once
    stayed doubled: goodput was 3 to 13 Mbit/s.
    """
    scenario: dict[str, Any] = {
        "duration": "60s",
        "seed": seed,
        "links": {
            "up": {
                "rate": "20mbit",
                "delay": "50ms",
                "qdisc": "droptail(limit=800p)",
                "loss": 0.03,
            }
        },
        "flows": [
            {
                "name": "a",
                "path": ["up"],
                "rtt": "100ms",
                "tcp": {"name": "bbr", "profile": "rfc"},
                "source": "bulk",
            }
        ],
    }
    with pytest.warns(sj.ScenarioWarning, match="without RACK"):
        [flow] = sj.simulate(scenario).summary["flows"]
    assert flow["goodput_bps"] > 14e6
