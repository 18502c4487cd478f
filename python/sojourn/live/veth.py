"""Ends of a link without TUN devices: two veth pairs, with a packet socket on each.

One device of each pair is an end of the link, inside or outside. The other one is in a third
network namespace without addresses, where only the packet socket reads from it. The namespace
exists as long as the sockets, and the pairs as long as the namespace. So all of it ends with the
link's process.

All four devices have the same MAC address and do not use ARP. Offloading of checksums and
segmentation is turned off, since the packets that are read must be complete.
"""

import array
import errno
import fcntl
import os
import socket
import struct
import subprocess
import sys
from contextlib import suppress

from sojourn.live.netdev import NEAR, NoRightError, ip

FRAMING = "ethernet"
"""Bytes before each IP header, as `_sojourn.Pump` names them."""

_ADDRESS = "02:00:5e:00:53:01"
_WIRES = ("sj-wire0", "sj-wire1")
_SIOCETHTOOL = 0x8946
_OFFLOADS = {"tx": 0x17, "sg": 0x19, "tso": 0x1F, "gso": 0x24, "gro": 0x2C}
"""Names of offloads as in `ethtool -K`, and the commands to set them (linux/ethtool.h)."""
_PACKET_IGNORE_OUTGOING, _ETH_P_ALL = 23, 3
_SOL_PACKET, _PACKET_STATISTICS, _SO_RCVBUFFORCE = 263, 6, 33
_BUFFER_BYTES = 32_000_000


def make(init: int) -> tuple[int, int, str]:
    """Create both veth pairs.

    Parameters
    ----------
    init
        ID of a process inside.

    Returns
    -------
    far, near : int
        Descriptors of the packet sockets.
    device : str
        Name of the far device.

    Raises
    ------
    NoRightError
        If this process has no right to create them.
    OSError
        If `ip` fails.
    """
    [links] = ip(["link show"])
    names = {link["ifname"] for link in links}
    far = next(name for i in range(len(names) + 1) if (name := f"sj-far{i}") not in names)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            line = ["unshare", "--net", sys.executable, "-P", "-m", "sojourn.live.veth"]
            words = [str(theirs.fileno()), str(os.getpid()), str(init), far]
            done = subprocess.run([*line, *words], pass_fds=[theirs.fileno()], check=False)
        message, sockets, _, _ = socket.recv_fds(ours, 4096, 2)
    if done.returncode != 0 or len(sockets) != 2:
        if b"not permitted" in message or not message:
            raise NoRightError
        raise OSError(errno.EIO, message.decode())
    return sockets[0], sockets[1], far


def plain(device: str) -> None:
    """Turn off offloads and ARP of `device`, so that it carries complete packets."""
    ip([f"link set dev {device} address {_ADDRESS} arp off"])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in _OFFLOADS.values():
            value = array.array("I", [command, 0])
            address, _ = value.buffer_info()
            request = struct.pack("16sP16x", device.encode(), address)
            fcntl.ioctl(any_socket, _SIOCETHTOOL, request)


def missed(fd: int) -> int:
    """Return the packets dropped since the last call because the socket's buffer was full."""
    with socket.socket(fileno=os.dup(fd)) as packets:
        counts = packets.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
    return int.from_bytes(counts[4:], sys.byteorder)


def _socket(device: str) -> socket.socket:
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # receives nothing until bound
    packets.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    with suppress(PermissionError):
        packets.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
    packets.bind((device, _ETH_P_ALL))
    return packets


def _main(leash: socket.socket, outside: str, inside: str, far: str) -> None:
    """Create the pairs and pass the sockets on; this runs in the third namespace."""
    sockets = []
    try:
        for wire, end, pid in ((_WIRES[0], far, outside), (_WIRES[1], NEAR, inside)):
            ip([f"link add {wire} type veth peer name {end} netns {pid}"])
            plain(wire)
            ip([f"link set dev {wire} addrgenmode none txqueuelen 10000", f"link set {wire} up"])
            sockets.append(_socket(wire))
    except OSError as error:
        leash.send(str(error).encode())
        sys.exit(1)
    socket.send_fds(leash, [b"made"], [packets.fileno() for packets in sockets])


if __name__ == "__main__":
    _main(socket.socket(fileno=int(sys.argv[1])), *sys.argv[2:])
