"""The first process inside a link: it sets up the near device, runs the command, and is its init.

`unshare` starts it in namespaces of its own (network, processes, mounts). It hands the device to
the link's process and keeps nothing. When that process is gone, however it went, the leash between
them is closed, this process ends, and the kernel ends every other of the namespace with it.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from ipaddress import IPv4Network

from sojourn import wires
from sojourn.network import (
    NEAR,
    OWN_NETWORK,
    Block,
    NoRightError,
    NoTunError,
    dropped,
    open_tun,
    set_up_near,
    v6,
)

COMMAND_FAILED = 126
"""The exit code where a command cannot be executed, as the shell has it."""


def main(leash: socket.socket, command: list[str]) -> int:
    """Do all of it; the code is that of the command."""
    # A handler, unlike "ignore", is not inherited: Ctrl-C is the command's affair.
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, lambda *_: None)
    # Those that look at /proc see the processes of this namespace, if the system lets us.
    subprocess.run(["mount", "-t", "proc", "proc", "/proc"], capture_output=True, check=False)
    leash.send(b"{}")
    said = leash.recv(4096)
    if not said:
        return 1
    asked = json.loads(said)
    block = Block(IPv4Network(asked["network"]))
    try:
        descriptors = _device(asked["tun"])
        set_up_near(NEAR, block)
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
    threading.Thread(target=_end_with, args=(leash,), daemon=True).start()
    code = _run(command, {"SOJOURN_NEAR": block.near, "SOJOURN_FAR": block.far})
    leash.send(json.dumps({"code": code, "dropped": dropped(NEAR)}).encode())
    return code


def _device(tun: bool) -> list[int]:
    """Make the near device, if it is one of TUN, or make ready the one that was put here."""
    if tun:
        return [open_tun(NEAR)[0]]
    wires.plain(NEAR)
    return []


def _end_with(leash: socket.socket) -> None:
    """End everything here when the link's process is gone."""
    try:
        leash.recv(16)
    finally:
        os._exit(1)


def _run(command: list[str], known: Mapping[str, str]) -> int:
    """Run `command` and bury every process that is left to us meanwhile."""
    more = {f"{name}6": v6(address) for name, address in known.items()}
    ours = {name: value for name, value in os.environ.items() if name != OWN_NETWORK}
    usual = [signal.SIGPIPE, signal.SIGXFSZ]  # Python ignores them; a command must not
    try:
        child = os.posix_spawnp(command[0], command, {**ours, **known, **more}, setsigdef=usual)
    except OSError as error:
        print(f"sojourn: {command[0]}: {(error.strerror or '').lower()}", file=sys.stderr)
        return COMMAND_FAILED
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    fd, *command = sys.argv[1:]
    sys.exit(main(socket.socket(fileno=int(fd)), command))
