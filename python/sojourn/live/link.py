"""A live link: a command whose packets cross a queue of ours in both directions.

Two processes share the work. This one holds the descriptors of both TUN devices (or packet
sockets) and the threads that move packets between them. `sojourn.live.netns_init`, started by
`unshare`, is the init process of the namespaces in which the command runs. A socket pair ties them
together: if either is killed, the other sees the end of the socket and exits, and the kernel
removes devices, addresses and namespaces.
"""

import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn.live import netdev, signals, veth
from sojourn.live.nat import remove_leftovers, way_out
from sojourn.live.signals import OWN_NETWORK, Requests

if TYPE_CHECKING:
    from sojourn.result.result import Array

Rows: TypeAlias = Mapping[str, Mapping[str, "Array"]]
"""What was seen since the last time: the columns of a link's series, by direction."""

LOOK_S = 0.1
"""How often the rows are fetched."""

LONG_S = 1.0
"""A step of the start that takes longer is named on standard error."""

GRACE_S = 5.0
"""How long a command has to end once it was asked to."""

PYTHON = (sys.executable, "-P", "-m")
"""Starts a module of this package, whatever modules lie in the directory that it is started in."""

PRIORITY = 10
"""Of the threads that move packets, among real-time ones."""

LATE_S = 0.001
"""Packets that are later than this at the 99th percentile are not to be trusted."""

UNDELIVERED = (
    ("kernel_dropped_packets", "the kernel dropped before we could read them"),
    ("no_memory_packets", "there was no memory for"),
    ("refused_packets", "the far end refused"),
)
"""Counts of packets that no law lost, and what became of those."""

KILLED = 128 + signal.SIGKILL


@dataclass(frozen=True)
class Ready:
    """What there is to know of a link before its command starts."""

    links: dict[str, Any]
    """The two links, canonical."""
    block: netdev.Block
    """Its addresses."""
    realtime: bool
    """Whether the threads that move packets go before all ordinary processes."""
    own_network: bool
    """Whether the outside is a network that was made for it, with nothing in it."""
    tun: bool
    """Whether its ends are TUN devices; they are of veth otherwise."""
    nat: bool
    """Whether it has a way to other machines by address translation."""


@dataclass(frozen=True)
class Played:
    """What happened."""

    code: int
    """The exit code of the command."""
    links: dict[str, Any]
    """A summary per direction."""
    warnings: list[str]
    """Why the numbers are not to be trusted; empty if they are."""
    tapes: Rows
    """A row per packet and direction, if there are tapes."""


def enter_own_network(arguments: Sequence[str], *, nat: bool = False) -> None:
    """Start this command line anew in a network of its own, where an ordinary user may do as root.

    Returns only by raising InputError, where the system does not allow that, or with `nat`.
    """
    if nat:
        raise InputError(
            "--nat: takes root: the link of an ordinary user begins in an empty network, which has "
            "no way out"
        )
    if OWN_NETWORK in os.environ:
        raise InputError(
            "real packets: no right to make network devices, not even in a network of its own"
        )
    unshare = ["unshare", "--user", "--map-root-user", "--net"]
    tried = subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        said = tried.stderr.strip() or "unshare fails"
        raise InputError(
            "real packets take the right to change the network (CAP_NET_ADMIN: be root), or user "
            f"namespaces, which this system does not allow: {said}"
        )
    os.environ[OWN_NETWORK] = "1"
    with signals.held_back():  # until it has a handler for them: see sojourn.cli
        os.execvp(unshare[0], [*unshare, *PYTHON, "sojourn", *arguments])


