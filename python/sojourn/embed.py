"""Disciplines and links for programs of your own: time is an argument, bodies are any objects.

    >>> from sojourn.embed import TimedLink
    >>> link = TimedLink("fq_codel(variant=linux)", rate="10mbit", delay="25ms")
    >>> link.push(0, b"body", size=1250)
    >>> packet = link.poll(link.next_poll_ns)
    >>> packet.body, packet.at_ns
    (b'body', 26000000)

Nothing here reads a clock, sends or waits, so it works with asyncio, threads, or time of your own.
See docs/how-to/embed.md. Times are whole nanoseconds of any clock that does not go
back, like `time.monotonic_ns()` less its value at the start.
"""

import json
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from sojourn import _sojourn
from sojourn._sojourn import InputError, QueuedPacket
from sojourn._util.inputs import shown
from sojourn._util.plain import plain
from sojourn._util.public import public
from sojourn.scenario.variants import LIMITS, Described, table

__all__ = ["Qdisc", "QueuedPacket", "TimedLink"]

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

BUFFER_NS = 250_000_000
"""Longest time that a queue of default size takes to send, nanoseconds."""

SEED_MAX = 2**64 - 1
"""Largest seed."""

NAME = "link"
"""Name of the only link in the JSON text that Rust reads."""


def _link(**keys: Any) -> str:
    """Return the JSON text of a link with these keys."""
    try:
        return json.dumps({NAME: plain(keys)})
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(str(error)) from None


