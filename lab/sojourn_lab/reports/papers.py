"""Run every paper in full, and write its page and figures into reports/papers: papers.py [ID...].

With --live, make the runs on real packets, and write them into reports/papers/ID-live; this
requires root. Finished runs are stored in out/papers/ID/runs (ID-live/runs), so an interrupted
campaign continues where it stopped. With --index, only write the overview, the times and the row
of the README from the pages that exist.
"""

import json
import shutil
import sys
from itertools import product
from typing import Any

from sojourn.live import netdev
from sojourn_lab import ROOT, papers
from sojourn_lab.reproduction import checksums, contents, costs, page_markdown, report, run
from sojourn_lab.reproduction import live as live_runs
from sojourn_lab.reproduction.judging import KINDS, OURS, Kind, kind
from sojourn_lab.reproduction.pages import measured_times
from sojourn_lab.reproduction.paper import Paper

PAGES = ROOT / "reports/papers"

ROW = "| five papers"
"""Start of the row of the README on the papers."""

HEADS: dict[Kind, str] = {
    "holds in": "holds in k of n",
    "holds except with": "holds except with X",
    "depends on": "depends on X",
}
"""Headings of columns that count verdicts, where they differ from the kind."""


def main(names: list[str], live: bool) -> None:
    """Run the papers, write their pages, and print verdicts and cost."""
    every = [papers.find(name) for name in names or papers.ids()]
    if live:
        every = [one for one in every if one.live is not None or names]
        _announce([one for one in every if one.live is not None])
    for one in every:
        folder = f"{one.id}-live" if live else one.id
        place = ROOT / "out/papers" / folder
        try:
            outcome = run.run(
                one,
                full=True,
                store=place / "runs",
                progress=True,
                engine="live" if live else "sim",
            )
        except netdev.NoRightError:
            sys.exit(
                "papers.py: --live requires the right to create network namespaces: run as root"
            )
        report.write_report(outcome, place)
        directory = PAGES / folder
        for name in ("figures", report.DATA):
            (directory / name).mkdir(parents=True, exist_ok=True)
        for old in (*directory.glob("figures/*.svg"), *directory.glob(f"{report.DATA}/*.csv")):
            old.unlink()
        shutil.copy(place / "report.md", directory / "README.md")
        data = (place / "data.md").read_text(encoding="utf-8")
        data = data.replace(f"({page_markdown.PAGE})", "(README.md)")
        (directory / "data.md").write_text(data, encoding="utf-8")
        shutil.copy(place / "claims.json", directory / "claims.json")
        for figure in outcome.figures:
            if figure.draw is not None:
                drawn = f"{contents.file_name(figure)}.svg"
                shutil.copy(place / "figures" / drawn, directory / "figures" / drawn)
            if (data_file := contents.data_file(figure)) is not None:
                shutil.copy(place / data_file, directory / data_file)
        if outcome.checksums:
            shutil.copy(place / checksums.FILE, directory / checksums.FILE)
        judged = [kind(one.verdict) for one in outcome.claims]
        counts = ", ".join(f"{judged.count(v)} {v}" for v in KINDS if v in judged)
        print(f"{folder}: {counts}; {contents.took(outcome)}")
    write_index()


def _announce(every: list[Paper]) -> None:
    """Print how long the runs on real packets take."""
    times = [
        live_runs.expected_s(one, full=True, store=ROOT / f"out/papers/{one.id}-live/runs")
        for one in every
    ]
    each = ", ".join(f"{one.id} {time / 60:.0f}" for one, time in zip(every, times, strict=True))
    print(
        f"runs on real packets take {sum(times) / 60:.0f} minutes ({each}), and their simulated "
        "counterparts some minutes more; finished runs are stored",
        flush=True,
    )


def page(folder: str) -> dict[str, Any]:
    """Return the claims of a page with their verdicts and set-ups, and the number of its runs."""
    tree: dict[str, Any] = json.loads((PAGES / folder / "claims.json").read_text(encoding="utf-8"))
    return tree


def verdicts(folder: str) -> list[str]:
    """Return the verdicts on the claims of a page."""
    return [claim["verdict"] for claim in page(folder)["claims"]]


