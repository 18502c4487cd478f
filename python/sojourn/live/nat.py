"""Network address translation (NAT): the way from the inside of a link to other machines.

All settings outside are undone when the link ends, in whatever way:

- With nftables, the rules are a table named after the far device. It belongs to a process of `nft`
  ("flags owner", Linux 5.12), which waits for the end of a pipe that the link's process holds. If
  either process ends, the kernel removes the table.
- With iptables or an older nftables, a guard removes the rules. It is a shell in its own session
  that waits for the end of the same pipe and ignores all signals except SIGKILL.
- If `net.ipv4.ip_forward` is off, it is turned on for packets of links only. The guard of the last
  link turns it off again.
- If the guard is killed as well, the next link of any kind finds marks in /run, and undoes the rest
  (`remove_leftovers`).

Names are resolved by the resolver of this machine. If it listens on a loopback address, port 53 of
the far address is translated to it, and the inside gets its own /etc/resolv.conf.

Only IPv4 forwarding is turned on: a Linux machine that forwards IPv6 ignores router advertisements,
so it could lose its own address. IPv6 is translated (by nftables) where it is forwarded already.
"""

import fcntl
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from sojourn._sojourn import InputError
from sojourn.live.netdev import POOL, Block, has_v6

FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
RESOLV_CONF = Path("/etc/resolv.conf")
FAR_DEVICES = "sj-far"
"""Prefix of the names of all far devices."""

LOOPBACK = "127.0.0.1"

COMMENT = "sojourn-"
"""The beginning of the comment of each rule of iptables."""

RULES, FORWARDING = "rules", "forwarding"
"""State shared by links: firewall rules, and `net.ipv4.ip_forward`, turned on for links."""

_DELETE = (
    "iptables -w -t {0} -S | sed -n '/--comment " + COMMENT + "/s/^-A/-D/p' | "
    "while read -r rule; do iptables -w -t {0} $rule; done"
)
UNDO = {
    RULES: "; ".join(
        [
            *(_DELETE.format(table) for table in ("nat", "filter")),
            "nft list tables | grep -o 'inet sojourn_.*' | "
            "while read -r table; do nft delete table $table; done",
        ]
    ),
    FORWARDING: f"echo 0 >{FORWARD}",
}
"""Shell scripts that undo it for all links."""

LEFT = {RULES: "firewall rules", FORWARDING: "net.ipv4.ip_forward = 1"}
"""Descriptions for the message about leftovers."""

BY_HAND = (
    "sysctl -w net.ipv4.ip_forward=1",
    "nft 'add table ip sojourn; add chain ip sojourn out { type nat hook postrouting priority 100; "
    f"}}; add rule ip sojourn out ip saddr {POOL} masquerade'",
)
"""Commands that let all links reach other machines, until `nft delete table ip sojourn`."""


def check_tools() -> None:
    """Raise InputError if neither nft nor iptables is installed."""
    if shutil.which("nft") is None and shutil.which("iptables") is None:
        raise InputError(
            "--nat: requires the program nft or iptables, and both are missing: install nftables"
        )


def has_way_out() -> bool:
    """Return True if this network forwards IPv4 packets."""
    try:
        return FORWARD.read_text(encoding="ascii").strip() == "1"
    except OSError:
        return False


@dataclass(frozen=True)
class WayOut:
    """Address translation for one link."""

    device: str
    """The far device."""
    block: Block
    resolver: str | None
    """The loopback address of the resolver, or None if it has another address."""
    guards_forwarding: bool
    """True if only packets of links are forwarded."""

    @property
    def table(self) -> str:
        """The name of its table."""
        return "sojourn_" + self.device.replace("-", "_")


@contextmanager
def way_out(device: str, block: Block) -> Iterator[str | None]:
    """Translate addresses for the link with the far end `device`, for the duration of the block.

    Yields
    ------
    str or None
        The contents of /etc/resolv.conf for the inside, or None if that of this machine works.

    Raises
    ------
    OSError
        If a program or the kernel refuses; its text starts with "--nat: ".
    """
    resolver, resolv_conf = resolving(_resolv_conf(), block.far)
    with ExitStack() as stack:
        marks = {RULES: stack.enter_context(_marked(RULES))}
        if not has_way_out() or _mark(FORWARDING).exists():
            marks[FORWARDING] = stack.enter_context(_marked(FORWARDING))
        way = WayOut(device, block, resolver, FORWARDING in marks)
        if resolver is not None:
            # A setting of this device, so it is gone with it.
            _turn_on(Path(f"/proc/sys/net/ipv4/conf/{device}/route_localnet"))
        stack.enter_context(_rules(way, marks))
        if FORWARDING in marks:
            _turn_on(FORWARD)
        yield resolv_conf


