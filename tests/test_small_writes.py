"""Linux counts packets, and BBR has Linux's rules: scenarios compared with the kernel's TCP.

The numbers of Linux 6.18 are from one live run of each scenario (`--engine live`), recorded on an
idle machine.
"""

from typing import Any

import numpy as np

import sojourn as sj

SEEDS = range(1, 5)


def scenario(
    link: dict[str, Any], rtt: str, count: int, tcp: dict[str, Any], source: dict[str, Any]
) -> dict[str, Any]:
    """Return a scenario of 16 s, with 4 s of warm-up."""
    return {
        "duration": "16s",
        "warmup": "4s",
        "links": {"up": link},
        "flows": [
            {
                "name": "a",
                "count": count,
                "path": ["up"],
                "rtt": rtt,
                "tcp": tcp,
                "source": {**source, "start": "uniform(0s, 1s)"},
            }
        ],
    }


def p99_ms(link: dict[str, Any], rtt: str, count: int, rate: str, **tcp: Any) -> float:
    """Return the 99th percentile of the delay with writes of 200 B, the mean of four seeds."""
    source = {"name": "cbr", "rate": rate}
    base = scenario(link, rtt, count, {"name": "linux_reno", **tcp}, source)
    runs = [sj.simulate({**base, "seed": seed}) for seed in SEEDS]
    return float(np.mean([1e3 * run.links["up"].sojourn_p99_s for run in runs]))


def test_small_writes_fill_the_window_of_linux() -> None:
    """Reno with writes of 200 B: 27.6 and 16.8 ms on Linux; if bytes count, 38 and 24 ms."""
    codel = {"rate": "2587kbit", "delay": "2305us", "qdisc": "codel"}
    assert 24 < p99_ms(codel, "4610us", 2, "1188kbit") < 31
    assert p99_ms(codel, "4610us", 2, "1188kbit", count_packets=False) > 34
    droptail = {"name": "droptail", "limit": "49p"}
    link = {"rate": "7680kbit", "delay": "30353us", "qdisc": droptail, "loss": 0.002}
    assert 14 < p99_ms(link, "60706us", 16, "408kbit") < 19
    assert p99_ms(link, "60706us", 16, "408kbit", count_packets=False) > 21


def test_bbr_with_small_writes_loses_as_much_as_linux() -> None:
    """Two flows at the rate of the link behind cake: 14.8 % on Linux; if bytes count, 7.5 %."""

    def loss(**tcp: Any) -> float:
        link = {"rate": "4241kbit", "delay": "13915us", "qdisc": "cake", "loss": 0.02}
        source = {"name": "cbr", "rate": "2078kbit"}
        base = scenario(link, "27830us", 2, {"name": "linux_bbr", **tcp}, source)
        runs = [sj.simulate({**base, "warmup": "0s", "seed": seed}) for seed in SEEDS]
        return float(np.mean([100 * run.links["up"].loss_rate for run in runs]))

    assert 12 < loss() < 19
    assert loss(count_packets=False) < 10


def test_bbr_with_random_loss_has_the_goodput_and_delay_of_linux() -> None:
    """One flow with 3 % of random loss: 4.56 Mbit/s and 17.4 ms on Linux, in two runs."""
    qdisc = {"name": "droptail", "limit": "100p"}
    link = {"rate": "5mbit", "delay": "20ms", "qdisc": qdisc, "loss": 0.03}
    base = scenario(link, "40ms", 1, {"name": "linux_bbr"}, {"name": "bulk"})
    runs = [sj.simulate({**base, "seed": seed}) for seed in SEEDS]
    goodput = np.mean([run.summary["flows"][0]["goodput_bps"] / 1e6 for run in runs])
    delay = np.mean([1e3 * run.links["up"].sojourn_mean_s for run in runs])
    assert 4.4 < goodput < 4.7, goodput
    assert 13 < delay < 21, delay
