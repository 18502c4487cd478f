"""Options that several commands have."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn.cli import suggest
from sojourn.engines.threads import Threads, count_of
from sojourn.plotting.style import Look, check

File = Annotated[
    Path,
    typer.Argument(
        help="scenario: a file (.toml or .json) or a name, like rrul",
        show_default=False,
        autocompletion=suggest.scenarios,
    ),
]
Plot = Annotated[Path | None, typer.Option(help="write a figure: .png, .pdf or .svg")]
Json = Annotated[bool, typer.Option("--json", help="print a JSON object")]
Force = Annotated[
    bool, typer.Option("--force", help="write to --out even if it has other contents")
]
Trust = Annotated[bool, typer.Option("--trust", help="run Python code that the file names")]
WarmFrom = Annotated[
    str | None,
    typer.Option(
        metavar="STATE|TIME",
        help="start all runs from this file of Simulation.save, or at this time of the scenario, "
        "like 30s",
    ),
]
Jobs = Annotated[int | None, typer.Option(min=1, help="parallel runs (default: cores)")]
ThreadsOption = Annotated[
    str | None,
    typer.Option(
        "--threads",
        metavar="N|auto",
        help="threads of the run, with equal results (default: auto, several if they are faster)",
    ),
]
Processes = Annotated[bool, typer.Option("--processes", help="run in processes instead of threads")]
Cluster = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler, tcp://host:8786")
]
Title = Annotated[
    str | None, typer.Option(help='title of the figure in place of the conditions ("" for none)')
]
XLabel = Annotated[str | None, typer.Option(help="label of the figure's x axis")]
YLabel = Annotated[str | None, typer.Option(help="label of the figure's y axis")]
Size = Annotated[
    str | None, typer.Option(metavar="WxH", help="size of the figure, like 6.5x4in or 16x10cm")
]
Style = Annotated[
    str | None, typer.Option(metavar="FILE|NAME", help="matplotlib style sheet of the figure")
]
Rate = Annotated[
    str | None, typer.Option(help="named scenario: rate of both directions, like 20mbit")
]
Up = Annotated[str | None, typer.Option(help="named scenario: rate of the uplink")]
Down = Annotated[str | None, typer.Option(help="named scenario: rate of the downlink")]
Rtt = Annotated[str | None, typer.Option(help="named scenario: round-trip time, like 50ms")]
Buffer = Annotated[
    str | None, typer.Option(help="named scenario: buffer as a time at the rate, like 100ms")
]
Flows = Annotated[int | None, typer.Option(help="named scenario: number of flows")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="change the scenario, like bottleneck.qdisc=codel"
    ),
]

ENGINES = ("sim", "live")
"""Engines: the simulator, and real packets of the kernel's TCP and UDP."""

DIGITS_MAX = 18
"""Digits of a number of threads that is read as a number for the message that refuses it."""


class Interrupted(Exception):  # noqa: N818
    """Ctrl-C, with a message that names the finished runs."""


@contextmanager
def continuing(out: str | Path | None) -> Iterator[None]:
    """Name the folder that keeps finished runs if Ctrl-C ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        if out is None:
            raise
        message = f"interrupted; finished runs are in {out}, the same command continues"
        raise Interrupted(message) from None


def check_look(look: Look, plot: Path | None) -> None:
    """Raise InputError for an option without a figure, or with an invalid value."""
    for name, chosen in look.items():
        if chosen is not None and plot is None:
            raise InputError(f"--{name}: there is no figure, give --plot FIG.png")
    if plot is not None:
        check(look)


def threads_of(text: str) -> Threads:
    """Return the value of `--threads`. Raises InputError for an invalid one."""
    is_number = text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX
    count_of(int(text) if is_number else text, "--threads")
    return int(text) if is_number else "auto"


def is_live(engine: str) -> bool:
    """Return True if `--engine` is "live". Raises InputError for an unknown engine."""
    if engine not in ENGINES:
        raise InputError(f"--engine: unknown engine {shown(engine)}{near(engine, ENGINES)}")
    return engine == "live"
