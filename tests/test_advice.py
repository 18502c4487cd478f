"""Warnings about scenarios that are valid but probably not what the user meant."""

import json
import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from conftest import EXAMPLES, SMALL, Command
from sojourn import _sojourn
from sojourn.scenario.advice import MOST, warnings_of
from sojourn.scenario.draft import Draft, canonical

CASES: dict[str, tuple[list[str], str]] = {
    "prio without classes": (
        ["up.qdisc=prio"],
        "links.up.qdisc: prio takes the band from the DSCP of a packet, and all flows have band 1 "
        "of its priomap: they share one FIFO of 100kB; set `dscp` of the flows, or `priomap`: an "
        "empty `priomap` makes the class the band (0 is served first)",
    ),
    "EF with the map of Linux": (
        ["up.qdisc=prio", "call.dscp=EF"],
        "links.up.qdisc: prio takes the band from the DSCP of a packet, and all flows have band 1",
    ),
    "numbers of bands with the map of Linux": (
        ["up.qdisc=prio", "call.class=0", "bulk.class=1", "short.class=2"],
        "links.up.qdisc.priomap: classes are DSCPs here, and 0, 1, 2 have 2 bands; an empty "
        "`priomap` makes the class the band",
    ),
    "a shaper above the link": (
        ["up.qdisc=tc: cake bandwidth 2gbit"],
        "links.up.qdisc.bandwidth: 2gbit is above the rate of the link, ",
    ),
    "a token bucket above the link": (
        ["up.qdisc=tbf(rate=2gbit)"],
        "links.up.qdisc.rate: 2gbit is above the rate of the link, ",
    ),
    "a class tree above the link": (
        ["up.qdisc=htb(rates='2gbit 1mbit')"],
        "links.up.qdisc.rates: 2gbit is above the rate of the link, ",
    ),
    "a step of hred without overflow": (
        ["up.qdisc=hred(d1=0.01)"],
        'links.up.qdisc.d1: has no effect without overflow = "step"; set it as well',
    ),
    "an excess of hred with another correction": (
        ["up.qdisc=hred(excess=2, overflow=step)"],
        'links.up.qdisc.excess: has no effect without overflow = "reset"',
    ),
    "priorities of gred without grio": (
        ["up.qdisc=gred(prio='1 2 3')"],
        "links.up.qdisc.prio: has no effect without grio = true",
    ),
    "a target without a unit in tc": (
        ["up.qdisc=tc: fq_codel target 5"],
        "links.up.qdisc.target: 5us at 5mbit is less than any queue has; write the unit, since a "
        "number alone is in microseconds",
    ),
    "a timeout shorter than delayed acks": (
        ["bulk.tcp.rto_min=10ms"],
        "flows.bulk.tcp.rto_min: 10ms is shorter than the receiver delays an ack, 40ms, so "
        'segments time out without a loss; set `delayed_ack_timeout = "1ms"`',
    ),
    "BBR without RACK at random loss": (
        ["up.loss=3%", "bulk.tcp=bbr(profile=rfc)"],
        "flows.bulk.tcp.rack: bbr without RACK waits for a timeout when a retransmission is lost, "
        "and link up loses 3.0% at random, so its goodput is far below the goodput",
    ),
    "BBRv3 without RACK at less loss": (
        ["up.loss=0.3%", "bulk.tcp=bbr3(rack=false)"],
        "flows.bulk.tcp.rack: bbr3 without RACK waits for a timeout",
    ),
    "windows that cannot fill the link": (
        [
            "flows.1.path=['side']",
            "flows.2.path=['side']",
            "links.side={ rate = '1gbit' }",
            "bulk.rtt=100ms",
            "bulk.tcp.receive_window=10p",
        ],
        "flows.bulk.tcp.receive_window: 10p is less than the bandwidth-delay product",
    ),
    "a clock coarser than the path": (
        ["up.delay=0s", "bulk.rtt=2ms", "bulk.tcp=reno(profile=ns2)"],
        "flows.bulk.tcp.tick: 10ms is more than 4 times the round-trip time, 2.00 ms, so timeouts",
    ),
    "prio without a map": (
        ["up.qdisc=prio(priomap=[])"],
        "links.up.qdisc: prio has a queue per class, and all flows are of class 0: they share one "
        "FIFO of 100kB; set `class` of the flows (0 is served first)",
    ),
    "classes of another scheduler": (
        ["up.qdisc=drr(by=class)", "bulk.class=5", "short.class=5", "call.class=5"],
        "links.up.qdisc: drr has a queue per class, and all flows are of class 5",
    ),
    "a class too many": (
        ["up.qdisc=drr(by=class, flows=3)", "bulk.class=3", "call.class=1"],
        "links.up.qdisc.flows: class 3 of bulk has queue 0, since there are 3 queues; set "
        "flows = 4 or more",
    ),
    "a DSCP without a map": (
        ["up.qdisc=ets", "call.dscp=EF", "bulk.class=1"],
        "links.up.qdisc.flows: class 46 of call has queue 6, since there are 8 queues; set "
        "`class` from 0 to 7, or a `priomap` for DSCPs",
    ),
    "marks that nobody can take": (
        ["up.qdisc=red(ecn=true)"],
        "links.up.qdisc.ecn: no flow is ECN-capable, so packets are dropped, not marked",
    ),
    "marks that nobody makes": (
        ["bulk.tcp=dctcp"],
        "flows.bulk.tcp: dctcp is ECN-capable, and no link of its path marks",
    ),
    "datagrams that nobody marks": (
        ["call.ecn=ect1"],
        "flows.call.ecn: its packets are ECN-capable, and no link of its path marks",
    ),
    "XCP's routers without its senders": (
        ["up.qdisc=xcp"],
        "links.up.qdisc: no flow has TCP xcp, so it is a drop-tail buffer; set `tcp",
    ),
    "XCP's senders without its routers": (
        ["bulk.tcp=xcp"],
        "flows.bulk.tcp: no link of its path has the discipline xcp, so its window grows as",
    ),
    "XCP's routers elsewhere": (
        [
            "links.side={ rate = '9mbit', qdisc = 'xcp' }",
            "bulk.path=['side', 'up']",
            "bulk.tcp=xcp",
        ],
        "flows.bulk.tcp: link up, the slowest of its path, has no discipline xcp, so routers of",
    ),
    "XCP's routers at another rate": (
        [
            "up.qdisc=xcp",
            "bulk.tcp=xcp",
            "changes=[{ at = '2s', links = { up = { rate = '1mbit' } } }]",
        ],
        "links.up.qdisc: xcp computes its feedback with the rate that the link has at the start",
    ),
    "RIO without packets in profile": (
        ["up.qdisc=rio(in_class=3)"],
        "links.up.qdisc.in_class: no flow has class 3, so it is red with min_th and max_th",
    ),
    "a buffer below a packet": (
        ["up.qdisc.limit=1000B"],
        "links.up.qdisc.limit: 1kB holds no packet of bulk (1500B), so all of them are dropped",
    ),
    "more packets than can be simulated soon": (
        ["up.rate=100tbit"],
        "links.up.rate: bulk flows can send 2e+10 packets at 100000gbit in 3.00 s, and some",
    ),
    "a flow that never starts": (
        ["call.source.start=uniform(3s, 9s)"],
        "flows.call.source.start: it never starts, as the run ends at 3s",
    ),
    "a flow that joins and starts too late": (
        ["changes=[{ at = '2s', join = ['call'] }]", "call.source.start=1500ms"],
        "flows.call.source.start: it never starts",
    ),
    "a flow that is not measured": (
        ["call.source.stop=1s"],
        "flows.call.source.stop: it stops before the measurement begins at 1s",
    ),
    "a flow that leaves too early": (
        ["changes=[{ at = '500ms', leave = ['call'] }]"],
        "flows.call.source.stop: it stops before the measurement begins at 1s",
    ),
}

