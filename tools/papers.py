"""Run every paper in full, and write its page and figures into docs/papers: papers.py [ID...].

With --live, what papers have on real packets, into docs/papers/ID-live; that takes root. Finished
runs are kept in out/papers/ID/runs (ID-live/runs), so an interrupted campaign goes on.
"""

import json
import shutil
import sys
from itertools import product
from pathlib import Path

from sojourn.live import netdev
from sojourn.reproduction import paper, report, run
from sojourn.reproduction.claims import verdict

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs/papers"
VERDICTS = ("holds", "partly", "does not hold", "not testable")


def main(names: list[str], live: bool) -> None:
    """Run the papers, and write the pages and what they took."""
    every = [paper.find(name) for name in names or paper.ids()]
    for one in every:
        if live and one.live is None and not names:
            continue
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
            sys.exit("papers.py: real packets take the right to make networks: be root")
        report.write_report(outcome, place)
        page = PAGES / folder
        (page / "figures").mkdir(parents=True, exist_ok=True)
        for old in (page / "figures").glob("*.svg"):
            old.unlink()
        shutil.copy(place / "report.md", page / "README.md")
        shutil.copy(place / "claims.json", page / "claims.json")
        for figure in outcome.figures:
            if figure.draw is not None:
                drawn = f"{report.file_name(figure)}.svg"
                shutil.copy(place / "figures" / drawn, page / "figures" / drawn)
        judged = [verdict(parts) for _, parts in outcome.claims]
        counts = ", ".join(f"{judged.count(v)} {v}" for v in VERDICTS if v in judged)
        print(f"{folder}: {counts}; {report.took(outcome)}")
    (PAGES / "README.md").write_text(overview(), encoding="utf-8")


def overview() -> str:
    """Give the page that leads to the papers' pages, from what is there."""
    lines = [
        "# Papers",
        "",
        "Five papers, every figure, every claim judged by a rule that stood before the result.",
        "`make papers-full` writes these pages, `sojourn paper run ID` makes one of them;",
        "`make papers-live` (`sojourn paper run ID --engine live`) plays the testbeds of two of",
        "them on real packets, by the kernel's TCP and UDP, beside the same runs simulated.",
        "",
        f"| paper | {' | '.join(VERDICTS)} | runs |",
        "| --- |" + " --- |" * (len(VERDICTS) + 1),
    ]
    for name, live in product(paper.ids(), (False, True)):
        folder = f"{name}-live" if live else name
        told = PAGES / folder / "claims.json"
        if told.exists():
            tree = json.loads(told.read_text(encoding="utf-8"))
            verdicts = [claim["verdict"] for claim in tree["claims"]]
            counts = " | ".join(str(verdicts.count(v)) for v in VERDICTS)
            title = paper.find(name).title + (", on real packets" if live else "")
            lines.append(f"| [{title}]({folder}/README.md) | {counts} | {tree['runs']} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if name != "--live"], "--live" in sys.argv[1:])
