"""The commands `sojourn line`: list, describe, measure, verify."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief
from sojourn.cli import suggest
from sojourn.cli.options import Json, Size, Style, Title, check_look

if TYPE_CHECKING:
    from sojourn.line.derive import MeasuredLine, Quantity
    from sojourn.plotting.style import Look

app = typer.Typer(
    no_args_is_help=True,
    help="Access lines by name; measure a real line, and check a change of it.",
)

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILE...",
        help="files of flent (.flent.gz), crusader (.crr) or iperf3 -J, the folder of --keep, or "
        "output of tc -s -j qdisc show",
    ),
]
Idle = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="ping or irtt on the idle line; may be repeated"),
]
Download = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="iperf3 -R -J, ping or irtt during a download"),
]
Upload = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="iperf3 -J, ping or irtt during an upload"),
]


@app.command()
def measure(
    files: Files = None,
    idle: Idle = None,
    download: Download = None,
    upload: Upload = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="HOST", help="measure now, with ping and iperf3 to this host"),
    ] = None,
    seconds: Annotated[
        int, typer.Option(metavar="S", help="duration of each part of --to", min=2, max=600)
    ] = 15,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="folder for the output of ping and iperf3")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="scenario of the line to write: .toml or .json")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="figure of measured and simulated delay: .png, .pdf or .svg"),
    ] = None,
    title: Title = None,
    size: Size = None,
    style: Style = None,
    as_json: Json = False,
) -> None:
    """Derive rates, round-trip time, delay under load and buffers of a real line.

    The values come from files of flent, crusader, iperf3 -J, irtt or ping, or from measurements
    with --to. An existing shaper is stated, from output of tc or from the delay under load.
    Each has an interval and says how it was measured. --out writes a scenario of the line, whose
    links have the measured buffers.
    """
    from sojourn._util.files import check_file
    from sojourn.line import derive
    from sojourn.plotting.run import ENDINGS
    from sojourn.scenario.save import ENDINGS as FORMS

    look: Look = {"title": title, "size": size, "style": style}
    check_look(look, plot)
    for path, endings in ((out, FORMS), (plot, ENDINGS)):
        if path is not None:
            check_file(path, endings)
    roles = {"idle": idle or [], "download": download or [], "upload": upload or []}
    if to is not None:
        if files or any(roles.values()):
            raise InputError("--to: measures now, so no files can be given")
        line = _measured(to, seconds, keep)
    elif not files and not any(roles.values()):
        raise InputError("no file to read: give files of flent or iperf3, or --to HOST")
    else:
        line = derive.measure(*(files or ()), **roles)
    _write(line, out, plot, look)
    if as_json:
        print(json.dumps(_as_json(line), indent=2))
    else:
        _print(line)


@app.command(name="list")
def list_lines(as_json: Json = False) -> None:
    """List the access lines by name: lte, starlink, dsl, ...

    `sojourn link --profile NAME` emulates one; `line = "NAME"` puts its links into a scenario.
    """
    from sojourn.cli.access_line import show_all

    show_all(as_json=as_json)


@app.command()
def describe(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="access line, like lte (sojourn line list)",
            autocompletion=suggest.lines,
        ),
    ] = None,
    down: Annotated[str | None, typer.Option(help="rate of the downlink, like 50mbit")] = None,
    up: Annotated[str | None, typer.Option(help="rate of the uplink, like 10mbit")] = None,
    rtt: Annotated[
        str | None, typer.Option(help="round-trip time of the idle line, like 30ms")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="scenario of the line to write: .toml or .json")
    ] = None,
    buffer: Annotated[
        str | None,
        typer.Option(
            help="buffer, like 300ms, 250kB or 1000p, or 50ms/300ms for down and up (default 1000p)"
        ),
    ] = None,
    link_layer: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="framing of the line: docsis, adsl-pppoe, gpon, ..."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the model of an access line by name, or write the scenario of a line that is known.

    With a NAME, print its model and the source of each parameter; --out writes its scenario.
    Without one, --down, --up, --rtt and --out are required: the scenario has these rates, this
    round-trip time, the buffers and the link layer. With --link-layer the rates are rates of the
    wire, and each packet has its overhead and cells.
    """
    from sojourn._util.files import check_file
    from sojourn.scenario.save import ENDINGS, save_scenario

    given = {"--down": down, "--up": up, "--rtt": rtt}
    if out is not None:
        check_file(out, ENDINGS)
    if name is not None:
        from sojourn.cli.access_line import show

        for option, value in {**given, "--buffer": buffer, "--link-layer": link_layer}.items():
            if value is not None:
                raise InputError(f"{option}: not with {brief(name)}, which has its own")
        show(name, out, as_json=as_json)
        return
    if as_json:
        raise InputError("--json: only with the name of an access line")
    from sojourn.recommendation.described import described

    missing = [option for option, value in {**given, "--out": out}.items() if value is None]
    if down is None or up is None or rtt is None or out is None:
        known = "give it, or the name of an access line (sojourn line list)"
        raise InputError(f"{missing[0]}: is missing: {known}")
    buffers = "1000p" if buffer is None else buffer
    save_scenario(described(down, up, rtt, buffer=buffers, link_layer=link_layer), out)
    print(f"wrote {out}")


