"""Senders of data centres compared with other simulators: `make validate-datacentre`.

Writes reports/validation-datacentre.md. The states of the other simulators are in
lab/vectors/senders; a test of Rust compares ours with them step by step.
"""

import csv
import io
import math
import subprocess
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import sojourn as sj
from sojourn_lab import ROOT

PAGE = ROOT / "reports/validation-datacentre.md"

COMPARED = ["cargo", "test", "-p", "sojourn-sim", "--test", "sender_vectors", "table"]
"""Command whose output has a row per case: vector, case, steps, equal steps, difference."""

CASES: Mapping[str, Sequence[str]] = {
    "timely": (
        "10 Gbit/s, round-trip times within the thresholds",
        "100 Gbit/s, the same",
        "10 Gbit/s, all round-trip times, without hyperactive increase",
        "100 Gbit/s, other gains and thresholds, the same",
        "10 Gbit/s, all round-trip times, with hyperactive increase",
    ),
    "dcqcn": (
        "the timer alone",
        "the timer alone, g 1/16",
        "timer and byte counter",
        "the byte counter beyond F",
        "hyper increase",
        "at the line rate",
    ),
    "dcqcn-nic": (
        "values of HPCC's simulations at 100 Gbit/s",
        "its values of the paper",
        "40 Gbit/s, F 5, g 1/16",
    ),
    "swift": (
        "no flow scaling",
        "no flow scaling, 4 kB, 5 hops",
        "flow scaling, whole packets",
        "flow scaling, below a tenth of a packet",
        "windows below a packet",
        "flow scaling, any window",
    ),
}
"""Description of each case of a vector."""

RATE = 100e9
"""Rate of the port, bit/s."""

LINE = f"{RATE / 1e9:g}gbit"
"""The same as text."""

PACKET = 1500
"""Bytes of a packet."""

TAU, TAU_ALPHA, TIMER = 50e-6, 55e-6, 60e-6
"""Intervals of notifications, of decays of alpha and of increases in DCQCN, seconds."""

STAGES, BYTES, AI, GAIN = 5, 300e6, 40e6, 1 / 256
"""F, the byte counter, R_AI (bit/s) and g of DCQCN."""

K_MIN, K_MAX, P_MAX = 5_000, 200_000, 0.01
"""Marking of the port, bytes and probability."""

FLOWS = (2, 4, 8, 16)
"""Numbers of flows."""

MARKS = (0.001, 0.003, 0.01, 0.03)
"""Probabilities of independent marks."""

DURATION_MS = 200
"""Length of a run, of which the second half is measured."""


@dataclass(frozen=True)
class Row:
    """Comparison of one case."""

    vector: str
    case: int
    steps: int
    equal: int
    """Steps before the first difference."""
    largest: float
    """Largest difference among these, as a share of the value."""


def compared() -> list[Row]:
    """Run the comparison and return its rows."""
    command = [*COMPARED, "--", "--nocapture", "--exact"]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    lines = [line for line in run.stdout.splitlines() if line.count(",") == 4]
    return [
        Row(vector, int(case), int(steps), int(equal), float(largest))
        for vector, case, steps, equal, largest in csv.reader(io.StringIO("\n".join(lines)))
    ]


def imbalance(p: float, rate: float) -> float:
    """Return the decrease less the increase of a rate (packets/s) in DCQCN's fluid model.

    Y. Zhu et al., "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016,
    with target and alpha at their fixed point for the marking probability `p`.
    """
    kept = 1 - p

    def expiries(period: float) -> float:
        """Return the number of expiries of a period of packets per packet."""
        unmarked = kept**period
        return float(p * unmarked / (1 - unmarked))

    counter, timer = BYTES / PACKET, TIMER * rate
    notified = 1 - kept ** (TAU * rate)
    alpha = 1 - kept ** (TAU_ALPHA * rate)
    recovery = expiries(counter) + expiries(timer)
    growth = sum(kept ** (STAGES * period) * expiries(period) for period in (counter, timer))
    gap = AI / 8 / PACKET * rate * growth * TAU / notified
    return float(alpha * notified / TAU - gap * recovery)


def fixed_point(flows: int) -> float:
    """Return the marking probability at which flows with equal shares of the port stay."""
    rate = RATE / 8 / PACKET / flows
    return bisect(lambda p: imbalance(p, rate), 1e-7, 0.5)


def fluid_rate(p: float) -> float:
    """Return the rate of a flow whose packets are marked with probability `p`, bit/s."""
    return 8 * PACKET * bisect(lambda rate: imbalance(p, rate), 1e3, 1e9)


