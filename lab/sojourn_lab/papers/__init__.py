"""Reproduced papers, one package each; `sojourn_lab.reproduction.paper` says what each holds."""

import importlib
import pkgutil

from sojourn._sojourn import InputError
from sojourn._util.inputs import near, shown
from sojourn_lab.reproduction.paper import Paper


def ids() -> list[str]:
    """Return the ids of all papers: the packages in this folder."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


def find(name: str) -> Paper:
    """Find a paper by its id. Raises InputError with the nearest right one."""
    wanted = name.lower().replace("_", "-")
    if wanted not in ids():
        raise InputError(f"paper: unknown paper {shown(name)}{near(name, ids())}")
    return Paper(wanted, importlib.import_module(f"{__name__}.{wanted.replace('-', '_')}"))
