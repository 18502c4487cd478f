"""Committed pages of the papers, in a clone of the repository."""

import json
from pathlib import Path
from typing import Any

from sojourn._sojourn import InputError
from sojourn_lab import ROOT
from sojourn_lab.reproduction.paper import Paper

PAGES = ROOT / "reports/papers"
"""Committed pages, in a clone of the repository."""


def page(paper: Paper, pages: Path | None) -> tuple[Path, dict[str, Any]]:
    """Return the folder of a committed page and its claims. Raises InputError without a page."""
    folder = (pages or PAGES) / paper.id
    try:
        tree = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
        return folder, {**tree, "claims": {one["id"]: one for one in tree["claims"]}}
    except FileNotFoundError:
        raise InputError(
            f"{folder}: there is no committed page of {paper.id}; check works in a clone of the "
            "repository, or with --pages DIR, a copy of its folder reports/papers"
        ) from None
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{folder / 'claims.json'}: is not the claims.json of a page") from None


def measured_times(paper: Paper, pages: Path | None = None) -> dict[str, float]:
    """Return the processor time of the experiments on a committed page; nothing without a page."""
    try:
        return {str(name): float(value) for name, value in page(paper, pages)[1]["core_s"].items()}
    except (InputError, KeyError):
        return {}
