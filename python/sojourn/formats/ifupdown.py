"""Interfaces of ifupdown (`/etc/network/interfaces`) as commands of tc, and back.

Source: interfaces(5).
"""

import re
from collections.abc import Sequence

from sojourn._sojourn import InputError
from sojourn.formats.commands import Commands, Exported

UP = ("pre-up", "up", "post-up")
DOWN = ("pre-down", "down", "post-down")
STARTS = ("auto", "allow-", "source", "mapping", "rename", "template")
"""Beginnings of lines that end a stanza."""

TC = re.compile(r"(?:sudo\s+)?(?:\S*/)?tc\s")


def is_config(text: str) -> bool:
    """Return True if `text` has a stanza of an interface with a command of tc."""
    stanza = re.search(r"^\s*iface\s+\S+", text, re.MULTILINE)
    return (
        stanza is not None and re.search(r"^\s*(pre-|post-)?up\s", text, re.MULTILINE) is not None
    )


def read(text: str) -> Commands:
    """Return the commands of tc that run when interfaces come up.

    Commands for interfaces that go down are left out, as is everything that is not of tc.

    Raises
    ------
    InputError
        If there is no command of tc.
    """
    lines: list[str] = []
    device = None
    for line in text.replace("\\\n", " ").splitlines():
        words = line.split(None, 1)
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "iface":
            device = words[1].split()[0] if len(words) > 1 else None
        elif words[0].startswith(STARTS):
            device = None
        elif device is not None and words[0] in UP and len(words) > 1:
            command = re.sub(r"\$\{?IFACE\}?|\"\$IFACE\"", device, words[1])
            lines += [
                part.strip()
                for part in re.split(r"&&|;|\|\|", command)
                if TC.match(part.strip()) and " del " not in part
            ]
    if not lines:
        raise InputError("no interface has a command of tc (up tc ...)")
    return Commands("\n".join(lines))


def write(links: Sequence[Exported]) -> list[str]:
    """Return a stanza for each link."""
    lines: list[str] = []
    for one in links:
        lines += ["", f"iface {one.dev} inet manual"] if lines else [f"iface {one.dev} inet manual"]
        for line in one.lines:
            own = line.replace(f" dev {one.dev} ", " dev $IFACE ")
            lines.append(line if line.startswith("#") else f"    up {own}")
        lines.append("    down tc qdisc del dev $IFACE root")
    return lines
