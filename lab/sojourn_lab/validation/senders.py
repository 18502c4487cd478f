"""Senders of Linux and ours through one bottleneck, compared: `make validate-senders`.

Writes reports/validation-senders.md. The measurements of Linux are in
lab/vectors/linux/senders.csv; each is one run of real senders in a virtual network. Ours are
several runs of the same scenario with other seeds, starts and round-trip times.
"""

import argparse
import csv
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import sojourn as sj
from sojourn_lab import ROOT
from sojourn_lab.validation import l4s, overload

DATA = ROOT / "lab/vectors/linux/senders.csv"
PAGE = ROOT / "reports/validation-senders.md"

RUNS = 10
"""Runs of each case."""

LATER_MS = 17
"""Group B starts so much later in each run than in the one before."""

LONGER = 1 / 2000
"""The round-trip time is longer by this share in each run than in the one before."""

BURST = "1514B"
"""Burst of HTB."""

SHAPED = "100gbit"
"""Rate of the link behind CAKE, which has a shaper of its own."""

FRAME = {"packet": "1514B", "header": "66B"}
"""A frame of Ethernet with 1448 bytes of payload."""

LINUX = {
    "profile": "rfc",
    "rto_min": "200ms",
    "rack": True,
    "rtt_per_ack": True,
    "linux_acks": True,
}
"""Settings of Linux for BBRv3 and Prague: fewer than the profile linux has."""

ACCECN = {"header": "78B"}
"""With the option of accurate ECN: 1436 bytes of payload in the same frame."""

TCPS: Mapping[str, Mapping[str, Any]] = {
    "bbr": {"name": "linux_bbr"},
    "bbr3": {"name": "bbr3", **LINUX},
    "cubic": {"name": "linux_cubic"},
    "dctcp": {"name": "linux_reno"},
    "dctcp1": {"name": "linux_dctcp", "ecn_feedback": "accurate", "ect1": True, **ACCECN},
    "ecubic": {"name": "linux_cubic", "ecn": True},
    "prague": {"name": "prague", **LINUX, **ACCECN},
    "reno": {"name": "linux_reno"},
}
"""Our sender for each name in the recordings. `dctcp` did not negotiate ECN, and is Reno then."""

PIE = "pie tupdate 30ms"
"""PIE in a kernel with 100 ticks per second, where 15 ms became 30 ms."""

LOW_LATENCY = ("prague", "dctcp1")
"""Senders whose packets carry ECT(1)."""

Row = Mapping[str, str]


@dataclass(frozen=True)
class Measured:
    """Numbers of a case, one per run."""

    goodput: np.ndarray
    """Mean goodput of a flow of group A and of group B, Mbit/s, in each row; NaN without B."""
    delay: np.ndarray
    """Queueing delay: mean and 99th percentile of ECT(1) packets, then of all others, ms."""
    signals: np.ndarray
    """Share of packets that was marked or dropped: ECT(1) packets, all others."""


