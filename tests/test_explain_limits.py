"""Rules of `explain` at their limits: growth of a queue by group, parameters, links."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from sojourn.explanation import links, live_link, parameters, queues, rules
from sojourn.result.result import Columns, Result

RTT = "flows.rtt_s"


def log_of(rows: list[tuple[int, float, float, int]], size: int = 1500) -> Columns:
    """Return a packet log from rows (number of packets, arrived, left, flow)."""
    columns: list[tuple[float, float, int]] = []
    for number, arrived, left, flow in rows:
        columns += [(arrived, left, flow)] * number
    arrived_s, left_s, flows = (np.array(column) for column in zip(*columns, strict=True))
    sizes = np.full(len(flows), size)
    return Columns({"arrived_s": arrived_s, "left_s": left_s, "flow": flows, "size_bytes": sizes})


def run_of(warmup: str) -> Result:
    """Return a run of 10 s with three groups of one flow."""
    flows = {str(n): {"group": name} for n, name in enumerate("abc")}
    scenario = {"duration": "10s", "warmup": warmup}
    return cast(Result, SimpleNamespace(scenario=scenario, flows=flows))


def test_growth_counts_from_the_warm_up_on() -> None:
    """40 packets: intervals of 2.5 s.

    a's 15 packets stay from the first interval to the second, b's 25 from the third to the fourth.
    """
    log = log_of([(15, 1.0, 3.0, 0), (25, 6.0, 8.0, 1)])
    assert rules._grown(run_of("0s"), log) == {"a": 22_500.0, "b": 37_500.0, "c": 0.0}
    assert rules._grown(run_of("5s"), log) == {"a": 0.0, "b": 37_500.0, "c": 0.0}


def test_dropped_packets_do_not_let_a_queue_grow() -> None:
    """50 packets: intervals of 2 s. c's ten packets are dropped on arrival (they leave at once)."""
    log = log_of([(40, 6.0, 8.0, 1), (10, 6.1, 6.1, 2)])
    assert rules._grown(run_of("1s"), log) == {"a": 0.0, "b": 60_000.0, "c": 0.0}


def test_growth_is_shared_by_what_arrived() -> None:
    """25 packets: intervals of 4 s. In the second, 20 arrive and 5 of the first leave: 15 more.

    a sent 5 of the 20, so a quarter of the growth. In the third all leave: it shrinks.
    """
    log = log_of([(5, 1.0, 5.0, 2), (5, 6.0, 9.0, 0), (15, 6.5, 9.0, 1)])
    growth = rules._grown(run_of("4s"), log)
    assert growth == {"a": 0.25 * 15 * 1500, "b": 0.75 * 15 * 1500, "c": 0.0}


def test_a_single_byte_is_growth() -> None:
    """100 packets of one byte: intervals of 1 s. One of them waits from one to another."""
    log = log_of([(99, 0.1, 0.2, 0), (1, 6.0, 8.0, 1)], size=1)
    assert rules._grown(run_of("0s"), log) == {"a": 0.0, "b": 1.0, "c": 0.0}


def rules_of(rule: Any, qdisc: dict[str, Any], rtt_s: float, rate: str = "12mbit") -> list[str]:
    """Return the names of the findings of a rule about parameters."""
    spec = {"rate": rate, "qdisc": {"name": "x", **qdisc}}
    return [one.rule for one in rule("up", spec, rtt_s, RTT)]


def test_a_target_is_long_from_the_round_trip_time_on() -> None:
    """A target of 15 ms: not with 15 ms, but with 10 ms."""
    assert rules_of(parameters._target, {"target": "15ms"}, 0.015) == []
    assert rules_of(parameters._target, {"target": "15ms"}, 0.010) == ["target above the RTT"]
    assert rules_of(parameters._target, {}, 0.010) == []
    # A packet takes 12 ms at 1 Mbit/s; a target up to that is no choice.
    assert rules_of(parameters._target, {"target": "12ms"}, 0.001, "1mbit") == []
    assert rules_of(parameters._target, {"target": "13ms"}, 0.001, "1mbit") == [
        "target above the RTT"
    ]


def test_an_interval_fits_from_one_to_ten_round_trip_times() -> None:
    """RFC 8289, 4.3: it is at least the longest one, and 100 ms suits 10 ms and more."""
    both = {"target": "5ms", "interval": "100ms"}
    assert rules_of(parameters._interval, both, 0.1) == []
    assert rules_of(parameters._interval, both, 0.101) == ["interval below the RTT"]
    assert rules_of(parameters._interval, both, 0.01) == []
    assert rules_of(parameters._interval, both, 0.0099) == ["interval far above the RTT"]
    assert rules_of(parameters._interval, {"interval": "100ms"}, 0.2) == [], "of another kind"


