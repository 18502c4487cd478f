"""Switches with shared buffers in Python: models, results, files, topologies, the guide."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn._sojourn import InputError
from sojourn._util import units
from sojourn.cli.main import main
from sojourn.display.summary import run_report
from sojourn.live.kernel_config import plan
from sojourn.scenario.draft import Draft, canonical
from support.pages import blocks

PORTS = ["s-h0", "s-h1", "s-h2"]


def overloaded(**switch: Any) -> sj.Scenario:
    """Return a switch with three ports, of which two get more than they can send."""
    link = sj.Link(rate="8mbit", qdisc="droptail(limit=100000p)")
    flows = [
        sj.Flow(name=f"to-{i}", source=sj.Cbr(rate="16mbit", packet="1000B"), path=[PORTS[i]])
        for i in range(2)
    ]
    tor = sj.Switch(**{"buffer": "300kB", "ports": PORTS, **switch})
    return sj.Scenario(
        duration="2s",
        warmup="1s",
        sample="100ms",
        packet_log=True,
        links=dict.fromkeys(PORTS, link),
        switches={"tor": tor},
        flows=flows,
    )


def test_a_result_has_the_drops_and_peaks_of_ports_and_switches(tmp_path: Path) -> None:
    """Also after it was saved. Two ports with alpha 1 hold a third of the buffer each."""
    result = sj.simulate(overloaded())
    result.save(tmp_path / "run")
    for one in (result, sj.load_result(tmp_path / "run")):
        port = one.links["s-h0"]
        assert port.queue_max_bytes == pytest.approx(100_000, abs=2000)
        assert port.dropped_buffer_packets == port.dropped_packets == pytest.approx(1000, abs=2)
        assert one.switches["tor"].buffer_max_bytes == pytest.approx(200_000, abs=3000)
        assert one.links["s-h2"].queue_max_bytes == 0
        log = one.frame("packet_log")
        dropped = log.filter(log["fate"] == "buffer")
        assert len(dropped) > 3000
        assert set(dropped["link"]) == {"s-h0", "s-h1"}
        frame = one.frame("links")
        assert frame["dropped_buffer_packets"].sum() == frame["dropped_packets"].sum()
        drops = sj.metrics.drops_over_time(one, "s-h0")
        assert drops["buffer"][-1] > 1500
        assert drops["overflow"][-1] == drops["aqm"][-1] == 0


def test_the_report_of_a_run_has_the_buffers(capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes and lost packets of each shared buffer."""
    result = sj.simulate(overloaded())
    run_report(result)
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("tor")]
    used = units.size(result.switches["tor"].buffer_max_bytes)
    dropped = sum(result.links[port].dropped_buffer_packets for port in PORTS)
    assert row.split() == ["tor", "300kB", *used.split(), str(dropped), "packets"]


def test_links_without_a_switch_have_no_such_columns() -> None:
    """Results of other scenarios are as before."""
    result = sj.simulate(overloaded().replace(switches=None))
    assert "dropped_buffer_packets" not in result.links["s-h0"]
    assert "dropped_buffer_packets" not in result.frame("series").columns
    assert result.switches == {}
    assert "switches" not in result.scenario


def test_a_sweep_varies_alpha(tmp_path: Path) -> None:
    """Its rows have the largest numbers of bytes of ports and switches."""
    axes = {"switches.tor.alpha": [0.5, 2]}
    frame = sj.sweep(overloaded(), axes, out=tmp_path / "sweep", jobs=1)
    rows = frame.sort("switches.tor.alpha")
    for share, most in zip((0.5, 0.8), rows["tor.buffer_max_bytes"], strict=True):
        assert most == pytest.approx(share * 300_000, abs=5000)
    assert (rows["s-h1.queue_max_bytes"] > 70_000).all()


def test_a_file_with_switches_is_read_as_objects(tmp_path: Path) -> None:
    """And is written as tables."""
    case = overloaded(alpha=0.25, reserve="2kB")
    sj.save_scenario(case, tmp_path / "case.toml")
    assert "[switches.tor]" in (tmp_path / "case.toml").read_text()
    loaded = sj.load(tmp_path / "case.toml")
    assert loaded.switches is not None
    assert loaded.switches["tor"] == case.switches["tor"]  # type: ignore[index]
    assert canonical(loaded) == canonical(case)


