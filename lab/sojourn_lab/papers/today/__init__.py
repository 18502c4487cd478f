"""The questions of the five papers, asked again with today's senders and disciplines.

Each question keeps the network, the load, the buffer and the parameters of its paper's page (see
those pages for our choices). Two things change.

- Senders: CUBIC and BBR (version 1) as Linux has them (`linux_cubic`, `linux_bbr`), BBRv3 of the
  Internet draft with the same settings, and TCP Prague. All detect losses by RACK, have delayed
  acks, an initial window of ten packets and a minimum RTO of 200 ms. CUBIC has proportional rate
  reduction. The packet size is the paper's.
- Disciplines: FQ-CoDel, PIE, COBALT, CAKE (unlimited, a queue per flow) and DualPI2, with their
  default parameters and the paper's buffer.

The senders are cases of every conclusion.

- Alone: all flows of a run have the same sender.
- CUBIC with ECN: all flows use ECN (RFC 3168), and every discipline that can mark does so instead
  of dropping: RED, ARED, REDopt, CoDel, HRED, PIC, PIE, COBALT, FQ-CoDel, CAKE, DualPI2. Tail Drop,
  DRR, WFQ and EWFQ cannot.
- Mixtures: half of the FTPs (of each group with the same path) use CUBIC, half BBR, BBRv3 or
  Prague. With Prague the disciplines mark, and DualPI2 has Prague in its L4S queue and CUBIC, which
  does not use ECN, in its classic one. EWFQ's sources have the two TCPs in turn. In the data centre
  CUBIC sends the answers, and the other TCP the long flow. The web sessions of HRED's network use
  CUBIC; Prague and BBRv3 next to CUBIC do not run there.

The paper's own TCP also runs at every point. It is not part of the verdicts, which are about
today's senders. A conclusion survives with a sender if all its parts hold; it does not if a part
fails; otherwise an interval includes the limit, and it is undecided. Claims marked "not in the
paper" are ours, about today's disciplines.

- Tail Drop against RED: 16 and 64 FTPs for 120 s, and 1000 web sessions for 200 s, the first 40 s
  not counted.
- CoDel against DRR: 4 FTPs and a CBR flow each way over 2, 4 and 10 Mbit/s for 100 s, the first
  10 s not counted. The mixtures' shares of the bandwidth are measured here, too.

Seeds: 5, with settings 3. Quick mode has 2 seeds, shorter runs, fewer points, and only CUBIC with
HRED.
"""

import polars as pl

from sojourn_lab.papers.today import dc, drr, ewfq, hred, red, shares, survives
from sojourn_lab.papers.today.dc import drawn as dc_drawn
from sojourn_lab.papers.today.drr import drawn as drr_drawn
from sojourn_lab.papers.today.ewfq import buffers_drawn, cake_table
from sojourn_lab.papers.today.ewfq import drawn as ewfq_drawn
from sojourn_lab.papers.today.hred import drawn as hred_drawn
from sojourn_lab.papers.today.red import drawn as red_drawn
from sojourn_lab.papers.today.shares import drawn as shares_drawn
from sojourn_lab.papers.today.shares import shares_table
from sojourn_lab.reproduction.claims import Claim, Runs, Setting
from sojourn_lab.reproduction.paper import Experiment, table

__all__ = [
    "CLAIMS",
    "FACTS",
    "REFERENCE",
    "SETTINGS",
    "TITLE",
    "buffers_drawn",
    "cake_table",
    "dc_drawn",
    "drr_drawn",
    "ewfq_drawn",
    "hred_drawn",
    "red_drawn",
    "scenarios",
    "shares_drawn",
    "shares_table",
]

TITLE = "The five papers with today's senders and disciplines"
REFERENCE = "Our own: the questions of the five papers of this folder, asked again"

MODULES = (drr, red, dc, ewfq, hred, shares)
CLAIMS: list[Claim] = [claim for module in MODULES for claim in module.CLAIMS]
SETTINGS: list[Setting] = dc.SETTINGS
FACTS = {
    **{name: fact for module in MODULES for name, fact in module.FACTS.items()},
    **survives.facts(CLAIMS),
}

OLD = [claim for claim in CLAIMS if claim.stated != survives.OURS]
NEW = [claim for claim in CLAIMS if claim.stated == survives.OURS]
NEEDS = ("drr", "red", "dc", "ewfq", "hred")
"""Experiments that the conclusions need."""


def scenarios(full: bool) -> dict[str, Experiment]:
    """Return the experiments, one or two for each paper."""
    return {
        "drr": drr.experiment(full),
        "red": red.experiment(full),
        **dc.experiments(full),
        **ewfq.experiments(full),
        "hred": hred.experiment(full),
    }


@table("survives", "What survives of the five papers' conclusions", needs=NEEDS, front=True)
def survives_table(runs: Runs) -> pl.DataFrame:
    """Tabulate, for each old conclusion, the senders with which it survives, and its effect."""
    return survives.verdicts(OLD, runs)


@table("today", "What holds of today's disciplines", needs=NEEDS, front=True)
def today_table(runs: Runs) -> pl.DataFrame:
    """Tabulate the same for the claims that are ours."""
    return survives.verdicts(NEW, runs)


@table("by sender", "Parts that hold, by sender", needs=NEEDS)
def senders_table(runs: Runs) -> pl.DataFrame:
    """Tabulate, for each conclusion and sender, how many parts hold."""
    return survives.by_sender(CLAIMS, runs)