@app.command()
def verify(
    before: Annotated[
        list[Path],
        typer.Option(metavar="FILE", help="file, or folder of --keep, before the change"),
    ],
    after: Annotated[
        list[Path], typer.Option(metavar="FILE", help="file, or folder of --keep, after it")
    ],
    limit: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="agreed delay under load, like 30ms (default: less)"),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="figure of the delay before and after: .png, .pdf or .svg")
    ] = None,
    title: Title = None,
    size: Size = None,
    style: Style = None,
    as_json: Json = False,
) -> None:
    """Check whether a change of a line held its promise: less delay under load, the same rates.

    The files are of flent or iperf3 -J, or folders of `sojourn line measure --keep`, from the same
    tests before and after. The options may be repeated. The exit code is 0 if all holds, else 1.
    """
    from sojourn._util.files import check_file
    from sojourn._util.inputs import of_link
    from sojourn._util.units import seconds as seconds_of
    from sojourn.line import checks, derive
    from sojourn.line.figure import draw_change
    from sojourn.plotting.run import ENDINGS

    look: Look = {"title": title, "size": size, "style": style}
    check_look(look, plot)
    if plot is not None:
        check_file(plot, ENDINGS)
    limit_s = None if limit is None else seconds_of(of_link("--limit", "delay", limit))
    lines = derive.measure(*before), derive.measure(*after)
    statements = checks.verify(*lines, limit_s)
    if not statements:
        raise InputError("the files before and after have no quantity in common")
    if plot is not None:
        draw_change(*lines, plot, **look)
    grades = [line.grade() for line in lines]
    holds = all(one.holds for one in statements)
    if as_json:
        rows = [{"name": one.name, "text": one.text, "holds": one.holds} for one in statements]
        print(json.dumps({"holds": holds, "grades": grades, "checks": rows}, indent=2))
    else:
        for one in statements:
            print(f"{'yes' if one.holds else 'NO '}  {one.text}")
        if None not in grades:
            print(f"grade {grades[0]} before, {grades[1]} after")
        print("all of it holds" if holds else "not all of it holds")
    if not holds:
        raise typer.Exit(1)


def _measured(host: str, seconds: int, keep: Path | None) -> "MeasuredLine":
    """Measure now; `keep` is the folder for what the programs write."""
    from sojourn._util.files import check_directory, replacing
    from sojourn.line.derive import LOADS, derived
    from sojourn.line.files import parse
    from sojourn.line.programs import measured

    if keep is not None:
        check_directory(keep)
        keep.mkdir(parents=True, exist_ok=True)
    texts = measured(host, seconds)
    for name, text in texts.items():
        if keep is not None:
            with replacing(keep / name) as file:
                file.write(text)
    roles = {
        role: [parse(name, text) for name, text in texts.items() if name.startswith(role)]
        for role in LOADS
    }
    return derived([], roles)


def _write(line: "MeasuredLine", out: Path | None, plot: Path | None, look: "Look") -> None:
    from sojourn.line.figure import draw
    from sojourn.line.model import scenario
    from sojourn.scenario.save import save_scenario

    if out is not None:
        save_scenario(scenario(line), out)
    if plot is not None:
        draw(line, plot, **look)


def _rows(line: "MeasuredLine") -> "list[tuple[str, Quantity | None, Callable[[float], str]]]":
    from sojourn._util.units import duration, rate

    return [
        ("download", line.down_bps, rate),
        ("upload", line.up_bps, rate),
        ("idle round trip", line.rtt_s, duration),
        ("added by downloads", line.down_delay_s, duration),
        ("added by uploads", line.up_delay_s, duration),
        ("added by both", line.both_delay_s, duration),
        ("buffer of downloads", line.down_buffer_s, duration),
        ("buffer of uploads", line.up_buffer_s, duration),
        ("both buffers", line.both_buffer_s, duration),
    ]


def _print(line: "MeasuredLine") -> None:
    from sojourn.display.console import console
    from sojourn.display.table import Table

    table = Table("quantity", "value", "95 % interval", "measured from", left=1)
    for name, one, text in _rows(line):
        if one is None:
            continue
        known = one.low == one.low and one.high == one.high
        span = f"{text(max(one.low, 0.0))} to {text(one.high)}" if known else "-"
        table.add_row(name, text(one.value), span, one.note)
    console().print(table, soft_wrap=True)
    missing = [name for name, one, _ in _rows(line)[:3] if one is None]
    if missing:
        print(f"not measured: {', '.join(missing)}")
    if (grade := line.grade()) is not None:
        print(
            f"grade {grade} by the delay that load adds (A+ below 5 ms, A 30, B 60, C 200, D 400)"
        )
    for sentence in line.shapers:
        print(sentence)


def _as_json(line: "MeasuredLine") -> dict[str, object]:
    from dataclasses import asdict

    def plain(one: "Quantity | None") -> object:
        if one is None:
            return None
        return {key: None if value != value else value for key, value in asdict(one).items()}

    names = [
        *("down_bps", "up_bps", "rtt_s", "down_delay_s", "up_delay_s", "both_delay_s"),
        *("down_buffer_s", "up_buffer_s", "both_buffer_s"),
    ]
    values: dict[str, object] = {name: plain(getattr(line, name)) for name in names}
    return {**values, "grade": line.grade(), "drop_tail": dict(line.drop_tail),
            "shapers": list(line.shapers), "sources": list(line.sources)}  # fmt: skip