def test_bad_switches_have_the_path_of_the_value() -> None:
    """As other tables of a scenario."""
    for switch, message in (
        ({"ports": "s-h0"}, "Switch.ports: is no list of names of links"),
        ({"ports": ["s-h7"]}, "switches.tor.ports.0: unknown link"),
        ({"buffer": 300_000}, "switches.tor.buffer: "),
        ({"reserve": "101kB"}, "switches.tor.reserve: 303kB in all exceed the buffer of 300kB"),
    ):
        with pytest.raises(InputError, match=message.replace(".", r"\.")):
            sj.simulate(overloaded(**switch))
    with pytest.raises(InputError, match="no mapping from names to switches"):
        overloaded().replace(switches=[])


def classed(**switch: Any) -> sj.Scenario:
    """Return `overloaded` with a flow of EF to each port, and class 0 to the first two."""
    base = overloaded(**{"classes": {"EF": {"alpha": 8, "reserve": "2kB"}}, **switch})
    cbr = sj.Cbr(rate="16mbit", packet="1000B")
    ef = [
        sj.Flow(name=f"ef-{i}", source=cbr, path=[port], dscp="EF") for i, port in enumerate(PORTS)
    ]
    return base.replace(flows=[*(base.flows or []), *ef])


def test_a_result_has_the_drops_and_peaks_of_classes(tmp_path: Path) -> None:
    """Also after it was saved. Three queues have alpha 8, two have alpha 1."""
    result = sj.simulate(classed())
    result.save(tmp_path / "run")
    pool = 300_000 - 3 * 2_000
    for one in (result, sj.load_result(tmp_path / "run")):
        classes = one.switches["tor"].classes
        assert set(classes) == {"46", "others"}
        high, low = classes["46"], classes["others"]
        assert high.queue_max_bytes == pytest.approx(2_000 + 8 * pool / 27, abs=12_000)
        assert low.queue_max_bytes == pytest.approx(pool / 27, abs=3000)
        drops = sum(one.links[port].dropped_buffer_packets for port in PORTS)
        assert high.dropped_buffer_packets + low.dropped_buffer_packets == drops > 5000
        assert one.switches["tor"].buffer_max_bytes <= 300_000
    assert "classes" not in sj.simulate(overloaded()).switches["tor"]


def test_classes_are_written_and_read_as_tables(tmp_path: Path) -> None:
    """In TOML and JSON, by name or number; a sweep varies them."""
    case = classed()
    for name in ("case.toml", "case.json"):
        sj.save_scenario(case, tmp_path / name)
        assert canonical(sj.load(tmp_path / name)) == canonical(case)
    expected = {"46": {"alpha": 8, "reserve": "2kB"}}
    assert canonical(case)["switches"]["tor"]["classes"] == expected
    number = classed(classes={"46": {"alpha": 8, "reserve": "2kB"}})
    assert canonical(number) == canonical(case)
    axes = {"switches.tor.classes.EF.alpha": [0.5, 8]}
    frame = sj.sweep(case, axes, out=tmp_path / "sweep", jobs=1)
    small, large = frame.sort("switches.tor.classes.EF.alpha")["s-h2.queue_max_bytes"]
    assert 2 * small < large


def test_bad_classes_have_the_path_of_the_value() -> None:
    """And say what is allowed."""
    for classes, message in (
        ({"EF": {"alpha": 0}}, "EF.alpha: 0 is out of range, allowed: 0.0001 to 10000"),
        ({"EF": {"alfa": 1}}, 'EF.alfa: unknown key "alfa"'),
        ({"voice": {}}, 'voice: unknown DSCP "voice"'),
        ({"EF": {}, "40-50": {}}, "EF: class 46 is in two groups"),
    ):
        with pytest.raises(InputError) as error:
            sj.simulate(overloaded(classes=classes))
        assert str(error.value).startswith(f"switches.tor.classes.{message}")
    with pytest.raises(InputError, match=r"^classes: needs buffer"):
        sj.fat_tree(4, classes={"EF": {"alpha": 8}})


def test_real_packets_refuse_a_shared_buffer() -> None:
    """Before anything is created."""
    with pytest.raises(InputError, match=r"^switches: a shared buffer is not supported on real"):
        plan(canonical(overloaded()))


def test_switches_of_a_fat_tree_share_buffers() -> None:
    """Every link that leaves a switch is a port of it; links of hosts are not."""
    case = canonical(sj.fat_tree(4, buffer="1MB", alpha=0.5, pairs=[(0, 15), (1, 2)]))
    switches = case["switches"]
    assert {"buffer": "1MB", "alpha": 0.5, "reserve": "0B"}.items() <= switches["e0"].items()
    ports = [port for switch in switches.values() for port in switch["ports"]]
    assert sorted(ports) == [link for link in case["links"] if not link.startswith("h")]
    for name, switch in switches.items():
        assert all(port.startswith(f"{name}-") for port in switch["ports"])


