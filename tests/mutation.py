"""Mutated input: trees, tables and command lines, each with one or a few changes.

The same seed gives the same mutants. Tests demand that each is refused in one line, or accepted
and usable; any other exception is a fault.
"""

import copy
import math
import random
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

LONG = "x" * 100_000

VALUES: tuple[Any, ...] = (
    True, False, 0, 1, 3, -7, 2.5, -0.0, 1e300, math.inf, -math.inf, math.nan, 2**53 + 1, 10**30,
    "", "x", "-", "0", "codel", "10mbit", "a\tb", LONG, date(2026, 1, 2), [], [5], [True], ["x"],
    [math.inf], [[]], [{}], ["x", "x"], {}, {"x": 1}, {"name": "x"}, {"name": ["codel"]},
)  # fmt: skip
"""Replacements of a value: every type, extreme, empty and nested ones."""


WORDS = (
    "", "-1", "nan", "inf", "1e999", "1e400000", "0x10", "1_0", "٣", "²", '"', "\x00", ",", "\n",
    "\r", "\r\n", " ", "9" * 400, "9223372036854775808", "é", "5,5", "t_s", "i",
)  # fmt: skip
"""Insertions between the bytes of a text, or into a cell of a table."""


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the paths of all nodes below the root of a tree, outermost first."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))


def at(tree: Any, path: Sequence[Any]) -> Any:
    """Return the value at a path."""
    for key in path:
        tree = tree[key]
    return tree


def replaced(tree: Any) -> Iterator[tuple[str, Any]]:
    """Yield copies with each value replaced by each of VALUES, put into a list, or removed."""
    for path in list(places(tree)):
        old = at(tree, path)
        where = ".".join(map(str, path))
        for value in (*VALUES, [old], [old, old], {"x": old}):
            mutant = copy.deepcopy(tree)
            at(mutant, path[:-1])[path[-1]] = value
            yield f"{where} = {value!r:.60}", mutant
        mutant = copy.deepcopy(tree)
        del at(mutant, path[:-1])[path[-1]]
        yield f"without {where}", mutant


def shuffled(tree: Any, count: int, seed: int = 1) -> Iterator[tuple[str, Any]]:
    """Yield `count` trees with one to four random changes each, also of keys and positions."""
    rng = random.Random(seed)
    for n in range(count):
        mutant = copy.deepcopy(tree)
        for _ in range(rng.randint(1, 4)):
            every = list(places(mutant))
            if not every:
                break
            path = rng.choice(every)
            parent, key = at(mutant, path[:-1]), path[-1]
            match rng.randrange(5):
                case 0:
                    parent[key] = rng.choice(VALUES)
                case 1:  # the value of another place
                    parent[key] = copy.deepcopy(at(mutant, rng.choice(every)))
                case 2:
                    del parent[key]
                case 3 if isinstance(parent, dict):  # another name
                    name = rng.choice(every)[-1]
                    parent[str(name)] = parent.pop(key)
                case _ if isinstance(parent, list):
                    parent.append(copy.deepcopy(parent[key]))
                case _:
                    parent[rng.choice(("x", "", "name", "set", "when", "a b"))] = parent[key]
        yield f"shuffle {n}", mutant


def edited(text: str, count: int, seed: int = 1) -> Iterator[tuple[str, bytes]]:
    """Yield `count` versions of a text with one to three edits of bytes, words or lines each."""
    rng = random.Random(seed)
    for n in range(count):
        raw = bytearray(text.encode())
        for _ in range(rng.randint(1, 3)):
            i, j = sorted(rng.randrange(len(raw) + 1) for _ in range(2))
            lines = raw.splitlines(keepends=True)
            match rng.randrange(6):
                case 0:
                    raw[i:j] = b""
                case 1:
                    raw[i:i] = rng.choice(WORDS).encode()
                case 2:
                    raw[i : i + 1] = bytes([rng.randrange(256)])
                case 3 if lines:
                    k = rng.randrange(len(lines))
                    raw = bytearray(b"".join([*lines[:k], lines[k], *lines[k:]]))
                case 4 if lines:
                    rng.shuffle(lines)
                    raw = bytearray(b"".join(lines))
                case _ if lines:
                    k = rng.randrange(len(lines))
                    cells = bytes(lines[k]).split(b",")
                    cells[rng.randrange(len(cells))] = rng.choice(WORDS).encode()
                    raw = bytearray(b"".join([*lines[:k], b",".join(cells), *lines[k + 1 :]]))
                case _:
                    raw[i:i] = b"1"
        yield f"edit {n}", bytes(raw)


def toml(tree: dict[str, Any]) -> str:
    """Write a tree as TOML, tables within tables in one line."""
    return "".join(f"{_text(key)} = {_value(value)}\n" for key, value in tree.items())


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return _text(value)
        case dict():
            return f"{{ {', '.join(f'{_text(k)} = {_value(v)}' for k, v in value.items())} }}"
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case float() if math.isfinite(value) and value == int(value):
            return f"{int(value)}.0"
        case _:
            return str(value)


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'


DEEP = 1500
"""Depth of nested tables in mutants, above Python's limit of recursion."""


def grafted(tree: Any, seed: int) -> Any:
    """Return a copy of a JSON tree with one to four changes: of values, keys, depth and order."""
    rng = random.Random(seed)
    if rng.random() < 0.4:
        return next(shuffled(tree, 1, seed))[1]
    mutant = copy.deepcopy(tree)
    path = rng.choice(list(places(mutant)))
    parent, key, old = at(mutant, path[:-1]), path[-1], at(mutant, path)
    match rng.randrange(5):
        case 0:
            del parent[key]
        case 1:
            parent[key] = _nested(old, rng.choice((1, 2, 90)))
        case 2 if type(old) in (int, float):
            parent[key] = rng.choice((-1, 0, 1e-300, 1e18, 1e19, 1e308, 2**63, 2**64, math.nan))
        case 3 if isinstance(old, str):
            parent[key] = altered(old.encode(), seed).decode(errors="replace")
        case _:
            parent[key] = rng.choice(VALUES)
    return mutant


def _nested(value: Any, depth: int) -> Any:
    for n in range(depth):
        value = [value] if n % 2 else {"x": value}
    return value


def altered(raw: bytes, seed: int) -> bytes:
    """Return bytes with one to three changes: bits, cuts, repeats, words, splices, deep nesting."""
    rng = random.Random(seed)
    data = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        i, j = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        words = bytes(data).split(b" ")
        match rng.randrange(12):
            case 0 | 1 if data:
                data[min(i, len(data) - 1)] ^= 1 << rng.randrange(8)
            case 2 | 3:
                data[i : i + rng.randint(1, 4)] = b""
            case 4:
                del data[i:]
            case 5:
                data[i:i] = rng.choice(WORDS).encode()
            case 6:
                data[i:i] = data[j : j + rng.randint(1, 200)]
            case 7 | 8:
                words[rng.randrange(len(words))] = rng.choice(words)
                data = bytearray(b" ".join(words))
            case 9:
                data[i : i + 4] = rng.choice((b"\xff" * 4, b"\x00" * 4, b"\x80\x00\x00\x7f"))
            case 10:
                data[i:i] = rng.choice((b"[", b"{", b'{"a":', b"a.", b"(", b"'")) * DEEP
            case _:
                data[i:i] = rng.choice((b"9" * 400, b"1e999", b"-1", b"nan", b"\x1b[2J", b"=0"))
    return bytes(data)
