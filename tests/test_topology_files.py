"""Topologies of other simulators: both formats, random files, faults by line, and the command."""

import random
from pathlib import Path

import pytest

import sojourn as sj
from conftest import Command
from sojourn.fabric import topology_file
from sojourn.fabric.routes import Network

HPCC = "5 2 5\n3\n4\n0 3 25Gbps 0.001ms 0\n1 3 25Gbps 1us 0\n2 4 25Gbps 1000ns 0.01\n" \
    "3 4 100Gbps 500ns 0\n0 4 2.5Gbps 1us 0\nnotes\n"  # fmt: skip

HTSIM = """# two pods of two racks
NODES 16
Tiers 3
Podsize 8
Tier 0
Downlink_speed_Gbps 100
Radix_Down 4
Radix_Up 4
Downlink_Latency_ns 1000
Switch_Latency_ns 100
Tier 1
Downlink_speed_Gbps 100
Bundle 2
Radix_Down 4
Radix_Up 2
Downlink_Latency_ns 500
Tier 2
Downlink_speed_Gbps 400
Radix_Down 2
Downlink_Latency_ns 2000
Switch_Latency_ns 300
"""


def read(text: str, folder: Path) -> topology_file.Topology:
    """Read a topology from a text."""
    (folder / "topology").write_text(text)
    return topology_file.read(folder / "topology")


def test_hpcc(tmp_path: Path) -> None:
    """Both directions of each link, hosts and switches by their numbers."""
    topology = read(HPCC, tmp_path)
    assert (topology.form, topology.hosts, topology.switches) == ("hpcc", 3, 2)
    links = topology.links("step_mark")
    assert len(links) == 10
    assert links["h0-s3"] == {"rate": "25gbit", "delay": "1000ns"}
    assert links["s4-h2"] == {
        "rate": "25gbit", "delay": "1000ns", "loss": "0.01", "qdisc": "step_mark",
    }  # fmt: skip
    assert links["h0-s4"]["rate"] == "2500mbit"


def test_htsim(tmp_path: Path) -> None:
    """Bundles are one link of their rate, and packets wait in the switch that they leave."""
    topology = read(HTSIM, tmp_path)
    # A pod has two racks and two aggregation switches; each of these has two core switches.
    assert (topology.hosts, topology.switches, len(topology.wires)) == (16, 4 + 4 + 4, 16 + 8 + 8)
    links = topology.links()
    assert links["h5-t1"] == {"rate": "100gbit", "delay": "1000ns"}
    assert links["t1-h5"] == {"rate": "100gbit", "delay": "1100ns"}
    assert links["t1-a1"] == {"rate": "200gbit", "delay": "600ns"}
    assert links["a1-t1"] == {"rate": "200gbit", "delay": "500ns"}
    assert links["c2-a1"] == {"rate": "400gbit", "delay": "2300ns"}
    assert links["a3-c3"] == {"rate": "400gbit", "delay": "2000ns"}
    path = Network(links, 1).path("h0", "h15", 3)
    assert [link.split("-")[0][0] for link in path] == ["h", "t", "a", "c", "a", "t"]