@pytest.mark.parametrize(
    "make",
    [
        lambda **own: sj.fat_tree(4, spread="packet", **own),
        lambda **own: sj.leaf_spine(2, 2, 2, **own),
    ],
    ids=["fat tree", "leaf-spine"],
)
def test_switches_that_choose_paths_share_buffers(make: Callable[..., sj.Scenario]) -> None:
    """Each has all its links as ports; hosts have no shared buffer."""
    case = canonical(make(buffer="1MB", alpha=0.5))
    ports = sorted(port for switch in case["switches"].values() for port in switch["ports"])
    assert ports == sorted(name for name in case["links"] if not name.startswith("h"))
    assert all(switch["alpha"] == 0.5 for switch in case["switches"].values())
    assert "switches" not in canonical(make())
    classes = {"EF": {"alpha": 8.0}}
    case = canonical(make(buffer="1MB", classes=classes))
    assert all(switch["classes"] == {"46": {"alpha": 8}} for switch in case["switches"].values())


def test_an_imported_topology_has_switches_with_buffers(tmp_path: Path) -> None:
    """The command writes the table of each switch."""
    (tmp_path / "two.txt").write_text(
        "4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 100Gbps 1us 0\n"
    )
    out = tmp_path / "two.toml"
    words = ["topology", "import", str(tmp_path / "two.txt"), "-o", str(out)]
    assert main([*words, "--buffer", "9MB", "--alpha", "0.125"]) == 0
    switch = Draft.read(out).tree["switches"]["s3"]
    assert switch == {"buffer": "9MB", "alpha": 0.125, "ports": ["s3-h0", "s3-h1", "s3-h2"]}
    assert canonical(out)["switches"]["s3"]["alpha"] == 0.125
    words += ["--force", "--buffer", "9MB", "--class-alpha", "EF=8", "--class-alpha", "8-15=0.5"]
    assert main(words) == 0
    classes = {"EF": {"alpha": 8}, "8-15": {"alpha": 0.5}}
    assert Draft.read(out).tree["switches"]["s3"]["classes"] == classes
    assert canonical(out)["switches"]["s3"]["classes"]["46"] == {"alpha": 8}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--class-alpha", "EF=8"], "--class-alpha: needs --buffer"),
        (["--alpha", "2"], "--alpha: needs --buffer"),
        (["--buffer", "9MB", "--class-alpha", "EF"], '--class-alpha: "EF" is not CLASS=ALPHA'),
        (["--buffer", "9MB", "--class-alpha", "=8"], '--class-alpha: "=8" is not CLASS=ALPHA'),
        (
            ["--buffer", "9MB", "--class-alpha", "EF=8", "--class-alpha", "EF=9"],
            '--class-alpha: "EF" is given twice',
        ),
        (["--buffer", "9MB", "--class-alpha", "EG=8"], 'switches.s2.classes.EG: unknown DSCP "EG"'),
        (["--buffer", "9MB", "--alpha", "-1"], "switches.s2.alpha: -1 is out of range"),
        (["--qdisc", "codle"], 'links.s2-h0.qdisc: unknown discipline "codle"'),
        (["--tcp", "dctpc"], 'unknown tcp "dctpc", did you mean "dctcp"'),
        (["--duration", "3"], 'duration: "3" has no unit'),
    ],
)
def test_bad_options_of_a_topology_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    """Before a scenario is written, with the option or the key and what is allowed."""
    (tmp_path / "two.txt").write_text("3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n")
    out = tmp_path / "two.toml"
    assert main(["topology", "import", str(tmp_path / "two.txt"), "-o", str(out), *words]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_the_guide_puts_calls_before_bulk_at_every_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The example with classes: remote calls are not delayed by bulk, and bulk shares by weight."""
    monkeypatch.chdir(tmp_path)
    code = next(c for c in blocks("python", "docs/how-to/data-centres.md") if "sj.fat_tree" in c)
    names: dict[str, Any] = {}
    exec(compile(code, "data-centres.md", "exec"), names)
    result = names["result"]
    rpc = [flow for name, flow in result.flows.items() if name.startswith("rpc")]
    assert len(rpc) == 4
    # Six links take 4 us each and have a delay of 1 us; a packet in transmission takes 12 us.
    assert all(30e-6 < flow.delay_max_s < 30e-6 + 6 * 12e-6 for flow in rpc)
    web, backup = (result.flows[name].goodput_bps for name in ("web", "backup"))
    assert web / backup == pytest.approx(3, rel=0.1)
    assert web + backup > 0.8e9
