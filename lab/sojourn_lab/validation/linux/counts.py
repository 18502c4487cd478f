"""Numbers of drops and marks over many seeds, compared with the kernel's single run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sojourn.result.result import Array
from sojourn_lab.validation.linux.compare import Case, compared

SEEDS = range(1, 21)

LIMIT = 3.88
"""Two-sided quantile 99.9 % of Student's t with 19 degrees of freedom."""

INTRO = f"""Without the recorded decisions, over {len(SEEDS)} seeds: drops and marks of the kernel,
and the mean and standard deviation of ours. *t* is the difference of the kernel's number from our
mean, divided by the standard deviation and by sqrt(1 + 1/{len(SEEDS)}). {LIMIT} is the quantile of
99.9 % of Student's distribution."""

COLUMNS = "recording | tc | packets | drops | sojourn | t | marks | sojourn | t"


@dataclass(frozen=True)
class Counted:
    """Numbers of one recording."""

    case: Case
    packets: int
    kernel: tuple[int, int]
    """Drops and marks."""
    ours: Array
    """The same, a row per seed."""

    @cached_property
    def t(self) -> tuple[float, float]:
        """Differences of drops and marks as multiples of their standard error."""
        spread = self.ours.std(axis=0, ddof=1) * np.sqrt(1 + 1 / len(self.ours))
        apart = np.array(self.kernel) - self.ours.mean(axis=0)
        drops, marks = np.where(apart == 0, 0.0, apart / np.maximum(spread, 1e-9))
        return float(drops), float(marks)

    def row(self) -> str:
        """Return the row of the table."""
        cells = [f"`{self.case.name}`", f"`{self.case.tc}`", str(self.packets)]
        mean, spread = self.ours.mean(axis=0), self.ours.std(axis=0, ddof=1)
        for k in (0, 1):
            cells += [str(self.kernel[k]), f"{mean[k]:.1f} ± {spread[k]:.1f}", f"{self.t[k]:.1f}"]
        return "| " + " | ".join(cells) + " |"


def counted(case: Case) -> Counted:
    """Replay a recording with each seed."""
    runs = [compared(replace(case, seed=seed, follows=False)) for seed in SEEDS]
    drops, marks = runs[0].totals
    ours = np.array([[run.totals[0][1], run.totals[1][1]] for run in runs])
    return Counted(case, len(runs[0].dropped), (drops[0], marks[0]), ours)


def section(cases: Sequence[Case]) -> str:
    """Return the text and table of these cases."""
    rule = "| " + " | ".join("---" for _ in COLUMNS.split("|")) + " |"
    rows = [f"| {COLUMNS} |", rule, *(counted(case).row() for case in cases)]
    return "\n".join([INTRO, "", *rows, ""])
