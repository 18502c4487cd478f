"""Modules that are imported at first use: type hints name them without the cost of an import."""

from importlib import import_module
from typing import Any


class Lazy:
    """Module that is imported when one of its attributes is first read.

    With ``pl = Lazy("polars")`` a hint like ``"pl.DataFrame"`` resolves at run time, as `help`,
    `typing.get_type_hints` and editors need it.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)  # inspection of the object itself imports nothing
        return getattr(import_module(self._name), attribute)
