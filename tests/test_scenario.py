"""Scenarios as data: Structs, TOML and JSON are stored unchanged and are equivalent."""

import doctest
import json
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import sojourn as sj
from conftest import EXAMPLES, SMALL
from sojourn import _sojourn
from sojourn._util.paths import compared_link
from sojourn._util.plain import plain
from sojourn.scenario import describe
from sojourn.scenario.draft import Draft, canonical
from sojourn.scenario.parsing import read_value

STRUCTS = sj.Scenario(
    name="small",
    duration="3s",
    warmup="1s",
    seed=1,
    links={"up": sj.Link(rate="5mbit", delay="10ms", qdisc=sj.CoDel(limit="100kB", target="5ms"))},
    flows=[
        sj.Flow(
            name="bulk",
            count=2,
            source=sj.Bulk(start="uniform(0s, 500ms)"),
            tcp=sj.NewReno(packet="1500B"),
            path=["up"],
            rtt="30ms",
        ),
        sj.Flow(
            name="short",
            source=sj.Transfers(size="20kB", gap="exponential(100ms)"),
            path=["up"],
            rtt="30ms",
        ),
        sj.Flow(name="call", source=sj.Cbr(rate="64kbit", packet="200B"), path=("up",), rtt="30ms"),
    ],
)
"""The small scenario once more, in Structs."""


def test_structs_toml_and_json_are_one_scenario(small: Path) -> None:
    """The same tree by three ways; objects are written without defaults."""
    tree = Draft.read(small).tree
    file = small.with_suffix(".json")
    file.write_text(Draft.read(tree).to_json())
    assert canonical(STRUCTS) == canonical(tree) == canonical(Draft.read(file))
    del tree["seed"], tree["links"]["up"]["qdisc"]["target"]
    del tree["flows"][0]["tcp"]["packet"]
    tree["flows"][2]["source"] = {"name": "cbr"}
    assert plain(STRUCTS) == tree


def test_structs_keep_their_values() -> None:
    """Frozen, keyword-only, stored unchanged, printed without defaults."""
    law = sj.CoDel(target="20ms", ecn=True)
    assert repr(law) == "CoDel(ecn=True, target='20ms')"
    assert plain(law) == {"name": "codel", "ecn": True, "target": "20ms"}
    with pytest.raises(AttributeError):
        law.target = "5ms"  # type: ignore[misc]
    with pytest.raises(TypeError):
        sj.CoDel("20ms")  # type: ignore[call-arg]
    path = ["up"]
    assert sj.Flow(name="a", path=path, source="bulk").path is path
    changed = msgspec.structs.replace(STRUCTS, seed=2)
    assert (changed.seed, STRUCTS.seed) == (2, 1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "nan is not a finite number"),
        (-float("inf"), "-inf is not a finite number"),
        (date(2026, 1, 2), '"2026-01-02" is of type date, which no key takes'),
        (b"x", "\"b'x'\" is of type bytes, which no key takes"),
        (2**64, f"{2**64} is out of range, allowed: up to {2**53}"),
        (-(10**400), f"a number of about 400 digits is out of range, allowed: up to {2**53}"),
    ],
)
def test_values_outside_json_are_refused_with_their_path(value: Any, message: str) -> None:
    """The path is the same as from Rust; flows are known by their names."""
    flow = {"name": "f", "path": ["up"], "source": {"name": "bulk", "start": [0, value]}}
    for tree, path in (
        ({"name": value}, "name"),
        ({"flows": [{"name": "e"}, flow]}, "flows.f.source.start.1"),
        ({"changes": [{"at": "1s"}, {"at": value}]}, "changes.1.at"),
    ):
        with pytest.raises(sj.InputError) as refused:
            Draft.read(tree).to_json()
        assert str(refused.value) == f"{path}: {message}"


def test_plain_converts_numpy_and_text() -> None:
    """Numbers and arrays of NumPy, lone surrogates, keys that are not text."""
    tree = {"a": np.float64(2.5), "b": np.arange(3), "c": "\ud800", 3: None, "d": Path("x")}
    assert plain(tree) == {"a": 2.5, "b": [0, 1, 2], "c": "\\ud800", "3": None, "d": "x"}
    assert plain([sj.CoDel(target="6ms")]) == [{"name": "codel", "target": "6ms"}]