class Patience:
    """Says on standard error what the start waits for, if that takes long."""

    def __init__(self) -> None:
        self._step = ""
        self._done = threading.Event()

    def __enter__(self) -> Self:
        """Start to watch."""
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Say nothing from now on."""
        self._done.set()

    def now(self, step: str) -> None:
        """Say what is waited for from now on."""
        self._step = step

    def _watch(self) -> None:
        told = ""
        while not self._done.wait(LONG_S):
            if self._step != told:
                told = self._step
                print(f"sojourn: waiting for {told}", file=sys.stderr)


def play(
    links: dict[str, Any],
    command: Sequence[str],
    asked: Requests,
    *,
    environment: Mapping[str, str] | None = None,
    nat: bool = False,
    terminal: bool = False,
    watched: bool = False,
    seed: int = 1,
    sample: str | None = None,
    pcap: str | None = None,
    tape: bool = False,
    started: Callable[[Ready], None] = lambda ready: None,
    seen: Callable[[Rows], None] | None = None,
) -> Played:
    """Run `command` behind the canonical links `up` and `down`, until it ends.

    Parameters
    ----------
    links
        The canonical links, `up` and `down`.
    command
        The command line, at least one word.
    asked
        The signals that this process gets meanwhile (see `signals.requests`).
    environment
        Variables for the command, in addition to those of this process.
    nat
        Give the command a way to other machines by address translation.
    terminal
        The command is a shell that takes over the terminal.
    watched
        Part of the terminal is reserved for status lines, and has to be given back.
    seed
        Seed of the random numbers of disciplines and loss.
    sample
        Interval of the series, such as "100ms"; required by `seen`.
    pcap
        Name of a file for all packets (pcapng).
    tape
        Record a row per packet.
    started
        Called before the command starts.
    seen
        Called every `LOOK_S` seconds with the new rows of the series.

    Raises
    ------
    NoRightError
        If the process may not create network devices.
    InputError
        If something else that a link needs is missing or fails.
    """
    netdev.check_tools()
    if undone := remove_leftovers():
        print(f"sojourn: undid what a killed link left: {', '.join(undone)}", file=sys.stderr)
    with ExitStack() as stack:
        with Patience() as waiting:
            waiting.now("the kernel to make a device")
            tun = _tun(stack)
            room, leash = stack.enter_context(_room(command, environment or {}))
            asked_of_room = {"terminal": terminal, "watched": watched}
            ends = _ends(stack, tun, room.pid, leash, waiting, asked_of_room, nat=nat)
            waiting.now("the threads that move packets")
            try:
                realtime = start_in_realtime()
                pump = _sojourn.Pump(
                    ends.near,
                    ends.far,
                    json.dumps(links),
                    seed,
                    sample,
                    pcap,
                    ends.head,
                    tape,
                )
            finally:
                end_realtime()
        own_network = OWN_NETWORK in os.environ
        asked.state = "opening"
        started(Ready(links, ends.block, realtime, own_network, ends.head == 0, nat))
        if asked.to_end:
            raise KeyboardInterrupt
        asked.state = "running"
        with suppress(ConnectionError):  # it is gone: that is told at once
            leash.send(b"go")
        told = _watch(leash, pump, seen, asked)
        asked.state = "ending"
        if terminal:
            signals.take_terminal()
        missed = ends.missed(told.get("dropped", 0))
        at_end, tapes = pump.stop()
        if seen is not None:
            seen(pump.rows())
    told_at_end = json.loads(at_end)
    summary = {name: told_at_end[name] for name in links}
    for name, count in zip(links, missed, strict=True):
        summary[name]["kernel_dropped_packets"] = count
    warnings = [*_warnings(summary), *_of_capture(told_at_end)]
    return Played(told["code"], summary, warnings, tapes)


@dataclass(frozen=True)
class Ends:
    """What packets are read from and written to."""

    near: int
    far: int
    device: str
    """The name of the far device."""
    head: int
    """Bytes before each IP header: none on TUN devices."""
    block: netdev.Block

    def missed(self, near: int) -> tuple[int, int]:
        """Count what the kernel dropped before it was read, up and down; `near`: at that device."""
        up, down = near, netdev.dropped(self.device)
        if self.head:
            up, down = up + veth.missed(self.near), down + veth.missed(self.far)
        return up, down


def _tun(stack: ExitStack) -> tuple[int, str] | None:
    """Make the far device, and know by it whether we may; None where there are no TUN devices."""
    try:
        far, device = netdev.open_tun(netdev.FAR)
    except netdev.NoTunError:
        netdev.check_right()
        return None
    stack.callback(os.close, far)
    return far, device


@contextmanager
def _room(
    command: Sequence[str], environment: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket]]:
    """Lend the process that is the inside, and our end of the leash."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    end = str(theirs.fileno())
    with ours:
        # A Ctrl-C must not meet an interpreter that has no handler for it yet.
        with theirs, signals.held_back():
            room = subprocess.Popen(
                [
                    *("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"),
                    *(*PYTHON, "sojourn.live.netns_init", end, *command),
                ],
                pass_fds=[theirs.fileno()],
                env={**os.environ, **environment},
            )
        try:
            yield room, ours
        finally:
            ours.close()
            room.wait()


