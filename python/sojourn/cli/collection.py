"""The collection of papers that `sojourn paper` runs: a package of its own."""

from typing import Any

from sojourn._sojourn import InputError

GROUP = "sojourn.papers"
"""Group of the entry point that an installed collection of papers has: `sojourn_lab.papers`."""


def installed() -> Any | None:
    """Return the installed collection of papers, or None."""
    from importlib.metadata import entry_points  # slow to import

    return next((entry.load() for entry in entry_points(group=GROUP)), None)


def collection() -> Any:
    """Return the installed collection of papers.

    Raises
    ------
    InputError
        If none is installed.
    """
    if papers := installed():
        return papers
    raise InputError(
        "the papers are in the package sojourn-lab: install it with pip install 'sojourn[papers]', "
        "or in a clone of the repository with make demo"
    )
