"""Random captures as the command reads them, for the test of the page's reader: JSON."""

import base64
import itertools
import json
import random
import struct
import sys
import tempfile
from pathlib import Path

from sojourn._util import captures

ETHERNET, NULL, RAW, COOKED, COOKED_2 = 1, 0, 101, 113, 276
EXTENSIONS = {0: 8, 60: 16, 43: 24}


def ports(rng: random.Random, protocol: int) -> bytes:
    """Return the start of a transport header."""
    if protocol not in (6, 17):
        return rng.randbytes(8)
    return struct.pack(">HH", rng.choice((80, 443, 5001)), rng.randint(1, 4)) + rng.randbytes(16)


def ipv4(rng: random.Random, source: int, destination: int) -> bytes:
    """Return an IPv4 packet, cut off behind its headers."""
    options = rng.choice((0, 0, 4))
    fragment = rng.choice((0, 0, 0, 0x2000, 0x00B9, 0x4000))
    protocol = rng.choice((6, 17, 1))
    head = struct.pack(
        ">BBHHHBBH4s4s",
        0x45 + options // 4,
        rng.randrange(256),
        rng.choice((0, 60, 1500)),
        7,
        fragment,
        64,
        protocol,
        0,
        bytes((10, 0, 0, source)),
        bytes((10, 0, 1, destination)),
    )
    return head + bytes(options) + ports(rng, protocol)


def ipv6(rng: random.Random, source: int, destination: int) -> bytes:
    """Return an IPv6 packet, possibly with extension headers."""
    protocol = rng.choice((6, 17, 58))
    chain = rng.sample(sorted(EXTENSIONS), rng.choice((0, 0, 1, 2)))
    # Hop-by-hop options come first.
    chain.sort()
    fragmented = rng.random() < 0.2
    kinds = [*chain, *([44] if fragmented else []), protocol]
    body = b""
    for kind, following in itertools.pairwise(kinds):
        if kind == 44:
            body += struct.pack(">BBHI", following, 0, rng.choice((0, 1, 0x00B8)), 9)
        else:
            size = EXTENSIONS[kind]
            body += bytes((following, size // 8 - 1)) + bytes(size - 2)
    hosts = bytes((32, 1, *[0] * 13, source)) + bytes((32, 1, *[0] * 13, destination))
    stated = rng.choice((0, 20 + len(body), 1400))
    return struct.pack(">IHBB", 6 << 28, stated, kinds[0], 64) + hosts + body + ports(rng, protocol)


def frame(rng: random.Random, link: int, pair: tuple[int, int]) -> bytes:
    """Return a frame with an IP packet or something else."""
    six = rng.random() < 0.4
    packet = ipv6(rng, *pair) if six else ipv4(rng, *pair)
    kind = struct.pack(">H", 0x86DD if six else 0x0800)
    if link == RAW:
        return packet
    if link == NULL:
        return struct.pack(rng.choice("<>") + "I", 30 if six else 2) + packet
    if rng.random() < 0.1:
        kind, packet = b"\x08\x06", rng.randbytes(28)
    elif rng.random() < 0.2:
        ppp = struct.pack(">BBHHH", 0x11, 0, 1, len(packet) + 2, 0x57 if six else 0x21)
        kind, packet = b"\x88\x64", ppp + packet
    if link == COOKED:
        return struct.pack(">HHH8x", 0, 1, 6) + kind + packet
    if link == COOKED_2:
        return kind + struct.pack(">HIHBB8x", 0, 1, 1, 0, 6) + packet
    for _ in range(rng.choice((0, 0, 1, 2))):
        kind, packet = b"\x81\x00", struct.pack(">H", 7) + kind + packet
    return rng.randbytes(12) + kind + packet


def pcap(rng: random.Random, link: int, frames: list[bytes]) -> bytes:
    """Return a pcap file."""
    order, nano = rng.choice("<>"), rng.random() < 0.5
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    out = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 65535, link)
    for one in frames:
        part = rng.randrange(10**9 if nano else 10**6)
        seconds = 1_700_000_000 + rng.randrange(5)
        out += struct.pack(order + "IIII", seconds, part, len(one), len(one) + 900) + one
    return out


def block(order: str, kind: int, body: bytes) -> bytes:
    """Return a block of pcapng."""
    body += bytes(-len(body) % 4)
    length = len(body) + 12
    return struct.pack(order + "II", kind, length) + body + struct.pack(order + "I", length)


def pcapng(rng: random.Random, link: int, frames: list[bytes]) -> bytes:
    """Return a pcapng file of two interfaces, one with its own unit and offset of time."""
    order = rng.choice("<>")
    out = block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    resolution = rng.choice((9, 3, 0x80 | 20))
    options = struct.pack(order + "HHB3xHHqHH", 9, 1, resolution, 14, 8, 1000, 0, 0)
    out += block(order, 1, struct.pack(order + "HHI", link, 0, 0))
    out += block(order, 1, struct.pack(order + "HHI", link, 0, 0) + options)
    out += block(order, 5, bytes(12))
    units = (10**6, 2**20 if resolution & 0x80 else 10**resolution)
    for one in frames:
        which = rng.randrange(2)
        time = (1_700_000_000 - 1000 * which + rng.randrange(5)) * units[which]
        time += rng.randrange(units[which])
        high, low = time >> 32, time & 0xFFFFFFFF
        head = struct.pack(order + "IIIII", which, high, low, len(one), len(one) + 900)
        out += block(order, 6, head + one + bytes(-len(one) % 4))
    return out


def main(count: int) -> None:
    """Print `count` captures."""
    rng = random.Random(7)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(count):
            link = rng.choice((ETHERNET, NULL, RAW, COOKED, COOKED_2))
            pairs = [(rng.randint(1, 3), rng.randint(4, 6)) for _ in range(rng.randint(1, 30))]
            frames = [frame(rng, link, pair) for pair in pairs]
            bytes_ = rng.choice((pcap, pcapng))(rng, link, frames)
            path = Path(folder) / f"{i}.pcap"
            path.write_bytes(bytes_)
            try:
                read = captures.read(path, captures.Selection(direction="both"))
            except captures.InputError as error:
                rows.append({"file": base64.b64encode(bytes_).decode(), "error": str(error)})
                continue
            columns = {
                "time_s": (read.t_ns / 1e9).tolist(),
                "size_bytes": read.size.tolist(),
                "flow": read.flow.tolist(),
            }
            rows.append({"file": base64.b64encode(bytes_).decode(), "read": columns})
    print(json.dumps(rows))


main(int(sys.argv[1]))