def test_thresholds_of_red_are_compared_with_the_round_trip_time() -> None:
    """At 12 Mbit/s a packet takes 1 ms: 25 packets are a quarter of 100 ms, 400 four times."""
    assert rules_of(parameters._thresholds, {"min_th": "5p", "max_th": "25p"}, 0.1) == []
    assert rules_of(parameters._thresholds, {"min_th": "5p", "max_th": "24p"}, 0.1) == [
        "low thresholds"
    ]
    assert rules_of(parameters._thresholds, {"min_th": "400p", "max_th": "900p"}, 0.1) == []
    assert rules_of(parameters._thresholds, {"min_th": "401p", "max_th": "900p"}, 0.1) == [
        "high thresholds"
    ]
    # Below a tenth of a second nothing is high.
    assert rules_of(parameters._thresholds, {"min_th": "100p", "max_th": "900p"}, 0.01) == []
    assert rules_of(parameters._thresholds, {"min_th": "101p", "max_th": "900p"}, 0.01) == [
        "high thresholds"
    ]
    assert rules_of(parameters._thresholds, {"min_th": "5p"}, 0.1) == []


def test_buffers_are_compared_with_the_round_trip_time() -> None:
    """150,000 bytes are 100 ms at 12 Mbit/s; only drop-tail has a large buffer."""
    tail = {"name": "droptail"}
    assert rules_of(parameters._buffer, {**tail, "limit": "8p"}, 0.08) == []
    assert rules_of(parameters._buffer, {"limit": "7p"}, 0.08) == ["small buffer"]
    assert rules_of(parameters._buffer, {**tail, "limit": "600000B"}, 0.1) == []
    assert rules_of(parameters._buffer, {**tail, "limit": "601500B"}, 0.1) == ["large buffer"]
    assert rules_of(parameters._buffer, {**tail, "limit": "150000B"}, 0.001) == []
    assert rules_of(parameters._buffer, {**tail, "limit": "151500B"}, 0.001) == ["large buffer"]
    assert rules_of(parameters._buffer, {"name": "codel", "limit": "601500B"}, 0.1) == []
    assert rules_of(parameters._buffer, {"limit": "automatic"}, 0.1) == []
    spec = {"rate": "12mbit", "qdisc": {"name": "x", "limit": "7p"}}
    (finding,) = parameters._buffer("up", spec, 0.1, RTT)
    assert finding.text.startswith("The buffer of up (7p) holds 7.00 ms at 12.0 mbit, less than a")
    (finding,) = parameters._buffer("up", {**spec, "rate": "1gbit"}, 0.1, RTT)
    assert "one bandwidth-delay product is 12500 kB" in finding.text


def test_parameters_are_compared_with_a_packet_and_the_buffer() -> None:
    """Equal ones fit: 12 ms are a packet at 1 Mbit/s."""

    def of(rule: Any, **qdisc: str) -> list[str]:
        return [one.rule for one in rule("up", {"rate": "1mbit", "qdisc": {"name": "x", **qdisc}})]

    packet, buffer = parameters._target_of_a_packet, parameters._threshold_of_a_buffer
    assert of(packet, target="12ms") == of(packet) == []
    assert of(packet, target="11ms") == ["target below a packet"]
    assert of(buffer, max_th="10p", limit="10p") == of(buffer, max_th="10p") == []
    assert of(buffer, limit="10p") == []
    assert of(buffer, max_th="11p", limit="10p") == ["threshold above the buffer"]


@pytest.mark.parametrize(
    ("size", "bps", "queue_s"),
    [("10p", 12e6, 0.01), ("1500B", 12e6, 0.001), ("3kB", 24e6, 0.001), ("0p", 1e6, 0.0)],
)
def test_a_queue_takes_its_bytes_by_the_rate(size: str, bps: float, queue_s: float) -> None:
    """Packets have 1500 bytes."""
    assert queues.queue_s(size, bps) == pytest.approx(queue_s)
    for other in ("", "p", "xp", "1xp", "half", "10"):
        assert queues.queue_s(other, bps) is None


def link_of(**values: Any) -> dict[str, Any]:
    """Return the summary of a link without anything unusual."""
    return {
        "utilisation": 0.5, "sojourn_max_s": 0.01, "sojourn_p50_s": 0.001, "sojourn_p99_s": 0.004,
        "dropped_full_packets": 0, "dropped_packets": 0, "marked_packets": 0,
        "arrived_packets": 100, **values,
    }  # fmt: skip