def rows(path: Path = DATA) -> list[Row]:
    """Return the measurements of Linux."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def groups(row: Row) -> Iterator[tuple[str, int, str]]:
    """Iterate over letter, number of flows and sender of each group."""
    for letter in "AB":
        if count := int(row[f"{letter}_n"]):
            yield letter, count, row[f"{letter}_cc"]


def scenario(row: Row, run: int = 0, packet_log: bool = True) -> dict[str, Any]:
    """Return the scenario of a measurement, for one of our runs."""
    rtt = float(row["rtt_ms"])
    later = {"A": 0, "B": 100 + LATER_MS * run}
    flows = [
        {
            "name": f"{letter}{i}",
            "path": ["bottleneck"],
            "rtt": f"{rtt * (1 + LONGER * run):g}ms",
            "tcp": {**FRAME, **TCPS[sender]},
            "source": {"name": "bulk", "start": f"{later[letter] + 130 * i}ms"},
        }
        for letter, count, sender in groups(row)
        for i in range(count)
    ]
    tc = row["tc"]
    shaped = tc.startswith("cake")
    link = {
        "rate": SHAPED if shaped else f"{row['rate_mbit']}mbit",
        **({} if shaped else {"burst": BURST}),
        "delay": f"{rtt / 2:g}ms",
        "qdisc": f"tc: {tc.replace('pie', PIE, 1) if tc.startswith('pie') else tc}",
    }
    return {
        "duration": f"{row['secs']}s",
        "warmup": f"{row['warm_s']}s",
        "seed": run,
        "packet_log": packet_log,
        "links": {"bottleneck": link},
        "flows": flows,
    }


def numbers(row: Row, result: sj.Result) -> tuple[list[float], list[float], list[float]]:
    """Return goodputs, delays and signals of one run."""
    members = list(groups(row))
    goodput = [
        float(np.mean([result.flows[f"{letter}{i}"].goodput_bps for i in range(count)])) / 1e6
        for letter, count, _ in members
    ]
    low = np.repeat(
        [sender in LOW_LATENCY for _, _, sender in members], [count for _, count, _ in members]
    )
    log = result.links["bottleneck"].packet_log
    measured = log["arrived_s"] >= float(row["warm_s"])
    in_low = low[log["flow"]]
    delay, signals = [], []
    for chosen in (measured & in_low, measured & ~in_low):
        sent = chosen & (log["fate"] == 0)
        waits = 1e3 * (log["left_s"][sent] - log["arrived_s"][sent])
        delay += [waits.mean(), np.percentile(waits, 99)] if len(waits) else [np.nan, np.nan]
        signalled = log["marked"][chosen] | (log["fate"][chosen] != 0)
        signals.append(signalled.mean() if len(signalled) else np.nan)
    return goodput + [np.nan] * (2 - len(goodput)), delay, signals


def simulate(row: Row, run: int, packet_log: bool) -> sj.Result:
    """Simulate a case once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ecn without an ECN-capable flow
        return sj.simulate(scenario(row, run, packet_log))


def measure(row: Row, runs: int = RUNS) -> Measured:
    """Run a case several times."""
    columns = [numbers(row, simulate(row, run, packet_log=True)) for run in range(runs)]
    return Measured(*(np.array(column) for column in zip(*columns, strict=True)))


def share(goodput: np.ndarray, row: Row) -> np.ndarray:
    """Return the share of group A in the goodput of all flows, %."""
    counts = [int(row["A_n"]), int(row["B_n"])]
    total = goodput * counts
    shares: np.ndarray = 100 * total[..., 0] / total.sum(axis=-1)
    return shares


def theirs(row: Row) -> Measured:
    """Return the measurement of Linux."""

    def number(name: str) -> float:
        return float(row[name] or "nan")

    low, other = int(row["L_pkts"]) > 0, int(row["C_pkts"]) > 0
    delays = [number(f"delay_{q}_{s}_ms") for q in "LC" for s in ("mean", "p99")]
    kept = [low, low, other, other]
    return Measured(
        np.array([number("A_goodput_mean"), number("B_goodput_mean")]),
        np.where(kept, delays, np.nan),
        np.array([number("mark_prob_L"), number("signal_prob_C")]),
    )


def pair(linux: float, ours: Sequence[float] | np.ndarray, digits: int) -> str:
    """Return the value of Linux, and the mean and range of ours; empty if there is none."""
    if np.isnan(linux):
        return ""
    low, mean, high = (f"{f(ours):.{digits}f}" for f in (np.min, np.mean, np.max))
    return f"{linux:.{digits}f} / {mean} ({low}-{high})"


COLUMNS = (
    "case | A, Mbit/s | B, Mbit/s | A, % of goodput | L mean, ms | L p99, ms | C mean, ms"
    " | C p99, ms | L marked, % | C marked or dropped, %"
)


def table_row(row: Row, ours: Measured) -> str:
    """Return a row of a table."""
    linux = theirs(row)
    flows = " + ".join(f"{count} {sender}" for _, count, sender in groups(row))
    cells = [f"{row['rate_mbit']} Mbit/s, {row['rtt_ms']} ms: {flows}"]
    cells += [pair(linux.goodput[i], ours.goodput[:, i], 2) for i in (0, 1)]
    both = int(row["B_n"]) > 0
    cells.append(
        pair(float(share(linux.goodput, row)), share(ours.goodput, row), 1) if both else ""
    )
    cells += [pair(linux.delay[i], ours.delay[:, i], 2) for i in range(4)]
    cells += [pair(100 * linux.signals[i], 100 * ours.signals[:, i], 2) for i in (0, 1)]
    return "| " + " | ".join(cells) + " |"


