"""The registry of metrics: what is told of each, and the decorator that puts it in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Metric:
    """A metric of the registry."""

    name: str
    unit: str
    source: str
    about: str
    function: Callable[..., Any]


METRICS: dict[str, Metric] = {}
"""Every metric by its name."""


def metric(unit: str, source: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Put the function below into the registry, with its unit and where it is defined."""

    def register(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__name__
        about = (function.__doc__ or "").strip().split("\n\n")[0]
        METRICS[name] = Metric(name, unit, source, " ".join(about.split()), function)
        return function

    return register
