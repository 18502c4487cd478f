"""The command line, with the commands `list`, `run` and `compare`.

Other modules define the other commands. Commands import modules when they run, so that help and
completion are fast. Bad input raises InputError, which `sojourn.cli.main` prints.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from sojourn._sojourn import InputError
from sojourn._util.plain import indented
from sojourn.cli import line, paper, suggest, sweep, tc, topology
from sojourn.cli.capacity import capacity
from sojourn.cli.commands import Commands
from sojourn.cli.evaluate import evaluate
from sojourn.cli.explain import explain
from sojourn.cli.link import link as link_command
from sojourn.cli.new import new
from sojourn.cli.options import (
    Buffer,
    Down,
    File,
    Flows,
    Force,
    Json,
    Plot,
    Rate,
    Rtt,
    Set,
    Size,
    Style,
    ThreadsOption,
    Title,
    Trust,
    Up,
    WarmFrom,
    XLabel,
    check_look,
    continuing,
    is_live,
    threads_of,
)
from sojourn.cli.playground import playground
from sojourn.cli.recommend import recommend
from sojourn.cli.replay import replay
from sojourn.plotting.style import Look
from sojourn.scenario import named

app = typer.Typer(
    cls=Commands,
    help="Packets through managed queues: simulate, compare, sweep, replay, reproduce papers.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command()(new)
app.add_typer(paper.app, name="paper")
app.add_typer(tc.app, name="tc")
app.add_typer(line.app, name="line")
app.add_typer(topology.app, name="topology")
sweep.add_to(app)
app.command()(capacity)
app.command()(evaluate)
app.command()(recommend)
app.command()(explain)
app.command()(replay)
app.command()(playground)
# Options after the command to run belong to that command.
app.command(context_settings={"allow_interspersed_args": False})(link_command)

Seed = Annotated[int | None, typer.Option(help="seed, instead of the scenario's seed")]
Links = Annotated[
    list[str] | None,
    typer.Option(
        "--link",
        help="the link; may be repeated, or have * to match several, like 's*-h*' (default: "
        "bottleneck, else the first on a path)",
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        from sojourn import __version__

        print(f"sojourn {__version__}")
        raise typer.Exit


@app.callback()
def _sojourn_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Packets through managed queues: simulate, compare, sweep, replay, reproduce papers."""


@app.command("list")
def list_command(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="disciplines, tcp, sources, metrics, papers, scenarios, scenario, missing; "
            "or a NAME",
            autocompletion=suggest.names,
        ),
    ] = None,
    name: Annotated[str | None, typer.Argument(help="show the parameters of this one")] = None,
    as_json: Json = False,
) -> None:
    """List disciplines, TCPs, sources, metrics and papers.

    With a NAME, show its parameters, units, defaults and source. With the name of a parameter, like
    target, show what has it.
    """
    from sojourn.cli import list as cli_list

    entry = cli_list.find(kind, name)
    if as_json:
        _print_json(entry)
    else:
        cli_list.show(entry, kind)


