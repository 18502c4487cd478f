"""Run every paper in full, and write its page and figures into reports/papers: papers.py [ID...].

With --live, make the runs on real packets, and write them into reports/papers/ID-live; this
requires root. Finished runs are stored in out/papers/ID/runs (ID-live/runs), so an interrupted
campaign continues where it stopped.
"""

import json
import shutil
import sys
from itertools import product

from sojourn.live import netdev
from sojourn_lab import ROOT, papers
from sojourn_lab.reproduction import contents, page_markdown, report, run
from sojourn_lab.reproduction import live as live_runs
from sojourn_lab.reproduction.judging import KINDS, Kind, kind
from sojourn_lab.reproduction.paper import Paper

PAGES = ROOT / "reports/papers"

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
        page = PAGES / folder
        (page / "figures").mkdir(parents=True, exist_ok=True)
        for old in (page / "figures").glob("*.svg"):
            old.unlink()
        shutil.copy(place / "report.md", page / "README.md")
        data = (place / "data.md").read_text(encoding="utf-8")
        data = data.replace(f"({page_markdown.PAGE})", "(README.md)")
        (page / "data.md").write_text(data, encoding="utf-8")
        shutil.copy(place / "claims.json", page / "claims.json")
        for figure in outcome.figures:
            if figure.draw is not None:
                drawn = f"{contents.file_name(figure)}.svg"
                shutil.copy(place / "figures" / drawn, page / "figures" / drawn)
        judged = [kind(one.verdict) for one in outcome.claims]
        counts = ", ".join(f"{judged.count(v)} {v}" for v in KINDS if v in judged)
        print(f"{folder}: {counts}; {contents.took(outcome)}")
    (PAGES / "README.md").write_text(overview(), encoding="utf-8")


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


def verdicts(folder: str) -> list[str]:
    """Return the verdicts on the claims of a page."""
    tree = json.loads((PAGES / folder / "claims.json").read_text(encoding="utf-8"))
    return [claim["verdict"] for claim in tree["claims"]]


def claimed() -> list[str]:
    """Return the verdicts on the claims of the papers by others, simulated."""
    return [one for name in papers.ids() if name != "today" for one in verdicts(name)]


def overview() -> str:
    """Return the overview page, from the claims of all pages that exist."""
    heads = [HEADS.get(one, one) for one in KINDS]
    lines = [
        "# Papers",
        "",
        f"**{contents.summary(claimed(), ' of five papers')}**",
        "The page of each paper has its claims with a verdict each, the findings, and its figures,",
        "redrawn.",
        "",
        f"| paper | ID | {' | '.join(heads)} | runs |",
        "| --- | --- |" + " --- |" * (len(KINDS) + 1),
    ]
    for name, live in product(papers.ids(), (False, True)):
        folder = f"{name}-live" if live else name
        data = PAGES / folder / "claims.json"
        if data.exists():
            kinds = [kind(verdict) for verdict in verdicts(folder)]
            counts = " | ".join(str(kinds.count(v)) for v in KINDS)
            runs = json.loads(data.read_text(encoding="utf-8"))["runs"]
            title = papers.find(name).title + (", on real packets" if live else "")
            link = f"[{title}]({folder}/README.md)"
            lines.append(f"| {link} | {name} | {counts} | {runs} |")
    lines += [
        "",
        "Every claim of a paper has a verdict by a rule that the page of the paper states. Unless",
        "the rule says otherwise, a number holds if it is within 20 % of the paper's, and an order",
        "if the 95 % interval of the paired difference excludes 0. A claim has n parts, of which k",
        "hold:",
        "",
        "- **holds**: all parts hold.",
        "- **holds in k of n**: at least half of the parts hold.",
        "- **holds except with X**: all parts hold with the other senders.",
        "- **depends on X**: more of it holds with X, another value of something that the paper",
        "  does not state.",
        "- **does not hold**: fewer than half of the parts hold, with every setting tried.",
        "- **not testable**: the page gives the reason.",
        "",
        "The page [today](today/README.md) is no paper: it asks the questions of the five again,",
        "with CUBIC, BBR and BBRv3 as senders and with FQ-CoDel, PIE, COBALT, CAKE and DualPI2.",
        "",
        "`sojourn paper run ID --quick --out DIR` repeats a paper with few runs in about a minute,",
        "`--full` with the runs of its page. `make papers-full` writes all pages; the five papers",
        "take 13 minutes on two idle cores.",
        "`make papers-live` (`sojourn paper run ID --engine live`) repeats the testbeds of two",
        "papers on real packets, with the kernel's TCP and UDP, next to the same runs simulated.",
        "",
        page_markdown.FOOT,
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if name != "--live"], "--live" in sys.argv[1:])
