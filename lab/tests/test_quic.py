"""The profile `quic`; reports/validation-quic.md has quinn's results."""

import json
from typing import Any

import pytest

import sojourn as sj
from sojourn_lab.validation import quic

QUINN = json.loads(quic.VECTOR.read_text())


def run(tcp: dict[str, Any], **link: Any) -> Any:
    """Return the outcome of one bulk flow over 20 Mbit/s and 20 ms."""
    return sj.simulate(
        {
            "duration": "20s",
            "links": {"link": {"rate": "20mbit", "delay": "10ms", "qdisc": "droptail", **link}},
            "flows": [{"name": "quic", "path": ["link"], "rtt": "20ms", "tcp": tcp}],
        }
    )


@pytest.mark.parametrize("path", ["10 ms, droptail 1 BDP", "100 ms, droptail 0.5 BDP"])
@pytest.mark.parametrize("control", ["newreno", "cubic"])
def test_a_flow_has_the_goodput_of_quinn(control: str, path: str) -> None:
    """Within 3 %."""
    goodput = quic.row(quic.ours(quic.setups()[path], control))[0]
    assert goodput == pytest.approx(QUINN[control][path][0], rel=0.03)


def test_random_loss_causes_no_probe_timeouts() -> None:
    """A lost retransmission has its own packet number, so it is detected like any other loss."""
    flow = run({"name": "bbr", "profile": "quic"}, loss=0.02).flows["quic"]
    assert flow["goodput_bps"] > 17e6
    assert flow["retransmitted_packets"] > 500
    assert flow["timeouts"] <= 2


def test_marks_replace_drops() -> None:
    """With ECN, codel marks the packets of a QUIC flow."""
    tcp = {"name": "cubic", "profile": "quic", "ecn": True}
    outcome = run(tcp, qdisc={"name": "codel", "ecn": True})
    assert outcome.links["link"]["marked_packets"] > 5
    assert outcome.links["link"]["dropped_packets"] == 0
    assert outcome.flows["quic"]["goodput_bps"] > 17e6
