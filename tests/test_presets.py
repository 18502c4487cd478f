"""Profile linux: names that mean it, aliases as classes, and the way back to the RFCs."""

import re
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn.scenario.draft import canonical

PRESETS: dict[str, tuple[type[sj.tcp.Tcp], type[sj.tcp.Tcp]]] = {
    "linux_bbr": (sj.tcp.LinuxBbr, sj.Bbr),
    "linux_cubic": (sj.tcp.LinuxCubic, sj.Cubic),
    "linux_dctcp": (sj.tcp.LinuxDctcp, sj.tcp.Dctcp),
    "linux_reno": (sj.tcp.LinuxReno, sj.tcp.Reno),
    "linux_bic": (sj.tcp.LinuxBic, sj.tcp.Bic),
    "linux_cdg": (sj.tcp.LinuxCdg, sj.tcp.Cdg),
    "linux_highspeed": (sj.tcp.LinuxHighSpeed, sj.tcp.HighSpeed),
    "linux_htcp": (sj.tcp.LinuxHtcp, sj.tcp.Htcp),
    "linux_hybla": (sj.tcp.LinuxHybla, sj.tcp.Hybla),
    "linux_illinois": (sj.tcp.LinuxIllinois, sj.tcp.Illinois),
    "linux_nv": (sj.tcp.LinuxNv, sj.tcp.Nv),
    "linux_scalable": (sj.tcp.LinuxScalable, sj.tcp.Scalable),
    "linux_veno": (sj.tcp.LinuxVeno, sj.tcp.Veno),
    "linux_westwood": (sj.tcp.LinuxWestwood, sj.tcp.Westwood),
    "linux_yeah": (sj.tcp.LinuxYeah, sj.tcp.Yeah),
}
"""The class of each alias, and the class of its TCP."""


def scenario(tcp: Any) -> sj.Scenario:
    """Return two flows of `tcp` through CoDel."""
    flow = sj.Flow(name="f", count=2, path=["up"], rtt="20ms", source=sj.Bulk(), tcp=tcp)
    link = sj.Link(rate="10mbit", qdisc=sj.CoDel())
    return sj.Scenario(duration="3s", links={"up": link}, flows=[flow])


@pytest.mark.filterwarnings("ignore::sojourn.ScenarioWarning")  # no link marks for dctcp
@pytest.mark.parametrize("name", PRESETS)
def test_a_class_is_the_name(name: str) -> None:
    """Same scenario as the text and as the name, and others than in the profile rfc."""
    kind, base = PRESETS[name]
    typed, text = scenario(kind()), scenario(name)
    assert issubclass(kind, base)
    assert canonical(typed) == canonical(text)
    assert canonical(typed) == canonical(scenario(base()))
    assert canonical(typed) != canonical(scenario(base(profile="rfc")))
    assert sj.simulate(typed).summary == sj.simulate(text).summary


@pytest.mark.parametrize("name", PRESETS)
def test_parameters_override_those_of_the_profile(name: str) -> None:
    """One that the profile sets, and one that it leaves."""
    kind, _ = PRESETS[name]
    typed = canonical(scenario(kind(rack=False, initial_window="4p")))
    parameters = {"name": name, "rack": False, "initial_window": "4p"}
    assert typed == canonical(scenario(parameters))
    tcp = typed["flows"][0]["tcp"]
    assert (tcp["rack"], tcp["initial_window"], tcp["header"]) == (False, "4p", "52B")


def test_a_flow_without_a_tcp_runs_cubic_as_hosts_do() -> None:
    """The default TCP, and the profiles of a name."""
    [flow] = canonical(scenario(None))["flows"]
    assert flow["tcp"]["name"] == "cubic"
    for profile, header, rto, rack in (
        ("linux", "52B", "200ms", True),
        ("rfc", "40B", "1s", False),
    ):
        tcp = canonical(scenario(sj.Cubic(profile=profile)))["flows"][0]["tcp"]  # type: ignore[arg-type]
        assert (tcp["header"], tcp["rto_min"], tcp["rack"]) == (header, rto, rack)
        assert (tcp == flow["tcp"]) == (profile == "linux")
        assert canonical(scenario(tcp))["flows"][0]["tcp"] == tcp


def test_typed_and_text_profiles_are_refused_alike() -> None:
    """NewReno has no SACK; CUBIC is not in ns-2's agents."""
    for tcp, text in (
        ({"name": "newreno", "profile": "linux"}, "newreno has no SACK, which Linux has; use reno"),
        ({"name": "cubic", "profile": "ns2"}, "cubic is not available in profile ns2"),
    ):
        with pytest.raises(sj.InputError, match=text):
            scenario(tcp)
    with pytest.raises(sj.InputError, match="profile: newreno has no SACK"):
        sj.NewReno(profile="linux")
    with pytest.raises(sj.InputError, match="profile: cubic is not available"):
        sj.Cubic(profile="ns2")


def test_a_file_gives_objects_of_the_classes(tmp_path: Path) -> None:
    """`sj.load` knows the names of presets, and saves them again."""
    path = tmp_path / "case.toml"
    sj.save_scenario(scenario({"name": "linux_cubic", "rack": False}), path)
    case = sj.load(path)
    [flow] = case.flows
    assert isinstance(flow, sj.Flow)
    assert flow.tcp == sj.tcp.LinuxCubic(rack=False)
    assert canonical(case) == canonical(scenario("linux_cubic(rack=false)"))
    assert "header" in (sj.tcp.LinuxCubic()._repr_html_() or "")


def test_faults_are_those_of_the_text() -> None:
    """With the name of the class in front, and the nearest name of a parameter."""
    with pytest.raises(sj.InputError, match=r"^LinuxCubic\.header: ") as typed:
        sj.tcp.LinuxCubic(header="2MB")
    with pytest.raises(sj.InputError, match=r"tcp\.header: ") as text:
        scenario({"name": "linux_cubic", "header": "2MB"})
    assert str(text.value).endswith(str(typed.value).removeprefix("LinuxCubic."))
    with pytest.raises(TypeError, match=re.escape('LinuxBbr has no parameter "rakc"')):
        sj.tcp.LinuxBbr(rakc=True)  # type: ignore[call-arg]
