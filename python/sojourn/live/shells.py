"""Shells inside a link say in their prompts where they are: `[sojourn 10mbit] $`.

Each shell reads the user's own files first; those here (`shell_files`) only put the label before
the prompt that these made. The label is in `$SOJOURN_PROMPT`, for other shells to use.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FILES = Path(__file__).with_name("shell_files")

PLAIN = ("sh", "dash", "ash", "ksh", "mksh")
"""Shells that read the file that ENV names."""


def label(links: Mapping[str, Any]) -> str:
    """Write what a prompt begins with: the rate of the link, or of both directions."""
    rates = ["trace" if "trace" in link else str(link["rate"]) for link in links.values()]
    return f"[sojourn {'/'.join(dict.fromkeys(rates))}] "


def interactive(
    command: Sequence[str], links: Mapping[str, Any]
) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the variables with which `command` is run behind `links`.

    They differ from those given if it is a shell that reads from a terminal.
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
    """Return True if `command` is a shell for the terminal in whose foreground this process is.

    `shell` says that it is one, whatever its name.
    """
    known = len(command) == 1 and Path(command[0]).name in ("bash", "zsh", "fish", *PLAIN)
    try:
        return (shell or known) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _moved(name: str, value: str) -> dict[str, str]:
    """Give a variable another value; the one before is kept for the file that reads it."""
    before = os.environ.get(name)
    return {name: value} | ({} if before is None else {f"SOJOURN_{name}": before})
