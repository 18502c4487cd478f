"""Each rule of `sojourn explain` speaks in a run that has the fault, and not in one without."""

import json
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from conftest import Command
from live_link import link, python, summary_of
from sojourn.explanation.links import BUSY
from sojourn.explanation.live_link import report_in
from support.link_reports import report

GOOD: dict[str, Any] = {
    "duration": "20s",
    "warmup": "5s",
    "links": {"up": {"rate": "10mbit", "qdisc": "fq_codel"}},
    "flows": [{"name": "bulk", "count": 2, "path": ["up"], "rtt": "40ms"}],
}
"""A run of which only the bottleneck is said."""


def bulk(name: str, **keys: Any) -> dict[str, Any]:
    """Return an endless flow over the link."""
    return {"name": name, "path": ["up"], "rtt": "40ms", **keys}


def over(qdisc: Any, rate: str = "10mbit") -> dict[str, Any]:
    """Return the links of a run with another discipline."""
    return {"up": {"rate": rate, "qdisc": qdisc}}


ECN = {"name": "cubic", "ecn": True}

WINDOW = {"name": "newreno", "receive_window": "1p"}

BURST = {"name": "onoff", "rate": "15mbit", "on": "60ms", "off": "8s"}

UDP = {"name": "udp", "source": "cbr(rate=9mbit, packet=1500B)", "path": ["up"]}

FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "no queue": ({"flows": [bulk("one", tcp=WINDOW)]}, "links.up.sojourn_max_s", "not a bottle"),
    "standing queue": (
        {"links": over("droptail")}, "links.up.sojourn_p50_s", "half of the packets waited"
    ),
    "bursts": (
        {"flows": [bulk("b", source=BURST), bulk("c", source="cbr(rate=1mbit, packet=500B)")],
         "links": over("droptail")},
        "links.up.sojourn_p99_s", "came in bursts",
    ),
    "sender": (
        {"flows": [bulk("one"), UDP], "links": over("droptail"), "packet_log": True},
        "links.up.packet_log, share of udp while the queue grew", "udp caused most of it",
    ),
    "ACKs delayed": (
        {"links": over("droptail") | {"back": {"rate": "10mbit", "qdisc": "droptail"}},
         "flows": [bulk("one", return_path=["back"]), bulk("two", path=["back"])]},
        "links.back.sojourn_p50_s", "ACKs of one waited in the queue of link back behind the data",
    ),
    "unused": (
        {"flows": [bulk("one", tcp="newreno")], "links": over({"name": "droptail", "limit": "3p"})},
        "links.up.utilisation", "was idle",
    ),
    "random loss": (
        {"flows": [bulk("one", tcp="newreno")],
         "links": {"up": {"rate": "10mbit", "loss": 0.02, "qdisc": "droptail"}}},
        "links.up.lost_on_wire_packets", "were lost on the wire",
    ),
    "unfair": (
        {"flows": [bulk("mixed", count=6, rtt="exponential(100ms)", tcp="newreno")],
         "links": over({"name": "droptail", "limit": "30p"}), "duration": "40s"},
        "groups.mixed.jain", "Jain's index",
    ),
    "unfair groups": (
        {"flows": [bulk("near", rtt="5ms"), bulk("far", rtt="400ms")],
         "links": over({"name": "droptail", "limit": "30p"})},
        "groups.near.goodput_bps / number of flows", "their round-trip times are 5.00 ms and 400",
    ),
    "timeouts": (
        {"flows": [bulk("many", count=40)], "links": over({"name": "droptail", "limit": "5p"})},
        "groups.many.timeouts", "retransmission timeouts and sent",
    ),
    "overflow": (
        {"links": over({"name": "pie", "limit": "10p"})}, "links.up.dropped_full_packets",
        "not decisions of pie",
    ),
    "no delay": (
        {"flows": [{"name": "one", "path": ["up"]}]}, "flows.rtt_s", "set rtt of the flows, or"
    ),
    "no marks": (
        {"flows": [bulk("one", tcp=ECN, rtt="5ms")],
         "links": over({"name": "codel", "ecn": True, "limit": "3p"})},
        "links.up.marked_packets", "marked nothing, although ECN is on there and in one",
    ),
    "target below a packet": (
        {"links": over({"name": "codel", "target": "1ms"}, "1mbit")}, "links.up.qdisc.target",
        "below the time of one packet at 1.00 mbit (12.0 ms)",
    ),
    "target above the RTT": (
        {"flows": [bulk("one", rtt="1ms")]}, "flows.rtt_s", "may add more delay than the path has"
    ),
    "interval below the RTT": (
        {"links": over({"name": "codel", "interval": "20ms"})}, "links.up.qdisc.interval",
        "shorter than the longest round-trip time (40.0 ms)",
    ),
    "interval far above the RTT": (
        {"flows": [bulk("one", rtt="8ms")]}, "links.up.qdisc.interval",
        "is 12 times the longest round-trip time (8.00 ms)",
    ),
    "low thresholds": (
        {"links": over("red", "40mbit")}, "links.up.qdisc.max_th", "less than a quarter"
    ),
    "high thresholds": (
        {"links": over({"name": "red", "min_th": "300p", "max_th": "900p"})},
        "links.up.qdisc.min_th", "min_th of red at up (300p) is 360 ms at 10.0 mbit, 9 times",
    ),
    "threshold above the buffer": (
        {"links": over({"name": "red", "max_th": "60p", "limit": "50p"})},
        "links.up.qdisc.limit", "the buffer overflows first",
    ),
    "small buffer": (
        {"links": over({"name": "droptail", "limit": "3p"})}, "links.up.qdisc.limit",
        "less than a tenth of the longest round-trip time",
    ),
    "large buffer": (
        {"links": over("droptail")}, "links.up.qdisc.limit", "30 times the longest round-trip time"
    ),
    "no warm-up": ({"warmup": "0s"}, "scenario.warmup", "slow start is part of every mean"),
    "short warm-up": ({"warmup": "300ms"}, "scenario.warmup", "shorter than ten round-trip times"),
    "scenario": (
        {"links": over({"name": "codel", "ecn": True})}, "links.up.qdisc.ecn",
        "no flow is ECN-capable",
    ),
}  # fmt: skip
"""Changes of the good run by the rule that they make speak, a path of its evidence, and words."""


