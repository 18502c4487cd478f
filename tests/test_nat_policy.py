"""The policy of a link with `--nat`, like a home router's, tried from both sides.

The inside reaches other machines with its own addresses only. They do not reach the inside. Nothing
else is forwarded, and services on the loopback addresses of this machine stay out of reach.
"""

import os
import shlex
import subprocess
import sys
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from live_link import FAR, NEAR, NEAR6, arguments, python
from nat_testbed import in_world, other, without
from nat_world import HERE, HERE6, NEIGHBOUR, PORT, SECOND, SECRET_PORT
from sojourn.live import firewall, marks
from sojourn.live.netdev import Block

pytestmark = pytest.mark.live("nsenter", tun=True)
TOOLS = pytest.mark.parametrize("tool", ["nft", "iptables"])

INSIDE_PORT = 7777

SERVE = f"""
import socket, sys, threading
listening = socket.create_server(("::", {INSIDE_PORT}), family=socket.AF_INET6,
                                 dualstack_ipv6=True)
datagrams = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
datagrams.bind(("::", {INSIDE_PORT}))
def work():
    while True:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(b"inside")
def echo():
    while True:
        data, sender = datagrams.recvfrom(100)
        datagrams.sendto(b"inside", sender)
for one in (work, echo):
    threading.Thread(target=one, daemon=True).start()
print("up", flush=True)
sys.stdin.read()
"""
"""Servers inside, until the end of the input."""

PROBE = """
import socket, sys
kind, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
family = socket.AF_INET6 if ":" in host else socket.AF_INET
with socket.socket(family, getattr(socket, f"SOCK_{kind}")) as s:
    s.settimeout(20 if len(sys.argv) > 4 else 2)
    try:
        s.connect((host, port))
        s.send(b"x")
        print(s.recv(100).decode(), flush=True)
    except OSError:
        print("nothing", flush=True)
"""
"""Prints what a server answers, or "nothing"."""


def probe(kind: str, host: str, port: int, *, where: str = "", expected: bool = False) -> str:
    """Return the command of a shell that asks a server, from the network of process `where`."""
    enter = f"nsenter -t {where} -n " if where else ""
    return enter + shlex.join(python(PROBE, kind, host, port, *(["long"] if expected else [])))


def during(command: list[str], script: str, directory: Path) -> list[str]:
    """Return the command line that runs `script` while `command` runs, until `script` ends.

    The command prints "up" when it is ready, and runs until the end of its input.
    """
    text = f"""
        mkfifo {directory}/output {directory}/input
        {shlex.join(command)} >{directory}/output <{directory}/input & link=$!
        exec 6<{directory}/output 5>{directory}/input
        read up <&6
        {script}
        exec 5>&-
        cat <&6
        wait $link
    """
    return ["sh", "-c", text]


@TOOLS
@pytest.mark.parametrize("forward", [0, 1])
def test_other_machines_do_not_reach_the_inside(tool: str, forward: int, tmp_path: Path) -> None:
    """Neither by TCP nor UDP. Nor do they reach each other if they did not before."""
    link = arguments(["--rate", "100mbit", "--nat"], python(SERVE))
    script = f"""
        nsenter -t $NEIGHBOUR_PID -n ip route add 198.18.0.0/15 via {HERE}
        nsenter -t $NEIGHBOUR_PID -n ip route add {SECOND}/32 via {HERE}
        {probe("STREAM", NEAR, INSIDE_PORT, expected=True)}
        {probe("DGRAM", NEAR, INSIDE_PORT, expected=True)}
        {probe("STREAM", NEAR, INSIDE_PORT, where="$NEIGHBOUR_PID")}
        {probe("DGRAM", NEAR, INSIDE_PORT, where="$NEIGHBOUR_PID")}
        {probe("STREAM", SECOND, PORT, where="$NEIGHBOUR_PID", expected=bool(forward))}
        cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/conf/sj-far0/route_localnet
    """
    before = f"echo {forward} >/proc/sys/net/ipv4/ip_forward"
    outcome = in_world(during(link, script, tmp_path), without(other(tool), tmp_path), before)
    from_here, from_there = ["inside"] * 2, ["nothing"] * 2
    across = NEIGHBOUR if forward else "nothing"
    expected = [*from_here, *from_there, across, str(forward), "0"]
    assert outcome["out"].splitlines() == expected, outcome["err"]
    assert outcome["after"] == outcome["before"]


