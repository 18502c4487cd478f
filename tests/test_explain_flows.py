"""Rules of `explain` about flows and the warm-up, at their limits, on runs made by hand."""

import dataclasses
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from sojourn.explanation import rules
from sojourn.explanation.finding import Finding
from sojourn.result import steady_state
from sojourn.result.result import Result
from sojourn.result.statistics import Interval

Flow = dict[str, Any]


def flow(goodput_bps: float = 1e6, rtt_s: float = 0.04, **values: Any) -> Flow:
    """Return the summary of a TCP flow."""
    return {
        "kind": "tcp", "goodput_bps": goodput_bps, "rtt_s": rtt_s, "timeouts": 0,
        "sent_packets": 1000, "retransmitted_packets": 0, **values,
    }  # fmt: skip


def run_of(groups: dict[str, list[Flow]], **keys: Any) -> Result:
    """Return a run over the link `up`; `keys` replace parts of its scenario and of itself."""
    specs = keys.pop("specs", {})
    scenario = {
        "duration": "10s",
        "warmup": keys.pop("warmup", "5s"),
        "links": {"up": {"rate": "10mbit", "qdisc": {"name": "codel"}}, **keys.pop("spec", {})},
        "flows": [
            {"name": name, "path": ["up"], "source": {"name": "bulk"}, "tcp": {},
             **specs.get(name, {})}
            for name in groups
        ],
        **keys.pop("scenario", {}),
    }  # fmt: skip
    flows = [{**one, "group": name} for name, members in groups.items() for one in members]
    link = {"utilisation": 0.5, "dropped_packets": 0, "marked_packets": 0, "arrived_packets": 9,
            **keys.pop("link", {})}  # fmt: skip
    parts = {"scenario": scenario, "flows": {str(n): one for n, one in enumerate(flows)}}
    return cast(Result, SimpleNamespace(**{**parts, "links": {"up": link}, **keys}))


def names(findings: Any) -> list[str]:
    """Return the rules of findings."""
    return [one.rule for one in findings]


def sender(monkeypatch: pytest.MonkeyPatch, groups: dict[str, list[Flow]], **grown: float) -> Any:
    """Return what is said about the sender, with a growth of the queue by group."""
    monkeypatch.setattr(rules, "_grown", lambda _run, _log: grown)
    log = SimpleNamespace(arrived_s=[1.0]) if grown else None
    result = run_of(groups, links={"up": SimpleNamespace(packet_log=log)})
    return [*rules._sender(result, "up")]


def test_a_sender_has_more_than_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """51 % is enough, 50 % is not; one group alone is no news, and neither are idle ones."""
    two = {"a": [flow(49.0)], "b": [flow(30.0), flow(21.0)]}
    (finding,) = sender(monkeypatch, two)
    assert finding.evidence == {"groups.b.goodput_bps": 51.0, "links.up payload_bps": 100.0}
    assert sender(monkeypatch, {"a": [flow(50.0)], "b": [flow(50.0)]}) == []
    assert sender(monkeypatch, {"a": [flow(50.0)]}) == []
    assert sender(monkeypatch, {"a": [flow(0.0)], "b": [flow(0.0)]}) == []
    (finding,) = sender(monkeypatch, two, a=3.0, b=1.0)
    assert finding.evidence == {"links.up.packet_log, share of a while the queue grew": 0.75}
    assert sender(monkeypatch, two, a=1.0, b=1.0) == []


def test_a_group_is_unfair_below_a_jain_index_of_four_fifths() -> None:
    """Of 1 and 3 it is 0.8, of 1 and 3.1 it is 0.79; one flow, or short ones, are not unfair."""

    def of(*flows: Flow, **specs: Any) -> list[Finding]:
        return [*rules._fairness(run_of({"a": [*flows]}, specs={"a": specs}))]

    assert of(flow(1.0), flow(3.0)) == of(flow(1.0)) == []
    (finding,) = of(flow(1.0), flow(3.1))
    assert finding.evidence["groups.a.jain"] == pytest.approx(4.1**2 / (2 * (1 + 3.1**2)))
    assert "round-trip times" not in finding.text
    assert of(flow(1.0), flow(9.0), source={"name": "transfers"}) == []
    assert "round-trip" not in of(flow(1.0, 0.02), flow(9.0, 0.03))[0].text
    assert "are 20.0 ms to 31.0 ms" in of(flow(9.0, 0.031), flow(1.0, 0.02))[0].text
    three = [flow(9.0, 0.02), flow(1.0, 0.025), flow(1.0, 0.06)]
    assert "are 20.0 ms to 60.0 ms" in of(*three)[0].text


