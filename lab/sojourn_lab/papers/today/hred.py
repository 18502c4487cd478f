"""HRED with today's senders: a queue within its band, and the response to a step of the load."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sojourn._util.units import seconds
from sojourn.result.result import Result
from sojourn.result.select import buffer_of
from sojourn_lab.papers.hred.common import NEWRENO, scheme, step
from sojourn_lab.papers.hred.measures import response
from sojourn_lab.papers.today.drawing import dots, stated_values
from sojourn_lab.papers.today.rules import (
    ALL,
    PAIRS,
    At,
    Compared,
    below,
    by_sender,
    inside,
    less,
    not_worse,
)
from sojourn_lab.papers.today.senders import (
    DISCIPLINES,
    SENDERS,
    THEN,
    TODAY,
    Table,
    assigned,
    marking,
    there,
)
from sojourn_lab.reproduction.claims import Claim, Runs, values
from sojourn_lab.reproduction.paper import Experiment, Point, figure
from sojourn_lab.reproduction.theirs import band

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OLD = {"hred": "HRED", "red": "RED", "pi": "PIC"}
NEW = ("fq_codel", "pie")
LABELS = {**OLD, **{name: DISCIPLINES[name] for name in NEW}}
BAND = (25, 50)
"""HRED's thresholds, per cent of the buffer."""

SMALL = 12.5
"""Half the width of this band: the limit of a small deviation, as on the paper's page."""

WITH = ("cubic", "bbr", "bbr3", "ecn", "cubic+bbr")
"""Senders of this question."""

AT_ONCE = 2
"""Seconds after a step within which a queue that is back has adapted at once."""


def _qdisc(name: str) -> Table:
    if name in OLD:
        return scheme(name, 300)
    own: dict[str, Table] = {"pie": {"packet": "500B"}}
    return {"name": name, "limit": "300kB", **own.get(name, {})}


def _scenario(sender: str, qdisc: str, times: tuple[int, int, int]) -> Table:
    """Return 300 FTPs and web sessions, and 30 % more between the first two times (s).

    In a mixture the FTPs use the TCPs in turn, and all web sessions the first one.
    """
    tree = step(marking(_qdisc(qdisc), sender), 30, *times)
    if sender != THEN:
        ftps = iter(assigned([one for one in tree["flows"] if "count" not in one], sender))
        first = SENDERS[sender].tcps[0]
        tree["flows"] = [
            {**one, "tcp": {**first, "packet": NEWRENO["packet"]}} if "count" in one else next(ftps)
            for one in tree["flows"]
        ]
    return {**tree, "sample": "10ms"}


def measure(result: Result) -> dict[str, Any]:
    """Keep the queue before the step, in per cent of the buffer, and the response to it."""
    buffer, _ = buffer_of(result, "bottleneck")
    up = seconds(result.scenario["changes"][0]["at"])
    queue = 100 * result.links["bottleneck"].series["queue_bytes"] / buffer
    before = queue[(result.time_s > up / 2) & (result.time_s <= up)]
    each = response(result)
    return {
        "mean": float(before.mean()),
        "std": float(np.std(before)),
        "delay_ms": float(before.mean()) / 100 * buffer * 8 / 45e6 * 1e3,
        "used": each["used_before"],
        "away_s": float(each["away_up_s"]),
        "outside_s": _outside(result, queue, up),
        "overflows": each["overflows"],
    }


def _outside(result: Result, queue: npt.NDArray[np.float64], up: float) -> float:
    """Return the seconds after the step in which the mean queue is outside the band."""
    down = seconds(result.scenario["changes"][1]["at"])
    after = queue[(result.time_s > up) & (result.time_s <= down)]
    means = after.reshape(round(down - up), -1).mean(axis=1)
    return float(np.sum((means < BAND[0]) | (means > BAND[1])))


def experiment(full: bool) -> Experiment:
    """Return the runs: sender, discipline. Hundreds of BBRs are slow, so fewer senders run."""
    times = (20, 26, 28) if full else (6, 9, 12)
    used = (THEN, *WITH) if full else (THEN, "cubic")
    points: list[Point] = [
        ({"sender": s, "qdisc": q}, _scenario(s, q, times)) for s in used for q in LABELS
    ]
    return Experiment(points, measure, 5 if full else 2)


