"""HTML: text in it, and of an object for notebooks, by a module that is imported when used.

Scenarios, results, comparisons and disciplines show themselves as tables, which are made by modules
that import those classes. Looking that module up by name keeps the imports free of cycles.
"""

import html as standard
from importlib import import_module

from sojourn._util.inputs import printable_lines


def escape(text: str, *, quote: bool = True) -> str:
    """Return text for HTML, with a blank for each control or direction character.

    `quote` is True to escape quotation marks, too, as values of attributes need.
    """
    return standard.escape(printable_lines(text), quote)


def html(shown: object, maker: str = "sojourn.display.notebook.html") -> str | None:
    """Return an object of this package as HTML; None for one that its repr describes."""
    module, _, function = maker.rpartition(".")
    text: str | None = getattr(import_module(module), function)(shown)
    return text
