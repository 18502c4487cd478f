"""The manual page sojourn(1), from the help of the command. `tools/gen.py` writes it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

from typer.main import get_command

from sojourn.cli.run import app

PLACEHOLDERS = ((int, "N"), (float, "NUMBER"), (Path, "PATH"))
"""Placeholders of values, by the type of the option."""

EXIT = (
    ("0", "Success."),
    ("1", "Failure, or a fault in sojourn."),
    ("2", "Bad input: one line on standard error names the field, the value and what is allowed."),
    ("126, 127", "The command of sojourn link is not executable, or does not exist."),
    ("130", "Interrupted."),
)

ENVIRONMENT = (
    ("NO_COLOR", "Print without colours."),
    ("SOJOURN_DEBUG", "Set to 1 to print a traceback if sojourn itself fails."),
    ("SOJOURN_FAR, SOJOURN_FAR6, SOJOURN_NEAR, SOJOURN_NEAR6", "Addresses of both ends of a link, "
     "set by sojourn link for its command."),
)  # fmt: skip

EXAMPLES = (
    ("Compare four disciplines on a home uplink",
     "sojourn new uplink case.toml\n"
     "sojourn compare case.toml --qdisc droptail,red,codel,fq_codel --seeds 5 --plot case.png"),
    ("Put a link before all traffic of a command",
     "sojourn link --rate 10mbit --delay 25ms --qdisc fq_codel -- ping -c 3 198.18.0.1"),
)  # fmt: skip


def escaped(text: str) -> str:
    """Return `text` for roff: no escapes, no control lines."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def entry(term: str, text: str) -> list[str]:
    """Return the lines of a tagged paragraph."""
    return [".TP", f".B {escaped(term)}", escaped(" ".join(text.split()))]


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every command below `command`, without groups, and its full name."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
    else:
        for name, one in inner.items():
            yield from commands(one, f"{path} {name}")


def value(parameter: Any, hints: dict[str, Any]) -> str:
    """Return the placeholder of a value, by its annotation: typer's names of types change."""
    if parameter.metavar:
        return str(parameter.metavar)
    hint = hints.get(parameter.name)
    kinds = {hint, *get_args(hint)}
    return next((word for kind, word in PLACEHOLDERS if kind in kinds), "TEXT")


def described(parameter: Any, hints: dict[str, Any]) -> list[str]:
    """Return the lines of an argument or an option."""
    if parameter.param_type_name == "argument":
        term = parameter.name.upper()
    else:
        term = ", ".join([*parameter.opts, *parameter.secondary_opts])
        term += "" if parameter.is_flag else f" {value(parameter, hints)}"
    text = parameter.help or ""
    text += " (required)" * bool(parameter.required)
    if parameter.show_default and isinstance(parameter.default, str | int | float):
        text += f" (default {parameter.default})" * (not isinstance(parameter.default, bool))
    return entry(term, text)


def arguments(command: Any) -> list[str]:
    """Return the arguments of a command as words of its usage."""
    named = [one for one in command.params if one.param_type_name == "argument"]
    words = [one.name.upper() if one.required else f"[{one.name.upper()}]" for one in named]
    return [*words, *["..."] * any(one.nargs == -1 for one in named)]


def section(path: str, command: Any) -> list[str]:
    """Return the lines of a command: usage, description, arguments and options."""
    usage = " ".join(["[OPTIONS]", *arguments(command)])
    lines = [f".SS {escaped(path)}", f".B {escaped(path)}", escaped(usage), ".PP"]
    lines += [escaped(" ".join((command.help or "").split()))]
    hints = get_type_hints(command.callback)
    for parameter in command.params:
        if "--help" not in parameter.opts:
            lines += described(parameter, hints)
    return lines


def page() -> str:
    """Return the source of the page."""
    root = get_command(app)
    summary = "simulate, compare and emulate queue disciplines"
    lines = [
        '.TH SOJOURN 1 "" "sojourn" "User Commands"',
        ".SH NAME",
        f"sojourn \\- {summary}",
        ".SH SYNOPSIS",
        ".B sojourn",
        "COMMAND [OPTIONS] [ARGUMENTS]",
        ".SH DESCRIPTION",
        "Compare queue disciplines (AQM and fair queueing) for a congested link, in a packet",
        "simulator or with real traffic on Linux. A scenario is a TOML or JSON file; sojourn new",
        "writes one, sojourn list scenario describes its keys. Quantities have units: 10mbit,",
        "300us, 300kB, 100p (packets). A discipline is a name, or a name with parameters:",
        escaped("codel(target=15ms)."),
        ".SH COMMANDS",
    ]
    for path, command in commands(root, "sojourn"):
        lines += section(path, command)
    lines += [".SH EXIT STATUS", *(line for one in EXIT for line in entry(*one))]
    lines += [".SH ENVIRONMENT", *(line for one in ENVIRONMENT for line in entry(*one))]
    lines.append(".SH EXAMPLES")
    for title, text in EXAMPLES:
        lines += [".PP", f"{title}:", ".PP", ".nf", ".RS", escaped(text), ".RE", ".fi"]
    return "\n".join([*lines, ".SH SEE ALSO", ".BR tc (8),", ".BR ping (8)"]) + "\n"
