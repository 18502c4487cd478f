"""Files in /run that record what a link has changed in its network, to undo it after a kill.

There is one per link, named after its firewall rules, and one that lists the interfaces whose
forwarding was turned on, which all links share. A link and its guard (`sojourn.live.nat`) lock
them. A file without a lock is left from a link that was killed with its guard; the next link
undoes what it records.

The names have the cookie of the network namespace, which the kernel never uses again, and the
identifier of the boot. Linux before 5.14 has no cookies. There the inode of the namespace is used,
which a later namespace can have. Firewall rules are safe then, since their names are random, but
left forwarding is not turned off.
"""

import fcntl
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sojourn.live import firewall

RUN = Path("/run")
CONF = Path("/proc/sys/net/ipv4/conf")
FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
BOOT = Path("/proc/sys/kernel/random/boot_id")

_SO_NETNS_COOKIE = 71
_INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]*")
"""Names of interfaces that are safe in scripts and rules; others are left alone."""


def namespace() -> tuple[str, bool]:
    """Return a name of this thread's network namespace, and True if no other ever has it."""
    boot = BOOT.read_text(encoding="ascii")[:8]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            cookie = any_socket.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8)
        except OSError:
            return f"{boot}-i{Path('/proc/thread-self/ns/net').stat().st_ino}", False
    return f"{boot}-{int.from_bytes(cookie, 'little')}", True


@contextmanager
def marked_rules(token: str) -> Iterator[tuple[int, list[str]]]:
    """Mark the firewall rules of a link.

    Yields
    ------
    mark : int
        Descriptor of the mark, which its guard must inherit.
    undo : list of str
        Lines of a shell that remove the rules and the mark.
    """
    path = RUN / f"sojourn-rules-{namespace()[0]}-{token}"
    mark = _shared_lock(path)
    try:
        yield mark, [*firewall.undo(token), f"rm -f {path}"]
    finally:
        os.close(mark)


@contextmanager
def marked_forwarding() -> Iterator[tuple[int, list[str], list[str]]]:
    """Mark the interfaces that do not forward IPv4 packets, for `turn_on`.

    Yields
    ------
    mark : int
        Descriptor of the mark, which its guard must inherit.
    undo : list of str
        Lines of a shell that restore the interfaces if no other link needs them.
    interfaces : list of str
        The interfaces, including those that other links have marked.
    """
    path = _forwarding_path()
    mark = _shared_lock(path)
    try:
        for name in _not_forwarding():
            os.write(mark, f"{name}\n".encode())
        interfaces = list(dict.fromkeys(path.read_text(encoding="ascii").split()))
        undo = [
            f"flock --unlock {mark}",
            f"if flock --nonblock {mark}; then {_restore(path)}; rm -f {path}; fi",
        ]
        yield mark, undo, interfaces
    finally:
        os.close(mark)


def turn_on(interface: str) -> None:
    """Let `interface` forward the IPv4 packets that it receives. Raises OSError."""
    path = CONF / interface / "forwarding"
    try:
        path.write_text("1\n", encoding="ascii")
    except FileNotFoundError:
        pass  # the interface is gone
    except OSError as error:
        raise OSError(None, f"--nat: {path}: {(error.strerror or '').lower()}") from None


def forwards() -> bool:
    """Return True if this machine forwards IPv4 packets on all interfaces."""
    try:
        return FORWARD.read_text(encoding="ascii").strip() == "1"
    except OSError:
        return False


def remove_leftovers() -> list[str]:
    """Undo what links that were killed together with their guards left in this network.

    Returns
    -------
    list of str
        What was undone, in words.
    """
    undone = []
    name, is_unique = namespace()
    prefix = f"sojourn-rules-{name}-"
    for path in sorted(RUN.glob(f"{prefix}sj-far*")):
        token = path.name.removeprefix(prefix)
        if firewall.TOKEN.fullmatch(token) and _undone(path, "\n".join(firewall.undo(token))):
            undone.append("firewall rules")
    path = _forwarding_path()
    if _undone(path, _restore(path) if is_unique else ":") and is_unique:
        undone.append("IPv4 forwarding")
    return list(dict.fromkeys(undone))


def _undone(path: Path, script: str) -> bool:
    """Run `script` and remove the mark `path` if it is ours and no process has locked it."""
    with suppress(OSError):  # there is none, or another user's, or a link is active
        mark = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            opened = os.fstat(mark)
            if opened.st_uid == os.geteuid() and os.path.samestat(path.lstat(), opened):
                quietly(script)
                path.unlink()
                return True
        finally:
            os.close(mark)
    return False


def quietly(script: str, marks: tuple[int, ...] = ()) -> None:
    """Run a script of the shell that inherits `marks`, whatever its success."""
    nothing = subprocess.DEVNULL
    line = ["sh", "-c", script]
    subprocess.run(line, stdin=nothing, stdout=nothing, stderr=nothing, check=False, pass_fds=marks)


def _forwarding_path() -> Path:
    return RUN / f"sojourn-forwarding-{namespace()[0]}"


def _not_forwarding() -> list[str]:
    """Return the interfaces that do not forward IPv4 packets, without the devices of links."""
    names = []
    for conf in sorted(CONF.iterdir()):
        name = conf.name
        is_special = name in ("all", "default", "lo") or name.startswith(firewall.FAR_DEVICES)
        if is_special or not _INTERFACE.fullmatch(name):
            continue
        with suppress(OSError):  # it has just been removed
            if (conf / "forwarding").read_text(encoding="ascii").strip() == "0":
                names.append(name)
    return names


def _restore(path: Path) -> str:
    """Return a script that turns forwarding off again on the interfaces that `path` lists.

    If the whole machine forwards packets by now, somebody else has turned that on, and it stays.
    """
    return (
        f'if [ "$(cat {FORWARD})" = 0 ]; then while read -r name; do '
        f'echo 0 >"{CONF}/$name/forwarding"; done <{shlex.quote(str(path))}; fi'
    )


def _shared_lock(path: Path) -> int:
    """Open the file `path` and share its lock; the file still exists then. Raises OSError."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        try:
            mark = os.open(path, flags, 0o600)
        except OSError as error:
            raise OSError(None, f"--nat: {path}: {(error.strerror or '').lower()}") from None
        try:
            if os.fstat(mark).st_uid != os.geteuid():
                raise OSError(None, f"--nat: {path}: belongs to another user")
            fcntl.flock(mark, fcntl.LOCK_SH)
            if os.path.samestat(os.fstat(mark), path.lstat()):
                return mark
        except FileNotFoundError:
            pass  # the last of the others has just removed it
        except OSError:
            os.close(mark)
            raise
        os.close(mark)
