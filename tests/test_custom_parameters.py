"""Parameters of disciplines that are written in Python: declarations, values, messages."""

from typing import Any

import pytest

import sojourn as sj
from examples import my_aqm


def test_parameters_are_checked_like_those_of_rust() -> None:
    """Messages name the parameter, the value and the nearest name."""
    for make, kind, text in [
        (lambda: my_aqm.MyCoDel(target="banana"), sj.InputError, 'MyCoDel.target: "banana"'),
        (lambda: my_aqm.MyCoDel(target=5), sj.InputError, "MyCoDel.target: 5 has no unit"),
        (lambda: my_aqm.MyPie(alpha="x"), sj.InputError, 'MyPie.alpha: "x" is not a finite'),
        (lambda: my_aqm.MyPie(limit="0p"), sj.InputError, "MyPie.limit: 0p is out of range"),
        (lambda: my_aqm.MyPie(tagret="5ms"), TypeError, 'did you mean "target"'),
        (lambda: sj.Link(rate="1mbit", qdisc="none.py:X"), sj.InputError, "none.py: No such file"),
        (
            lambda: sj.Link(rate="1mbit", qdisc="examples/my_aqm.py:MyPi"),
            sj.InputError,
            'has no Aqm "MyPi", did you mean "MyPie"?',
        ),
        (lambda: sj.Link(rate="1mbit", qdisc="nowhere:X"), sj.InputError, "write FILE.py:CLASS"),
    ]:
        with pytest.raises(kind) as raised:
            make()  # type: ignore[no-untyped-call]
        assert text in str(raised.value)
    changed = my_aqm.MyCoDel(target="9ms").replace(interval="50ms")
    assert repr(changed) == "MyCoDel(target='9ms', interval='50ms')"
    assert changed == my_aqm.MyCoDel(target="9ms", interval="50ms") != my_aqm.MyCoDel()


def test_declarations_are_checked_when_the_class_is_defined() -> None:
    """A parameter has a known type, a default and a free name; a hook has a known name."""
    bases: tuple[Any, ...] = (sj.Aqm,)
    bodies: list[tuple[dict[str, Any], str]] = [
        ({"target": "5ms", "__annotations__": {"target": str}}, "is not the type of a parameter"),
        ({"__annotations__": {"target": sj.Duration}}, "target: has no default"),
        ({"limit": 3, "__annotations__": {"limit": int}}, "limit: the name is in use"),
        ({"on_dequeu": print}, 'no hook "on_dequeu", did you mean "on_dequeue"'),
        ({"onEnqueue": print}, 'no hook "onEnqueue", did you mean "on_enqueue"'),
        ({"on_empty": print}, 'no hook "on_empty".* on_idle'),
    ]
    for body, text in bodies:
        with pytest.raises(TypeError, match=text):
            type("Bad", bases, body)
    for base, name, hook in (
        (sj.CongestionControl, "onack", "on_ack"),
        (sj.CongestionControl, "on_los", "on_loss"),
        (sj.TrafficSource, "nextarrival", "next_arrival"),
    ):
        with pytest.raises(TypeError, match=f'no hook "{name}".*{hook}'):
            type("Bad", (base,), {name: print})


def test_a_constant_is_no_parameter() -> None:
    """The message has the declaration that makes it one."""
    body = {"target": "5ms", "rate_min": "1mbit", "room": "3kB", "gain": 0.5, "count": 3}
    kind = type("Plain", (sj.Aqm,), body)
    for name, text in (
        ("target", "write target: sj.Duration = '5ms'"),
        ("rate_min", "write rate_min: sj.Rate = '1mbit'"),
        ("room", "write room: sj.Bytes = '3kB'"),
        ("gain", "write gain: float = 0.5"),
        ("count", "write count: int = 3"),
    ):
        with pytest.raises(TypeError, match=f"it is a constant without a type, {text}"):
            kind(**{name: "1ms"})
    for name in ("targets", "decides_at_enqueue"):
        with pytest.raises(TypeError, match=f'has no parameter "{name}"') as raised:
            kind(**{name: True})
        assert "constant" not in str(raised.value)
