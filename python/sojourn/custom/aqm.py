"""Base class of disciplines that are written in Python."""

import json
from collections.abc import Mapping
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.html import html
from sojourn._util.inputs import near, shown
from sojourn.custom import identity

if TYPE_CHECKING:
    from typing import TypeAlias

    Duration: TypeAlias = Any
    Rate: TypeAlias = Any
    Bytes: TypeAlias = Any
else:

    class Duration:
        """Type of a parameter: a duration like "5ms". Methods see whole nanoseconds."""

    class Rate:
        """Type of a parameter: a rate like "10mbit". Methods see whole bits per second."""

    class Bytes:
        """Type of a parameter: a number of bytes like "15kB". Methods see whole bytes."""


PASS, MARK, DROP, DROP_HEAD = 0, 1, 2, 3
"""Decisions: pass the packet; mark it, or drop it if it cannot be marked; drop it; drop the packet
at the head of the queue and pass the arriving one."""

KINDS: dict[Any, str] = {
    Duration: "duration",
    Rate: "rate",
    Bytes: "bytes",
    float: "number",
    int: "integer",
    bool: "flag",
}
"""Types of parameters, and their names in Rust."""

COMMON = ("limit", "ecn", "compiled")
"""Parameters of every discipline in Python."""

RESERVED = (*COMMON, "name", "source", "rate")
"""Names that a class cannot use for its own parameters."""


class Aqm:
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
    ``on_empty(self, queue)``
        The link asked for a packet and the queue is empty.

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
    _parameters: ClassVar[dict[str, tuple[str, Any]]] = {}

    if TYPE_CHECKING:
        limit: str | None = None
        ecn: bool | None = None
        compiled: bool | None = None
        rate: ClassVar[int]
        """Rate of the link, bit/s; available in methods."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls)
        inherited = {
            name: (kind, own.get(name, default))
            for name, (kind, default) in cls._parameters.items()
        }
        cls._parameters = {**inherited, **_declared(cls)}

    def __init__(self, **given: Any) -> None:
        cls = type(self)
        names = (*COMMON, *cls._parameters)
        for name in given:
            if name not in names:
                text = f"{cls.__name__} has no parameter {shown(name)}{near(name, names)}"
                raise TypeError(text)
        given = {name: value for name, value in given.items() if value is not None}
        vars(self).update(given, _given=given)
        try:
            _sojourn.check("qdisc", json.dumps(self._table()))
        except InputError as error:
            raise InputError(f"{cls.__name__}.{error}") from None

    def __repr__(self) -> str:
        given = vars(self).get("_given", {})
        settings = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return f"{type(self).__name__}({settings})"

    def _repr_html_(self) -> str | None:
        """Return the parameters as HTML for notebooks."""
        return html(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Aqm):
            return NotImplemented
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def replace(self, **changes: Any) -> Self:
        """Return a copy with the given parameters changed; None sets the default again."""
        return type(self)(**{**vars(self)["_given"], **changes})

    def _table(self) -> dict[str, Any]:
        """Return the table that a scenario has for it: name, hash of the source, parameters."""
        name, source = identity.register(type(self))
        return {"name": name, "source": source, **vars(self)["_given"]}

    @classmethod
    def _running(cls, values: Mapping[str, Any], rate: int) -> Self:
        """Return an object that a queue uses: its parameters are numbers, its state is set."""
        made = cls.__new__(cls)
        vars(made).update(values, rate=rate)
        start = getattr(made, "start", None)
        if start is not None:
            start()
        return made

    def _state(self) -> dict[str, Any]:
        """Return the state that `start` assigned, by name."""
        fixed = (*type(self)._parameters, "rate")
        return {name: value for name, value in vars(self).items() if name not in fixed}


def _declared(cls: type[Aqm]) -> dict[str, tuple[str, Any]]:
    """Return the parameters that a class declares: kind and default by name."""
    found: dict[str, tuple[str, Any]] = {}
    try:
        annotations = get_annotations(cls, eval_str=True)
    except NameError as error:
        raise TypeError(f"{cls.__name__}: {error}, in the type of a parameter") from None
    for name, kind in annotations.items():
        where = f"{cls.__name__}.{name}"
        if name.startswith("_") or "ClassVar" in str(kind):
            continue
        if name in RESERVED:
            raise TypeError(f"{where}: the name is in use, choose another one")
        if kind not in KINDS:
            known = "sj.Duration, sj.Rate, sj.Bytes, float, int, bool"
            raise TypeError(f"{where}: {kind!r} is not the type of a parameter, allowed: {known}")
        if name not in vars(cls):
            raise TypeError(f'{where}: has no default, write one like {name}: ... = "5ms"')
        found[name] = (KINDS[kind], vars(cls)[name])
    return found
