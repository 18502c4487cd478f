"""UDP relay on asyncio: datagrams of clients cross a link of sojourn to a server, answers another.

python adapters/asyncio/relay.py 127.0.0.1:5000 127.0.0.1:5001 --rate 10mbit --delay 20ms
"""

import argparse
import asyncio
from collections.abc import Callable
from typing import Any

from sojourn.embed import TimedLink

Address = tuple[str, int]

HEADERS = 28
"""Headers of IPv4 and UDP, bytes."""


class Direction:
    """A link in real time: datagrams enter by `push`, and leave through their transport.

    Parameters
    ----------
    link : TimedLink
        The link. Its time 0 is the time of this call on the loop's clock.
    """

    def __init__(self, link: TimedLink[Callable[[], None]]) -> None:
        self.link = link
        self._loop = asyncio.get_running_loop()
        self._start = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def _now_ns(self) -> int:
        return round((self._loop.time() - self._start) * 1e9)

    def push(self, send: Callable[[], None], size: int, flow: object) -> None:
        """Enqueue a datagram: `send` sends it on at the far end."""
        # Hashes of text are salted, so that no sender can choose its queue.
        self.link.push(self._now_ns(), send, size=size + HEADERS, flow_hash=hash(flow) % 2**32)
        self._poll()

    def _poll(self) -> None:
        """Send what has arrived, and set the timer for the next arrival."""
        while packet := self.link.poll(self._now_ns()):
            packet.body()
        if self._timer:
            self._timer.cancel()
        due = self.link.next_poll_ns
        if due is not None:
            self._timer = self._loop.call_at(self._start + due / 1e9, self._poll)


class Answers(asyncio.DatagramProtocol):
    """Socket of one client to the server: passes answers on."""

    def __init__(self, relay: "Relay", client: Address) -> None:
        self.relay, self.client = relay, client

    def datagram_received(self, data: bytes, _address: Any) -> None:
        """Send an answer over the link back."""
        transport, client = self.relay.transport, self.client
        self.relay.down.push(lambda: transport.sendto(data, client), len(data), client)


class Relay(asyncio.DatagramProtocol):
    """Socket of the clients: passes datagrams to the server.

    Parameters
    ----------
    server : tuple of str and int
        Address of the server.
    up, down : TimedLink
        Link to the server, and link back.
    """

    transport: asyncio.DatagramTransport

    def __init__(self, server: Address, up: TimedLink[Any], down: TimedLink[Any]) -> None:
        self.server, self.up, self.down = server, Direction(up), Direction(down)
        self._sockets: dict[Address, asyncio.Task[asyncio.DatagramTransport]] = {}

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        """Keep the transport."""
        self.transport = transport

    def connection_lost(self, _error: Exception | None) -> None:
        """Close the sockets of the clients."""
        for socket in self._sockets.values():
            socket.add_done_callback(lambda task: task.result().close())

    async def _connect(self, client: Address) -> asyncio.DatagramTransport:
        loop = asyncio.get_running_loop()
        connect = loop.create_datagram_endpoint
        transport, _ = await connect(lambda: Answers(self, client), remote_addr=self.server)
        return transport

    def datagram_received(self, data: bytes, client: Address) -> None:
        """Send a datagram over the link to the server."""
        if client not in self._sockets:
            self._sockets[client] = asyncio.ensure_future(self._connect(client))
        socket = self._sockets[client]

        def send() -> None:
            socket.add_done_callback(lambda task: task.result().sendto(data))

        self.up.push(send, len(data), client)


async def relay(
    listen: Address, server: Address, up: TimedLink[Any], down: TimedLink[Any]
) -> asyncio.DatagramTransport:
    """Start a relay; close the transport that it returns to end it."""
    loop = asyncio.get_running_loop()
    make = lambda: Relay(server, up, down)  # noqa: E731
    transport, _ = await loop.create_datagram_endpoint(make, local_addr=listen)
    return transport


def address(text: str) -> Address:
    """Return an address like 127.0.0.1:5000."""
    host, _, port = text.rpartition(":")
    return host, int(port)


async def main() -> None:
    """Run the relay of the command line until it is interrupted."""
    parser = argparse.ArgumentParser(description="Relay UDP over a link of sojourn.")
    parser.add_argument("listen", type=address)
    parser.add_argument("server", type=address)
    parser.add_argument("--qdisc", default="fq_codel")
    parser.add_argument("--rate", default="10mbit")
    parser.add_argument("--delay", default="20ms")
    options = parser.parse_args()
    links = (TimedLink[Any](options.qdisc, rate=options.rate, delay=options.delay) for _ in "ud")
    await relay(options.listen, options.server, *links)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
