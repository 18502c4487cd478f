"""Comparison of runs on real packets with the same scenarios simulated: table, lines, summary."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sojourn.plotting.run import legend
from sojourn_lab.reproduction.claims import NoRunsError, Runs
from sojourn_lab.reproduction.paper import Figure, Live, Outcome
from sojourn_lab.reproduction.parts import short

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from sojourn.result.result import Array


def name(experiment: str) -> str:
    """Return the name of the simulated counterpart of an experiment on real packets."""
    return f"{experiment} simulated"


def comparison(notes: Live, needs: tuple[str, ...]) -> Figure:
    """Return the table that compares live with simulated runs."""

    def tabulate(runs: Runs) -> "pl.DataFrame":
        import polars as pl

        both = [_both(notes, runs[one], runs[name(one)]) for one in needs]
        return pl.concat(both, how="diagonal")

    return Figure("live", "Live and simulated: the same scenarios", needs, tabulate=tabulate)


def _both(notes: Live, emulated: "pl.DataFrame", simulated: "pl.DataFrame") -> "pl.DataFrame":
    """Return a row per point of an experiment: means over seeds, live and simulated."""
    import polars as pl

    labels = json.loads(emulated["axes"][0])
    rows = []
    for point in emulated.select(labels).unique(maintain_order=True).iter_rows():
        at = dict(zip(labels, point, strict=True))
        here = [pl.col(key) == value for key, value in at.items()]
        row = {key: notes.names.get(str(value), str(value)) for key, value in at.items()}
        for column, (what, scale) in notes.columns.items():
            for frame, word in ((emulated, "live"), (simulated, "simulated")):
                values = frame.filter(*here)[column].to_numpy()
                row[f"{what}: {word}"] = short(scale * float(values.mean()))
        rows.append(row)
    return pl.DataFrame(rows)


def largest_difference(runs: Runs, of: str, column: str) -> float:
    """Return the largest difference of a column, live against simulated, of any point."""
    live, simulated = _means(runs, of, column)
    return float(abs(live - simulated).max())


def ratios(runs: Runs, of: str, column: str) -> tuple[float, float]:
    """Return the smallest and the largest ratio of a column, live to simulated, of any point.

    Points with a simulated 0 do not count. Raises NoRunsError if there are no others.
    """
    live, simulated = _means(runs, of, column)
    if not (simulated > 0).any():
        raise NoRunsError(f"{of}: no simulated run has a {column} above 0")
    each = live[simulated > 0] / simulated[simulated > 0]
    return float(each.min()), float(each.max())


def ratio_text(runs: Runs, of: str, column: str) -> str:
    """Return the range of the ratios of a column as a text."""
    least, most = ratios(runs, of, column)
    return f"{short(least)} to {short(most)} times"


def _means(runs: Runs, of: str, column: str) -> tuple["Array", "Array"]:
    """Return the means of a column over seeds, live and simulated, by point."""
    import polars as pl

    means = []
    for frame in (runs[of], runs[name(of)]):
        labels = json.loads(frame["axes"][0])
        points = frame.group_by(labels).agg(pl.col(column).mean()).sort(labels)
        means.append(points[column].to_numpy())
    return means[0], means[1]


def draw(figure: Figure, outcome: Outcome, ax: "Axes") -> None:
    """Add the simulated results to a finished figure, as thin dotted lines with hollow markers."""
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    assert figure.draw is not None
    assert outcome.emulated is not None
    there, containers = set(ax.get_children()), len(ax.containers)
    bottom = ax.get_ylim()[0]
    # Autoscale again: the limits must have room for both sets of lines.
    ax.set_autoscaley_on(True)
    figure.draw(outcome.emulated.simulated, ax)
    for container in ax.containers[containers:]:
        container.set_label("_simulated")
    for artist in set(ax.get_children()) - there:
        if isinstance(artist, Line2D) and artist.get_linestyle() != "None":
            artist.set(linestyle=":", linewidth=0.8, mfc="none", ms=5, label="_simulated")
        elif isinstance(artist, Line2D | LineCollection):
            artist.remove()  # an interval, or the caps of one
    ax.set_ylim(bottom=min(bottom, ax.get_ylim()[0]))
    look: dict[str, Any] = {"ls": ":", "lw": 0.8, "marker": "o", "mfc": "none", "ms": 5}
    ax.plot([], [], label="simulated", color="#444444", **look)
    legend(ax)


def intro(notes: Live, numbers: Mapping[str, Any]) -> str:
    """Return the first paragraph of a live report: set-up, duration, and accuracy of the runs."""
    ours, theirs = numbers["run_s"], notes.paper_s
    seeds = numbers["seeds"]
    lines = [
        f"These runs use real packets: the TCP and UDP of {numbers['kernel']}, over links emulated "
        f"by sojourn in real time. Each of the {numbers['runs']} runs lasted {ours:g} s, of which "
        f"the first {numbers['cut_s']:g} s are not counted, with {seeds} "
        f"seed{'s' if seeds > 1 else ''}. "
        f"{notes.theirs} lasted "
        + ("as long." if theirs == ours else f"{theirs:g} s, {theirs / ours:.3g} times as long.")
    ]
    worst = ", ".join(
        f"{_late(numbers[f'worst_{key}'])} for {what}"
        for key, what in (
            ("lateness_p99_s", "packets"),
            ("application_p99_s", "actions of applications"),
        )
    )
    lines.append(f"Lateness (99th percentile, worst run): {worst}.")
    bad = numbers["runs_with_warnings"]
    if bad:
        warnings = "; ".join(numbers["warnings"])
        lines.append(f"**{bad} runs have warnings about their accuracy:** {warnings}.")
    else:
        lines.append("No run has a warning about its accuracy.")
    if numbers["left_out"]:
        left_out = ", ".join(numbers["left_out"])
        lines.append(f"Claims and figures without runs on real packets here: {left_out}.")
    return " ".join(lines)


def _late(seconds: float | None) -> str:
    return "none" if seconds is None else f"{seconds * 1e3:.2g} ms"
