"""`sojourn explain`: sentences with evidence, and none without."""

import json
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from conftest import Command
from sojourn._util.units import share
from sojourn.explanation import rules


def run(**changes: Any) -> sj.Result:
    """Return a run of a link of 10 Mbit/s with two bulk flows; `changes` are top-level keys."""
    tree: dict[str, Any] = {
        "duration": "20s",
        "warmup": "5s",
        "links": {"up": {"rate": "10mbit", "qdisc": "fq_codel"}},
        "flows": [{"name": "bulk", "count": 2, "path": ["up"], "rtt": "40ms"}],
    }
    return sj.simulate(tree | changes)


def findings(result: sj.Result) -> dict[str, sj.Finding]:
    """Return the findings by rule."""
    return {one.rule: one for one in sj.explain(result)}


def test_a_good_run_has_nothing_unusual(sojourn: Command, tmp_path: Path) -> None:
    """Only the bottleneck is named."""
    result = run()
    assert {one.kind for one in sj.explain(result)} == {"fact"}
    result.save(tmp_path / "out")
    assert "Nothing unusual." in sojourn("explain", tmp_path / "out")[1]


def test_evidence_is_the_metric_of_the_result() -> None:
    """The paths of links lead to the values."""
    result = sj.simulate({"named": "home_uplink"})
    for one in sj.explain(result):
        assert one.evidence, one.rule
        assert one.text.endswith(".")
        for path, value in one.evidence.items():
            kind, _, rest = path.partition(".")
            name, _, what = rest.partition(".")
            if kind == "links" and what in result.links.get(name, {}):
                assert result.links[name][what] == value


def test_a_standing_queue_and_its_sender() -> None:
    """Drop-tail with a buffer of 240 ms; the uploads send most."""
    by_rule = findings(sj.simulate("home_uplink"))
    assert "half of the packets waited" in by_rule["standing queue"].text
    assert by_rule["sender"].text.startswith("upload sent 9")
    assert "large buffer" in by_rule
    assert "standing queue" not in findings(sj.simulate(sj.named("home_uplink", qdisc="fq_codel")))


def test_the_packet_log_tells_who_caused_the_delay() -> None:
    """Bursts make the queue grow, although the other flow sends more and fills more of it."""
    burst = {"name": "onoff", "rate": "100mbit", "on": "24ms", "off": "776ms"}
    flows = [
        {"name": "burst", "source": {**burst, "packet": "1500B"}, "path": ["up"]},
        {"name": "smooth", "source": "cbr(rate=6mbit, packet=1500B)", "path": ["up"]},
    ]
    by_rule = findings(run(flows=flows, links={"up": {"rate": "10mbit"}}, packet_log=True))
    assert "burst caused most of it" in by_rule["sender"].text
    without = findings(run(flows=flows, links={"up": {"rate": "10mbit"}}))
    assert "smooth sent" in without["sender"].text
    assert "`packet_log = true` would tell" in without["sender"].text


@pytest.mark.filterwarnings("ignore::sojourn.ScenarioWarning")  # the window
def test_a_bottleneck_elsewhere_is_noticed() -> None:
    """A flow limited by its window leaves no queue."""
    tcp = {"name": "newreno", "receive_window": "1p"}
    flow = {"name": "slow", "path": ["up"], "rtt": "40ms", "tcp": tcp}
    by_rule = findings(run(flows=[flow]))
    assert "Link up was not a bottleneck" in by_rule["no queue"].text
    assert "bottleneck" not in by_rule


def test_bursts_are_told_from_a_standing_queue() -> None:
    """A short overload now and then."""
    source = {"name": "onoff", "rate": "15mbit", "on": "60ms", "off": "8s"}
    calm = {"name": "cbr", "rate": "1mbit", "packet": "500B"}
    flows = [{"name": n, "source": s, "path": ["up"]} for n, s in (("b", source), ("c", calm))]
    by_rule = findings(run(flows=flows, links={"up": {"rate": "10mbit"}}))
    assert "bursts" in by_rule
    assert "standing queue" not in by_rule


def test_unfair_shares_name_the_round_trip_times() -> None:
    """Flows of one group at very different distances under drop-tail."""
    flow = {"name": "mixed", "count": 6, "path": ["up"], "rtt": "exponential(100ms)"}
    flow |= {"tcp": "newreno"}
    links = {"up": {"rate": "10mbit", "qdisc": {"name": "droptail", "limit": "30p"}}}
    by_rule = findings(run(flows=[flow], links=links, duration="40s"))
    assert "their round-trip times are" in by_rule["unfair"].text
    assert by_rule["unfair"].evidence["groups.mixed.jain"] < rules.UNFAIR


def test_no_marks_although_ecn_is_on() -> None:
    """A short buffer overflows before the AQM marks."""
    links = {"up": {"rate": "10mbit", "qdisc": {"name": "codel", "ecn": True, "limit": "3p"}}}
    flow = {"name": "bulk", "path": ["up"], "rtt": "5ms", "tcp": {"name": "cubic", "ecn": True}}
    by_rule = findings(run(flows=[flow], links=links))
    assert by_rule["no marks"].evidence["links.up.marked_packets"] == 0


def test_an_overflowing_aqm_is_reported() -> None:
    """Its drops are not its decisions."""
    links = {"up": {"rate": "10mbit", "qdisc": {"name": "pie", "limit": "10p"}}}
    assert "not decisions of pie" in findings(run(links=links))["overflow"].text