HEAD = """# Validation of senders against Linux

GENERATED by `make validate-senders` (`python -m sojourn_lab.validation.senders`), do not edit.

In {within} of {pairs} cases with two groups of flows, the share of the first group is in the range
of ours, or less than 2 points from it; in {near} its mean differs by less than 5 points. The
goodput of a group alone differs by less than 1 % in {alone} of {singles} cases. Real senders of
Linux 7.3.4 ran through a bottleneck with one of its disciplines; sojourn ran the same scenario
{runs} times.

## Method

The network of Linux ran in user mode with a virtual clock. HTB set the rate of the bottleneck,
netem the delay; CAKE has its own shaper. All flows send all the time. A flow of group A starts
every 130 ms, the first one of group B 100 ms after group A. Packets have 1448 bytes of payload in
frames of 1514 bytes; with the option of accurate ECN, 1436 bytes. Ours are the presets
`linux_cubic`, `linux_reno`, `linux_bbr` and `linux_dctcp`, and `prague` and `bbr3` with the minimum
timeout, RACK, `rtt_per_ack` and `linux_acks` of Linux. `prague` is TCP Prague 0.7, `bbr3` the
public version 3 without ECN, `dctcp1` DCTCP with accurate feedback and ECT(1), `ecubic` CUBIC with
ECN. `dctcp` was to use ECN as well, but none of its packets was marked in any recording; it is
compared with `linux_reno`. PIE is updated every 30 ms, as in that kernel (100 ticks per second).
Where a case was repeated, each run has its row.

HTB sends a packet at once while its bucket of 1514 bytes is not overdrawn, so that two packets
leave together after an idle time, and none waits for its own transmission. The bottleneck has
`burst = "1514B"` for this. As a link that takes 3 ms to transmit a packet at 4 Mbit/s, it had other
results: Prague alone had 3.66 Mbit/s (`min_qlen_step 2`), with the bucket 3.77, as in Linux.

Many of these runs are chaotic: one lost packet can change the shares for seconds. Linux has
one run per case. To show what a small difference does, each run of ours has another seed, a start
of group B that is {later} ms later, and a round-trip time that is 0.05 % longer.

Each cell has the value of Linux, then the mean of {runs} runs of sojourn, and their range. L are
packets with ECT(1), C all others, whatever the discipline does with them. The delay is the time
from arrival to the start of transmission. Drops and marks of the runs with presets are on [another
page](validation-linux-tcp.md).

## Settings that matter

Each was found by changing one thing in ours, or by reading the source of Linux. All of it is in
`prague`, in the presets or in the scenarios of this page now.

| cause | case | Linux | without | with |
| --- | --- | --- | --- | --- |
| HTB's bucket | Prague alone, 4 Mbit/s, `min_qlen_step 2` | 3.77 Mbit/s | 3.66 | 3.77 |
| the 12 bytes of the option | Prague alone, 40 Mbit/s, 20 ms | 37.94 Mbit/s | 38.24 | 37.94 |
| `variant = "linux"` of CUBIC | 5 CUBIC under `dualpi2`: dropped | 0.251 % | 0.337 | 0.249 |
| timeouts | Prague + CUBIC under `cake diffserv4`, six starts of ten | 50.3 % | 0.3 | 50.4 |
| slow start | 10 Prague + 10 CUBIC under `fq_codel`: L p99 | 2,268 ms | 34 | 32 to 5,156 |
| `linux_acks` | Prague alone, 40 Mbit/s, 100 ms | 35.18 Mbit/s | 37.52 | 35.05 |
| `linux_acks` and PRR of RFC 9937 | 5 CUBIC under `fq_codel`, 40 Mbit/s: drops | 557 | 593 | 557 |
| reduction after a mark | DCTCP alone under `dualpi2`: marked | 7.4 % | 11.8 | 10.0 |

- **`variant = "linux"` of CUBIC**: the window grows by whole segments. The Reno estimate acts up to
  a round trip later than in RFC 9438, which is a tenth of an epoch at 10 segments.
- **Acks** (`linux_acks`): Linux's receiver acknowledges the first 16 segments of a connection at
  once, so that slow start is faster and meets the first marks with a larger window. Later it
  delays acks by the gaps between segments, and acknowledges the last segment of a burst (PSH) at
  once.
- **Pacing**: a segment that is sent late, because the window was full, shortens the gap after it,
  and the first ten segments of a connection are not paced.
- **Timeouts**: with RACK, a timeout spares what was sent within a round trip (RFC 8985, section
  6.3). Ours had declared all of it lost. A Prague with a queue of a second then went down to 100
  kbit/s, and stayed there.
- **Slow start** of Prague: an ack that reports an unmarked segment undoes the reduction, so that a
  flow may pass several marks and fill the queue for seconds. Which flow does depends on how acks
  and marks fall together (`exit_at_mark` turns it off).
- **A full window**: Prague grows only if its window was full in the round trip. At 100 kbit/s it
  sends less than one segment per round trip, so that its window of two is never full, and it stays
  there: 0.10 Mbit/s next to CUBIC at 4 Mbit/s and 20 ms in Linux and in ours. Without this rule
  ours had 0.19.
- **Reduction after a mark**: in the round trip after it, the window is reduced gradually and does
  not grow.

## Remaining differences

- **DCTCP with accurate feedback** has more marks alone (7.4 and 8.3 %), and less than in Linux
  next to CUBIC, where the three runs of Linux are 7 points apart. Not explained.
- **BBRv3 behind HTB**: after ProbeRTT the full bucket lets one packet more through in a round trip,
  1.5 % of its window. Ours takes this for bandwidth, sends 0.5 % too fast for seconds, and has a
  queue of 2.7 ms (Linux 1.35) and 36.2 Mbit/s (36.9) under `codel`. With `burst = "0B"` it has 1.2
  ms and 37.1 Mbit/s. Why Linux is not misled is not known; bursts of a millisecond, as its
  segmentation offload makes them, did not change it.
- **CUBIC alone at 4 Mbit/s** under `codel` has a queue of 7.3 ms and 1.01 % dropped in Linux, 8.2
  ms and 1.06 % in ours. Without `linux_acks`, and without growth by the ack that ends a recovery,
  it was 7.7 ms and 1.03 %, but both are in the source of Linux. Not explained.
- **CUBIC alone at 100 ms** has one of several goodputs, such as 34.7 and 35.9 Mbit/s under `codel`:
  one segment more or less at a loss decides about fast convergence. Linux has 34.9.
- **No random numbers** (`pfifo`, `codel`): two flows fall into step, and a shift of the start by 17
  ms, or of the round-trip time by 0.05 %, changes their shares by up to 30 points. Most cases
  outside the range of ours are of this kind, such as BBRv3 and CUBIC under `pfifo`: 60 % in
  Linux, in ours 20 to 60 % over all starts that were tried, with means of 39 to 47.
- **PIE at 100 ms** (82 %, ours 91): a run has ten to twenty losses of CUBIC, so that the random
  numbers of PIE decide.
- Linux sends bursts of several segments (segmentation offload) where sojourn sends one at a time,
  and its HyStart ends slow start earlier than HyStart++. What that changes was not measured.
- Two flows shared a queue of `fq_codel` in one of the ten runs, by their hashes: the shares near 90
  % in some ranges.
"""