@pytest.mark.filterwarnings("ignore::sojourn.ScenarioWarning")
@pytest.mark.parametrize("rule", FAULTS)
def test_a_rule_speaks_with_its_metric(rule: str) -> None:
    """One sentence, with the value that it rests on."""
    changes, path, words = FAULTS[rule]
    findings = [one for one in sj.explain(sj.simulate(GOOD | changes)) if one.rule == rule]
    assert findings
    assert words in findings[0].text
    assert path in findings[0].evidence
    assert findings[0].kind == ("fact" if rule == "sender" else "unusual")


def test_acks_wait_only_in_a_shared_queue() -> None:
    """With a queue per flow, the delay of the data says nothing about the ACKs."""
    tree = GOOD | FAULTS["ACKs delayed"][0]
    tree["links"] = tree["links"] | {"back": {"rate": "10mbit", "qdisc": "fq_codel(target=50ms)"}}
    rules = [one.rule for one in sj.explain(sj.simulate(tree))]
    assert "standing queue" in rules
    assert "ACKs delayed" not in rules


def test_every_rule_is_silent_in_a_good_run() -> None:
    """Also with a packet log, samples, and ECN that is used; only the bottleneck is named."""
    marked = GOOD | {
        "flows": [bulk("bulk", count=2, tcp=ECN)],
        "links": over({"name": "fq_codel", "ecn": True}),
    }
    for tree in (GOOD, GOOD | {"packet_log": True, "sample": "20ms"}, marked):
        assert [one.rule for one in sj.explain(sj.simulate(tree))] == ["bottleneck"]


def test_another_bottleneck_is_named() -> None:
    """The expected one had no queue."""
    links = {"bottleneck": {"rate": "50mbit"}, "slow": {"rate": "5mbit", "qdisc": "droptail"}}
    flow = bulk("bulk", path=["slow", "bottleneck"])
    findings = {
        f.rule: f for f in sj.explain(sj.simulate(GOOD | {"links": links, "flows": [flow]}))
    }
    assert "the bottleneck was link slow" in findings["no queue"].text


def rules(tree: dict[str, Any]) -> list[str]:
    """Return the names of the rules that speak about a report."""
    return [one.rule for one in sj.explain(tree)]