def test_error_of_a_struct_carries_the_path() -> None:
    """The message passes through from Rust unchanged."""
    bad = STRUCTS.replace(links={"up": {"rate": "10mbps"}})
    with pytest.raises(sj.InputError, match=r'^links\.up\.rate: "10mbps" is ambiguous'):
        sj.simulate(bad)


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("up.rate=2mbit", "links.up.rate", "2mbit"),
        ("links.up.rate=2mbit", "links.up.rate", "2mbit"),
        ("bulk.count=7", "flows.0.count", 7),
        ("flows.bulk.count=7", "flows.0.count", 7),
        ("flows.0.count=7", "flows.0.count", 7),
        ("up.qdisc.target=20ms", "links.up.qdisc.target", "20ms"),
        ("up.qdisc.ecn=true", "links.up.qdisc.ecn", True),
        ("seed=9", "seed", 9),
        ("call.path=['up']", "flows.2.path", ["up"]),
        ("short.tcp.packet=500B", "flows.1.tcp", {"name": "cubic", "packet": "500B"}),
        ("up.qdisc=red", "links.up.qdisc", {"name": "red", "limit": "100kB"}),
        ("up.qdisc={name='red'}", "links.up.qdisc", {"name": "red"}),
        ('name="a=b"', "name", "a=b"),
    ],
)
def test_set_changes_a_copy(setting: str, path: str, value: Any, small: Path) -> None:
    """A name of a link or a flow stands for its place; a discipline keeps its buffer."""
    tree = Draft.read(small).tree
    node: Any = Draft.read(tree).set([setting]).tree
    for key in path.split("."):
        node = node[int(key)] if isinstance(node, list) else node[key]
    assert node == value
    assert tree == Draft.read(small).tree


def test_settings_apply_in_order(small: Path) -> None:
    """The later ones see what the earlier ones did."""
    tree = Draft.read(small).set(["up.qdisc=red", "up.qdisc.min_th=9p", "up.qdisc=sfq"]).tree
    assert tree["links"]["up"]["qdisc"] == {"name": "sfq", "limit": "100kB"}


@pytest.mark.parametrize(
    ("text", "value"),
    [("20ms", "20ms"), ("3", 3), ("0.5", 0.5), ("on", "on"), ("true", True), ("a = 1", "a = 1")],
)
def test_values_of_the_command_line(text: str, value: Any) -> None:
    """Valid TOML is parsed, everything else is text."""
    assert read_value(text) == value
    assert read_value("1\nother = 2") == "1\nother = 2"


def test_link_that_is_compared() -> None:
    """The one called bottleneck, else the first of the first flow; or a chosen one."""
    links = {"a": {"rate": "1mbit"}, "b": {"rate": "1mbit"}}
    flows = [{"name": "f", "path": ["b", "a"]}]
    tree: dict[str, Any] = {"duration": "1s", "links": links, "flows": flows}
    assert compared_link(canonical(tree), None) == "b"
    assert compared_link(canonical(tree), "a") == "a"
    tree["links"]["bottleneck"] = {"rate": "1mbit"}
    assert compared_link(canonical(tree), None) == "bottleneck"
    assert Draft.read(tree).with_qdisc("red", "a").tree["links"]["a"]["qdisc"] == "red"
    assert "qdisc" not in tree["links"]["a"]


def test_samples_for_a_figure(small: Path) -> None:
    """A thousand, as whole microseconds; fewer for very many flows; never instead of one given."""
    tree = Draft.read(small).tree
    assert canonical(Draft.read(tree).with_sample())["sample"] == "3ms"
    assert canonical(Draft.read({**tree, "sample": "1s"}).with_sample())["sample"] == "1s"
    many = Draft.read(tree).set(["bulk.count=900000"]).tree
    assert canonical(Draft.read(many).with_sample())["sample"] != "3ms"


def test_small_scenario_is_the_one_of_the_tables() -> None:
    """The text edited by the tests is the scenario of the tables."""
    assert SMALL.count("[[flows]]") == 3


