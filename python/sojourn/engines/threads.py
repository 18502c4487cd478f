"""Number of threads that simulate one scenario. Results are the same for every number."""

from typing import Literal

from sojourn._sojourn import InputError
from sojourn._util.inputs import shown

Threads = int | Literal["auto"]

THREADS_MAX = 1024
"""Largest number of threads. A larger one is a typing error, and could exceed a system limit."""


def count_of(threads: int | str, name: str = "threads") -> int:
    """Return the number that the compiled module takes: 0 for "auto".

    Raises
    ------
    InputError
        If `threads`, which the message calls `name`, is invalid.
    """
    if threads == "auto":
        return 0
    whole = isinstance(threads, int) and not isinstance(threads, bool)
    if not whole or not 1 <= int(threads) <= THREADS_MAX:
        allowed = f'"auto" or a whole number from 1 to {THREADS_MAX}'
        raise InputError(f"{name}: {shown(threads)} is not {allowed}")
    return int(threads)
