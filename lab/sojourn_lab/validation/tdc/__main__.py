"""Compare the kernel's tests of tc with our reader, and write reports/validation-tdc.md.

    python -m sojourn_lab.validation.tdc LINUX [--newer LINUX]

LINUX is the directory of Linux's source. The page names tests by their identifier only.
"""

import argparse
import sys
from pathlib import Path

from sojourn import InputError
from sojourn_lab.validation.tdc import compare
from sojourn_lab.validation.tdc.page import page, version
from sojourn_lab.validation.tdc.reasons import REASONS

PAGE = Path(__file__).parents[4] / "reports/validation-tdc.md"


def main() -> int:
    """Write the page; print the differences without a reason, and the reasons without one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("linux", type=Path, help="directory of the source of Linux")
    parser.add_argument("--newer", type=Path, help="a later source, for qdiscs that LINUX lacks")
    parser.add_argument("--out", type=Path, default=PAGE, help="page to write")
    options = parser.parse_args()
    try:
        tests = compare.read(options.linux)
        later = compare.read(options.newer) if options.newer else []
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    known = {test.kind for test in tests}
    added = sorted({test.kind for test in later} - known)
    tests += [test for test in later if test.kind in added]
    outcomes = compare.run(tests)
    options.out.write_text(page(tests, outcomes, version(options.linux), added))
    different = [one for one in outcomes if one.differences]
    unknown = [one for one in different if one.test.id not in REASONS]
    for one in unknown:
        print(f"{one.test.kind} {one.test.id}: {'; '.join(one.differences)}")
    for name in sorted(REASONS.keys() - {one.test.id for one in different}):
        print(f"{name}: has a reason, but is equal or absent")
    print(f"{len(outcomes) - len(different)} of {len(outcomes)} tests are equal")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
