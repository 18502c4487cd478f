"""Configurations of other programs: read, written and read again, and refused."""

import json
from pathlib import Path

import pytest

from conftest import Command
from sojourn import InputError, formats, tc

CAKES = (
    "cake(bandwidth=20mbit, overhead='44 atm', rtt=50ms, tins=besteffort)",
    "cake(bandwidth=100mbit, isolation=dual_srchost, ack_filter=on, wash=true)",
)
CODELS = (
    "fq_codel(limit=1000p, target=10ms, interval=120ms, ecn=true, variant=linux)",
    "fq_codel(limit=1001p, flows=512, quantum=300B, ecn=false, variant=linux)",
)
OTHERS = (
    "codel(limit=500p, target=7ms, ecn=true, variant=linux)",
    "fq_pie(limit=700p, variant=linux)",
    "sfq(limit=100p, variant=linux)",
    "pie(limit=200p, variant=linux)",
    "droptail(limit=300p)",
)

ROUND_TRIPS = [
    *(("sqm", one) for one in (*CAKES, *CODELS, *OTHERS)),
    *(("networkd", one) for one in (*CAKES, *CODELS, *OTHERS)),
    *(("ifupdown", one) for one in (*CAKES, *CODELS, *OTHERS)),
    *(("networkmanager", one) for one in CODELS),
]


@pytest.mark.parametrize(("form", "qdisc"), ROUND_TRIPS)
def test_what_is_written_is_read_again(form: str, qdisc: str) -> None:
    """The link has the parameters that tc's own commands give, or a comment says what is lost."""
    link = {"rate": "20mbit", "qdisc": qdisc}
    plain = tc.export(link, dev="eth0", netem=False)
    text = tc.export(link, dev="eth0", form=form)
    notes = [line for line in text.splitlines() if line.startswith("# ") and ": " in line]
    (theirs,), (ours,) = tc.imported(plain), tc.imported(text)
    assert ours["dev"] == "eth0"
    lost_rate = form == "networkmanager" or (form == "sqm" and "cake" in qdisc)
    assert ours["rate"] == (None if lost_rate else theirs["rate"])
    assert any("# rate" in note for note in notes) == lost_rate
    differing = tc.diff(ours["qdisc"], theirs["qdisc"])
    named = " ".join(notes)
    # systemd has one key for pie, fq_pie and sfq; sqm gives each queue of pie a target.
    missing = [row for row in differing if row[0] not in named]
    assert not missing or (form == "networkd" and "sfq" in qdisc), (missing, text)


def test_every_format_is_recognised() -> None:
    """By its text, and by `form` the same."""
    link = {"rate": "20mbit", "qdisc": CODELS[0]}
    for form in formats.WRITTEN:
        text = tc.export(link, dev="eth0", form=form, netem=False)
        assert tc.imported(text) == tc.imported(text, form=form)


RATES = {
    ("simplest.qos", 795): ("17600us", "112600us"),
    ("simplest.qos", 1000): ("13992us", "108992us"),
    ("simplest.qos", 2799): ("5ms", "100ms"),
    ("simplest_tbf.qos", 2000): ("6996us", "101996us"),
}


@pytest.mark.parametrize(("script", "rate"), RATES)
def test_slow_lines_of_sqm_have_a_longer_target(script: str, rate: int) -> None:
    """33 cells of ATM, and 95 ms more for the interval."""
    text = f"config queue\n option interface e\n option upload '{rate}'\n option download '0'\n"
    (link,) = tc.imported(f"{text} option script '{script}'\n")
    target, interval = RATES[script, rate]
    assert link["qdisc"]["limit"] == "1001p"
    assert link["qdisc"].get("target", "5ms") == target
    assert link["qdisc"].get("interval", "100ms") == interval
    assert link["rate"] == (f"{rate}kbit" if rate % 1000 else f"{rate // 1000}mbit")


