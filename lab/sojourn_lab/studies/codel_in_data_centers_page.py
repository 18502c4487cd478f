"""The page of `codel_in_data_centers`: its conclusions, tables and figures."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter

from sojourn_lab import ROOT
from sojourn_lab.studies.codel_in_data_centers import (
    DISCIPLINES,
    DURATION_MS,
    MAIN,
    OTHERS,
    SEEDS,
    SENDERS,
    SHORT,
    STORE,
    TRAFFIC_MS,
    Campaign,
    Case,
    cases,
    first_reactions,
    run,
)
from sojourn_lab.studies.conclusions import as_list
from sojourn_lab.studies.home_line import figure

PAGE = ROOT / "reports" / "codel-in-data-centers.md"

COLUMNS = {
    "small_p50": "small, 50 %",
    "small_p99": "small, 99 %",
    "medium_p50": "medium, 50 %",
    "medium_p99": "medium, 99 %",
    "large_p50": "large, 50 %",
    "large_p99": "large, 99 %",
    "large_gbit": "goodput of large flows, Gbit/s",
    "query_p50_ms": "query, 50 %, ms",
    "query_p99_ms": "query, 99 %, ms",
    "queue_us": "queue, us",
    "queue_max_kb": "most, kB",
    "dropped": "dropped, %",
    "timeouts": "timeouts",
    "unfinished": "unfinished",
}
PANELS = {
    "small_p99": "small flows, 99 % slowdown",
    "medium_p99": "medium flows, 99 % slowdown",
    "large_p99": "large flows, 99 % slowdown",
    "query_p99_ms": "queries, 99 %, ms",
}


def main_case(queue: str, sender: str = "DCTCP") -> Case:
    """Return a case with the sizes and the load of `MAIN`."""
    return (*MAIN, sender, queue)


def table(campaign: Campaign, rows: Mapping[str, Case], columns: Sequence[str]) -> str:
    """Return a table of means with intervals; a label holds the first cells of its row."""
    first = next(iter(rows)).count("|")
    heads = " | ".join(COLUMNS[what] for what in columns)
    labels = {0: "discipline", 1: "sender | discipline", 2: "sizes | load, % | discipline"}[first]
    lines = [f"| {labels} | {heads} |", "|" + "---|" * (first + 1 + len(columns))]
    for label, case in rows.items():
        means = [campaign.mean(case, what) for what in columns]
        cells = " | ".join(f"{figure(m.mean)} ± {figure(m.half)}" for m in means)
        lines.append(f"| {label} | {cells} |")
    return "\n".join(lines)


NAMES = {"hadoop_hpcc": "Hadoop", "web_search": "web search", "storage_hpcc": "storage"}
"""Tables of sizes in the second figure."""


def groups() -> dict[str, dict[str, Case]]:
    """Return the cases of the second figure, by sender, sizes and load."""
    senders = {
        f"{name}, Hadoop, 60 %": {queue: main_case(queue, name) for queue in SHORT}
        for name in SENDERS
    }
    loads = {
        f"DCTCP, {NAMES[size]}, {100 * load:.0f} %": {
            queue: (size, load, "DCTCP", queue) for queue in SHORT
        }
        for size, load in OTHERS
    }
    return senders | loads


def _axis(ax: Any, title: str) -> None:
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_title(title, fontsize=8)
    ax.grid(axis="y", alpha=0.3)


def _points(
    ax: Any, campaign: Campaign, at: Any, some: Sequence[Case], what: str, **s: Any
) -> None:
    means = [campaign.mean(case, what) for case in some]
    middle = np.array([m.mean for m in means])
    half = np.array([m.half for m in means])
    # A bar on a logarithmic axis ends above zero.
    below = np.minimum(half, middle * 0.8)
    ax.errorbar(at, middle, yerr=[below, half], fmt="o", capsize=3, **s)


def draw(campaign: Campaign) -> None:
    """Draw both figures."""
    with plt.rc_context({"svg.hashsalt": "codel-in-data-centers", "font.size": 9}):
        fig, axes = plt.subplots(2, 2, figsize=(9, 7), sharex=True, layout="constrained")
        for ax, (what, title) in zip(axes.flat, PANELS.items(), strict=True):
            some = [main_case(queue) for queue in DISCIPLINES]
            _points(ax, campaign, np.arange(len(some)), some, what, color="#0072b2")
            ax.set_xticks(np.arange(len(some)), DISCIPLINES, rotation=60, ha="right")
            _axis(ax, title)
        fig.savefig(PAGE.with_suffix(".svg"), metadata={"Date": None})
        plt.close(fig)
        fig, axes = plt.subplots(2, 1, figsize=(9, 7), sharex=True, layout="constrained")
        colours = ["#666666", "#009e73", "#e69f00", "#d55e00", "#0072b2"]
        names = list(groups())
        for ax, what in zip(axes, ("small_p99", "query_p99_ms"), strict=True):
            for i, (queue, colour) in enumerate(zip(SHORT, colours, strict=True)):
                some = [groups()[name][queue] for name in names]
                at = np.arange(len(names)) + (i - 2) * 0.14
                _points(ax, campaign, at, some, what, color=colour, label=queue)
            ax.set_xticks(np.arange(len(names)), names, rotation=20, ha="right")
            _axis(ax, PANELS[what])
        handles, labels = axes[0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside upper center", ncols=len(SHORT))
        fig.savefig(PAGE.with_name(f"{PAGE.stem}-others.svg"), metadata={"Date": None})
        plt.close(fig)


def _comparison(campaign: Campaign) -> tuple[Callable[..., bool], Callable[..., str]]:
    """Return two functions: is a measure of a case below another's, and its mean as text."""

    def below(one: Case, other: Case, what: str) -> bool:
        return campaign.gap(one, other, what).high < 0

    def text(what: str, queue: str, sender: str = "DCTCP") -> str:
        return figure(campaign.mean(main_case(queue, sender), what).mean)

    return below, text