@TOOLS
def test_other_machines_do_not_reach_the_inside_over_ipv6(tool: str, tmp_path: Path) -> None:
    """The machine forwards IPv6."""
    link = arguments(["--rate", "100mbit", "--nat"], python(SERVE))
    script = f"""
        nsenter -t $NEIGHBOUR_PID -n ip route add {NEAR6}/128 via {HERE6}
        {probe("STREAM", NEAR6, INSIDE_PORT, expected=True)}
        {probe("STREAM", NEAR6, INSIDE_PORT, where="$NEIGHBOUR_PID")}
    """
    before = "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding"
    outcome = in_world(during(link, script, tmp_path), without(other(tool), tmp_path), before)
    assert outcome["out"].splitlines() == ["inside", "nothing"], outcome["err"]
    assert outcome["after"] == outcome["before"]


def test_a_link_with_nat_does_not_open_a_link_without(tmp_path: Path) -> None:
    """Forwarding is on for the first, and other machines do not reach the inside of the second."""
    first = arguments(["--rate", "1gbit", "--nat"], ["sh", "-c", "echo up; cat"])
    second = arguments(["--rate", "1gbit"], python(SERVE))
    (tmp_path / "second").mkdir()
    inside = "198.18.16.2"
    probes = f"""
        nsenter -t $NEIGHBOUR_PID -n ip route add 198.18.0.0/15 via {HERE}
        {probe("STREAM", inside, INSIDE_PORT, expected=True)}
        {probe("STREAM", inside, INSIDE_PORT, where="$NEIGHBOUR_PID")}
    """
    script = shlex.join(during(second, probes, tmp_path / "second"))
    outcome = in_world(during(first, f"({script})", tmp_path))
    assert outcome["out"].splitlines() == ["inside", "nothing"], outcome["err"]
    assert outcome["after"] == outcome["before"]


LOOPBACK = f"""
    ip route flush table local
    ip addr del 127.0.0.1/8 dev lo
    ip route add local {NEAR} dev sj-near table local
    echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet
    ip route add 127.0.0.0/8 dev sj-near src {NEAR}
    {probe("STREAM", "127.0.0.1", SECRET_PORT)}
    {probe("STREAM", "127.0.0.53", 53)}
    {probe("STREAM", FAR, SECRET_PORT)}
"""
"""Routes loopback addresses over the link and asks the services there."""

DNS = """
import socket, sys
query = b"\\x12\\x34\\x01\\0\\0\\x01" + bytes(6) + b"\\x04name\\x04test\\0\\0\\x01\\0\\x01"
with socket.create_connection((sys.argv[1], 53), timeout=20) as s:
    s.sendall(len(query).to_bytes(2, "big") + query)
    s.shutdown(socket.SHUT_WR)
    data = b"".join(iter(lambda: s.recv(100), b""))
    print(socket.inet_ntoa(data[-4:]), socket.gethostbyname("other.test"))
"""
"""Resolves a name by TCP, and one by UDP."""


@TOOLS
def test_the_resolver_is_all_that_the_inside_reaches_on_loopback_addresses(
    tool: str, tmp_path: Path
) -> None:
    """Through the far end, by TCP and UDP; nothing else, whatever routes the inside sets."""
    script = f"{shlex.join(python(DNS, FAR))}; {LOOPBACK}; true"
    link = arguments(["--rate", "100mbit", "--nat"], ["sh", "-c", script])
    outcome = in_world(link, without(other(tool), tmp_path))
    names = f"{NEIGHBOUR} {NEIGHBOUR}"
    assert outcome["out"].splitlines() == [names, *["nothing"] * 3], outcome["err"]
    assert outcome["after"] == outcome["before"]


