"""Network devices, addresses and routes of live links (TUN devices and the program `ip`).

The kernel removes a TUN device with its addresses and routes when its last descriptor is closed, so
nothing here outlives the processes that hold the devices.

Addresses are from 198.18.0.0/15, which RFC 2544 reserves for benchmarking. Each link takes a block.
The far end has the first address, the near end the second. Nested links take parts
of the block, so ordinary routes lead through them. IPv6 addresses have the same numbers behind a
unique local prefix.
"""

import errno
import fcntl
import ipaddress
import json
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn._sojourn import InputError

TUN = "/dev/net/tun"
NEAR = "sj-near"
"""Name of the device inside; there is one per namespace."""
FAR = "sj-far%d"
"""Name of the device outside; the kernel sets the number."""

POOL = ipaddress.IPv4Network("198.18.0.0/15")
FIRST, STEP, LAST = 20, 3, 29
"""Prefix lengths: of a link's block, increment per nested link, and the longest allowed."""
V6 = "fd00:736f:6a6f::"
"""Prefix of the IPv6 addresses."""

MTU_BYTES = 1500
QUEUE_PACKETS = 10_000
"""Packets that the kernel queues at a device until they are read; it drops more."""

_TX_DROPPED = 11
"""The column of /proc/net/dev, after the name."""

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI, _IFF_VNET_HDR = 0x400454CA, 0x0001, 0x1000, 0x4000
_TUNSETOFFLOAD, _OFFLOADS = 0x400454D0, 0x01 | 0x02 | 0x04 | 0x08
"""Offloads: checksums, TCP segmentation over IPv4 and IPv6, also with ECN (linux/if_tun.h)."""


class NoRightError(Exception):
    """The process has no right to change its network."""


class NoTunError(Exception):
    """The process cannot create TUN devices."""


@dataclass(frozen=True)
class Block:
    """The addresses of one link."""

    network: ipaddress.IPv4Network

    @property
    def far(self) -> str:
        """The address of the far end."""
        return str(self.network[1])

    @property
    def near(self) -> str:
        """The address of the near end."""
        return str(self.network[2])

    @property
    def network6(self) -> str:
        """The IPv6 network of the block, as text with its prefix length."""
        return f"{v6(str(self.network[0]))}/{96 + self.network.prefixlen}"


def v6(address: str) -> str:
    """Return the IPv6 address that corresponds to an IPv4 address of a link."""
    return str(ipaddress.IPv6Address(f"{V6}{address}"))


def has_v6() -> bool:
    """Return True if IPv6 is enabled in this network."""
    try:
        text = Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").read_text(encoding="ascii")
    except OSError:
        return False
    return text.strip() == "0"


def check_tools() -> None:
    """Raise InputError if a program that live links require is missing."""
    for tool, package in (("ip", "iproute2"), ("unshare", "util-linux")):
        if shutil.which(tool) is None:
            raise InputError(
                f"real packets require the program {tool}, which is missing: install {package}"
            )


def check_right() -> None:
    """Raise NoRightError if this process cannot create network namespaces."""
    line = ["unshare", "--net", "true"]
    if subprocess.run(line, capture_output=True, check=False).returncode != 0:
        raise NoRightError