def conclusions(campaign: Campaign, shares: Mapping[str, float]) -> str:
    """Return the conclusions as a list in Markdown.

    "Below" and "above" are paired by seed, with a 95 % interval that does not contain zero.

    Raises
    ------
    SystemExit
        If one of them does not hold in `campaign`.
    """
    below, text = _comparison(campaign)
    tail, step, rfc = (main_case(queue) for queue in ("droptail", "step marking", "CoDel, RFC"))
    codel, fq = main_case("CoDel, scaled"), main_case("FQ-CoDel, scaled")
    same = all(
        np.array_equal(
            campaign.values(main_case("CoDel, RFC", sender), what),
            campaign.values(main_case("droptail", sender), what),
        )
        for sender in SENDERS
        for what in COLUMNS
    )
    isolated = campaign.values(main_case("FQ-CoDel, RFC"), "small_p99")
    most = campaign.values(rfc, "queue_max_kb").max() * 8e3 / 10e9 * 1e3
    statements = [
        (
            "**CoDel with the defaults of the RFC** (5 and 100 ms) gives the same numbers as "
            "drop-tail, with every sender. Its target cannot be reached: the longest queue of a "
            f"port takes {figure(most)} ms, since the shared buffer admits no more. It marked "
            "nothing in 250 ms either.",
            same and most < 5 and shares["CoDel, RFC: marked"] == 0,
        ),
        (
            f"**CoDel scaled to the round trip** (50 and 500 us) helps: 99 % of the small flows "
            f"have a slowdown up to {text('small_p99', 'CoDel, scaled')} with DCTCP, under "
            f"drop-tail {text('small_p99', 'droptail')}; the mean queue is "
            f"{text('queue_us', 'CoDel, scaled')} us instead of {text('queue_us', 'droptail')}.",
            below(codel, tail, "small_p99") and below(codel, tail, "queue_us"),
        ),
        (
            f"**Step marking** helps more: {text('small_p99', 'step marking')}, with a queue of "
            f"{text('queue_us', 'step marking')} us. No run with it had a timeout.",
            below(step, codel, "small_p99")
            and below(step, codel, "queue_us")
            and campaign.values(step, "timeouts").max() == 0,
        ),
        (
            f"**FQ-CoDel, scaled** protects small flows better, though its queue is longer: "
            f"{text('small_p99', 'FQ-CoDel, scaled')}. Isolation does that: with the defaults of "
            f"the RFC the median over seeds is {figure(float(np.median(isolated)))}, but some "
            "seeds have timeouts of small flows, and the mean is "
            f"{text('small_p99', 'FQ-CoDel, RFC')}. "
            f"The scaled target helps medium flows: {text('medium_p99', 'FQ-CoDel, scaled')} "
            f"instead of {text('medium_p99', 'FQ-CoDel, RFC')}.",
            below(fq, step, "small_p99")
            and below(step, fq, "queue_us")
            and bool(np.median(isolated) < campaign.values(step, "small_p99").min())
            and below(fq, main_case("FQ-CoDel, RFC"), "medium_p99"),
        ),
        (
            f"**Queries** with 24 answers: 99 % take up to {text('query_p99_ms', 'droptail')} ms "
            f"with drop-tail, {text('query_p99_ms', 'CoDel, scaled')} with scaled CoDel, "
            f"{text('query_p99_ms', 'FQ-CoDel, scaled')} with scaled FQ-CoDel and "
            f"{text('query_p99_ms', 'step marking')} with step marking, which leaves room in the "
            "buffer and so has no timeouts.",
            below(codel, tail, "query_p99_ms")
            and below(fq, tail, "query_p99_ms")
            and below(step, fq, "query_p99_ms"),
        ),
    ]
    statements += _others(campaign)
    return as_list("codel_in_data_centers", statements)


