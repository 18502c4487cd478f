"""Public names: their module is the one from which users import them."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])


def public(value: T) -> T:
    """Set the module of a class or function to `sojourn`, as messages and pickles show it."""
    value.__module__ = "sojourn"
    return value
