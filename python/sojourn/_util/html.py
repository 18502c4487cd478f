"""HTML of an object for notebooks; the module that makes it is looked up when first used.

Scenarios, results, comparisons and disciplines show themselves as tables, which are made by modules
that import those classes. Looking that module up by name keeps the imports free of cycles.
"""

from importlib import import_module


def html(shown: object, maker: str = "sojourn.display.notebook.html") -> str | None:
    """Return an object of this package as HTML; None for one that its repr describes."""
    module, _, function = maker.rpartition(".")
    text: str | None = getattr(import_module(module), function)(shown)
    return text