def _others(campaign: Campaign) -> list[tuple[str, bool]]:
    """Return the conclusions about other disciplines and senders, each with whether it holds."""
    below, text = _comparison(campaign)
    tail, step = main_case("droptail"), main_case("step marking")
    codel, pie = main_case("CoDel, scaled"), main_case("PIE, scaled")
    return [
        (
            f"**DualPI2, scaled**, with DCTCP in its queue L, is a little better than step "
            f"marking: {text('small_p99', 'DualPI2, scaled')}, and "
            f"{text('query_p99_ms', 'DualPI2, scaled')} ms for queries. With the defaults of the "
            f"RFC: {text('small_p99', 'DualPI2, RFC')}.",
            below(main_case("DualPI2, scaled"), step, "small_p99")
            and below(main_case("DualPI2, scaled"), step, "query_p99_ms")
            and below(main_case("DualPI2, scaled"), main_case("DualPI2, RFC"), "small_p99"),
        ),
        (
            f"**PIE, scaled** as far as its parameters admit: {text('small_p99', 'PIE, scaled')}, "
            "not distinct from drop-tail.",
            below(codel, pie, "small_p99") and not below(pie, tail, "small_p99"),
        ),
        (
            f"**RED** with DCTCP has {text('timeouts', 'RED')} timeouts per run. It drops packets "
            "that cannot be marked, as SYNs are "
            "([measured](../docs/how-to/data-centres.md#marking-in-switches)).",
            below(step, main_case("RED"), "timeouts") and below(step, main_case("RED"), "dropped"),
        ),
        (
            f"**EWFQ** protects small flows as well ({text('small_p99', 'EWFQ')}), but drops "
            f"{text('dropped', 'EWFQ')} % of the packets, since it does not mark, and large flows "
            f"get {text('large_gbit', 'EWFQ')} Gbit/s (step marking "
            f"{text('large_gbit', 'step marking')}).",
            below(main_case("EWFQ"), step, "small_p99")
            and below(main_case("EWFQ"), step, "large_gbit"),
        ),
        (
            f"**Swift** needs no help of the switch for a short queue: with drop-tail "
            f"{text('queue_us', 'droptail', 'Swift')} us.",
            below(main_case("droptail", "Swift"), step, "queue_us"),
        ),
        (
            f"**HPCC** has the shortest queue, {text('queue_us', 'droptail', 'HPCC')} us with "
            f"drop-tail, and small flows have {text('small_p99', 'droptail', 'HPCC')}. Large flows "
            f"get {text('large_gbit', 'droptail', 'HPCC')} Gbit/s. Queries take up to "
            f"{text('query_p99_ms', 'droptail', 'HPCC')} ms: the burst brings all rates down to "
            f"`min_rate`, 10 Mbit/s, from which they grow with each packet. With 400 Mbit/s, "
            f"queries take up to {text('query_p99_ms', 'droptail', 'HPCC, faster')} ms.",
            below(main_case("droptail", "HPCC"), main_case("droptail", "Swift"), "queue_us")
            and below(main_case("droptail", "HPCC"), step, "small_p99")
            and below(main_case("droptail", "HPCC"), step, "large_gbit")
            and below(step, main_case("droptail", "HPCC"), "query_p99_ms")
            and below(main_case("droptail", "HPCC, faster"), step, "query_p99_ms"),
        ),
    ]


def page(campaign: Campaign, shares: Mapping[str, float], seeds: int) -> str:
    """Return the text of the page."""
    text = (Path(__file__).parent / "codel_in_data_centers.md").read_text()
    few = ("small_p50", "small_p99", "large_p50", "query_p99_ms", "queue_us", "timeouts")
    senders = {f"{s} | {q}": main_case(q, s) for s in SENDERS if s != "DCTCP" for q in SHORT}
    others = {
        f"{size} | {load * 100:.0f} | {queue}": (size, load, "DCTCP", queue)
        for size, load in OTHERS
        for queue in SHORT
    }
    parameters = [
        (name, ", ".join(f"`{key} = {value}`" for key, value in spec.items() if key != "name"))
        for name, spec in DISCIPLINES.items()
    ]
    parts = {
        "conclusions": conclusions(campaign, shares),
        "main": table(campaign, {q: main_case(q) for q in DISCIPLINES}, list(COLUMNS)),
        "senders": table(campaign, senders, few),
        "others": table(campaign, others, few),
        "parameters": "\n".join(f"| {name} | {spec or '-'} |" for name, spec in parameters),
        "long": "\n".join(
            f"| {q} | {shares[f'{q}: marked']:.3f} | {shares[f'{q}: full']:.3f} |"
            for q in ("CoDel, RFC", "PIE, RFC")
        ),
        "seeds": str(seeds),
        "traffic": str(TRAFFIC_MS),
        "duration": str(DURATION_MS),
    }
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", part)
    return text


def main() -> None:
    """Run all cases; write the page and its figures."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    campaign = run(seeds, list(cases()), STORE)
    draw(campaign)
    text = page(campaign, first_reactions(), seeds)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
