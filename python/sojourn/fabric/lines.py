"""Lines of text files with whole numbers, and their errors, which name file and line."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from sojourn._sojourn import InputError
from sojourn._util.inputs import shown
from sojourn._util.reading import bytes_of_file, text_of, unpacked

INTEGER = re.compile(r"[0-9]{1,15}")
"""A whole number of a file."""

DECIMAL = re.compile(r"([0-9]{0,18})(?:\.([0-9]{0,30}))?(?:e([+-]?[0-9]{1,2}))?")
"""A decimal number of a file."""

LARGEST = 10**20
"""Largest decimal number, in its unit: 10^8 s in picoseconds."""


class Lines:
    """Lines of a text file that are not empty, with their numbers.

    Parameters
    ----------
    path : Path
        The file, gzipped or not.

    Raises
    ------
    InputError
        If it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        text = text_of(path, unpacked(path, bytes_of_file(path)))
        numbered = enumerate(text.splitlines(), 1)
        self.rows = [(number, line.split()) for number, line in numbered if line.strip()]

    def fail(self, number: int, text: str) -> NoReturn:
        """Raise InputError about line `number`."""
        raise InputError(f"{self.path}: line {number}: {text}")

    def integer(self, number: int, word: str, name: str, least: int = 0) -> int:
        """Return a whole number of line `number`, which the message calls `name`."""
        if not INTEGER.fullmatch(word) or int(word) < least:
            self.fail(number, f"{shown(word)} is no {name}, a whole number from {least}")
        return int(word)

    def decimal(self, number: int, word: str, name: str, scale: int) -> int:
        """Return a decimal number in units of 1/`scale`, rounded to the nearest."""
        match = DECIMAL.fullmatch(word.lower())
        if match is None or not (match[1] or match[2]):
            self.fail(number, f"{shown(word)} is no {name}, a number from 0")
        digits, exponent = match[2] or "", int(match[3] or 0)
        value = int((match[1] + digits) or "0") * scale
        power = exponent - len(digits)
        if power >= 0:
            value *= int(10**power)
        else:
            unit = int(10**-power)
            value = (2 * value + unit) // (2 * unit)
        if value > LARGEST:
            self.fail(number, f"{shown(word)} is too large for a {name}")
        return value

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        return iter(self.rows)
