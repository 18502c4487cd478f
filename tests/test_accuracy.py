"""The page about the accuracy of TCP has the numbers of the reports."""

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "concepts" / "accuracy.md"

NUMBER = r"(-?\d+(?:\.\d+)?)"
PAIR = re.compile(rf"{NUMBER} / {NUMBER}(?: \(.*\))?")
"""A cell with the value of the other side, ours, and perhaps our range."""


def tables(name: str) -> Iterator[dict[str, str]]:
    """Yield the rows of all tables of a report, by the headings of their columns."""
    header: list[str] = []
    for line in (ROOT / "reports" / f"{name}.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            header = []
        elif not header:
            header = cells
        elif set(cells[0]) != {"-"}:
            yield dict(zip(header, cells, strict=False))


def pairs(name: str, column: str, alone: str | None = None) -> list[tuple[float, float]]:
    """Return both values of a column, only where the column `alone` is empty."""
    rows = [row for row in tables(name) if column in row and not row.get(alone or "", "")]
    matches = (PAIR.fullmatch(row[column]) for row in rows)
    return [(float(match[1]), float(match[2])) for match in matches if match]


def errors(values: list[tuple[float, float]], *, points: bool = False) -> tuple[str, str]:
    """Return the median and the largest error in %, or in points of what is in % already."""
    scale, unit = (1.0, "points") if points else (100.0, "%")
    each = sorted(
        abs(ours - other) * (scale if points else scale / other) for other, ours in values
    )
    return f"{median(each):.1f} {unit}", f"{each[-1]:.1f} {unit}"


def quoted(name: str, *patterns: str) -> list[str]:
    """Return the first group of each pattern in the text of a report."""
    text = " ".join((ROOT / "reports" / f"{name}.md").read_text().split())
    return [re.search(pattern, text)[1] for pattern in patterns]  # type: ignore[index]


OF = r"(\d+ of \d+)"
RMS = r"\| all \| [^|]*\| 0\.(\d+) \("
SCATTER = r"\| all \| [^|]*\| 0\.\d+ \(0\.(\d+)\)"
"""Root mean square of the log ratio of goodput over all scenarios, and its part by scatter."""


def percent(name: str, *patterns: str) -> list[str]:
    """Return the thousandths that patterns find in a report, in %."""
    return [f"{int(one) / 10:.1f} %" for one in quoted(name, *patterns)]


def first_run() -> int:
    """Return the number of random scenarios without a difference when each had run once."""
    patterns = (rf"(?:were|,) {NUMBER} of \d+ \(`{seed}" for seed in ("2026", "fresh", "kept"))
    return sum(map(int, quoted("validation-random", *patterns)))


def expected() -> dict[str, list[str]]:
    """Return what the row about each report must have."""
    random, slow, senders = "validation-random", "validation-slow", "validation-senders"
    linux, controls, quic = "validation-linux-tcp", "validation-linux-controls", "validation-quic"
    (within,) = quoted(random, rf"\| p99 \| x 1\.3 \| {OF} \|")
    means, agree = quoted("validation", r"Of (\d+) mean values", r"mean values, (\d+) agree")
    return {
        random: [
            *quoted(random, OF),
            f"{first_run()} at the first run",
            *percent(random, RMS, SCATTER),
            f"within 30 % in {within}",
        ],
        slow: [*quoted(slow, OF), *errors(pairs(slow, "goodput, %"), points=True)],
        senders: [
            *quoted(senders, OF, rf"goodput of a group alone.*?in {OF}"),
            *errors(pairs(senders, "A, Mbit/s", "B, Mbit/s")),
            *errors(pairs(senders, "A, % of goodput"), points=True),
        ],
        linux: [*quoted(linux, OF), *errors(pairs(linux, "A, Mbit/s", "B, Mbit/s"))],
        controls: [*quoted(controls, OF), *errors(pairs(controls, "goodput"))],
        "validation-bbr3": [*quoted("validation-bbr3", OF), *percent("validation-bbr3", RMS)],
        quic: [*quoted(quic, OF), *errors(pairs(quic, "goodput, Mbit/s"))],
        "validation": [f"{agree} of {means}"],
    }


@pytest.mark.parametrize("name", expected())
def test_a_row_has_the_numbers_of_its_report(name: str) -> None:
    """Counts as in the summary of the report, errors from its tables."""
    link = f"(../../reports/{name}.md)"
    (row,) = [
        line for line in PAGE.read_text().splitlines() if line.startswith("|") and link in line
    ]
    missing = [text for text in expected()[name] if text not in row]
    assert not missing, (name, expected()[name])
