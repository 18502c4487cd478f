"""Functions that Rust calls: classes by name, their parameters, and objects of them for a queue."""

import json
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.inputs import shown
from sojourn.custom import identity
from sojourn.custom.aqm import Aqm
from sojourn.custom.base import Custom, same_state, start, state_of
from sojourn.custom.control import CongestionControl
from sojourn.custom.source import TrafficSource

if TYPE_CHECKING:
    from sojourn.custom.native import Native, Owner


T = TypeVar("T", bound=Custom)


class ClassObject(NamedTuple):
    """Object for a queue, with its properties that do not change."""

    object: Aqm
    gauges: list[str]
    """Names of the attributes that are recorded."""
    decides_at_enqueue: bool


_latest = threading.local()
"""The last object that this thread made, for `running` and `running_part`."""


def find(name: str) -> None:
    """Look up a class by name. Raises InputError if there is none."""
    identity.find(name, Aqm)


def describe(name: str, source: str | None) -> tuple[str, list[tuple[str, str, Any]]]:
    """Return the hash of the source of a class, and kind and default of its parameters."""
    digest, cls = identity.version(name, source)
    assert issubclass(cls, Aqm)
    return digest, _fields(cls)


class ControlTraits(NamedTuple):
    """Requests of the class of a congestion control."""

    paced: bool
    """True if the control has a rate for every segment."""
    telemetry: bool
    """True if it reads telemetry."""
    marks: bool
    """True if it reads ECN feedback."""
    rates: bool
    """True if it reads delivery rate samples."""
    pacing: bool
    """Default of the parameter `pacing`."""


class ControlClass(NamedTuple):
    """Class of a congestion control."""

    parameters: tuple[str, list[tuple[str, str, Any]]]
    """Hash of the source, and the parameters, as `describe` returns them."""
    recovery: str
    traits: ControlTraits


def describe_control(name: str, source: str | None) -> ControlClass:
    """Find a congestion control."""
    digest, cls = _version(name, source, CongestionControl)
    if not hasattr(cls, "on_ack"):
        raise InputError(f"{cls.__name__} has no on_ack, so its window would never grow")
    for attribute in ("paced", "pacing"):
        value = getattr(cls, attribute)
        if not isinstance(value, bool):
            raise InputError(f"{attribute}: is {shown(value)}, allowed: True, False")
    hooks = ("on_telemetry", "on_ecn_feedback", "on_rate_sample")
    telemetry, marks, rates = (hasattr(cls, hook) for hook in hooks)
    traits = ControlTraits(cls.paced, telemetry, marks, rates, cls.pacing)
    return ControlClass((digest, _fields(cls)), str(cls.recovery), traits)


def describe_source(
    name: str, source: str | None
) -> tuple[tuple[str, list[tuple[str, str, Any]]], bool]:
    """Find a traffic source.

    Return the hash of its source with its parameters, as `describe`, and True if each arrival is a
    transfer on a new connection.
    """
    digest, cls = _version(name, source, TrafficSource)
    if not hasattr(cls, "next_arrival"):
        raise InputError(f"{cls.__name__} has no next_arrival, so it would send nothing")
    return (digest, _fields(cls)), bool(cls.connections)


def make_source(name: str, source: str, values: Mapping[str, Any]) -> TrafficSource:
    """Return an object of a class for a flow."""
    cls = identity.version(name, source)[1]
    assert issubclass(cls, TrafficSource)
    instance = cls._running(values)
    _latest.instance = instance
    return instance


def _version(name: str, source: str | None, kind: type[T]) -> tuple[str, type[T]]:
    """Return the hash of the source of a class, and the class, which must be of a kind."""
    identity.find(name, kind)
    digest, cls = identity.version(name, source)
    if not issubclass(cls, kind):
        raise InputError(f"{cls.__name__} is not a {kind.__name__}")
    return digest, cls


def _fields(cls: type[Custom]) -> list[tuple[str, str, Any]]:
    """Return the parameters of a class: name, kind and default."""
    return [(field, kind, default) for field, (kind, default) in cls._parameters.items()]


def make_control(name: str, source: str, values: Mapping[str, Any]) -> CongestionControl:
    """Return an object of a class for a flow."""
    cls = identity.version(name, source)[1]
    assert issubclass(cls, CongestionControl)
    instance = cls._running(values)
    _latest.instance = instance
    return instance


def compile_object(instance: Custom) -> "Native":
    """Return the native code of the class of an object, and the state of the object."""
    from sojourn.custom.native import compile_class

    return compile_class(instance)


def repeat_control(
    owner: "Owner", method: str, arguments: Sequence[Any], state: Sequence[int]
) -> None:
    """Call a method that failed in native code as plain Python, to raise its exception.

    `arguments` are the connection, and for `on_telemetry` the telemetry of the links.
    """
    from sojourn.custom import native

    getattr(native.object_of(owner, state), method)(*arguments)