SPEC = {"rate": "10mbit", "qdisc": {"name": "droptail", "limit": "300kB"}}
"""Canonical description of a link with a buffer of 240 ms."""


def test_a_link_is_busy_from_nine_tenths_on() -> None:
    """0.9, not 0.899; an unknown utilisation is not busy."""
    assert [one.rule for one in links.busy("up", link_of(utilisation=0.9), SPEC)] == ["bottleneck"]
    assert not [*links.busy("up", link_of(utilisation=0.899), SPEC)]
    assert not [*links.busy("up", link_of(utilisation=None), SPEC)]


def test_a_link_with_a_shaper_is_compared_with_its_rate() -> None:
    """A shaper above the rate of the link limits nothing; a trace has no rate of its own."""
    cake = {"name": "cake", "bandwidth": "8mbit", "limit": "auto"}
    for spec, use in (
        ({**SPEC, "qdisc": cake}, 0.75),
        ({**SPEC, "qdisc": {**cake, "bandwidth": "auto"}}, 0.6),
        ({**SPEC, "qdisc": {**cake, "bandwidth": "10mbit"}}, 0.6),
        ({**SPEC, "qdisc": cake, "trace": {}}, 0.6),
        ({**SPEC, "qdisc": {"name": "tbf", "rate": "6mbit"}}, 1.0),
    ):
        assert queues.used(link_of(utilisation=0.6), spec) == pytest.approx(use)
    assert queues.used(link_of(utilisation=None), {**SPEC, "qdisc": cake}) is None
    (one,) = links.busy("up", link_of(utilisation=0.76), {**SPEC, "qdisc": cake})
    assert "it sent at 95.0 % of the rate of its shaper (8.00 mbit)" in one.text


def test_a_standing_queue_has_its_buffer_and_its_cause() -> None:
    """The buffer as a time at the rate, or at the rate of a shaper."""
    assert queues.buffer(SPEC) == "Its buffer of 300kB holds 240 ms at 10.0 mbit."
    assert queues.buffer({**SPEC, "trace": {}}) == ""
    assert queues.buffer({**SPEC, "qdisc": {"name": "cake", "limit": "auto"}}) == ""
    shaped = {**SPEC, "qdisc": {"name": "cake", "limit": "300kB", "bandwidth": "5mbit"}}
    assert queues.buffer(shaped) == "Its buffer of 300kB holds 480 ms at 5.00 mbit."
    codel = {"name": "codel", "target": "5ms"}
    red = {"name": "red", "min_th": "5p", "max_th": "15p"}
    for qdisc, median, text in (
        (SPEC["qdisc"], 0.1, "droptail drops only if the buffer is full"),
        (codel, 0.01, "codel holds the queue near its target of 5.00 ms."),
        (codel, 0.011, "codel has a target of 5.00 ms, and its drops or marks did not make"),
        ({**codel, "name": "fq_codel"}, 0.1, "fq_codel has a queue per flow"),
        ({**codel, "name": "drr_codel", "by": "flow"}, 0.1, "drr_codel has a queue per flow"),
        (red, 0.1, "red acts on an average queue from 6.00 ms to 18.0 ms."),
    ):
        assert queues.cause({**SPEC, "qdisc": qdisc}, median).startswith(text)
    assert queues.cause({**SPEC, "qdisc": {"name": "blue"}}, 0.1) == ""
    assert queues.cause({**SPEC, "qdisc": red, "trace": {}}, 0.1) == ""
    (one,) = links.queue("up", link_of(sojourn_p50_s=0.1, sojourn_p99_s=0.2), SPEC)
    assert one.text.endswith(
        "one in a hundred 200 ms. Its buffer of 300kB holds 240 ms at 10.0 mbit. droptail drops "
        "only if the buffer is full, and senders fill it until then."
    )


def test_acks_that_cake_removes_are_no_sign_of_congestion() -> None:
    """They are in the number of drops, so the sentence says so."""
    filters = {**SPEC, "qdisc": {"name": "cake", "ack_filter": "on"}}
    off = {**SPEC, "qdisc": {"name": "cake", "ack_filter": "off"}}
    link = link_of(dropped_packets=3)
    note = ", among them ACKs that its ACK filter removed"
    assert links.dropped(link, filters) == f"dropped 3 packets{note}"
    assert links.dropped(link, off) == links.dropped(link, SPEC) == "dropped 3 packets"