RECORD = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.bind(("", 9000))
    print("up", flush=True)
    while (got := s.recvfrom(100))[0] != b"end":
        print(got[1][0], flush=True)
"""
"""Prints the senders of datagrams."""

SPOOF = f"""
import socket
for source in ("203.0.113.7", "{NEAR}"):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind((source, 0))
        s.sendto(b"end" if source == "{NEAR}" else b"x", ("{NEIGHBOUR}", 9000))
"""


@TOOLS
def test_the_inside_sends_with_its_own_addresses_only(tool: str, tmp_path: Path) -> None:
    """A packet with another source address is dropped."""
    inside = f"ip addr add 203.0.113.7/32 dev sj-near; {shlex.join(python(SPOOF))}"
    link = arguments(["--rate", "100mbit", "--nat"], ["sh", "-c", inside])
    record = ["nsenter", "-t", "PID", "-n", *python(RECORD)]
    line = shlex.join(record).replace("PID", "$NEIGHBOUR_PID")
    script = f"""
        mkfifo {tmp_path}/record
        {line} >{tmp_path}/record & recorder=$!
        exec 6<{tmp_path}/record
        read up <&6
        {shlex.join(link)}
        wait $recorder
        cat <&6
    """
    outcome = in_world(["sh", "-c", script], without(other(tool), tmp_path))
    assert (outcome["code"], outcome["out"]) == (0, ""), outcome["err"]
    assert outcome["after"] == outcome["before"]


@TOOLS
def test_forwarding_that_an_administrator_turns_on_stays_on(tool: str, tmp_path: Path) -> None:
    """On all interfaces, although the link had turned it on for some of them."""
    link = arguments(["--rate", "1gbit", "--nat"], ["sh", "-c", "echo up; cat"])
    script = """
        cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/conf/up0/forwarding
        echo 1 >/proc/sys/net/ipv4/ip_forward
    """
    outcome = in_world(during(link, script, tmp_path), without(other(tool), tmp_path))
    assert outcome["out"].split() == ["0", "1"], outcome["err"]
    assert outcome["after"]["forward"] == "1"
    assert set(outcome["after"]["interfaces"].values()) == {"1"}
    for what in ("nft", "iptables", "ip6tables", "marks"):
        assert outcome["after"][what] == outcome["before"][what]


def test_an_interface_that_forwards_already_is_not_touched(tmp_path: Path) -> None:
    """It stays on. The way back, over an interface that did not forward, stays closed."""
    link = arguments(["--rate", "1gbit", "--nat"], ["sh", "-c", "echo up; cat"])
    script = f"""
        nsenter -t $NEIGHBOUR_PID -n ip route add {SECOND}/32 via {HERE}
        {probe("STREAM", SECOND, PORT, where="$NEIGHBOUR_PID", expected=True)}
    """
    before = f"echo 'echo 1 >{marks.CONF}/up0/forwarding; exec \"$@\"' >{tmp_path}/admin"
    line = ["sh", f"{tmp_path}/admin", *during(link, script, tmp_path)]
    outcome = in_world(line, before=before)
    assert outcome["out"].splitlines() == ["nothing"], outcome["err"]
    assert outcome["after"]["interfaces"]["up0"] == "1"
    assert outcome["after"]["interfaces"]["up1"] == "0"


@TOOLS
def test_rules_of_the_machine_come_before_those_of_the_link(tool: str, tmp_path: Path) -> None:
    """With a policy of DROP, which the link overrules for its packets, as well."""
    rule = f"FORWARD -d {NEIGHBOUR} -p tcp -j DROP"
    script = "; ".join(
        f"{probe('STREAM', host, PORT, expected=host == SECOND)}" for host in (NEIGHBOUR, SECOND)
    )
    link = arguments(["--rate", "100mbit", "--nat"], ["sh", "-c", script])
    environment = without(other(tool), tmp_path)
    if tool == "nft":  # `iptables` is hidden: its policy would need a rule of its own
        drop = f"nft add rule inet mine f ip daddr {NEIGHBOUR} tcp dport {PORT} drop"
        chain = "'add chain inet mine f { type filter hook forward priority 10; }'"
        before = f"nft add table inet mine; nft {chain}; {drop}"
    else:
        before = f"iptables -P FORWARD DROP; iptables -A {rule}"
    outcome = in_world(link, environment, before)
    assert outcome["out"].splitlines() == ["nothing", "10.8.0.1"], outcome["err"]
    assert outcome["after"] == outcome["before"]


@pytest.mark.parametrize(
    ("tool", "victim"), [("nft", "guard"), ("nft", "nft"), ("iptables", "guard")]
)
def test_a_link_without_its_guard_ends(tool: str, victim: str, tmp_path: Path) -> None:
    """It would be open to other machines otherwise. It says why, and undoes everything itself."""
    link = shlex.join(
        arguments(["--rate", "100mbit", "--nat"], ["sh", "-c", "echo up; sleep 1000"])
    )
    guard = "$(pgrep -P $link -f ' sojourn-na[t]$')"
    killed = guard if victim == "guard" else f"$(pgrep -P {guard} nft)"
    script = f"""
        mkfifo {tmp_path}/pipe
        {link} >{tmp_path}/pipe & link=$!
        read up <{tmp_path}/pipe
        kill -9 {killed}
        wait $link
    """
    outcome = in_world(["sh", "-c", script], without(other(tool), tmp_path))
    assert outcome["code"] == 128 + 15, outcome["err"]
    assert "sojourn: --nat: the process that guards its firewall rules was killed" in outcome["err"]
    assert "Traceback" not in outcome["err"]
    assert outcome["after"] == outcome["before"]


@TOOLS
def test_only_the_rules_of_killed_links_are_undone(tool: str, tmp_path: Path) -> None:
    """Tables and comments of others stay, though their names begin like a link's."""
    environment = without(other(tool), tmp_path)
    killed = shlex.join(arguments(["--rate", "1gbit", "--nat"], ["sh", "-c", "echo up; sleep 99"]))
    plain = shlex.join(arguments(["--rate", "1gbit"], ["true"]))
    script = f"""
        mkfifo {tmp_path}/pipe
        {killed} >{tmp_path}/pipe & link=$!
        read up <{tmp_path}/pipe
        kill -9 $link $(pgrep -P $link -f ' sojourn-na[t]$')
        wait $link
        {plain}
    """
    mine = {
        "nft": "nft add table inet sojourn_notes; nft add table inet sojourn_sj_far0",
        "iptables": "iptables -A INPUT -s 192.0.2.1 -m comment --comment sojourn-notes -j DROP",
    }[tool]
    outcome = in_world(["sh", "-c", script], environment, mine)
    assert "undid what a killed link left: firewall rules, IPv4 forwarding\n" in outcome["err"]
    assert "notes" in outcome["after"]["nft"] + outcome["after"]["iptables"]
    assert outcome["after"] == outcome["before"], outcome["err"]