def page(results: Sequence[tuple[Row, Measured]]) -> str:
    """Return the page."""
    sections: dict[str, list[str]] = {}
    gaps, outside, errors = [], [], []
    for row, ours in results:
        sections.setdefault(row["tc"], []).append(table_row(row, ours))
        linux = theirs(row)
        if int(row["B_n"]):
            recorded, shares = float(share(linux.goodput, row)), share(ours.goodput, row)
            gaps.append(abs(shares.mean() - recorded))
            outside.append(max(recorded - shares.max(), shares.min() - recorded))
        else:
            errors.append(abs(ours.goodput[:, 0].mean() / linux.goodput[0] - 1))
    text = HEAD.format(
        runs=RUNS,
        later=LATER_MS,
        within=sum(gap < 2 for gap in outside),
        near=sum(gap < 5 for gap in gaps),
        pairs=len(gaps),
        alone=sum(error < 0.01 for error in errors),
        singles=len(errors),
    )
    rule = "| " + " | ".join("---" for _ in COLUMNS.split("|")) + " |"
    for tc, lines in sections.items():
        text += "\n".join(["", f"## `{tc}`", "", f"| {COLUMNS} |", rule, *lines, ""])
    return text + l4s.section() + overload.section()


def main() -> None:
    """Run all cases and write the page."""
    parser = argparse.ArgumentParser(prog="sojourn_lab.validation.senders", description=__doc__)
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    results = []
    for row in rows():
        print(row["name"], flush=True)
        results.append((row, measure(row)))
    options.out.write_text(page(results))


if __name__ == "__main__":
    main()
