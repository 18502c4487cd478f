"""Compare impaired links with netem, and write reports/validation-netem.md with its figures."""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from matplotlib.figure import Figure

from sojourn_lab import ROOT
from sojourn_lab.validation.netem.cases import CASES, Case
from sojourn_lab.validation.netem.measure import Arrivals, kernel, live, simulated

DELAYS = "validation-netem.svg"
LOSSES = "validation-netem-losses.svg"

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

Results: TypeAlias = list[tuple[Case, dict[str, Arrivals]]]

HEAD = """# Impaired links compared with netem

A link with jitter, reordering, loss, duplication, corruption, slots or a limit of packets in
flight treats packets as the netem of Linux does, in a simulation and on real packets. netem ran in
Debian's user-mode Linux 6.1, on its loopback device; the simulated wire had the same packets at the
same times; the live link had pings, and was impaired in one direction. The random numbers differ,
so the figures differ by chance.

`make validate-netem` writes this page, `python -m sojourn_lab.validation.netem --counted` its
second part only; `lab/tests/test_netem.py` compares the cases with netem.
"""

TABLE = """
| case | words of netem | | netem | simulated | live |
|---|---|---|---|---|---|
"""

DELAYS_HEAD = """
## Delays

netem had {packets} datagrams, one per {gap} ms, the live link {live_packets} pings, one per
{live_gap} ms. Both ran on the clock of a shared machine, which adds up to some milliseconds; the
simulation has no such error.

![Distributions of delay](figures/{figure})
"""

DELAYS_TAIL = """
A packet counts as reordered if it arrives after a packet that was sent later (RFC 4737). Pings have
sequence numbers from one sender, so a live delay includes the way back, which is not impaired. On a
busy machine `ping` sends more slowly than its interval says, so fewer packets overtake each other
live, and 50 are never in flight.

Delays of netem are independent even with a correlation, because it takes the remainder of the
correlated number: of 0.5, {netem_correlation:.2f} is left. Here it is {our_correlation:.2f}, which
makes delays far from the mean rarer.

As in netem, the values of `normal`, `pareto` and `paretonormal` end at 4 times the jitter, like
tc's tables.
"""

LOSSES_TITLE = "\n## Losses and copies\n"

LOSSES_HEAD = """
These figures do not depend on the clock of the machine. netem had {packets} datagrams, the live
link {live_packets} pings. ± is the standard error, from batches of {batch} packets.

![Runs of losses](figures/{figure})
"""

LOSSES_TAIL = """
In the long run, the model of four states loses {four_states:.1f} % of the packets, and the one of
Gilbert and Elliott {two_states:.1f} %.

Corrupt packets count as lost: their receiver drops them. As in netem, probabilities are not met
with a correlation: a probability of 30 % with a correlation of 25 % loses about {correlated:.0f} %
of the packets.
"""

BATCH = 250
"""Packets of a batch; bursts of losses are much shorter."""


def _value(key: str, arrivals: Arrivals, *, error: bool) -> str:
    value = arrivals.figures()[key]
    if key in ("reordered", "lost", "duplicated"):
        chance = f" ± {100 * arrivals.error(key, BATCH):.1f}" if error else ""
        return f"{100 * value:.1f}{chance} %"
    return f"{value:.1f}" if "ms" in key else f"{value:.2f}"


def table(results: Results) -> str:
    """Return a table of the page."""
    lines = []
    for case, by_system in results:
        for i, key in enumerate(SHOWN[case.kind]):
            head = f"| {case.name} | `{case.words}` |" if i == 0 else "| | |"
            cells = (_value(key, by_system[name], error=case.is_counted) for name in SYSTEMS)
            lines.append(f"{head} {key} | {' | '.join(cells)} |")
    return TABLE + "\n".join(lines) + "\n"


def _panels(results: Results, path: Path) -> None:
    """Draw a panel for each case: its delays, or its runs of losses."""
    rows = (len(results) + 1) // 2
    drawing = Figure(figsize=(9, 2.6 * rows), layout="constrained")
    axes = list(drawing.subplots(rows, 2).flat)
    styles = {"netem": "-", "simulated": "--", "live": ":"}
    for ax, (case, by_system) in zip(axes, results, strict=False):
        for name, arrivals in by_system.items():
            if case.kind == "jitter":
                delays = np.sort(arrivals.delay_s[arrivals.first] * 1e3)
                ax.plot(delays, np.linspace(0, 1, len(delays)), styles[name], label=name)
                ax.set_xlabel("delay, ms")
                ax.set_ylabel("share of packets")
            else:
                runs = arrivals.runs()
                lengths = np.arange(1, 11)
                share = [(runs >= n).mean() for n in lengths]
                ax.semilogy(lengths, share, styles[name], marker="o", label=name)
                ax.set_xlabel("length of a run of losses, at least")
                ax.set_ylabel("share of runs")
        ax.set_title(case.name)
        ax.legend()
    for ax in axes[len(results) :]:
        ax.set_axis_off()
    drawing.savefig(path, metadata={"Date": None})


