"""Parameters are checked where they are written, by the check of the scenario."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import sojourn as sj
from sojourn import _sojourn
from sojourn.scenario.draft import Draft

KINDS = {"qdisc": "disciplines", "tcp": "tcp", "source": "sources"}

PLACES = {"qdisc": "links.up.qdisc", "tcp": "flows.f.tcp", "source": "flows.f.source"}

WRONG = ["banana", "", "-1", True, -1, 2.5, 1e300, "1 parsec", ["1p", "banana"]]


def parameters() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield every parameter of every class, with the key of its class in a scenario."""
    tables = json.loads(_sojourn.specs())
    for key, kind in KINDS.items():
        module = getattr(sj, key)
        by_tag = {c.__struct_config__.tag: c for c in (getattr(module, n) for n in module.__all__)}
        for spec in [*tables[kind], *(tables["presets"] if key == "tcp" else [])]:
            for row in spec["params"]:
                if row["kind"] != "list of numbers":  # columns, validated with their scenario
                    yield key, by_tag[spec["name"]], row


ALL = list(parameters())


def values(row: dict[str, Any]) -> list[Any]:
    """Return values at, below and above the bounds, and of the wrong kind."""
    values: list[Any] = []
    for bound in re.split(r" to | or more", row["range"] or ""):
        if match := re.fullmatch(r"(-?[\d.]+(?:e-?\d+)?)(\D*)", bound):
            number, unit = float(match[1]), match[2]
            near = [number, number - 1, number + 1, number / 10, number * 10]
            values += [bound, *(f"{x:.17g}{unit}" for x in near)]
            values += [] if unit else near
    return [*values, row["value"], *WRONG]


def refusal(key: str, part: Any) -> str | None:
    """Return what a scenario says of a parameter of the part `part`, without its place.

    None if it says nothing, or something of a whole: a trace without columns, too many flows.
    """
    flow = {"name": "f", "path": ["up"], "return_path": ["down"], "rtt": "10ms", "source": "bulk"}
    link = {"rate": "10mbit"}
    (link if key == "qdisc" else flow)[key] = part
    tree = {"duration": "1s", "links": {"up": link, "down": {"rate": "10mbit"}}, "flows": [flow]}
    try:
        _sojourn.ParsedScenario(Draft.read(tree).to_json()).canonical()
    except sj.InputError as error:
        place, text = PLACES[key] + ".", str(error)
        of_whole = not text.startswith(place) or "flows of" in text
        return None if of_whole else text.removeprefix(place)
    return None


def error_of(make: Any, name: str) -> str | None:
    """Return what `make` raises, without the name of the class."""
    try:
        make()
    except sj.InputError as error:
        return str(error).removeprefix(f"{name}.")
    return None


@pytest.mark.parametrize(
    ("key", "kind", "row"), ALL, ids=[f"{c.__name__}.{row['name']}" for _, c, row in ALL]
)
def test_classes_refuse_what_the_scenario_refuses(key: str, kind: Any, row: dict[str, Any]) -> None:
    """With the same text, at, below and above the bounds of every parameter."""
    tag = str(kind.__struct_config__.tag)
    fields = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    columns = {"time_s": [0.5], "size_bytes": [100]} if kind is sj.source.Trace else {}
    refused = 0
    for value in values(row):
        parameters = columns | {row["name"]: value}
        due = refusal(key, {"name": tag, **parameters})
        typed = {fields[name]: one for name, one in parameters.items()}
        error = error_of(lambda typed=typed: kind(**typed), kind.__name__)
        if error is None and due is not None and key == "qdisc":
            # Parameters that depend on each other and on the link: checked with the link.
            error = error_of(
                lambda typed=typed: sj.Link(rate="10mbit", qdisc=kind(**typed)), "Link"
            )
            error = error and error.removeprefix("qdisc.")
        assert error == due, value
        refused += due is not None
    assert refused > 1


BAD: dict[str, Callable[[], object]] = {
    "CoDel.target: ": lambda: sj.CoDel(target="banana"),
    "CoDel.interval: nan": lambda: sj.CoDel(interval=float("nan")),  # type: ignore[arg-type]
    'Link.rate: "10" has no unit': lambda: sj.Link(rate="10"),
    "Link.qdisc.target: ": lambda: sj.Link(rate="1mbit", qdisc="codel(target=banana)"),
    "Link.qdisc: unknown discipline": lambda: sj.Link(rate="1mbit", qdisc="codle"),
    "Link.loss: 2 ": lambda: sj.Link(rate="1mbit", loss=2),
    "Flow.count: 2000001 is out of range": lambda: sj.Flow(name="f", path=["up"], count=2_000_001),
    "Flow.rtt: ": lambda: sj.Flow(name="f", path=["up"], rtt="5"),
    "Flow.tcp.name: unknown tcp": lambda: sj.Flow(name="f", path=["up"], tcp="cubik"),
    "Transfers.size: ": lambda: sj.Transfers(size="10"),
    "Cubic.packet: ": lambda: sj.Cubic(packet="0B"),
    "Red.gentle: ": lambda: sj.Red(gentle="maybe"),  # type: ignore[arg-type]
    "CoDel.limit: ": lambda: sj.CoDel(limit="1p").replace(limit="x"),
}


@pytest.mark.parametrize("start", BAD)
def test_messages_name_class_and_parameter(start: str) -> None:
    """And come at once, without a scenario."""
    with pytest.raises(sj.InputError, match=re.escape(start)):
        BAD[start]()


def test_a_trace_of_a_link_is_read_with_its_scenario() -> None:
    """A file that does not exist yet can be named."""
    assert sj.Link(rate="1mbit", trace="later.csv").trace == "later.csv"


CLASSES = [getattr(m, n) for m in (sj.qdisc, sj.tcp, sj.source) for n in m.__all__]
CLASSES = [c for c in [*CLASSES, sj.Scenario, sj.Link, sj.Flow, sj.Change] if c.__struct_fields__]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_misspelt_keyword_is_answered_with_the_nearest(kind: Any) -> None:
    """For every field: a swap of its first letters, if that is not nearer to another field."""
    for name in kind.__struct_fields__:
        if len(name) < 4:
            continue
        wrong = name[1] + name[0] + name[2:] + "x" * (name[0] == name[1])
        with pytest.raises(
            TypeError, match=f'^{kind.__name__} has no parameter "{wrong}"'
        ) as caught:
            kind(**{wrong: "1"})
        assert f'did you mean "{name}"?' in str(caught.value)


def test_a_misspelt_keyword_of_replace_is_answered_with_the_nearest() -> None:
    """`replace` checks names as the class does."""
    expected = r'^CoDel has no parameter "targt", did you mean "target"\? \(known: limit, '
    with pytest.raises(TypeError, match=expected):
        sj.CoDel(targt="5ms")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=expected):
        sj.CoDel().replace(targt="5ms")
