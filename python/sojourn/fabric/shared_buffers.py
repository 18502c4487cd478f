"""Switches whose ports share a buffer, for links that are called by their ends."""

from collections.abc import Iterable, Mapping
from typing import Any


def shared_buffers(
    links: Iterable[str],
    buffer: str,
    alpha: float,
    classes: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, dict[str, Any]]:
    """Return the table `switches` of a scenario: the links that leave a switch are its ports.

    Parameters
    ----------
    links : iterable of str
        Links called by their ends: `h3-e1` is from host 3 to switch `e1`. Hosts begin with h.
    buffer : str
        Buffer of each switch.
    alpha : float
        Bytes that a port may hold in relation to those that are free.
    classes : mapping, optional
        Classes with a queue of their own at each port, as in a scenario.
    """
    ports: dict[str, list[str]] = {}
    for link in links:
        node = link.partition("-")[0]
        if not node.startswith("h"):
            ports.setdefault(node, []).append(link)
    own = {} if classes is None else {"classes": classes}
    return {
        node: {"buffer": buffer, "alpha": alpha, **own, "ports": names}
        for node, names in ports.items()
    }
