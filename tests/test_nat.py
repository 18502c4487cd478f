"""Address translation of a link (`--nat`): it works, and leaves nothing behind."""

import shlex
import shutil
from pathlib import Path

import pytest

from conftest import Command
from live_link import arguments, python
from nat_testbed import ASK, in_world, other, without
from nat_world import HERE, HERE6, NEIGHBOUR, NEIGHBOUR6, PORT
from sojourn.live import nat, resolver

REAL = pytest.mark.live("nsenter", tun=True)
TOOLS = pytest.mark.parametrize("tool", ["nft", "iptables"])


@REAL
@TOOLS
@pytest.mark.parametrize("forward", [0, 1])
def test_a_command_reaches_other_machines_by_address_and_name(
    tool: str, forward: int, tmp_path: Path
) -> None:
    """They see the address of this machine. Afterwards the state is as before."""
    environment = without(other(tool), tmp_path)
    by_address = shlex.join(python(ASK, NEIGHBOUR, PORT))
    by_name = shlex.join(python(ASK, "anything.test", PORT))
    script = f"{by_address}; {by_name}; cat /etc/resolv.conf; nft list tables; iptables -S"
    line = arguments(["--rate", "100mbit", "--nat"], ["sh", "-c", f"{script}; true"])
    outcome = in_world(line, environment, f"echo {forward} >/proc/sys/net/ipv4/ip_forward")
    assert outcome["code"] == 0, outcome["err"]
    out = outcome["out"].splitlines()
    assert out[:2] == [HERE, HERE], outcome["err"]
    # The resolver of the machine has a loopback address: it is reached through the far end.
    assert out[2:5] == ["search example", "options timeout:5", "nameserver 198.18.0.1"]
    assert outcome["before"]["forward"] == str(forward)
    assert outcome["after"] == outcome["before"]


@REAL
@pytest.mark.live("iptables")
def test_forwarding_works_if_the_policy_is_drop(tmp_path: Path) -> None:
    """As Docker sets it. Afterwards the rules are as before."""
    line = arguments(["--rate", "100mbit", "--nat"], python(ASK, NEIGHBOUR, PORT))
    outcome = in_world(line, before="iptables -P FORWARD DROP")
    assert (outcome["code"], outcome["out"]) == (0, f"{HERE}\n"), outcome["err"]
    assert "-P FORWARD DROP" in outcome["after"]["iptables"]
    assert outcome["after"] == outcome["before"]
    assert tmp_path.exists()


@REAL
def test_without_nat_the_commands_to_set_it_up_are_printed() -> None:
    """Those commands work."""
    line = arguments(["--rate", "100mbit"], ["timeout", "2", *python(ASK, NEIGHBOUR, PORT)])
    outcome = in_world(line)
    assert outcome["code"] == 124
    hint = [text.strip() for text in outcome["err"].splitlines() if text[:3] in ("  s", "  n")]
    assert tuple(hint) == nat.BY_HAND
    by_hand = "; ".join(hint)
    outcome = in_world(["sh", "-c", f'{by_hand}; "$@"', "sh", *line])
    assert outcome["out"].splitlines()[-1] == HERE, outcome["err"]


@REAL
@TOOLS
@pytest.mark.parametrize("victim", ["link", "guard", "both"])
def test_nothing_is_left_when_it_is_killed(tool: str, victim: str, tmp_path: Path) -> None:
    """Kill the link, which its guard outlives, the guard, or both."""
    environment = without(other(tool), tmp_path)
    waits = ["sh", "-c", "echo up; sleep 1000"]
    line = shlex.join(arguments(["--rate", "100mbit", "--nat"], waits))
    guard = "$(pgrep -P $link -f ' sojourn-na[t]$')"
    killed = {"link": "$link", "guard": guard, "both": f"$link {guard}"}[victim]
    # The next link of any kind finishes the work of a guard that was killed.
    next_one = shlex.join(arguments(["--rate", "1gbit"], ["true"]))
    script = f"""
        mkfifo {tmp_path}/pipe
        {line} >{tmp_path}/pipe & link=$!
        read up <{tmp_path}/pipe
        kill -9 {killed}
        kill -9 $link
        wait $link
        sleep 1
        nft list tables; iptables -t nat -S POSTROUTING
        [ {victim} = link ] || {next_one}
    """
    outcome = in_world(["sh", "-c", script], environment)
    if victim == "link" or tool == "nft":
        assert "sojourn" not in outcome["out"], "a table of a link that has ended"
    assert ("undid what a killed link left: firewall" in outcome["err"]) == (victim != "link")
    assert outcome["after"] == outcome["before"], outcome["err"]