def test_a_queue_of_one_packet_is_none() -> None:
    """1500 bytes take 1 ms at 12 Mbit/s; a trace has no such time."""
    spec = {"rate": "12mbit"}
    findings = [*links.no_queue("up", link_of(sojourn_max_s=0.001), spec, ())]
    assert [one.rule for one in findings] == ["no queue"]
    assert "look for the limit elsewhere" in findings[0].text
    named = [*links.no_queue("up", link_of(sojourn_max_s=0.0), spec, ("link a", "link b"))]
    assert "the bottleneck was link a and link b" in named[0].text
    for longest in (0.0011, None):
        assert not [*links.no_queue("up", link_of(sojourn_max_s=longest), spec, ())]
    traced = {**spec, "trace": {}}
    assert not [*links.no_queue("up", link_of(sojourn_max_s=0.0), traced, ())]


@pytest.mark.parametrize(
    ("median", "high", "rule"),
    [
        (0.005, 0.006, ["standing queue"]),  # RFC 8289, 4.3
        (0.0049, 0.048, []),
        (0.0049, 0.049, ["bursts"]),
        (0.0001, 0.0049, []),
        (0.0001, 0.005, ["bursts"]),
        (None, 0.1, []),
        (0.1, None, []),
    ],
)
def test_a_queue_stands_or_comes_in_bursts(
    median: float | None, high: float | None, rule: list[str]
) -> None:
    """From 5 ms at the median on; or from ten times the median at the 99th percentile, and 5 ms."""
    link = link_of(sojourn_p50_s=median, sojourn_p99_s=high)
    assert [one.rule for one in links.queue("up", link, SPEC)] == rule


def test_bursts_and_overflows_have_their_numbers() -> None:
    """A median of less than a microsecond is written as one."""
    for median, text in ((0.0001, "less than 100 us"), (0.0, "less than 1.00 us")):
        (finding,) = links.queue("up", link_of(sojourn_p50_s=median, sojourn_p99_s=0.006), SPEC)
        assert text in finding.text
    counts = {"dropped_full_packets": 11, "dropped_packets": 20}
    aqm = {"qdisc": {"name": "codel", "limit": "20p", "target": "5ms"}}
    (finding,) = links.overflow("up", link_of(**counts), aqm)
    assert finding.text.startswith("55.0 % of the drops at up were at its full buffer (20p), not")
    tail = {"qdisc": {"name": "droptail", "limit": "20p"}}
    (finding,) = links.overflow("up", link_of(**counts), tail)
    assert (
        "11.0 % of the packets that arrived were dropped, and the link sent 50.0 %" in finding.text
    )
    assert finding.evidence["links.up.utilisation"] == 0.5
    (finding,) = links.overflow("up", link_of(**counts, utilisation=None), {"qdisc": {"name": "x"}})
    assert finding.text.startswith("The buffer of up () overflowed")
    assert "links.up.utilisation" not in finding.evidence


def test_an_aqm_overflows_if_more_than_half_of_its_drops_are() -> None:
    """11 of 20, not 10 of 20 nor 19 of 19. Drop-tail does from a share of the arrivals on."""
    aqm = {"qdisc": {"name": "codel", "limit": "20p", "target": "5ms"}}

    def of(full: int, every: int, spec: dict[str, Any] = aqm, arrived: int = 100) -> list[str]:
        link = link_of(dropped_full_packets=full, dropped_packets=every, arrived_packets=arrived)
        return [one.rule for one in links.overflow("up", link, spec)]

    assert of(11, 20) == ["overflow"]
    assert of(10, 20) == of(19, 19) == []
    tail = {"qdisc": {"name": "droptail", "limit": "20p"}}
    most = round(20 / links.LOSSY)
    assert of(20, 20, tail, most) == ["overflow"]
    assert of(20, 20, tail, most + 1) == []


def test_marks_are_missed_where_packets_arrived() -> None:
    """Nothing arrived: nothing to mark; one mark is enough."""

    def of(**values: Any) -> list[str]:
        return [one.text for one in links.no_marks("up", link_of(**values), SPEC, "there")]

    assert "its queue stayed short" in of()[0]
    assert "it dropped 1 packet" in of(dropped_packets=1)[0]
    assert of(marked_packets=1) == of(arrived_packets=0) == []


def reported(
    up: dict[str, Any] | None = None,
    down: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    **other: Any,
) -> list[tuple[str, str]]:
    """Return rule and first evidence of the findings about a live link; `spec` is of the uplink."""
    qdisc = {"name": "codel", "limit": "1000p", "target": "5ms", "interval": "100ms"}
    plain = {"rate": "12mbit", "delay": "20ms", "qdisc": qdisc}
    report = {
        "spec": {"up": plain | (spec or {}), "down": plain | other.get("down_spec", {})},
        "links": {"up": link_of(**(up or {})), "down": link_of(**(down or {}))},
        "warnings": other.get("warnings", []),
    }
    return [(one.rule, next(iter(one.evidence))) for one in live_link._findings(report)]


