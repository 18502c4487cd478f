"""Run a command behind an emulated link, one per direction, on real packets.

Two processes are involved. This one holds the descriptors of both ends and the threads that move
packets between them. `sojourn.live.netns_init`, started by `unshare`, is the init process of the
namespaces in which the command runs. A socket pair (the leash) connects them. If one of them is
killed, the other sees the end of the socket and exits, and the kernel removes devices, addresses
and namespaces.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from sojourn import _sojourn
from sojourn._sojourn import InputError
from sojourn._util.files import open_new
from sojourn.live import leash as messages
from sojourn.live import netdev, signals, veth
from sojourn.live.leash import Ended
from sojourn.live.marks import remove_leftovers
from sojourn.live.nat import way_out
from sojourn.live.signals import OWN_NETWORK, Requests

if TYPE_CHECKING:
    from sojourn.result.result import Array

Rows: TypeAlias = Mapping[str, Mapping[str, "Array"]]
"""New rows of the series of both links: columns by direction."""

LOOK_S = 0.1
"""Interval at which new rows are fetched, in seconds."""

LONG_S = 1.0
"""A start-up step that takes longer is named on standard error."""

GRACE_S = 5.0
"""Time a command has to end after SIGTERM or SIGHUP."""

PYTHON = (sys.executable, "-P", "-m")
"""Command line to start a module of this package; -P ignores modules in the current directory."""

PRIORITY = 10
"""Real-time priority of the threads that move packets."""

LATE_S = 0.001
"""Largest lateness at the 99th percentile without a warning."""

UNDELIVERED = (
    ("kernel_dropped_packets", "dropped by the kernel before they were read"),
    ("no_memory_packets", "dropped for lack of memory"),
    ("refused_packets", "refused by the far end"),
)
"""Counters of packets dropped outside the emulated queues, and the reason in words."""

KILLED = 128 + signal.SIGKILL


@dataclass(frozen=True)
class Ready:
    """A link whose command is about to start."""

    links: dict[str, Any]
    """The links `up` and `down`, canonical."""
    block: netdev.Block
    """Its addresses."""
    realtime: bool
    """True if the threads that move packets have real-time priority."""
    own_network: bool
    """True if the outside is a new, empty network (without root)."""
    tun: bool
    """True if its ends are TUN devices, False if they are veth pairs."""
    nat: bool
    """True if it reaches other machines by address translation."""


@dataclass(frozen=True)
class LinkRun:
    """The result of a command behind a link."""

    code: int
    """The exit code of the command."""
    links: dict[str, Any]
    """A summary per direction."""
    warnings: list[str]
    """Reasons not to trust the numbers; empty if there are none."""
    packet_logs: Rows
    """Packet logs: a row per packet, by direction; empty unless requested."""


def enter_own_network(arguments: Sequence[str], *, nat: bool = False) -> None:
    """Replace this process by the same command in a new network with root's rights.

    Raises
    ------
    InputError
        If the system does not allow user namespaces, or with `nat`, which requires root.
    """
    if nat:
        raise InputError(
            "--nat: requires root: without it, the link starts in an empty network, which does not "
            "reach other machines"
        )
    if OWN_NETWORK in os.environ:
        raise InputError(
            "real packets: no right to create network devices, not even in a new network"
        )
    unshare = ["unshare", "--user", "--map-root-user", "--net"]
    tried = subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        reason = tried.stderr.strip() or "unshare fails"
        raise InputError(
            "real packets require root (CAP_NET_ADMIN) or user namespaces, which this system does "
            f"not allow: {reason}"
        )
    os.environ[OWN_NETWORK] = "1"
    with signals.held_back():  # sojourn.cli.main unblocks them once it has a handler
        os.execvp(unshare[0], [*unshare, *PYTHON, "sojourn", *arguments])


class Watchdog:
    """Watchdog that names a slow start-up step on standard error."""

    def __init__(self) -> None:
        self._step = ""
        self._done = threading.Event()

    def __enter__(self) -> Self:
        """Start the watchdog thread."""
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the watchdog."""
        self._done.set()

    def now(self, step: str) -> None:
        """Set the current step."""
        self._step = step

    def _watch(self) -> None:
        shown = ""
        while not self._done.wait(LONG_S):
            if self._step != shown:
                shown = self._step
                print(f"sojourn: waiting for {shown}", file=sys.stderr)