def test_groups_and_links_before_an_odd_one_do_not_hide_it() -> None:
    """One flow, transfers, and equal flows; links without ECN, drops, or endless flows."""
    odd = [flow(1.0, timeouts=2), flow(9.0)]
    groups = {"one": [flow()], "web": [flow(1.0), flow(9.0)], "same": [flow(), flow()], "odd": odd}
    result = run_of(
        groups, specs={"web": {"source": {"name": "transfers"}}, "odd": {"ecn": "ect0"}}
    )
    assert [*next(rules._fairness(result)).evidence] == ["groups.odd.jain"]
    assert next(iter(next(rules._timeouts(result)).evidence)) == "groups.odd.timeouts"
    ecn = {"qdisc": {"name": "codel", "ecn": True}}
    link = {"utilisation": 0.6, "dropped_packets": 2, "marked_packets": 0, "arrived_packets": 9}
    links = {"up": {**link, "dropped_packets": 0}, "next": link}
    specs = {"odd": {"path": ["up", "next"], "tcp": {"ecn": True}}}
    both = run_of({"odd": odd}, specs=specs, spec={"next": ecn}, links=links)
    (finding,) = rules._marks(both)
    assert "Link next marked nothing" in finding.text
    (finding,) = rules._underused(both)
    assert finding.text.startswith("Link next was idle 40.0 % of the time, although odd always")
    (finding,) = rules._delays(run_of({"a": [flow(rtt_s=0.0)]}))
    assert finding.evidence == {"flows.rtt_s": 0.0}


def test_groups_on_one_path_are_compared_by_flow() -> None:
    """Means of 1 and 4 Mbit/s: 25 / 34; other paths, other traffic and UDP are apart."""
    fast = [flow(2e6, 0.02), flow(6e6, 0.03)]
    groups = {"slow": [flow(1e6, 0.05)], "fast": fast}
    (finding,) = rules._groups(run_of(groups))
    assert finding.text.startswith("On up a flow of fast got 4.00 mbit and one of slow 1.00 mbit")
    assert (
        "index of the 2 groups is 0.74; their round-trip times are 30.0 ms and 50.0" in finding.text
    )
    assert [*finding.evidence.values()] == [1e6, 4e6]
    near = run_of({"slow": [flow(1e6, 0.045)], "fast": fast})
    assert "round-trip" not in next(rules._groups(near)).text
    assert not [*rules._groups(run_of({"a": [flow(1e6)], "b": [flow(3e6)]}))], "0.8 is fair"
    for other in ({"path": ["down"]}, {"source": {"name": "cbr"}}):
        assert not [*rules._groups(run_of(groups, specs={"slow": other}))]
    two_paths = {"a": [flow(1e6)], "b": [flow(9e6)], "c": [flow(1e6)], "d": [flow(1e6)],
                 "e": [flow(9e6)]}  # fmt: skip
    apart = {"a": {"path": ["down"]}, "b": {"path": ["x"]}, "c": {"path": ["x", "up"]}}
    (finding,) = rules._groups(run_of(two_paths, specs=apart))
    assert finding.text.startswith("On up a flow of e got")


