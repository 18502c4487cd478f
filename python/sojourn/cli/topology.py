"""The command `sojourn topology import`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from sojourn._sojourn import InputError

app = typer.Typer(
    help="Read topologies of simulators of data centres.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


@app.callback()
def _topology() -> None:
    """Read topologies of simulators of data centres."""


@app.command("import")
def import_command(
    file: Annotated[
        Path,
        typer.Argument(
            help="topology of HPCC (also ConWeave), htsim (.topo) or Parsimon (JSON)",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="scenario to write: .toml (default: standard output)"),
    ] = None,
    flows: Annotated[
        Path | None,
        typer.Option(
            help="list of flows of HPCC, ConWeave, Parsimon, Homa or htsim (.cm) that the scenario "
            "reads"
        ),
    ] = None,
    tcp: Annotated[str, typer.Option(help="TCP of the flows")] = "dctcp",
    qdisc: Annotated[
        str, typer.Option(help="discipline of the ports of switches")
    ] = "step_mark(limit=1000p)",
    buffer: Annotated[
        str | None,
        typer.Option(
            metavar="BYTES", help="buffer that the ports of each switch share (default: none)"
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            help="with --buffer: bytes of a port in relation to the free ones (default: 1)"
        ),
    ] = None,
    class_alpha: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS=ALPHA",
            help="with --buffer: a queue of its own at each port for this class or DSCP, like "
            "EF=8; may be repeated",
        ),
    ] = None,
    duration: Annotated[str, typer.Option(help="simulated time")] = "3s",
    format_name: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help="format of FILE: hpcc, htsim, parsimon"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="overwrite the scenario")] = False,
) -> None:
    """Write a scenario with the links of a topology.

    Link `h3-s20` is from host 3 to switch 20. Flows name hosts by their numbers, and switches
    choose among equal paths by a hash. Without --flows, the scenario has an example of a load, and
    a path for each connection.
    """
    from sojourn._util.files import check_file, write_text
    from sojourn.fabric import flow_list, topology_file
    from sojourn.fabric.routes import Network
    from sojourn.fabric.shared_buffers import shared_buffers
    from sojourn.scenario.draft import Draft
    from sojourn.scenario.save import to_toml

    if out is not None:
        check_file(out, (".toml",))
        if out.exists() and not force:
            raise InputError(f"{out}: exists already; --force overwrites it")
    topology = topology_file.read(file, format_name)
    links = topology.links(qdisc)
    if flows is not None:
        network, listed = Network(links, 1), flow_list.read(flows)
        for host in sorted({*listed.src, *listed.dst}):
            if f"h{host}" not in network.hosts:
                raise InputError(f"{flows}: host {host} is no host of {file}")
    group = _group(flows, tcp, out)
    tree = {"name": file.stem, "duration": duration, "flows": [group], "links": links}
    if buffer is not None:
        whole = 1.0 if alpha is None else alpha
        tree["switches"] = shared_buffers(links, buffer, whole, _classes(class_alpha))
    elif alpha is not None or class_alpha:
        raise InputError(f"--{'class-alpha' if alpha is None else 'alpha'}: needs --buffer")
    Draft.read(tree, folder=Path() if out is None else out.parent).parse()
    text = f"# Topology of {file.name}.\n{to_toml(tree)}"
    if out is None:
        print(text, end="")
        return
    write_text(out, text)
    print(f"{out}: {topology.hosts} hosts, {topology.switches} switches, {len(links)} links")


def _classes(words: list[str] | None) -> dict[str, dict[str, float]] | None:
    """Return the table `classes` of a switch from words like EF=8."""
    from sojourn._util.inputs import shown

    classes = {}
    for word in words or []:
        name, _, alpha = word.partition("=")
        if name in classes:
            raise InputError(f"--class-alpha: {shown(name)} is given twice")
        try:
            classes[name] = {"alpha": float(alpha)}
        except ValueError:
            name = ""
        if not name:
            raise InputError(f"--class-alpha: {shown(word)} is not CLASS=ALPHA, like EF=8")
    return classes or None


def _group(flows: Path | None, tcp: str, out: Path | None) -> dict[str, object]:
    """Return the group of flows of the scenario `out`."""
    if flows is None:
        load = {"load": 0.3, "pattern": "all-to-all", "size": "web_search"}
        return {"name": "load", "tcp": tcp, "spread": "connection", "traffic": load}
    file = str(flows) if out is None else os.path.relpath(flows, out.parent)
    return {"name": "list", "tcp": tcp, "traffic": {"file": file}}
