"""TOML and JSON text: read, or refused in one line that says which value lacks its quotes."""

import json
import re
import tomllib
from collections.abc import Callable
from typing import Any

from sojourn._sojourn import InputError

VALUE = r"[A-Za-z_]\w*\([^()\n]*\)|[^\s,\[\]{}\"'#][^\s,\[\]{}\"'#]*"
"""A value without quotes: codel, 10s, 2%, uniform(0s, 10s)."""

LINE_MAX = 1000
"""The longest line in which such a value is looked for."""

RIGHT_MAX = 80
"""The longest correction that is shown."""

UNQUOTED = re.compile(
    rf"""([\w.-]+|"[^"\n]*")\s*[=:]\s*({VALUE})|(?<=[,\[])\s*({VALUE})(?=\s*(?:[,\]#]|$))"""
)
"""Such a value with the key before it, or the comma or bracket if it stands in a list."""


def parse_toml(text: str) -> Any:
    """Read TOML. Raises InputError, with the line, for what is none."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        told = " ".join(str(error).split())
        match = re.search(r"line (\d+), column (\d+)", told)
        if match is None:
            raise InputError(told) from None
        line, column = int(match[1]), int(match[2])
        raise InputError(_hint(text, line, column, "{} = {}", tomllib.loads) or told) from None
    except ValueError as error:  # an integer with thousands of digits
        raise InputError(" ".join(str(error).split())) from None


def parse_json(text: str) -> Any:
    """Read JSON. Raises InputError, with the line, for what is none, or a key that is twice."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        told = f"line {error.lineno}: {error.msg} (column {error.colno})"
        hint = _hint(text, error.lineno, error.colno, "{}: {}", json.loads)
        raise InputError(hint or told) from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(" ".join(str(error).split())) from None


def _hint(text: str, line: int, column: int, form: str, parse: Callable[[str], Any]) -> str | None:
    """Return what to write if a value without quotes is what stopped `parse` at that place."""
    lines = text.split("\n")
    place = lines[line - 1] if line <= len(lines) else ""
    if len(place) > LINE_MAX:  # the pattern takes the square of its length
        return None
    for match in UNQUOTED.finditer(place):
        key, value = match[1], match[2] or match[3]
        start, end = match.span(2 if match[2] else 3)
        is_header = place.lstrip().startswith("[")
        if is_header or _is_value(value, parse) or not start < column <= end + 1:
            continue
        better = value.lower() if value in ("True", "False") else json.dumps(value)
        mended = [*lines[: line - 1], place[:start] + better + place[end:], *lines[line:]]
        if not _comes_further("\n".join(mended), line, start + len(better), parse):
            return None
        right = form.format(key, better) if key else better
        what = "quote it" if better.startswith('"') else "write it in small letters"
        return f"line {line}: {what}: {right}" if len(right) <= RIGHT_MAX else None
    return None


def _is_value(text: str, parse: Callable[[str], Any]) -> bool:
    """Return True if `text` is a value as it stands, like a number."""
    try:
        parse(f"x = {text}" if parse is tomllib.loads else text)
    except (ValueError, RecursionError):
        return False
    return True


def _comes_further(text: str, line: int, column: int, parse: Callable[[str], Any]) -> bool:
    """Return True if `parse` reads `text` beyond that place."""
    try:
        parse(text)
    except json.JSONDecodeError as error:
        return (error.lineno, error.colno) > (line, column)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"line (\d+), column (\d+)", str(error))
        return match is None or (int(match[1]), int(match[2])) > (line, column)
    except (ValueError, RecursionError):
        return False
    return True


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that is given twice; JSON would let the last one win in silence."""
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise InputError(f"{key}: this key is given twice")
        table[key] = value
    return table