def _stable(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Compared]:
    """C12: HRED's mean queue is within its band, its deviation below half the width, by sender.

    Fails wrongly: if the first 10 s of a run are too short for its mean to settle. Passes wrongly:
    a band of a quarter of the buffer is wide.
    """
    frame, parts = runs["hred"], []
    for s in there(frame, who):
        own = {"sender": s, "qdisc": "hred"}
        parts += [
            inside(
                At(s, "mean queue", "mean queue", "% of B"), values(frame, "mean", **own), *BAND
            ),
            below(At(s, "deviation", "deviation", "% of B"), values(frame, "std", **own), SMALL),
        ]
    return parts


def _quick(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Compared]:
    """C13: after a step of 30 % HRED's queue is away for less than 2 s, and returns before PIC's.

    PIC's queue may be full before and after the step, and so never away from its mean; both are
    compared by the time outside the band, whose middle is PIC's target. Fails wrongly: a queue
    that was outside its band before the step is away from another mean. Passes wrongly: PIC's
    integral needs longer than these 20 s to reach its target, with or without the step.
    """
    frame, parts = runs["hred"], []
    for s in there(frame, who):
        own = values(frame, "away_s", sender=s, qdisc="hred")
        ours, pic = (values(frame, "outside_s", sender=s, qdisc=q) for q in ("hred", "pi"))
        parts += [
            below(At(s, "away from its mean", "time away", "s"), own, AT_ONCE),
            less(At(s, "outside the band, against PIC", "time outside the band", "s"), ours, pic),
        ]
    return parts


def _as_stable(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Compared]:
    """C14: PIE's deviation is at most 3 points of B above HRED's, and it adapts at once.

    Fails wrongly: PIE's target is a delay, so its queue is another share of the buffer. Passes
    wrongly: an empty queue has no deviation.
    """
    frame, parts = runs["hred"], []
    for s in there(frame, who):
        ours, theirs = ({"sender": s, "qdisc": q} for q in ("pie", "hred"))
        parts += [
            not_worse(At(s, "deviation", "deviation", "% of B"), values(frame, "std", **ours),
                      values(frame, "std", **theirs), 3, sign=-1),
            below(At(s, "away", "time away", "s"), values(frame, "away_s", **ours), AT_ONCE),
        ]  # fmt: skip
    return parts


CLAIMS = [
    Claim(
        "005-C12", "HRED: its queue is stable within its band.", "hred",
        "mean 25 to 50 % of B, small deviation",
        "300 FTPs and web sessions, 300 kB, over the 10 s before the step. The interval of the "
        f"mean is inside the band; deviation below half its width. {ALL}",
        partial(_stable), ("hred",),
        why="BBR hardly responds to drops",
    ),
    Claim(
        "005-C13", "HRED: it adapts at once to 30 % more load.", "hred",
        "at once; PIC takes some time",
        "Seconds after the step in which HRED's mean queue differs by a tenth of the buffer or "
        "more from the mean before it: fewer than 2. Seconds in which it is outside the band: "
        f"fewer than PIC's. {ALL} {PAIRS}",
        partial(_quick), ("hred",),
        why="it takes longer with BBR; seconds vary between seeds",
    ),
    Claim(
        "005-C14", "Today: PIE is as stable and as quick as HRED.", "hred", "(not in the paper)",
        f"Deviation at most 3 points of B above HRED's; away for less than 2 s. {ALL}",
        partial(_as_stable), ("hred",),
        why="PIE's queue swings with BBR; seconds vary between seeds",
    ),
]  # fmt: skip

FEW = ("cubic", "ecn", "bbr", "bbr3")
FACTS = {
    f"hred-{name}-{q}": by_sender("hred", column, unit, who=FEW, qdisc=q)
    for name, (column, unit) in {
        "mean": ("mean", "% of B"),
        "std": ("std", "% of B"),
        "away": ("away_s", "s"),
        "outside": ("outside_s", "s"),
    }.items()
    for q in LABELS
}

STATED = {"hred": 37.5, "pi": 37.5}
"""Mean queues that the paper states, % of the buffer: the middle of the band, and PIC's target."""


@figure("hred", "HRED, 300 FTPs and web sessions: mean queue", needs=["hred"], size=(9, 4.4))
def drawn(runs: Runs, ax: "Axes") -> None:
    """Draw the mean queue under each discipline, and HRED's band; today's on a grey ground."""
    stated_values(ax, list(LABELS), STATED, "paper")
    band(ax, *BAND, "HRED's band")
    dots(ax, runs["hred"], "mean", LABELS, new=len(NEW))
    ax.set(ylabel="mean queue, % of the buffer", ylim=(0, 105))
