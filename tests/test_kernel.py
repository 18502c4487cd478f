"""How the kernel is to play a scenario: routes, options, settings, refusals. It takes no rights."""

import json
import sys
from typing import Any

import pytest

from sojourn import InputError, _sojourn
from sojourn.live import kernel_config, testbed
from sojourn.live.kernel_config import Plan, plan

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a kernel's TCP takes Linux")


@pytest.fixture(autouse=True)
def controls(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A kernel with three congestion controls, whatever this one has."""
    file = tmp_path_factory.mktemp("proc") / "available"
    file.write_text("reno cubic bbr\n", encoding="ascii")
    monkeypatch.setattr(kernel_config, "AVAILABLE", file)


def planned(*flows: dict[str, Any]) -> Plan:
    """Plan a scenario of these flows."""
    links = {"up": {"rate": "10mbit"}}
    given = [{"name": "abc"[i], "path": ["up"]} | flow for i, flow in enumerate(flows)]
    tree = {"duration": "2s", "links": links, "flows": given}
    return plan(json.loads(_sojourn.canonical(json.dumps(tree))))


def test_what_is_not_said_is_as_the_kernel_has_it() -> None:
    """No attribute of a route, a whole packet's MSS, no timestamps."""
    found = planned({"tcp": "cubic", "count": 3})
    assert len(found.hosts) == 3
    one = found.hosts[0]
    assert (one.control, one.mss, one.there, one.back) == ("cubic", 1460, "", "")
    assert (found.sysctls["ipv4/tcp_sack"], found.sysctls["ipv4/tcp_timestamps"]) == ("1", "0")
    assert found.warnings == []


def test_parameters_become_attributes_of_routes() -> None:
    """Those of the sender on the way there, those of the receiver on the way back."""
    tcp = {"name": "sack", "ecn": True, "iw": "4p", "rto_min": "250ms", "delack": False}
    [one] = planned({"tcp": tcp | {"prr": True}}).hosts
    assert one.control == "reno"
    assert one.there == "features ecn initcwnd 4 rto_min 250ms"
    assert one.back == "quickack 1"
    [small] = planned({"tcp": {"name": "cubic", "packet": "552B", "header": "52B"}}).hosts
    assert small.mss == 512
    [bytes_] = planned({"tcp": {"name": "cubic", "iw": "6kB"}}).hosts
    assert bytes_.there == "initcwnd 4"


def test_sack_is_off_where_nobody_has_it_and_on_for_all_otherwise() -> None:
    """The kernel has one switch for all, so a mixture is told."""
    assert planned({"tcp": "reno"}, {"tcp": "newreno"}).sysctls["ipv4/tcp_sack"] == "0"
    mixed = planned({"tcp": "reno"}, {"tcp": "cubic"})
    assert mixed.sysctls["ipv4/tcp_sack"] == "1"
    assert mixed.warnings == ["flows.a.tcp: has SACK here, as others have"]


@pytest.mark.parametrize(
    ("flow", "error"),
    [
        ({"tcp": "vegas"}, "flows.b.tcp: this kernel has no vegas, it plays reno, newreno, sack,"),
        ({"tcp": {"name": "cubic", "header": "52B"}}, "flows.b.tcp.header: differs from that of"),
        ({"tcp": {"name": "cubic", "tick": "5ms"}}, "flows.b.tcp.tick: cannot be chosen"),
        ({"tcp": {"name": "sack", "ssthresh": "20p"}}, "flows.b.tcp.initial_ssthresh: cannot"),
        (
            {"source": {"name": "trace", "time_s": [1], "size_bytes": [2000]}},
            "flows.b.source: a packet of 2000B cannot be played",
        ),
    ],
)
def test_refusals_name_the_flow_and_the_key(flow: dict[str, Any], error: str) -> None:
    """A silent default would be another scenario."""
    with pytest.raises(InputError) as caught:
        planned({"tcp": "cubic"}, flow)
    assert str(caught.value).startswith(error)


def test_addresses_go_there_and_back() -> None:
    """A row has the same number at both ends, over the borders of bytes too."""
    for row in (0, 1, 239, 240, 1000, 64_999):
        assert [testbed.row_of(testbed.address(end, row)) for end in (0, 1)] == [row, row]
    assert testbed.address(0, 0) == "198.18.0.16"
    assert testbed.address(1, 240) == "198.19.1.0"
