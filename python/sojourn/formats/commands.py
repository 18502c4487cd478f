"""Commands of tc as other formats read and write them."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sojourn._sojourn import InputError

MTU = 1500
"""MTU of a device for which a configuration names none, in bytes."""


@dataclass(frozen=True)
class Commands:
    """Commands of tc for a configuration.

    Attributes
    ----------
    text : str
        The commands, one per line.
    lost : list of tuple
        Device and text of each setting that has no effect in the commands.
    """

    text: str
    lost: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Exported:
    """Link to write.

    Attributes
    ----------
    dev : str
        The device.
    link : mapping
        The canonical link; without `rate` for a discipline alone.
    leaf : mapping
        The nearest qdisc of Linux, as `sojourn.tc.translate` returns it.
    lines : list of str
        Comments and commands of tc.
    """

    dev: str
    link: Mapping[str, Any]
    leaf: Mapping[str, Any]
    lines: Sequence[str]


@dataclass(frozen=True)
class Command:
    """Command `tc qdisc|class replace dev DEV ...`.

    Attributes
    ----------
    what : str
        "qdisc" or "class".
    parent : str
        "root" or the parent.
    handle : str
        The handle or the classid; empty if none is given.
    kind : str
        Kind of the qdisc.
    words : list of str
        The words after the kind.
    """

    what: str
    parent: str
    handle: str
    kind: str
    words: list[str]


def split(line: str) -> Command:
    """Return the parts of a command that `sojourn.tc.export` wrote."""
    words = shlex.split(line)
    what, rest = words[1], words[5:]
    parent = handle = ""
    while rest and rest[0] in ("root", "parent", "handle", "classid"):
        word = rest.pop(0)
        if word == "root":
            parent = word
        elif word == "parent":
            parent = rest.pop(0)
        else:
            handle = rest.pop(0)
    return Command(what, parent or "root", handle, rest[0], rest[1:])


def comments(lines: Sequence[str]) -> list[str]:
    """Return the comments among lines."""
    return [line for line in lines if line.startswith("#")]


def commands(lines: Sequence[str]) -> list[Command]:
    """Return the commands among lines."""
    return [split(line) for line in lines if line and not line.startswith("#")]


def stated(options: Mapping[str, str], key: str, where: str) -> str:
    """Return an option. Raises InputError if it is missing."""
    if key not in options:
        raise InputError(f"{where}: {key} is missing")
    return options[key]
