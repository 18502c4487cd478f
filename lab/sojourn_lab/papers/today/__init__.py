"""The questions of the five papers, asked again with today's senders and disciplines.

Each question keeps the network, the load, the buffer and the parameters of its paper's page (see
those pages for our choices). Two things change.

- Senders: CUBIC and BBR (version 1) as Linux has them (`linux_cubic`, `linux_bbr`), and BBRv3 of
  the Internet draft with the same settings. All detect losses by RACK, have delayed acks, an
  initial window of ten packets and a minimum RTO of 200 ms. CUBIC has proportional rate reduction.
  The packet size is the paper's. All flows of a run have the same sender.
- Disciplines: FQ-CoDel, PIE, COBALT, CAKE (unlimited, a queue per flow) and DualPI2, with their
  default parameters and the paper's buffer. No sender uses ECN, so DualPI2 works as PI2 with a
  target of 15 ms, and its queue for L4S stays empty.

The paper's own TCP also runs at every point (column "the paper's TCP" of table `survives`). It is
not part of the verdicts, which are about today's senders. `holds`: the conclusion survives with
every sender at every point. `holds except with`: it survives with all senders but the named ones.
Claims marked
"not in the paper" are ours, about today's disciplines.

- Tail Drop against RED: 16 and 64 FTPs, and 1000 web sessions, for 200 s, the first 60 s not
  counted.
- CoDel against DRR: 4 FTPs and a CBR flow each way over 2, 4 and 10 Mbit/s for 100 s, the first
  10 s not counted.

Seeds: 5. Quick mode has 2 seeds, shorter runs, fewer points, no BBRv3, and no BBR
with HRED.
"""

from typing import Any

import polars as pl

from sojourn_lab.papers.today import dc, drr, ewfq, hred, red
from sojourn_lab.papers.today.common import NAMES
from sojourn_lab.papers.today.dc import drawn as dc_drawn
from sojourn_lab.papers.today.drr import drawn as drr_drawn
from sojourn_lab.papers.today.ewfq import drawn as ewfq_drawn
from sojourn_lab.papers.today.hred import drawn as hred_drawn
from sojourn_lab.papers.today.red import drawn as red_drawn
from sojourn_lab.reproduction.claims import Claim, NoRunsError, Runs
from sojourn_lab.reproduction.paper import Experiment, table

__all__ = [
    "CLAIMS",
    "FACTS",
    "REFERENCE",
    "SETTINGS",
    "TITLE",
    "dc_drawn",
    "drr_drawn",
    "ewfq_drawn",
    "hred_drawn",
    "red_drawn",
    "scenarios",
]

TITLE = "The five papers with today's senders and disciplines"
REFERENCE = "Our own: the questions of the five papers of this folder, asked again"

PARTS = {"drr": drr, "red": red, "dc": dc, "ewfq": ewfq, "hred": hred}
"""Modules by the name of their experiment."""

CLAIMS: list[Claim] = [claim for module in PARTS.values() for claim in module.CLAIMS]
SETTINGS = [setting for module in PARTS.values() for setting in module.SETTINGS]
FACTS = {name: fact for module in PARTS.values() for name, fact in module.FACTS.items()}


def scenarios(full: bool) -> dict[str, Experiment]:
    """Return the experiments, one for each paper."""
    return {name: module.experiment(full) for name, module in PARTS.items()}


@table("survives", "Parts that hold, by sender", needs=[*PARTS])
def survives(runs: Runs) -> pl.DataFrame:
    """Tabulate, for each conclusion and sender, how many parts hold."""
    rows = [
        [f"{claim.id}: {claim.says}", *(_count(claim, runs, s) for s in NAMES)] for claim in CLAIMS
    ]
    return pl.DataFrame(rows, schema=["conclusion", *NAMES.values()], orient="row")


def _count(claim: Claim, runs: Runs, sender: str) -> str:
    """Return k of n for one sender."""
    check: Any = claim.check
    try:
        parts = check(runs, who=(sender,))
    except NoRunsError:
        return "left out"
    return f"{sum(part.result == 'holds' for part in parts)} of {len(parts)}"
