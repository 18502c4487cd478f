"""Run every paper in full, and write its page and figures into docs/papers: papers.py [ID...].

Finished runs are kept in out/papers/ID/runs, so an interrupted campaign goes on where it was.
"""

import json
import shutil
import sys
from pathlib import Path

from sojourn import paper, paper_report
from sojourn.claims import verdict

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs/papers"
VERDICTS = ("holds", "partly", "does not hold", "not testable")


def main(names: list[str]) -> None:
    """Run the papers, and write the pages and what they took."""
    for name in names or paper.ids():
        one = paper.find(name)
        place = ROOT / "out/papers" / one.id
        outcome = paper.run(one, full=True, store=place / "runs", progress=True)
        paper_report.write_report(outcome, place)
        page = PAGES / one.id
        (page / "figures").mkdir(parents=True, exist_ok=True)
        for old in (page / "figures").glob("*.svg"):
            old.unlink()
        shutil.copy(place / "report.md", page / "README.md")
        shutil.copy(place / "claims.json", page / "claims.json")
        for figure in outcome.figures:
            if figure.draw is not None:
                drawn = f"{paper_report.file_name(figure)}.svg"
                shutil.copy(place / "figures" / drawn, page / "figures" / drawn)
        judged = [verdict(parts) for _, parts in outcome.claims]
        counts = ", ".join(f"{judged.count(v)} {v}" for v in VERDICTS if v in judged)
        print(f"{one.id}: {counts}; {paper_report.took(outcome)}")
    (PAGES / "README.md").write_text(overview(), encoding="utf-8")


def overview() -> str:
    """Give the page that leads to the papers' pages, from what is there."""
    lines = [
        "# Papers",
        "",
        "Five papers, every figure, every claim judged by a rule that stood before the result.",
        "`make papers-full` writes these pages, `sojourn paper run ID` makes one of them.",
        "",
        f"| paper | {' | '.join(VERDICTS)} | runs |",
        "| --- |" + " --- |" * (len(VERDICTS) + 1),
    ]
    for name in paper.ids():
        told = PAGES / name / "claims.json"
        if told.exists():
            tree = json.loads(told.read_text(encoding="utf-8"))
            verdicts = [claim["verdict"] for claim in tree["claims"]]
            counts = " | ".join(str(verdicts.count(v)) for v in VERDICTS)
            lines.append(
                f"| [{paper.find(name).title}]({name}/README.md) | {counts} | {tree['runs']} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
