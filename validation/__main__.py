"""`python -m validation`: plays everything and writes docs/validation.md."""

import argparse
from pathlib import Path

from validation.again import again, counts
from validation.cases import FILES, cases
from validation.experiments import experiments
from validation.play import played
from validation.report import page

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="validation", description=__doc__)
    parser.add_argument("--seeds", type=int, help="runs of each case (default: as the page says)")
    parser.add_argument("--only", help="only files whose name contains this, no experiments")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/validation.md")
    given = parser.parse_args()
    files = [file for file in FILES if given.only is None or given.only in file.name]
    rows = {f.title: [(case, played(case, given.seeds)) for case in cases(f)] for f in files}
    causes = more = ""
    if given.only is None:
        table, told = again(rows)
        more, numbers = experiments(given.seeds)
        more = table + "\n" + more
        words = (Path(__file__).parent / "causes.md").read_text()
        causes = words.format(**counts(rows), **told, **numbers)
    given.out.write_text(page(rows, more, causes))
    print(given.out)


if __name__ == "__main__":
    main()