def held(folder: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the counts of our set-up, and of the best single one."""
    counted = page(folder)["set_ups"]
    return next(one for one in counted if one["name"] == OURS), counted[0]


def papers_by_others() -> list[str]:
    """Return the ids of the papers; `today` is our own."""
    return [name for name in papers.ids() if name != "today"]


def readme_row() -> str:
    """Return the row of the README on the papers."""
    names = papers_by_others()
    judged = [one for name in names for one in verdicts(name)]
    ours, best = (sum(held(name)[n]["hold"] for name in names) for n in (0, 1))
    result = (
        "figures redrawn, claims judged by rules that the page states, in our set-up and in "
        f"others. {contents.summary(judged)} With the best single set-up of each paper "
        f"{best} hold, with ours {ours}."
    )
    return f"{ROW} | {result} | [papers](reports/papers/README.md) |"


def write_index() -> None:
    """Write the overview of the papers, and the row of the README on them."""
    (PAGES / "README.md").write_text(overview(), encoding="utf-8")
    (PAGES / "times.md").write_text(times(), encoding="utf-8")
    readme = ROOT / "README.md"
    lines = readme.read_text(encoding="utf-8").split("\n")
    rows = [readme_row() if line.startswith(ROW) else line for line in lines]
    readme.write_text("\n".join(rows), encoding="utf-8")


def overview() -> str:
    """Return the overview page, from the claims of all pages that exist."""
    names = papers_by_others()
    judged = [one for name in names for one in verdicts(name)]
    shown = [one for one in KINDS if one not in ("holds", "not judged")]
    columns = [HEADS.get(one, one) for one in shown]
    heads = ["paper", "ID", "claims", "hold in our set-up", "hold in the best single set-up"]
    heads += [*columns, "runs"]
    lines = [
        "# Papers",
        "",
        f"**{contents.summary(judged, ' of five papers')}**",
        "The page of each paper has its claims with a verdict each, the findings, and its figures,",
        "redrawn.",
        "",
        f"| {' | '.join(heads)} |",
        "| --- | --- |" + " --- |" * (len(heads) - 2),
    ]
    totals = [0] * (len(heads) - 2)
    for name, live in product(papers.ids(), (False, True)):
        folder = f"{name}-live" if live else name
        if not (PAGES / folder / "claims.json").exists():
            continue
        kinds = [kind(verdict) for verdict in verdicts(folder)]
        ours, best = held(folder)
        numbers = [len(kinds), ours["hold"], best["hold"], *map(kinds.count, shown)]
        numbers.append(page(folder)["runs"])
        if name in names and not live:
            totals = [a + b for a, b in zip(totals, numbers, strict=True)]
        title = papers.find(name).title + (", on real packets" if live else "")
        cells = [f"[{title}]({folder}/README.md)", name, *map(str, numbers)]
        cells[4] += f" ({best['name']})" if best["name"] != OURS else ""
        lines.append(f"| {' | '.join(cells)} |")
    cells = ["**the five papers**", "", *map(str, totals)]
    lines += [
        f"| {' | '.join(cells)} |",
        "",
        "## Rules",
        "",
        contents.rules(),
        "",
        "## More",
        "",
        "The page [today](today/README.md) is no paper: it asks the questions of the five again,",
        "with CUBIC, BBR, BBRv3 and their mixtures, with ECN and Prague, and with FQ-CoDel, PIE,",
        "COBALT, CAKE and DualPI2.",
        "",
        "`sojourn paper run ID --quick --out DIR` repeats a paper with few runs in about a minute,",
        "`--full` with the runs of its page. `sojourn paper check ID` makes the runs again, and",
        "compares them with the page ([steps](../../docs/how-to/repeat-a-paper.md)).",
        f"`make papers-full` writes all pages{_time_of_all()} ([times](times.md)).",
        "`make papers-live` (`sojourn paper run ID --engine live`) repeats the testbeds of two",
        "papers on real packets, with the kernel's TCP and UDP, next to the same runs simulated.",
        "",
        page_markdown.FOOT,
    ]
    return "\n".join(lines) + "\n"


def _time_of_all() -> str:
    """Return the processor time of all papers as part of a sentence, if it is measured."""
    each = [measured_times(papers.find(name)) for name in papers.ids()]
    if not all(each):
        return ""
    return f", which takes {costs.written(sum(sum(one.values()) for one in each))} of one core"


def times() -> str:
    """Return the page with the processor time of each figure, from the pages that have it."""
    lines = [
        "# Processor time of each figure",
        "",
        "In seconds of one core of the machine that made the pages: all runs that a figure and the",
        "claims about it need, as `sojourn paper run ID --figure N` makes them. The time with",
        "`--full` is measured, the time with `--quick` is estimated from the simulated work.",
        "Figures share runs, so a paper takes less than the sum.",
        "",
    ]
    for name in papers.ids():
        one = papers.find(name)
        core_s = measured_times(one)
        each = costs.expected(one, core_s)
        if not each:
            continue
        lines += [f"## {name}: {costs.written(sum(core_s.values()))} for all", ""]
        rows = [[at, f"{it.quick_s:.1f}", f"{it.full_s:.1f}"] for at, it in each.items()]
        lines += [*page_markdown.table(("figure", "`--quick`, s", "`--full`, s"), rows), ""]
    return "\n".join([*lines, page_markdown.FOOT]) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--index"]:
        write_index()
    else:
        main([name for name in sys.argv[1:] if name != "--live"], "--live" in sys.argv[1:])