def _turn_on(setting: Path) -> None:
    try:
        setting.write_text("1\n", encoding="ascii")
    except OSError as error:
        raise OSError(None, f"--nat: {setting}: {(error.strerror or '').lower()}") from None


def _resolv_conf() -> str | None:
    """Return the contents of /etc/resolv.conf, or None if it cannot be read."""
    try:
        return RESOLV_CONF.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def resolving(resolv_conf: str | None, far: str) -> tuple[str | None, str | None]:
    """Choose how names are resolved inside.

    Parameters
    ----------
    resolv_conf
        Contents of this machine's /etc/resolv.conf; None if there is none.
    far
        Address of the far end.

    Returns
    -------
    resolver : str or None
        Loopback address of the resolver to which port 53 of the far end is translated.
    inside : str or None
        Contents of /etc/resolv.conf inside; None if this machine's file works there as well.
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


def _mark(what: str) -> Path:
    """Return the file whose lock is shared by all links of this network that need `what`."""
    namespace = Path("/proc/thread-self/ns/net").stat().st_ino
    run = Path("/run") if os.access("/run", os.W_OK) else Path("/tmp")
    return run / f"sojourn-{what}-{namespace}"


@contextmanager
def _marked(what: str) -> Iterator[int]:
    """Open the mark of `what`, made if it is missing, and share its lock."""
    mark = _shared_lock(_mark(what))
    try:
        yield mark
    finally:
        os.close(mark)


def _shared_lock(path: Path) -> int:
    """Open the file `path` and share its lock; the file still exists then."""
    while True:
        mark = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(mark, fcntl.LOCK_SH)
        try:
            if os.fstat(mark).st_ino == path.stat().st_ino:
                return mark
        except FileNotFoundError:
            pass  # the last of the others has just removed it
        os.close(mark)


def _restore(what: str, mark: int) -> list[str]:
    """Return the lines of a shell that undo `what` if no other link needs it."""
    path = str(Path(f"/proc/self/fd/{mark}").readlink())
    return [
        f"flock --unlock {mark}",
        f"if flock --nonblock {mark}; then {UNDO[what]}; rm -f {shlex.quote(path)}; fi",
    ]


def remove_leftovers() -> list[str]:
    """Undo what links that were killed together with their guards left in this network.

    Does nothing while a link with a way out is active here: the last of them does it at its end.

    Returns
    -------
    list of str
        What was undone, in words.
    """
    undone = []
    for what, words in LEFT.items():
        with suppress(OSError):  # there is none, or it belongs to another user
            mark = os.open(_mark(what), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                is_own = os.fstat(mark).st_uid == os.geteuid()
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if is_own and _mark(what).stat().st_ino == os.fstat(mark).st_ino:
                    _quietly(UNDO[what])
                    _mark(what).unlink()
                    undone.append(words)
            finally:
                os.close(mark)
    return undone


def _quietly(script: str) -> None:
    """Run a script of the shell, whatever its success."""
    nothing = subprocess.DEVNULL
    subprocess.run(["sh", "-c", script], stdin=nothing, stdout=nothing, stderr=nothing, check=False)


@contextmanager
def _rules(way: WayOut, marks: Mapping[str, int]) -> Iterator[None]:
    """Put the rules of a way out in force; a guard removes them when this process is gone."""
    last = [line for what, mark in marks.items() for line in _restore(what, mark)]
    accept = _accepting(way)
    if shutil.which("nft"):
        table = nft_table(way)
        undo = [f"nft delete table inet {way.table}", *_deletions(accept)]
        with _guard([*undo, *last], marks) as held:
            if not held.own(table, way.table):
                _run(["nft", "-f", "-"], "\n".join(table).replace(" { flags owner; }", ""))
            _all(accept)
            yield
        return
    rules = iptables_rules(way)
    with _guard([*_deletions(accept), *_deletions(rules), *last], marks):
        _all(rules)
        _all(accept)
        yield


def nft_table(way: WayOut) -> list[str]:
    """Return the commands of nft that create the table of a link."""
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
    """Return the commands of iptables that append the rules of a link."""
    nat = ["iptables", "-w", "-t", "nat", "-A"]
    block, comment = str(way.block.network), _comment(way)
    inside = ["-s", block, "!", "-o", way.device]
    rules = [[*nat, "POSTROUTING", *inside, *comment, "-j", "MASQUERADE"]]
    if way.guards_forwarding:
        links = f"{FAR_DEVICES}+"
        others = ["!", "-i", links, "!", "-o", links, *comment, "-j", "DROP"]
        rules.append(["iptables", "-w", "-A", "FORWARD", *others])
    if way.resolver is not None:
        for protocol in ("udp", "tcp"):
            asked = ["-i", way.device, "-d", way.block.far, "-p", protocol, "--dport", "53"]
            to_resolver = [*comment, "-j", "DNAT", "--to", way.resolver]
            rules.append([*nat, "PREROUTING", *asked, *to_resolver])
        asks = ["-s", block, "-d", way.resolver, *comment, "-j", "SNAT", "--to", LOOPBACK]
        rules.append([*nat, "INPUT", *asks])
    return rules


def _comment(way: WayOut) -> list[str]:
    """Return the comment by which leftovers are found (see `UNDO`); no two links have the same."""
    return ["-m", "comment", "--comment", f"{COMMENT}{way.device}-{os.getpid()}"]


def _accepting(way: WayOut) -> list[list[str]]:
    """Return rules that accept packets of the link where iptables drops forwarded ones by policy.

    Docker and ufw set that policy. A table of nftables cannot overrule it.
    """
    if shutil.which("iptables") is None:
        return []
    shown = subprocess.run(
        ["iptables", "-w", "-S", "FORWARD"], capture_output=True, text=True, check=False
    )
    if "-P FORWARD ACCEPT" in shown.stdout.splitlines() or shown.returncode != 0:
        return []
    insert = ["iptables", "-w", "-I", "FORWARD"]
    answers = ["-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED"]
    end = [*_comment(way), "-j", "ACCEPT"]
    return [[*insert, "-i", way.device, *end], [*insert, "-o", way.device, *answers, *end]]


def _deletions(rules: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a shell that delete rules of iptables, the last one first."""
    return [
        shlex.join("-D" if word in ("-A", "-I") else word for word in rule)
        for rule in reversed(rules)
    ]


