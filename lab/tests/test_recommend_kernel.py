"""Scripts of `recommend` in a kernel: run twice, undone, stopped at each step; traffic passes."""

import os
import platform
import re
from pathlib import Path
from typing import Any

import pytest

from sojourn.recommendation import script
from sojourn.recommendation.line import make
from sojourn.recommendation.link_layer import LAYERS
from sojourn_lab import ROOT
from sojourn_lab.validation.linux import user_mode

if packages := user_mode.missing():
    reason = f"Debian's {', '.join(packages)} is not installed"
    if os.environ.get("CI") and platform.machine() == "x86_64":
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)

PAGE = ROOT / "reports/recommendations/README.md"

MODULES = ("drivers/net/veth", "drivers/net/ifb", "net/sched/cls_matchall", "net/sched/act_mirred")
"""Modules for both directions, in addition to the qdiscs."""

BASE = "$(dirname $(readlink -f /usr/lib/uml))/uml/modules/$(uname -r)/kernel"

PREPARE = [
    *(f"insmod {BASE}/{name}.ko {'numifbs=0' * name.endswith('ifb')}" for name in MODULES),
    "ip link add wan0 address 02:00:00:00:00:01 type veth peer name far",
    "ip addr add 10.0.0.1/24 dev wan0; ip link set wan0 up; ip link set far up",
    "ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev wan0",
    "echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter; echo 0 >/proc/sys/net/ipv4/conf/wan0/rp_filter",
]
"""Device wan0 of a router, whose other end is a device without an address."""

TRAFFIC = r"""
open(my $file, "<", "/sys/class/net/far/ifindex"); my $far = <$file>; chomp $far;
sub at { pack("S n C4 x8", 2, 99, 10, 0, 0, $_[0]) }
socket(my $wire, 17, 3, 0x0008) or die "socket: $!";
bind($wire, pack("S n l S C C a8", 17, 0x0800, $far, 0, 0, 0, "")) or die "bind: $!";
socket(my $router, 2, 2, 0) or die "socket: $!";
bind($router, at(1)) or die "bind: $!";
my $address = pack("C8", 10, 0, 0, 2, 10, 0, 0, 1);
my $head = pack("C C n n n C C n", 69, 0, 30, 0, 0, 64, 17, 0) . $address;
my $sum = 0; $sum += $_ for unpack("n10", $head); $sum = ($sum & 65535) + ($sum >> 16);
substr($head, 10, 2) = pack("n", 65535 ^ $sum);
my $frame = pack("H28", "0200000000010200000000020800") . $head . pack("n4", 99, 99, 10, 0) . "ok";
sub tried {
    my ($name, $from) = @_;
    for (1 .. 20) {
        my $ready = ""; vec($ready, fileno($from), 1) = 1;
        select($ready, undef, undef, 0.5) or return "no $name";
        recv($from, my $packet, 2000, 0);
        return $name if $packet =~ /ok$/;
    }
    return "no $name";
}
send($wire, $frame, 0); my $down = tried("down", $router);
send($router, "ok", 0, at(2)); my $up = tried("up", $wire);
print "traffic: $down $up\n";
"""
"""Program that sends a datagram in each direction, and says which arrived.

It is in Perl, as the kernel cannot keep the vector registers that modules of Python use.
"""

PASSES = "traffic: down up"

HOME = make("20mbit", "1mbit", "20ms..60ms", "home")
SETTINGS: list[tuple[dict[str, Any], str | None]] = [
    ({"name": "cake"}, "docsis"),
    ({"name": "fq_codel", "target": "10ms"}, "adsl-pppoe-llc"),
    ({"name": "codel"}, None),
]


def answers(parts: list[str], folder: Path, *, traffic: bool = True) -> list[str]:
    """Return what a kernel prints for each of the parts, each followed by traffic."""
    program = folder / "traffic.pl"
    program.write_text(TRAFFIC)
    end = f"\nperl {program}" * traffic
    text = "\n".join([*PREPARE, *(f"echo '==='\n{part}{end}" for part in parts)])
    return user_mode.run(text, folder).split("===\n")[1:]


