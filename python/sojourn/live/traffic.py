"""Traffic sources of a scenario on real sockets, in real time, in one thread."""

import os
import select
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import Any

from sojourn import _sojourn
from sojourn._sojourn import ParsedScenario
from sojourn._util.units import seconds
from sojourn.live import sockets
from sojourn.live.flow_stats import FlowStats
from sojourn.live.kernel_config import Plan
from sojourn.live.sockets import ENDLESS, Connection

_IN, _OUT, _HANGUP = select.EPOLLIN, select.EPOLLOUT, select.EPOLLHUP | select.EPOLLERR
_NOTHING = 1 << 63
_ECN = {None: 0, "ect1": 1, "ect0": 2}
"""Bits of an ECN field by its name in a scenario."""
_LOOK_S = 0.1
"""Longest time between two checks of `ended`, in seconds."""


class TrafficGenerator:
    """Traffic sources of a canonical scenario, and the statistics of its flows."""

    def __init__(self, scenario: Mapping[str, Any], parsed: ParsedScenario, plan: Plan) -> None:
        self.script = _sojourn.Script(parsed)
        self.plan = plan
        self.stats = FlowStats(self.script.rows(), scenario)
        self.rows = self.stats.rows
        self._ecn = {flow["name"]: flow.get("ecn") for flow in scenario["flows"]}
        """Name of the ECN field of the datagrams of each group."""
        self.lateness_s: list[float] = []
        """Lateness of each application event."""
        self.ended = False
        """Set by another thread to stop early."""
        self.failed: list[str] = []
        """Messages about connections that failed, with the name of the row."""
        self.now_ns = 0
        """Time since the start."""
        self._start_ns = 0
        ns = 1_000_000_000
        self._end = round(seconds(scenario["duration"]) * ns)
        self._warm = round(seconds(scenario["warmup"]) * ns)
        every = scenario.get("sample")
        self._sample = self._every = round(seconds(every) * ns) if every else _NOTHING
        self._warmed = False
        self._connections: dict[int, Connection] = {}
        """Latest connection of each flow."""
        self._ends: dict[int, tuple[Connection, bool]] = {}
        """Connection of each descriptor, and True for the descriptor of its sender."""
        self._asked: dict[tuple[str, int], Connection] = {}
        """Connections not accepted yet, by the address of the client."""
        self._senders: dict[int, socket.socket] = {}
        """UDP sockets, by row."""

    def run(self, networks: tuple[int, int], started: "_sojourn.Network") -> None:
        """Run to the end of the scenario.

        `networks` are descriptors of the namespaces of senders and receivers. The calling thread
        stays in the senders' namespace.
        """
        self._networks = networks
        self._start_ns = started.start_ns
        with ExitStack() as stack:
            self._epoll = stack.enter_context(select.epoll())
            stack.callback(self._close)
            _sojourn.enter_network(networks[1])
            self._sink = stack.enter_context(sockets.datagrams_to_all())
            listeners = [stack.enter_context(sockets.listen())]
            _sojourn.enter_network(networks[0])
            listeners.append(stack.enter_context(sockets.listen()))
            self._listeners = {listener.fileno(): listener for listener in listeners}
            for fd in (*self._listeners, self._sink.fileno()):
                self._epoll.register(fd, _IN)
            self._loop()

    def _clock(self) -> int:
        """Return the time since the start, in ns."""
        self.now_ns = time.monotonic_ns() - self._start_ns
        return self.now_ns

    def _loop(self) -> None:
        while not self.ended:
            now = self._clock()
            due = self.script.next()
            while due is not None and due <= min(now, self._end):
                self.lateness_s.append((now - due) / 1e9)
                action = self.script.wake(due)
                if action is not None:
                    self._do(*action)
                due = self.script.next()
            now = self._clock()
            if now >= self._warm and not self._warmed:
                self._begin()
            if now >= self._sample:
                self._take_sample()
            if now >= self._end:
                break
            first = min(self._sample, self._end, _NOTHING if due is None else due)
            first = first if self._warmed else min(first, self._warm)
            wait = min(max(0, first - self._clock()) / 1e9, _LOOK_S)
            # epoll_wait has a resolution of 1 ms; select on its descriptor is finer.
            select.select([self._epoll], [], [], wait)
            for fd, events in self._epoll.poll(0):
                self._event(fd, events)

    def _event(self, fd: int, events: int) -> None:
        if fd in self._listeners:
            self._accept(self._listeners[fd])
        elif fd == self._sink.fileno():
            self._take_datagrams()
        elif fd in self._ends:
            connection, sends = self._ends[fd]
            try:
                if sends:
                    self._send(connection, events)
                else:
                    self._receive(connection)
            except OSError as error:
                self._broken(connection, error)

    def _do(self, what: str, flow: int, row: int, size: int, request: bool, keep: bool) -> None:
        """Execute an action of the script."""
        match what:
            case "open":
                self._open(flow, row, size, request, keep)
            case "write" if flow in self._connections:  # it may have failed
                connection = self._connections[flow]
                connection.left += size
                if connection.stands:
                    self._flush(connection)
            case "datagram":
                if flow not in self._senders:
                    ecn = _ECN[self._ecn.get(self.rows[flow].group)]
                    self._senders[flow] = sockets.datagrams_from(flow, ecn)
                sockets.send_datagram(self._senders[flow], size)
            case "stop" if flow in self._connections:
                connection = self._connections[flow]
                connection.left = 0 if connection.left >= ENDLESS else connection.left
                connection.want = connection.got
                if connection.stands:
                    self._flush(connection)
            case "leave":
                for connection in list(self._connections.values()):
                    if flow <= connection.row < row:
                        self._forget(connection, at_once=True)

    def _open(self, flow: int, row: int, size: int, request: bool, keep: bool) -> None:
        """Start a transfer, on the kept connection of the flow or on a new one."""
        kept = self._connections.get(flow) if keep else None
        if kept is not None:
            kept.want = kept.got + size
            kept.left += size
            self.script.established(flow, self.now_ns)
            self._flush(kept)
            return
        if request:
            _sojourn.enter_network(self._networks[1])
        host = self.plan.hosts[row]
        connection = Connection(flow, row, host, request=request, keep=keep)
        if request:
            _sojourn.enter_network(self._networks[0])
        if size < 0:
            connection.endless()
        elif size > 0:
            connection.left = connection.want = size
        self._connections[flow] = connection
        self._asked[connection.port] = connection
        self._ends[connection.sender.fileno()] = connection, True
        self._epoll.register(connection.sender.fileno(), _IN | _OUT)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                receiver, port = listener.accept()
            except BlockingIOError:
                return
            receiver.setblocking(False)
            connection = self._asked.pop(port, None)
            if connection is None:
                receiver.close()  # closed by the sender meanwhile
                continue
            connection.receiver = receiver
            self._ends[receiver.fileno()] = connection, False
            self._epoll.register(receiver.fileno(), _IN)

    def _flush(self, connection: Connection) -> None:
        connection.flush()
        if connection.left > 0:
            self._epoll.modify(connection.sender.fileno(), _IN | _OUT)
            return
        self._epoll.modify(connection.sender.fileno(), _IN)
        # All data of a transfer is written: its last segment carries the FIN. A connection that is
        # kept stays open, and so does a stream without end until it is stopped.
        if connection.want < ENDLESS and not connection.keep:
            connection.sender.shutdown(socket.SHUT_WR)

    def _send(self, connection: Connection, events: int) -> None:
        if events & _HANGUP and (
            error := connection.sender.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        ):
            raise OSError(error, os.strerror(error))
        if events & _OUT:
            if not connection.stands:
                connection.stands = True
                self.script.established(connection.flow, self._clock())
            self._flush(connection)
        if events & _IN:
            # One byte per transfer received, or the end of the stream.
            over = not connection.sender.recv(1)
            if over:
                self._forget(connection)
            self.script.acked(connection.flow, self._clock())

    def _receive(self, connection: Connection) -> None:
        got, over = connection.take()
        self.rows[connection.row].delivered += got
        if connection.got >= connection.want and got:
            self.script.received(connection.flow, self._clock())
            if connection.keep:
                connection.want = ENDLESS
                assert connection.receiver is not None
                connection.receiver.send(b"\0")
        if over:
            assert connection.receiver is not None
            del self._ends[connection.receiver.fileno()]
            connection.receiver.close()
            connection.receiver = None

    def _broken(self, connection: Connection, error: OSError) -> None:
        self.failed.append(f"{self.rows[connection.row].name}: {error.strerror or error}")
        self._forget(connection, at_once=True)

    def _forget(self, connection: Connection, *, at_once: bool = False) -> None:
        """Close a connection, after adding its timeouts to the statistics."""
        self._count(connection)
        self._asked.pop(connection.port, None)
        for end in (connection.sender, connection.receiver):
            if end is not None:
                self._ends.pop(end.fileno(), None)
        if self._connections.get(connection.flow) is connection:
            del self._connections[connection.flow]
        connection.close(at_once=at_once)

    def _count(self, connection: Connection) -> sockets.Info:
        """Add new timeouts of a connection to the statistics; return its state."""
        info = sockets.info(connection.sender)
        row = self.rows[connection.row]
        if info.timeouts is None or row.timeouts is None:
            row.timeouts = None
        else:
            row.timeouts += info.timeouts - connection.timeouts
            connection.timeouts = info.timeouts
        return info

    def _take_datagrams(self) -> None:
        while (datagram := sockets.take_datagram(self._sink)) is not None:
            row, size, took_ns = datagram
            self.rows[row].delivered += size
            sent_ns = self._clock() - took_ns
            if self._warm <= sent_ns:
                self.rows[row].delays_ns.append(took_ns)

    def _begin(self) -> None:
        """End the warm-up: reset the counters."""
        self._warmed = True
        for connection in self._connections.values():
            self._count(connection)
        self.stats.begin()

    def _take_sample(self) -> None:
        """Record a sample. A sample that is overdue is recorded at the next call."""
        at_s = self._sample / 1e9
        self._sample += self._every
        standing = [one for one in self._connections.values() if one.stands]
        self.stats.sample(at_s, [(self.rows[one.row], self._count(one)) for one in standing])

    def _close(self) -> None:
        for connection in list(self._connections.values()):
            with suppress(OSError):
                self._forget(connection, at_once=True)
        for sender in self._senders.values():
            sender.close()
