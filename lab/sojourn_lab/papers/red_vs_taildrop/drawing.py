"""Drawing of rows in the figures of `red_vs_taildrop`: over FTPs, over sessions, runs of losses."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sojourn.plotting.lines import lines, style
from sojourn.plotting.run import legend
from sojourn.result.statistics import interval
from sojourn_lab.papers.red_vs_taildrop.experiments import THREE
from sojourn_lab.papers.red_vs_taildrop.rules import NS2, RED
from sojourn_lab.papers.red_vs_taildrop.runs import FTPS, NAMES, SESSIONS
from sojourn_lab.reproduction.claims import Runs, values
from sojourn_lab.reproduction.theirs import ns2

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

BASE: dict[str, Any] = {"color": "#555555", "lw": 1, "zorder": 0}
"""Look of the line at 0 of paired differences."""


def ftp_axis(ax: "Axes") -> None:
    """Set up the axis with numbers of FTPs."""
    ax.set(xlabel="FTP flows", xscale="log", ylim=(0, None))
    plain_ticks(ax.xaxis, FTPS)


def over_ftps(frame: pl.DataFrame, ax: "Axes", what: str, label: str, scale: float = 1.0) -> None:
    """Draw a column over the number of FTPs."""
    lines(ax, frame, "flows", what, by="q", names=NAMES, scale=scale)
    ftp_axis(ax)
    ax.set_ylabel(label)


def with_ns2_values(
    runs: Runs, ax: "Axes", what: str, column: int, label: str, scale: float
) -> None:
    """Draw a column over the number of FTPs with 300 packets, and ns-2's values."""
    over_ftps(runs["ns-2"], ax, what, label, scale)
    plain_ticks(ax.xaxis, THREE)
    for n, q in enumerate(NAMES):
        theirs = {flows: row[column] for (name, flows), row in NS2.items() if name == q}
        if theirs:
            ns2(ax, list(theirs), list(theirs.values()), n)


def over_sessions(runs: Runs, ax: "Axes", what: str, label: str, scale: float = 1.0) -> None:
    """Draw means of a column over the number of web sessions, without intervals.

    The load varies between seeds, with all disciplines alike: see `relative`.
    """
    means = runs["web"].group_by("q", "sessions").agg(pl.col(what).mean())
    lines(ax, means, "sessions", what, by="q", names=NAMES, scale=scale)
    ax.set(xlabel="web sessions", xticks=list(SESSIONS), ylabel=label, ylim=(0, None))


def relative(runs: Runs, ax: "Axes", what: str, label: str) -> None:
    """Draw the difference from Tail Drop, paired by seed, in percent of Tail Drop's value."""
    frame = runs["web"].select("q", "sessions", "seed", what)
    base = frame.filter(q="td").select("sessions", "seed", base=what)
    paired = frame.join(base, on=["sessions", "seed"])
    paired = paired.with_columns(more=100 * (pl.col(what) / pl.col("base") - 1))
    lines(ax, paired, "sessions", "more", by="q", names={q: NAMES[q] for q in RED}, begin=1)
    ax.axhline(0, **BASE)
    ax.set(xlabel="web sessions", xticks=list(SESSIONS), ylabel=label)


def run_lengths(frame: pl.DataFrame, ax: "Axes", **labels: Any) -> None:
    """Draw the share of loss runs of length n: mean over seeds with 95 % intervals."""
    longest = 1
    for k, (q, name) in enumerate(NAMES.items()):
        counts = [np.asarray(one) for one in values(frame, "runs", q=q, **labels)]
        most = max(len(one) for one in counts)
        shares = np.array([np.pad(one, (0, most - len(one))) / one.sum() for one in counts])
        seen = [n for n in range(most) if shares[:, n].mean() > 0]
        means = [interval(shares[:, n]) for n in seen]
        # A logarithmic axis cannot show an interval that includes zero.
        bars = [one.half if one.low > 0 else 0.0 for one in means]
        look = style(k) | {"ls": "-" if most < 20 else "", "label": name, "alpha": 0.8}
        look["ms"] = 4 if q == "opt" else 6 if q == "gred" else 3
        ax.errorbar([n + 1 for n in seen], [one.mean for one in means], yerr=bars, capsize=2,
                    elinewidth=0.8, mfc="none", **look)  # fmt: skip
        longest = max(longest, most)
    ax.set(xlabel="losses in a row, n", ylabel="P(N = n)", xscale="log", yscale="log")
    plain_ticks(ax.xaxis, [n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500) if n <= 2 * longest])
    low = int(np.floor(np.log10(ax.get_ylim()[0])))
    plain_ticks(ax.yaxis, [10.0**n for n in range(low + 1, 1)])
    legend(ax)


def plain_ticks(axis: "Axis", places: Sequence[float]) -> None:
    """Set plain numbers as the only ticks of a logarithmic axis."""
    axis.set_ticks(list(places), [f"{one:g}" for one in places])
    axis.set_ticks([], minor=True)