def test_examples_of_docstrings_run() -> None:
    """The examples of the package and of its public functions and classes work."""
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    for name in ("sojourn", *sj.__all__):
        value = sj if name == "sojourn" else getattr(sj, name)
        if not isinstance(value, int):  # a decision
            for example in finder.find(value, name, module=False, globs={}):
                runner.run(example)
    assert runner.tries >= 10
    assert not runner.failures


def burst_of(**link: Any) -> dict[str, Any]:
    """Return a scenario of one link and ten packets that arrive at once."""
    return {
        "duration": "1s",
        "packet_log": True,
        "links": {"up": {"rate": "12mbit", **link}},
        "flows": [
            {
                "name": "f",
                "path": ["up"],
                "source": {"name": "trace", "time_s": [0.0] * 10, "size_bytes": [1500] * 10},
            }
        ],
    }


def test_a_token_bucket_sends_its_burst_at_once() -> None:
    """1500 bytes take 1 ms at 12 Mbit/s; a packet more than the burst leaves at once."""
    left = sj.simulate(burst_of(burst="4500B")).links["up"].packet_log["left_s"]
    assert np.allclose(left, [0, 0, 0, 0, *np.arange(1, 7) / 1000])
    without = sj.simulate(burst_of()).links["up"].packet_log["left_s"]
    assert np.allclose(without, np.arange(10) / 1000)


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ({"burst": 1514}, "links.up.burst: "),
        ({"burst": "2GB"}, "links.up.burst: "),
        (
            {"burst": "1514B", "trace": {"opportunities_ms": [1, 2]}},
            "links.up.burst: cannot be combined with delivery opportunities",
        ),
    ],
)
def test_a_token_bucket_is_a_size_with_a_rate(link: dict[str, Any], message: str) -> None:
    """In bytes up to 1 GB, and not with a trace of opportunities."""
    with pytest.raises(sj.InputError, match=message):
        sj.simulate(burst_of(**link))


def test_a_token_bucket_is_described_and_exported() -> None:
    """In the summary, and as the burst of htb."""
    result = sj.simulate(burst_of(burst="4500B"))
    assert describe.link(result.scenario, "up").startswith("12mbit (bucket of 4500B), 0s")
    lines = sj.tc.export(burst_of(burst="4500B"))
    assert "htb rate 12mbit burst 4500b" in lines


def test_common_slips_have_a_message_of_their_own() -> None:
    """A class in place of an object, one value in place of several, positional arguments."""
    link, flow = sj.Link(rate="1mbit"), sj.Flow(name="f", path=["up"])
    slips: list[tuple[type[Exception], str, Any]] = [
        (sj.InputError, r"Link.qdisc: CoDel is a class, write an object of it: CoDel\(\)",
         lambda: sj.Link(rate="1mbit", qdisc=sj.CoDel)),  # type: ignore[arg-type]
        (sj.InputError, r'Scenario.links: is no mapping .* write \{"up": sj.Link',
         lambda: sj.Scenario(duration="1s", links=link, flows=[flow])),  # type: ignore[arg-type]
        (sj.InputError, r"Scenario.flows: is no list of flows, write \[sj.Flow",
         lambda: sj.Scenario(duration="1s", links={"up": link}, flows=flow)),  # type: ignore[arg-type]
        (sj.InputError, r"Flow.path: is no list of names of links",
         lambda: sj.Flow(name="f", path="up")),
        (TypeError, r"CoDel takes keyword arguments only, like limit=\.\.\.",
         lambda: sj.CoDel("5ms")),  # type: ignore[call-arg]
    ]  # fmt: skip
    for error, text, slip in slips:
        with pytest.raises(error, match=text):
            slip()
    assert sj.qdisc.FqPie(flows=512)
    assert sj.qdisc.Ets(flows=3)


def test_only_the_buffer_of_a_default_discipline_is_described() -> None:
    """Small numbers, too, are compared as numbers."""
    for spec in json.loads(_sojourn.specs())["disciplines"]:
        tree = canonical(
            Draft.read(EXAMPLES / "home-uplink.toml").set(["bottleneck.qdisc=" + spec["name"]])
        )
        text = describe.qdisc(tree["links"]["bottleneck"]["qdisc"])
        assert text == f"{spec['name']} (limit 300kB)"