@pytest.mark.parametrize(("qdisc", "layer"), SETTINGS, ids=lambda one: str(one))
def test_a_script_runs_twice_and_is_undone(
    qdisc: dict[str, Any], layer: str | None, tmp_path: Path
) -> None:
    """Each step by itself, then the whole twice, then undone twice: traffic passes after each."""
    lines = script.install(HOME, qdisc, "wan0", "sj-wan0", LAYERS.get(layer or ""))
    whole = "\n".join(lines)
    steps = lines[lines.index("# download: ingress of wan0, through sj-wan0") : -1]
    undo = "\n".join(script.undo("wan0", "sj-wan0", shaped=True))
    show = "echo code $?; tc qdisc show; tc filter show dev wan0 ingress; ip -br link"
    parts = [":", *steps, *(f"{one}\n{show}" for one in (whole, whole, undo, undo))]
    printed = answers(parts, tmp_path)
    assert len(printed) == len(parts)
    for part, text in zip(parts, printed, strict=True):
        assert PASSES in text, f"{part}\n{text}"
    kind = str(qdisc["name"])
    for text in printed[-4:-2]:
        assert "code 0" in text
        assert len(re.findall(rf"^qdisc {kind} ", text, re.MULTILINE)) == 2
        assert text.count("Redirect to device sj-wan0") == 1
        assert "big" not in text, "HTB's warning of its quantum"
    for text in printed[-2:]:
        assert "code 0" in text
        assert not re.search(r"sj-wan0|htb|ingress|Redirect|qdisc cake|codel", text)


def test_a_script_that_fails_at_any_step_leaves_the_line_as_it_was(tmp_path: Path) -> None:
    """Each step fails once: the rest is undone, and traffic passes."""
    lines = script.install(HOME, {"name": "cake"}, "wan0", "sj-wan0", None)
    first = lines.index("# download: ingress of wan0, through sj-wan0") + 1
    parts = []
    for n in range(first, len(lines) - 1):
        if not lines[n].startswith("#"):
            broken = [*lines[:n], "false", *lines[n + 1 :]]
            parts.append("\n".join([*broken, "echo code $?; tc qdisc show; ip -br link"]))
    printed = answers(parts, tmp_path)
    assert len(printed) == len(parts) >= 9
    for part, text in zip(parts, printed, strict=True):
        assert PASSES in text, f"{part}\n{text}"
        assert "code 1" in text
        assert "not installed" in text
        assert not re.search(r"sj-wan0|cake|ingress", text), f"{part}\n{text}"


def test_the_words_of_every_link_layer_are_accepted(tmp_path: Path) -> None:
    """Of CAKE, and of the size table of HTB: the lines of the upload, which have them."""
    parts, names = [], ("cake", "fq_codel")
    for layer in LAYERS.values():
        for name in names:
            lines = script.install(HOME, {"name": name}, "wan0", "sj-wan0", layer)
            added = [line for line in lines if re.match("tc (qdisc|class) add dev wan0 ", line)]
            assert added
            parts.append("\n".join(["tc qdisc del dev wan0 root 2>/dev/null", "(set -e", *added]))
    show = "\n)\necho code $?; tc qdisc show dev wan0"
    printed = answers([part + show for part in parts], tmp_path, traffic=False)
    for n, layer in enumerate(LAYERS.values()):
        cake, htb = printed[2 * n : 2 * n + 2]
        assert "code 0" in cake, cake
        assert "code 0" in htb, htb
        if layer.cake != "raw":
            assert f"overhead {layer.overhead}" in cake
            assert (layer.framing in ("atm", "ptm")) == bool(re.search(r" (atm|ptm) ", cake))


def scripts() -> list[str]:
    """Return the commands of each recommendation of the page, for the device of the kernel."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [block.replace("eth0", "wan0") for block in blocks if "tc qdisc" in block]


def test_every_script_of_the_page_is_accepted(tmp_path: Path) -> None:
    """Shaper, discipline, and the redirection of the download; the qdiscs are then installed."""
    tried = scripts()
    assert len(tried) >= 6
    undo = "\n".join(script.undo("wan0", "sj-wan0", shaped=True))
    printed = answers([f"{one}\necho code $?\n{undo}" for one in tried], tmp_path)
    for part, text in zip(tried, printed, strict=True):
        if "dualpi2" not in part:  # this kernel is built without it
            assert "code 0\n" in text, f"{part}\n{text}"
