"""Reasons of a difference between disciplines, senders' rules, and trials of proposed changes."""

import json
from typing import Any

import pytest

import sojourn as sj
from conftest import Command
from sojourn.explanation.finding import Finding


def ran(qdisc: Any, flows: list[dict[str, Any]], rate: str = "10mbit") -> sj.Result:
    """Return a run of flows over one link."""
    links = {"up": {"rate": rate, "delay": "5ms", "qdisc": qdisc}}
    return sj.simulate({"duration": "15s", "warmup": "5s", "links": links, "flows": flows})


BULK: dict[str, Any] = {"name": "bulk", "count": 4, "path": ["up"], "rtt": "40ms"}
CALL: dict[str, Any] = {
    "name": "call", "source": "cbr(rate=64kbit, packet=200B)", "path": ["up"], "rtt": "40ms"
}  # fmt: skip


def why(results: dict[str, sj.Result], metric: str) -> Finding:
    """Return the only finding about a metric."""
    (findings,) = sj.explain_difference(results, metric).values()
    (one,) = findings
    return one


def test_a_queue_per_flow_protects_a_call() -> None:
    """The sentence names the queue that all share, its delay, and both values."""
    two = {name: ran(name, [BULK, CALL]) for name in ("droptail", "fq_codel")}
    one = why(two, "call.delay_p99")
    assert one.text.startswith("call: one packet in a hundred took")
    assert "droptail has no queue for each flow: half of all packets waited" in one.text
    assert one.evidence["fq_codel: call.delay_p99_s"] == two["fq_codel"].groups["call"].delay_p99_s
    assert one.evidence["droptail: call.delay_p99_s"] == two["droptail"].groups["call"].delay_p99_s


def test_between_single_queues_the_target_is_the_reason() -> None:
    """Both medians and what each discipline does stand in the sentence."""
    two = {name: ran(name, [BULK, CALL]) for name in ("droptail", "codel")}
    text = why(two, "call.delay_p99_s").text
    assert "under codel" in text.partition("under droptail")[0]
    assert "codel holds the queue near its target of 5.00 ms" in text
    assert "droptail drops only if the buffer is full" in text


def test_an_idle_link_is_the_reason_for_less_goodput() -> None:
    """A small buffer: the use of the link and its drops are named."""
    small = {"name": "droptail", "limit": "3p"}
    two = {"large": ran("droptail", [BULK]), "small": ran(small, [BULK])}
    text = why(two, "bulk.goodput").text
    assert text.startswith("bulk: got")
    assert "large used up for" in text
    assert "at its full buffer" in text


def test_classes_are_the_reason_for_shares() -> None:
    """Background traffic gets little under cake, by its class."""
    marked = [{**BULK, "name": name, "dscp": dscp} for name, dscp in (("a", "CS0"), ("b", "CS1"))]
    two = {name: ran(name, marked) for name in ("fq_codel", "cake")}
    text = why(two, "b.goodput").text
    assert "cake sorts packets by their class (DSCP); b has class 8" in text
    assert "The other groups of up got" in text


def test_equal_values_are_said_to_be_equal() -> None:
    """Without a difference there is no reason, and an unknown metric is refused."""
    two = {"one": ran("codel", [BULK, CALL]), "two": ran("codel", [BULK, CALL])}
    assert sj.explain_difference(two)["two"] == []
    assert why(two, "call.delay_p99").text == "call.delay_p99_s is about the same under both."
    with pytest.raises(sj.InputError, match="did you mean"):
        sj.explain_difference(two, "call.delay_p98_s")


def findings_of(result: sj.Result, rule: str) -> list[Finding]:
    """Return the findings of a rule."""
    return [one for one in sj.explain(result) if one.rule == rule]


def test_incast_is_named_where_answers_overflow_a_buffer() -> None:
    """32 servers are too many for the buffer, 4 are not."""
    answers: dict[str, Any] = {
        "name": "answers",
        "source": "incast(size=20kB, gap=5ms)",
        "path": ["up"],
    }
    answers |= {"rtt": "10.1ms", "tcp": {"name": "cubic", "rto_min": "10ms", "delayed_ack": False}}
    queue = {"name": "droptail", "limit": "150kB"}
    (one,) = findings_of(ran(queue, [{**answers, "count": 32}], "1gbit"), "incast")
    assert "The 32 flows of answers reach up at once: 640 kB for a buffer of 150kB" in one.text
    assert not findings_of(ran(queue, [{**answers, "count": 4}], "1gbit"), "incast")