def test_timeouts_are_reported_from_two_and_one_in_2000_packets() -> None:
    """Of TCP flows; some kernels do not count them."""

    def of(timeouts: float | None, sent: int, kind: str = "tcp") -> list[Finding]:
        one = flow(timeouts=timeouts, sent_packets=sent, retransmitted_packets=7, kind=kind)
        return [*rules._timeouts(run_of({"a": [one]}))]

    unknown = [flow(timeouts=None), flow(timeouts=None)]
    assert not [*rules._timeouts(run_of({"a": unknown}))]
    assert of(1, 100) == of(None, 100) == of(3, 6001) == of(5, 100, "udp") == of(2, 0) == []
    assert names(of(2, 100)) == names(of(3, 6000)) == ["timeouts"]
    assert of(2, 100)[0].evidence == {"groups.a.timeouts": 2, "groups.a.retransmitted_packets": 7}
    assert "sent 7.0 % of its packets again" in of(2, 100)[0].text


def test_marks_are_expected_where_both_ends_have_ecn() -> None:
    """The link, and a flow that crosses it: by its TCP, or by itself."""

    def of(qdisc: Any, **spec: Any) -> list[str]:
        link = {"up": {"qdisc": {"name": "codel", **qdisc}}}
        return names(rules._marks(run_of({"a": [flow()]}, spec=link, specs={"a": spec})))

    on = {"ecn": True}
    assert of(on, tcp=on) == of(on, ecn="ect0") == ["no marks"]
    assert (
        of({}, tcp=on) == of({"ecn": False}, tcp=on) == of(on) == of(on, tcp={"ecn": False}) == []
    )
    assert of(on, tcp=on, path=["down"]) == []


def test_an_unused_link_had_drops_and_endless_flows() -> None:
    """Below nine tenths."""

    def of(use: float | None, drops: int = 1, **spec: Any) -> list[str]:
        link = {"utilisation": use, "dropped_packets": drops}
        return names(rules._underused(run_of({"a": [flow()]}, link=link, specs={"a": spec})))

    assert of(0.899) == ["unused"]
    assert of(0.9) == of(None) == of(0.5, 0) == of(0.5, source={"name": "cbr"}) == []
    assert of(0.5, path=["down"]) == []


def test_an_unused_link_lost_packets_on_the_wire() -> None:
    """More than its queue dropped; a few, compared with many drops, are not the cause."""

    def of(drops: int, lost: int) -> list[str]:
        link = {"utilisation": 0.5, "dropped_packets": drops, "lost_on_wire_packets": lost}
        link |= {"departed_packets": 1000}
        return names(rules._underused(run_of({"a": [flow()]}, link=link, specs={"a": {}})))

    assert of(0, 1) == of(10, 11) == ["random loss"]
    assert of(10, 10) == ["unused"]
    assert of(0, 0) == []


def test_a_warm_up_takes_ten_round_trip_times() -> None:
    """The longest one of TCP; only endless TCP flows need it."""

    def of(warmup: str, **keys: Any) -> list[str]:
        groups = {"a": [flow(rtt_s=0.04), flow(rtt_s=0.05)], "u": [flow(rtt_s=9.0, kind="udp")]}
        result = run_of(groups, warmup=warmup, sampled=False, **keys)
        return names(rules._warmup(result))

    assert of("500ms") == []
    assert of("499ms") == ["short warm-up"]
    assert of("0s") == ["no warm-up"]
    assert not [*rules._warmup(run_of({"a": []}, sampled=False))], "no flow has started"
    (finding,) = rules._warmup(run_of({"a": [flow(rtt_s=0.05)]}, warmup="499ms", sampled=False))
    assert "(499 ms) is shorter than ten round-trip times (500 ms)" in finding.text
    transfers = {"source": {"name": "transfers"}}
    assert of("0s", specs={"a": transfers, "u": transfers}) == []


def test_the_longest_round_trip_time_judges_parameters() -> None:
    """Of the TCP flows over the link: 100 ms of interval for 150 ms."""
    spec = {"up": {"rate": "10mbit", "qdisc": {"name": "codel", "target": "5ms",
                                               "interval": "100ms"}}}  # fmt: skip
    groups = {"a": [flow(rtt_s=0.09), flow(rtt_s=0.15)]}
    assert names(rules._parameters(run_of(groups, spec=spec))) == ["interval below the RTT"]
    for other in ({"path": ["down"]}, {}):
        flows = [flow(rtt_s=0.15, kind="udp")] if not other else groups["a"]
        result = run_of({"a": flows}, spec=spec, specs={"a": other})
        assert not [*rules._parameters(result)]
    still = run_of({"a": [flow(rtt_s=0.0)], "u": [flow(rtt_s=1.0, kind="udp")]})
    assert names(rules._delays(still)) == ["no delay"]
    assert not [*rules._delays(run_of({"a": [flow(rtt_s=0.0), flow(rtt_s=0.1)]}))]
    assert not [*rules._delays(run_of({}))]