QUIET = {
    "as it is": [],
    "XCP": ["up.qdisc=xcp", "bulk.tcp=xcp"],
    "RIO": ["up.qdisc=rio", "call.class=1"],
    "classes": [
        "up.qdisc=prio(priomap=[])",
        "call.class=0",
        "bulk.class=1",
        "short.class=2",
    ],
    "DSCPs": ["up.qdisc=prio", "call.dscp=AF42", "bulk.dscp=AF11"],
    "EF first": ["up.qdisc=prio(priomap=1 1 1 1 0)", "call.dscp=EF"],
    "one flow of a class": ["up.qdisc=prio(priomap=[])", "bulk.class=1"],
    "marks by default": ["up.qdisc=fq_codel"],
    "marks that are taken": ["up.qdisc=red(ecn=true)", "short.tcp=cubic(ecn=true)"],
    "an unresponsive flow too": ["up.qdisc=fq_codel", "bulk.tcp=dctcp"],
    "BBR without RACK at little loss": ["up.loss=1%", "bulk.tcp=bbr(profile=rfc)"],
    "BBR with RACK": ["up.loss=5%", "bulk.tcp=bbr"],
    "other TCPs at random loss": ["up.loss=5%", "bulk.tcp=cubic(profile=rfc)"],
    "windows that fill the link together": ["bulk.count=50", "bulk.tcp.receive_window=10p"],
    "a short transfer in a small window": ["short.tcp=cubic(receive_window=10p)"],
    "a clock finer than the path": ["bulk.tcp=reno(profile=ns2)", "bulk.rtt=100ms"],
    "a clock somewhat coarser than the path": [
        "up.delay=0s",
        "bulk.rtt=3ms",
        "bulk.tcp=reno(profile=ns2)",
    ],
    "a fine clock in ns2": ["bulk.rtt=20ms", "bulk.tcp=reno(profile=ns2, tick=1ms)"],
    "a clock coarser than the path in rfc": [
        "bulk.rtt=5ms",
        "up.delay=0s",
        "bulk.tcp=sack(tick=10ms)",
    ],
    "a shaper at the rate of the link": ["up.qdisc=tc: cake bandwidth 2mbit"],
    "a shaper with a margin": ["up.qdisc=htb(rates='1mbit 500kbit')"],
    "a shaper of a varying link": ["up.qdisc=cake"],
    "a short target on a fast link": ["up.rate=1gbit", "up.qdisc=codel(target=50us)"],
    "a short target of a tenth of a millisecond": ["up.qdisc=codel(target=100us)"],
    "a buffer of packets": ["up.qdisc.limit=1p"],
    "a buffer of one packet": ["up.qdisc.limit=1500B"],
    "a random start": ["call.source.start=exponential(100s)"],
    "a stop in time": ["call.source.stop=2s"],
    "flows that are all absent": [f"{flow}.source.start=9s" for flow in ("bulk", "short", "call")],
    "a link without flows": ["links.down={ rate = '1mbit' }"],
    "a link of acks": ["links.down={ rate = '1mbit' }", "bulk.return_path=['down']"],
    "links by number": [
        "links.own-0={ rate = '1mbit' }",
        "links.own-1={ rate = '1mbit' }",
        "bulk.path=['own-{i}', 'up']",
    ],
}


