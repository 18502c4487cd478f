"""Numbers of `codel_dc` over seeds: the paper's model, gains, lists over time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sojourn.plotting.lines import style
from sojourn.result.statistics import quantile
from sojourn_lab.reproduction.claims import values

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes


def known_mean(column: Any) -> float | None:
    """Return the mean over the seeds that have a value; None if none has."""
    known = np.asarray(column, dtype=float)
    known = known[np.isfinite(known)]
    return float(known.mean()) if len(known) else None


def model(ratio: float) -> float:
    """Return the paper's utilisation (its equation 7) for target/RTT = `ratio`."""
    if ratio >= 1:
        return 1.0
    return (3 + ratio) / 4 * (1 - ratio) / (1 + ratio) + 2 * ratio / (1 + ratio)


def by_time(ratio: float) -> float:
    """Return the time-weighted utilisation: a round trip takes longer while there is a queue."""
    return 1.0 if ratio >= 1 else 0.75 * (1 + ratio) ** 2 / (1 + ratio + ratio**2)


def times(frame: "pl.DataFrame", one: str, other: str, **labels: Any) -> tuple[Any, Any]:
    """Return the mean times (s) of two disciplines for each seed in which both have a value."""
    pair = [values(frame, "afct_s", scheme=name, **labels).astype(float) for name in (one, other)]
    there = np.isfinite(pair[0]) & np.isfinite(pair[1])
    return pair[0][there], pair[1][there]


def gain(frame: "pl.DataFrame", of: str, over: str, **labels: Any) -> Any:
    """Return by how many per cent the mean time of one discipline is shorter, per such seed."""
    ours, theirs = times(frame, of, over, **labels)
    return 100 * (1 - ours / theirs)


def best(frame: "pl.DataFrame", of: str, over: str, by: str) -> tuple[Any, Any]:
    """Return the value of `by` with the largest mean gain, and the gains there."""
    by_place = {x: gain(frame, of, over, **{by: x}) for x in sorted(frame[by].unique().to_list())}
    means = {x: float(np.mean(one)) if len(one) else -np.inf for x, one in by_place.items()}
    place = max(means, key=lambda x: means[x])
    return place, by_place[place]


def gains(frame: "pl.DataFrame", by: str, over: str, names: Sequence[str]) -> "pl.DataFrame":
    """Return the gains of disciplines over one, as rows with discipline, `by` and seed."""
    import polars as pl

    rows = [
        {"scheme": name, by: x, "seed": seed, "gain": float(one)}
        for name in names
        for x in sorted(frame[by].unique().to_list())
        for seed, one in enumerate(gain(frame, name, over, **{by: x}), 1)
    ]
    return pl.DataFrame(rows)


def columns(frame: "pl.DataFrame", what: str, scheme: str) -> Any:
    """Return the lists of a discipline, a row for each seed."""
    return np.array([list(one) for one in values(frame, what, scheme=scheme)], dtype=float)


def band(
    ax: "Axes", frame: "pl.DataFrame", what: str, scheme: str, n: int, label: str, ls: str = ""
) -> None:
    """Draw the mean over seeds of a list over time, with its interval, as the n-th line."""
    each = columns(frame, what, scheme)
    time = columns(frame, "time_ms", scheme)[0]
    mean = each.mean(axis=0)
    half = quantile(len(each) - 1) * each.std(axis=0, ddof=1) / len(each) ** 0.5
    colour = style(n)["color"]
    ax.plot(time, mean, color=colour, ls=ls or style(n)["ls"], label=label)
    ax.fill_between(time, mean - half, mean + half, color=colour, alpha=0.2, lw=0)