def test_a_threshold_drops_what_it_cannot_mark() -> None:
    """RED with equal thresholds drops SYNs and flows without ECN; RED with a range is not named."""
    red = {"name": "red", "min_th": "30p", "max_th": "31p", "w_q": 1, "ecn": True}
    ecn = {**BULK, "tcp": {"name": "dctcp"}}
    both = [ecn, {**BULK, "name": "plain"}]
    (one,) = findings_of(ran(red, both), "threshold drops what it cannot mark")
    assert "acts as a threshold at 30p" in one.text
    wide = {**red, "max_th": "90p"}
    assert not findings_of(ran(wide, both), "threshold drops what it cannot mark")


def test_spurious_retransmissions_are_named() -> None:
    """A delay that jumps above the timeout makes senders repeat what was not lost."""
    jumps: dict[str, Any] = {
        "t_ns": [0, 6 * 10**9, 7 * 10**9],
        "delay_ns": [5 * 10**6, 900 * 10**6, 5 * 10**6],
    }
    queue = "droptail(limit=1000p)"
    links = {"up": {"rate": "10mbit", "trace": jumps, "qdisc": queue}}
    tcp = {"name": "newreno", "profile": "rfc", "rto_min": "100ms", "receive_window": "60p"}
    flows = [{**BULK, "tcp": tcp}]
    tree: dict[str, Any] = {"duration": "15s", "warmup": "5s", "links": links, "flows": flows}
    result = sj.simulate(tree)
    lost = result.links["up"].dropped_packets
    again = sum(flow.retransmitted_packets for flow in result.flows.values())
    named = findings_of(result, "spurious retransmissions")
    assert bool(named) == (again >= 20 and again >= 2 * lost)
    assert named
    assert not findings_of(ran(queue, flows), "spurious retransmissions")


def test_the_command_explains_differences_and_tries_changes(sojourn: Command) -> None:
    """`--qdisc A,B` adds the reasons, `--metric` selects one, `--try` runs what is proposed."""
    code, out, err = sojourn("explain", "home_uplink", "--qdisc", "droptail,fq_codel")
    assert (code, err) == (0, "")
    assert "fq_codel against droptail" in out
    code, out, _ = sojourn(
        "explain", "home_uplink", "--qdisc", "droptail,fq_codel", "--metric", "call.delay_p99",
        "--json",
    )  # fmt: skip
    (findings,) = json.loads(out).values()
    assert [one["rule"] for one in findings] == ["why call.delay_p99_s"]
    code, out, _ = sojourn("explain", "home_uplink", "--try")
    assert code == 0
    assert "Tried bottleneck.qdisc=fq_codel:" in out
    for words, message in (
        (["--metric", "call.delay_p99"], "--metric: requires two disciplines"),
        (["--qdisc", "codel,codel"], "a discipline is named twice"),
        (["--qdisc", "codel,pie", "--metric", "call.delya"], "is not compared"),
    ):
        code, _, err = sojourn("explain", "home_uplink", *words)
        assert code != 0
        assert message in err


def test_every_proposed_change_is_accepted() -> None:
    """A setting that a rule proposes runs, and removes most of what the rule reports."""
    small = {"name": "droptail", "limit": "3p"}
    for qdisc, rule in (("droptail", "standing queue"), (small, "small buffer")):
        result = ran(qdisc, [BULK])
        (one,) = findings_of(result, rule)
        key, _, value = one.change[0].partition("=")
        assert key.startswith("up.qdisc")
        other = value if key == "up.qdisc" else {"name": "droptail", "limit": value}
        changed = ran(other, [BULK])
        assert changed.links["up"].qdisc in ("fq_codel", "droptail")
        if rule == "standing queue":
            assert changed.links["up"].sojourn_p50_s < 0.1 * result.links["up"].sojourn_p50_s
        else:
            assert not findings_of(changed, rule)
