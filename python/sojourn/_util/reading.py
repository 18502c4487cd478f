"""Read files of limited size: scenarios, traces, recordings, results, gzipped or not.

Regular files, pipes and devices are read alike, to the limit and not further.
"""

import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sojourn._sojourn import InputError
from sojourn._util.inputs import QUOTED_MAX, shown, why

PATH_MAX = 500
"""Longest name of a file in a message, in characters."""

FILE_MAX = "SOJOURN_FILE_MAX"
"""Environment variable with the largest size of a file that is read, like "1GB"."""

FILE_BYTES = 100_000_000
"""Its default. Contents take up to 30 times their size in memory while they are parsed."""

TOML_SHARE = 10
"""The limit of TOML files as a fraction: they take up to 110 times their size."""

SIZES = {"kB": 10**3, "MB": 10**6, "GB": 10**9}
"""Units of `FILE_MAX`, in bytes."""

PIECE = 1 << 20
"""Bytes of a file that are read at a time."""

T = TypeVar("T", str, bytes)


def bytes_of_file(path: Path) -> bytes:
    """Return the contents of a file. Raises InputError with its name if it cannot be read."""
    try:
        return read(path)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{_name(path)}: {why(error)}") from None


def read(path: Path) -> bytes:
    """Return the contents of a file of limited size (`FILE_MAX`), a pipe or a device.

    Raises OSError if it cannot be read, and InputError if it is larger.
    """
    share = TOML_SHARE if path.suffix.lower() == ".toml" else 1
    with path.open("rb", buffering=0) as file:
        return limited(lambda n: file.read(n) or b"", b"", _name(path), share)


def text_of_stdin() -> str:
    """Return the text of standard input. Raises InputError if it is too large, or not UTF-8."""
    try:
        # The text stream would decode with the encoding of the terminal.
        return limited(sys.stdin.buffer.read, b"", "standard input").decode()
    except UnicodeDecodeError:
        raise InputError("standard input: this is not text in UTF-8") from None


def unpacked(path: Path, raw: bytes) -> bytes:
    """Return the contents of a file, decompressed if it is gzipped.

    Raises InputError if it is damaged, or too large when decompressed.
    """
    if not raw.startswith(b"\x1f\x8b"):
        return raw
    try:
        with gzip.open(io.BytesIO(raw)) as file:
            return limited(file.read, b"", f"{_name(path)}: decompressed")
    except (OSError, EOFError, zlib.error):
        raise InputError(f"{path}: this gzip file is damaged") from None


def limited(get: Callable[[int], T], empty: T, name: str, share: int = 1) -> T:
    """Return everything that `get` returns for numbers of bytes or characters, until it is empty.

    Raises InputError with `name` if this is more than a file may have, divided by `share`.
    """
    most = _file_bytes() // share
    pieces, length = [], 0
    while piece := get(min(PIECE, most + 1 - length)):
        pieces.append(piece)
        length += len(piece)
        if length > most:
            size = f"{most // 10**6} MB" if most >= 10**6 else f"{most} bytes"
            kind = "TOML files" if share > 1 else "files"
            advice = f"the environment variable {FILE_MAX} allows more, like {FILE_MAX}=1GB"
            raise InputError(f"{name}: larger than {size}, the limit of {kind}; {advice}")
    return empty.join(pieces)


def _file_bytes() -> int:
    """Return the largest size of a file in bytes. Raises InputError for an invalid `FILE_MAX`."""
    text = os.environ.get(FILE_MAX)
    if not text:
        return FILE_BYTES
    match = re.fullmatch(r"([0-9]{1,6})(kB|MB|GB)", text)
    if match is None:
        raise InputError(f"{FILE_MAX}: {shown(text)} is not a size, like 500MB or 2GB")
    return int(match[1]) * SIZES[match[2]]


def _name(path: Path) -> str:
    """Return the name of a file for a message."""
    name = str(path)
    return name if len(name) <= PATH_MAX else f"{name[:QUOTED_MAX]}..."


def text_of(path: Path, raw: bytes) -> str:
    """Decode the contents `raw` of a file. Raises InputError if it is empty or not UTF-8."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}: line {line}: this is not a text file in UTF-8") from None
    if not text.strip():
        raise InputError(f"{path}: the file is empty")
    return text