KILL_BOTH = """
ip link set lo up
mkfifo PIPE
LINK >PIPE & link=$!
read up <PIPE
kill -9 $link $(pgrep -P $link -f ' sojourn-na[t]$') 2>/dev/null
wait $link 2>/dev/null
stat -Lc %i /proc/self/ns/net
"""

LATER = """
ip link set lo up
echo 1 >/proc/sys/net/ipv4/ip_forward
nft add table inet sojourn_notes
PLAIN 2>&1 | grep undid
stat -Lc %i /proc/self/ns/net
cat /proc/sys/net/ipv4/ip_forward
nft list tables
"""


@pytest.mark.live("nft")
def test_marks_of_a_network_do_not_concern_a_later_one_with_its_inode(tmp_path: Path) -> None:
    """The kernel uses inodes again, but cookies never."""
    link = shlex.join(arguments(["--rate", "1gbit", "--nat"], ["sh", "-c", "echo up; sleep 99"]))
    plain = shlex.join(arguments(["--rate", "1gbit"], ["true"]))
    first = KILL_BOTH.replace("PIPE", f"{tmp_path}/pipe").replace("LINK", link)
    inode = _in_new_network(first).split()[-1]
    for _ in range(20):
        out = _in_new_network(LATER.replace("PLAIN", plain)).splitlines()
        assert out[1:] == ["1", "table inet sojourn_notes"], out
        if out[0] == inode:
            return
    pytest.skip("the kernel did not use the inode again")


