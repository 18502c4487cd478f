"""Arrivals in compiled traffic sources: checks of time and size."""

from typing import Any

LATEST_NS = 1 << 62
"""Latest time of an arrival, as in Rust."""


def _whole(value: Any, least: Any, most: Any) -> Any:
    if not (0 <= value <= LATEST_NS):
        raise ValueError
    number = int(value)
    if number < least or number > most:
        raise ValueError
    return number


def helpers(numba: Any) -> dict[str, Any]:
    """Return the functions that the entry of a source calls.

    After an exception the plain method is called with the same values, and what it returns raises
    the exception that the user sees.
    """

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def unwrapped(_context: Any, answer: Any) -> Any:
        """Return an answer that is not None without its option."""
        inner = getattr(answer, "type", answer)

        def generate(_context: Any, _builder: Any, _signature: Any, values: Any) -> Any:
            return values[0]

        return inner(inner), generate

    return {"unwrapped": unwrapped, "whole": numba.njit(_whole), "latest": LATEST_NS}


def is_arrival(numba: Any, answer: Any) -> bool:
    """Return True if a type is a pair of a time and a size."""
    numbers = numba.types.Integer | numba.types.Float
    is_pair = isinstance(answer, numba.types.BaseTuple) and len(answer) == 2
    return is_pair and all(isinstance(one, numbers) for one in answer)
