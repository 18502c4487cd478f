"""Name resolution inside a link with address translation.

The inside asks the servers in this machine's /etc/resolv.conf. A server on a loopback address is
not reachable from inside, and must not become so: other services listen there, too. A proxy then
passes DNS messages on. It listens at a free port of the far address, on the far device only. The
firewall translates port 53 of the far address to that port.
"""

import selectors
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

RESOLV_CONF = Path("/etc/resolv.conf")
LOOPBACK = "127.0.0.1"
PORT = 53

TIMEOUT_S = 5.0
"""Time to wait for an answer, or for more of a TCP connection."""
AT_ONCE_MAX = 64
"""Queries at once; more are dropped, so that the inside cannot use up memory."""

_STOP_S = 0.1


@dataclass(frozen=True)
class Proxy:
    """Ports of a proxy at the far address."""

    udp: int
    tcp: int


def resolv_conf() -> str | None:
    """Return the contents of /etc/resolv.conf, or None if it cannot be read."""
    try:
        return RESOLV_CONF.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def resolving(resolv_conf: str | None, far: str) -> tuple[str | None, str | None]:
    """Choose how names are resolved inside.

    Parameters
    ----------
    resolv_conf
        Contents of this machine's /etc/resolv.conf; None if there is none.
    far
        Address of the far end.

    Returns
    -------
    resolver : str or None
        Loopback address of the resolver to which port 53 of the far end leads.
    inside : str or None
        Contents of /etc/resolv.conf inside; None if this machine's file works there as well.
    """
    if resolv_conf is None:
        return None, None
    servers, others = [], []
    for line in resolv_conf.splitlines():
        words = line.split()
        if words[:1] == ["nameserver"] and len(words) > 1:
            servers.append(words[1])
        else:
            others.append(line)
    elsewhere = [server for server in servers if not _is_loopback(server)]
    if elsewhere and len(elsewhere) == len(servers):
        return None, None
    here = [server for server in servers if _is_loopback(server) and ":" not in server]
    resolver = None if elsewhere else (here or [LOOPBACK])[0]
    kept = elsewhere or [far]
    lines = [*others, *(f"nameserver {server}" for server in kept)]
    return resolver, "".join(f"{line}\n" for line in lines)


def _is_loopback(server: str) -> bool:
    try:
        return ip_address(server.partition("%")[0]).is_loopback
    except ValueError:
        return False


@contextmanager
def proxy(resolver: str, far: str, device: str, port: int = PORT) -> Iterator[Proxy]:
    """Pass DNS messages that arrive at `far` on `device` to `resolver`.

    Raises
    ------
    OSError
        If it cannot listen.
    """
    with ExitStack() as stack:
        ports = []
        for kind, handler in ((_UdpServer, _Query), (_TcpServer, _Connection)):
            server = stack.enter_context(kind(device, (far, 0), handler, (resolver, port)))
            ports.append(server.server_address[1])
            loop = threading.Thread(target=server.serve_forever, args=(_STOP_S,), daemon=True)
            loop.start()
            stack.callback(server.shutdown)
        yield Proxy(*ports)


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Server with a thread per query, at most `AT_ONCE_MAX`."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self, device: str, address: tuple[str, int], handler: Any, resolver: tuple[str, int]
    ) -> None:
        super().__init__(address, handler, bind_and_activate=False)
        self.resolver = resolver
        self._free = threading.BoundedSemaphore(AT_ONCE_MAX)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            self.server_bind()
            self.server_activate()
        except OSError:
            self.server_close()
            raise

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Return False if there are too many queries already."""
        return self._free.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a query."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a query that fails: the client asks again."""


class _TcpServer(_Server):
    request_queue_size = AT_ONCE_MAX


class _UdpServer(_Server, socketserver.UDPServer):
    max_packet_size = 65_535


class _Query(socketserver.BaseRequestHandler):
    """A query in a datagram."""

    def handle(self) -> None:
        """Pass it on, wait for the answer, and return that."""
        query, answers = self.request
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as resolver:
            resolver.settimeout(TIMEOUT_S)
            resolver.connect(self.server.resolver)  # type: ignore[attr-defined]
            resolver.send(query)
            answers.sendto(resolver.recv(65_535), self.client_address)


class _Connection(socketserver.BaseRequestHandler):
    """A TCP connection."""

    def handle(self) -> None:
        """Copy the bytes of both directions until both have ended."""
        address = self.server.resolver  # type: ignore[attr-defined]
        self.request.settimeout(TIMEOUT_S)
        with (
            socket.create_connection(address, TIMEOUT_S) as resolver,
            selectors.DefaultSelector() as selector,
        ):
            selector.register(self.request, selectors.EVENT_READ, resolver)
            selector.register(resolver, selectors.EVENT_READ, self.request)
            while selector.get_map() and (ready := selector.select(TIMEOUT_S)):
                for key, _ in ready:
                    source: Any = key.fileobj
                    if data := source.recv(65_536):
                        key.data.sendall(data)
                    else:
                        selector.unregister(source)
                        key.data.shutdown(socket.SHUT_WR)
