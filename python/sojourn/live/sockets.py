"""Sockets of a live run: TCP connections, and UDP datagrams with a time stamp.

One thread has both ends of every connection, so it knows at once which data was received.
"""

import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sojourn.live.kernel_config import Host
from sojourn.live.testbed import address, row_of

TCP_PORT, UDP_PORT = 5001, 5002
ENDLESS = 1 << 62

_TCP_INFO, _TCP_NOTSENT_LOWAT, _IP_BIND_ADDRESS_NO_PORT = 11, 25, 24
_SO_TIMESTAMPNS, _SO_RCVBUFFORCE = 35, 33
_UNSENT_BYTES = 65_536
"""Unsent bytes that the socket of an endless stream holds beyond those in flight."""
_ZEROS = memoryview(bytes(1 << 18))
_SINK = bytearray(1 << 18)
_UDP_HEADER_BYTES = 28
_BACKLOG = 65_535
_RTOS_AT = 240
"""Offset of the number of timeouts in TCP_INFO, since Linux 6.7 (linux/tcp.h)."""


@dataclass(slots=True)
class Info:
    """State of a connection in the kernel."""

    cwnd_packets: int
    timeouts: int | None
    """None if the kernel is too old to count them."""
    stalled: bool
    """True if the timer has expired and nothing was acknowledged since."""


def info(sender: socket.socket) -> Info:
    """Return the state of a connection."""
    data = sender.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 256)
    (cwnd,) = struct.unpack_from("=I", data, 80)
    timeouts = None
    if len(data) >= _RTOS_AT + 2:
        (timeouts,) = struct.unpack_from("=H", data, _RTOS_AT)
    return Info(cwnd, timeouts, data[2] > 0)


class Connection:
    """A TCP connection of a flow: both sockets, and its progress."""

    __slots__ = (
        "flow",
        "got",
        "keep",
        "left",
        "port",
        "receiver",
        "row",
        "sender",
        "stands",
        "timeouts",
        "want",
    )

    def __init__(self, flow: int, row: int, host: Host, *, request: bool, keep: bool) -> None:
        """Start connecting. The thread must be in the network namespace of the sender."""
        self.flow, self.row, self.keep = flow, row, keep
        self.left, self.got, self.want, self.timeouts = 0, 0, ENDLESS, 0
        self.stands = False
        self.receiver: socket.socket | None = None
        end = int(request)
        self.sender = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        tcp = socket.IPPROTO_TCP
        self.sender.setsockopt(tcp, socket.TCP_CONGESTION, host.control.encode())
        self.sender.setsockopt(tcp, socket.TCP_MAXSEG, host.mss)
        self.sender.setsockopt(tcp, socket.TCP_NODELAY, 1)
        # Choose the port at connect, when both addresses are known: then ports do not run out.
        self.sender.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
        self.sender.bind((address(end, row), 0))
        self.sender.connect_ex((address(1 - end, row), TCP_PORT))
        self.port: tuple[str, int] = self.sender.getsockname()

    def endless(self) -> None:
        """Send without end."""
        self.left = ENDLESS
        self.sender.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, _UNSENT_BYTES)

    def flush(self) -> None:
        """Write data to the socket until it would block or all is written."""
        try:
            while self.left > 0:
                sent = self.sender.send(_ZEROS[: min(self.left, len(_ZEROS))])
                self.left -= sent if self.left < ENDLESS else 0
        except BlockingIOError:
            pass

    def take(self) -> tuple[int, bool]:
        """Receive all available data; return its bytes, and True at the end of the stream."""
        assert self.receiver is not None
        total = 0
        try:
            while got := self.receiver.recv_into(_SINK):
                total += got
        except BlockingIOError:
            self.got += total
            return total, False
        self.got += total
        return total, True

    def close(self, *, at_once: bool = False) -> None:
        """Close both sockets; `at_once` resets the connection."""
        for end in (self.sender, self.receiver):
            if end is not None:
                if at_once:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))
                end.close()


def listen() -> socket.socket:
    """Return a socket that listens on all addresses of the thread's network namespace."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", TCP_PORT))
    listener.listen(_BACKLOG)
    return listener


def datagrams_from(row: int, ecn: int = 0) -> socket.socket:
    """Return the socket from which a row sends datagrams with an ECN field to its receiver."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ecn)
    sender.bind((address(0, row), 0))
    sender.connect((address(1, row), UDP_PORT))
    return sender


def datagrams_to_all() -> socket.socket:
    """Return the socket that receives the datagrams of all rows, with arrival times."""
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    sink.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    with suppress(PermissionError):  # without the right, the buffer has its default size
        sink.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 26)
    sink.bind(("", UDP_PORT))
    return sink


def send_datagram(sender: socket.socket, size_bytes: int) -> None:
    """Send a datagram of `size_bytes`, headers included, with the time of sending.

    The time is read from the monotonic clock, since the wall clock can be set meanwhile.
    """
    stamp = struct.pack("=Q", time.monotonic_ns())
    with suppress(BlockingIOError):  # the device queue is full: the kernel would drop it
        sender.send(stamp + bytes(size_bytes - _UDP_HEADER_BYTES - len(stamp)))


def take_datagram(sink: socket.socket) -> tuple[int, int, int] | None:
    """Receive a datagram; return its row, payload in bytes and one-way delay in ns, or None."""
    try:
        data, notes, _, sender = sink.recvmsg(65_536, 64)
    except BlockingIOError:
        return None
    (sent_ns,) = struct.unpack_from("=Q", data)
    seconds, nanoseconds = _stamp(notes)
    # The kernel stamps by the wall clock, which gives the time since arrival. If the clock was set
    # meanwhile, that may be negative or longer than the time since sending: clamp it.
    elapsed_ns = time.monotonic_ns() - sent_ns
    ago_ns = time.time_ns() - (seconds * 1_000_000_000 + nanoseconds)
    return row_of(sender[0]), len(data), elapsed_ns - min(max(ago_ns, 0), elapsed_ns)


def _stamp(notes: list[Any]) -> tuple[int, int]:
    """Return seconds and nanoseconds of the kernel's receive time stamp, or of now."""
    for level, kind, data in notes:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("=qq", data)
            return seconds, nanoseconds
    return divmod(time.time_ns(), 1_000_000_000)
