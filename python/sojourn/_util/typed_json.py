"""JSON files of unknown origin: decode them, and check the types of their values."""

import re
from pathlib import Path
from typing import Any

import msgspec

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief, printable
from sojourn._util.reading import bytes_of_file

TEXT_MAX = 200
"""Longest reason in a message, in characters."""

MISSING = re.compile(r"Object missing required field `(\w+)`")


def read_json(path: Path) -> Any:
    """Return the value in a JSON file. Raises InputError, with its name, if it is not JSON."""
    return decoded(path, bytes_of_file(path))


def decoded(where: Path | str, raw: bytes | str) -> Any:
    """Return the value of a JSON text. Raises InputError about `where` if it is not JSON."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{where}: this is not JSON: {brief(str(error))}") from None
    except RecursionError:
        raise InputError(f"{where}: tables are nested too deeply") from None


def checked(value: Any, kind: Any, where: str = "") -> Any:
    """Return a value of JSON types as `kind`.

    Parameters
    ----------
    value
        The value.
    kind
        A type that msgspec can convert to, like a Struct.
    where : str, optional
        Path of the value, for messages.

    Raises
    ------
    InputError
        If a field is missing or has another type. The message begins with its path.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputError(_fault(str(error), where)) from None
    except RecursionError:
        raise InputError(f"{where}: tables are nested too deeply") from None


def _fault(text: str, where: str) -> str:
    """Return the message of a ValidationError with the path first."""
    text, _, place = text.partition(" - at `$")
    way = re.findall(r"\w+", place)  # the key of a mapping is "..."
    if missing := MISSING.match(text):
        way, text = [*way, missing[1]], "is missing"
    path = ".".join([*filter(None, [where]), *way])
    text = printable(text.replace("`", "").replace(" | ", " or "))[:TEXT_MAX]
    return ": ".join(filter(None, (path, text[:1].lower() + text[1:])))