@app.command()
def run(
    file: File,
    settings: Set = None,
    seed: Seed = None,
    qdisc: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="discipline of the link, like 'codel(target=15ms)' or 'tc: codel ecn'",
            autocompletion=suggest.disciplines,
        ),
    ] = None,
    link: Links = None,
    rate: Rate = None,
    up: Up = None,
    down: Down = None,
    rtt: Rtt = None,
    buffer: Buffer = None,
    flows: Flows = None,
    as_json: Json = False,
    plot: Plot = None,
    title: Title = None,
    xlabel: XLabel = None,
    size: Size = None,
    style: Style = None,
    flow: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="draw the congestion window of this flow or group"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="folder for summary.json and Parquet tables")
    ] = None,
    force: Force = False,
    packet_log: Annotated[bool, typer.Option("--packet-log", help="log every packet")] = False,
    flent: Annotated[
        Path | None,
        typer.Option(
            help="write a data file of flent, .flent.gz (rrul, rrul_be, tcp_nup, tcp_ndown)"
        ),
    ] = None,
    pcap: Annotated[
        Path | None,
        typer.Option(help="write the packets that pass a link to this file: .pcapng"),
    ] = None,
    pcap_link: Annotated[
        str | None,
        typer.Option(
            metavar="LINK", help="link of --pcap (default: bottleneck, else the first on a path)"
        ),
    ] = None,
    pcap_at: Annotated[
        str | None,
        typer.Option(
            metavar="arrival|departure", help="time of the packets of --pcap (default: arrival)"
        ),
    ] = None,
    mahimahi: Annotated[
        Path | None, typer.Option(help="write the log of mm-link of Mahimahi for the bottleneck")
    ] = None,
    fct: Annotated[
        Path | None,
        typer.Option(
            help="write a row per finished transfer: .csv or .parquet, or .txt in HPCC's format"
        ),
    ] = None,
    steady: Annotated[
        bool, typer.Option("--steady", help="remove the warm-up; intervals from this single run")
    ] = False,
    engine: Annotated[
        str, typer.Option(help="sim, or live: real packets of the kernel, in real time")
    ] = "sim",
    threads: ThreadsOption = None,
    tc_stats: Annotated[
        bool,
        typer.Option("--tc-stats", help="print the final state like tc -s [-j, with --json]"),
    ] = False,
    trust: Trust = False,
    warm_from: Annotated[
        Path | None,
        typer.Option(metavar="STATE", help="start from this file of Simulation.save"),
    ] = None,
) -> None:
    """Run a scenario."""
    from sojourn._util.files import check_file
    from sojourn._util.paths import check_tcp_flows
    from sojourn.result import folders
    from sojourn.scenario.draft import Draft, canonical

    if packet_log and out is None:
        raise InputError("--packet-log: requires --out DIR")
    if flow and plot is None:
        raise InputError("--flow: there is no figure, give --plot FIG.png")
    if link and qdisc is None:
        raise InputError(f"{file}: --link: has no effect without --qdisc")
    _check_pcap(pcap, pcap_link, pcap_at, engine, threads)
    real = is_live(engine)
    if threads is not None and real:
        raise InputError("--threads: has no effect with --engine live")
    count = "auto" if threads is None else threads_of(threads)
    look: Look = {"title": title, "xlabel": xlabel, "size": size, "style": style}
    check_look(look, plot)
    options = {"rate": rate, "up": up, "down": down, "rtt": rtt, "buffer": buffer, "flows": flows}
    draft = Draft.read(file, options, trust=trust)
    if qdisc is not None:
        draft = draft.with_qdisc(qdisc, *(link or ()))
    draft = draft.set(settings or ())
    if seed is not None:
        draft = draft.with_keys(seed=seed)
    if plot or out or steady or tc_stats or flent:
        draft = draft.with_sample()
    if packet_log or flent or mahimahi:
        draft = draft.with_keys(packet_log=True)
    parsed = draft.parse()
    if warm_from is not None:
        from sojourn.engines.warm import warm_state

        if real:
            raise InputError("--warm-from: has no effect with --engine live")
        with _about(file, unless=(f"{warm_from}: ",)):
            parsed = parsed.warm_from(warm_state(warm_from, trust=trust))
    tree = canonical(parsed)
    check_tcp_flows(tree, flow or ())
    if pcap is not None:
        from sojourn.engines.simulate import captured_link

        captured_link(tree, pcap_link, pcap_at or "arrival")
    if flent is not None:
        from sojourn.result.exchange import check_flent

        check_flent(tree, flent)
    if mahimahi is not None:
        check_file(mahimahi)
    if fct is not None:
        from sojourn.result.transfers import check_fct

        check_fct(fct)
    if plot is not None:
        from sojourn.plotting.run import ENDINGS

        check_file(plot, ENDINGS)
    if out is not None:
        folders.claim_run(out, tree, engine, force=force)

    with _about(file):
        if real:
            from sojourn.live import link as live_link
            from sojourn.live import netdev
            from sojourn.live.emulate import emulate

            try:
                result = emulate(parsed, progress=True, command=_command_line())
            except netdev.NoRightError:
                live_link.enter_own_network(sys.argv[1:])
                raise
        else:
            from sojourn.engines.simulate import simulate

            command = _command_line()
            result = simulate(
                parsed,
                progress=True,
                command=command,
                threads=count,
                pcap=pcap,
                pcap_link=pcap_link,
                pcap_at=pcap_at or "arrival",
            )
    if out is not None:
        result.save(out, force=force)
    if flent is not None:
        from sojourn.result.exchange import write_flent

        write_flent(result, flent)
    if mahimahi is not None:
        from sojourn.result.exchange import write_mahimahi

        write_mahimahi(result, mahimahi)
    if fct is not None:
        from sojourn.result.transfers import write_fct

        write_fct(result, fct)
    if plot is not None:
        from sojourn.plotting.run import draw

        draw(result, plot, flows=flow or None, **look)
    extra: dict[str, Any] = {}
    if steady:
        from dataclasses import asdict

        from sojourn.result.steady_state import steady as find_steady

        with _about(file):
            estimates = find_steady(result)
        extra = {"steady": [asdict(one) for one in estimates]}
    if tc_stats:
        from sojourn.display import tc_stats as tc_output

        if as_json:
            _print_json(tc_output.stats(result))
        else:
            print(tc_output.text(result))
    elif as_json:
        _print_json(result.summary | extra)
    else:
        from sojourn.display.summary import run_report, steady_report

        run_report(result)
        if steady:
            steady_report(estimates)


