"""Signatures show the defaults of Rust, and leaving one out changes no scenario."""

import inspect
import json
import re
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

import sojourn as sj
from sojourn._sojourn import InputError
from sojourn._util.plain import plain
from sojourn.scenario.draft import canonical
from test_generated import CLASSES

COLUMNS = {"time_s": [0.5], "size_bytes": [100]}
"""Columns of a trace, which are required."""

KINDS = [pytest.param(*pair, id=f"{pair[0]}-{pair[1].__name__}") for pair in CLASSES]


def parsed(module: str, table: dict[str, Any]) -> Any:
    """Return the table of a discipline, TCP or source with all defaults, or why it is invalid."""
    return _parsed(module, json.dumps(plain(table), sort_keys=True))


@cache
def _parsed(module: str, text: str) -> Any:
    table = json.loads(text)
    link: dict[str, Any] = {"rate": "1mbit"}
    flow: dict[str, Any] = {"name": "f", "path": ["up"], "rtt": "10ms"}
    (link if module == "qdisc" else flow)[module] = table
    tree = {"duration": "1s", "links": {"up": link}, "flows": [flow]}
    try:
        whole = canonical(tree)
    except InputError as error:
        return str(error)
    return (whole["links"]["up"] if module == "qdisc" else whole["flows"][0])[module]


def defaults(kind: Any) -> dict[str, Any]:
    """Return the defaults of a class by the names in files, without None."""
    pairs = zip(kind.__struct_encode_fields__, kind.__struct_defaults__, strict=True)
    return {name: value for name, value in pairs if value is not None}


def settings(kind: Any) -> Iterator[dict[str, Any]]:
    """Yield each value of each parameter that has a list of words, and the other of each flag."""
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    hints = typing.get_type_hints(kind)
    for field, name in names:
        for part in (hints[field], *typing.get_args(hints[field])):
            if typing.get_origin(part) is typing.Literal:
                yield from ({name: word} for word in typing.get_args(part))
            elif part is bool:
                yield from ({name: flag} for flag in (True, False))


@pytest.mark.parametrize(("module", "kind"), KINDS)
def test_a_default_that_is_given_changes_nothing(module: str, kind: Any) -> None:
    """Neither alone nor with any variant, profile or flag: also where this is refused."""
    name = str(kind.__struct_config__.tag)
    table = {"name": name, **(COLUMNS if kind is sj.source.Trace else {})}
    for setting in ({}, *settings(kind)):
        without = parsed(module, table | setting)
        for parameter, value in defaults(kind).items():
            if parameter not in {**setting, **table}:
                explicit = parsed(module, {**table, **setting, parameter: value})
                assert explicit == without, (setting, parameter, value)


@pytest.mark.parametrize(("module", "kind"), KINDS)
def test_an_object_means_what_its_arguments_say(module: str, kind: Any) -> None:
    """As the table with the same values, with every variant, profile and flag."""
    names = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    columns = COLUMNS if kind is sj.source.Trace else {}
    name = str(kind.__struct_config__.tag)
    choices = list(settings(kind))
    for one in ({}, *choices):
        for other in ({}, *choices[:6]):
            values = {**columns, **one, **other}
            expected = parsed(module, {"name": name, **values})
            try:
                model = kind(**{names[key]: value for key, value in values.items()})
            except InputError:
                assert isinstance(expected, str)
            else:
                assert parsed(module, plain(model)) == expected


def test_defaults_that_depend_on_others_are_none() -> None:
    """An explicit value is kept, also where it is the default of some profile."""
    assert sj.Cubic().rack is None
    rack = parsed("tcp", plain(sj.Cubic(profile="rfc", rack=True)))
    assert (rack["rack"], parsed("tcp", plain(sj.Cubic(profile="rfc")))["rack"]) == (True, False)
    assert parsed("tcp", plain(sj.Cubic(rack=False)))["rack"] is False
    assert plain(sj.CoDel(limit="1000p")) == {"name": "codel", "limit": "1000p"}
    flow = sj.Flow(name="f", path=["up"], source="cbr", tcp="cubic")
    assert plain(flow)["tcp"] == "cubic"
    with pytest.raises(InputError, match="dscp"):
        sj.Flow(name="f", path=["up"], class_=0, dscp="EF")


def test_signatures_show_defaults() -> None:
    """Of disciplines, TCPs, sources and tables of a scenario."""
    shown = {
        name: parameter.default
        for kind in (sj.CoDel, sj.Bbr, sj.Cbr, sj.Link)
        for name, parameter in inspect.signature(kind).parameters.items()
    }
    assert shown["target"] == sj.CoDel().target == "5ms"
    assert (shown["cwnd_gain"], shown["variant"]) == (2, None)
    assert (shown["rate"], shown["delay"]) == (inspect.Parameter.empty, "0s")
    assert sj.qdisc.Prio().priomap == (1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1)


def test_a_key_at_its_default_is_left_out() -> None:
    """The scenario is the same as without; None means the default too."""
    link = sj.Link(rate="1mbit", delay="0s", qdisc="droptail", loss=0)
    assert plain(link) == {"rate": "1mbit"}
    assert repr(link) == "Link(rate='1mbit')"
    empty: Any = None
    assert sj.Link(rate="1mbit", delay=empty).delay == "0s"
    flow = sj.Flow(name="f", path=["up"], count=1, source="bulk")
    assert plain(flow) == {"name": "f", "path": ["up"]}
    case = sj.Scenario(duration="1s", seed=1, warmup="0s", links={"up": link}, flows=[flow])
    assert canonical(case) == canonical(
        {
            "name": "scenario", "duration": "1s", "seed": 1, "warmup": "0s",
            "sample_flows": True, "packet_log": False,
            "links": {"up": {"rate": "1mbit", "delay": "0s", "qdisc": "droptail", "loss": 0}},
            "flows": [{"name": "f", "path": ["up"], "count": 1, "source": "bulk"}],
        }
    )  # fmt: skip


def test_a_value_of_another_type_is_not_a_default() -> None:
    """1 is no flag: Rust refuses it, as in a file."""
    wrong: Any = 0
    with pytest.raises(InputError, match="ecn"):
        sj.CoDel(ecn=wrong)
    assert plain(sj.Bbr(cwnd_gain=2.0)) == {"name": "bbr", "cwnd_gain": 2.0}


def test_help_describes_every_parameter() -> None:
    """The docstring of each class has a section about its own parameters."""
    classes: list[Any] = [sj.Link, sj.Flow, sj.Change, sj.Scenario, sj.tcp.TcpParameters]
    classes += [cls for _, cls in CLASSES]
    for cls in classes:
        own = [name for name in vars(cls).get("__annotations__", {}) if name[0] != "_"]
        described = re.findall(r"^(\w+) : \S", inspect.getdoc(cls) or "", flags=re.MULTILINE)
        assert described == own, cls
    assert "Buffer size, in bytes or packets" in (sj.Red.__doc__ or "")
