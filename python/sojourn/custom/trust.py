"""Trust in files: Python code that a file names runs only if the user trusts the file.

Readers of scenarios, sweeps and results report the text of each file to `read`. Before a class is
loaded by its name, `check` refuses names that occur in a file without trust. Names on the command
line, and names and objects that a Python program gives, are not restricted.
"""

import re
from collections.abc import Mapping
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import shown

_files: dict[str, str] = {}
"""Texts with a colon in files without trust, and the last file that has each. A class has a colon
in its name."""

_trusted: dict[str, None] = {}
"""Texts that the user named, or that are in files with trust."""


def read(tree: Any, file: object, trust: bool = False) -> None:
    """Record the texts in the contents `tree` of a file.

    Parameters
    ----------
    tree : object
        Tables, lists and values, as parsed.
    file : object
        The name of the file, for messages.
    trust : bool, optional
        True if classes that the file names may be loaded, in this process from now on.
    """
    for text in _texts(tree):
        if trust:
            _trusted[text] = None
        else:
            _files[text] = str(file)


def named(tree: Any) -> None:
    """Allow the classes in `tree`, which the user named outside of files."""
    _trusted.update(dict.fromkeys(_texts(tree)))


def check(name: str) -> None:
    """Raise InputError if the class `name` may not be loaded, since only a file names it."""
    whole = re.compile(rf"(?<![\w./\\:-]){re.escape(name)}(?![\w.])")
    if any(map(whole.search, _trusted)):
        return
    folded = _folded(name)
    for text, file in _files.items():
        if folded in _folded(text):
            raise InputError(
                f"{shown(name)} is Python code that {file} names; "
                "it runs only with --trust (in Python: trust=True)"
            )


def _folded(text: str) -> str:
    """Return a text without the differences of spelling that names may have."""
    return text.casefold().replace("-", "_")


def _texts(tree: Any) -> list[str]:
    """Return the texts with a colon in `tree`, keys included."""
    texts, nodes = [], [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, str):
            if ":" in node:
                texts.append(node)
        elif isinstance(node, Mapping):
            nodes += [*node, *node.values()]
        elif isinstance(node, list | tuple):
            nodes += node
    return texts
