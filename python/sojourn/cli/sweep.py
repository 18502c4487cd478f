"""The commands `sojourn sweep`, `sojourn results` and `sojourn plot`."""

import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn._sojourn import InputError
from sojourn.cli.options import (
    Cluster,
    Force,
    Jobs,
    Json,
    Processes,
    Size,
    Style,
    Title,
    Trust,
    WarmFrom,
    XLabel,
    YLabel,
    continuing,
)
from sojourn.plotting.style import Look, check

if TYPE_CHECKING:
    import polars as pl

    from sojourn.display.table import Table
    from sojourn.metrics.labels import Label
    from sojourn.sweeps.runner import CampaignResult

Folder = Annotated[Path, typer.Argument(help="folder or URL of results", show_default=False)]
Where = Annotated[
    list[str] | None,
    typer.Option(metavar="AXIS=VALUE", help="only runs with this label of an axis"),
]
Engine = Annotated[str | None, typer.Option(help="runs of this engine (default: this version)")]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("sweep")(sweep_command)
    app.command("results")(results_command)
    app.command("plot")(plot_command)


def sweep_command(
    file: Annotated[
        Path, typer.Argument(help="sweep file, .toml, or the word collect", show_default=False)
    ],
    out: Annotated[
        Path, typer.Option(help="folder or URL for the runs; runs that are there are not repeated")
    ],
    shards: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[folder]...", help="after collect: folders to merge into --out"),
    ] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="I/N", help="only every N-th run, from the I-th on")
    ] = None,
    jobs: Jobs = None,
    processes: Processes = False,
    cluster: Cluster = None,
    force: Force = False,
    as_json: Json = False,
    trust: Trust = False,
    warm_from: WarmFrom = None,
) -> None:
    """Run a scenario at every combination of axes and seeds."""
    from sojourn._util.files import check_directory
    from sojourn.sweeps.remote import local, url_of
    from sojourn.sweeps.shards import read_shard
    from sojourn.sweeps.spec import read_sweep, run_sweep

    if str(file) == "collect":
        _collect(shards or [], out, force=force, as_json=as_json)
        return
    if shards:
        raise InputError(f"{shards[0]}: unexpected argument after the sweep file {file}")
    if cluster is not None and (processes or jobs):
        raise InputError("--cluster: cannot be combined with --jobs or --processes")
    part = None if shard is None else read_shard(shard, "--shard")
    sweep = read_sweep(file, trust=trust, warm_from=warm_from)
    place = url_of(out) or out
    if place == out:
        check_directory(out)
    with continuing(place), local(place, writes=True) as folder:
        with executor_for(cluster, processes, jobs) as executor:
            campaign = run_sweep(
                sweep,
                out=folder,
                executor=executor,
                jobs=jobs,
                progress=True,
                force=force,
                shard=part,
            )
        _report(campaign, place, sweep.names, shard, as_json=as_json)


def _report(
    campaign: "CampaignResult",
    place: str | Path,
    names: Sequence[str],
    shard: str | None,
    *,
    as_json: bool,
) -> None:
    """Print the table of a sweep. Raises RunError if runs failed."""
    from sojourn import _sojourn
    from sojourn.sweeps.query import USUAL
    from sojourn.sweeps.rows import arranged, axes_of

    for name in campaign.damaged:
        print(f"sojourn: {place}: {name} was damaged; its runs were repeated", file=sys.stderr)
    failure = campaign.error()
    if not campaign.rows:
        if failure is not None:
            raise failure
        print(f"shard {shard} has no runs of this sweep")
        return
    rows = arranged(campaign.rows)
    if as_json:
        report = {
            "sojourn": _sojourn.version(),
            "engine": _sojourn.engine(),
            "runs": len(rows),
            "made": campaign.executed,
            "failed": [asdict(one) for one in campaign.failed.values()],
            "axes": list(names),
            "table": _table(rows, axes_of(rows), list(USUAL)).to_dicts(),
        }
        print(json.dumps(report, indent=2, allow_nan=False))
    else:
        from sojourn._util.progress import amount
        from sojourn._util.units import counted
        from sojourn.display.console import console

        _print(_table(rows, axes_of(rows), list(USUAL)), list(USUAL))
        runs = counted(len(rows) + len(campaign.failed), "run")
        failed = f", {len(campaign.failed)} failed" if campaign.failed else ""
        console().print(
            f"{campaign.executed} of {runs} made{failed}, {amount(campaign.packets)} packets in "
            f"{campaign.wall_s:.1f} s; sojourn results {place} and sojourn plot {place} show more",
            markup=False,
        )
    if failure is not None:
        raise failure


