"""Kernel settings of a scenario: routes, options, sysctls, refusals. No rights required."""

import json
from typing import Any

import pytest

from sojourn import InputError, _sojourn
from sojourn.live import kernel_config, testbed
from sojourn.live.kernel_config import Plan, plan


@pytest.fixture(autouse=True)
def controls(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Pretend that the kernel has exactly three congestion controls."""
    file = tmp_path_factory.mktemp("proc") / "available"
    file.write_text("reno cubic bbr\n", encoding="ascii")
    monkeypatch.setattr(kernel_config, "AVAILABLE", file)
    monkeypatch.setattr(kernel_config, "BBR_VERSION", file.with_name("version"))


def planned(*flows: dict[str, Any]) -> Plan:
    """Return the kernel settings of a scenario with these flows."""
    links = {"up": {"rate": "10mbit"}}
    named = [{"name": "abc"[i], "path": ["up"]} | flow for i, flow in enumerate(flows)]
    tree = {"duration": "2s", "links": links, "flows": named}
    return plan(json.loads(_sojourn.ParsedScenario(json.dumps(tree)).canonical()))


def test_defaults_are_those_of_the_kernel() -> None:
    """No route attributes, the MSS of a full packet; timestamps in the profile linux."""
    assert planned({"tcp": "cubic"}).sysctls["ipv4/tcp_timestamps"] == "1"
    plan = planned({"tcp": "cubic(profile=rfc)", "count": 3})
    assert len(plan.hosts) == 3
    one = plan.hosts[0]
    assert (one.control, one.mss, one.there, one.back) == ("cubic", 1460, "", "")
    assert (plan.sysctls["ipv4/tcp_sack"], plan.sysctls["ipv4/tcp_timestamps"]) == ("1", "0")
    assert plan.warnings == []


def test_parameters_become_attributes_of_routes() -> None:
    """The sender's parameters are on its route, the receiver's on the route back."""
    tcp = {"name": "sack", "ecn": True, "iw": "4p", "rto_min": "250ms", "delack": False}
    [one] = planned({"tcp": tcp | {"prr": True}}).hosts
    assert one.control == "reno"
    assert one.there == "features ecn initcwnd 4 rto_min 250ms"
    assert one.back == "quickack 1"
    [small] = planned({"tcp": {"name": "cubic", "packet": "552B", "header": "52B"}}).hosts
    assert small.mss == 512
    [bytes_] = planned({"tcp": {"name": "cubic", "iw": "6kB"}}).hosts
    assert bytes_.there == "initcwnd 4"


def test_sack_is_off_only_if_no_flow_has_it() -> None:
    """The kernel has one switch for all flows, so a mixture causes a warning."""
    reno = {"tcp": "reno(profile=rfc)"}
    assert planned(reno, {"tcp": "newreno"}).sysctls["ipv4/tcp_sack"] == "0"
    assert planned({"tcp": "reno"}).sysctls["ipv4/tcp_sack"] == "1"
    mixed = planned(reno, {"tcp": "cubic(profile=rfc)"})
    assert mixed.sysctls["ipv4/tcp_sack"] == "1"
    assert mixed.warnings == ["flows.a.tcp: uses SACK, since other flows do"]


@pytest.mark.parametrize(
    ("flow", "error"),
    [
        (
            {"tcp": "vegas(profile=linux)"},
            "flows.b.tcp: this kernel has no vegas, only reno, newreno, sack,",
        ),
        (
            {"tcp": {"name": "cubic", "header": "40B"}},
            "flows.b.tcp.header: 40B differs from the header of other flows",
        ),
        ({"tcp": "reno(profile=ns2, header=52B)"}, 'flows.b.tcp.profile: "ns2" is not supported'),
        ({"tcp": "cubic(profile=quic)"}, 'flows.b.tcp.profile: "quic" is not supported'),
        (
            {"tcp": {"name": "cubic", "tick": "5ms"}},
            "flows.b.tcp.tick: cannot be set",
        ),
        ({"tcp": {"name": "reno", "ssthresh": "20p"}}, "flows.b.tcp.initial_ssthresh: cannot"),
        (
            {"source": {"name": "trace", "time_s": [1], "size_bytes": [2000]}},
            "flows.b.source: a packet of 2000B is not supported",
        ),
        ({"source": "call"}, "flows.b.source: a call is not supported on real packets"),
    ],
)
def test_refusals_name_the_flow_and_the_key(flow: dict[str, Any], error: str) -> None:
    """A silently ignored parameter would change the scenario."""
    with pytest.raises(InputError) as caught:
        planned({"tcp": "cubic"}, flow)
    assert str(caught.value).startswith(error)


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        (
            {"flows": [{"name": "a", "sender": "h0", "receiver": "h1", "spread": "packet"}]},
            "flows.a.spread: is not supported on real packets",
        ),
        (
            {"changes": [{"at": "1s", "links": {"h0-h1": {"up": False}}}]},
            "changes.0.links.h0-h1.up: is not supported on real packets",
        ),
    ],
)
def test_networks_of_a_simulation_are_refused(keys: dict[str, Any], error: str) -> None:
    """Chosen paths and links that fail need the simulator."""
    links = {name: {"rate": "10mbit"} for name in ("h0-h1", "h1-h0")}
    tree = {"duration": "2s", "links": links, "flows": [{"name": "a", "path": ["h0-h1"]}]} | keys
    with pytest.raises(InputError) as caught:
        plan(json.loads(_sojourn.ParsedScenario(json.dumps(tree)).canonical()))
    assert str(caught.value).startswith(error)


@pytest.mark.parametrize(
    ("kernel", "version", "names"),
    [
        ("reno cubic bbr", None, {"bbr": "bbr"}),
        ("reno cubic bbr", "1", {"bbr": "bbr"}),
        ("reno cubic bbr", "3", {"bbr3": "bbr"}),
        ("reno cubic bbr bbr3", None, {"bbr": "bbr", "bbr3": "bbr3"}),
        ("reno cubic prague dctcp", None, {"dctcp": "dctcp", "prague": "prague"}),
    ],
)
def test_congestion_controls_are_those_of_the_kernel(
    kernel: str, version: str | None, names: dict[str, str]
) -> None:
    """The bbr of Google's kernel is BBRv3."""
    kernel_config.AVAILABLE.write_text(f"{kernel}\n", encoding="ascii")
    if version is not None:
        kernel_config.BBR_VERSION.write_text(f"{version}\n", encoding="ascii")
    usual = {"reno": "reno", "newreno": "reno", "sack": "reno", "cubic": "cubic"}
    assert kernel_config.available() == usual | names
    for name, control in names.items():
        [one] = planned({"tcp": name}).hosts
        assert one.control == control
        assert ("features ecn" in one.there) == (name in ("dctcp", "prague"))
        # Receivers accept accurate ECN.
        assert planned({"tcp": name}).sysctls.get("ipv4/tcp_ecn") == {"prague": "5"}.get(name)


@pytest.mark.parametrize(
    ("name", "where"), [("prague", "github.com/L4STeam/linux"), ("bbr3", "github.com/google/bbr")]
)
def test_a_missing_control_is_refused_with_a_kernel_that_has_it(name: str, where: str) -> None:
    """Linux has neither."""
    with pytest.raises(InputError) as caught:
        planned({"tcp": name})
    assert str(caught.value).startswith(f"flows.a.tcp: this kernel has no {name}, only reno,")
    assert str(caught.value).endswith(f"{where} has it")


def test_an_address_identifies_its_row() -> None:
    """At both ends, and beyond one byte."""
    for row in (0, 1, 239, 240, 1000, 64_999):
        assert [testbed.row_of(testbed.address(end, row)) for end in (0, 1)] == [row, row]
    assert testbed.address(0, 0) == "198.18.0.16"
    assert testbed.address(1, 240) == "198.19.1.0"


@pytest.mark.parametrize("name", ["linux_bbr", "linux_cubic", "linux_reno"])
def test_senders_with_settings_of_linux_run_on_linux(name: str) -> None:
    """The profile has the kernel's settings: none needs an attribute."""
    one = planned({"tcp": name})
    assert one.hosts[0].there == ""
    [slow] = planned({"tcp": {"name": name, "rto_min": "1s"}}).hosts
    assert slow.there == "rto_min 1000ms"
    assert one.sysctls["ipv4/tcp_timestamps"] == "1"
    for other in ({"linux_acks": False}, {"abc_limit": 1}, {"limited_transmit": False}):
        with pytest.raises(InputError, match="cannot be set on real packets"):
            planned({"tcp": {"name": name, **other}})
    for other in ({"linux_acks": False}, {"abc_limit": 1}):
        assert planned({"tcp": {"name": name, "profile": "rfc", **other}}).hosts