def test_the_busiest_direction_should_have_had_the_queue() -> None:
    """An unknown utilisation is none; a full link is the bottleneck, whatever its queue."""
    short = {"sojourn_max_s": 0.0005}
    missing = [("no queue", "links.down.sojourn_max_s")]
    assert reported({**short, "utilisation": 0.2}, {**short, "utilisation": 0.3}) == missing
    assert reported({**short, "utilisation": None}, {**short, "utilisation": 0.3}) == missing
    assert reported({**short, "utilisation": 0.2}, {"utilisation": 0.3}) == []
    full = [("bottleneck", "links.up.utilisation")]
    assert reported({**short, "utilisation": 0.95}, short) == full
    nothing = {"arrived_packets": 0}
    assert reported(nothing, nothing) == [("no packets", "links.up.arrived_packets")]
    (finding,) = live_link._outside({"links": {"up": nothing}, "warnings": []})
    assert finding.text == "Nothing crossed the link: 0 packets arrived."
    assert finding.evidence == {"links.up.arrived_packets": 0}


def test_parameters_of_a_full_direction_are_compared_with_both_delays() -> None:
    """20 + 20 ms; a trace has delays of its own, so it adds none."""
    interval = {"qdisc": {"name": "codel", "target": "5ms", "interval": "30ms"}}
    full = ("bottleneck", "links.up.utilisation")
    low = ("interval below the RTT", "links.up.qdisc.interval")
    busy = {"utilisation": 0.9}
    assert reported(busy, spec=interval) == [full, low]
    assert reported({"utilisation": 0.899}, spec=interval) == []
    assert reported({"utilisation": None}, spec=interval) == []
    assert reported(busy, spec=interval, down_spec={"trace": {}}) == [full]
    still = {"delay": "0s"}
    assert reported(busy, spec=interval | still, down_spec=still) == [full]


def test_a_direction_with_ecn_that_only_dropped_is_reported() -> None:
    """With ECN on, and drops; not if packets were marked."""

    def of(ecn: Any, **up: Any) -> list[str]:
        spec = {"qdisc": {"name": "codel", "target": "5ms", "interval": "100ms", **ecn}}
        return [rule for rule, _ in reported(up, spec=spec)]

    assert of({"ecn": True}, dropped_packets=5) == ["no marks"]
    assert of({"ecn": True}) == of({"ecn": True}, dropped_packets=5, marked_packets=1) == []
    assert of({"ecn": False}, dropped_packets=5) == of({}, dropped_packets=5) == []


def test_warnings_of_a_link_are_sentences() -> None:
    """An empty one does no harm."""
    assert reported(warnings=["late"]) == [("accuracy", "warnings")]
    assert reported(warnings=[""]) == [("accuracy", "warnings")]


def test_the_discipline_of_a_report_has_all_its_parameters() -> None:
    """A class in Python has the reported parameters and limit; the class is not needed."""
    mine = {"name": "q.py:Mine", "level": 3}
    spec = {"up": {"rate": "10mbit", "qdisc": mine},
            "down": {"rate": "10mbit", "qdisc": {"name": "codel", "target": "7ms"}}}  # fmt: skip
    specs = live_link.canonical_spec(spec)
    assert specs["up"]["qdisc"] == {**mine, "limit": "1000p"}
    assert specs["down"]["qdisc"].items() >= {"target": "7ms", "interval": "100ms"}.items()


def test_a_report_is_the_last_object_of_a_file(tmp_path: Path) -> None:
    """It has at least the known keys; the output of the command may precede it."""
    file = tmp_path / "out.txt"
    tree = dict.fromkeys(sorted(live_link.KEYS), 1)
    first, last = (json.dumps({**tree, "n": n}, indent=2) for n in (1, 2))
    for text in (last, f"{first}\n{last}", f"x\n{last}", f"x\n{first}\n{last}\n", f"{{ no\n{last}"):
        file.write_text(text)
        report = live_link.report_in(file)
        assert report is not None
        assert report["n"] == 2
    file.write_text(json.dumps(tree, indent=2))
    assert live_link.report_in(file) == tree
    del tree["trusted"]
    for other in (json.dumps(tree, indent=2), "[\n]", "{\n", first + last):
        file.write_text(other)
        assert live_link.report_in(file) is None
    assert live_link.report_in(tmp_path) is None
