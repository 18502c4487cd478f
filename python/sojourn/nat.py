"""A way from the inside of a link to other machines: address translation, as a home router does it.

What is set up outside goes with the link, however it ends:

- The rules are a table of nftables named after the far device. It belongs to a process of `nft`
  that waits for the end of a pipe whose other end only the link's process holds. If either of the
  two dies, the kernel removes the table ("flags owner", Linux 5.12).
- Where nftables cannot do that, or there is only iptables, a guard removes the rules: a shell in a
  session of its own, which waits for the end of the same pipe and heeds no signal.
- Forwarding (`net.ipv4.ip_forward`) is turned on if it is off, for packets of links only, and the
  guard turns it off again when no other link needs it. If the guard is killed as well, the next
  link with a way out finds its mark in /run and does so when it ends.

Names are resolved by the resolver of this machine. One that listens on a loopback address cannot be
reached from inside; for it, port 53 of the far address is translated to that address, and the
command has a /etc/resolv.conf that says so.
"""

import fcntl
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from sojourn._sojourn import InputError
from sojourn.network import POOL, Block, has_v6

FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
RESOLV_CONF = Path("/etc/resolv.conf")
FAR_DEVICES = "sj-far"
"""How the names of all far devices begin."""

LOOPBACK = "127.0.0.1"

BY_HAND = (
    "sysctl -w net.ipv4.ip_forward=1",
    "nft 'add table ip sojourn; add chain ip sojourn out { type nat hook postrouting priority 100; "
    f"}}; add rule ip sojourn out ip saddr {POOL} masquerade'",
)
"""Commands that give all links a way out until it is undone (`nft delete table ip sojourn`)."""


def check_tools() -> None:
    """Raise InputError if there is no program that translates addresses."""
    if shutil.which("nft") is None and shutil.which("iptables") is None:
        raise InputError(
            "--nat: takes the program nft or iptables, which are both missing: install nftables"
        )


def has_way_out() -> bool:
    """Return True if this network passes packets on; only then can a link have a way out."""
    try:
        return FORWARD.read_text(encoding="ascii").strip() == "1"
    except OSError:
        return False


@dataclass(frozen=True)
class WayOut:
    """A way out of a link."""

    device: str
    """The far device."""
    block: Block
    resolver: str | None
    """The loopback address of the resolver, if it is on one."""
    guards_forwarding: bool
    """True if packets of links alone are to be passed on."""

    @property
    def table(self) -> str:
        """The name of its table."""
        return "sojourn_" + self.device.replace("-", "_")


@contextmanager
def way_out(device: str, block: Block) -> Iterator[str | None]:
    """Give the link with that far device a way out, for the block.

    Yields what its /etc/resolv.conf is to hold, or None if it can stay. Raises OSError.
    """
    resolver, resolv_conf = resolving(_resolv_conf(), block.far)
    with _forwarding() as mark:
        way = WayOut(device, block, resolver, mark is not None)
        if resolver is not None:
            # Of this device alone, and gone with it.
            _turn_on(Path(f"/proc/sys/net/ipv4/conf/{device}/route_localnet"))
        with _rules(way, mark):
            if mark is not None:
                _turn_on(FORWARD)
            yield resolv_conf


def _turn_on(setting: Path) -> None:
    try:
        setting.write_text("1\n", encoding="ascii")
    except OSError as error:
        raise OSError(None, f"--nat: {setting}: {(error.strerror or '').lower()}") from None


def _resolv_conf() -> str | None:
    """Read the file of this machine; None if there is none that could be covered."""
    try:
        return RESOLV_CONF.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def resolving(resolv_conf: str | None, far: str) -> tuple[str | None, str | None]:
    """Return the loopback address of a resolver to translate to, and the file for the inside.

    Both are None if the file of this machine serves inside as well.
    """
    if resolv_conf is None:
        return None, None
    servers, others = [], []
    for line in resolv_conf.splitlines():
        words = line.split()
        if words[:1] == ["nameserver"] and len(words) > 1:
            servers.append(words[1])
        else:
            others.append(line)
    elsewhere = [server for server in servers if not _is_loopback(server)]
    if elsewhere and len(elsewhere) == len(servers):
        return None, None
    here = [server for server in servers if _is_loopback(server) and ":" not in server]
    resolver = None if elsewhere else (here or [LOOPBACK])[0]
    kept = elsewhere or [far]
    lines = [*others, *(f"nameserver {server}" for server in kept)]
    return resolver, "".join(f"{line}\n" for line in lines)