def _measured(
    cases: Sequence[Case], packets: int, gap_us: int, live_packets: int, live_gap_us: int
) -> Results:
    """Return the arrivals of each case over netem, a simulated wire and a live link."""
    with tempfile.TemporaryDirectory() as folder:
        of_kernel = kernel(cases, packets, gap_us, Path(folder))
    results = []
    for case, of_netem in zip(cases, of_kernel, strict=True):
        by_system = {"netem": of_netem, "simulated": simulated(case, of_netem.sent_ns)}
        by_system["live"] = live(case, live_packets, live_gap_us)
        results.append((case, by_system))
    return results


def _delays(out: Path, packets: int, gap_us: int, live_packets: int) -> str:
    """Return the part of the page about delays, and write its figure."""
    cases = [case for case in CASES if not case.is_counted]
    results = _measured(cases, packets, gap_us, live_packets, 2 * gap_us)
    _panels([one for one in results if one[0].kind == "jitter"], out / "figures" / DELAYS)
    (jitter,) = (by for case, by in results if case.name == "jitter, correlation 0.5")
    head = DELAYS_HEAD.format(
        packets=packets,
        gap=gap_us / 1000,
        live_packets=live_packets,
        live_gap=2 * gap_us / 1000,
        figure=DELAYS,
    )
    tail = DELAYS_TAIL.format(
        netem_correlation=jitter["netem"].correlation(),
        our_correlation=jitter["simulated"].correlation(),
    )
    return head + table(results) + tail


def _losses(out: Path, packets: int, gap_us: int, live_packets: int) -> str:
    """Return the part of the page about losses and copies, and write its figure."""
    cases = [case for case in CASES if case.is_counted]
    results = _measured(cases, packets, gap_us, live_packets, 1000)
    _panels([one for one in results if one[0].kind == "loss"], out / "figures" / LOSSES)
    (correlated,) = (by for case, by in results if case.name == "loss, correlation 0.25")
    head = LOSSES_HEAD.format(
        packets=packets, live_packets=live_packets, batch=BATCH, figure=LOSSES
    )
    names = ("loss, four states", "loss, Gilbert-Elliott")
    four_states, two_states = (100 * long_run(case) for case in cases if case.name in names)
    tail = LOSSES_TAIL.format(
        four_states=four_states,
        two_states=two_states,
        correlated=100 * correlated["simulated"].figures()["lost"],
    )
    return LOSSES_TITLE + head + table(results) + tail


def long_run(case: Case) -> float:
    """Return the share of packets that a model of bursts loses in the long run."""
    loss = case.link["loss"]
    if "p" in loss:
        bad = loss["p"] / (loss["p"] + loss["r"])
        return float(bad * loss["1-h"] + (1 - bad) * loss["1-k"])
    # Shares of the states, relative to state 1; changes from and to a state are equally frequent.
    burst_loss = loss["p13"] / loss["p31"]
    burst = burst_loss * loss["p32"] / loss["p23"]
    alone = loss["p14"]
    return float((burst_loss + alone) / (1 + burst_loss + burst + alone))


def main() -> None:
    """Write the page and its figures."""
    parser = argparse.ArgumentParser(prog="netem", description=__doc__)
    parser.add_argument("--packets", type=int, default=5000)
    parser.add_argument("--gap-us", type=int, default=1000)
    parser.add_argument("--live-packets", type=int, default=1500)
    parser.add_argument("--counted-packets", type=int, default=50_000)
    parser.add_argument("--live-counted-packets", type=int, default=20_000)
    parser.add_argument(
        "--counted", action="store_true", help="only the part about losses and copies"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "reports")
    options = parser.parse_args()
    page = options.out / "validation-netem.md"
    (options.out / "figures").mkdir(parents=True, exist_ok=True)
    if options.counted:
        delays = page.read_text().partition(LOSSES_TITLE)[0]
    else:
        delays = HEAD + _delays(options.out, options.packets, options.gap_us, options.live_packets)
    losses = _losses(options.out, options.counted_packets, 200, options.live_counted_packets)
    page.write_text(delays + losses)


if __name__ == "__main__":
    main()
