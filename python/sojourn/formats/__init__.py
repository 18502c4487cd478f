"""Configurations of routers and network managers: to commands of tc, and from them.

Each module reads one format, and some write it. `read` finds the format from the text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn.formats import dummynet, ifupdown, networkd, networkmanager, routeros, sqm, vyos
from sojourn.formats.commands import Commands, Exported

__all__ = ["NAMES", "WRITTEN", "Commands", "Exported", "read", "write"]


@dataclass(frozen=True)
class Format:
    """Format of a configuration.

    Attributes
    ----------
    recognises : callable
        Return True if a text is of this format.
    read : callable
        Return the commands of tc for a text.
    write : callable, optional
        Return a text for links. None if the format is only read.
    """

    recognises: Callable[[str], bool]
    read: Callable[[str], Commands]
    write: Callable[[Sequence[Exported]], list[str]] | None = None


FORMATS = {
    "sqm": Format(sqm.is_config, sqm.read, sqm.write),
    "networkd": Format(networkd.is_config, networkd.read, networkd.write),
    "networkmanager": Format(networkmanager.is_config, networkmanager.read, networkmanager.write),
    "ifupdown": Format(ifupdown.is_config, ifupdown.read, ifupdown.write),
    "vyos": Format(vyos.is_config, vyos.read),
    "dummynet": Format(dummynet.is_config, dummynet.read),
    "routeros": Format(routeros.is_config, routeros.read),
}
"""Formats by name, in the order in which they are tried."""

NAMES = ("tc", *FORMATS)
"""Names of the formats that are recognised; `tc` is commands or output of tc itself."""

WRITTEN = ("tc", *(name for name, one in FORMATS.items() if one.write))
"""Names of the formats that are written."""


def read(text: str, name: str | None = None) -> Commands:
    """Return the commands of tc for a configuration.

    Parameters
    ----------
    text : str
        The configuration. Commands and output of tc are returned as they are.
    name : str, optional
        Name of the format, one of `NAMES`. The default is recognised from the text.

    Raises
    ------
    InputError
        If the name is unknown, or the configuration is invalid or cannot be read.
    """
    if name is None:
        name = next((one for one, form in FORMATS.items() if form.recognises(text)), "tc")
    if name not in NAMES:
        raise InputError(f"--format: unknown format {shown(name)}{near(name, list(NAMES))}")
    return Commands(text) if name == "tc" else FORMATS[name].read(text)


def write(links: Sequence[Exported], name: str) -> list[str]:
    """Return the lines of a configuration for links. Comments name what it cannot say.

    Raises
    ------
    InputError
        If the name is unknown or only read, or the format cannot describe the links.
    """
    if name == "tc":
        return [line for link in links for line in link.lines]
    form = FORMATS.get(name)
    if form is None or form.write is None:
        raise InputError(f"--format: {shown(name)} is none of {', '.join(WRITTEN)}")
    return form.write(links)
