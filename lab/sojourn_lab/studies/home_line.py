"""Queues for a home line in 2026: calls, video, web and uploads under four disciplines.

`make studies` writes reports/home-line.md and its figure. All seeds are fixed.
"""

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import sojourn as sj
from sojourn import metrics
from sojourn.result.statistics import Interval, interval, paired
from sojourn_lab import ROOT
from sojourn_lab.studies import queue_age
from sojourn_lab.studies.axes import label_decades
from sojourn_lab.studies.conclusions import as_list

PAGE = ROOT / "reports" / "home-line.md"
FIGURE = PAGE.with_suffix(".svg")
Table = dict[str, Any]

SEEDS = 20
LINES = {"50/10 Mbit/s": (50, 10), "16/2 Mbit/s": (16, 2)}
"""Rates of the lines, down and up."""

MIXES = {"CUBIC": "cubic", "BBR": "bbr", "Prague": "prague"}
"""The second sender: two of four uploads and one of two downloads; the others are CUBIC."""

HOST = {"profile": "rfc", "rto_min": "200ms", "rack": True}
"""Settings of all senders: the RFCs and RACK, with the minimum timeout of Linux."""

BUFFER_S = 0.25
"""Buffer of drop-tail, as time at the rate of the link."""


def disciplines(mbit: float) -> dict[str, Table]:
    """Return the disciplines of a link of this rate."""
    return {
        "droptail": {"name": "droptail", "limit": f"{int(mbit * 1e6 / 8 * BUFFER_S)}B"},
        "fq_codel": {"name": "fq_codel"},
        "cake": {"name": "cake"},
        "dualpi2": {"name": "dualpi2"},
    }


QUEUES = tuple(disciplines(1))


def flows(second: str) -> list[Table]:
    """Return the traffic of a home, with `second` as the second sender."""
    down: Table = {"path": ["down"], "return_path": ["up"]}
    up: Table = {"path": ["up"], "return_path": ["down"]}
    late = {"name": "bulk", "start": "uniform(0s, 5s)"}
    far = {"rtt": "uniform(20ms, 60ms)", "source": late}
    call = {"rtt": "40ms", "source": {"name": "call", "initial": "1mbit"}}
    cubic = {"name": "cubic", **HOST}
    film = {"name": "video", "lowest": "500kbit", "highest": "8mbit", "levels": 8}
    film |= {"buffer": "60s", "reservoir": "15s", "cushion": "36s"}
    web = {"name": "web", "sessions": 2, "objects": "pareto(mean=20, shape=1.5)", "parallel": 6}
    web |= {"size": "lomax(mean=30kB, shape=1.5)", "page_gap": "exponential(4s)", "request": True}
    other = {"name": second, **HOST}
    return [
        {"name": "call-up", "sender": "laptop", **up, **call},
        {"name": "call-down", "receiver": "laptop", **down, **call},
        {"name": "video", "receiver": "tv", "rtt": "40ms", "source": film, "tcp": cubic, **down},
        {"name": "web", "receiver": "tablet", "rtt": "40ms", "source": web, "tcp": cubic, **down},
        {"name": "upload", "count": 2, "sender": "pc", "tcp": cubic, **up, **far},
        {"name": "upload-2", "count": 2, "sender": "pc", "tcp": other, **up, **far},
        {"name": "download", "receiver": "pc", "tcp": cubic, **down, **far},
        {"name": "download-2", "receiver": "pc", "tcp": other, **down, **far},
    ]


def scenario(line: str, mix: str, queue: str, seed: int, seconds: int = 80) -> Table:
    """Return the scenario of one run; the first 20 s are warm-up."""
    rates = dict(zip(("down", "up"), LINES[line], strict=True))
    links = {
        name: {"rate": f"{mbit}mbit", "delay": "5ms", "qdisc": disciplines(mbit)[queue]}
        for name, mbit in rates.items()
    }
    time = {"duration": f"{seconds}s", "warmup": "20s", "seed": seed}
    return {**time, "links": links, "flows": flows(MIXES[mix])}


def measures(result: sj.Result) -> dict[str, float]:
    """Return what the people at this line notice."""
    ms, mbit = 1e3, 1e-6
    late = metrics.frame_delay_percentile_s
    page = metrics.fct_percentile_s(result, 95, "web")
    old = metrics.goodput_bps(result, "upload")
    new = metrics.goodput_bps(result, "upload-2")
    columns = {
        "call_up_ms": (late(result, 95, "call-up"), ms),
        "call_down_ms": (late(result, 95, "call-down"), ms),
        "call_up_mbit": (metrics.call_rate_bps(result, "call-up"), mbit),
        "call_down_mbit": (metrics.call_rate_bps(result, "call-down"), mbit),
        "lost_packets": (metrics.udp_loss(result, "call-up"), 100),
        "lost_frames": (metrics.lost_frames(result, "call-up"), 100),
        # Without a segment in the measured time the rate is zero.
        "video_mbit": (metrics.video_rate_bps(result, "video") or 0.0, mbit),
        "stalled_s": (metrics.video_stalled_s(result, "video"), 1),
        "web_ms": (page, ms),
        "upload_mbit": (old + new, mbit),
        "ratio": (new / old if old else None, 1),
    }
    return {key: np.nan if x is None else x * scale for key, (x, scale) in columns.items()}


