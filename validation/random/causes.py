"""Causes of differences, read from `causes.toml`."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from validation.random.agreement import Row

FILE = Path(__file__).parent / "causes.toml"

UNKNOWN = "not explained"


@dataclass(frozen=True)
class Cause:
    """A cause of differences."""

    title: str
    text: str
    """A paragraph with the evidence."""
    scenarios: Sequence[str] = ()
    """Names of the scenarios that show it."""


def causes(path: Path = FILE) -> list[Cause]:
    """Return all causes."""
    return [Cause(**entry) for entry in tomllib.loads(path.read_text()).get("cause", [])]


def cause_of(row: Row, known: Sequence[Cause]) -> str:
    """Return the titles of the causes that name a scenario."""
    name = row.scenario["name"]
    return ", ".join(c.title for c in known if name in c.scenarios) or UNKNOWN