@app.command()
def compare(
    file: File,
    qdisc: Annotated[
        list[str],
        typer.Option(
            metavar="A,B,...",
            help="the disciplines, like droptail,'codel(target=15ms)',slow='codel(target=100ms)'",
            autocompletion=suggest.disciplines,
        ),
    ],
    seeds: Annotated[
        int | None, typer.Option(metavar="N", help="number of seeds, from the scenario's seed up")
    ] = None,
    link: Links = None,
    rate: Rate = None,
    up: Up = None,
    down: Down = None,
    rtt: Rtt = None,
    buffer: Buffer = None,
    flows: Flows = None,
    settings: Set = None,
    seed: Seed = None,
    as_json: Json = False,
    plot: Plot = None,
    title: Title = None,
    size: Size = None,
    style: Style = None,
    out: Annotated[
        Path | None,
        typer.Option(help="folder for the runs; runs that are there are not repeated"),
    ] = None,
    force: Force = False,
    export: Annotated[
        Path | None, typer.Option(help="write the table for LaTeX: .tex", metavar="FILE.tex")
    ] = None,
    trust: Trust = False,
    warm_from: WarmFrom = None,
) -> None:
    """Run a scenario under several disciplines.

    They have the buffer of the file. A named scenario without `--buffer` gives each discipline its
    default.
    """
    from sojourn._util.files import check_directory, check_file
    from sojourn.scenario.draft import Draft
    from sojourn.scenario.variants import split
    from sojourn.sweeps import compare as sweeps_compare
    from sojourn.sweeps.failures import RunError

    look: Look = {"title": title, "size": size, "style": style}
    check_look(look, plot)
    options = {"rate": rate, "up": up, "down": down, "rtt": rtt, "buffer": buffer, "flows": flows}
    draft = Draft.read(file, options, trust=trust).set(settings or ())
    if seed is not None:
        draft = draft.with_keys(seed=seed)
    first, *also = link or named.links_of(file) or (None,)
    if plot:
        draft = draft.with_sample()
    if out is not None:
        check_directory(out)
    if export is not None:
        check_file(export, (".tex",))
    if plot is not None:
        from sojourn.plotting.run import ENDINGS

        check_file(plot, ENDINGS)
    own = (f"{file}: ", f"{warm_from}: ", "--qdisc", "--seeds", *((str(out),) if out else ()))
    with _about(file, unless=own):
        failure = None
        try:
            with continuing(out):
                runs = sweeps_compare.compare(
                    draft,
                    [name for names in qdisc for name in split(names)],
                    link=first,
                    also=also,
                    seeds=1 if seeds is None else seeds,
                    progress=True,
                    command=_command_line(),
                    out=out,
                    force=force,
                    trust=trust,
                    warm_from=warm_from,
                )
        except RunError as error:
            failure, runs = error, error.partial
            if not runs:
                raise
    if plot is not None:
        from sojourn.plotting.comparison import draw_comparison

        draw_comparison(runs, plot, **look)
    if as_json:
        from sojourn import __version__

        summary: dict[str, Any] = {
            name: [result.summary for result in results] if seeds else results[0].summary
            for name, results in runs.items()
        }
        from sojourn.display.summary import comparison_tree

        table = comparison_tree(runs, runs.link)
        _print_json({"sojourn": __version__, "table": table, "runs": summary})
    else:
        from sojourn.display.summary import comparison as comparison_report

        comparison_report(runs, runs.link)
    if export is not None:
        from sojourn.display import latex
        from sojourn.display.summary import compared, comparison_seeds, comparison_table

        note = f"{compared(runs, runs.link)}; {comparison_seeds(runs)}"
        latex.write(comparison_table(runs, runs.link)[0], export, note)
    if failure is not None:
        raise failure


def _check_pcap(
    pcap: Path | None, link: str | None, at: str | None, engine: str, threads: str | None
) -> None:
    """Check the options of a capture."""
    from sojourn._util.files import check_file

    for option, value in (("--pcap-link", link), ("--pcap-at", at)):
        if value is not None and pcap is None:
            raise InputError(f"{option}: has no effect without --pcap")
    if pcap is None:
        return
    if is_live(engine) or threads not in (None, "1", "auto"):
        text = "is for a simulation on one thread, without --engine live and --threads"
        raise InputError(f"--pcap: {text}")
    check_file(pcap, (".pcapng",))


@contextmanager
def _about(file: Path, unless: tuple[str, ...] = ()) -> Iterator[None]:
    """Prefix errors with the name of the file, except those that begin with `unless`."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(unless) or hasattr(error, "_sojourn_custom"):
            raise
        raise InputError(f"{file}: {error}") from None


def _print_json(tree: Any) -> None:
    print(indented(tree))


def _command_line() -> list[str]:
    return ["sojourn", *sys.argv[1:]]
