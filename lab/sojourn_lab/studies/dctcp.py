"""DCTCP's figures 1, 12, 13 and 18 to 21 and its table 2 (Alizadeh et al., SIGCOMM 2010).

`make dctcp-study` writes reports/dctcp-study.md and its figure. All seeds are fixed.
"""

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import sojourn as sj
from sojourn.result.statistics import interval
from sojourn_lab import ROOT
from sojourn_lab.studies import dctcp_incast as incast
from sojourn_lab.studies import dctcp_pressure as pressure
from sojourn_lab.studies import dctcp_queues as queues
from sojourn_lab.studies.axes import label_decades
from sojourn_lab.studies.dctcp_set_up import SEEDS, cell, figure, mean, rows, share

PAGE = ROOT / "reports" / "dctcp-study.md"
FIGURE = PAGE.with_suffix(".svg")


@dataclass(frozen=True)
class Study:
    """Measures of all figures."""

    ports: dict[tuple[int, str], queues.Port]
    waves: dict[queues.Case, list[queues.Oscillation]]
    static: incast.Curves
    shared: incast.Curves
    causes: incast.Curves
    every: dict[str, incast.Queries]
    loaded: dict[str, pressure.Times]
    short: dict[str, pressure.Times]


def run(seeds: int) -> Study:
    """Run everything; figure 20 and table 2 have half as many seeds."""
    with warnings.catch_warnings():
        # Clocks of 10 ms on paths of 100 us are what one of the settings is about.
        warnings.simplefilter("ignore", sj.ScenarioWarning)
        return Study(
            queues.queues(seeds),
            queues.analysis(seeds),
            incast.curves(incast.STATIC, seeds),
            incast.curves(incast.SHARED, seeds, (10, 20, 30, 40)),
            incast.curves(incast.CAUSES, seeds, (30, 35, 40, 45, 50, 60)),
            incast.every_host(seeds // 2),
            pressure.pressure(seeds // 2),
            pressure.build_up(seeds),
        )


@dataclass(frozen=True)
class Statement:
    """A result of the paper, ours, and whether ours agrees; `expected` is what the page says."""

    subject: str
    paper: str
    ours: str
    agrees: bool
    expected: bool = True

    @property
    def cells(self) -> list[str]:
        """The row of the table."""
        return [self.subject, self.paper, self.ours, "holds" if self.agrees else "does not hold"]


def _long(study: Study) -> list[Statement]:
    ours, other = (study.ports[2, label] for label in ("DCTCP", "TCP"))
    many = study.ports[20, "DCTCP"]
    rates = [mean(one.goodput) for one in study.ports.values()]
    middle, tall = mean(ours.quantile(50)), mean(other.quantile(50))
    width = [mean(one.quantile(95)) - mean(one.quantile(5)) for one in (ours, other)]
    return [
        Statement(
            "figures 1, 13: goodput",
            "0.95 Gbit/s with both",
            f"{min(rates):.2f} to {max(rates):.2f} Gbit/s",
            all(0.93 < one < 0.98 for one in rates),
        ),
        Statement(
            "figures 1, 13: queue of DCTCP, 2 and 20 flows",
            "about K + n, with K = 20 packets",
            f"median {cell(ours.quantile(50))} and {cell(many.quantile(50))}, "
            f"most {cell(ours.quantile(100))} and {cell(many.quantile(100))}",
            middle < 26 and mean(many.quantile(100)) < 44,
        ),
        Statement(
            "figures 1, 13: queue of TCP, 2 flows",
            "10 times as long, and wide",
            f"{figure(tall / middle)} times as long; {figure(width[1])} packets between 5 % and "
            f"95 % (DCTCP {figure(width[0])})",
            tall > 10 * middle and width[1] > 10 * width[0],
        ),
    ]


def _waves(study: Study) -> list[Statement]:
    base = {case.count: (case, runs) for case, runs in study.waves.items() if _is_paper(case)}

    def ratio(count: int, what: str) -> float:
        case, runs = base[count]
        return mean(getattr(one, what) for one in runs) / float(getattr(case, what))

    highest = {
        n: mean(one.highest for one in runs) - case.k - n for n, (case, runs) in base.items()
    }
    return [
        Statement(
            "figure 12: largest queue, N = 2, 10, 40",
            "K + N",
            ", ".join(f"K + N {round(by):+d}" for by in highest.values()) + " packets",
            all(abs(by) < 4 for by in highest.values()),
        ),
        Statement(
            "figure 12: amplitude, N = 2, 10",
            "0.5 sqrt(2 N (C RTT + K))",
            f"{ratio(2, 'amplitude'):.2f} and {ratio(10, 'amplitude'):.2f} times that",
            all(0.8 < ratio(n, "amplitude") < 1.2 for n in (2, 10)),
        ),
        Statement(
            "figure 12: amplitude, N = 40",
            "below the prediction",
            f"{ratio(40, 'amplitude'):.2f} times that",
            ratio(40, "amplitude") < 1,
            expected=False,
        ),
        Statement(
            "figure 12: period, N = 2",
            "0.5 sqrt(2 (C RTT + K) / N) RTTs",
            f"{ratio(2, 'period'):.2f} times that",
            0.8 < ratio(2, "period") < 1.2,
        ),
        Statement(
            "figure 12: period, N = 10, 40",
            "the same",
            f"{ratio(10, 'period'):.1f} and {ratio(40, 'period'):.1f} times that",
            all(0.8 < ratio(n, "period") < 1.2 for n in (10, 40)),
            expected=False,
        ),
    ]


def _is_paper(case: queues.Case) -> bool:
    return case.label == "RFC 8257" and case.rtt_us == 100 and not case.spread_us


def joins(curve: dict[int, incast.Queries]) -> int | None:
    """Return the smallest number of servers with which 5 % of the queries have a timeout."""
    return next((n for n, one in sorted(curve.items()) if mean(one.timeouts) >= 0.05), None)


def _incast(study: Study) -> list[Statement]:
    plain, ours = study.static["TCP, 10 ms"], study.static["DCTCP, 10 ms"]
    floor = min(mean(one.mean_ms) for one in ours.values())
    first = joins(plain)
    last = joins(ours)
    shared = [one.timeouts for one in study.shared["DCTCP, 10 ms"].values()]
    every = {label: one.timeouts for label, one in study.every.items()}
    theirs = every["TCP, persistent connections"]
    own = every["DCTCP, persistent connections"]
    return [
        Statement("figure 18: floor", "8 ms", f"{floor:.1f} ms", 8 <= floor < 9),
        Statement(
            "figure 18: TCP has timeouts",
            "above 10 servers",
            f"5 % of the queries from {first} servers on",
            first is not None and 5 < first <= 15,
        ),
        Statement(
            "figure 18: DCTCP joins TCP",
            "at 35 servers",
            f"at {last}; none of the queries up to {_clean(ours)}",
            last is not None and 30 <= last <= 40,
            expected=False,
        ),
        Statement(
            "figure 19: dynamic buffer, DCTCP",
            "no timeouts up to 40 servers",
            f"{share(np.max(shared, axis=0))} % of the queries",
            float(np.max(shared)) == 0,
        ),
        Statement(
            "figure 20: all-to-all, queries with timeouts",
            "TCP more than 55 %, DCTCP none",
            f"TCP {share(theirs)} %, DCTCP {100 * mean(own):.1f} %",
            mean(theirs) > 0.55 and mean(own) < 0.005,
        ),
    ]


def _clean(curve: dict[int, incast.Queries]) -> int:
    """Return the largest number of servers up to which no query has a timeout."""
    clean = 0
    for count, one in sorted(curve.items()):
        if mean(one.timeouts) > 0:
            break
        clean = count
    return clean


def _pressure(study: Study) -> list[Statement]:
    ours, theirs = (study.loaded[label] for label in ("DCTCP", "TCP"))
    own, other = (study.short[f"{who}, persistent connection"] for who in ("DCTCP", "TCP"))
    new = study.loaded["TCP, new connections"]
    alone = study.loaded["DCTCP without long flows"]
    change = mean(ours.late_ms) - mean(alone.late_ms)
    return [
        Statement(
            "table 2: queries next to long flows, DCTCP, 95 %",
            "9.09 ms",
            f"{cell(ours.late_ms)} ms, {change:+.1f} ms by the long flows",
            8 < mean(ours.late_ms) < 10,
        ),
        Statement(
            "table 2: the same, TCP",
            "46.94 ms",
            f"{cell(theirs.late_ms)} ms; {cell(new.late_ms)} ms with new connections",
            35 < mean(theirs.late_ms) < 60,
            expected=False,
        ),
        Statement(
            "figure 21: 20 kB behind two long flows, median",
            "DCTCP less than 1 ms, TCP 19 ms",
            f"DCTCP {cell(own.median_ms)} ms, TCP {cell(other.median_ms)} ms",
            mean(own.median_ms) < 1 and 16 < mean(other.median_ms) < 22,
        ),
    ]


def statements(study: Study) -> list[Statement]:
    """Return all results; stop if one is not as the text of the page says."""
    verdicts = [*_long(study), *_waves(study), *_incast(study), *_pressure(study)]
    wrong = [one.cells for one in verdicts if one.agrees != one.expected]
    if wrong:
        raise SystemExit(f"dctcp: the text has other verdicts: {wrong}")
    return verdicts


COLOURS = {"DCTCP": "#0072b2", "TCP": "#d55e00", "TCP without SACK": "#999999"}


def draw(study: Study, path: Path) -> None:
    """Draw the distributions of queues and the completion times of queries."""
    with plt.rc_context({"svg.hashsalt": "dctcp-study", "font.size": 9}):
        fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
        for (count, label), one in study.ports.items():
            if label in ("DCTCP", "TCP"):
                queue = np.sort(np.concatenate(one.queues))
                style = {"color": COLOURS[label], "linestyle": "-" if count == 2 else "--"}
                part = np.linspace(0, 1, 201)
                axes[0].plot(np.quantile(queue, part), part, label=f"{label}, {count}", **style)
        axes[0].set(xscale="log", xlabel="queue, packets", title="figure 13: queue, share of time")
        label_decades(axes[0].xaxis)
        _curves(axes[1], study.static, "mean_ms", 1)
        axes[1].set(yscale="log", xlabel="servers", title="figure 18: mean completion time, ms")
        label_decades(axes[1].yaxis)
        _curves(axes[2], study.static, "timeouts", 100)
        axes[2].set(xlabel="servers", title="figure 18: queries with timeouts, %")
        for ax in axes:
            ax.legend(fontsize=7)
            ax.grid(alpha=0.3)
        fig.savefig(path, metadata={"Date": None})
        plt.close(fig)


def _curves(ax: Axes, curves: incast.Curves, what: str, scale: float) -> None:
    """Draw means over seeds with 95 % intervals, a line per setting."""
    for label, curve in curves.items():
        values = [interval(getattr(one, what)) for one in curve.values()]
        middle = [scale * one.mean for one in values]
        half = [scale * one.half for one in values]
        colour = COLOURS[label.split(",")[0]]
        drawn = ax.errorbar(list(curve), middle, yerr=half, label=label, color=colour)
        drawn.lines[0].set_linestyle("-" if "10 ms" in label else ":")


def write(study: Study, seeds: int) -> None:
    """Write the page and its figure."""
    verdicts = statements(study)
    text = (Path(__file__).parent / "dctcp.md").read_text()
    parts = {
        "verdicts": rows(["result", "paper", "here", "verdict"], [one.cells for one in verdicts]),
        "queues": queues.queue_table(study.ports),
        "analysis": queues.analysis_table(study.waves),
        "static": incast.completion_table(study.static),
        "causes": incast.cause_table(study.causes),
        "shared": incast.completion_table(study.shared),
        "every": incast.every_host_table(study.every),
        "pressure": pressure.pressure_table(study.loaded),
        "short": pressure.build_up_table(study.short),
        "seeds": str(seeds),
        "half": str(seeds // 2),
        "holding": f"{sum(one.agrees for one in verdicts)} of {len(verdicts)}",
    }
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", part)
    draw(study, FIGURE)
    PAGE.write_text(text)


def main() -> None:
    """Run all figures; write the page and its figure."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    write(run(seeds), seeds)


if __name__ == "__main__":
    main()