def test_a_live_link_without_faults_has_nothing_unusual() -> None:
    """Only the bottleneck is named."""
    assert rules(report()) == ["bottleneck"]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"sojourn_p50_s": 0.05}, "standing queue"),
        ({"sojourn_p50_s": 0.0001}, "bursts"),
        ({"dropped_packets": 40, "dropped_full_packets": 30}, "overflow"),
        ({"marked_packets": 0}, "no marks"),
    ],
)
def test_rules_speak_about_a_live_link(changes: dict[str, Any], rule: str) -> None:
    """The same rules, on the numbers of the live link."""
    assert rules(report(**changes)) == ["bottleneck", rule]


def test_a_live_link_that_was_not_the_bottleneck() -> None:
    """No queue; parameters of a link without load are not judged."""
    idle = report(utilisation=0.3, sojourn_max_s=0.001, sojourn_p50_s=0.0, sojourn_p99_s=0.001)
    assert rules(idle) == ["no queue"]
    nothing = report(arrived_packets=0)
    nothing["links"]["down"]["arrived_packets"] = 0
    assert rules(nothing) == ["no packets"]


def test_parameters_and_warnings_of_a_live_link() -> None:
    """The round-trip time is at least the delay of both directions."""
    tree = report()
    qdisc = {**tree["spec"]["up"]["qdisc"], "interval": "10ms"}
    tree["spec"]["up"] = {**tree["spec"]["up"], "qdisc": qdisc}
    tree["warnings"] = ["packets were late"]
    findings = {one.rule: one for one in sj.explain(tree)}
    assert set(findings) == {"bottleneck", "interval below the RTT", "accuracy"}
    assert findings["interval below the RTT"].evidence["spec.up.delay + spec.down.delay"] == 0.04
    assert findings["accuracy"].text == "Packets were late."


def test_the_command_reads_the_output_of_a_link(tmp_path: Path, sojourn: Command) -> None:
    """After the output of the command of the link; other files are scenarios."""
    file = tmp_path / "link.txt"
    file.write_text("PING 198.18.0.1\n{ not this }\n" + json.dumps(report(), indent=2) + "\n")
    code, out, err = sojourn("explain", file)
    assert (code, err) == (0, "")
    assert "Link up was a bottleneck: it sent 98.0 % of the time." in out
    assert "Nothing unusual." in out
    code, out, err = sojourn("explain", file, "--qdisc", "codel")
    assert (code, err.count("\n")) == (2, 1)
    assert "not for a report of sojourn link" in err
    tree = report()
    del tree["links"]["up"]["utilisation"]
    file.write_text(json.dumps(tree, indent=2))
    code, out, err = sojourn("explain", file)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{file}: links.up.utilisation: is missing" in err
    scenario = tmp_path / "case.json"
    scenario.write_text(json.dumps(GOOD))
    assert report_in(scenario) is None
    assert sojourn("explain", scenario)[0] == 0


SEND = """
import socket, sys, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    for _ in range(300):
        s.sendto(bytes(1200), ("198.18.0.1", 9))
        time.sleep(0.002)
"""


@pytest.mark.live
def test_a_live_link_is_explained() -> None:
    """UDP at 5 Mbit/s makes a standing queue on 1 Mbit/s; a bottleneck, if the start was quick."""
    tree = summary_of(link(["--rate", "1mbit", "--json"], python(SEND)))
    findings = {one.rule: one.evidence for one in sj.explain(tree)}
    assert findings["standing queue"]["links.up.sojourn_p50_s"] > 0.05
    utilisation = tree["links"]["up"]["utilisation"]
    assert ("bottleneck" in findings) == (utilisation >= BUSY)
    assert utilisation < BUSY or findings["bottleneck"]["links.up.utilisation"] == utilisation


@pytest.mark.live(tun=True)
def test_a_scenario_on_real_packets_is_explained(tmp_path: Path, sojourn: Command) -> None:
    """From its folder, with the rules of any result."""
    tree = GOOD | {"duration": "3s", "warmup": "1s", "links": over("droptail")}
    sj.emulate(tree).save(tmp_path / "out")
    code, out, _ = sojourn("explain", tmp_path / "out")
    assert code == 0
    assert "Link up had a standing queue" in out
    assert "drop-tail fills it" in out