@REAL
def test_a_killed_link_does_not_affect_the_rules_of_another(tmp_path: Path) -> None:
    """Leftovers are removed once no link with --nat is active; other rules stay."""
    ask = shlex.join(python(ASK, NEIGHBOUR, PORT))
    waits = ["sh", "-c", "echo up; sleep 1000"]
    killed = shlex.join(arguments(["--rate", "1gbit", "--nat"], waits))
    other_one = shlex.join(
        arguments(["--rate", "1gbit", "--nat"], ["sh", "-c", f"echo up; cat; {ask}"])
    )
    plain = shlex.join(arguments(["--rate", "1gbit"], ["true"]))
    script = f"""
        iptables -A INPUT -s 192.0.2.1 -j DROP
        mkfifo {tmp_path}/pipe {tmp_path}/output {tmp_path}/input
        {killed} >{tmp_path}/pipe & link=$!
        read up <{tmp_path}/pipe
        {other_one} >{tmp_path}/output <{tmp_path}/input & second=$!
        exec 6<{tmp_path}/output 5>{tmp_path}/input
        read up <&6
        kill -9 $link $(pgrep -P $link -f ' sojourn-na[t]$')
        wait $link
        {plain}
        exec 5>&-
        cat <&6
        wait $second
        iptables -S INPUT
        iptables -D INPUT -s 192.0.2.1 -j DROP
    """
    environment = without("nft", tmp_path)
    outcome = in_world(["sh", "-c", script], environment)
    assert outcome["out"].splitlines()[0] == HERE, outcome["err"]
    assert "-A INPUT -s 192.0.2.1/32 -j DROP" in outcome["out"]
    assert outcome["after"] == outcome["before"], outcome["err"]


@REAL
@pytest.mark.live("nft")
def test_ipv6_is_translated_if_this_machine_forwards_it() -> None:
    """The neighbour sees the address of this machine."""
    v6 = shlex.join(python(ASK, NEIGHBOUR6, PORT))
    v4 = shlex.join(python(ASK, NEIGHBOUR, PORT))
    line = arguments(["--rate", "100mbit", "--nat"], ["sh", "-c", f"{v6}; {v4}"])
    forward = "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding"
    outcome = in_world(line, before=forward)
    assert outcome["out"].splitlines() == [HERE6, HERE], outcome["err"]
    assert outcome["after"] == outcome["before"]


@REAL
def test_two_links_with_nat_share_forwarding(tmp_path: Path) -> None:
    """Forwarding of the other interfaces stays on until both have ended."""
    ask = shlex.join(python(ASK, NEIGHBOUR, PORT))
    one = shlex.join(arguments(["--rate", "1gbit", "--nat"], ["sh", "-c", f"echo up; cat; {ask}"]))
    two = shlex.join(arguments(["--rate", "1gbit", "--nat"], ["sh", "-c", ask]))
    script = f"""
        mkfifo {tmp_path}/output {tmp_path}/input
        {one} >{tmp_path}/output <{tmp_path}/input & first=$!
        exec 6<{tmp_path}/output 5>{tmp_path}/input
        read up <&6
        {two}
        cat /proc/sys/net/ipv4/conf/up0/forwarding /proc/sys/net/ipv4/ip_forward
        exec 5>&-
        cat <&6
        wait $first
    """
    outcome = in_world(["sh", "-c", script])
    assert outcome["out"].splitlines() == [HERE, "1", "0", HERE], outcome["err"]
    assert outcome["after"] == outcome["before"]


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch, sojourn: Command) -> None:
    """In one line, with exit code 2."""
    there = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name: None if name in ("nft", "iptables") else there(name)
    )
    code, _, err = sojourn("link", "--rate", "1mbit", "--nat", "--", "true")
    assert code == 2
    assert err == (
        "sojourn: --nat: requires the program nft or iptables, and both are missing: install "
        "nftables\n"
    )


@pytest.mark.parametrize(
    ("text", "server", "inside"),
    [
        ("nameserver 192.0.2.1\n", None, None),
        ("nameserver 127.0.0.53\noptions edns0\n", "127.0.0.53", "options edns0\nnameserver F\n"),
        ("nameserver 127.0.0.1\nnameserver 192.0.2.1\n", None, "nameserver 192.0.2.1\n"),
        ("nameserver ::1\n", "127.0.0.1", "nameserver F\n"),
        ("", "127.0.0.1", "nameserver F\n"),
        ("nameserver fe80::1%eth0\n", None, None),
        ("nameserver\nnameserver what\n", None, "nameserver\nnameserver what\n"),
        (None, None, None),
    ],
)
def test_the_resolver_of_the_inside(
    text: str | None, server: str | None, inside: str | None
) -> None:
    """Reachable servers stay; a resolver on a loopback address is reached through the far end."""
    expected = inside if text != "nameserver\nnameserver what\n" else None
    servers = resolver.resolving(text, "F")
    assert servers == (server, expected)
