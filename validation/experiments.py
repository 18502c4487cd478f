"""What one change at a time does to our own results."""

from collections.abc import Callable

from validation import systems
from validation.cases import FTP_ONLY
from validation.play import play
from validation.report import table
from validation.statistics import compare_in_pairs
from validation.systems import Table

WORDS = """### What access links and start times do

Nothing of this is needed to agree with ns-2; it shows what would be seen if it were wrong. The
system of `hred_ftp_only`, each pair of runs with the same seed and propagation times:

"""


def experiments(seeds: int | None = None) -> str:
    """Give the tables."""
    head = ["case", "changed", "metric", "before", "after", "difference"]
    lines = []
    for q, n in (("DropTail", 30), ("RED", 30), ("DropTail", 300), ("RED", 300)):
        for changed, change in (
            ("no access links", lambda seed, q=q, n=n: _ftp_only(seed, q, n, access="")),
            ("access of 45 Mbit/s", lambda seed, q=q, n=n: _ftp_only(seed, q, n, access="45mbit")),
            ("all start at once", lambda seed, q=q, n=n: _at_once(_ftp_only(seed, q, n))),
        ):
            before = lambda seed, q=q, n=n: _ftp_only(seed, q, n)  # noqa: E731
            lines += _lines(f"{q} n {n}", changed, before, change, seeds or 10)
    return WORDS + table(head, lines)


def _ftp_only(seed: int, q: str, n: int, access: str = "100mbit") -> Table:
    return systems.ftp_only(seed, q, n, 300_000, "Newreno", access)


def _at_once(scenario: Table) -> Table:
    flows = [f | {"source": {"name": "bulk"}} for f in scenario["flows"]]
    return scenario | {"flows": flows}


def _lines(
    case: str,
    changed: str,
    before: Callable[[int], Table],
    after: Callable[[int], Table],
    seeds: int,
) -> list[list[str]]:
    metrics = [m for m in FTP_ONLY.metrics if m.column in ("qmean_B", "loss", "util")]
    numbers = [m.ours for m in metrics]
    old, new = (play([f(seed) for seed in range(seeds)], numbers).T for f in (before, after))
    lines = []
    for i, m in enumerate(metrics):
        c = compare_in_pairs(old[i], new[i])
        cells = [f"{c.theirs:{m.form}}", f"{c.ours:{m.form}}"]
        difference = f"{c.difference:+{m.form}} ± {c.half:{m.form}}"
        lines.append(
            [case if i == 0 else "", changed if i == 0 else "", m.label, *cells, difference]
        )
    return lines