Case = tuple[str, str, str]


@dataclass(frozen=True)
class Campaign:
    """Measures of all runs: an array of seeds per line, mix and discipline."""

    runs: Mapping[Case, Sequence[Mapping[str, float]]]

    def values(self, case: Case, what: str) -> np.ndarray[Any, Any]:
        """Return a measure of a case, one value per seed."""
        return np.array([run[what] for run in self.runs[case]])

    def mean(self, line: str, mix: str, queue: str, what: str) -> Interval:
        """Return the mean of a measure over seeds, with its 95 % interval."""
        return interval(self.values((line, mix, queue), what))

    def gap(self, line: str, mix: str, queues: tuple[str, str], what: str) -> Interval:
        """Return the mean difference of two disciplines, paired by seed."""
        ours, theirs = (self.values((line, mix, queue), what) for queue in queues)
        return paired(ours, theirs)

    def span(self, what: str, queue: str, *, mixes: Sequence[str] = tuple(MIXES)) -> str:
        """Return the smallest and largest mean of a measure over lines and mixes, as text."""
        means = [self.mean(line, mix, queue, what).mean for line in LINES for mix in mixes]
        low, high = figure(min(means)), figure(max(means))
        return low if low == high else f"{low} to {high}"


def figure(x: float) -> str:
    """Format a number with two or three significant digits."""
    return f"{x:.0f}" if abs(x) >= 10 else f"{x:.1f}" if abs(x) >= 1 else f"{x:.2f}"


def run(seeds: int, seconds: int = 80, lines: Sequence[str] = tuple(LINES)) -> Campaign:
    """Run all cases of `lines`."""
    results: dict[Case, list[dict[str, float]]] = {}
    for line in lines:
        for mix in MIXES:
            for queue in QUEUES:
                print(line, mix, queue, file=sys.stderr)
                trees = [scenario(line, mix, queue, seed, seconds) for seed in range(1, seeds + 1)]
                with warnings.catch_warnings():
                    # Prague under drop-tail sees no marks, as it does at such lines.
                    warnings.simplefilter("ignore", sj.ScenarioWarning)
                    results[line, mix, queue] = [measures(one) for one in sj.simulate_many(trees)]
    return Campaign(results)


COLUMNS = {
    "call_up_ms": "call up: frames, 95 %, ms",
    "call_up_mbit": "rate, Mbit/s",
    "lost_packets": "lost packets, %",
    "lost_frames": "lost frames, %",
    "call_down_ms": "call down: frames, 95 %, ms",
    "web_ms": "web objects, 95 %, ms",
    "video_mbit": "video, Mbit/s",
    "stalled_s": "stalled, s",
    "upload_mbit": "uploads, Mbit/s",
    "ratio": "second sender to CUBIC",
}


def table(campaign: Campaign, line: str) -> str:
    """Return the table of a line."""
    rows = [
        f"| second sender | queue | {' | '.join(COLUMNS.values())} |",
        f"|---|---|{'---|' * len(COLUMNS)}",
    ]
    for mix in MIXES:
        for queue in QUEUES:
            means = [campaign.mean(line, mix, queue, what) for what in COLUMNS]
            cells = [f"{figure(m.mean)} ± {figure(m.half)}" for m in means]
            rows.append(f"| {mix} | {queue} | {' | '.join(cells)} |")
    return "\n".join(rows)


PANELS = {
    "call_up_ms": "delay of 95 % of the frames of the outgoing call, ms",
    "web_ms": "completion time of 95 % of the web objects, ms",
    "ratio": "goodput of the second sender over that of CUBIC",
}
COLOURS = {"droptail": "#666666", "fq_codel": "#0072b2", "cake": "#009e73", "dualpi2": "#d55e00"}


