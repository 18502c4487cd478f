"""The page of `codel_in_data_centers`: its conclusions, tables and figures."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from sojourn_lab import ROOT
from sojourn_lab.studies.axes import label_decades
from sojourn_lab.studies.codel_in_data_centers import (
    DISCIPLINES,
    DRAIN_MS,
    HALF,
    HPCC_BOUNDS,
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
from sojourn_lab.studies.codel_in_data_centers_conclusions import main_case, statements
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
    "queue_us": "mean queueing delay at ports to hosts, us",
    "large_gbit": "goodput of large flows, Gbit/s",
}


def table(campaign: Campaign, rows: Mapping[str, Case], columns: Sequence[str]) -> str:
    """Return a table of means with intervals; a label holds the first cells of its row.

    Disciplines with the same numbers in every run share a row.
    """
    first = next(iter(rows)).count("|")
    heads = " | ".join(COLUMNS[what] for what in columns)
    labels = {0: "discipline", 1: "sender | discipline", 2: "sizes | load, % | discipline"}[first]
    lines = [f"| {labels} | {heads} |", "|" + "---|" * (first + 1 + len(columns))]
    for same, case in shared_rows(campaign, rows, columns).items():
        means = [campaign.mean(case, what) for what in columns]
        cells = " | ".join(f"{figure(m.mean)} ± {figure(m.half)}" for m in means)
        lines.append(f"| {same} | {cells} |")
    return "\n".join(lines)


def shared_rows(
    campaign: Campaign, rows: Mapping[str, Case], columns: Sequence[str]
) -> dict[str, Case]:
    """Return `rows` with the labels of disciplines joined whose numbers are the same."""
    same: dict[tuple[Any, ...], list[str]] = {}
    for label, case in rows.items():
        *before, queue = label.split(" | ")
        numbers = tuple(campaign.values(case, what).tobytes() for what in columns)
        same.setdefault((tuple(before), numbers), []).append(queue)
    return {
        " | ".join([*before, "; ".join(queues)]): rows[" | ".join([*before, queues[0]])]
        for (before, _), queues in same.items()
    }


NAMES = {"web_search": "web search", "storage_hpcc": "storage"}
"""Tables of sizes in the second figure."""

COLOURS = {"DCTCP": "#0072b2", "CUBIC": "#e69f00", "Swift": "#009e73", "HPCC": "#cc79a7"}


def _axis(ax: Any, title: str) -> None:
    if "Gbit/s" not in title:
        ax.set_yscale("log")
        label_decades(ax.yaxis)
    ax.set_title(title, fontsize=9)
    ax.grid(axis="y", alpha=0.3)


def _panel(ax: Any, campaign: Campaign, at: tuple[str, float], what: str, title: str) -> None:
    """Draw a measure under each discipline with each sender."""
    places = np.arange(len(DISCIPLINES))
    for i, (sender, colour) in enumerate(COLOURS.items()):
        means = [campaign.mean((*at, sender, queue), what) for queue in DISCIPLINES]
        middle, half = (np.array(x) for x in zip(*[(m.mean, m.half) for m in means], strict=True))
        # A bar on a logarithmic axis ends above zero.
        below = np.minimum(half, middle * 0.8)
        ax.errorbar(
            places + (i - 1.5) * 0.18,
            middle,
            yerr=[below, half],
            fmt="o",
            markersize=4,
            capsize=2,
            color=colour,
            label=sender,
        )
    ax.set_xticks(places, DISCIPLINES, rotation=60, ha="right")
    _axis(ax, title)


def _save(fig: Any, axes: Any, path: Path) -> None:
    handles, labels = axes.flat[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)


def draw(campaign: Campaign) -> None:
    """Draw both figures."""
    with plt.rc_context({"svg.hashsalt": "codel-in-data-centers", "font.size": 9}):
        fig, axes = plt.subplots(3, 2, figsize=(10, 11), sharex=True, layout="constrained")
        for ax, (what, title) in zip(axes.flat, PANELS.items(), strict=True):
            _panel(ax, campaign, MAIN, what, title)
        _save(fig, axes, PAGE.with_suffix(".svg"))
        fig, axes = plt.subplots(
            2, 2, figsize=(10, 8), sharex=True, sharey="row", layout="constrained"
        )
        for row, what in zip(axes, ("small_p99", "query_p99_ms"), strict=True):
            for ax, at in zip(row, OTHERS, strict=True):
                _panel(ax, campaign, at, what, f"{NAMES[at[0]]}: {PANELS[what]}")
        _save(fig, axes, PAGE.with_name(f"{PAGE.stem}-others.svg"))


FEW = (
    "small_p50",
    "small_p99",
    "medium_p99",
    "large_p50",
    "large_gbit",
    "query_p99_ms",
    "queue_us",
    "timeouts",
)
"""Columns of all tables but the first."""


def tables(campaign: Campaign) -> dict[str, str]:
    """Return the tables of the page, by the name of their place."""
    others = [sender for sender in SENDERS if sender != "DCTCP"]
    halves = {
        f"{size} | {load * 100:.0f} | {queue}": (size, load, "DCTCP", queue)
        for size, load in HALF
        for queue in SHORT
    }
    bounds = [*HPCC_BOUNDS, "HPCC"]

    def crossed(at: tuple[str, float], senders: Sequence[str]) -> str:
        rows = {f"{s} | {q}": (*at, s, q) for s in senders for q in DISCIPLINES}
        return table(campaign, rows, FEW)

    return {
        "main": table(campaign, {q: main_case(q) for q in DISCIPLINES}, list(COLUMNS)),
        "senders": crossed(MAIN, others),
        **{size: crossed((size, load), list(SENDERS)) for size, load in OTHERS},
        "halves": table(campaign, halves, FEW),
        "bounds": table(
            campaign, {f"{s} | droptail": main_case("droptail", s) for s in bounds}, FEW
        ),
    }


def page(campaign: Campaign, shares: Mapping[str, float], seeds: int) -> str:
    """Return the text of the page."""
    text = (Path(__file__).parent / "codel_in_data_centers.md").read_text()
    parameters = [
        (name, ", ".join(f"`{key} = {value}`" for key, value in spec.items() if key != "name"))
        for name, spec in DISCIPLINES.items()
    ]
    parts = {
        "conclusions": as_list("codel_in_data_centers", statements(campaign, shares)),
        **tables(campaign),
        "parameters": "\n".join(f"| {name} | {spec or '-'} |" for name, spec in parameters),
        "long": "\n".join(
            f"| {q} | {shares[f'{q}: marked']:.3f} | {shares[f'{q}: full']:.3f} |"
            for q in ("CoDel, RFC", "PIE, RFC")
        ),
        "seeds": str(seeds),
        "traffic": str(TRAFFIC_MS[MAIN[0]]),
        "web_traffic": str(TRAFFIC_MS["web_search"]),
        "drain": str(DRAIN_MS),
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
