"""Parts of error messages about input: quoted values, suggested names, errors of the system."""

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from sojourn._sojourn import InputError, canonical_links, nearest

QUOTED_MAX = 60
"""Longest quotation of the input in a message, in characters, as in Rust."""

KNOWN_MAX = 1000
"""Longest list of known names in a message, in characters."""

KNOWN_AFTER_GUESS = 12
"""Largest number of known names that follow a suggestion in a message, as in Rust."""


def shown(value: Any) -> str:
    """Quote a value for a message: as JSON, on one line, cut after 60 characters.

    The length of a longer text follows in parentheses.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        # An integer of thousands of digits, keys other than text, a table that contains itself.
        text = f"a value of type {type(value).__name__}"
    if isinstance(value, float) and not math.isfinite(value):
        text = str(value)
    text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text[: 2 * QUOTED_MAX])
    if not isinstance(value, str):
        return text if len(text) <= QUOTED_MAX else f"{text[:QUOTED_MAX]}..."
    if len(value) <= QUOTED_MAX:
        return text
    return f'{text[: QUOTED_MAX + 1]}..." ({len(value)} characters)'


def printable(text: str) -> str:
    """Return `text` with a blank for each control, direction or other unprintable character."""
    return "".join(c if c.isprintable() else " " for c in text)


def printable_lines(text: str) -> str:
    """Return `text` as `printable` does, with its line ends kept."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def brief(text: str) -> str:
    """Return `text` for a message without quotes: on one line, cut after 60 characters."""
    line = " ".join(printable(text).split())
    return line if len(line) <= QUOTED_MAX else f"{line[:QUOTED_MAX]}... ({len(text)} characters)"


def near(name: object, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown `name`: the nearest known name, and all names.

    With a suggestion, a long list of names is left out.
    """
    name, known = str(name), list(known)
    match = nearest(name, known) or next((k for k in known if name and k.startswith(name)), None)
    guess = f", did you mean {shown(match)}?" if match else ""
    if match and len(known) > KNOWN_AFTER_GUESS:
        return guess
    kept, length = 0, 0
    while kept < len(known) and (length := length + len(known[kept]) + 2) <= KNOWN_MAX:
        kept += 1
    more = f", and {len(known) - kept} more" if kept < len(known) else ""
    return f"{guess} (known: {printable(', '.join(known[:kept]))}{more})"


def why(error: OSError | ValueError) -> str:
    """Return the reason of an error of the operating system, in lower case.

    Python raises ValueError for a file name with an invalid character.
    """
    return ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()


def of_link(option: str, key: str, value: Any) -> str:
    """Return the `rate` or `delay` that an option gives, checked as that key of a link.

    Raises InputError with the option in place of the key's path.
    """
    link = {"rate": "1mbit", key: value}
    try:
        links = json.loads(canonical_links(json.dumps({"link": link})))
    except InputError as error:
        raise InputError(f"{option}: {str(error).removeprefix(f'link.{key}: ')}") from None
    return str(links["link"][key])


DEVICE = re.compile(r"(?!\.{1,2}\Z|.*=\Z)[A-Za-z0-9_.][A-Za-z0-9_.@+%,=~-]{0,14}")
"""Name of a network device: valid for the kernel, and without a meaning for a shell."""


def check_device(option: str, name: str) -> str:
    """Return the name of a network device.

    Raises InputError, with the option, unless it has 1 to 15 characters that the kernel allows and
    that mean nothing to a shell: the name is written into commands.
    """
    if not DEVICE.fullmatch(name):
        allowed = '1 to 15 letters, digits and "_.@+%,=~-"'
        raise InputError(
            f"{option} {brief(name)}: write the name of a device, like eth0, allowed: {allowed}"
        )
    return name
