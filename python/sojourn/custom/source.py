"""Base class of traffic sources that are written in Python."""

from typing import ClassVar

from sojourn._util.public import public
from sojourn.custom.base import Custom


@public
class TrafficSource(Custom):
    """Traffic source that is written in Python: says when data arrives, and how much.

    A subclass declares parameters as annotated class attributes with defaults, assigns its state in
    `start`, and returns one arrival after the other from `next_arrival`. An object of it is used
    like any other source. Every source has the parameters `start` (time of the start, default 0s),
    `stop` (time of the end, default never) and `compiled` (True to compile the methods to native
    code, default False; needs Numba) as well. In the methods a parameter is a number: whole
    nanoseconds, bits per second or bytes.

    ``start(self)``
        Assigns the state; called once per flow. Optional.
    ``next_arrival(self, flow)``
        Returns time (ns) and size (bytes) of the next arrival, or None if there is none. The time
        is at least `flow.now`. Called again when the arrival has happened.

    `flow` has `now` (ns), the time of the previous arrival (at first, of the start), and
    `random()`, a number in [0, 1) of the random stream of the flow; use no other source of random
    numbers.

    An arrival is a datagram over UDP of 1 to 65535 bytes on the wire. If the flow has a `tcp`, it
    is a write on the connection of the flow. If the class attribute `connections` is True, it is a
    transfer on a new TCP connection, and there is one object for all hosts of the group.

    Raises
    ------
    InputError
        If the value of a parameter is invalid.
    TypeError
        If there is no parameter of that name.

    Examples
    --------
    >>> import sojourn as sj
    >>> class Ticks(sj.TrafficSource):
    ...     interval: sj.Duration = "20ms"
    ...
    ...     def next_arrival(self, flow):
    ...         return flow.now + self.interval, 200
    >>> Ticks(interval="5ms", stop="3s")
    Ticks(interval='5ms', stop='3s')
    """

    connections: ClassVar[bool] = False
    _checked_as: ClassVar[str] = "source"
    _common: ClassVar[tuple[str, ...]] = ("start", "stop", "compiled")
    _hooks: ClassVar[tuple[str, ...]] = ("next_arrival",)
