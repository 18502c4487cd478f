"""Prompts of shells inside a link: `[sojourn 10mbit] $`.

Each shell reads the user's own files first. The files in `shell_files` only put the label before
the prompt. Other shells can use the label in `$SOJOURN_PROMPT`.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn.scenario import describe

FILES = Path(__file__).with_name("shell_files")

PLAIN = ("sh", "dash", "ash", "ksh", "mksh")
"""Shells that read the file named by the variable ENV."""


def label(links: Mapping[str, Any]) -> str:
    """Return the label of the prompt: the rate of the link, or the rates of both directions."""
    rates = ["trace" if "trace" in link else describe.rate(link) for link in links.values()]
    return f"[sojourn {'/'.join(dict.fromkeys(rates))}] "


def interactive(
    command: Sequence[str], links: Mapping[str, Any]
) -> tuple[list[str], dict[str, str]]:
    """Return the command line and additional variables with which to run `command`.

    The command line changes only if it is a shell that reads from a terminal.
    """
    prompt = os.environ.get("SOJOURN_PROMPT", "") + label(links)
    line, variables = list(command), {"SOJOURN_PROMPT": prompt}
    if len(command) != 1 or not os.isatty(0):
        return line, variables
    shell = Path(command[0]).name
    if shell == "bash":
        line += ["--rcfile", str(FILES / "bashrc")]
    elif shell == "zsh":
        variables |= _moved("ZDOTDIR", str(FILES / "zsh")) | {"SOJOURN_ZSH": str(FILES / "zsh")}
    elif shell == "fish":
        line += ["--init-command", f"source {shlex.quote(str(FILES / 'config.fish'))}"]
    elif shell in PLAIN:
        variables |= _moved("ENV", str(FILES / "shrc"))
    return line, variables


def takes_terminal(command: Sequence[str], *, shell: bool) -> bool:
    """Return True if `command` is a shell and this process is in the foreground of the terminal.

    With `shell`, it is a shell whatever its name.
    """
    known = len(command) == 1 and Path(command[0]).name in ("bash", "zsh", "fish", *PLAIN)
    try:
        return (shell or known) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _moved(name: str, value: str) -> dict[str, str]:
    """Return a variable with a new value, and its old value as SOJOURN_NAME."""
    before = os.environ.get(name)
    return {name: value} | ({} if before is None else {f"SOJOURN_{name}": before})
