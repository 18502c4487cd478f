"""Senders, names, rules and the figure that the five questions share."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sojourn.plotting.lines import style
from sojourn.plotting.run import legend
from sojourn.result.statistics import interval, paired
from sojourn_lab.reproduction.claims import NoRunsError, Runs, Setting, values
from sojourn_lab.reproduction.parts import Part, result_of, short, with_interval

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

Table = dict[str, Any]

SENDERS: dict[str, Table] = {
    name: {"name": name, "profile": "linux"} for name in ("cubic", "bbr", "bbr3")
}
"""Today's senders: the profile linux."""

TODAY = tuple(SENDERS)
NAMES = {"then": "the paper's TCP", "cubic": "CUBIC", "bbr": "BBR", "bbr3": "BBRv3"}
DISCIPLINES = {
    "fq_codel": "FQ-CoDel",
    "pie": "PIE",
    "cobalt": "COBALT",
    "cake": "CAKE",
    "dualpi2": "DualPI2",
}
"""Today's disciplines."""

PAIRS = "Paired by seed; the 95 % interval of the difference is above 0."
ALL = "Each of CUBIC, BBR and BBRv3 has parts of its own."


def tcp(sender: str, then: Mapping[str, Any], **more: Any) -> Table:
    """Return a sender's parameters; `then` is the paper's, whose packet size all have."""
    size = {"packet": then["packet"]}
    return dict(then) if sender == "then" else {**SENDERS[sender], **size, **more}


def senders(full: bool) -> tuple[str, ...]:
    """Return the senders of a mode: quick mode omits BBRv3."""
    return ("then", *TODAY) if full else ("then", *TODAY[:2])


def there(frame: "pl.DataFrame", names: Sequence[str]) -> list[str]:
    """Return the senders that ran. Raises NoRunsError if none did."""
    present = [name for name in names if name in set(frame["sender"])]
    if not present:
        raise NoRunsError("no runs with these senders")
    return present


def only(experiment: str) -> tuple[Setting, ...]:
    """Return a setting for each of today's senders, which is a case of the claim.

    The check then sees only the runs of that sender. A claim that holds wholly with one sender, and
    not with others, therefore holds except with the others.
    """

    def of(sender: str) -> Setting:
        def alone(whole: "pl.DataFrame") -> "pl.DataFrame":
            import polars as pl

            rows = whole.filter(pl.col("sender") == sender)
            if not len(rows):
                raise NoRunsError(f"no runs with {sender}")
            each = [rows.with_columns(sender=pl.lit(one)) for one in there(whole, TODAY)]
            return pl.concat(each)

        return Setting(NAMES[sender], {experiment: alone}, case=True)

    return tuple(of(sender) for sender in TODAY)


def not_worse(
    what: str,
    ours: npt.ArrayLike,
    theirs: npt.ArrayLike,
    slack: float,
    *,
    unit: str = "",
    scale: float = 1.0,
    sign: int = 1,
) -> Part:
    """Compare two means: holds if ours is at most `slack` below theirs (sign -1: above).

    The whole interval of the difference, paired by seed, is on the right side.
    """
    a, b = np.asarray(ours, dtype=float) * scale, np.asarray(theirs, dtype=float) * scale
    gap = paired(sign * a, sign * b)
    result = result_of(gap, gap.low >= -slack, gap.high < -slack)
    end = f" {unit}" if unit else ""
    both = f"{short(float(a.mean()))} against {short(float(b.mean()))}{end}"
    side = "below" if sign > 0 else "above"
    measured = f"{both}; difference {with_interval(paired(a, b), unit)}"
    return Part(
        what, f"at most {short(slack)}{end} {side}", measured, result, paired(a, b), brief=both
    )


def inside(what: str, samples: npt.ArrayLike, low: float, high: float, *, unit: str = "") -> Part:
    """Return the part: the whole interval of a mean is within two bounds, both in `unit`."""
    mine = interval(samples)
    result = result_of(
        mine, mine.low >= low and mine.high <= high, mine.high < low or mine.low > high
    )
    end = f" {unit}" if unit else ""
    brief = f"{short(mine.mean)}{end}"
    return Part(
        what,
        f"{short(low)} to {short(high)}{end}",
        with_interval(mine, unit),
        result,
        mine,
        brief=brief,
    )


def mean_text(frame: "pl.DataFrame", column: str, scale: float = 1.0, **labels: Any) -> str:
    """Return a mean over the seeds that have a value as a text."""
    known = values(frame, column, **labels).astype(float)
    known = known[np.isfinite(known)]
    return short(scale * float(known.mean())) if len(known) else ""


def by_sender(
    experiment: str, column: str, unit: str, scale: float = 1.0, **labels: Any
) -> Callable[[Runs], str]:
    """Return the fact: the means of today's senders, by name, with these labels."""

    def fact(runs: Runs) -> str:
        frame = runs[experiment]
        end = f" {unit}" if unit else ""
        each = []
        for one in there(frame, TODAY):
            mean = mean_text(frame, column, scale, sender=one, **labels)
            each.append(f"{mean}{end} with {NAMES[one]}" if mean else f"none with {NAMES[one]}")
        return ", ".join(each)

    return fact


def dots(
    ax: "Axes",
    frame: "pl.DataFrame",
    column: str,
    names: Mapping[str, str],
    *,
    scale: float = 1.0,
    new: int = 5,
) -> None:
    """Draw the mean of `column` for each discipline and sender, with 95 % intervals.

    Senders are side by side with a marker and a colour each; the last `new` disciplines are
    today's, on a grey ground. A discipline without values has no marker.
    """
    used = there(frame, list(NAMES))
    for n, sender in enumerate(used):
        ran = [
            (i, rows[column].to_numpy().astype(float) * scale)
            for i, name in enumerate(names)
            if len(rows := frame.filter(sender=sender, qdisc=name).drop_nulls(column))
        ]
        intervals = [interval(each) for _, each in ran]
        look = {**style(n), "ls": "", "ms": 5}
        ax.errorbar(
            [i + (n - (len(used) - 1) / 2) * 0.18 for i, _ in ran],
            [one.mean for one in intervals],
            yerr=[0.0 if one.half != one.half else one.half for one in intervals],
            label=NAMES[sender],
            capsize=2,
            elinewidth=0.8,
            **look,
        )
    count = len(names)
    ax.axvspan(count - new - 0.5, count - 0.5, color="#eeeeee", lw=0, zorder=0)
    for x in range(1, count):
        ax.axvline(x - 0.5, color="#d9d9d9", lw=0.6, zorder=0)
    ax.set_xticks(range(count), [label.replace(" ", "\n") for label in names.values()])
    ax.set_xlim(-0.5, count - 0.5)
    ax.grid(axis="x", visible=False)
    legend(ax)
