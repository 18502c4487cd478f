"""HRED with today's senders: a queue within its band, and the response to a step of the load."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sojourn._util.units import seconds
from sojourn.result.result import Result
from sojourn.result.select import buffer_of
from sojourn_lab.papers.hred.common import NEWRENO, response, scheme, step
from sojourn_lab.papers.today.common import (
    ALL,
    DISCIPLINES,
    NAMES,
    PAIRS,
    TODAY,
    Table,
    by_sender,
    dots,
    inside,
    not_worse,
    only,
    senders,
    tcp,
    there,
)
from sojourn_lab.reproduction.claims import Claim, Runs, values
from sojourn_lab.reproduction.paper import Experiment, Point, figure
from sojourn_lab.reproduction.parts import Part, bound, order
from sojourn_lab.reproduction.theirs import band

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OLD = {"hred": "HRED", "red": "RED", "pi": "PIC"}
LABELS = {**OLD, **DISCIPLINES}
BAND = (25, 50)
"""HRED's thresholds, per cent of the buffer."""

SMALL = 12.5
"""Half the width of this band: the limit of a small deviation, as on the paper's page."""

AT_ONCE = 2
"""Seconds after a step within which a queue that is back has adapted at once."""


def _qdisc(name: str) -> Table:
    if name in OLD:
        return scheme(name, 300)
    own: dict[str, Table] = {"pie": {"packet": "500B"}, "cake": {"isolation": "flows"}}
    return {"name": name, "limit": "300kB", **own.get(name, {})}


def _scenario(sender: str, qdisc: str, times: tuple[int, int, int]) -> Table:
    """Return 300 FTPs and web sessions, and 30 % more between the first two times (s)."""
    tree = step(_qdisc(qdisc), 30, *times)
    for flow in tree["flows"]:
        flow["tcp"] = tcp(sender, NEWRENO)
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
        "overflows": each["overflows"],
    }


def experiment(full: bool) -> Experiment:
    """Return the runs: sender, discipline."""
    times = (20, 26, 32) if full else (6, 9, 12)
    # BBRv3 is left out; quick mode has only CUBIC, since hundreds of BBR flows are slow.
    used = senders(False) if full else senders(False)[:2]
    points: list[Point] = [
        ({"sender": s, "qdisc": q}, _scenario(s, q, times)) for s in used for q in LABELS
    ]
    return Experiment(points, measure, 5 if full else 2)


def _stable(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Part]:
    """C12: HRED's mean queue is within its band, its deviation below half the width, by sender.

    Fails wrongly: if the first 10 s of a run are too short for its mean to settle. Passes wrongly:
    a band of a quarter of the buffer is wide.
    """
    frame, parts = runs["hred"], []
    for s in there(frame, who):
        own = {"sender": s, "qdisc": "hred"}
        parts += [
            inside(f"{NAMES[s]}: mean queue", values(frame, "mean", **own), *BAND, unit="% of B"),
            bound(f"{NAMES[s]}: deviation", values(frame, "std", **own), "<", SMALL,
                  unit="% of B"),
        ]  # fmt: skip
    return parts


def _quick(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Part]:
    """C13: after a step of 30 % HRED's queue is away for less than 2 s, and less long than PIC's.

    Fails wrongly: a queue that was outside its band before the step is away from another mean.
    Passes wrongly: a sender that ignores drops keeps the buffer full before and after the step;
    C12 has that.
    """
    frame, parts = runs["hred"], []
    for s in there(frame, who):
        ours, pic = (values(frame, "away_s", sender=s, qdisc=q) for q in ("hred", "pi"))
        parts += [
            bound(f"{NAMES[s]}: away", ours, "<", AT_ONCE, unit="s"),
            order(f"{NAMES[s]}: less long than PIC", ours, pic, unit="s"),
        ]
    return parts


def _as_stable(runs: Runs, who: tuple[str, ...] = TODAY) -> list[Part]:
    """C14: PIE's deviation is at most 3 points of B above HRED's, and it adapts at once.

    Fails wrongly: PIE's target is a delay, so its queue is another share of the buffer. Passes
    wrongly: an empty queue has no deviation.
    """
    frame, parts = runs["hred"], []
    for s in there(frame, who):
        ours, theirs = ({"sender": s, "qdisc": q} for q in ("pie", "hred"))
        parts += [
            not_worse(f"{NAMES[s]}: deviation", values(frame, "std", **ours),
                      values(frame, "std", **theirs), 3, unit="% of B", sign=-1),
            bound(f"{NAMES[s]}: away", values(frame, "away_s", **ours), "<", AT_ONCE, unit="s"),
        ]  # fmt: skip
    return parts


CLAIMS = [
    Claim(
        "005-C12", "HRED: its queue is stable within its band.", "hred",
        "mean 25 to 50 % of B, small deviation",
        "300 FTPs and web sessions, 300 kB, over the 10 s before the step. The interval of the "
        f"mean is inside the band; deviation below half its width. {ALL}",
        partial(_stable), ("hred",),
        why="this sender hardly responds to drops",
    ),
    Claim(
        "005-C13", "HRED: it adapts at once to 30 % more load.", "hred",
        "at once; PIC takes some time",
        "Seconds after the step in which the mean queue differs by a tenth of the buffer or more "
        f"from the mean before it: fewer than 2, and fewer than PIC's. {ALL} {PAIRS}",
        partial(_quick), ("hred",),
        why="PIC's queue is as full before the step as after",
    ),
    Claim(
        "005-C14", "Today: PIE is as stable and as quick as HRED.", "hred", "(not in the paper)",
        f"Deviation at most 3 points of B above HRED's; away for less than 2 s. {ALL}",
        partial(_as_stable), ("hred",),
        why="PIE's queue swings with BBR; seconds vary between seeds",
    ),
]  # fmt: skip

SETTINGS = only("hred")

FACTS = {
    **{
        f"hred-{q}": by_sender("hred", "mean", "% of B", qdisc=q)
        for q in ("hred", "red", "pi", "pie", "fq_codel")
    },
    **{
        f"hred-std-{q}": by_sender("hred", "std", "% of B", qdisc=q)
        for q in ("hred", "pie")
    },
    **{
        f"hred-away-{q}": by_sender("hred", "away_s", "s", qdisc=q)
        for q in ("hred", "pi", "pie")
    },
}  # fmt: skip


@figure("hred", "HRED, 300 FTPs and web sessions: mean queue", needs=["hred"], size=(7.6, 3.6))
def drawn(runs: Runs, ax: "Axes") -> None:
    """Draw the mean queue under each discipline, and HRED's band; today's on a grey ground."""
    dots(ax, runs["hred"], "mean", LABELS)
    band(ax, *BAND, "HRED's band")
    ax.set(ylabel="mean queue, % of the buffer", ylim=(0, 105))