def draw(campaign: Campaign, path: Path) -> None:
    """Draw the figure: a row per quantity, a column per line."""
    with plt.rc_context({"svg.hashsalt": "home-line", "font.size": 9}):
        fig, axes = plt.subplots(
            len(PANELS), len(LINES), figsize=(9, 8.4), sharey="row", layout="constrained"
        )
        for row, (what, title) in zip(axes, PANELS.items(), strict=True):
            for ax, line in zip(row, LINES, strict=True):
                _panel(ax, campaign, line, what)
                ax.set_title(f"{line}: {title}", fontsize=8)
        handles, labels = axes[0][0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside upper center", ncols=len(QUEUES))
        fig.savefig(path, metadata={"Date": None})
        plt.close(fig)


def _panel(ax: Any, campaign: Campaign, line: str, what: str) -> None:
    places = np.arange(len(MIXES))
    for i, queue in enumerate(QUEUES):
        means = [campaign.mean(line, mix, queue, what) for mix in MIXES]
        ax.errorbar(
            places + (i - 1.5) * 0.17,
            [m.mean for m in means],
            yerr=[m.half for m in means],
            fmt="o",
            capsize=3,
            color=COLOURS[queue],
            label=queue,
        )
    ax.set_yscale("log")
    ax.set_xticks(places, [f"CUBIC and {mix}" if mix != "CUBIC" else mix for mix in MIXES])
    label_decades(ax.yaxis)
    ax.margins(x=0.12, y=0.12)
    ax.grid(axis="y", alpha=0.3)
    if what == "ratio":
        ax.axhline(1, color="black", linewidth=0.8)


def cases() -> Iterator[tuple[str, str]]:
    """Yield each line with each mix."""
    return ((line, mix) for line in LINES for mix in MIXES)


def _below(campaign: Campaign, queues: tuple[str, str], what: str) -> bool:
    """Return True if a measure is smaller under the first discipline in every case, paired."""
    return all(campaign.gap(line, mix, queues, what).high < 0 for line, mix in cases())


def conclusions(campaign: Campaign) -> str:
    """Return the conclusions as a list in Markdown.

    Raises
    ------
    SystemExit
        If one of them does not hold in `campaign`.
    """
    span = campaign.span
    first = next(iter(LINES))
    lost = {q: [campaign.mean(first, mix, q, "lost_packets").mean for mix in MIXES] for q in QUEUES}
    frames = [campaign.mean(first, mix, "fq_codel", "lost_frames").mean for mix in MIXES]
    others, rest = ([queue for queue in QUEUES if queue != best] for best in ("cake", "fq_codel"))
    apart = ("fq_codel", "cake")
    chance = np.concatenate([campaign.values((line, "BBR", "droptail"), "ratio") for line in LINES])
    fast, slow = (campaign.mean(line, "Prague", "dualpi2", "ratio").mean for line in LINES)
    statements = [
        (
            f"**Delay of calls**: `cake` has the lowest. 95 % of the frames of the outgoing call "
            f"arrive within {span('call_up_ms', 'cake')} ms, against "
            f"{span('call_up_ms', 'dualpi2')} ms under `dualpi2`, {span('call_up_ms', 'fq_codel')} "
            f"ms under `fq_codel` and {span('call_up_ms', 'droptail')} ms under `droptail`.",
            all(_below(campaign, ("cake", queue), "call_up_ms") for queue in others),
        ),
        (
            f"**Rate of calls**: where all flows share a queue, the call gives way to the uploads: "
            f"{span('call_up_mbit', 'droptail')} Mbit/s under `droptail`, "
            f"{span('call_up_mbit', 'dualpi2')} under `dualpi2`, of the 2.5 that it could use; "
            "an equal share of the uplink would be 2 and 0.4. "
            f"Flow queues keep {span('call_up_mbit', 'fq_codel')} (`fq_codel`) and "
            f"{span('call_up_mbit', 'cake')} (`cake`).",
            all(_below(campaign, ("dualpi2", queue), "call_up_mbit") for queue in apart),
        ),
        (
            f"**Loss of calls**: on the faster line the call fills its share under `fq_codel` and "
            f"loses {figure(min(lost['fq_codel']))} to {figure(max(lost['fq_codel']))} % of its "
            f"packets, which spoils {figure(min(frames))} to {figure(max(frames))} % of its frames "
            f"if nothing is sent again; under `cake` it loses at most "
            f"{figure(max(lost['cake']))} % of them. Google's control does not slow down for "
            "losses below 10 %.",
            min(lost["fq_codel"]) > 10 * max(lost["cake"]),
        ),
        (
            f"**Web**: `fq_codel` is the fastest. 95 % of the objects are complete within "
            f"{span('web_ms', 'fq_codel')} ms, against {span('web_ms', 'cake')} ms under `cake`, "
            f"{span('web_ms', 'dualpi2')} ms under `dualpi2` and {span('web_ms', 'droptail')} ms "
            "under `droptail`.",
            all(_below(campaign, ("fq_codel", queue), "web_ms") for queue in rest),
        ),
        (
            f"**BBR with CUBIC**: under `dualpi2`, BBR's uploads get "
            f"{span('ratio', 'dualpi2', mixes=['BBR'])} times the goodput of CUBIC's. Under "
            f"`droptail` the start decides: {figure(chance.min())} to {figure(chance.max())} times "
            f"by the seed, {figure(np.median(chance))} in the median. Flow queues keep them at "
            f"{span('ratio', 'fq_codel', mixes=['BBR'])} (`fq_codel`) and "
            f"{span('ratio', 'cake', mixes=['BBR'])} (`cake`).",
            np.median(chance) > 2
            and all(
                campaign.gap(line, "BBR", ("dualpi2", other), "ratio").low > 0
                for line in LINES
                for other in apart
            ),
        ),
        (
            f"**Prague with CUBIC**: at 10 Mbit/s up, `dualpi2` keeps the two within a third of "
            f"each other: Prague gets {figure(fast)} times the goodput of CUBIC. At 2 Mbit/s it "
            f"gets {figure(slow)} times: marks slow it down to 100 kbit/s, from where it cannot "
            f"grow on a path as short as this ([why](../docs/reference/algorithms/tcp/prague.md)). "
            f"TCP "
            f"Prague of Linux does the same at [4 Mbit/s](validation-senders.md). Under "
            f"`droptail`, Prague gets {span('ratio', 'droptail', mixes=['Prague'])} times the "
            "goodput of CUBIC.",
            0.67 < fast < 1.5 and slow < 0.3,
        ),
        (
            f"**Video** has {span('video_mbit', 'cake')} Mbit/s (`cake`), "
            f"{span('video_mbit', 'fq_codel')} (`fq_codel`), {span('video_mbit', 'dualpi2')} "
            f"(`dualpi2`) and {span('video_mbit', 'droptail')} (`droptail`). It never stalls under "
            "the flow queues.",
            all(
                campaign.mean(line, mix, queue, "stalled_s").mean == 0
                for line, mix in cases()
                for queue in apart
            ),
        ),
    ]
    return as_list("home_line", statements)


@dataclass(frozen=True)
class Variant:
    """A setting of an experiment: queue and its parameters, parameters of TCP, and warm-up."""

    queue: str = "cake"
    qdisc: Table = field(default_factory=dict)
    tcp: Table = field(default_factory=dict)
    warmup_s: int = 20

    def scenario(self, line: str, seed: int) -> Table:
        """Return the scenario of one run, of which 60 s are measured."""
        tree = scenario(line, "CUBIC", self.queue, seed, self.warmup_s + 60)
        tree["warmup"] = f"{self.warmup_s}s"
        for link in tree["links"].values():
            link["qdisc"] |= self.qdisc
        for flow in tree["flows"]:
            if "tcp" in flow:
                flow["tcp"] = flow["tcp"] | self.tcp
        return tree


VARIANTS = {
    "`cake`": Variant(),
    "`cake`, no fairness among hosts (`isolation = flows`)": Variant(qdisc={"isolation": "flows"}),
    "`cake`, in use for 1,000 s more": Variant(warmup_s=1020),
    "`fq_codel`": Variant("fq_codel"),
    "`fq_codel`, in use for 1,000 s more": Variant("fq_codel", warmup_s=1020),
    "`cake`, senders without RACK": Variant(tcp={"rack": False}),
    "`cake`, senders without RACK, with timeouts of at least 1 s": Variant(
        tcp={"rack": False, "rto_min": "1s"}
    ),
}


def cause(seeds: int) -> str:
    """Return the table of an experiment: one setting changed at a time."""
    lines = [
        "| line | queue | web objects, 95 %, ms | call up: frames, 95 %, ms | rate, Mbit/s |",
        "|---|---|---|---|---|",
    ]
    for line in LINES:
        for label, variant in VARIANTS.items():
            print(line, label, file=sys.stderr)
            trees = [variant.scenario(line, seed) for seed in range(1, seeds + 1)]
            runs = [measures(one) for one in sj.simulate_many(trees)]
            means = [
                interval([run[what] for run in runs])
                for what in ("web_ms", "call_up_ms", "call_up_mbit")
            ]
            cells = " | ".join(f"{figure(m.mean)} ± {figure(m.half)}" for m in means)
            lines.append(f"| {line} | {label} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    """Run all cases; write the page and its figure."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    campaign = run(seeds)
    text = (Path(__file__).parent / "home_line.md").read_text()
    parts = {
        "conclusions": conclusions(campaign),
        "fast": table(campaign, "50/10 Mbit/s"),
        "slow": table(campaign, "16/2 Mbit/s"),
        "cause": cause(seeds),
        "age": queue_age.table(seeds),
        "seeds": str(seeds),
        "buffer": f"{BUFFER_S * 1e3:.0f}",
    }
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", part)
    draw(campaign, FIGURE)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