def _all(commands: Sequence[Sequence[str]]) -> None:
    for command in commands:
        _run(command)


def _run(command: Sequence[str], given: str = "") -> None:
    """Run a program. Raises OSError with its first line of errors if it fails."""
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["it failed"])[0]
        raise OSError(None, f"--nat: {command[0]}: {said}")


_GONE = "gone"
"""Line that the guard prints when `nft` has ended."""


class _Guard:
    """Shell process that runs the lines `undo` when this process has ended."""

    def __init__(self, undo: Sequence[str], marks: Mapping[str, int]) -> None:
        # The shell ignores the signals of its terminal and group, so that it outlives this process.
        # `nft` reads commands until the pipe ends, and owns its tables until then.
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
            pass_fds=[*marks.values()],
            env={**os.environ, "HOME": "/nonexistent"},  # nft keeps no history there
        )

    def own(self, commands: Sequence[str], table: str) -> bool:
        """Let `nft` create a table that it owns. Return False if it cannot."""
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
            if line == "}\n":  # end of the listing, so all commands have run
                break
            if line.startswith("Error") or line.strip() == _GONE:
                return False
        shown = subprocess.run(["nft", *show], capture_output=True, text=True, check=False)
        return "flags owner" in shown.stdout

    def close(self) -> None:
        """Make it undo everything, and wait until it has ended."""
        self._process.communicate()


@contextmanager
def _guard(undo: Sequence[str], marks: Mapping[str, int]) -> Iterator[_Guard]:
    guard = _Guard(undo, marks)
    try:
        yield guard
    finally:
        guard.close()
