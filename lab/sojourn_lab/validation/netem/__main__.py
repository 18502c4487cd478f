"""Compare impaired links with netem, and write reports/validation-netem.md with its figure."""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from sojourn_lab import ROOT
from sojourn_lab.validation.netem.cases import CASES, Case
from sojourn_lab.validation.netem.measure import Arrivals, kernel, live, simulated

FIGURE = "validation-netem.svg"

SHOWN = {
    "jitter": ("mean delay, ms", "standard deviation, ms", "5 %, ms", "95 %, ms", "reordered"),
    "reorder": ("mean delay, ms", "50 %, ms", "reordered"),
    "loss": ("lost", "run of losses"),
    "duplicate": ("duplicated",),
    "corrupt": ("lost",),
    "slots": ("mean delay, ms", "5 %, ms", "95 %, ms"),
    "limit": ("lost",),
}
"""Figures of each kind of case, by the first word of its name."""

SYSTEMS = ("netem", "simulated", "live")

HEAD = """# Impaired links compared with netem

A link with jitter, reordering, loss, duplication, corruption, slots or a limit of packets in
flight treats packets as the netem of Linux does, in a simulation and on real packets. netem ran in
Debian's user-mode Linux 6.1, on its loopback device with {packets} datagrams, one per {gap} ms; the
simulated wire had the same packets at the same times; the live link had {live_packets} pings, one
per {live_gap} ms, and was impaired in one direction. The random numbers differ, so the figures
differ by chance: a share of 10 % has a standard error of {error:.1f} percentage points. netem and
the live link run on the clock of a shared machine, which adds up to some milliseconds; the
simulation has no such error.

`make validate-netem` writes this page; `lab/tests/test_netem.py` compares its cases with netem.

![Delays and runs of losses](figures/{figure})

| case | words of netem | | netem | simulated | live |
|---|---|---|---|---|---|
"""

TAIL = """
A packet counts as reordered if it arrives after a packet that was sent later (RFC 4737). Corrupt
packets count as lost: their receiver drops them. Pings have sequence numbers from one sender, so a
live delay includes the way back, which is not impaired. On a busy machine `ping` sends more slowly
than its interval says, so fewer packets overtake each other live, and 50 are never in flight.

Delays of netem are independent even with a correlation, because it takes the remainder of the
correlated number: of 0.5, {netem_correlation:.2f} is left. Here it is {our_correlation:.2f}, which
makes delays far from the mean rarer.

Of netem we keep two properties that surprise. With a correlation, probabilities are not met: a
probability of 30 % with a correlation of 25 % loses about {correlated:.0f} % of the packets. And
the values of `normal`, `pareto` and `paretonormal` end at 4 times the jitter, as tc's tables do.
"""


def _value(key: str, value: float) -> str:
    if key in ("reordered", "lost", "duplicated"):
        return f"{100 * value:.1f} %"
    return f"{value:.1f}" if "ms" in key else f"{value:.2f}"


def table(results: list[tuple[Case, dict[str, Arrivals]]]) -> str:
    """Return the rows of the page."""
    lines = []
    for case, by_system in results:
        figures = {name: arrivals.figures() for name, arrivals in by_system.items()}
        for i, key in enumerate(SHOWN[case.name.split()[0].rstrip(",")]):
            head = f"| {case.name} | `{case.words}` |" if i == 0 else "| | |"
            cells = (_value(key, figures[name][key]) if name in figures else "" for name in SYSTEMS)
            lines.append(f"{head} {key} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def figure(results: list[tuple[Case, dict[str, Arrivals]]], path: Path) -> None:
    """Draw the distributions of delay of the cases with jitter, and of runs of losses."""
    chosen = [one for one in results if one[0].name.startswith(("jitter", "loss, "))]
    drawing = Figure(figsize=(9, 2.6 * ((len(chosen) + 1) // 2)), layout="constrained")
    axes = drawing.subplots((len(chosen) + 1) // 2, 2).flat
    styles = {"netem": "-", "simulated": "--", "live": ":"}
    for ax, (case, by_system) in zip(axes, chosen, strict=False):
        for name, arrivals in by_system.items():
            if case.name.startswith("jitter"):
                delays = np.sort(arrivals.delay_s[arrivals.first] * 1e3)
                ax.plot(delays, np.linspace(0, 1, len(delays)), styles[name], label=name)
                ax.set_xlabel("delay, ms")
                ax.set_ylabel("share of packets")
            else:
                lost = np.pad(arrivals.lost.astype(int), 1)
                runs = np.diff(np.flatnonzero(np.diff(lost)))[::2]
                lengths = np.arange(1, 11)
                share = [(runs >= n).mean() for n in lengths]
                ax.semilogy(lengths, share, styles[name], marker="o", label=name)
                ax.set_xlabel("length of a run of losses, at least")
                ax.set_ylabel("share of runs")
        ax.set_title(case.name)
        ax.legend()
    drawing.savefig(path, metadata={"Date": None})


def main() -> None:
    """Write the page and its figure."""
    parser = argparse.ArgumentParser(prog="netem", description=__doc__)
    parser.add_argument("--packets", type=int, default=5000)
    parser.add_argument("--gap-us", type=int, default=1000)
    parser.add_argument("--live-packets", type=int, default=1500)
    parser.add_argument("--out", type=Path, default=ROOT / "reports")
    options = parser.parse_args()
    packets, gap = options.packets, options.gap_us
    with tempfile.TemporaryDirectory() as folder:
        of_kernel = kernel(CASES, packets, gap, Path(folder))
    results = []
    for case, of_netem in zip(CASES, of_kernel, strict=True):
        by_system = {"netem": of_netem, "simulated": simulated(case, of_netem.sent_ns)}
        by_system["live"] = live(case, options.live_packets, 2 * gap)
        results.append((case, by_system))
    (options.out / "figures").mkdir(exist_ok=True)
    figure(results, options.out / "figures" / FIGURE)
    (correlated,) = (r["simulated"] for c, r in results if c.name == "loss, correlation 0.25")
    error = 100 * (0.09 / packets) ** 0.5
    head = HEAD.format(
        packets=packets,
        gap=gap / 1000,
        live_packets=options.live_packets,
        live_gap=2 * gap / 1000,
        error=error,
        figure=FIGURE,
    )
    (jitter,) = (r for c, r in results if c.name == "jitter, correlation 0.5")
    tail = TAIL.format(
        correlated=100 * correlated.figures()["lost"],
        netem_correlation=jitter["netem"].correlation(),
        our_correlation=jitter["simulated"].correlation(),
    )
    (options.out / "validation-netem.md").write_text(head + table(results) + tail)


if __name__ == "__main__":
    main()
