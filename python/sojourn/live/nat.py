"""Network address translation (NAT): the way from the inside of a link to other machines.

All settings outside are undone when the link ends, in whatever way:

- With nftables, the rules are a table named after the far device. It belongs to a process of `nft`
  ("flags owner", Linux 5.12), which waits for the end of a pipe that the link's process holds. If
  either process ends, the kernel removes the table.
- With iptables or an older nftables, a guard removes the rules. It is a shell in its own session
  that waits for the end of the same pipe and ignores all signals except SIGKILL.
- Interfaces that do not forward IPv4 packets do so for links, and `net.ipv4.ip_forward` stays as it
  is. The guard of the last link turns forwarding off again, unless `ip_forward` is on by then.
- If the guard or `nft` is killed, the link ends: without rules it would be open to other machines.
- If the guard is killed as well, the next link of any kind finds marks in /run, and undoes the rest
  (`sojourn.live.marks`).

Only IPv4 forwarding is turned on: a Linux machine that forwards IPv6 ignores router advertisements,
so it could lose its own address. IPv6 is translated (by nftables) where it is forwarded already.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from sojourn._sojourn import InputError
from sojourn.live import firewall, marks, resolver
from sojourn.live.firewall import WayOut
from sojourn.live.netdev import POOL, Block

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


@contextmanager
def way_out(device: str, block: Block) -> Iterator[str | None]:
    """Translate addresses for the link with the far end `device`, for the duration of the block.

    Yields
    ------
    str or None
        The contents of /etc/resolv.conf for the inside, or None if this machine's file works.

    Raises
    ------
    OSError
        If a program or the kernel refuses; its text starts with "--nat: ".
    """
    token = f"{device}-{secrets.token_hex(8)}"
    server, resolv_conf = resolver.resolving(resolver.resolv_conf(), block.far)
    with ExitStack() as stack:
        proxy, interfaces = None, None
        if server is not None:
            proxy = stack.enter_context(resolver.proxy(server, block.far, device))
        mark, undo = stack.enter_context(marks.marked_rules(token))
        held = [mark]
        if not marks.forwards():
            mark, restore, interfaces = stack.enter_context(marks.marked_forwarding())
            held.append(mark)
            undo = [*restore, *undo]
        stack.enter_context(_rules(WayOut(token, block, proxy, interfaces), undo, held))
        for name in (device, *(interfaces or ())):
            marks.turn_on(name)
        yield resolv_conf


@contextmanager
def _rules(way: WayOut, undo: Sequence[str], held: Sequence[int]) -> Iterator[None]:
    """Put the rules of a way out in force; a guard runs `undo` when this process is gone."""
    guard = _Guard(undo, held)
    try:
        owns = False
        if shutil.which("nft"):
            table = firewall.nft_table(way)
            owns = guard.own(table, firewall.table_of(way.token))
            if not owns:
                _run(["nft", "-f", "-"], "\n".join(table).replace(" { flags owner; }", ""))
        else:
            for rule in firewall.iptables_rules(way):
                _run(rule)
        for rule in firewall.accepting(way):
            _run(rule)
        guard.watch(owns=owns)
        yield
    finally:
        guard.close()


def _run(command: Sequence[str], text: str = "") -> None:
    """Run a program. Raises OSError with its first line of errors if it fails."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["it failed"])[0]
        raise OSError(None, f"--nat: {command[0]}: {reason}")


_GONE = "gone"
"""Line that the guard prints when `nft` has ended."""


class _Guard:
    """Shell process that runs the lines `undo` when this process has ended."""

    def __init__(self, undo: Sequence[str], held: Sequence[int]) -> None:
        # The shell ignores the signals of its terminal and group, so that it outlives this process.
        # `nft` reads commands until the pipe ends, and owns its tables until then.
        owner = [f"nft --interactive; echo {_GONE}"] if shutil.which("nft") else []
        meanwhile = ["trap '' HUP INT QUIT TERM PIPE", *owner, "exec >/dev/null 2>&1", "cat"]
        self._undo, self._held = "\n".join(undo), tuple(held)
        self._closing, self._lock = False, threading.Lock()
        self._process = subprocess.Popen(
            ["sh", "-c", "\n".join([*meanwhile, self._undo]), "sojourn-nat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            pass_fds=self._held,
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

    def watch(self, *, owns: bool) -> None:
        """End this link when the guard, or the `nft` that `owns` the rules, is killed."""
        for wait in (self._process.wait, *([self._until_gone] if owns else [])):
            threading.Thread(target=self._end_after, args=(wait,), daemon=True).start()

    def _until_gone(self) -> None:
        """Wait until `nft` has ended."""
        assert self._process.stdout is not None
        with suppress(ValueError):  # closed
            while (line := self._process.stdout.readline()) and line.strip() != _GONE:
                pass

    def _end_after(self, wait: Callable[[], object]) -> None:
        """End this link when `wait` returns, unless it is ending already."""
        wait()
        with self._lock:
            if self._closing:
                return
            self._closing = True
        message = (
            "sojourn: --nat: the process that guards its firewall rules was killed: the link ends"
        )
        print(message, file=sys.stderr)
        os.kill(os.getpid(), signal.SIGTERM)

    def close(self) -> None:
        """Make it undo everything, and wait until it has ended."""
        with self._lock:
            self._closing = True
        with suppress(BrokenPipeError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        if self._process.wait() < 0:  # it was killed
            marks.quietly(self._undo, self._held)
