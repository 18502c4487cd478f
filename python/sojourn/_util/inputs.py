"""Input as messages see it: files that cannot be read, values quoted in part, names suggested."""

import json
import math
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from sojourn._sojourn import InputError

QUOTED_MAX = 60
"""Longest quotation of the input in a message, in characters, as in Rust."""

PATH_MAX = 500
"""Longest name of a file in a message, in characters."""

KNOWN_MAX = 1000
"""Longest list of known names in a message, in characters."""


def shown(value: Any) -> str:
    """Return `value` as a message quotes it: as JSON, on one line, cut after 60 characters.

    Of a longer text the number of characters follows in brackets.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):
        # An integer of thousands of digits, keys that are no text, a table that contains itself.
        text = f"a value of type {type(value).__name__}"
    if isinstance(value, float) and not math.isfinite(value):
        text = str(value)
    text = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text[: 2 * QUOTED_MAX])
    if not isinstance(value, str):
        return text if len(text) <= QUOTED_MAX else f"{text[:QUOTED_MAX]}..."
    if len(value) <= QUOTED_MAX:
        return text
    return f'{text[: QUOTED_MAX + 1]}..." ({len(value)} characters)'


def brief(text: str) -> str:
    """Return `text` as a message has it without quotes: on one line, cut after 60 characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= QUOTED_MAX else f"{line[:QUOTED_MAX]}... ({len(text)} characters)"


def near(name: object, known: Iterable[str]) -> str:
    """Return the end of a message about `name`: the nearest of `known`, and all that are known."""
    name, known = str(name), list(known)
    found = get_close_matches(name, known, 1)
    found = found or [one for one in known if name and one.startswith(name)]
    guess = f", did you mean {shown(found[0])}?" if found else ""
    kept, length = 0, 0
    while kept < len(known) and (length := length + len(known[kept]) + 2) <= KNOWN_MAX:
        kept += 1
    more = f", and {len(known) - kept} more" if kept < len(known) else ""
    return f"{guess} (known: {', '.join(known[:kept])}{more})"


def why(error: OSError | ValueError) -> str:
    """Return in a few words what the operating system refused.

    A ValueError is Python's: a name with a character that no file name can have.
    """
    return ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()


def bytes_of_file(path: Path) -> bytes:
    """Return what is in the file `path`. Raises InputError with its name if it cannot be read."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        name = str(path)
        name = name if len(name) <= PATH_MAX else f"{name[:QUOTED_MAX]}..."
        raise InputError(f"{name}: {why(error)}") from None


def text_of(path: Path, raw: bytes) -> str:
    """Return the text of the file `path` whose bytes are `raw`; it must have some, in UTF-8."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}: line {line}: this is not a text file in UTF-8") from None
    if not text.strip():
        raise InputError(f"{path}: the file is empty")
    return text