def _called(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function of Rust; the paths of its errors are the names of our parameters."""
    try:
        return function(*args, **kwargs)
    except InputError as error:
        raise InputError(str(error).removeprefix(f"{NAME}.")) from None


def _table(qdisc: Described) -> dict[str, Any]:
    """Return a discipline in any notation as a table."""
    try:
        return table(qdisc)
    except InputError as error:
        raise InputError(f"qdisc: {error}") from None


def _seed(seed: Any) -> int:
    """Return a seed, checked."""
    if isinstance(seed, int) and 0 <= seed <= SEED_MAX:
        return seed
    text = f"seed: {shown(seed)} is not allowed: a whole number from 0 to {SEED_MAX}"
    raise InputError(text)


@public
class Qdisc(Generic[T]):
    """A queue discipline, for a program that has a transmitter of its own.

    One thread at a time can use it.

    Parameters
    ----------
    qdisc : str, dict or model
        Discipline: a name, ``"codel(target=15ms)"``, words of Linux as ``"tc: fq_codel limit
        1000"``, a table, or a model like ``sj.CoDel()``. ``"fq_codel"`` is RFC 8290's; write
        ``"fq_codel(variant=linux)"`` for what Linux has.
    rate : str
        Rate of the transmitter, like ``"10mbit"``. Some disciplines read it.
    seed : int, default 1
        Seed of the random numbers. Equal seeds and calls give equal decisions.
    keep_dropped : bool, default False
        True to keep dropped packets for `next_dropped`; otherwise their bodies are freed.

    Raises
    ------
    InputError
        If the discipline or the rate is invalid, or the discipline is written in Python.

    Examples
    --------
    >>> from sojourn.embed import Qdisc
    >>> queue = Qdisc("codel(target=15ms)", rate="10mbit")
    >>> queue.enqueue(0, "first", size=1250)
    >>> queue.dequeue(1_000_000).body
    'first'
    """

    __slots__ = ("_name", "_queue", "_rate")

    def __init__(
        self, qdisc: Described, *, rate: str, seed: int = 1, keep_dropped: bool = False
    ) -> None:
        keys = _table(qdisc)
        self._name = keys["name"]
        self._rate = rate
        link = _link(qdisc=keys, rate=rate)
        self._queue = _called(_sojourn.Qdisc, link, _seed(seed), bool(keep_dropped))

    def enqueue(
        self, now_ns: int, body: T, *, size: int, flow: int = 0, flow_hash: int = 0,
        class_: int = 0, ecn: int = 0, source: int = 0, destination: int = 0,
    ) -> None:  # fmt: skip
        """Enqueue or drop a packet that arrives now.

        Parameters
        ----------
        now_ns : int
            Time, nanoseconds; not before the time of an earlier call.
        body : object
            Contents of the packet, which the discipline does not read.
        size : int
            Length in bytes, below 2^30.
        flow : int, default 0
            Number of the flow, small and dense, for disciplines with a queue per flow (drr, wfq).
        flow_hash : int, default 0
            Hash of the flow, below 2^32, for hashed queues (fq_codel, cake). With equal hashes,
            ``fq_codel`` is CoDel.
        class_ : int, default 0
            Traffic class or DSCP.
        ecn : int, default 0
            ECN field of the IP header: 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 CE.
        source, destination : int, default 0
            Keys of the two hosts, for cake.

        Raises
        ------
        InputError
            If a number is out of range, or the time goes back. The packet is then not enqueued.
        """
        self._queue.enqueue(now_ns, body, size, flow, flow_hash, class_, ecn, source, destination)

    def dequeue(self, now_ns: int) -> "QueuedPacket[T] | None":
        """Return the next packet to send.

        Parameters
        ----------
        now_ns : int
            Time, nanoseconds; not before the time of an earlier call.

        Returns
        -------
        QueuedPacket or None
            The packet. Its `ecn` is 3 if it was marked. None if there is none, or a shaper holds
            the packets back until `ready_at_ns`.

        Raises
        ------
        InputError
            If the time goes back.
        """
        return self._queue.dequeue(now_ns)

    def next_dropped(self) -> "QueuedPacket[T] | None":
        """Return the next dropped packet; None if there is none, or without `keep_dropped`.

        Call it after `enqueue` and `dequeue` until it returns None: packets are kept until then.
        """
        return self._queue.next_dropped()

    @property
    def ready_at_ns(self) -> int | None:
        """Time at which to dequeue again after a dequeue that returned None, nanoseconds.

        None if the discipline is empty or has no shaper.
        """
        return self._queue.ready_at_ns

    @property
    def backlog(self) -> tuple[int, int]:
        """Number of packets and of bytes in the queue."""
        return self._queue.backlog

    def reconfigure(self, qdisc: Described) -> None:
        """Set the parameters of the discipline; packets and state are kept.

        Parameters
        ----------
        qdisc : str, dict or model
            The same discipline with new parameters. Those that are left out get their defaults.

        Raises
        ------
        InputError
            If the discipline is invalid or another one, or cannot change these parameters.
        """
        _called(self._queue.reconfigure, _link(qdisc=_table(qdisc), rate=self._rate))

    def stats(self) -> dict[str, float | None]:
        """Return the counters since the start.

        Returns
        -------
        dict
            ``arrived_packets``, ``arrived_bytes``, ``departed_packets``, ``departed_bytes``,
            ``dropped_packets``, ``dropped_full_packets`` (the buffer was full),
            ``marked_packets``, ``queue_packets``, ``queue_bytes`` and ``sojourn_mean_s`` (mean
            time in the queue, seconds; None if no packet has left).
        """
        return self._queue.stats()

    def inspect(self) -> dict[str, float]:
        """Return the internal variables of the discipline by name, in SI units."""
        return self._queue.inspect()

    def __len__(self) -> int:
        return self.backlog[0]

    def __repr__(self) -> str:
        packets, size = self.backlog
        return f"<Qdisc {self._name}: {packets} packets, {size} bytes>"


@public
class TimedLink(Generic[T]):
    """A link: a discipline, a rate, a delay, and impairments behind it.

    One thread at a time can use it.

    Parameters
    ----------
    qdisc : str, dict or model
        Discipline, as in `Qdisc`. Without ``limit``, it holds at most 250 ms at the rate.
    rate : str
        Rate, like ``"10mbit"``.
    delay : str, default "0s"
        One-way propagation delay, like ``"25ms"``.
    seed : int, default 1
        Seed of all random numbers. Equal seeds and calls give equal deliveries.
    keep_undelivered : bool, default False
        True to keep dropped and lost packets for `next_undelivered`; otherwise their bodies are
        freed.
    **impairments
        Keys of a link in a scenario: ``loss``, ``jitter``, ``reorder``, ``duplicate``,
        ``corrupt``, ``outages``, ``slot`` and ``in_flight_limit``, with the same values. A
        duplicate has the same body object.

    Raises
    ------
    InputError
        If a value is invalid, or the discipline is written in Python.
    """

    __slots__ = ("_link",)

    def __init__(
        self, qdisc: Described, *, rate: str, delay: str = "0s", seed: int = 1,
        keep_undelivered: bool = False, **impairments: Any,
    ) -> None:  # fmt: skip
        keys = _table(qdisc)
        sized = any(key.replace("-", "_") in LIMITS for key in keys)
        link = _link(qdisc=keys, rate=rate, delay=delay, **impairments)
        self._link = _called(
            _sojourn.TimedLink, link, sized, BUFFER_NS, _seed(seed), bool(keep_undelivered)
        )

    def push(
        self, now_ns: int, body: T, *, size: int, flow: int = 0, flow_hash: int = 0,
        class_: int = 0, ecn: int = 0, source: int = 0, destination: int = 0,
    ) -> None:  # fmt: skip
        """Enqueue or drop a packet that arrives now. It has the parameters of `Qdisc.enqueue`.

        Raises
        ------
        InputError
            If a number is out of range, or the time goes back. The packet is then not enqueued.
        """
        self._link.push(now_ns, body, size, flow, flow_hash, class_, ecn, source, destination)

    def poll(self, now_ns: int) -> "QueuedPacket[T] | None":
        """Return the next packet that has reached the far end.

        Call it until it returns None. A late call changes no decision: everything that was due is
        processed first, each event at its own time.

        Parameters
        ----------
        now_ns : int
            Time, nanoseconds; not before the time of an earlier call.

        Returns
        -------
        QueuedPacket or None
            The packet. Its `at_ns` is the time of arrival, and its `ecn` is 3 if it was marked.

        Raises
        ------
        InputError
            If the time goes back.
        """
        return self._link.poll(now_ns)

    @property
    def next_poll_ns(self) -> int | None:
        """Next time to poll, nanoseconds; None while no packet is on the link.

        May be early: `poll` then returns None, and this property has a later time.
        """
        return self._link.next_poll_ns

    def next_undelivered(self) -> "QueuedPacket[T] | None":
        """Return the next dropped or lost packet; None if there is none.

        Needs `keep_undelivered`. Call it after `push` and `poll` until it returns None: packets
        are kept until then.
        """
        return self._link.next_undelivered()

    def change(self, now_ns: int, *, rate: str | None = None, delay: str | None = None) -> None:
        """Set the rate, the delay, or both.

        A transmission that has started is not affected.

        Parameters
        ----------
        now_ns : int
            Time, nanoseconds.
        rate, delay : str, optional
            New values; by default they stay.

        Raises
        ------
        InputError
            If a value is invalid, or the time goes back.
        """
        rate_bps, delay_ns = self._link.spec
        link = _link(rate=rate or f"{rate_bps}bit", delay=delay or f"{delay_ns}ns")
        _called(self._link.change, now_ns, link)

    def reconfigure(self, now_ns: int, qdisc: Described) -> None:
        """Set the parameters of the discipline; packets and state are kept.

        Parameters
        ----------
        now_ns : int
            Time, nanoseconds.
        qdisc : str, dict or model
            The same discipline with new parameters. Those that are left out get their defaults.

        Raises
        ------
        InputError
            If the discipline is invalid or another one, cannot change these parameters, or the
            time goes back.
        """
        link = _link(qdisc=_table(qdisc), rate=f"{self._link.spec[0]}bit")
        _called(self._link.reconfigure, now_ns, link)

    def reset_stats(self, now_ns: int) -> None:
        """Start the measured interval at `now_ns`: reset all counters.

        Raises
        ------
        InputError
            If the time goes back.
        """
        self._link.reset_stats(now_ns)

    def stats(self) -> dict[str, float | None]:
        """Return the counters since the start or the last `reset_stats`.

        Returns
        -------
        dict
            The names of `Qdisc.stats`, and ``lost_packets`` (by impairments), ``sojourn_p50_s``,
            ``sojourn_p99_s`` and ``utilisation`` (share of the time in which the link was
            sending). Values that do not exist yet are None.
        """
        return self._link.stats()

    def inspect(self) -> dict[str, float]:
        """Return the internal variables of the discipline by name, in SI units."""
        return self._link.inspect()

    def snapshot(self, dumps: Callable[[T], bytes] | None = None) -> bytes:
        """Return the link as bytes: packets with bodies, discipline, statistics, random numbers.

        `from_snapshot` continues from them, in another process or on another machine. Only the
        version of sojourn that wrote a snapshot reads it.

        Parameters
        ----------
        dumps : callable, optional
            Function that converts a body to bytes, like ``json.dumps(body).encode()``. Without it,
            bodies are bytes already.

        Raises
        ------
        InputError
            If a body is not bytes, or `dumps` returns something else.
        """
        return self._link.snapshot(dumps)

    @classmethod
    def from_snapshot(
        cls, snapshot: bytes, loads: Callable[[bytes], T] | None = None
    ) -> "TimedLink[T]":
        """Return the link of a snapshot, which continues as the saved one.

        Load only snapshots that you wrote: a checksum finds accidents only. A snapshot executes no
        code, unless `loads` does, as ``pickle.loads`` can.

        Parameters
        ----------
        snapshot : bytes
            Bytes of `snapshot`.
        loads : callable, optional
            Function that converts bytes to a body. Without it, bodies are bytes.

        Raises
        ------
        InputError
            If the bytes are not a snapshot of a link, are damaged, or were written by another
            version.

        Examples
        --------
        >>> from sojourn.embed import TimedLink
        >>> link = TimedLink("codel", rate="10mbit", delay="25ms")
        >>> link.push(0, b"body", size=1250)
        >>> other = TimedLink.from_snapshot(link.snapshot())
        >>> other.poll(26_000_000).body
        b'body'
        """
        if not isinstance(snapshot, bytes):
            raise InputError(f"snapshot: {shown(snapshot)} is not bytes")
        link = cls.__new__(cls)
        link._link = _sojourn.TimedLink.from_snapshot(snapshot, loads)
        return link

    def __len__(self) -> int:
        return self._link.packets

    def __repr__(self) -> str:
        return f"<TimedLink {self._link.name}: {len(self)} packets>"
