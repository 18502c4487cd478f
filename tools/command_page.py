"""docs/reference/command.md, generated from the help of the command, for `pages.py`."""

import re
from typing import Any, get_type_hints

from typer.main import get_command

import man
from sojourn.cli.run import app


def prose(text: str) -> str:
    """Return a help text as Markdown: placeholders in angle brackets are code, `|` is escaped."""
    text = re.sub(r"(?<!`)<([\w-]+)>(?!`)", r"`<\1>`", " ".join(text.split()))
    return text.replace("|", "\\|") or "-"


def row(parameter: Any, hints: dict[str, Any]) -> str:
    """Return the row of an argument or an option."""
    if parameter.param_type_name == "argument":
        term = f"`{parameter.name.upper()}`"
    else:
        words = [f"`{word}`" for word in (*parameter.opts, *parameter.secondary_opts)]
        if not parameter.is_flag:
            words[-1] = f"{words[-1][:-1]} {man.value(parameter, hints)}`".replace("|", "\\|")
        term = ", ".join(words)
    text = prose(parameter.help or "") + " (required)" * bool(parameter.required)
    shown = parameter.show_default and isinstance(parameter.default, str | int | float)
    default = f"`{parameter.default}`" if shown and not isinstance(parameter.default, bool) else "-"
    return f"| {term} | {text} | {default} |"


def section(path: str, command: Any) -> list[str]:
    """Return the lines of a command: usage, description, table of arguments and options."""
    usage = [path, "[OPTIONS]", *man.arguments(command)]
    paragraphs = (command.help or "").split("\n\n")
    lines = [f"## {path}", "", "```text", " ".join(usage), "```", ""]
    lines += [line for text in paragraphs for line in (prose(text), "")]
    hints = get_type_hints(command.callback)
    rows = [row(one, hints) for one in command.params if "--help" not in one.opts]
    if rows:
        lines += ["| argument or option | meaning | default |", "|---|---|---|", *rows, ""]
    return lines


def page() -> list[str]:
    """Return the lines of the page."""
    root = get_command(app)
    lines = [
        "# The command",
        "",
        "`sojourn COMMAND --help` prints the same in the terminal, the manual page `sojourn(1)`",
        "has it all. Quantities have units: `10mbit`, `300us`, `300kB`, `100p` (packets). A",
        "discipline is a name, or a name with parameters: `codel(target=15ms)`.",
        "",
    ]
    for path, command in man.commands(root, "sojourn"):
        lines += section(path, command)
    for title, entries in (("Exit codes", man.EXIT), ("Environment variables", man.ENVIRONMENT)):
        rows = [f"| `{term.replace(', ', '`, `')}` | {prose(text)} |" for term, text in entries]
        lines += [f"## {title}", "", "| | meaning |", "|---|---|", *rows, ""]
    return lines
