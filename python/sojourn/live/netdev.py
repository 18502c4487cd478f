"""Network devices and addresses of live links, by the kernel's own tools: TUN devices and `ip`.

Nothing here outlives the processes that hold the devices: a TUN device is gone when the last of its
descriptors is closed, and its addresses and routes with it.

Links take their addresses from 198.18.0.0/15, which RFC 2544 sets aside for testing networks: each
a block, of which it gives the first to its far end and the second to its near end, and parts to
links inside it. So a packet finds its way through nested links by ordinary routes. IPv6 addresses
are the same numbers behind a local prefix.
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
"""The device inside, through which a command's packets leave; there is one per namespace."""
FAR = "sj-far%d"
"""The device outside; the kernel gives the number."""

POOL = ipaddress.IPv4Network("198.18.0.0/15")
FIRST, STEP, LAST = 20, 3, 29
"""Prefix lengths: of a link's block, by how much those inside are longer, of the smallest."""
V6 = "fd00:736f:6a6f::"


MTU_BYTES = 1500
QUEUE_PACKETS = 10_000
"""How many packets the kernel keeps for us while we are not looking; beyond, it drops."""

_TX_DROPPED = 11
"""The column of /proc/net/dev, after the name."""

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


class NoRightError(Exception):
    """The process may not change the network that it is in."""


class NoTunError(Exception):
    """There are no TUN devices for this process."""


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
        """The same addresses of IPv6."""
        return f"{v6(str(self.network[0]))}/{96 + self.network.prefixlen}"


def v6(address: str) -> str:
    """Give the IPv6 address that goes with an IPv4 address of a link."""
    return str(ipaddress.IPv6Address(f"{V6}{address}"))


def has_v6() -> bool:
    """Whether this network speaks IPv6."""
    try:
        text = Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").read_text(encoding="ascii")
    except OSError:
        return False
    return text.strip() == "0"


def check_tools() -> None:
    """Raise InputError if a program that live links need is not there."""
    for tool, package in (("ip", "iproute2"), ("unshare", "util-linux")):
        if shutil.which(tool) is None:
            raise InputError(
                f"real packets take the program {tool}, which is missing: install {package}"
            )


def check_right() -> None:
    """Raise NoRightError if this process may make no network namespace."""
    line = ["unshare", "--net", "true"]
    if subprocess.run(line, capture_output=True, check=False).returncode != 0:
        raise NoRightError


def open_tun(name: str) -> tuple[int, str]:
    """Make a TUN device: its descriptor, which alone keeps it, and the name that it got.

    Raises NoRightError where the process may not, NoTunError where it gets no such devices.
    """
    try:
        fd = os.open(TUN, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise NoTunError(f"{TUN}: {(error.strerror or str(error)).lower()}") from None
    try:
        request = struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI)
        got = fcntl.ioctl(fd, _TUNSETIFF, request)
    except OSError as error:
        os.close(fd)
        if error.errno == errno.EPERM:
            raise NoRightError from None
        raise NoTunError(f"{TUN}: {(error.strerror or str(error)).lower()}") from None
    return fd, got[:16].rstrip(b"\0").decode()


def ip(commands: Sequence[str], *, last_may_fail: bool = False) -> list[list[dict[str, Any]]]:
    """Have one process of `ip` execute `commands` up to the first that fails.

    Returns what each of the commands that show something prints, as they come. Raises OSError with
    what `ip` says.
    """
    done = subprocess.run(
        ["ip", "-j", "-batch", "-"],
        input="".join(f"{command}\n" for command in commands),
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stderr.strip().splitlines() or ["it failed"]
    last_failed = said[-1] == f"Command failed -:{len(commands)}"
    if done.returncode != 0 and not (last_may_fail and last_failed):
        code = errno.EEXIST if "File exists" in said[0] else errno.EIO
        raise OSError(code, f"ip: {said[0]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.strip()]


def _outer_block(devices: Sequence[Mapping[str, Any]]) -> ipaddress.IPv4Network | None:
    """Return the block of the link that this network lies behind, or None if there is none."""
    for device in devices:
        for info in device.get("addr_info", ()) if device.get("ifname") == NEAR else ():
            if info["family"] == "inet":
                address = f"{info['local']}/{info['prefixlen']}"
                return ipaddress.IPv4Network(address, strict=False)
    return None


def _free_blocks(
    outer: ipaddress.IPv4Network | None, routes: Sequence[Mapping[str, Any]]
) -> Iterator[Block]:
    """Yield the blocks that a link in this network may take, in order."""
    if outer is None:
        blocks = list(POOL.subnets(new_prefix=FIRST))
    elif outer.prefixlen >= LAST:
        raise InputError("link: it is nested too deeply: four links one in another are the most")
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
    """Routes with prefixes up to that length are those by which everything goes."""
    return 0 if outer is None else outer.prefixlen


def set_up_far(device: str, *, new_network: bool = False) -> Block:
    """Give the far end its addresses, and a block to the link; bring up a `new_network` as well."""
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
        # A connection must not begin with what the kernel remembers of an earlier link; if that is
        # nothing, the command fails.
        commands.append(f"tcp_metrics delete {block.near}")
        try:
            ip(commands, last_may_fail=True)
        except OSError as error:
            if error.errno == errno.EEXIST:
                continue  # another link was faster
            raise
        if outer is not None:
            _forward()
        return block
    raise InputError(f"link: all blocks of {outer or POOL} are taken by links or routes")


def set_up_near(device: str, block: Block) -> None:
    """Give the near end its addresses, and everything its way through the link."""
    commands = [
        *bring_up(device),
        "link set dev lo up",
        f"addr add {block.near}/{block.network.prefixlen} dev {device} noprefixroute",
        f"route add {block.far} dev {device}",
        # What nobody inside has must not go out and come back.
        f"route add unreachable {block.network}",
        f"route add default dev {device}",
    ]
    # A connection must not begin with what the kernel remembers of another.
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
    """Bring a device up that sends nothing by itself: no router is asked for, no group joined."""
    return [
        f"link set dev {device} mtu {MTU_BYTES} txqueuelen {QUEUE_PACKETS} "
        "multicast off addrgenmode none",
        f"link set dev {device} up",
    ]


def _forward() -> None:
    """Let this network, which is a link's own, pass packets on."""
    for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        path = Path("/proc/sys/net") / name
        if path.exists():
            path.write_text("1\n", encoding="ascii")


def dropped(device: str) -> int:
    """Count the packets that the kernel dropped before they were read from `device`.

    The device is one of the network that this thread is in.
    """
    for line in Path("/proc/thread-self/net/dev").read_text(encoding="ascii").splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == device:
            return int(counts.split()[_TX_DROPPED])
    return 0
