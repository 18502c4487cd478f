"""Causes of differences, read from `causes.toml`."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sojourn_lab.validation.random.agreement import Row
from sojourn_lab.validation.random.draw import Scenario, controls

FILE = Path(__file__).parent / "causes.toml"

UNKNOWN = "not explained"

FEW = 16
"""Packets of a short buffer."""


@dataclass(frozen=True)
class Cause:
    """A cause of differences, for scenarios by name, or for a class of them."""

    title: str
    text: str
    """A paragraph with the evidence."""
    scenarios: Sequence[str] = ()
    """Names of scenarios that show it."""
    tags: Sequence[str] = ()
    """Tags that a scenario of the class has, all of them."""
    metrics: Sequence[str] = ()
    """Metrics that differ in scenarios of the class, at least one of them."""
    mended: bool = False
    """True if the simulator has the rule now, so that the cause explains no difference."""

    def explains(self, row: Row) -> bool:
        """Return true if the cause names the scenario, or its class."""
        if self.mended:
            return False
        if row.scenario["name"] in self.scenarios:
            return True
        of_class = set(self.tags) <= tags(row.scenario)
        return bool(self.metrics) and of_class and bool(set(self.metrics) & set(row.differing))


def tags(scenario: Scenario) -> set[str]:
    """Return the tags of a scenario: controls, sources, discipline and others."""
    up, flows = scenario["links"]["up"], scenario["flows"]
    limit = up["qdisc"].get("limit", "")
    return {
        *controls(scenario),
        *(flow["source"]["name"] for flow in flows),
        up["qdisc"]["name"],
        *(["ecn"] if any(flow["tcp"].get("ecn") for flow in flows) else []),
        *(["loss"] if "loss" in up else []),
        *(["return link"] if "down" in scenario["links"] else []),
        *(["from the start"] if scenario["warmup"] == "0s" else []),
        *(["short buffer"] if limit and int(limit.removesuffix("p")) <= FEW else []),
    }


def about(path: Path = FILE) -> str:
    """Return the conditions under which the live runs were made."""
    text: str = tomllib.loads(path.read_text())["about"]
    return text.strip()


def causes(path: Path = FILE) -> list[Cause]:
    """Return all causes."""
    return [Cause(**entry) for entry in tomllib.loads(path.read_text()).get("cause", [])]


def cause_of(row: Row, known: Sequence[Cause]) -> str:
    """Return the titles of the causes of a row."""
    return "; ".join(cause.title for cause in known if cause.explains(row)) or UNKNOWN