def repeat_source(owner: "Owner", flow: _sojourn.Arrivals, state: Sequence[int]) -> Any:
    """Call a method that failed in native code as plain Python; return its answer."""
    from sojourn.custom import native

    instance: Any = native.object_of(owner, state)
    return instance.next_arrival(flow)


def gauges(instance: Custom) -> list[str]:
    """Return the names of the attributes of a new object that are recorded."""
    numbers = (int, float, bool)
    state = state_of(instance).items()
    return [key for key, value in state if isinstance(value, numbers) and key[0] != "_"]


def restart(instance: CongestionControl) -> None:
    """Set the state of an object to that before a connection."""
    for name in state_of(instance):
        delattr(instance, name)
    start(instance)


def make(name: str, source: str, values: Mapping[str, Any], rate: int) -> ClassObject:
    """Return an object of a class for a queue of a link of `rate` (bit/s)."""
    cls = identity.version(name, source)[1]
    assert issubclass(cls, Aqm)
    instance = cls._running(values, rate=rate)
    _latest.instance = instance
    return ClassObject(instance, gauges(instance), bool(cls.decides_at_enqueue))


def repeat(
    owner: "Owner",
    method: str,
    packet: Sequence[int],
    markable: bool,
    queue: Sequence[int],
    state: Sequence[int],
    drawn: Sequence[float],
) -> None:
    """Call a method that failed in native code as plain Python, to raise its exception.

    `drawn` are the random numbers that it has drawn.
    """
    from sojourn.custom import layouts, native

    instance = native.object_of(owner, state)
    seen = SimpleNamespace(**dict(zip(layouts.PACKET_FIELDS, packet, strict=True)))
    seen.markable = markable
    now, size, packets = queue
    numbers = iter(drawn)
    line = SimpleNamespace(now=now, bytes=size, packets=packets, random=lambda: next(numbers, 0.5))
    arguments = (seen, line) if method in layouts.OF_PACKETS else (line,)
    getattr(instance, method)(*arguments)


def reconfigure(now: Aqm, fresh: Aqm) -> bool:
    """Take the parameters of a new object for a running one, and keep its state.

    Return False, and change nothing, if the state that `start` assigns depends on them.
    """
    cls = type(now)
    if type(fresh) is not cls:
        return False
    before = cls._running({name: vars(now)[name] for name in cls._parameters}, rate=fresh.rate)
    if not same_state(state_of(before), state_of(fresh)):
        return False
    vars(now).update({name: vars(fresh)[name] for name in cls._parameters})
    return True


def reconfigure_compiled(
    owner: "Owner", words: Sequence[int], of_fresh: "Owner", fresh: Sequence[int]
) -> list[int] | None:
    """Return the state of a compiled discipline with the parameters of a new one.

    None stands for False of `reconfigure`.
    """
    from sojourn.custom import native

    if owner.layout != of_fresh.layout:
        return None
    now, new = native.object_of(owner, words), native.object_of(of_fresh, fresh)
    assert isinstance(now, Aqm)
    assert isinstance(new, Aqm)
    return native.words_of(now, owner.layout) if reconfigure(now, new) else None


def running(one: Aqm, rate: int) -> Aqm:
    """Return the object that a queue of a link of `rate` (bit/s) has for the discipline `one`."""
    link = {"rate": f"{rate}bit", "qdisc": one._table()}
    _sojourn.canonical_links(json.dumps({"link": link}))
    instance: Aqm = _latest.instance
    return instance


def running_part(one: T) -> T:
    """Return the object that a flow has for the congestion control or source `one`."""
    _sojourn.check(one._checked_as, json.dumps(one._table()))
    instance: T = _latest.instance
    return instance


def place_of(trace: types.TracebackType | None) -> str:
    """Return the last line of a user's file in a traceback, for a message."""
    here = str(Path(__file__).parent)
    place = ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(here):
            place = f" ({file}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return place


def reduce(
    parsed: Callable[[str], Any], text: str, classes: Sequence[tuple[str, str]]
) -> tuple[Any, ...]:
    """Return how to pickle a scenario with disciplines that are written in Python."""
    kept = []
    for name, digest in dict.fromkeys(classes):
        source = identity.source(identity.version(name, digest)[1])
        if source.missing:
            raise InputError(f"{source.missing}; define the class in a file of its own")
        kept.append((name, digest, source))
    return rebuild, (parsed, text, kept)


def rebuild(
    parsed: Callable[[str], Any], text: str, kept: Sequence[tuple[str, str, identity.Source]]
) -> Any:
    """Return a scenario from its pickle."""
    for one in kept:
        identity.restore(*one)
    return parsed(text)
