"""Two network namespaces, a client and a server, connected only by an emulated link.

Both exist as long as their descriptors. A thread enters one with `with pair.client:`; sockets that
it opens and programs that it starts meanwhile are at that end. IPv4 only.
"""

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn.live import netdev, testbed
from sojourn.live.link import end_realtime, start_in_realtime, warnings_of

HERE = "/proc/thread-self/ns/net"
"""Network namespace of the calling thread."""


@dataclass(frozen=True)
class LinkReport:
    """Report of a link.

    Attributes
    ----------
    links : dict
        A summary of each direction, `up` (client to server) and `down`, with the columns of a
        simulated link.
    warnings : list of str
        Reasons not to trust the numbers; empty if there are none.
    """

    links: dict[str, Any]
    warnings: list[str]


class NetworkEnd:
    """One end of a link: a network namespace with one device and one address.

    As a context manager it moves the calling thread into the namespace, and back.

    Attributes
    ----------
    address : str
        Its IPv4 address.
    """

    def __init__(self, address: str, namespace: int) -> None:
        self.address = address
        self._namespace = namespace
        self._homes: list[tuple[int, int]] = []

    def __enter__(self) -> Self:
        """Move this thread into the namespace."""
        self._homes.append((threading.get_ident(), os.open(HERE, os.O_RDONLY | os.O_CLOEXEC)))
        _sojourn.enter_network(self._namespace)
        return self

    def __exit__(self, *_: object) -> None:
        """Move this thread back."""
        own = threading.get_ident()
        entered = [i for i, (thread, _) in enumerate(self._homes) if thread == own]
        home = self._homes.pop(entered[-1])[1]
        try:
            _sojourn.enter_network(home)
        finally:
            os.close(home)

    def run(self, command: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[Any]":
        """Run a program at this end until it ends; `options` are passed to `subprocess.run`."""
        with self:
            return subprocess.run(command, **options)

    def popen(self, command: Sequence[str], **options: Any) -> "subprocess.Popen[Any]":
        """Start a program at this end; `options` are passed to `subprocess.Popen`."""
        with self:
            return subprocess.Popen(command, **options)


class LinkedPair:
    """A client and a server at the ends of a link.

    Attributes
    ----------
    client, server : NetworkEnd
        The ends. Packets of the client cross the link `up`, packets of the server `down`.
    spec : dict
        The links `up` and `down`, with all defaults.
    """

    def __init__(
        self,
        client: NetworkEnd,
        server: NetworkEnd,
        spec: Mapping[str, Any],
        pump: _sojourn.Pump,
    ) -> None:
        self.client, self.server, self.spec = client, server, spec
        self._pump = pump
        self._report: LinkReport | None = None

    def stop(self) -> LinkReport:
        """Stop the link and return its report. Later calls return the same report."""
        if self._report is None:
            missed = []
            for end in (self.client, self.server):
                with end:
                    missed.append(netdev.dropped(netdev.NEAR))
            at_end, _ = self._pump.stop()
            totals = json.loads(at_end)
            links = {name: totals[name] for name in self.spec}
            for name, count in zip(("up", "down"), missed, strict=True):
                links[name]["kernel_dropped_packets"] = count
            self._report = LinkReport(links, warnings_of(links))
        return self._report


@contextmanager
def linked_pair(spec: Mapping[str, Any], *, seed: int = 1) -> Iterator[LinkedPair]:
    """Create two namespaces joined by a link, until the context ends.

    Parameters
    ----------
    spec : mapping
        The canonical links `up` and `down`.
    seed : int, optional
        Seed of the random numbers of disciplines, impairments and processes.

    Raises
    ------
    InputError
        If a program or the TUN device is missing.
    NoRightError
        If the process may not create network namespaces.
    """
    netdev.check_tools()
    with ExitStack() as stack:
        spaces = [stack.enter_context(testbed.namespace()) for _ in testbed.BLOCKS]
        devices: list[int] = []
        try:
            for end, space in enumerate(spaces):
                devices.append(_in_a_thread(partial(_set_up, end, space)))
                stack.callback(os.close, devices[end])
        except netdev.NoTunError as error:
            raise InputError(f"real packets require TUN devices: {error}") from None
        except OSError as error:
            raise InputError(f"cannot create the networks: {error.strerror or error}") from None
        start_in_realtime()
        try:
            pump = _sojourn.Pump(devices[0], devices[1], json.dumps(dict(spec)), seed)
        finally:
            end_realtime()
        ends = [NetworkEnd(testbed.address(end, 0), spaces[end]) for end in (0, 1)]
        pair = LinkedPair(ends[0], ends[1], spec, pump)
        stack.callback(pair.stop)
        yield pair


def _set_up(end: int, namespace: int) -> int:
    """Set up a namespace as one end, in this thread; return the descriptor of its device."""
    device = testbed.furnish(end, namespace, {}, ())
    try:
        # What is not bound to an address sends from this one.
        netdev.ip([f"addr add {testbed.address(end, 0)}/32 dev {netdev.NEAR}"])
    except OSError:
        os.close(device)
        raise
    return device


def _in_a_thread(work: Callable[[], int]) -> int:
    """Return the result of `work`, done by a thread that ends with it."""
    results: list[int] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised again in the calling thread
            errors.append(error)

    thread = threading.Thread(target=run, name="sojourn-setup")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
