"""Messages from the process inside a link to the link's process, on the socket between them.

Only these two processes have the socket. A message of any other form is refused.
"""

import json
import os
import socket
from dataclasses import dataclass
from typing import Any

from sojourn._sojourn import InputError

MESSAGE_BYTES = 4096
"""Largest message from inside."""
ERROR_CHARACTERS = 500
"""Longest text of an error: JSON has up to six bytes per character."""

_TRUNCATED = socket.MSG_TRUNC | socket.MSG_CTRUNC

_COUNT_MAX = (1 << 63) - 1
_EXIT_CODE_MAX = 255


@dataclass(frozen=True)
class Ended:
    """The end of the command."""

    code: int
    """Exit code of the command."""
    dropped_packets: int = 0
    """Packets that the kernel dropped at the near device before they were read."""


def ready() -> bytes:
    """Return the message that a step of the setup has succeeded."""
    return b"{}"


def failed(error: str) -> bytes:
    """Return the message that the setup has failed."""
    message = {"error": error[:ERROR_CHARACTERS]}
    return json.dumps(message, ensure_ascii=False).encode(errors="replace")


def ended(end: Ended) -> bytes:
    """Return the message that the command has ended."""
    return json.dumps({"code": end.code, "dropped": end.dropped_packets}).encode()


def receive(leash: socket.socket, descriptors: int = 0) -> list[int]:
    """Wait until a step of the setup inside has succeeded.

    Parameters
    ----------
    leash
        The socket.
    descriptors
        Number of descriptors that the message has.

    Returns
    -------
    list of int
        The descriptors.

    Raises
    ------
    InputError
        If the step failed, the process inside has ended, or its message is malformed.
    """
    try:
        data, received, flags, _ = socket.recv_fds(leash, MESSAGE_BYTES, descriptors)
    except ConnectionError:
        data, received, flags = b"", [], 0
    try:
        _check_setup(data)
        if len(received) != descriptors or flags & _TRUNCATED:
            raise _malformed(data)
    except InputError:
        for descriptor in received:
            os.close(descriptor)
        raise
    return list(received)


def _check_setup(data: bytes) -> None:
    """Raise InputError unless `data` is the message that a step of the setup has succeeded."""
    message = _object(data) if data else {"error": "unshare could not create its namespaces"}
    error = message.get("error")
    if message.keys() == {"error"} and isinstance(error, str):
        raise InputError(f"link: cannot set up the inside: {error}")
    if message:
        raise _malformed(data)


def parse_ended(data: bytes) -> Ended:
    """Return the end of the command from its message. Raises InputError if it is malformed."""
    message = _object(data)
    if message.keys() != {"code", "dropped"}:
        raise _malformed(data)
    code, dropped = message["code"], message["dropped"]
    if not (_is_count(code, _EXIT_CODE_MAX) and _is_count(dropped, _COUNT_MAX)):
        raise _malformed(data)
    return Ended(code, dropped)


def _is_count(value: Any, largest: int) -> bool:
    """Return True if `value` is a whole number from 0 to `largest`."""
    return type(value) is int and 0 <= value <= largest


def _object(data: bytes) -> dict[str, Any]:
    """Return the JSON object `data`. Raises InputError if it is none."""
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        raise _malformed(data) from None
    if not isinstance(message, dict):
        raise _malformed(data)
    return message


def _malformed(data: bytes) -> InputError:
    text = ascii(data[:40].decode("ascii", errors="replace"))
    return InputError(f"link: the process inside sent a malformed message: {text}")