def _ends(
    stack: ExitStack,
    tun: tuple[int, str] | None,
    room: int,
    leash: socket.socket,
    waiting: Patience,
    options: Mapping[str, bool],
    *,
    nat: bool,
) -> Ends:
    """Make both ends and give them their addresses; all of it goes with their descriptors."""
    inside = "the namespaces of the command (unshare)"
    try:
        if tun is not None:
            (far, device), head, nears = tun, 0, []
        else:
            waiting.now(inside)
            _hear(leash)
            waiting.now("the kernel to make devices (ip)")
            far, near, device = veth.make(room)
            head, nears = veth.HEAD_BYTES, [near]
            stack.callback(os.close, far)
            veth.plain(device)
        waiting.now("addresses and routes outside (ip)")
        block = netdev.set_up_far(device, new_network=OWN_NETWORK in os.environ)
        asked: dict[str, Any] = {"network": str(block.network), "tun": tun is not None, **options}
        if nat:
            waiting.now("address translation (nft or iptables)")
            asked["resolv_conf"] = stack.enter_context(way_out(device, block))
        if tun is not None:  # the inside was made meanwhile
            waiting.now(inside)
            _hear(leash)
        leash.send(json.dumps(asked).encode())
    except OSError as error:
        raise InputError(f"link: {error.strerror or error}") from None
    waiting.now("addresses and routes inside (ip)")
    [near] = nears + _hear(leash)
    stack.callback(os.close, near)
    return Ends(near, far, device, head, block)


def _hear(leash: socket.socket) -> list[int]:
    """Wait for the room: the descriptors that it hands over."""
    try:
        said, descriptors, _, _ = socket.recv_fds(leash, 4096, 1)
    except ConnectionError:
        said, descriptors = b"", []
    error = json.loads(said).get("error") if said else "unshare could not make its namespaces"
    if error:
        raise InputError(f"link: the inside could not be made: {error}")
    return list(descriptors)


def start_in_realtime() -> bool:
    """Have the threads that start now go before all ordinary processes, if we may."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except PermissionError:
        return False
    return True


def end_realtime() -> None:
    """Have what starts from now on be ordinary again."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _watch(
    leash: socket.socket,
    pump: _sojourn.Pump,
    seen: Callable[[Rows], None] | None,
    asked: Requests,
) -> dict[str, int]:
    """Wait for the command to end: what the room tells of it.

    The first request to end is passed on to the command. A second one, or a command that does not
    end in time, ends the link, and with it the command.
    """
    leash.settimeout(LOOK_S)
    passed_on, deadline = 0, math.inf
    while True:
        if len(asked.to_end) > passed_on:
            if passed_on or time.monotonic() > deadline:
                return {"code": signals.CODE + asked.to_end[0]}
            with suppress(ConnectionError):
                leash.send(str(asked.to_end[0]).encode())
            passed_on, deadline = 1, time.monotonic() + GRACE_S
        try:
            said = leash.recv(4096)
        except TimeoutError:
            if seen is not None:
                seen(pump.rows())
            if time.monotonic() > deadline:
                return {"code": signals.CODE + asked.to_end[0]}
            continue
        except ConnectionError:
            said = b""
        told: dict[str, int] = json.loads(said) if said else {"code": KILLED}
        return told


def _warnings(links: Mapping[str, Any]) -> list[str]:
    """Say what stands against trusting the numbers."""
    found = []
    for name, link in links.items():
        p99 = link["lateness_p99_s"]
        if p99 is not None and p99 > LATE_S:
            found.append(f"{name}: 1 % of the packets were more than {p99 * 1e3:.1f} ms late")
        for key, what in UNDELIVERED:
            if link[key]:
                found.append(f"{name}: {link[key]} packets that {what}")
        if link["failed"]:
            found.append(f"{name}: it ended before the command did: {link['failed']}")
    return found


def _of_capture(told: Mapping[str, Any]) -> list[str]:
    """Say what is wrong with the capture, if there is one."""
    found = []
    if told.get("capture_failed"):
        found.append(f"the capture is not whole: {told['capture_failed']}")
    if told.get("uncaptured_packets"):
        found.append(f"the capture left {told['uncaptured_packets']} packets out: a slow disk")
    return found
