"""Base class of disciplines that are written in Python."""

from typing import TYPE_CHECKING, ClassVar

from sojourn._util.public import public
from sojourn.custom.base import Bytes as Bytes
from sojourn.custom.base import Custom
from sojourn.custom.base import Duration as Duration
from sojourn.custom.base import Rate as Rate

PASS, MARK, DROP, DROP_HEAD = 0, 1, 2, 3
"""Decisions: pass the packet; mark it, or drop it if it cannot be marked; drop it; drop the packet
at the head of the queue and pass the arriving one."""


@public
class Aqm(Custom):
    """Queue discipline that is written in Python: decides about the packets of one FIFO queue.

    A subclass declares parameters as annotated class attributes with defaults, assigns its state in
    `start`, and decides in `on_enqueue` and `on_dequeue`. An object of it is used like any other
    discipline. Every discipline has the parameters `limit` (buffer size, default 1000p) and `ecn`
    (True if ECN-capable packets may be marked, default False) as well, and `compiled` (True to
    compile the methods to native code, default False; needs Numba). In the methods a parameter
    is a number: whole nanoseconds, bits per second or bytes. `self.rate` is the rate of the link in
    bit/s.

    All methods are optional:

    ``start(self)``
        Assigns the state. Numbers are recorded in time series, unless their name starts with "_".
    ``on_enqueue(self, packet, queue)``
        A packet arrives; it is not in the queue yet. Returns PASS, MARK, DROP or DROP_HEAD.
    ``on_dequeue(self, packet, queue)``
        The packet at the head, which is still in the queue, is about to be sent. Returns PASS, MARK
        or DROP. After a drop it is called again with the next packet.
    ``on_update(self, queue)``
        Called before every enqueue and dequeue, and on a copy before the state is recorded: the
        place for periodic updates that are due.
    ``on_overflow(self, queue)``
        The arriving packet is dropped because the buffer is full.
    ``on_idle(self, queue)``
        The link asked for a packet and the queue is empty: the link is idle.

    A method that returns None passes the packet. `packet` has `size` (bytes), `flow`, `hash`,
    `class_`, `ecn` (0 to 3), `markable` (True if MARK would not drop it), `arrived` and `sojourn`
    (ns). `queue` has `now` (ns), `bytes`, `packets`, and in these two methods `random()`, a number
    in [0, 1) of the random stream of the link; use no other source of random numbers.

    Set `decides_at_enqueue` to True if `on_dequeue` never drops or marks and `on_enqueue` never
    returns DROP_HEAD: the simulation is then faster.

    Raises
    ------
    InputError
        If the value of a parameter is invalid.
    TypeError
        If there is no parameter of that name.

    Examples
    --------
    >>> import sojourn as sj
    >>> class HeadDrop(sj.Aqm):
    ...     target: sj.Duration = "50ms"
    ...
    ...     def on_dequeue(self, packet, queue):
    ...         return sj.DROP if packet.sojourn > self.target else sj.PASS
    >>> HeadDrop(target="20ms")
    HeadDrop(target='20ms')
    """

    decides_at_enqueue: ClassVar[bool] = False
    _checked_as: ClassVar[str] = "qdisc"
    _common: ClassVar[tuple[str, ...]] = ("limit", "ecn", "compiled")
    _reserved: ClassVar[tuple[str, ...]] = ("name", "source", "rate")
    _fixed: ClassVar[tuple[str, ...]] = ("rate",)
    _hooks: ClassVar[tuple[str, ...]] = (
        "on_update",
        "on_enqueue",
        "on_overflow",
        "on_dequeue",
        "on_idle",
    )

    if TYPE_CHECKING:
        limit: str | None = None
        ecn: bool | None = None
        compiled: bool | None = None
        rate: ClassVar[int]
        """Rate of the link, bit/s; available in methods."""
