"""RED as in Linux; the random numbers repeat the recorded decisions."""

from dataclasses import replace

import numpy as np

from sojourn_lab.validation.linux import exact
from sojourn_lab.validation.linux.compare import Case, compared
from sojourn_lab.validation.linux.recordings import SENT

TITLE = "red"

INTRO = f"""{exact.INTRO}

The replay repeats the recorded decisions, where the probability allows them: *differ* counts those
that it does not allow. Behind HTB, RED is not asked for a packet while it is empty, so that its
average does not decay in idle times."""

PATTERNS = ("flows64", "onoff", "poisson105", "ramp", "steady120", "two")

SETTINGS = {
    "name": "red",
    "variant": "linux",
    "limit": "400000B",
    "min_th": "15000B",
    "max_th": "45000B",
    "max_p": 0.1,
    "w_q": 0.0078125,
    "packet": "1000B",
}

TC = "red limit 400000 min 15000 max 45000 avpkt 1000 burst 60 bandwidth 15625kbit probability 0.1"

CASES = [
    replace(
        exact.case(f"red{ecn}_{pattern}", f"{TC} {ecn}".strip(), **SETTINGS, ecn=bool(ecn)),
        follows=True,
    )
    for ecn in ("", "ecn")
    for pattern in PATTERNS
]

COUNTED = CASES


def signals(case: Case) -> tuple[int, float, float]:
    """Return the drops and marks between the thresholds, the number expected, and its variance.

    The expected number is the sum of the drop probabilities of these packets, each given the
    decisions before it.
    """
    comparison = compared(case, gauges=True)
    between = (comparison.gauges["pb"] > 0) & (comparison.gauges["pb"] < 1)
    pa = comparison.gauges["pa"][between]
    hits = int((comparison.theirs.fate[between] != SENT).sum())
    return hits, float(pa.sum()), float((pa * (1 - pa)).sum())


def extra() -> str:
    """Return a table of the numbers of signals, next to the numbers of the paper's RED."""
    columns = "recording | drops and marks | expected | z | expected by the paper's RED | z"
    rows = [f"| {columns} |", "| --- | --- | --- | --- | --- | --- |"]
    for case in CASES:
        hits, linux, spread = signals(case)
        paper = replace(case, qdisc={**case.qdisc, "variant": "paper"})
        others, by_paper, others_spread = signals(paper)
        z = (hits - linux) / np.sqrt(spread)
        other = (others - by_paper) / np.sqrt(others_spread)
        rows.append(
            f"| `{case.name}` | {hits} | {linux:.1f} | {z:.1f} | {by_paper:.1f} | {other:.1f} |"
        )
    text = """Drops and marks between the thresholds, and the number expected: the sum of the
probabilities of these packets, each given the recorded decisions before it. *z* is the difference
in standard deviations."""
    return "\n".join([text, "", *rows, ""])