LAYERS = {
    ("layer_cake.qos", "ethernet", "38", "84"): ("38 mpu 84", "diffserv3", []),
    ("piece_of_cake.qos", "atm", "44", None): ("44 atm", "besteffort", []),
    ("piece_of_cake.qos", "none", "44", None): (
        None, "besteffort", ["option overhead '44' without a linklayer"],
    ),
    ("simplest.qos", "adsl", "40", "53"): (None, None, []),
}  # fmt: skip


@pytest.mark.parametrize(("script", "layer", "overhead", "mpu"), LAYERS)
def test_overhead_of_sqm(script: str, layer: str, overhead: str, mpu: str | None) -> None:
    """Cake accounts for it; of other qdiscs, the size table is the overhead of the link."""
    lines = ["config queue", " option interface e", " option upload '5000'", " option download 0"]
    lines += [f" option script {script}", f" option linklayer {layer}"]
    lines += [f" option overhead {overhead}", *([f" option tcMPU {mpu}"] if mpu else [])]
    (link,) = tc.imported("\n".join(lines))
    expected, tins, lost = LAYERS[script, layer, overhead, mpu]
    assert link["qdisc"].get("overhead") == expected
    assert link["qdisc"].get("tins", "diffserv3" if expected else None) == tins
    assert [one for one in link["lost"] if one.startswith(("option", "stab"))] == lost
    stab = f"stab mtu 2047 tsize 512 mpu {mpu} overhead {overhead} linklayer {layer} htb"
    assert (stab in formats.read("\n".join(lines)).text) == (script == "simplest.qos")
    # The table counts the Ethernet header.
    assert link["overhead"] == ("54 mpu 53 atm" if layer == "adsl" else None)


NETWORKD = """\
[Match]
Name=wan0

[Network]
DHCP=yes

[CAKE]
Bandwidth=20M
OverheadBytes=38
MPUBytes=84
CompensationMode=none
FlowIsolationMode=dual-src-host
NAT=yes
PriorityQueueingPreset=besteffort
RTTSec=50ms
AckFilter=aggressive
Surprise=1
"""


def test_a_file_of_networkd(tmp_path: Path, sojourn: Command) -> None:
    """Units of 1000 bits and of seconds; an unknown key is lost, and refused by --strict."""
    path = tmp_path / "wan.network"
    path.write_text(NETWORKD)
    code, out, _ = sojourn("tc", "import", path, "--json")
    assert code == 0
    (link,) = json.loads(out)
    assert link["dev"] == "wan0"
    assert link["qdisc"]["bandwidth"] == "20mbit"
    assert link["qdisc"]["overhead"] == "38 mpu 84"
    assert (link["qdisc"]["rtt"], link["qdisc"]["isolation"]) == ("50ms", "dual_srchost")
    assert link["qdisc"]["ack_filter"] == "aggressive"
    assert "[CAKE] Surprise=1" in link["lost"]
    code, _, err = sojourn("tc", "import", path, "--strict")
    assert code == 2
    assert "wan0" in err


SHAPED = """\
[Match]
Name=eth0
[HierarchyTokenBucket]
Parent=root
Handle=0002
DefaultClass=1
[HierarchyTokenBucketClass]
Parent=root
ClassId=2:1
Rate=10M
[NetworkEmulator]
Parent=2:1
DelaySec=50ms
DelayJitterSec=10ms
LossRate=1%
"""


def test_classes_and_netem_of_networkd() -> None:
    """A class below the root, and the emulator below it."""
    commands = formats.read(SHAPED).text.splitlines()
    assert commands == [
        "tc qdisc add dev eth0 root handle 0002: htb default 1",
        "tc class add dev eth0 parent 2: classid 2:1 htb rate 10mbit",
        "tc qdisc add dev eth0 parent 2:1 netem delay 50000us 10000us loss 1%",
    ]


INTERFACES = """\
auto eth0
iface eth0 inet dhcp
    pre-up ip link set eth0 up
    post-up tc qdisc add dev $IFACE root handle 1: htb default 1 && \\
        tc class add dev $IFACE parent 1: classid 1:1 htb rate 19mbit
    up /sbin/tc qdisc add dev ${IFACE} parent 1:1 fq_codel limit 600
    down tc qdisc del dev eth0 root
"""