def settling(
    monkeypatch: pytest.MonkeyPatch, *, samples: int = 1000, warmup: float = 5.0, **keys: Any
) -> list[Finding]:
    """Return what is said about a queue of 2 MB for 6 s, then 1 MB, that MSER-5 cuts.

    Of the 5 s from the warm-up on, 1 s has 2 MB: the mean is 1.2 MB.
    """
    time_s = np.arange(1, samples + 1) * 10.0 / samples
    queue = np.where(time_s <= 6.0, 2e6, 1e6)
    estimate = steady_state.Steady(
        "up", keys.get("what", "queue"), "bytes", Interval(1e6, keys.get("half", 1e4)),
        keys.get("cut_s", 6.0), 10.0, keys.get("doubtful", False),
    )  # fmt: skip
    others = [
        dataclasses.replace(estimate, what="throughput"),
        dataclasses.replace(estimate, cut_s=1.0),
        dataclasses.replace(estimate, mean=Interval(1e6, 1e9)),
    ]
    monkeypatch.setattr(steady_state, "steady", lambda _run: [*others, estimate])
    links = {"up": SimpleNamespace(series=SimpleNamespace(queue_bytes=queue))}
    spec = {"up": {"rate": "1mbit", **keys.get("spec", {})}}
    result = run_of({}, links=links, spec=spec, sampled=keys.get("sampled", True), time_s=time_s)
    return [*rules._settling(result, warmup)]


def test_a_queue_settles_late_if_its_means_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """1.2 MB, not 1 +- 0.01; 1 +- 0.2, or a cut in the warm-up, says nothing."""
    (finding,) = settling(monkeypatch)
    assert finding.evidence == {
        "scenario.warmup": 5.0, "links.up.series.queue_bytes, MSER-5": 6.0
    }  # fmt: skip
    assert "1200 kB from the warm-up on and 1000 kB in the steady part" in finding.text
    assert "6.00 s after the start" in finding.text
    late = settling(monkeypatch, doubtful=True)[0].text
    assert "in the first half" in late
    assert "1200 kB from the warm-up on and 1000 kB in the second half" in late
    nothing: tuple[dict[str, Any], ...] = (
        {"half": 2e5}, {"cut_s": 5.0}, {"what": "throughput"}, {"spec": {"trace": {}}},
        {"sampled": False}, {"samples": steady_state.LEAST - 1}, {"warmup": 6.0},
    )  # fmt: skip
    for silent in nothing:
        assert settling(monkeypatch, **silent) == [], silent
    assert settling(monkeypatch, half=1.99e5)
    assert settling(monkeypatch, samples=steady_state.LEAST)


def test_a_tenth_of_the_mean_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 5.55 s on the mean is 1.1 MB, a tenth more than 1 MB; from 5.4 s on 1.13 MB."""
    assert settling(monkeypatch, warmup=5.55, half=0.0) == []
    assert names(settling(monkeypatch, warmup=5.4, half=0.0)) == ["not steady"]


def test_warnings_of_a_run_are_repeated() -> None:
    """Warnings about real packets, and about the scenario with their path."""
    live = run_of({}, summary={"live": {"warnings": ["late packets", "x"]}})
    assert [one.text for one in rules._live(live)] == ["Late packets.", "X."]
    assert not [*rules._live(run_of({}, summary={}))]
    (finding,) = rules._advice(run_of({}, warnings=["links.up: 1: odd"]))
    assert (finding.text, finding.evidence) == (
        "links.up: 1: odd.", {"links.up": "links.up: 1: odd"}
    )  # fmt: skip
