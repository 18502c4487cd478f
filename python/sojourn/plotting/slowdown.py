"""Figure of the slowdown over the size of transfers, as papers on data centres print it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from sojourn._sojourn import InputError
from sojourn._util.inputs import shown
from sojourn._util.lazy import Lazy
from sojourn._util.public import public
from sojourn._util.units import size as size_text
from sojourn.plotting.lines import style
from sojourn.plotting.run import heading, legend, new_figure, styled, write
from sojourn.plotting.style import Look
from sojourn.result.result import Result
from sojourn.result.slowdown import PERCENTS, slowdown_bins
from sojourn.result.transfers import Definition

if TYPE_CHECKING:
    import matplotlib.figure as mpl
else:
    mpl = Lazy("matplotlib.figure")

LABELS = 10
"""Largest number of sizes below the axis."""


@public
def draw_slowdown(
    results: Mapping[str, Result | Sequence[Result]],
    path: str | Path | None = None,
    *,
    group: str | None = None,
    definition: Definition = "hpcc",
    percent: int = 99,
    bins: int = 20,
    **look: Unpack[Look],
) -> "mpl.Figure":
    """Draw a percentile of the slowdown over the size of transfers: one line per name.

    The axis of sizes has the same length for each bin, and so for as many transfers. A size below
    it is the largest in the bin, by the first of the lines.

    Parameters
    ----------
    results : mapping of str to Result or sequence of Result
        Runs by the name of their line; several runs (other seeds) are put together.
    path : str or Path, optional
        File to write, .png, .pdf or .svg.
    group : str, optional
        Group of flows; by default all.
    definition : {"alone", "hpcc", "pfabric", "homa"}, optional
        Definition of the slowdown, see `fct_table`.
    percent : {50, 95, 99}, optional
        The percentile.
    bins : int, optional
        Number of bins with as many transfers each.
    **look : optional
        Options `title`, `xlabel`, `ylabel`, `size` and `style`, see `sojourn.plotting.style.Look`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. It is not registered with pyplot.

    Raises
    ------
    InputError
        If an option is invalid, there is no transfer, or the file cannot be written.
    """
    if percent not in PERCENTS:
        raise InputError(f"percent: {shown(percent)} is not one of 50, 95 and 99")
    tables = {name: slowdown_bins(runs, group, definition, bins) for name, runs in results.items()}
    first = next(iter(tables.values()), None)
    if first is None or not all(len(table) for table in tables.values()):
        raise InputError("results: there is no finished transfer")
    with styled(look.get("style")):
        figure = new_figure(6.4, 4.0, look.get("size"))
        ax = figure.subplots()
        for n, (name, table) in enumerate(tables.items()):
            share = (table["count"].cum_sum() / table["count"].sum()).to_numpy()
            ax.plot(100 * share, table[f"p{percent}"].to_numpy(), label=name, **style(n))
        ends = (100 * (first["count"].cum_sum() / first["count"].sum())).to_list()
        step = -(-len(ends) // LABELS)
        places = list(range(len(ends) - 1, -1, -step))[::-1]
        ax.set_xticks([ends[k] for k in places])
        ax.set_xticklabels([size_text(first["size_bytes"][k]) for k in places], rotation=45)
        ax.set_yscale("log")
        xlabel, ylabel = look.get("xlabel"), look.get("ylabel")
        usual = f"slowdown, {percent} %"
        ax.set(
            xlabel="size of the flow (as many flows per length)" if xlabel is None else xlabel,
            ylabel=usual if ylabel is None else ylabel,
        )
        legend(ax)
        count = int(first["count"].sum())
        below = (
            f"slowdown by the definition {definition}; {count} transfers of {next(iter(tables))}"
        )
        heading(figure, "Slowdown over size", below, look)
        write(figure, path)
    return figure
