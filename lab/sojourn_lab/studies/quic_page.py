"""The page about QUIC stacks: `make quic-study` writes reports/quic-study.md and its figure."""

import argparse
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from sojourn.result.statistics import Interval, interval
from sojourn_lab import ROOT
from sojourn_lab.studies import quic
from sojourn_lab.studies.quic import Case, Run

PAGE = ROOT / "reports" / "quic-study.md"
FIGURE = PAGE.with_suffix(".svg")
TEXT = Path(__file__).with_name("quic.md")
SEEDS = 10

TARGETS_S = {"codel": 0.005, "fq_codel": 0.005, "cake": 0.005, "pie": 0.015, "dualpi2": 0.015}
"""Target of each discipline that has one."""

DELAY_FACTOR, SIGNAL_FACTOR, GOODPUT_FACTOR, JAIN_FACTOR = 1.5, 5, 0.95, 0.75
"""Limits of misbehaviour, as ratios to sojourn's CUBIC with the same flows and discipline."""

COMPARED = ("p50_s", "signals", "total_mbps", "jain")
"""Properties of runs that are compared."""

Results = Mapping[Case, Sequence[Run]]


def mean(results: Results, case: Case, what: str) -> Interval:
    """Return the mean of a property of the runs of a case."""
    return interval([getattr(run, what) for run in results[case]])


def short(qdisc: str) -> str:
    """Return the name of a discipline without its parameters."""
    return qdisc.partition("(")[0]


def faults(results: Results, case: Case) -> list[str]:
    """Return the misbehaviour of a case, in words: compared with sojourn's CUBIC."""
    _, _, flows, qdisc = case
    usual = (quic.OURS, "cubic", flows, qdisc)
    value = {what: mean(results, case, what).mean for what in COMPARED}
    ratio = {what: value[what] / max(mean(results, usual, what).mean, 1e-9) for what in COMPARED}
    words = []
    if value["p50_s"] > TARGETS_S.get(short(qdisc), 1) and ratio["p50_s"] > DELAY_FACTOR:
        words.append(f"{ratio['p50_s']:.1f} times the delay")
    if value["signals"] > 0.01 and ratio["signals"] > SIGNAL_FACTOR:
        shares = {what: 100 * mean(results, case, what).mean for what in ("dropped", "marked")}
        words += [f"{share:.0f} % {what}" for what, share in shares.items() if share >= 1]
    if ratio["total_mbps"] < GOODPUT_FACTOR:
        words.append(f"{100 * ratio['total_mbps']:.0f} % of the goodput")
    if ratio["jain"] < JAIN_FACTOR:
        words.append(f"Jain's index {value['jain']:.2f}")
    return words


def where(results: Results) -> str:
    """Return the table of misbehaviour: a row per sender, a column per discipline."""
    names = [f"`{short(qdisc)}`" for qdisc in quic.QDISCS]
    lines = [f"| sender | {' | '.join(names)} |", "|---" * (1 + len(names)) + "|"]
    counts = sorted({case[2] for case in results})
    for stack, control in quic.SENDERS:
        cells = []
        for qdisc in quic.QDISCS:
            by_flows = {n: faults(results, (stack, control, n, qdisc)) for n in counts}
            parts = [f"{n}: {', '.join(words)}" for n, words in by_flows.items() if words]
            cells.append("<br>".join(parts))
        lines.append(f"| {stack} {control} | {' | '.join(cells)} |")
    return "\n".join(lines)


def table(results: Results, flows: int) -> str:
    """Return the table of all measurements with this number of flows."""
    lines = [
        "| discipline | stack | control | goodput, Mbit/s | delay 50 %, ms | delay 99 %, ms "
        "| dropped, % | marked, % | Jain |",
        "|---" * 9 + "|",
    ]
    columns = [("total_mbps", 1.0, 2), ("p50_s", 1e3, 1), ("p99_s", 1e3, 1)]
    columns += [("dropped", 100.0, 2), ("marked", 100.0, 2), ("jain", 1.0, 2)]
    for case in results:
        stack, control, count, qdisc = case
        if count == flows and qdisc in quic.QDISCS:
            cells = [f"`{short(qdisc)}`", stack, control]
            for what, factor, digits in columns:
                m = mean(results, case, what)
                cells.append(f"{factor * m.mean:.{digits}f} ± {factor * m.half:.{digits}f}")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