FAULTS = {
    "head": ("5 2\n", "line 1: a topology begins with the numbers of nodes, switches and links"),
    "switches": ("3 1 0\n7\n", "line 2: the switches are 1 different numbers below 3"),
    "few": ("3 1 2\n2\n0 2 1Gbps 1us 0\n", "the file has 1 links, and its first line says 2"),
    "twice": ("3 1 2\n2\n0 2 1Gbps 1us 0\n2 0 1Gbps 1us 0\n", "have a link already (line 3)"),
    "rate": ("3 1 1\n2\n0 2 1GBps! 1us 0\n", 'line 3: "1GBps!" is no rate, like 100Gbps'),
    "zero": ("3 1 1\n2\n0 2 0Gbps 1us 0\n", "line 3: the rate is 0"),
    "delay": ("3 1 1\n2\n0 2 1Gbps 1 0\n", 'line 3: "1" is no delay, like 1000ns'),
    "loss": ("3 1 1\n2\n0 2 1Gbps 1us 2\n", "line 3: the error rate is above 1"),
    "fields": ("3 1 1\n2\n0 2 1Gbps 1us\n", "line 3: 4 fields, not 5 (node node rate"),
    "node": ("3 1 1\n2\n0 3 1Gbps 1us 0\n", "line 3: a link has two different nodes below 3"),
    "key": (HTSIM.replace("Radix_Up 4", "Radix_Upp 4"), 'line 8: unknown key "Radix_Upp", did you'),
    "missing": (HTSIM.replace("Radix_Up 4\n", ""), "tier 0 has no Radix_up"),
    "again": (HTSIM + "Radix_Down 3\n", "line 22: Radix_Down is given twice"),
    "tiers": (HTSIM.replace("Tiers 3", "Tiers 2"), "the tiers are not 0 to 1"),
    "shape": (HTSIM.replace("Podsize 8", "Podsize 4"), "do not fit Radix_Down"),
    "core": (HTSIM.replace("Radix_Down 2", "Radix_Down 3"), "Radix_Down of tier 2 must be one"),
    "no nodes": ("Tiers 2\n", "the file has no Nodes"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(fault: str, tmp_path: Path) -> None:
    """With the file, and the line where there is one."""
    text, message = FAULTS[fault]
    with pytest.raises(sj.InputError) as caught:
        read(text, tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'topology'}: ")
    assert message in str(caught.value)


def test_random_files_are_read_or_refused(tmp_path: Path) -> None:
    """A few bytes of a good file are changed; there is no other exception."""
    rng, refused = random.Random(6), 0
    for _ in range(500):
        text = list(rng.choice([HPCC, HTSIM]))
        for _ in range(rng.randint(1, 3)):
            text[rng.randrange(len(text))] = rng.choice("0123456789 \n.Gx#é")
        try:
            links = read("".join(text), tmp_path).links("codel")
        except sj.InputError as error:
            refused += 1
            message = str(error)
        else:
            message = f"{tmp_path / 'topology'}: "
            assert all(name.count("-") == 1 for name in links)
        assert message.startswith(f"{tmp_path / 'topology'}: ")
    assert 150 < refused < 480


def test_the_command_writes_a_scenario_that_runs(tmp_path: Path, sojourn: Command) -> None:
    """With a list of flows relative to the scenario, and FCTs in HPCC's format."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "topology.txt").write_text(
        "4 1 3\n3\n" + "".join(f"{i} 3 100Gbps 1000ns 0\n" for i in range(3))
    )
    (tmp_path / "in" / "flow.txt").write_text("1\n1 0 3 100 200000000 0\n")
    case, fct = tmp_path / "case.toml", tmp_path / "fct.txt"
    code, out, _ = sojourn(
        "topology", "import", tmp_path / "in" / "topology.txt", "-o", case,
        "--flows", tmp_path / "in" / "flow.txt", "--duration", "40ms",
    )  # fmt: skip
    assert (code, out) == (0, f"{case}: 3 hosts, 1 switches, 6 links\n")
    assert 'file = "in/flow.txt"' in case.read_text()
    code, _, _ = sojourn(
        "run", case, "--fct", fct, "--set", "list.tcp=dctcp(packet=1048B, header=48B)"
    )
    assert code == 0
    words = fct.read_text().split()
    # Base RTT: 4 us and two packets of 1000 B; 200,000 packets of 1048 B.
    assert words[:3] == ["0b000101", "0b000001", "10000"]
    assert words[3:6] == ["100", "200000000", "0"]
    assert words[7] == "16772160"
    assert 16_772_000 < int(words[6]) < 16_900_000
    code, _, err = sojourn("topology", "import", tmp_path / "in" / "topology.txt", "-o", case)
    assert code == 2
    assert "exists already; --force overwrites it" in err


def test_an_unknown_host_is_refused_at_once(tmp_path: Path, sojourn: Command) -> None:
    """Before a scenario is written."""
    (tmp_path / "topology.txt").write_text("3 1 2\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n")
    (tmp_path / "flow.txt").write_text("1\n1 2 3 100 5 0\n")
    code, _, err = sojourn(
        "topology", "import", tmp_path / "topology.txt", "--flows", tmp_path / "flow.txt"
    )
    assert code == 2
    assert f"{tmp_path / 'flow.txt'}: host 2 is no host of" in err
