"""HTML of an object for notebooks; the module that makes it is looked up when first used.

Scenarios, results and comparisons show themselves as tables, which are made by modules that import
those classes. Looking that module up by name keeps the imports free of cycles.
"""

from importlib import import_module


def html(shown: object) -> str | None:
    """Return a scenario, result or comparison as HTML; None for any other object."""
    text: str | None = import_module("sojourn.display.notebook").html(shown)
    return text