COLOURS = {"quinn": "#d55e00", "s2n-quic": "#0072b2", quic.OURS: "#009e73"}
MARKERS = {"cubic": "o", "bbr": "^"}


def draw(results: Results, path: Path) -> None:
    """Draw the figure: delay and the share of dropped or marked packets, by number of flows."""
    counts = sorted({case[2] for case in results})
    with plt.rc_context({"svg.hashsalt": "quic-study", "font.size": 9}):
        fig, axes = plt.subplots(
            2, len(counts), figsize=(10, 6), sharex=True, sharey="row", layout="constrained"
        )
        rows: list[tuple[str, float, str]] = [
            ("p50_s", 1e3, "median queueing delay, ms"),
            ("signals", 100, "dropped or marked, %"),
        ]
        for row, (what, factor, title) in zip(axes, rows, strict=True):
            row[0].set_ylabel(title)
            for ax, flows in zip(row, counts, strict=True):
                _panel(ax, flows, partial(_scaled, results, what, factor))
        for ax, flows in zip(axes[0], counts, strict=True):
            ax.set_title(f"{flows} flow{'s' * (flows > 1)}")
            ax.set_yscale("log")
        handles, labels = axes[0][0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside upper center", ncols=len(quic.SENDERS))
        fig.savefig(path, metadata={"Date": None})
        plt.close(fig)


def _scaled(results: Results, what: str, factor: float, case: Case) -> tuple[float, float]:
    m = mean(results, case, what)
    return factor * m.mean, factor * m.half


def _panel(ax: Any, flows: int, value: Callable[[Case], tuple[float, float]]) -> None:
    places = np.arange(len(quic.QDISCS))
    for i, (stack, control) in enumerate(quic.SENDERS):
        points = [value((stack, control, flows, qdisc)) for qdisc in quic.QDISCS]
        ax.errorbar(
            places + (i - 2.5) * 0.12,
            [point[0] for point in points],
            yerr=[point[1] for point in points],
            fmt=MARKERS[control],
            markersize=4,
            capsize=2,
            color=COLOURS[stack],
            markerfacecolor=COLOURS[stack] if control == "cubic" else "white",
            label=f"{stack} {control}",
        )
    ax.set_xticks(places, [short(qdisc) for qdisc in quic.QDISCS], rotation=30)
    ax.grid(axis="y", alpha=0.3)


def span(values: Sequence[float], digits: int = 0) -> str:
    """Return the least and the greatest of `values` as text."""
    low, high = (f"{x:.{digits}f}" for x in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def conclusions(results: Results) -> str:
    """Return the answer as a list in Markdown.

    Raises
    ------
    SystemExit
        If a statement of it does not hold in `results`.
    """
    counts = sorted({case[2] for case in results})
    aqms = [qdisc for qdisc in quic.QDISCS if short(qdisc) in TARGETS_S]

    def means(stack: str, control: str, what: str, qdiscs: Sequence[str] = aqms) -> list[float]:
        return [
            mean(results, (stack, control, n, qdisc), what).mean for qdisc in qdiscs for n in counts
        ]

    dropping = [qdisc for qdisc in ("codel", "pie") if qdisc in aqms]
    lost = means("quinn", "bbr", "dropped", dropping)
    marked = means("quinn", "bbr", "marked", ["fq_codel", "cake"])
    crowd = (quic.STACKS[0], "bbr", max(counts), quic.QDISCS[0])
    delays = {
        qdisc: [1e3 * x for x in means("s2n-quic", "bbr", "p50_s", [qdisc])]
        for qdisc in ("fq_codel", quic.WITHOUT_ECN)
    }
    alone = {s: 1e3 * mean(results, (s, "cubic", 1, "codel"), "p50_s").mean for s in quic.STACKS}
    used = {s: mean(results, (s, "cubic", 2, "cake"), "total_mbps").mean for s in quic.STACKS}
    gaps = {
        what: [
            abs(theirs - ours)
            for theirs, ours in zip(
                means("quinn", "cubic", what), means(quic.OURS, "cubic", what), strict=True
            )
        ]
        for what in ("p50_s", "total_mbps")
    }
    checks = {
        "quinn's BBR loses much": min(lost) > 0.15,
        "quinn's BBR is marked": min(marked) > 0.5,
        "quinn's BBR is unfair with tail drop": mean(results, crowd, "jain").mean < 0.6,
        "s2n-quic's BBR is slower with drops": all(
            with_ecn > 1.2 * without
            for with_ecn, without in zip(*(delays[q] for q in delays), strict=True)
        ),
        "s2n-quic's CUBIC has bursts": alone["s2n-quic"] > 2 * alone["quinn"],
        "s2n-quic's CUBIC uses less": used["s2n-quic"] < used["quinn"],
        "quinn's CUBIC is near ours": max(gaps["p50_s"]) < 0.01 and max(gaps["total_mbps"]) < 0.3,
    }
    failed = [name for name, holds in checks.items() if not holds]
    if failed:
        raise SystemExit(f"does not hold: {', '.join(failed)}")
    lost, marked = [100 * x for x in lost], [100 * x for x in marked]
    text = f"""
- **quinn's BBR misbehaves everywhere.** `codel` and `pie` drop {span(lost)} % of its packets,
  `fq_codel` and `cake` mark {span(marked)} %, and it does not slow down. Eight flows with tail
  drop lose {100 * mean(results, crowd, "dropped").mean:.0f} % of their packets and share the link
  unfairly (Jain's index {mean(results, crowd, "jain").mean:.2f}).
- **s2n-quic's BBR misbehaves where packets are marked.** With `fq_codel` its median queueing delay
  is {span(delays["fq_codel"])} ms, growing with the number of flows; if `fq_codel` drops in place
  of marking, it is {span(delays[quic.WITHOUT_ECN])} ms.
- **s2n-quic's CUBIC sends bursts.** One flow through `codel` has a median queueing delay of
  {alone["s2n-quic"]:.1f} ms, one of quinn {alone["quinn"]:.1f} ms; two through `cake` have
  {used["s2n-quic"]:.2f} Mbit/s, two of quinn {used["quinn"]:.2f}.
- **quinn's CUBIC behaves as RFC 9002 asks.** With every AQM, its goodput is within
  {max(gaps["total_mbps"]):.2f} Mbit/s and its median delay within {1e3 * max(gaps["p50_s"]):.1f} ms
  of the values of sojourn's CUBIC."""
    return "\n".join(filled(part) for part in text.strip().split("\n- "))


def filled(item: str) -> str:
    """Return an item of a list with lines of 100 columns."""
    words = " ".join(item.removeprefix("- ").split())
    return textwrap.fill(words, 100, initial_indent="- ", subsequent_indent="  ")


def page(results: Results, seeds: int) -> str:
    """Return the text of the page."""
    parts = {
        "conclusions": conclusions(results),
        "where": where(results),
        "seeds": str(seeds),
        "warmup": str(quic.WARMUP_S),
        "measured": str(quic.MEASURED_S),
    }
    parts |= {f"flows {n}": table(results, n) for n in quic.FLOWS}
    text = TEXT.read_text()
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", part)
    return text


def main() -> None:
    """Run all cases; write the page and its figure."""
    parser = argparse.ArgumentParser(prog="quic-study", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--program", type=Path, default=quic.PROGRAM, help="program of adapters")
    parser.add_argument("--keep", type=Path, help="file of runs; those in it are not repeated")
    options = parser.parse_args()
    results = quic.measured(quic.cases(), options.seeds, options.program, options.keep)
    draw(results, FIGURE)
    PAGE.write_text(page(results, options.seeds))


if __name__ == "__main__":
    main()