def run(
    links: dict[str, Any],
    command: Sequence[str],
    requests: Requests,
    *,
    environment: Mapping[str, str] | None = None,
    nat: bool = False,
    terminal: bool = False,
    watched: bool = False,
    seed: int = 1,
    sample: str | None = None,
    pcap: str | None = None,
    packet_log: bool = False,
    started: Callable[[Ready], None] = lambda ready: None,
    seen: Callable[[Rows], None] | None = None,
) -> LinkRun:
    """Run `command` behind the canonical links `up` and `down`, until it ends.

    Parameters
    ----------
    links
        The canonical links, `up` and `down`.
    command
        The command line, at least one word.
    requests
        Signals that this process receives (see `signals.requests`).
    environment
        Variables for the command, in addition to this process's variables.
    nat
        Let the command reach other machines by address translation (IPv4).
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
    packet_log
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
        with Watchdog() as watchdog:
            watchdog.now("the kernel to make a device")
            # A capture has complete checksums and packets as they are sent.
            offload = pcap is None
            tun = _tun(stack, offload=offload)
            init, leash = stack.enter_context(_start_init(command, environment or {}))
            init_options = {"terminal": terminal, "watched": watched, "offload": offload}
            ends = _ends(stack, tun, init.pid, leash, watchdog, init_options, nat=nat)
            watchdog.now("the threads that move packets")
            capture = None
            if pcap is not None:
                # Passed on by descriptor: its name could be a symbolic link meanwhile.
                file = stack.enter_context(open_new(Path(pcap)))
                capture = f"/proc/self/fd/{file.fileno()}"
            options = (json.dumps(links), seed, sample, capture, ends.framing, packet_log)
            realtime = start_in_realtime()
            try:
                pump = _sojourn.Pump(ends.near, ends.far, *options)
            finally:
                end_realtime()
        own_network = OWN_NETWORK in os.environ
        requests.state = "opening"
        started(Ready(links, ends.block, realtime, own_network, ends.framing != veth.FRAMING, nat))
        if requests.to_end:
            raise KeyboardInterrupt
        requests.state = "running"
        with suppress(ConnectionError):  # if it is gone, _watch returns at once
            leash.send(b"go")
        end = _watch(leash, pump, seen, requests)
        requests.state = "ending"
        if terminal:
            signals.take_terminal()
        missed = ends.missed(end.dropped_packets)
        at_end, packet_logs = pump.stop()
        if seen is not None:
            seen(pump.rows())
    totals = json.loads(at_end)
    summary = {name: totals[name] for name in links}
    for name, count in zip(links, missed, strict=True):
        summary[name]["kernel_dropped_packets"] = count
    warnings = [*warnings_of(summary), *_of_capture(totals)]
    return LinkRun(end.code, summary, warnings, packet_logs)


@dataclass(frozen=True)
class Ends:
    """Descriptors of both ends of a link, and its addresses."""

    near: int
    far: int
    device: str
    """The name of the far device."""
    framing: str
    """Bytes before each IP header: "ip" (none), "vnet" or "ethernet"."""
    block: netdev.Block

    def missed(self, near: int) -> tuple[int, int]:
        """Return the packets that the kernel dropped before they were read, up and down.

        `near` is the number at the near device.
        """
        up, down = near, netdev.dropped(self.device)
        if self.framing == veth.FRAMING:
            up, down = up + veth.missed(self.near), down + veth.missed(self.far)
        return up, down


def _tun(stack: ExitStack, *, offload: bool) -> tuple[int, str] | None:
    """Create the far device; return None if there are no TUN devices. Raises NoRightError."""
    try:
        far, device = netdev.open_tun(netdev.FAR, offload=offload)
    except netdev.NoTunError:
        netdev.check_right()
        return None
    stack.callback(os.close, far)
    return far, device


@contextmanager
def _start_init(
    command: Sequence[str], environment: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket]]:
    """Start the process inside (`netns_init`); yield it and our end of the leash."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    end = str(theirs.fileno())
    with ours:
        # Block Ctrl-C until the new interpreter has a handler for it.
        with theirs, signals.held_back():
            init = subprocess.Popen(
                [
                    *("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"),
                    *(*PYTHON, "sojourn.live.netns_init", end, *command),
                ],
                pass_fds=[theirs.fileno()],
                env={**os.environ, **environment},
            )
        try:
            yield init, ours
        finally:
            ours.close()
            init.wait()


