"""The first process inside a link: it sets up the near device, runs the command, and is its init.

`unshare` starts it in namespaces of its own (network, processes, mounts). It hands the device to
the link's process and keeps nothing. When that process is gone, however it went, the leash between
them is closed, this process ends, and the kernel ends every other of the namespace with it.

What is said on the leash, in this order: `{}` from here when the namespaces are there; from the
link, as JSON, what to set up; `{}` from here with the descriptors of the device, or an error; `go`
from the link; from then on numbers of signals for the command; from here its exit code.
"""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from sojourn.live.netdev import (
    NEAR,
    Block,
    NoRightError,
    NoTunError,
    dropped,
    open_tun,
    set_up_near,
    v6,
)
from sojourn.live.signals import OWN_NETWORK, TO_COMMAND

COMMAND_FAILED = 126
"""The exit code where a command cannot be executed, as the shell has it."""

FREE_TERMINAL = b"\x1b7\x1b[r\x1b8\x1b[0m\x1b[0J"
"""Make the whole terminal scroll, keep the cursor, and clear what is below it."""

SHELL = "/bin/sh"
"""What executes a script without a first line that says so, as it does for a shell and for env."""


def main(leash: socket.socket, command: list[str]) -> int:
    """Do all of it; the code is that of the command."""
    # A handler, unlike "ignore", is not inherited: Ctrl-C is the command's affair.
    for number in TO_COMMAND:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # Those that look at /proc see the processes of this namespace, if the system lets us.
    mount = ["mount", "-t", "proc", "proc", "/proc"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(mount, stdin=quiet, stdout=quiet, stderr=quiet):
        leash.send(b"{}")
        said = leash.recv(65_536)
        if not said:
            return 1
        asked = json.loads(said)
        block = Block(IPv4Network(asked["network"]))
        try:
            descriptors = _set_up(asked, block)
        except NoRightError:
            leash.send(json.dumps({"error": "no right to make a device there"}).encode())
            return 1
        except (NoTunError, OSError) as error:
            leash.send(json.dumps({"error": str(error)}).encode())
            return 1
    socket.send_fds(leash, [b"{}"], descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    if leash.recv(16) != b"go":
        return 1
    known = {"SOJOURN_NEAR": block.near, "SOJOURN_FAR": block.far}
    code = _run(leash, command, known, terminal=asked["terminal"], watched=asked["watched"])
    with suppress(OSError):  # the link is gone
        leash.send(json.dumps({"code": code, "dropped": dropped(NEAR)}).encode())
    return code


def _set_up(asked: Mapping[str, Any], block: Block) -> list[int]:
    """Make the near device, if it is one of TUN, or make ready the one that was put here."""
    descriptors = []
    if asked["tun"]:
        descriptors = [open_tun(NEAR)[0]]
    else:
        from sojourn.live import veth

        veth.plain(NEAR)
    set_up_near(NEAR, block)
    if asked.get("resolv_conf"):
        _cover(Path("/etc/resolv.conf"), asked["resolv_conf"])
    return descriptors


def _cover(path: Path, text: str) -> None:
    """Put a file with `text` over `path`, for the processes of this namespace alone.

    The file lies in a file system in memory that nobody else sees, and goes with the namespace.
    """
    # What is mounted there is taken away again at once; nothing that runs here needs it.
    away = next(place for place in ("/mnt", "/media", "/sys", "/tmp") if Path(place).is_dir())
    _tool("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", away)
    try:
        covering = Path(away, "resolv.conf")
        covering.write_text(text, encoding="utf-8")
        covering.chmod(0o644)
        _tool("mount", "--bind", str(covering), str(path))
    finally:
        _tool("umount", "--lazy", away)


def _tool(*words: str) -> None:
    """Run a program that must succeed. Raises OSError with what it says."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(errno.EIO, done.stderr.strip() or f"{words[0]} failed")


def _obey(leash: socket.socket, child: int, *, watched: bool) -> None:
    """Send the command the signals that the link asks for; end everything when the link is gone.

    If the link was killed with status lines (`watched`), they are cleared and the terminal scrolls
    as a whole again.
    """
    while True:
        try:
            said = leash.recv(16)
        except OSError:
            said = b""
        if not said:
            if watched:
                with suppress(OSError):
                    os.write(2, FREE_TERMINAL)
            os._exit(1)
        with suppress(ProcessLookupError):
            os.kill(child, int(said))


def _run(
    leash: socket.socket,
    command: list[str],
    known: Mapping[str, str],
    *,
    terminal: bool,
    watched: bool,
) -> int:
    """Run `command` and reap every process that is left to this one meanwhile.

    A shell that is to use the `terminal` gets a process group of its own, in the foreground: the
    group of the link has no number in this namespace, so no shell could give the terminal back.
    """
    more = {f"{name}6": v6(address) for name, address in known.items()}
    ours = {name: value for name, value in os.environ.items() if name != OWN_NETWORK}
    try:
        child = _spawn(command, {**ours, **known, **more}, group=terminal)
    except OSError as error:
        print(f"sojourn: {command[0]}: {(error.strerror or '').lower()}", file=sys.stderr)
        return COMMAND_FAILED
    if terminal:
        with suppress(OSError):
            os.tcsetpgrp(0, child)
            os.killpg(child, signal.SIGCONT)  # it may have stopped, being in the background
    options = {"watched": watched}
    threading.Thread(target=_obey, args=(leash, child), kwargs=options, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _spawn(command: list[str], environment: Mapping[str, str], *, group: bool) -> int:
    """Start `command`, in a group of its own if asked for: its process."""
    usual = [signal.SIGPIPE, signal.SIGXFSZ]  # Python ignores them; a command must not
    more: dict[str, Any] = {"setsigdef": usual} | ({"setpgroup": 0} if group else {})
    try:
        return os.posix_spawnp(command[0], command, environment, **more)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    line = [SHELL, shutil.which(command[0]) or command[0], *command[1:]]
    return os.posix_spawn(SHELL, line, environment, **more)


if __name__ == "__main__":
    fd, *command = sys.argv[1:]
    try:
        sys.exit(main(socket.socket(fileno=int(fd)), command))
    except ConnectionError:  # the link is gone
        sys.exit(1)