def test_a_buffer_that_overflows_is_reported_with_the_use_of_the_link() -> None:
    """Under drop-tail with a share of the packets, and not with a usual loss."""
    answers = {"name": "answers", "count": 40, "path": ["up"], "rtt": "100us"}
    flows = [{**answers, "source": "incast(size=20kB)"}]
    links = {"up": {"rate": "1gbit", "qdisc": {"name": "droptail", "limit": "50p"}}}
    result = run(flows=flows, links=links, duration="2s", warmup="100ms")
    finding = findings(result)["overflow"]
    up = result.links["up"]
    lost = up.dropped_full_packets / up.arrived_packets
    assert lost > 0.05
    assert f"overflowed: {share(lost)} of the packets" in finding.text
    assert f"the link sent {share(up.utilisation)} of the time" in finding.text
    assert "would help" in finding.text
    assert "overflow" not in findings(run(links={"up": {"rate": "10mbit", "qdisc": "droptail"}}))


@pytest.mark.parametrize(
    ("qdisc", "rate", "rtt", "rule"),
    [
        ({"name": "codel", "target": "1ms"}, "1mbit", "40ms", "target below a packet"),
        ({"name": "codel", "interval": "20ms"}, "10mbit", "40ms", "interval below the RTT"),
        ({"name": "droptail", "limit": "3p"}, "10mbit", "100ms", "small buffer"),
        ({"name": "droptail", "limit": "1000p"}, "10mbit", "20ms", "large buffer"),
    ],
)
def test_parameters_that_do_not_fit(qdisc: dict[str, str], rate: str, rtt: str, rule: str) -> None:
    """The line of each rule; not with values that fit."""
    flows = [{"name": "bulk", "path": ["up"], "rtt": rtt}]
    assert rule in findings(run(links={"up": {"rate": rate, "qdisc": qdisc}}, flows=flows))
    assert rule not in findings(run())


def test_a_missing_or_short_warm_up_is_reported() -> None:
    """Only with endless flows."""
    assert "no warm-up" in findings(run(warmup="0s"))
    assert "short warm-up" in findings(run(warmup="300ms"))
    assert "short warm-up" not in findings(run())


def test_a_queue_that_settles_after_the_warm_up_is_reported() -> None:
    """MSER-5 on the series; silent without series, with a longer warm-up, and with changes."""
    flows = [{"name": "udp", "source": "cbr(rate=10.4mbit, packet=1500B)", "path": ["up"]},
             {"name": "bulk", "path": ["up"], "rtt": "20ms",
              "tcp": {"name": "newreno", "receive_window": "1p"}}]  # fmt: skip
    links = {"up": {"rate": "10mbit", "qdisc": {"name": "droptail", "limit": "500p"}}}
    slow = {"flows": flows, "links": links, "duration": "60s", "warmup": "1s", "sample": "20ms"}
    finding = findings(run(**slow))["not steady"]
    path = "links.up.series.queue_bytes, MSER-5"
    assert 1 < finding.evidence[path] < 30
    assert "became steady" in finding.text
    assert "not steady" not in findings(run(**slow | {"warmup": "40s"}))
    assert "not steady" not in findings(run(**{k: v for k, v in slow.items() if k != "sample"}))
    changes = [{"at": "50s", "links": {"up": {"rate": "11mbit"}}}]
    assert "not steady" not in findings(run(**slow, changes=changes))
    ramp = findings(run(**slow | {"duration": "20s"}))["not steady"]
    assert "did not become steady in the first half" in ramp.text


def test_the_command_explains_scenarios_and_folders(sojourn: Command, tmp_path: Path) -> None:
    """A comparison has a section for each discipline; JSON has rule, text and evidence."""
    code, out, _ = sojourn("explain", "home_uplink")
    assert code == 0
    assert "links.bottleneck.sojourn_p50_s = " in out
    verdict = (
        "Packets waited in a standing queue of link bottleneck (203 ms, median); also unusual: "
    )
    assert " ".join(out.splitlines()[1:3]).startswith(verdict)
    code, out, _ = sojourn("explain", "voip", "--up", "3mbit", "--set", "duration=15s", "--json")
    assert code == 0
    assert "takes (4.00 ms)" in out
    sojourn("compare", "voip", "--qdisc", "droptail,codel", "--out", tmp_path / "out")
    assert "codel, seed 1" in sojourn("explain", tmp_path / "out")[1]
    summary = json.loads(sojourn("explain", "home_uplink", "--qdisc", "codel", "--json")[1])
    assert set(summary["home-uplink, seed 1"][0]) == {"rule", "kind", "text", "evidence"}


def test_a_wrong_question_gets_one_line(sojourn: Command, tmp_path: Path) -> None:
    """A folder without results, an unknown name."""
    for arguments, message in (
        ((tmp_path,), "holds no run or comparison"),
        (("rrull",), 'did you mean "rrul"?'),
        ((tmp_path, "--qdisc", "codel"), "--qdisc: only for a scenario"),
        ((tmp_path, "--up", "3mbit"), "--up: only for a scenario, not for a folder of results"),
        (("rrul", "--qdisc", "codle"), 'did you mean "codel"?'),
    ):
        code, out, err = sojourn("explain", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err
