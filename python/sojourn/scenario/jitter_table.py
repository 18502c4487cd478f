"""Files of distributions, as tc has them: the `distribution` of jitter and of slot.

Such a file has whole numbers, in units of 1/8192 of the jitter, and comments that begin with "#".
A value with a dot is the name of a file; distributions of sojourn have none.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import printable, shown
from sojourn._util.reading import bytes_of_file, text_of

KEYS = ("jitter", "slot")
"""Keys of a link whose tables have a distribution."""


def is_file(distribution: Any) -> bool:
    """Return True if a distribution is the name of a file."""
    return isinstance(distribution, Path) or (isinstance(distribution, str) and "." in distribution)


def read(path: Path) -> list[int]:
    """Return the values of a file. Raises InputError if it has others than whole numbers."""
    values = []
    for number, line in enumerate(text_of(path, bytes_of_file(path)).splitlines(), 1):
        for word in line.partition("#")[0].split():
            try:
                values.append(int(word))
            except ValueError:
                text = f"line {number}: {shown(word)} is not a whole number, as in the files of tc"
                raise InputError(f"{path}: {text}") from None
    return values


def resolve(link: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a link with the values of its distributions in place of their files.

    `where` is the path of the link in messages.
    """
    resolved = dict(link)
    for key in KEYS:
        part = link.get(key)
        file = part.get("distribution") if isinstance(part, Mapping) else None
        if isinstance(part, Mapping) and isinstance(file, str | Path) and is_file(file):
            try:
                resolved[key] = {**part, "distribution": read(Path(file))}
            except InputError as error:
                text = f"{where}.{key}.distribution: {printable(str(error))}"
                raise InputError(text) from None
    return resolved