def _ends(
    stack: ExitStack,
    tun: tuple[int, str] | None,
    init: int,
    leash: socket.socket,
    watchdog: Watchdog,
    options: Mapping[str, bool],
    *,
    nat: bool,
) -> Ends:
    """Create both ends and set their addresses. They are removed when their descriptors close."""
    inside = "the namespaces of the command (unshare)"
    try:
        if tun is not None:
            (far, device), nears = tun, []
            framing = "vnet" if options["offload"] else "ip"
        else:
            watchdog.now(inside)
            messages.receive(leash)
            watchdog.now("the kernel to make devices (ip)")
            far, near, device = veth.make(init)
            framing, nears = veth.FRAMING, [near]
            stack.callback(os.close, far)
            veth.plain(device)
        watchdog.now("addresses and routes outside (ip)")
        block = netdev.set_up_far(device, new_network=OWN_NETWORK in os.environ)
        setup: dict[str, Any] = {"network": str(block.network), "tun": tun is not None, **options}
        if nat:
            watchdog.now("address translation (nft or iptables)")
            setup["resolv_conf"] = stack.enter_context(way_out(device, block))
        if tun is not None:  # the inside has started meanwhile
            watchdog.now(inside)
            messages.receive(leash)
        leash.send(json.dumps(setup).encode())
    except OSError as error:
        raise InputError(f"link: {error.strerror or error}") from None
    watchdog.now("addresses and routes inside (ip)")
    [near] = nears + messages.receive(leash, 1 - len(nears))
    stack.callback(os.close, near)
    return Ends(near, far, device, framing, block)


def start_in_realtime() -> bool:
    """Let new threads have real-time priority; return False if that is not allowed."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except PermissionError:
        return False
    return True


def end_realtime() -> None:
    """Let new threads have normal priority again."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _watch(
    leash: socket.socket,
    pump: _sojourn.Pump,
    seen: Callable[[Rows], None] | None,
    requests: Requests,
) -> Ended:
    """Wait for the command to end.

    The first SIGTERM or SIGHUP is passed on to the command. A second one, or a command that does
    not end within `GRACE_S` seconds, ends the link and the command.
    """
    leash.settimeout(LOOK_S)
    passed_on, deadline = 0, math.inf
    while True:
        if len(requests.to_end) > passed_on:
            if passed_on or time.monotonic() > deadline:
                return Ended(signals.CODE + requests.to_end[0])
            with suppress(ConnectionError):
                leash.send(str(requests.to_end[0]).encode())
            passed_on, deadline = 1, time.monotonic() + GRACE_S
        try:
            data = leash.recv(messages.MESSAGE_BYTES)
        except TimeoutError:
            if seen is not None:
                seen(pump.rows())
            if time.monotonic() > deadline:
                return Ended(signals.CODE + requests.to_end[0])
            continue
        except ConnectionError:
            data = b""
        return messages.parse_ended(data) if data else Ended(KILLED)


def warnings_of(links: Mapping[str, Any]) -> list[str]:
    """Return the reasons not to trust the numbers."""
    messages = []
    for name, link in links.items():
        p99 = link["lateness_p99_s"]
        if p99 is not None and p99 > LATE_S:
            messages.append(f"{name}: 1 % of the packets were more than {p99 * 1e3:.1f} ms late")
        for key, what in UNDELIVERED:
            if link[key]:
                messages.append(f"{name}: {link[key]} packets were {what}")
        if link["failed"]:
            messages.append(f"{name}: it stopped before the command ended: {link['failed']}")
    return messages


def _of_capture(report: Mapping[str, Any]) -> list[str]:
    """Return warnings about the capture, if there is one."""
    messages = []
    if report.get("capture_failed"):
        messages.append(f"the capture is incomplete: {report['capture_failed']}")
    if report.get("uncaptured_packets"):
        messages.append(
            f"the capture lacks {report['uncaptured_packets']} packets: the disk is too slow"
        )
    return messages
