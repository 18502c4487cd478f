"""Sends bursts of frames into the qdisc of a device, and prints the order and times of departure.

Runs inside a kernel of its own, with one argument: a file with frames as JSON, each a list of
priority, DSCP and length in bytes. The number of a frame is in its last four bytes. Two frames of
1500 bytes at the beginning overdraw a shaper, so that the others are queued before the next leaves.
"""

import errno
import json
import socket
import struct
import sys
import time
from pathlib import Path

DEVICE = "dum0"
ETH_P_ALL = 3
SO_PRIORITY = 12
SO_TIMESTAMPNS = 35
PACKET_OUTGOING = 4


def frame(number: int, dscp: int, length: int) -> bytes:
    """Return an Ethernet frame with an IPv4 header."""
    head = bytes(6) + b"\2\0\0\0\0\1" + b"\x08\x00"
    ip = bytes([0x45, dscp << 2]) + (length - 14).to_bytes(2, "big") + bytes(4)
    ip += bytes([64, 17, 0, 0]) + bytes([10, 0, 0, 1, 10, 0, 0, 2])
    return (head + ip).ljust(length - 4, b"\0") + number.to_bytes(4, "big")


def main() -> None:
    """Print the frames as they leave, and how many left before the last was sent.

    The output has their numbers, the times of the kernel in nanoseconds, and that count.
    """
    frames = json.loads(Path(sys.argv[1]).read_text())
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    tap.bind((DEVICE, ETH_P_ALL))
    tap.settimeout(3)
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    out.bind((DEVICE, 0x0800))
    out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    tap.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    ready = [frame(i, dscp, length) for i, (_, dscp, length) in enumerate(frames)]
    for (priority, _, _), data in zip(frames, ready, strict=True):
        out.setsockopt(socket.SOL_SOCKET, SO_PRIORITY, priority)
        try:
            out.send(data)
        except OSError as error:
            if error.errno != errno.ENOBUFS:  # the qdisc has dropped it
                raise
    sent_at = time.monotonic()
    order: list[int] = []
    times: list[int] = []
    early = 0
    while len(order) < len(frames):
        try:
            data, stamps, _, address = tap.recvmsg(2048, 64)
        except TimeoutError:
            break
        if address[2] == PACKET_OUTGOING and len(data) >= 38:
            order.append(int.from_bytes(data[-4:], "big"))
            seconds, nanoseconds = struct.unpack("qq", stamps[0][2][:16])
            times.append(seconds * 1_000_000_000 + nanoseconds)
            early += time.monotonic() - sent_at < 1e-3
    print(json.dumps({"order": order, "times": times, "early": early}))


main()