def changed(settings: list[str], small: Path) -> Mapping[str, Any]:
    """Return the canonical small scenario with changes."""
    tree: dict[str, Any] = canonical(Draft.read(small).set(settings))
    return tree


@pytest.mark.parametrize("case", CASES)
def test_improbable_settings_give_a_warning(case: str, small: Path) -> None:
    """Each gives one warning, with its path and a remedy."""
    settings, text = CASES[case]
    warnings = warnings_of(changed(settings, small))
    mine = [one for one in warnings if one.startswith(text.partition(":")[0] + ":")]
    assert len(mine) >= 1
    assert mine[0].startswith(text)
    for one in warnings:
        assert len(one) < 250
        assert "\n" not in one


@pytest.mark.parametrize("case", QUIET)
def test_common_settings_give_no_warning(case: str, small: Path) -> None:
    """Frequent false warnings would teach users to ignore them."""
    assert warnings_of(changed(QUIET[case], small)) == []


def test_examples_give_no_warnings() -> None:
    """No warning for the examples, nor with any discipline at its defaults but four."""
    needy = {"ets", "prio", "rio", "xcp"}  # they need classes, or the senders of XCP
    files = [path for path in EXAMPLES.glob("*.toml") if path.name != "sweep.toml"]
    assert len(files) > 4
    for path in files:
        assert warnings_of(canonical(Draft.read(path))) == [], path
    for spec in json.loads(_sojourn.specs())["disciplines"]:
        tree = (
            Draft.read(EXAMPLES / "home-uplink.toml").set([f"bottleneck.qdisc={spec['name']}"]).tree
        )
        warnings = warnings_of(canonical(tree))
        assert len(warnings) == (spec["name"] in needy), (spec["name"], warnings)


def test_a_result_has_its_warnings(small: Path, tmp_path: Path) -> None:
    """Warnings are in Python, in JSON, and in a stored result; none gives no entry."""
    quiet = sj.simulate(small)
    assert quiet.warnings == []
    assert "warnings" not in quiet.summary
    with pytest.warns(sj.ScenarioWarning, match="prio takes the band") as caught:
        result = sj.simulate(Draft.read(small).set(["up.qdisc=prio"]))
    assert [Path(one.filename).name for one in caught] == ["test_advice.py"]
    assert result.warnings == result.summary["warnings"] == [str(caught[0].message)]
    result.save(tmp_path / "out")
    back = sj.load_result(tmp_path / "out")
    assert back.warnings == result.warnings
    assert back.summary == result.summary