def _is_loopback(server: str) -> bool:
    try:
        return ip_address(server.partition("%")[0]).is_loopback
    except ValueError:
        return False


@contextmanager
def _forwarding() -> Iterator[int | None]:
    """Lend a lock that every link shares for which forwarding was turned on, or is about to be.

    None where it was on without links.
    """
    namespace = Path("/proc/thread-self/ns/net").stat().st_ino
    run = Path("/run") if os.access("/run", os.W_OK) else Path("/tmp")
    path = run / f"sojourn-forwarding-{namespace}"
    if has_way_out() and not path.exists():
        yield None
        return
    mark = _shared_lock(path)
    try:
        yield mark
    finally:
        os.close(mark)


def _shared_lock(path: Path) -> int:
    """Open the file `path` and share its lock; the file is still there then."""
    while True:
        mark = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(mark, fcntl.LOCK_SH)
        try:
            if os.fstat(mark).st_ino == path.stat().st_ino:
                return mark
        except FileNotFoundError:
            pass  # the last of the others removed it meanwhile
        os.close(mark)


def _restore(mark: int) -> list[str]:
    """Write the lines of a shell that turn forwarding off again, if no other link needs it."""
    path = str(Path(f"/proc/self/fd/{mark}").readlink())
    return [
        f"flock --unlock {mark}",
        f"flock --nonblock {mark} && echo 0 >{FORWARD} && rm -f {shlex.quote(path)}",
    ]


@contextmanager
def _rules(way: WayOut, mark: int | None) -> Iterator[None]:
    """Have the rules of a way out in force; a guard removes them when this process is gone."""
    undo = [] if mark is None else _restore(mark)
    accept, refuse = _accepting(way)
    if shutil.which("nft"):
        table = nft_table(way)
        with _guard([f"nft delete table inet {way.table}", *refuse, *undo], mark) as held:
            if not held.own(table, way.table):
                _run(["nft", "-f", "-"], "\n".join(table).replace(" { flags owner; }", ""))
            _all(accept)
            yield
        return
    rules = iptables_rules(way)
    undo = [shlex.join(_changed(rule, "-D")) for rule in reversed(rules)] + undo
    with _guard([*refuse, *undo], mark):
        _all(rules)
        _all(accept)
        yield


def nft_table(way: WayOut) -> list[str]:
    """Write the table of a way out, as commands of nft."""
    table = f"inet {way.table}"
    commands = [
        f"add table {table} {{ flags owner; }}",
        f"add chain {table} out {{ type nat hook postrouting priority 100; }}",
        f'add rule {table} out ip saddr {way.block.network} oifname != "{way.device}" masquerade',
    ]
    if has_v6():
        inside = f"ip6 saddr {way.block.network6}"
        commands.append(f'add rule {table} out {inside} oifname != "{way.device}" masquerade')
    if way.guards_forwarding:
        links = f'"{FAR_DEVICES}*"'
        commands += [
            f"add chain {table} pass {{ type filter hook forward priority 0; }}",
            f"add rule {table} pass meta nfproto ipv4 iifname != {links} oifname != {links} drop",
        ]
    if way.resolver is not None:
        from_inside = f'iifname "{way.device}"'
        to_resolver = f"dnat ip to {way.resolver}"
        commands += [
            f"add chain {table} names {{ type nat hook prerouting priority -100; }}",
            *(
                f"add rule {table} names {from_inside} ip daddr {way.block.far} {protocol} "
                f"dport 53 {to_resolver}"
                for protocol in ("udp", "tcp")
            ),
            # A resolver may answer loopback addresses only.
            f"add chain {table} asks {{ type nat hook input priority 100; }}",
            f"add rule {table} asks {from_inside} ip daddr {way.resolver} snat ip to {LOOPBACK}",
        ]
    return commands