def event_rate(p: float, seconds: float = 20) -> float:
    """Return the mean rate of a sender with marks as a Poisson process, bit/s.

    The rules of DCQCN without the byte counter, event by event: marks come at `p` times the packet
    rate. The first tenth is not measured.
    """
    rng = np.random.default_rng(1)
    rate = target = 1e10
    alpha, stage = 1.0, 0
    now, allowed, timer, decay = 0.0, 0.0, TIMER, math.inf
    sent = 0.0
    while now < seconds:
        mark = max(now, allowed) + rng.exponential(8 * PACKET / (p * rate))
        due = min(mark, timer, decay)
        sent += rate * (due - max(now, seconds / 10)) if due > seconds / 10 else 0
        now = due
        if due == mark:
            alpha += GAIN * (1 - alpha)
            target, rate, stage = rate, rate * (1 - alpha / 2), 0
            allowed, timer, decay = now + TAU, now + TIMER, now + TAU_ALPHA
        elif due == timer:
            stage, timer = stage + 1, timer + TIMER
            target += AI if stage >= STAGES else 0
            rate = (rate + target) / 2
        else:
            alpha, decay = alpha * (1 - GAIN), decay + TAU_ALPHA
    return sent / (now - seconds / 10)


def bisect(f: Callable[[float], float], low: float, high: float) -> float:
    """Return the zero of an increasing function."""
    assert f(low) < 0 < f(high)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return low


