"""Two networks of hosts that nothing connects but us: one of senders, one of receivers.

Each is a network namespace with one TUN device, behind which lies the other. In it all addresses of
its block are local, so that a socket may be bound to any host's. Both live by descriptors, threads
and sockets of this process alone, and go with it, however it goes.
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
"""Of the senders and of the receivers (see sojourn-live's net)."""
FIRST = 16
"""The number of the first host in its block."""


def address(end: int, row: int) -> str:
    """Give the address of the host of that row at an end."""
    return str(BLOCKS[end][FIRST + row])


def row_of(address: str) -> int:
    """Give the row of the host that has an address."""
    return (int(IPv4Address(address)) & int(BLOCKS[0].hostmask)) - FIRST


@contextmanager
def namespace() -> Iterator[int]:
    """Lend a new network namespace, as a descriptor. Raises NoRightError."""
    made = subprocess.Popen(
        ["unshare", "--net", "cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert made.stdin is not None
    assert made.stdout is not None
    with made:
        try:
            # What comes back comes from inside.
            made.stdin.write(b"\n")
            made.stdin.flush()
            if made.stdout.read(1) != b"\n":
                raise NoRightError
            fd = os.open(f"/proc/{made.pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        except BrokenPipeError:
            raise NoRightError from None
    try:
        yield fd
    finally:
        os.close(fd)


def furnish(end: int, fd: int, sysctls: Mapping[str, str], attributes: Sequence[str]) -> int:
    """Make a namespace the network of that end; this thread is in it from then on.

    `attributes` are those of the route to each host at the other end. Gives the descriptor of the
    device, which is the caller's.
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