def iptables_rules(way: WayOut) -> list[list[str]]:
    """Write the rules of a way out, as commands of iptables that append them."""
    nat = ["iptables", "-w", "-t", "nat", "-A"]
    block = str(way.block.network)
    rules = [[*nat, "POSTROUTING", "-s", block, "!", "-o", way.device, "-j", "MASQUERADE"]]
    if way.guards_forwarding:
        links = f"{FAR_DEVICES}+"
        others = ["!", "-i", links, "!", "-o", links, "-j", "DROP"]
        rules.append(["iptables", "-w", "-A", "FORWARD", *others])
    if way.resolver is not None:
        for protocol in ("udp", "tcp"):
            asked = ["-i", way.device, "-d", way.block.far, "-p", protocol, "--dport", "53"]
            rules.append([*nat, "PREROUTING", *asked, "-j", "DNAT", "--to", way.resolver])
        asks = ["-s", block, "-d", way.resolver, "-j", "SNAT", "--to", LOOPBACK]
        rules.append([*nat, "INPUT", *asks])
    return rules


def _accepting(way: WayOut) -> tuple[list[list[str]], list[str]]:
    """Return what lets packets pass where iptables drops others' by policy, and its undoing.

    Docker and ufw set that policy; a table of nftables cannot overrule it.
    """
    if shutil.which("iptables") is None:
        return [], []
    shown = subprocess.run(
        ["iptables", "-w", "-S", "FORWARD"], capture_output=True, text=True, check=False
    )
    if "-P FORWARD ACCEPT" in shown.stdout.splitlines() or shown.returncode != 0:
        return [], []
    answers = ["-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED"]
    rules = [
        ["iptables", "-w", "-I", "FORWARD", "-i", way.device, "-j", "ACCEPT"],
        ["iptables", "-w", "-I", "FORWARD", "-o", way.device, *answers, "-j", "ACCEPT"],
    ]
    return rules, [shlex.join(_changed(rule, "-D")) for rule in rules]


def _changed(rule: Sequence[str], word: str) -> list[str]:
    """Return the command of iptables that does something else with a rule."""
    return [word if one in ("-A", "-I") else one for one in rule]


def _all(commands: Sequence[Sequence[str]]) -> None:
    for command in commands:
        _run(command)


def _run(command: Sequence[str], given: str = "") -> None:
    """Run a program that must succeed. Raises OSError with what it says."""
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["it failed"])[0]
        raise OSError(None, f"--nat: {command[0]}: {said}")


_GONE = "gone"
"""What the guard says when `nft` has ended."""


class _Guard:
    """A shell that undoes things when this process is gone, and what it runs meanwhile."""

    def __init__(self, undo: Sequence[str], mark: int | None) -> None:
        # The shell outlives this process: it heeds no signal of its terminal or group. `nft` reads
        # commands until the pipe ends, and owns what it made until then.
        owner = [f"nft --interactive; echo {_GONE}"] if shutil.which("nft") else []
        meanwhile = ["trap '' HUP INT QUIT TERM PIPE", *owner, "exec >/dev/null 2>&1", "cat"]
        script = "\n".join([*meanwhile, *undo])
        self._process = subprocess.Popen(
            ["sh", "-c", script, "sojourn-nat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            pass_fds=[] if mark is None else [mark],
            env={**os.environ, "HOME": "/nonexistent"},  # nft keeps no history there
        )

    def own(self, commands: Sequence[str], table: str) -> bool:
        """Have `nft` make a table and own it; False if it cannot."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        show = ["list", "table", "inet", table]
        try:
            process.stdin.write("\n".join([*commands, " ".join(show), ""]))
            process.stdin.flush()
        except BrokenPipeError:
            return False
        for line in process.stdout:
            if line == "}\n":  # the table was shown, so all of it was made
                break
            if line.startswith("Error") or line.strip() == _GONE:
                return False
        shown = subprocess.run(["nft", *show], capture_output=True, text=True, check=False)
        return "flags owner" in shown.stdout

    def close(self) -> None:
        """Let it undo everything, and wait for that."""
        self._process.communicate()


@contextmanager
def _guard(undo: Sequence[str], mark: int | None) -> Iterator[_Guard]:
    guard = _Guard(undo, mark)
    try:
        yield guard
    finally:
        guard.close()