def test_each_text_is_shown_once(small: Path) -> None:
    """Equal warnings of several seeds, variants and points are merged; many are cut."""
    with pytest.warns(sj.ScenarioWarning) as caught:
        sj.compare(small, ["prio", "codel", "prio(drop=tail)"], seeds=3)
    assert len(caught) == 1
    with pytest.warns(sj.ScenarioWarning) as caught:
        sj.sweep(small, {"up.qdisc": ["codel", "prio"], "bulk.count": [1, 2]}, seeds=2)
    assert len(caught) == 1
    flow = {"path": ["up"], "tcp": {"name": "cubic", "ecn": True}}
    flows = [{"name": f"f{n}", **flow} for n in range(MOST + 3)]
    with pytest.warns(sj.ScenarioWarning) as caught:
        sj.simulate({**Draft.read(small).tree, "flows": flows})
    assert len(caught) == MOST + 1
    assert str(caught[-1].message) == "3 more warnings about the scenario"


def test_the_command_warns_on_standard_error(small: Path, sojourn: Command) -> None:
    """Standard error has one line; standard output is unchanged, and JSON has it."""
    for command in (["run", small], ["compare", small, "--seeds", "2"]):
        code, out, err = sojourn(*command, "--qdisc", "prio", "--json")
        assert code == 0
        assert err.startswith("sojourn: warning: links.up.qdisc: prio takes the band")
        assert err.count("\n") == 1
        summary = json.loads(out)
        one = summary if command[0] == "run" else summary["runs"]["prio"][0]
        assert one["warnings"] == [err.removeprefix("sojourn: warning: ").rstrip()]


def test_warnings_never_become_errors(small: Path) -> None:
    """`python -W error -m sojourn` still runs the scenario."""
    small.write_text(SMALL.replace('name = "codel", limit = "100kB", target = "5ms"',
                                   'name = "prio"'))  # fmt: skip
    command = [sys.executable, "-W", "error::UserWarning", "-m", "sojourn", "run", str(small)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.count("\n") == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sj.ScenarioWarning)
        assert sj.simulate(small).warnings


def test_seeds_that_change_nothing_give_a_warning() -> None:
    """Sources that start at 0 s, and disciplines without random numbers."""
    link = sj.Link(rate="2mbit", delay="10ms")
    flow = sj.Flow(name="bulk", path=["up"], rtt="20ms", tcp=sj.NewReno())
    case = sj.Scenario(duration="3s", links={"up": link}, flows=[flow])
    equal = "^seed: 2 seeds have identical results: nothing is random, so intervals have no width"
    with pytest.warns(sj.ScenarioWarning, match=equal) as caught:
        sj.compare(case, "droptail,codel", seeds=2)
    assert caught[0].filename == __file__
    with pytest.warns(sj.ScenarioWarning, match=equal):
        sj.sweep(case, {"up.rate": ["1mbit", "2mbit"]}, seeds=2)
    some = "identical results at 1 point of 2, like up.qdisc = droptail: nothing is random"
    with pytest.warns(sj.ScenarioWarning, match=some):
        sj.sweep(case, {"up.qdisc": ["droptail", "red"]}, seeds=2)
    sj.sweep(case, {"up.qdisc": ["droptail", "codel"]})  # one seed says nothing
    varied = flow.replace(source=sj.Bulk(start="uniform(0s, 1s)"))
    sj.compare(case.replace(flows=[varied]), "droptail,codel", seeds=2)


@pytest.mark.parametrize(
    ("children", "marks"),
    [
        (["droptail", "step_mark(k=30p)"], True),
        (["red(ecn=true)", "droptail"], True),
        (["drr(flows=2, children=[droptail, step_mark])"], True),
        (["droptail", "codel"], False),
        (["red(ecn=false)"], False),
    ],
)
def test_a_discipline_inside_another_may_mark(children: list[str], marks: bool) -> None:
    """An ECN-capable flow over such a discipline gives no warning."""
    tree = sj.qdisc.Drr(flows=2, by="class", children=children)
    link = sj.Link(rate="10mbit", delay="1ms", qdisc=tree)
    flows = [sj.Flow(name=f"f{i}", path=["up"], class_=i, tcp="dctcp") for i in range(2)]
    texts = warnings_of(canonical(sj.Scenario(duration="1s", links={"up": link}, flows=flows)))
    assert any("no link of its path marks" in text for text in texts) is not marks


@pytest.mark.parametrize(("ecn", "marks"), [(True, True), (False, False)])
def test_random_losses_may_mark(ecn: bool, marks: bool) -> None:
    """A link whose losses mark packets gives no warning either."""
    link = sj.Link(rate="10mbit", loss={"probability": 0.01, "ecn": ecn})
    flow = sj.Flow(name="f", path=["up"], tcp="dctcp")
    texts = warnings_of(canonical(sj.Scenario(duration="1s", links={"up": link}, flows=[flow])))
    assert any("no link of its path marks" in text for text in texts) is not marks
