"""The commands `sojourn tc import`, `sojourn tc export` and `sojourn tc diff`."""

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from sojourn._sojourn import InputError, nearest
from sojourn._util.inputs import of_link
from sojourn._util.reading import text_of_stdin
from sojourn.cli import suggest
from sojourn.formats import NAMES, WRITTEN
from sojourn.scenario import named

NEXT = """
# These are links only, without traffic. `sojourn new {template} line.toml` writes a scenario with
# flows: copy rate and qdisc into its link, then `sojourn run line.toml`."""
"""Comment at the end of imported links."""

DIFFERENT = 1
"""Exit code of `sojourn tc diff` if there are differences, as of diff(1)."""

app = typer.Typer(
    help="Read and write the language of Linux's tc.",
    rich_markup_mode=None,
    no_args_is_help=True,
)

Json = Annotated[bool, typer.Option("--json", help="print JSON")]


@app.command("import")
def import_command(
    file: Annotated[
        str | None,
        typer.Argument(
            help="a script, its output with set -x, a batch file, output of tc [-j] qdisc show, "
            "/etc/config/sqm, a .network or .nmconnection file, or /etc/network/interfaces; or one "
            "command in quotes (default: standard input)",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            help="rate of devices that no qdisc limits, like 1gbit; `rate 10%` is a share of it"
        ),
    ] = None,
    leaf: Annotated[
        str | None,
        typer.Option("--class", metavar="ID", help="class that becomes the link, like 1:10"),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="refuse words that are lost")] = False,
    format_name: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help=f"format of the input: {', '.join(NAMES)}"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the links of a scenario from tc commands or output. Flows are not part of it.

    A comment names each word that sojourn does not represent.
    """
    from sojourn import tc

    where, text = _input(file)
    try:
        if rate is not None:
            of_link("--rate", "rate", rate)
        links = tc.imported(text, leaf=leaf, speed=rate, form=format_name)
        lost = [f"{one['dev']}: {word}" for one in links for word in one["lost"]]
        if strict and lost:
            more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
            raise InputError(f"{lost[0]}{more}")
    except InputError as error:
        raise InputError(f"{where}{error}") from None
    if as_json:
        for one in links:
            one["rate"] = one["rate"] or rate
        print(json.dumps(links, indent=2))
    else:
        print(tc.toml(links, rate))
        template = "uplink" if len(links) == 1 else "two-way"
        print(NEXT.format(template=template))


def _input(file: str | None) -> tuple[str, str]:
    """Return the beginning of messages about the input, and its text."""
    from sojourn import tc

    if file is None or file == "-":
        return "", text_of_stdin()
    if " " in file and not Path(file).exists():
        return "", file
    return f"{file}: ", tc.read(Path(file))


@app.command()
def export(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO|QDISC",
            help="a scenario (.toml or .json, or a name like rrul), or a discipline, like "
            "'codel(target=15ms)'",
            autocompletion=suggest.disciplines_and_scenarios,
            show_default=False,
        ),
    ],
    dev: Annotated[
        list[str] | None,
        typer.Option(metavar="DEV", help="device, or LINK=DEV; may be repeated (default eth0)"),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(help="rate for which a discipline computes defaults; no shaper is written"),
    ] = None,
    netem: Annotated[
        bool, typer.Option(help="write delay and loss as netem; without it, for a real line")
    ] = True,
    format_name: Annotated[
        str,
        typer.Option("--format", metavar="NAME", help=f"format to write: {', '.join(WRITTEN)}"),
    ] = "tc",
    strict: Annotated[bool, typer.Option("--strict", help="refuse what Linux cannot do")] = False,
) -> None:
    """Write tc commands that come nearest to a scenario or a discipline.

    A comment names each thing that Linux cannot do, and each discipline that was not simulated in
    the variant of Linux.
    """
    from sojourn import tc

    devices = dev or ["eth0"]
    if Path(source).suffix.lower() in (".toml", ".json") or source in named.ORDER:
        from sojourn.scenario.draft import Draft

        tree = Draft.read(source).tree
        try:
            text = tc.export(tree, dev=devices, netem=netem, form=format_name)
            notes = tc.notes(tree)
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
    elif re.fullmatch(r"[\w/-]*\.[\w./-]*", source):
        endings = "the name of a scenario file must end in .toml or .json"
        raise InputError(f"{source}: is not a discipline, and {endings}")
    else:
        try:
            qdisc = tc.described(source)
            text = tc.export(qdisc, dev=devices, rate=rate, form=format_name)
            notes = tc.notes(qdisc)
        except InputError as error:
            close = nearest(source, list(named.ORDER))
            if close is None or "unknown discipline" not in str(error):
                raise
            raise InputError(f'{error}, or did you mean the scenario "{close}"?') from None
    lost = [line for line in text.splitlines() if line.startswith("# ") and ": " in line]
    if strict and lost:
        raise InputError(lost[0].removeprefix("# "))
    print(*notes, text, sep="\n")


@app.command()
def diff(
    a: Annotated[str, typer.Argument(help="tc line or discipline", show_default=False)],
    b: Annotated[str, typer.Argument(help="tc line or discipline", show_default=False)],
    as_json: Json = False,
) -> None:
    """Show the parameters in which two tc lines or disciplines differ.

    A name alone is a discipline of sojourn; "tc: NAME" has the defaults of Linux. The exit code is
    1 if they differ.
    """
    from sojourn import tc

    rows = tc.diff(tc.described(a), tc.described(b))
    if as_json:
        tree: dict[str, Any] = {name: [left, right] for name, left, right in rows}
        print(json.dumps(tree, indent=2))
    elif rows:
        from sojourn.display.console import console
        from sojourn.display.table import Table

        table = Table("parameter", a, b)
        for row in rows:
            table.add_row(*row)
        console().print(table, soft_wrap=True)
    else:
        print("no difference")
    if rows:
        raise typer.Exit(DIFFERENT)
