"""Parsers of TOML, JSON and `--set`, whose errors name the line and suggest missing quotes."""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief
from sojourn.custom import trust as trusting

VALUE = r"[A-Za-z_]\w*\([^()\n]*\)|[^\s,\[\]{}\"'#][^\s,\[\]{}\"'#]*"
"""Pattern of a value without quotes: codel, 10s, 2%, uniform(0s, 10s)."""

LINE_MAX = 1000
"""Longest line that is searched for such a value, in characters."""

RIGHT_MAX = 80
"""Longest correction that is shown, in characters."""

UNQUOTED = re.compile(
    rf"""([\w.-]+|"[^"\n]*")\s*[=:]\s*({VALUE})|(?<=[,\[])\s*({VALUE})(?=\s*(?:[,\]#]|$))"""
)
"""Such a value after a key, or after a comma or bracket in a list."""


DEPTH_MAX = 100
"""Largest depth of tables and lists, and number of parts of a key; scenarios have about 8."""

TOO_DEEP = "tables are nested too deeply"

PARTS = re.compile(
    r"""(?<![\w."'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+)"""
    rf"{{{DEPTH_MAX}}}"
)
"""Key of TOML with too many parts, for which `tomllib` needs the square of their number."""


def check_depth(tree: Any) -> None:
    """Raise InputError if tables and lists are nested more than `DEPTH_MAX` deep.

    Functions that copy or convert a tree are recursive, and so is the parser of Rust.
    """
    level, depth = [tree], 0
    while level:
        if depth > DEPTH_MAX:
            raise InputError(TOO_DEEP)
        inner = (node.values() if isinstance(node, dict) else node for node in level)
        level = [one for node in inner for one in node if isinstance(one, dict | list)]
        depth += 1


def parse_file(path: Path, text: str, parse: Callable[[str], Any], *, trust: bool) -> Any:
    """Parse the text of the file `path`. With `trust`, Python code that it names may run.

    Raises InputError with the name of the file, and the line if known.
    """
    try:
        tree = parse(text)
        if isinstance(tree, dict | list):
            check_depth(tree)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except RecursionError:
        raise InputError(f"{path}: {TOO_DEEP}") from None
    trusting.read(tree, path, trust)
    return tree


def parse_toml(text: str) -> Any:
    """Parse TOML. Raises InputError with the line of an error."""
    if long := PARTS.search(text):
        line = text.count("\n", 0, long.start()) + 1
        raise InputError(f"line {line}: {TOO_DEEP}: the key has more than {DEPTH_MAX} parts")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = " ".join(str(error).split())
        match = re.search(r"line (\d+), column (\d+)", message)
        if match is None:
            raise InputError(message) from None
        line, column = int(match[1]), int(match[2])
        raise InputError(_hint(text, line, column, "{} = {}", tomllib.loads) or message) from None
    except ValueError as error:  # an integer with thousands of digits
        raise InputError(" ".join(str(error).split())) from None


def parse_json(text: str) -> Any:
    """Parse JSON. Raises InputError with the line of an error, or for a duplicate key."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        message = f"line {error.lineno}: {error.msg} (column {error.colno})"
        hint = _hint(text, error.lineno, error.colno, "{}: {}", json.loads)
        raise InputError(hint or message) from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(" ".join(str(error).split())) from None


def _hint(text: str, line: int, column: int, form: str, parse: Callable[[str], Any]) -> str | None:
    """Return a correction if a value without quotes caused the error at `line`, `column`."""
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
        what = "quote it" if better.startswith('"') else "write it in lower case"
        return f"line {line}: {what}: {right}" if len(right) <= RIGHT_MAX else None
    return None


def _is_value(text: str, parse: Callable[[str], Any]) -> bool:
    """Return True if `text` is a valid value, like a number."""
    try:
        parse(f"x = {text}" if parse is tomllib.loads else text)
    except (ValueError, RecursionError):
        return False
    return True


def _comes_further(text: str, line: int, column: int, parse: Callable[[str], Any]) -> bool:
    """Return True if `parse` succeeds, or fails only after `line`, `column`."""
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
    """Return a table. Raises InputError for a duplicate key, of which json keeps the last one."""
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise InputError(f"{key}: this key is given twice")
        table[key] = value
    return table


BARE = re.compile(r"""([=\[,]\s*)(?!true\b|false\b)([A-Za-z\d.][^,{}\[\]"'=]*?)(?=\s*[,}\]])""")
"""Value of a table or a list that may lack its quotes, after what precedes it."""

NUMBER = re.compile(r"[\d.]+([eE]-?\d+)?")


def read_value(text: str) -> Any:
    """Parse a value of the command line as TOML (3, true, [..]) if possible, otherwise as text.

    Texts in a table or a list need no quotes: `{ size = 5ms }`.
    """
    quoted = BARE.sub(_quoted, text) if text[:1] in ("{", "[") else text
    for form in dict.fromkeys((text, quoted)):
        try:
            tree = parse_toml(f"value = {form}")
            check_depth(tree)
        except (InputError, RecursionError):
            continue
        if list(tree) == ["value"]:
            return tree["value"]
    return text


def _quoted(match: re.Match[str]) -> str:
    before, value = match.groups()
    return match[0] if NUMBER.fullmatch(value) else f'{before}"{value}"'


def split_setting(
    setting: str, option: str = "--set", example: str = "bottleneck.qdisc=codel"
) -> tuple[str, Any]:
    """Parse KEY=VALUE, the argument of an option."""
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise InputError(f"{option} {brief(setting)}: write it as KEY=VALUE, like {example}")
    return key.strip(), read_value(text.strip())
