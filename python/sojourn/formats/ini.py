"""Files of sections with keys, in which sections and keys may repeat."""

import re
from dataclasses import dataclass, field

from sojourn._sojourn import InputError
from sojourn._util.inputs import brief

HEADING = re.compile(r"\[([^\]]+)\]")


@dataclass
class Section:
    """Section of a file: its name, and the keys with their values in order."""

    name: str
    keys: list[tuple[str, str]] = field(default_factory=list)

    def get(self, key: str) -> str | None:
        """Return the last value of a key."""
        return dict(self.keys).get(key)


def sections(text: str) -> list[Section]:
    """Return the sections of a file. Comments begin with # or ;, and a backslash joins lines.

    Raises
    ------
    InputError
        With the number of a line that is neither a heading nor a key with a value.
    """
    result: list[Section] = []
    for number, line in enumerate(text.replace("\\\n", " ").splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if heading := HEADING.fullmatch(stripped):
            result.append(Section(heading[1].strip()))
            continue
        key, equals, value = stripped.partition("=")
        if not equals or not result:
            raise InputError(f"line {number}: {brief(stripped)} is not Key=Value of a section")
        result[-1].keys.append((key.strip(), value.strip()))
    return result