def open_tun(name: str, *, offload: bool = False) -> tuple[int, str]:
    """Create a TUN device, which exists until the descriptor is closed.

    Parameters
    ----------
    name
        Name of the device; "%d" is replaced by a free number.
    offload
        Put a virtio header before each packet, and leave segmentation and checksums of TCP to who
        reads the packets.

    Returns
    -------
    descriptor : int
    name : str

    Raises
    ------
    NoRightError
        If the process has no right to create devices.
    NoTunError
        If /dev/net/tun is missing or not accessible.
    """
    try:
        fd = os.open(TUN, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise NoTunError(f"{TUN}: {(error.strerror or str(error)).lower()}") from None
    try:
        flags = _IFF_TUN | _IFF_NO_PI | (_IFF_VNET_HDR if offload else 0)
        got = fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
        if offload:
            fcntl.ioctl(fd, _TUNSETOFFLOAD, _OFFLOADS)
    except OSError as error:
        os.close(fd)
        if error.errno == errno.EPERM:
            raise NoRightError from None
        raise NoTunError(f"{TUN}: {(error.strerror or str(error)).lower()}") from None
    return fd, got[:16].rstrip(b"\0").decode()


def ip(commands: Sequence[str], *, last_may_fail: bool = False) -> list[list[dict[str, Any]]]:
    """Run `commands` in one process of `ip`, up to the first that fails.

    Parameters
    ----------
    commands
        Arguments of `ip`, one text per command.
    last_may_fail
        Ignore a failure of the last command.

    Returns
    -------
    list
        The JSON output of each command that prints something, in order.

    Raises
    ------
    OSError
        With the message of `ip`; the number is EEXIST if a device, address or route exists.
    """
    done = subprocess.run(
        ["ip", "-j", "-batch", "-"],
        input="".join(f"{command}\n" for command in commands),
        capture_output=True,
        text=True,
        check=False,
    )
    errors = done.stderr.strip().splitlines() or ["it failed"]
    last_failed = errors[-1] == f"Command failed -:{len(commands)}"
    if done.returncode != 0 and not (last_may_fail and last_failed):
        code = errno.EEXIST if "File exists" in errors[0] else errno.EIO
        raise OSError(code, f"ip: {errors[0]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]


def _outer_block(devices: Sequence[Mapping[str, Any]]) -> ipaddress.IPv4Network | None:
    """Return the block of the link around this network, or None if there is none."""
    for device in devices:
        for info in device.get("addr_info", ()) if device.get("ifname") == NEAR else ():
            if info["family"] == "inet":
                address = f"{info['local']}/{info['prefixlen']}"
                return ipaddress.IPv4Network(address, strict=False)
    return None


def _free_blocks(
    outer: ipaddress.IPv4Network | None, routes: Sequence[Mapping[str, Any]]
) -> Iterator[Block]:
    """Yield the free blocks for a link in this network, in order."""
    if outer is None:
        blocks = list(POOL.subnets(new_prefix=FIRST))
    elif outer.prefixlen >= LAST:
        raise InputError("link: it is nested too deeply, allowed: four links inside each other")
    else:
        blocks = list(outer.subnets(prefixlen_diff=STEP))[1:]
    taken = [
        ipaddress.IPv4Network(dst, strict=False)
        for route in routes
        if (dst := route.get("dst", "default")) != "default" and ":" not in dst
    ]
    for block in blocks:
        if not any(block.overlaps(route) for route in taken if route.prefixlen > _wider(outer)):
            yield Block(block)


def _wider(outer: ipaddress.IPv4Network | None) -> int:
    """Return the prefix length up to which a route is the default route or the route to `outer`."""
    return 0 if outer is None else outer.prefixlen


def set_up_far(device: str, *, new_network: bool = False) -> Block:
    """Set addresses and routes of the far device and return the link's block.

    Parameters
    ----------
    device
        Name of the far device.
    new_network
        Bring up the loopback device as well.

    Raises
    ------
    InputError
        If no block is free.
    OSError
        If `ip` fails.
    """
    first = ["link set dev lo up"] if new_network else []
    show = ["addr show", "route show table all"]
    devices, routes = ip([*first, *bring_up(device), *show])
    outer = _outer_block(devices)
    for block in _free_blocks(outer, routes):
        commands = [
            f"route add {block.network} dev {device}",
            f"addr add {block.far}/32 dev {device}",
        ]
        if has_v6():
            commands.append(f"addr add {v6(block.far)}/128 dev {device} nodad")
            commands.append(f"route add {block.network6} dev {device}")
        # New connections must not use metrics cached for an earlier link. The command fails if
        # there are none.
        commands.append(f"tcp_metrics delete {block.near}")
        try:
            ip(commands, last_may_fail=True)
        except OSError as error:
            if error.errno == errno.EEXIST:
                continue  # another link has taken the block meanwhile
            raise
        if outer is not None:
            _forward()
        return block
    raise InputError(f"link: all blocks of {outer or POOL} are in use by links or routes")


def set_up_near(device: str, block: Block) -> None:
    """Set addresses of the near device and a default route through it. Raises OSError."""
    commands = [
        *bring_up(device),
        "link set dev lo up",
        f"addr add {block.near}/{block.network.prefixlen} dev {device} noprefixroute",
        f"route add {block.far} dev {device}",
        # Packets to unused addresses of the block must not go out and come back.
        f"route add unreachable {block.network}",
        f"route add default dev {device}",
    ]
    # New connections must not use metrics cached from earlier ones.
    Path("/proc/sys/net/ipv4/tcp_no_metrics_save").write_text("1\n", encoding="ascii")
    if has_v6():
        commands += [
            f"addr add {v6(block.near)}/128 dev {device} nodad",
            f"route add {v6(block.far)} dev {device}",
            f"route add unreachable {block.network6}",
            f"route add ::/0 dev {device}",
        ]
    ip(commands)


def bring_up(device: str) -> list[str]:
    """Return the commands of `ip` that bring a device up without packets of its own.

    There are no router solicitations and no multicast.
    """
    quiet = " addrgenmode none" if Path("/proc/sys/net/ipv6").exists() else ""  # kernel with IPv6
    return [
        f"link set dev {device} mtu {MTU_BYTES} txqueuelen {QUEUE_PACKETS} multicast off{quiet}",
        f"link set dev {device} up",
    ]


def _forward() -> None:
    """Turn on forwarding in this network, which is the inside of a link."""
    for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        path = Path("/proc/sys/net") / name
        if path.exists():
            path.write_text("1\n", encoding="ascii")


def dropped(device: str) -> int:
    """Return the packets that the kernel dropped before they were read from `device`.

    The device must be in the network of this thread.
    """
    for line in Path("/proc/thread-self/net/dev").read_text(encoding="ascii").splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == device:
            return int(counts.split()[_TX_DROPPED])
    return 0