def _collect(folders: list[Path], out: Path, *, force: bool, as_json: bool) -> None:
    """Merge the folders of shards."""
    from sojourn._util.units import counted
    from sojourn.sweeps.remote import url_of
    from sojourn.sweeps.shards import collect

    if not folders:
        raise InputError("collect: requires folders, like sojourn sweep collect load-* --out load")
    place = url_of(out) or out
    result = collect([url_of(folder) or folder for folder in folders], place, force=force)
    if as_json:
        print(json.dumps(asdict(result), indent=2))
        return
    failed = f", {result.failed} failed" if result.failed else ""
    print(f"{place}: {counted(result.runs, 'run')}{failed}; sojourn results {place} shows them")


def results_command(
    directory: Folder,
    select: Annotated[
        list[str] | None, typer.Option("--metric", help="column to show, like sojourn_p99")
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="A,B", help="axes to group by (default: all)")
    ] = None,
    where: Where = None,
    pivot: Annotated[
        str | None, typer.Option(help="show the values of this axis as columns")
    ] = None,
    pair: Annotated[
        str | None,
        typer.Option(metavar="AXIS=REFERENCE", help="differences from this value, paired by seed"),
    ] = None,
    percentile: Annotated[
        float | None, typer.Option(min=0, max=100, help="percentile over runs instead of the mean")
    ] = None,
    each: Annotated[bool, typer.Option("--rows", help="one row per run instead of means")] = False,
    export: Annotated[
        Path | None, typer.Option(help="write the table to this file: .csv, .parquet or .tex")
    ] = None,
    engine: Engine = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="one row per failed run, with the reason")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show means and percentiles over seeds with intervals, or paired differences.

    Percentiles are over the values of all seeds. Intervals have a confidence of 95 %.
    """
    from sojourn._util.files import check_file, parquet, replacing
    from sojourn.metrics.labels import heading
    from sojourn.sweeps import query
    from sojourn.sweeps.failures import COLUMNS
    from sojourn.sweeps.results import results, rows_for
    from sojourn.sweeps.rows import axes_of

    if export is not None:
        check_file(export, (".csv", ".parquet", ".tex"))
    names_by = [] if by is None else by.split(",")
    if failed or (each and select is None):
        rows = query.where(results(directory, engine=engine, failed=failed), where or ())
    else:
        axis_names = [
            name.strip() for name in (*names_by, pivot or "", *(pair or "").split("=")[:1])
        ]
        metrics, settings = select or query.USUAL, where or ()
        rows = rows_for(directory, metrics, settings=settings, by=axis_names, engine=engine)
    if failed:
        select, each = select or [*COLUMNS], True
    names = [query.column(rows, name) for name in select or query.USUAL]
    axes = axes_of(rows)
    groups = [query.axis_column(rows, name.strip(), "--by") for name in names_by] or axes
    if each:
        result = (
            rows.drop("axes", *query.distributions(rows))
            if select is None
            else rows.select(*axes, "seed", *names)
        )
    elif pair is not None:
        axis, reference = query.pair_of(pair)
        axis = query.axis_column(rows, axis, "--pair")
        result = query.differences(rows, axis, reference, groups, names)
    else:
        result = query.means(rows, groups, names, percentile=percentile)
    table, means = result, [] if each or pivot else names
    if pivot is not None and not each and pair is None:
        axis = query.axis_column(rows, pivot, "--pivot")
        table = query.pivoted(query.as_text(result, names[0]), axis, names[0])
        result = query.pivoted(result, axis, names[0])
    if export is not None and export.suffix.lower() == ".tex":
        from sojourn.display import latex

        latex.write(_as_table(table, means), export, f"sojourn results {directory}")
    elif export is not None:
        with replacing(export) as file:
            csv = export.suffix.lower() == ".csv"
            file.write(result.write_csv().encode() if csv else parquet(result))
    if as_json:
        print(json.dumps({"table": result.to_dicts()}, indent=2, allow_nan=False))
    elif export is None:
        if pivot is not None and not each and pair is None:
            # The cells are texts in the unit of the heading, which is above them.
            print(heading(names[0]).text)
            table = table.rename({names[0]: "all"}, strict=False)
        _print(table, means)


def plot_command(
    directory: Folder,
    out: Annotated[Path, typer.Option(help="figure to write: .png, .pdf or .svg")],
    y: Annotated[
        str | None,
        typer.Option(help="column to draw, like sojourn_p99; optional for a run or comparison"),
    ] = None,
    x: Annotated[str | None, typer.Option(help="horizontal axis")] = None,
    by: Annotated[
        str | None, typer.Option(help="axis with one line or box per value; vertical for heat")
    ] = None,
    kind: Annotated[str, typer.Option(help="line, heat, ecdf or box")] = "line",
    log: Annotated[bool, typer.Option("--log", help="logarithmic x axis")] = False,
    limit: Annotated[
        str | None, typer.Option(metavar="VALUE", help="agreed limit of y, like 30ms: a line")
    ] = None,
    where: Where = None,
    engine: Engine = None,
    title: Title = None,
    xlabel: XLabel = None,
    ylabel: YLabel = None,
    size: Size = None,
    style: Style = None,
) -> None:
    """Draw results of a sweep, a run or a comparison."""
    from sojourn._util.files import check_file
    from sojourn.plotting import sweep
    from sojourn.plotting.run import ENDINGS
    from sojourn.sweeps import query
    from sojourn.sweeps.conditions import conditions
    from sojourn.sweeps.remote import local
    from sojourn.sweeps.results import results

    check_file(out, ENDINGS)
    look: Look = {"title": title, "size": size, "style": style}
    check(look)
    if y is None:
        options: dict[str, Any] = {"--x": x, "--by": by, "--limit": limit, "--where": where}
        options |= {"--xlabel": xlabel, "--ylabel": ylabel}
        with local(directory) as folder:
            _usual_figure(folder, out, [name for name, value in options.items() if value], look)
        return
    with local(directory) as folder:
        rows = query.where(results(folder, engine=engine), where or ())
        about = conditions(folder)
    look |= {"xlabel": xlabel, "ylabel": ylabel}
    axes: dict[str, Any] = {"x": x, "by": by, "kind": kind, "log": log, "limit": limit}
    sweep.plot(rows, y=y, about=about, path=out, **axes, **look)


def _usual_figure(directory: Path, out: Path, options: list[str], look: "Look") -> None:
    """Draw the figure that `run --plot` or `compare --plot` draws."""
    from sojourn.plotting.comparison import draw_comparison
    from sojourn.plotting.run import draw
    from sojourn.result.folders import check_results, kind_of
    from sojourn.result.io import load_result
    from sojourn.sweeps.compare import load_comparison

    check_results(directory)
    kind = kind_of(directory)
    if kind is None:
        raise InputError(f"{directory}: there are no results")
    if kind not in ("run", "comparison") or options:
        what = f"{options[0]} requires it" if options else "a figure of a sweep requires it"
        raise InputError(f"--y: {what}, like --y sojourn_p99")
    if kind == "run":
        draw(load_result(directory), out, **look)
    else:
        runs = load_comparison(directory)
        draw_comparison(runs, out, **look)


@contextmanager
def executor_for(
    cluster: str | None, processes: bool, jobs: int | None
) -> Iterator[Executor | None]:
    """Yield the executor of a Dask cluster or of processes, or None for threads."""
    if cluster is not None:
        try:
            from distributed import Client
        except ImportError:
            raise InputError("--cluster: Dask is missing: pip install dask distributed") from None
        for name in (
            "distributed",
            "distributed.client",
            "tornado.application",
        ):  # the error is one line
            logging.getLogger(name).setLevel(logging.CRITICAL)
        try:
            client = Client(cluster, timeout=10)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"--cluster {cluster}: {reason}") from None
        with client, client.get_executor(pure=False, retries=2) as executor:  # type: ignore[no-untyped-call]
            yield executor
    elif processes:
        from sojourn._util.workers import Workers

        with Workers(jobs) as executor:
            try:
                yield executor
            except BaseException:
                executor.kill()
                raise
    else:
        yield None


def _table(rows: "pl.DataFrame", by: list[str], names: list[str]) -> "pl.DataFrame":
    from sojourn.sweeps.query import means

    return means(rows, by, [name for name in names if name in rows.columns])


def _print(frame: "pl.DataFrame", names: list[str]) -> None:
    """Print a table, with half the interval after each mean."""
    from sojourn.display.console import console

    console().print(_as_table(frame, names), soft_wrap=True)


def _as_table(frame: "pl.DataFrame", names: list[str]) -> "Table":
    """Return a frame as a display table; `names` are the columns of estimates."""
    from sojourn.display.table import Table
    from sojourn.metrics.labels import heading
    from sojourn.sweeps.query import of_estimates

    hidden = of_estimates(names)
    shown = [name for name in frame.columns if name not in hidden]
    count = next((n for n, c in enumerate(shown) if c in ("runs", "pairs", "seed")), 1)
    scales = {name: heading(name) for name in names}
    titles = [scales[name].text if name in scales else name for name in shown]
    table = Table(*titles, left=count)
    for row in frame.iter_rows(named=True):
        table.add_row(*(_cell(row, name, scales.get(name)) for name in shown))
    return table


def _cell(row: Mapping[str, Any], name: str, unit: "Label | None") -> str:
    """Format a cell: an estimate with its interval and the runs that it lacks, or a value."""
    from sojourn._util.units import short
    from sojourn.sweeps.query import estimate_in

    if unit is not None:
        return estimate_in(row, name).times(unit.scale).text()
    value = row[name]
    if value is None or not isinstance(value, float):
        return "" if value is None else str(value)
    return short(value)
