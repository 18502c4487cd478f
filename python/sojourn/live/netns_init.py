"""Init process of the namespaces inside a link: set up the near device and run the command.

`unshare` starts it in new network, process and mount namespaces. It passes the descriptor of the
device to the link's process. When that process ends, in whatever way, the socket between them (the
leash) closes and this process exits. The kernel then ends all other processes of the namespace.

Messages on the leash, in order:

1. `{}` from here: the namespaces exist.
2. JSON from the link: the setup (block, kind of device, /etc/resolv.conf, terminal).
3. `{}` from here with the descriptors of the device, or `{"error": ...}`.
4. `go` from the link: start the command. From then on, numbers of signals for the command.
5. JSON from here: exit code, and packets that the kernel dropped at the device.
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

from sojourn.live import leash as messages
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
"""Exit code if the command cannot be executed, as in the shell."""

FREE_TERMINAL = b"\x1b7\x1b[r\x1b8\x1b[0m\x1b[0J"
"""Make the whole terminal scroll, keep the cursor, and clear what is below it."""

FOR_TERMINAL = (signal.SIGTTIN, signal.SIGTTOU)
"""Signals that stop a process in the background which uses the terminal."""

SHELL = "/bin/sh"
"""Interpreter of scripts without a `#!` line, as for a shell and for env."""


def main(leash: socket.socket, command: list[str]) -> int:
    """Set up the inside, run `command`, and return its exit code."""
    # It is inherited across exec up to here; neither tools nor the command may have it.
    leash.set_inheritable(False)
    early = _early_signals()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # /proc shows the processes of this namespace. Without the right to mount, it stays as it is.
    mount = ["mount", "-t", "proc", "proc", "/proc"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(mount, stdin=quiet, stdout=quiet, stderr=quiet):
        leash.send(messages.ready())
        request = leash.recv(65_536)
        if not request:
            return 1
        setup = json.loads(request)
        block = Block(IPv4Network(setup["network"]))
        try:
            descriptors = _set_up(setup, block)
        except NoRightError:
            leash.send(messages.failed("no right to create a device there"))
            return 1
        except (NoTunError, OSError) as error:
            leash.send(messages.failed(str(error)))
            return 1
    socket.send_fds(leash, [messages.ready()], descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    if leash.recv(16) != b"go":
        return 1
    known = {"SOJOURN_NEAR": block.near, "SOJOURN_FAR": block.far}
    taken = {"terminal": setup["terminal"], "watched": setup["watched"]}
    code = _run(leash, command, known, early, **taken)
    with suppress(OSError):  # the link is gone
        leash.send(messages.ended(messages.Ended(code, dropped(NEAR))))
    return code


def _early_signals() -> list[int]:
    """Handle Ctrl-C, which is for the command only; return the list of those received.

    The link leaves Ctrl-C to the command as soon as it has sent `go`. One that comes before the
    command has started does not reach it, so `_run` passes on what is in the list.
    """
    early: list[int] = []
    for number in TO_COMMAND:
        if signal.getsignal(number) != signal.SIG_IGN:  # a handler is not inherited by the command
            signal.signal(number, lambda number, _: early.append(number))
    return early


def _set_up(setup: Mapping[str, Any], block: Block) -> list[int]:
    """Create the near device (TUN) or configure the one put here (veth); return descriptors."""
    descriptors = []
    if setup["tun"]:
        descriptors = [open_tun(NEAR, offload=setup["offload"])[0]]
    else:
        from sojourn.live import veth

        veth.plain(NEAR)
    set_up_near(NEAR, block)
    if setup.get("resolv_conf"):
        _cover(Path("/etc/resolv.conf"), setup["resolv_conf"])
    return descriptors


def _cover(path: Path, text: str) -> None:
    """Mount a file with the contents `text` over `path`, in this namespace only.

    The file is in a tmpfs that only this mount uses, and is removed with the namespace.
    """
    # A temporary mount point; it is unmounted again below.
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
    """Run a program. Raises OSError with its error output if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(errno.EIO, done.stderr.strip() or f"{words[0]} failed")


def _obey(leash: socket.socket, child: int, *, watched: bool) -> None:
    """Pass signals from the link to the command; exit when the link has ended.

    If the link was killed while it showed status lines (`watched`), clear them and make the whole
    terminal scroll again.
    """
    while True:
        try:
            message = leash.recv(16)
        except OSError:
            message = b""
        if not message:
            if watched:
                with suppress(OSError):
                    os.write(2, FREE_TERMINAL)
            os._exit(1)
        with suppress(ProcessLookupError):
            os.kill(child, int(message))


def _run(
    leash: socket.socket,
    command: list[str],
    known: Mapping[str, str],
    early: list[int],
    *,
    terminal: bool,
    watched: bool,
) -> int:
    """Run `command`, reap orphaned processes, and return the exit code.

    The signals in `early` came before the command was started, and are passed on to it.

    A shell that takes over the `terminal` gets its own process group in the foreground. The link's
    group has no number in this namespace, so the shell could not give the terminal back to it. A
    shell that looked at the terminal before it was given stops itself (SIGTTIN): it is continued.
    """
    more = {f"{name}6": v6(address) for name, address in known.items()}
    ours = {name: value for name, value in os.environ.items() if name != OWN_NETWORK}
    try:
        child = _spawn(command, {**ours, **known, **more}, group=terminal)
    except OSError as error:
        print(f"sojourn: {command[0]}: {(error.strerror or '').lower()}", file=sys.stderr)
        return COMMAND_FAILED
    with suppress(ProcessLookupError):
        for number in tuple(early):  # later ones reach the command as well
            os.kill(child, number)
    if terminal:
        with suppress(OSError):
            os.tcsetpgrp(0, child)
    options = {"watched": watched}
    threading.Thread(target=_obey, args=(leash, child), kwargs=options, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    while True:
        pid, status = os.waitpid(-1, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            if pid == child and terminal and os.WSTOPSIG(status) in FOR_TERMINAL:
                os.killpg(child, signal.SIGCONT)
        elif pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _spawn(command: list[str], environment: Mapping[str, str], *, group: bool) -> int:
    """Start `command`, with `group` in its own process group; return its process ID."""
    usual = [signal.SIGPIPE, signal.SIGXFSZ]  # ignored by Python; the command gets the default
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
    except ConnectionError:  # the link has ended
        sys.exit(1)
