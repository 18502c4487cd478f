"""Testbed of a live run: two network namespaces connected only through sojourn.

One holds the senders, the other the receivers. Each has one TUN device, through which it reaches
the other. All addresses of its block are local, so a socket can be bound to the address of any
host. Only descriptors, threads and sockets of this process refer to the namespaces, so they end
with it.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from sojourn import _sojourn
from sojourn.live.netdev import NEAR, NoRightError, bring_up, ip, open_tun

BLOCKS = (IPv4Network("198.18.0.0/16"), IPv4Network("198.19.0.0/16"))
"""Address blocks of the senders and of the receivers, as in `crates/live`."""
FIRST = 16
"""Index of the first host in its block."""


def address(end: int, row: int) -> str:
    """Return the address of host `row` at an end: 0 for senders, 1 for receivers."""
    return str(BLOCKS[end][FIRST + row])


def row_of(address: str) -> int:
    """Return the row of the host with an address."""
    return (int(IPv4Address(address)) & int(BLOCKS[0].hostmask)) - FIRST


@contextmanager
def namespace() -> Iterator[int]:
    """Create a network namespace and yield its descriptor. Raises NoRightError."""
    process = subprocess.Popen(
        ["unshare", "--net", "cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        try:
            # The echo shows that the namespace exists.
            process.stdin.write(b"\n")
            process.stdin.flush()
            if process.stdout.read(1) != b"\n":
                raise NoRightError
            fd = os.open(f"/proc/{process.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        except BrokenPipeError:
            raise NoRightError from None
    try:
        yield fd
    finally:
        os.close(fd)


def furnish(end: int, fd: int, sysctls: Mapping[str, str], attributes: Sequence[str]) -> int:
    """Set up a namespace as one end of the testbed, and move this thread into it.

    Parameters
    ----------
    end
        0 for senders, 1 for receivers.
    fd
        Descriptor of the namespace.
    sysctls
        Settings below /proc/sys/net.
    attributes
        Attributes of the route to each host at the other end.

    Returns
    -------
    int
        Descriptor of the TUN device, to be closed by the caller.

    Raises
    ------
    NoTunError, NoRightError, OSError
        If the device or the routes cannot be created.
    """
    _sojourn.enter_network(fd)
    for name, value in sysctls.items():
        path = Path("/proc/sys/net") / name
        if path.exists():
            path.write_text(f"{value}\n", encoding="ascii")
    quiet = Path("/proc/sys/net/ipv6/conf/all/disable_ipv6")
    if quiet.exists():
        quiet.write_text("1\n", encoding="ascii")
    device, _ = open_tun(NEAR)
    try:
        routes = [
            f"route add {address(1 - end, row)}/32 dev {NEAR} {of_host}"
            for row, of_host in enumerate(attributes)
            if of_host
        ]
        ip(
            [
                "link set dev lo up",
                *bring_up(NEAR),
                f"route add local {BLOCKS[end]} dev lo",
                f"route add {BLOCKS[1 - end]} dev {NEAR}",
                *routes,
            ]
        )
    except OSError:
        os.close(device)
        raise
    return device
