"""Run all comparisons, and write reports/validation.md and -data.md."""

import argparse
from pathlib import Path

from sojourn_lab import ROOT
from sojourn_lab.validation.again import again, counts
from sojourn_lab.validation.cases import cases
from sojourn_lab.validation.experiments import experiments
from sojourn_lab.validation.files import FILES
from sojourn_lab.validation.report import data, page
from sojourn_lab.validation.simulate import simulated


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="validation", description=__doc__)
    parser.add_argument("--seeds", type=int, help="runs per case (default: as on the page)")
    parser.add_argument("--only", help="only files whose names contain this, without experiments")
    parser.add_argument("--out", type=Path, default=ROOT / "reports/validation.md")
    options = parser.parse_args()
    files = [file for file in FILES if options.only is None or options.only in file.name]
    rows = {f.title: [(case, simulated(case, options.seeds)) for case in cases(f)] for f in files}
    causes = more = ""
    if options.only is None:
        table, cause_numbers = again(rows)
        more, numbers = experiments(options.seeds)
        more = table + "\n" + more
        words = (Path(__file__).parent / "causes.md").read_text()
        causes = words.format(**counts(rows), **cause_numbers, **numbers)
    options.out.write_text(page(rows, more, causes))
    options.out.with_stem(f"{options.out.stem}-data").write_text(data(rows))
    print(options.out)


if __name__ == "__main__":
    main()
