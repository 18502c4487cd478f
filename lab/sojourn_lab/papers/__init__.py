"""Reproduced papers, one package each; `sojourn_lab.reproduction.paper` says what each holds.

The entry point `sojourn.papers` names this module. `sojourn paper` uses `ids`, `find`, `run`,
`write_report`, `as_json`, `print_verdicts`, `described`, `print_paper` and
the module `check`.
"""

import importlib
import pkgutil
from typing import Any

from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn_lab.reproduction.paper import Paper

_LATER = {
    "run": "run",
    "write_report": "report",
    "as_json": "report",
    "print_verdicts": "verdicts",
    "described": "listing",
    "print_paper": "listing",
}
"""Functions that are slow to import, with their modules in `sojourn_lab.reproduction`."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"sojourn_lab.reproduction.{_LATER[name]}"), name)
    if name == "check":
        return importlib.import_module("sojourn_lab.reproduction.check")
    raise AttributeError(name)


def ids() -> list[str]:
    """Return the ids of all papers: the packages in this folder."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


def find(name: str) -> Paper:
    """Find a paper by its id. Raises InputError with the nearest right one."""
    wanted = name.lower().replace("_", "-")
    if wanted not in ids():
        raise InputError(f"paper: unknown paper {shown(name)}{near(name, ids())}")
    return Paper(wanted, importlib.import_module(f"{__name__}.{wanted.replace('-', '_')}"))