def _in_new_network(script: str) -> str:
    line = ["unshare", "--net", "sh", "-c", script]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=False).stdout


def test_without_cookies_forwarding_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux before 5.14: the namespace may be another one. Its firewall rules have random names."""
    forward = tmp_path / "ip_forward"
    forward.write_text("0\n")
    scripts: list[str] = []
    monkeypatch.setattr(marks, "RUN", tmp_path)
    monkeypatch.setattr(marks, "FORWARD", forward)
    monkeypatch.setattr(marks, "quietly", lambda script, *_: scripts.append(script))
    for option, expected in (
        (71, ["firewall rules", "IPv4 forwarding"]),
        (9999, ["firewall rules"]),
    ):
        monkeypatch.setattr(marks, "_SO_NETNS_COOKIE", option)
        name, is_unique = marks.namespace()
        assert is_unique == (option == 71)
        for what in ("forwarding", "rules"):
            path = tmp_path / f"sojourn-{what}-{name}"
            path = (
                path if what == "forwarding" else path.with_name(f"{path.name}-sj-far0-{'0' * 16}")
            )
            path.write_text("up0\n")
        scripts.clear()
        assert marks.remove_leftovers() == expected
        assert any("up0" in s or "forwarding" in s for s in scripts) == is_unique
        assert [path.name for path in tmp_path.iterdir()] == ["ip_forward"]


def test_marks_of_other_users_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are symbolic links followed."""
    monkeypatch.setattr(marks, "RUN", tmp_path)
    monkeypatch.setattr(marks, "quietly", lambda *_: pytest.fail("a script ran"))
    token = f"sj-far0-{'0' * 16}"
    path = tmp_path / f"sojourn-rules-{marks.namespace()[0]}-{token}"
    target = tmp_path / "target"
    target.write_text("")
    path.symlink_to(target)
    assert marks.remove_leftovers() == []
    with pytest.raises(OSError, match="--nat: "), marks.marked_rules(token):
        pass
    path.unlink()
    path.write_text("")
    os.chown(path, 65534, 65534)
    assert marks.remove_leftovers() == []
    with pytest.raises(OSError, match="belongs to another user"), marks.marked_rules(token):
        pass


def test_odd_names_of_interfaces_stay_out_of_rules_and_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name may contain quotes and dollar signs."""
    for name in ("eth0", "wlan0.7", "a$(id)", 'b"c', "-d", "lo", "all", "default", "sj-far3", "on"):
        (tmp_path / "conf" / name).mkdir(parents=True)
        (tmp_path / "conf" / name / "forwarding").write_text("1\n" if name == "on" else "0\n")
    monkeypatch.setattr(marks, "CONF", tmp_path / "conf")
    monkeypatch.setattr(marks, "RUN", tmp_path)
    with marks.marked_forwarding() as (_, _, interfaces):
        assert interfaces == ["eth0", "wlan0.7"]


def test_every_rule_has_the_unique_name_of_its_link() -> None:
    """So that it can be removed without touching others."""
    way = firewall.WayOut(
        f"sj-far7-{'a' * 16}", Block(IPv4Network("198.18.0.0/20")), None, ["eth0"]
    )
    assert way.device == "sj-far7"
    for rule in firewall.iptables_rules(way):
        assert f"sojourn-{way.token}" in rule
    for command in firewall.nft_table(way):
        assert f"inet sojourn_sj_far7_{'a' * 16}" in command
    done = subprocess.run(
        ["sh", "-n"], input="\n".join(firewall.undo(way.token)), text=True, check=False
    )
    assert done.returncode == 0
