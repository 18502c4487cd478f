"""A live link: a command whose packets cross our link on their way out, and on their way back.

Processes and what each holds: this one has the descriptors of both ends and the threads that move
packets between them; `sojourn.room`, started by `unshare`, is the init of the namespaces in
which the command runs. A socket pair between the two is the leash: whoever is killed, the other
sees its end and goes as well, and the kernel takes devices, addresses and namespaces with them.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from sojourn import _sojourn, network, wires
from sojourn._sojourn import InputError
from sojourn.network import OWN_NETWORK
from sojourn.result import Array

Rows = Mapping[str, Mapping[str, Array]]
"""What was seen since the last time: the columns of a link's series, by direction."""

LOOK_S = 0.1
"""How often the rows are fetched."""

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
    block: network.Block
    """Its addresses."""
    realtime: bool
    """Whether the threads that move packets go before all ordinary processes."""
    own_network: bool
    """Whether the outside is a network that was made for it, with nothing in it."""
    tun: bool
    """Whether its ends are TUN devices; they are of veth otherwise."""


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


def enter_own_network(arguments: Sequence[str]) -> None:
    """Start this command line anew in a network of its own, where an ordinary user may do as root.

    Returns only by raising InputError, where the system does not allow that.
    """
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
    os.execvp(unshare[0], [*unshare, sys.executable, "-m", "sojourn", *arguments])


def play(
    links: dict[str, Any],
    command: Sequence[str],
    *,
    seed: int = 1,
    sample: str = "100ms",
    pcap: str | None = None,
    tape: bool = False,
    started: Callable[[Ready], None] = lambda ready: None,
    seen: Callable[[Rows], None] | None = None,
) -> Played:
    """Run `command` behind the canonical links `up` and `down`, until it ends.

    `started` is called before the command starts, `seen` with the rows of every `LOOK_S` seconds.
    Raises NoRightError where the process may not make devices here.
    """
    network.check_tools()
    with ExitStack() as stack:
        tun = _tun(stack)
        room, leash = stack.enter_context(_room(command))
        ends = _ends(stack, tun, room.pid, leash)
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
        with _signals():
            started(Ready(links, ends.block, realtime, OWN_NETWORK in os.environ, ends.head == 0))
            with suppress(ConnectionError):  # it is gone: that is told at once
                leash.send(b"go")
            told = _watch(leash, pump, seen)
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
    block: network.Block

    def missed(self, near: int) -> tuple[int, int]:
        """Count what the kernel dropped before it was read, up and down; `near`: at that device."""
        up, down = near, network.dropped(self.device)
        if self.head:
            up, down = up + wires.missed(self.near), down + wires.missed(self.far)
        return up, down


def _tun(stack: ExitStack) -> tuple[int, str] | None:
    """Make the far device, and know by it whether we may; None where there are no TUN devices."""
    try:
        far, device = network.open_tun(network.FAR)
    except network.NoTunError:
        network.check_right()
        return None
    stack.callback(os.close, far)
    return far, device


@contextmanager
def _room(command: Sequence[str]) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket]]:
    """Lend the process that is the inside, and our end of the leash."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    end = str(theirs.fileno())
    with ours:
        with theirs:
            room = subprocess.Popen(
                [
                    *("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"),
                    *(sys.executable, "-m", "sojourn.room", end, *command),
                ],
                pass_fds=[theirs.fileno()],
            )
        try:
            yield room, ours
        finally:
            ours.close()
            room.wait()


def _ends(stack: ExitStack, tun: tuple[int, str] | None, room: int, leash: socket.socket) -> Ends:
    """Make both ends and give them their addresses; all of it goes with their descriptors."""
    _hear(leash)
    try:
        if tun is not None:
            (far, device), head, nears = tun, 0, []
        else:
            far, near, device = wires.make(room)
            head, nears = wires.HEAD_BYTES, [near]
            stack.callback(os.close, far)
            wires.plain(device)
        if OWN_NETWORK in os.environ:
            network.ip(["link set dev lo up"])
        block = network.set_up_far(device)
        leash.send(json.dumps({"network": str(block.network), "tun": tun is not None}).encode())
    except OSError as error:
        raise InputError(f"link: {error.strerror or error}") from None
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


@contextmanager
def _signals() -> Iterator[None]:
    """Leave Ctrl-C to the command; a request to end ends the command as well."""

    def end(*_: Any) -> None:
        raise KeyboardInterrupt

    wanted = {signal.SIGINT: lambda *_: None, signal.SIGQUIT: lambda *_: None}
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    before |= {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(
    leash: socket.socket, pump: _sojourn.Pump, seen: Callable[[Rows], None] | None
) -> dict[str, int]:
    """Wait for the command to end: what the room tells of it."""
    leash.settimeout(LOOK_S)
    while True:
        try:
            said = leash.recv(4096)
        except TimeoutError:
            rows = pump.rows()  # fetched even if nobody wants them: they take memory
            if seen is not None:
                seen(rows)
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
