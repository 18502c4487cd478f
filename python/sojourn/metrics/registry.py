"""Registry of metrics: the description of each, and the decorator that registers one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar

Needs: TypeAlias = Literal["sample", "packet_log"]
"""Keys of a scenario that record data for metrics."""

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Metric:
    """Entry of the registry: name, unit, source, summary, function, required key."""

    name: str
    unit: str
    source: str
    about: str
    function: Callable[..., Any]
    needs: Needs | None = None


METRICS: dict[str, Metric] = {}
"""All metrics by name."""


def metric(
    unit: str, source: str, *, needs: Needs | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Register the decorated function as a metric, with its unit and source.

    `needs` is the key of the scenario that the metric requires.
    """

    def register(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__name__
        about = (function.__doc__ or "").strip().split("\n\n")[0]
        METRICS[name] = Metric(name, unit, source, " ".join(about.split()), function, needs)
        return function

    return register