def test_interfaces_of_ifupdown() -> None:
    """Commands on the way up, with the name of the interface."""
    (link,) = tc.imported(INTERFACES)
    assert (link["dev"], link["rate"]) == ("eth0", "19mbit")
    assert link["qdisc"]["limit"] == "600p"


CONNECTION = """\
[connection]
id=home
interface-name=eth0
[tc]
qdisc.root=handle 8: {words}
"""


def test_a_connection_of_networkmanager() -> None:
    """Words of fq_codel count, words of cake are dropped, and rates of tbf are refused."""
    (link,) = tc.imported(CONNECTION.format(words="fq_codel target 8000 limit 500 ecn"))
    assert link["qdisc"]["target"] == "8ms"
    assert link["lost"] == []
    (link,) = tc.imported(CONNECTION.format(words="cake bandwidth 20mbit"))
    assert "bandwidth" not in link["qdisc"]
    assert "[tc] qdisc.root: NetworkManager drops the words of cake" in link["lost"]
    with pytest.raises(InputError, match=r"tbf is not read: its rate has another unit"):
        tc.imported(CONNECTION.format(words="tbf rate 1000 burst 100"))
    with pytest.raises(InputError, match=r'unknown word "?bandwidth"? of fq_codel'):
        tc.imported(CONNECTION.format(words="fq_codel bandwidth 20mbit"))


REFUSED = {
    "[CAKE]\nBandwidth=20M\n": r"^\[Match\] Name: is missing",
    "[Match]\nName=e*\n[CAKE]\n": r"^\[Match\] Name: e\* is not one device",
    "[Match]\nName=e\n[CAKE]\nBandwidth=20MB/s\n": r"^\[CAKE\] Bandwidth: 20MB/s is not a rate",
    "[Match]\nName=e\n[PIE]\nTargetSec=1\n": r"^\[PIE\] TargetSec: is not a key of this section",
    "[Match]\nName=e\n[CAKE]\nNAT=maybe\n": r"^\[CAKE\] NAT: maybe is neither yes nor no",
    "[Match]\nName=e\n[CAKE]\noops\n": r"^line 4: oops is not Key=Value",
    "iface e inet dhcp\n up echo hello\n": r"^no interface has a command of tc",
    "config queue\n option interface e\n option script my.qos\n": r"unknown script my\.qos",
}


@pytest.mark.parametrize("text", REFUSED)
def test_bad_configurations_are_refused_with_the_key(text: str) -> None:
    """In one line."""
    with pytest.raises(InputError, match=REFUSED[text]) as error:
        tc.imported(text)
    assert "\n" not in str(error.value)


def test_bad_formats_are_refused(sojourn: Command) -> None:
    """With the known names."""
    code, _, err = sojourn("tc", "export", "codel", "--format", "sqn")
    assert code == 2
    assert '--format: "sqn" is none of tc, sqm, networkd, networkmanager, ifupdown' in err
    code, _, err = sojourn("tc", "import", "tc qdisc add dev e root pie", "--format", "netwrokd")
    assert code == 2
    assert 'did you mean "networkd"' in err
    code, _, err = sojourn("tc", "export", "codel", "--format", "sqm")
    assert code == 2
    assert "sqm needs a rate" in err


def test_strict_refuses_what_a_format_cannot_say(sojourn: Command, tmp_path: Path) -> None:
    """As for tc's own commands."""
    path = tmp_path / "s.toml"
    path.write_text(
        'duration = "1s"\n[links.up]\nrate = "1mbit"\nqdisc = "tc: fq_codel"\n'
        '[[flows]]\nname = "f"\npath = ["up"]\n'
    )
    code, out, _ = sojourn("tc", "export", path, "--format", "networkmanager")
    assert code == 0
    assert "# rate: NetworkManager has no class for 1mbit" in out
    code, _, err = sojourn("tc", "export", path, "--format", "networkmanager", "--strict")
    assert code == 2
    assert "NetworkManager has no class" in err
