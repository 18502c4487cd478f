"""Long flows through one port: figures 1, 13 and 12 of DCTCP (`dctcp.py`)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import sojourn as sj
from sojourn import metrics
from sojourn_lab.studies.dctcp_set_up import (
    FRAME_B,
    NIC,
    PACKET_B,
    Table,
    cell,
    dctcp,
    figure,
    links,
    mean,
    port,
    results,
    rows,
    tcp,
)

Values = np.ndarray[Any, Any]


def long_flows(
    count: int, sender: Table, qdisc: str, seed: int, rate: str = "1gbit", rtt: str = "100us"
) -> Table:
    """Return a scenario of `count` long flows from hosts of their own to one port."""
    hosts = [(f"host-{i}", NIC) for i in range(count)]
    start = {"name": "bulk", "start": "uniform(0s, 1ms)"}
    flow = {"name": "long", "count": count, "path": ["host-{i}", "port"], "rtt": rtt}
    return {
        "duration": "700ms",
        "warmup": "200ms",
        "seed": seed,
        "sample": "100us",
        "sample_flows": False,
        "links": links(rate, [("port", qdisc), *hosts]),
        "flows": [flow | {"tcp": sender, "source": start}],
    }


SENDERS: dict[str, tuple[Callable[[], Table], str]] = {
    "DCTCP": (dctcp, "step_mark(k=20p,limit=700kB)"),
    "TCP": (tcp, "droptail(limit=700kB)"),
    "TCP without SACK": (partial(tcp, name="newreno"), "droptail(limit=700kB)"),
}


@dataclass(frozen=True)
class Port:
    """Queue in packets at the samples, ascending, and goodput in Gbit/s; one of each per seed."""

    queues: list[Values]
    goodput: list[float]

    def quantile(self, percent: float) -> list[float]:
        """Return a percentile of the queue for each seed."""
        return [float(np.percentile(queue, percent)) for queue in self.queues]


def queues(seeds: int) -> dict[tuple[int, str], Port]:
    """Run figures 1 and 13: 2 and 20 flows with each sender."""
    ports = {}
    for count in (2, 20):
        for label, (sender, qdisc) in SENDERS.items():
            runs = results([long_flows(count, sender(), qdisc, s) for s in range(1, seeds + 1)])
            ports[count, label] = Port(
                [metrics.queue_lengths_bytes(run, "port") / PACKET_B for run in runs],
                [run.links["port"]["goodput_bps"] / 1e9 for run in runs],
            )
    return ports


def queue_table(ports: dict[tuple[int, str], Port]) -> str:
    """Return the table of figures 1 and 13."""
    body = [
        [
            str(count),
            label,
            f"{mean(one.goodput):.3f}",
            *(cell(one.quantile(percent)) for percent in (5, 50, 95, 100)),
        ]
        for (count, label), one in ports.items()
    ]
    head = ["flows", "sender", "goodput, Gbit/s", "queue, packets, 5 %", "50 %", "95 %", "most"]
    return rows(head, body)


@dataclass(frozen=True)
class Case:
    """A case of the analysis: senders, their number, K in packets, and RTT in us."""

    count: int
    label: str = "RFC 8257"
    k: int = 40
    rtt_us: int = 100
    spread_us: int = 0
    """Round-trip times differ from `rtt_us` by up to this."""

    @property
    def pipe(self) -> float:
        """C RTT + K, in packets of 10 Gbit/s."""
        return 10e9 / 8 / FRAME_B * self.rtt_us * 1e-6 + self.k

    @property
    def amplitude(self) -> float:
        """Predicted amplitude of the queue, packets (section 3.3 of the paper)."""
        return float(0.5 * np.sqrt(2 * self.count * self.pipe))

    @property
    def period(self) -> float:
        """Predicted period, in round-trip times."""
        return float(0.5 * np.sqrt(2 * self.pipe / self.count))

    @property
    def round_trip_s(self) -> float:
        """Round-trip time with a queue of K packets."""
        return self.pipe * FRAME_B * 8 / 10e9

    def scenario(self, seed: int) -> Table:
        """Return the scenario of one run at 10 Gbit/s."""
        profile = "rfc" if self.label == "RFC 8257" else "linux"
        sender = dctcp(profile=profile, delayed_ack=False)
        if self.label == "Linux without PRR":
            sender["prr"] = False
        qdisc = port(sender, "10000p", self.k)
        low, high = self.rtt_us - self.spread_us, self.rtt_us + self.spread_us
        rtt = f"uniform({low}us, {high}us)" if self.spread_us else f"{self.rtt_us}us"
        tree = long_flows(self.count, sender, qdisc, seed, "10gbit", rtt)
        return tree | {"duration": "300ms", "warmup": "100ms", "sample": "10us"}


@dataclass(frozen=True)
class Oscillation:
    """Measures of a queue over time: packets, and the period in round-trip times."""

    highest: float
    amplitude: float
    period: float


def oscillation(result: sj.Result, case: Case) -> Oscillation:
    """Return the 99.9 % quantile of the queue, the central 95 % of it, and its period.

    The period is the first lag whose autocorrelation is a maximum, and nearly the largest one
    after the first zero crossing: multiples of a period have peaks as well.
    """
    late = result.time_s > 0.1
    queue = result.links["port"].series["queue_bytes"][late] / PACKET_B
    wave = queue - queue.mean()
    power = np.abs(np.fft.rfft(wave, 2 * len(wave))) ** 2
    correlation = np.fft.irfft(power)[: len(wave) // 5]
    correlation[: np.argmax(correlation < 0)] = 0
    inner = correlation[1:-1]
    peak = (inner >= correlation[:-2]) & (inner >= correlation[2:])
    lag = 1 + int(np.argmax(peak & (inner > 0.8 * correlation.max())))
    low, high, highest = np.percentile(queue, [2.5, 97.5, 99.9])
    return Oscillation(float(highest), float(high - low), lag * 1e-5 / case.round_trip_s)


CASES = (
    *(Case(count, label) for label in ("RFC 8257", "Linux") for count in (2, 10, 40)),
    *(Case(count, "Linux without PRR") for count in (2, 10, 40)),
    Case(40, spread_us=20),
    Case(10, k=100, rtt_us=1000),
    Case(40, k=100, rtt_us=1000),
    Case(40, k=200, rtt_us=2000),
)
"""Figure 12 with senders of the RFC and of Linux; then experiments about what differs."""


def analysis(seeds: int, cases: tuple[Case, ...] = CASES) -> dict[Case, list[Oscillation]]:
    """Run the cases of figure 12."""
    return {
        case: [
            oscillation(run, case)
            for run in results([case.scenario(seed) for seed in range(1, seeds + 1)])
        ]
        for case in cases
    }


def analysis_table(measures: dict[Case, list[Oscillation]]) -> str:
    """Return the table of figure 12, predictions first."""
    body = [
        [
            str(case.count),
            f"{case.rtt_us} us{f' ± {case.spread_us}' if case.spread_us else ''}, {case.k}",
            case.label,
            str(case.k + case.count),
            cell(one.highest for one in runs),
            figure(case.amplitude),
            cell(one.amplitude for one in runs),
            figure(case.period),
            cell(one.period for one in runs),
        ]
        for case, runs in measures.items()
    ]
    head = ["flows", "RTT, K", "sender", "most: K + N", "measured"]
    head += ["amplitude, predicted", "measured", "period in RTTs, predicted", "measured"]
    return rows(head, body)