def scenario(tcp: Mapping[str, Any], flows: int, qdisc: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scenario of flows through one port."""
    return {
        "duration": f"{DURATION_MS}ms",
        "warmup": f"{DURATION_MS // 2}ms",
        "links": {"port": {"rate": LINE, "delay": "1us", "qdisc": qdisc}},
        "flows": [
            {
                "name": "f",
                "count": flows,
                "path": ["port"],
                "rtt": "4us",
                "tcp": {"rto_min": "2ms", "tick": "10us", "line_rate": LINE, **tcp},
                "source": {"name": "bulk", "start": "uniform(0s, 1ms)"},
            }
        ],
    }


def jain(shares: Sequence[float]) -> float:
    """Return Jain's index of fairness."""
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


def steady(tcp: Mapping[str, Any], flows: int, qdisc: Mapping[str, Any]) -> tuple[list[str], float]:
    """Run flows through the port.

    Returns utilisation, mean queue and Jain's index as cells of a table, and the share of marked
    packets.
    """
    result = sj.simulate(scenario(tcp, flows, qdisc))
    port = result.links["port"]
    shares = [flow.goodput_bps for flow in result.flows.values()]
    queue = port.sojourn_mean_s * RATE / 8 / 1e3
    cells = [f"{100 * port.utilisation:.1f} %", f"{queue:.1f} kB", f"{jain(shares):.3f}"]
    return cells, port.mark_rate


def marked_at_random(p: float) -> float:
    """Return the mean rate of a flow whose packets are marked with probability `p`, bit/s.

    The link has no queue.
    """
    fast = f"{4 * RATE / 1e9:g}gbit"
    tcp = {"name": "dcqcn", "initial_rate": "10gbit", "line_rate": fast}
    setup = scenario(tcp, 1, {"name": "droptail", "limit": "12MB"})
    setup["links"]["port"] |= {"rate": fast, "loss": {"probability": p, "ecn": True}}
    setup |= {"duration": "2s", "warmup": "200ms"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no discipline marks
        port = sj.simulate(setup).links["port"]
    return float(port.utilisation * 4 * RATE)


def marking() -> dict[str, Any]:
    """Return the discipline that marks."""
    thresholds = {"k_min": f"{K_MIN}B", "k_max": f"{K_MAX}B", "p_max": P_MAX}
    return {"name": "step_mark", "limit": "12MB", **thresholds}


def table(head: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [f"| {head} |", "|" + " --- |" * (head.count("|") + 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def random_rows() -> list[list[str]]:
    """Return the rows of one flow with independent marks."""
    rows = []
    for p in MARKS:
        model, events, run = fluid_rate(p), event_rate(p), marked_at_random(p)
        rates = [f"{rate / 1e9:.2f}" for rate in (run, events, model)]
        rows.append([f"{100 * p:g} %", *rates, f"{run / events:.3f}", f"{run / model:.2f}"])
    return rows


def dcqcn_rows() -> list[list[str]]:
    """Return the rows of DCQCN: the fluid model, and the run."""
    tcp = {"name": "dcqcn", "initial_rate": LINE}
    rows = []
    for flows in FLOWS:
        p = fixed_point(flows)
        cells, marked = steady(tcp, flows, marking())
        rows.append([str(flows), f"{1e3 * p:.3f}", f"{1e3 * marked:.3f}", *cells])
    return rows


def other_rows() -> list[list[str]]:
    """Return the rows of the variant nic of DCQCN and of TIMELY."""
    slow = {"k_min": "400kB", "k_max": "1600kB", "p_max": 0.2}
    nic = {
        "name": "dcqcn",
        "variant": "nic",
        "initial_rate": LINE,
        "min_rate": "1gbit",
        "cnp_interval": "4us",
        "alpha_timer": "1us",
        "timer": "300us",
        "f": 1,
        "rate_ai": "20mbit",
    }
    timely = {"name": "timely", "initial_rate": "10gbit", "delta": "100mbit"}
    setups: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = [
        ("`dcqcn`, `nic`", nic, {**marking(), **slow}),
        ("`timely`", timely, {"name": "droptail", "limit": "12MB"}),
    ]
    return [
        [name, str(flows), *steady(tcp, flows, qdisc)[0]]
        for name, tcp, qdisc in setups
        for flows in (2, 16)
    ]


HEAD = """# Senders of data centres compared with other simulators

GENERATED by `make validate-datacentre` (`python -m sojourn_lab.validation.datacentre`), do not
edit.

`timely`, `dcqcn` and `swift` change rate and window as other simulators do, value by value, in
{same} of {cases} cases; the other {differing} differ where the simulator departs from the paper.

## Value by value

The update functions of three simulators were compiled alone and given fixed random acks, marks and
timers; [their states](../lab/vectors/README-senders.md) are compared with ours after each step
(`crates/sim/tests/sender_vectors/main.rs`). A step is equal if rates differ by at most one part in
10^7, alpha by 10^-12 and windows by one byte: the other simulators cut off fractions of a bit/s and
of a byte at each operation, and the errors of rates add up.

{compared}
## Where they differ

- **`timely`, hyperactive increase**: HPCC's simulator counts every increase in a row and adds five
  times as much from the sixth on. The paper counts gradients of at most 0, five in a row, and so
  does `timely`. `n_after = 6` and round-trip times within the thresholds give the same values.
- **`timely`, interval**: the simulator updates once per round trip, `timely` once per `segment`, as
  in the paper. The comparison has the updates of the simulator.
- **`dcqcn`, hyper increase**: in the authors' simulator it starts when both stages reach F, adds
  `R_HAI` once more, and halves both periods. In the paper, and in `dcqcn`, both stages must be
  above F. With the byte counter of 300 MB it is never reached.
- **`dcqcn`, target**: in the authors' simulator the target grows beyond the line rate; here the
  line rate bounds it, as in HPCC's simulator.
- **`swift`, flow scaling**: htsim cuts the window to whole packets before the square root, so that
  its target is a step function of the window, and `fs_range` longer for all windows below a packet.
- **`swift`, decreases**: htsim allows one per smoothed round-trip time, `swift` one per last
  round-trip time. The vectors avoid the interval between the two.

## Steady states

A link without a queue marks the packets of one `dcqcn` at random. Its mean rate differs by at most
{events:.1f} % from a second program of the rules, which has nothing but the sender and marks as a
Poisson process. It is {low:.0f} to {high:.0f} % higher than in the fluid model of Zhu and others
(CoNEXT 2016), which replaces random intervals and rates by their means.

{random}
The next rows are flows through one port of 100 Gbit/s that marks from {k_min:g} to {k_max:g} kB
up to {p_max:g} %, with a round-trip time of 4 us and {duration} ms of which the second half is
measured. They are compared with the marking probability at which the rates of the model fill the
port.

{dcqcn}
The queue of a run varies, so that marks come in clusters, of which only the first in {tau:g} us
reduces the rate of a flow.

TIMELY has no unique fixed point, so that the shares of its flows depend on how they started, and no
formula was found for the variant `nic` of DCQCN: these rows are compared with nothing. `timely`
starts at 10 Gbit/s. The variant has the values of HPCC's simulations, and marks from 400 to 1600 kB
up to 20 %.

{others}"""


Cells = Sequence[Sequence[str]]


def page(rows: Sequence[Row], random: Cells, dcqcn: Cells, others: Cells) -> str:
    """Return the page."""
    above = [100 * (float(row[-1]) - 1) for row in random]
    same = sum(row.equal == row.steps for row in rows)
    cells = [
        [
            f"`{row.vector}` {row.case}",
            CASES[row.vector][row.case - 1],
            str(row.steps),
            "all" if row.equal == row.steps else f"the first {row.equal}",
            "below a byte" if row.vector == "swift" else f"{row.largest:.0e}",
        ]
        for row in rows
    ]
    return HEAD.format(
        same=same,
        cases=len(rows),
        differing=len(rows) - same,
        compared=table("vector | case | steps | equal | largest difference", cells),
        duration=DURATION_MS,
        k_min=K_MIN / 1e3,
        k_max=K_MAX / 1e3,
        p_max=100 * P_MAX,
        tau=1e6 * TAU,
        events=max(100 * abs(float(row[-2]) - 1) for row in random),
        low=min(above),
        high=max(above),
        random=table(
            "marked | run, Gbit/s | second program | fluid model | run / program | run / model",
            random,
        ),
        dcqcn=table(
            "flows | marked per 1000: fluid model | run | utilisation | mean queue | Jain's index",
            dcqcn,
        ),
        others=table("sender | flows | utilisation | mean queue | Jain's index", others),
    )


def main() -> None:
    """Compare, run, and write the page."""
    PAGE.write_text(page(compared(), random_rows(), dcqcn_rows(), other_rows()))


if __name__ == "__main__":
    main()
