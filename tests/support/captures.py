"""Captures for tests: random frames of every link type, written as pcap and pcapng."""

import ipaddress
import random
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

ETHERNET, RAW, COOKED, COOKED_2, NULL, LOOP = 1, 101, 113, 276, 0, 108
LINK_TYPES = (ETHERNET, RAW, COOKED, COOKED_2, NULL, LOOP)

IPV4, IPV6, ARP, PPPOE = 0x0800, 0x86DD, 0x0806, 0x8864

FIELDS = (
    *("frame.time_epoch", "ip.version", "ip.len", "ipv6.plen", "ip.dsfield", "ipv6.tclass"),
    *("ip.src", "ip.dst", "ipv6.src", "ipv6.dst"),
    *("tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport"),
    *("tcp.flags", "tcp.len", "tcp.ack_raw"),
)
"""Fields of tshark that the columns of a replay are made from."""


def checksum(data: bytes) -> int:
    """Return the Internet checksum of an even number of bytes."""
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def transport(rng: random.Random) -> tuple[int, bytes]:
    """Return the protocol and the bytes of a random segment, datagram or ICMP message."""
    ports = struct.pack(">HH", rng.choice((443, 5201, 40_000)), rng.choice((80, 5201, 50_001)))
    match rng.randrange(3):
        case 0:
            flags = rng.choice((0x10, 0x10, 0x18, 0x02, 0x12, 0x11, 0xD0, 0x50))
            options = rng.choice((b"", bytes.fromhex("0101080a0000000100000002")))
            offset = (5 + len(options) // 4) << 4
            size = rng.choice((0, 0, rng.randrange(1, 1400)))
            numbers = struct.pack(">IIBBHHH", rng.getrandbits(32), rng.getrandbits(32), offset,
                                  flags, 1000, 0, 0)  # fmt: skip
            return 6, ports + numbers + options + bytes(size)
        case 1:
            size = rng.randrange(1400)
            return 17, ports + struct.pack(">HH", 8 + size, 0) + bytes(size)
        case _:
            return 1, struct.pack(">BBHI", 8, 0, 0, 0) + bytes(rng.randrange(100))


def packet(rng: random.Random) -> tuple[int, bytes]:
    """Return the EtherType and the bytes of a random IP packet."""
    protocol, inner = transport(rng)
    hosts = [rng.randrange(1, 5), rng.randrange(1, 5)]
    traffic = rng.randrange(256)
    if rng.random() < 0.6:
        addresses = b"".join(ipaddress.ip_address(f"10.0.0.{n}").packed for n in hosts)
        options = rng.choice((b"", b"", b"\x01" * 4))
        head = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, traffic,
                           20 + len(options) + len(inner), 7, 0, 64, protocol, 0)  # fmt: skip
        head += addresses + options
        return IPV4, head[:10] + struct.pack(">H", checksum(head)) + head[12:] + inner
    addresses = b"".join(ipaddress.ip_address(f"2001:db8::{n}").packed for n in hosts)
    protocol = 58 if protocol == 1 else protocol
    if rng.random() < 0.3:  # destination options of 8 bytes
        inner = struct.pack(">BBHI", protocol, 0, 0x0104, 0) + inner
        protocol = 60
    head = struct.pack(">IHBB", 6 << 28 | traffic << 20, len(inner), protocol, 64)
    return IPV6, head + addresses + inner


def frame(rng: random.Random, link_type: int) -> bytes:
    """Return a frame with a random packet."""
    kind, inner = packet(rng)
    if rng.random() < 0.1 and link_type in (ETHERNET, COOKED, COOKED_2):
        kind, inner = ARP, struct.pack(">HHBBH", 1, IPV4, 6, 4, 1) + bytes(20)
    if link_type == ETHERNET:
        if kind != ARP and rng.random() < 0.2:
            ppp = struct.pack(">H", 0x21 if kind == IPV4 else 0x57) + inner
            kind, inner = PPPOE, struct.pack(">BBHH", 0x11, 0, 1, len(ppp)) + ppp
        for tag in rng.choice(((), (), (0x8100,), (0x8100, 0x88A8))):
            kind, inner = tag, struct.pack(">HH", 0x2007, kind) + inner
        return (bytes(12) + struct.pack(">H", kind) + inner).ljust(60, b"\0")
    way = rng.choice((0, 4))
    match link_type:
        case 113:
            return struct.pack(">HHHQH", way, 1, 6, 0, kind) + inner
        case 276:
            return struct.pack(">HHIHBBQ", kind, 0, 3, 1, way, 6, 0) + inner
        case 0:
            family = 2 if kind == IPV4 else rng.choice((24, 28, 30))
            return struct.pack(rng.choice("<>") + "I", family) + inner
        case 108:
            return struct.pack(">I", 2 if kind == IPV4 else 24) + inner
    return inner


def write(path: Path, link_type: int, seed: int, frames: int = 120) -> Path:
    """Write random frames as pcap: both byte orders, both resolutions, some cut off."""
    rng = random.Random(seed)
    order, nano = rng.choice("<>"), rng.random() < 0.5
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    data = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65_535, link_type)
    ns = 1_700_000_000_123_456_000
    for _ in range(frames):
        ns += rng.randrange(-20_000, 100_000) * (1 if nano else 1000)
        whole = frame(rng, link_type)
        seconds, part = divmod(ns, 10**9)
        part //= 1 if nano else 1000
        data += struct.pack(f"{order}IIII", seconds, part, len(whole), len(whole)) + whole
    path.write_bytes(data)
    return path


def one_way(path: Path, link_type: int = ETHERNET) -> Path:
    """Write 40 datagrams of three flows as pcap."""
    data = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, link_type)
    for at, whole in _datagrams(link_type):
        data += struct.pack("<IIII", 7, at, len(whole), len(whole)) + whole
    path.write_bytes(data)
    return path


def pcapng(path: Path, writer: str = "test") -> Path:
    """Write the datagrams as pcapng, with a direction and a comment each."""
    name = writer.encode()
    header = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + option(4, name) + bytes(4)
    data = block(0x0A0D0D0A, header)
    data += block(1, struct.pack("<HHI", RAW, 0, 0) + option(9, b"\x09") + bytes(4))
    for i, (at, whole) in enumerate(_datagrams(RAW)):
        ns = 7 * 10**9 + at
        head = struct.pack("<IIIII", 0, ns >> 32, ns & 0xFFFFFFFF, len(whole), len(whole))
        comment = f"dropped: full, after {2 * (i % 2)}.125 ms".encode()
        options = option(2, struct.pack("<I", 2)) + option(1, comment)
        data += block(6, head + whole + bytes(-len(whole) % 4) + options + bytes(4))
    path.write_bytes(data)
    return path


def option(code: int, value: bytes) -> bytes:
    """Return an option of pcapng."""
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """Return a block of pcapng."""
    length = 12 + len(body)
    return struct.pack(f"{order}II", kind, length) + body + struct.pack(f"{order}I", length)


def _datagrams(link_type: int) -> list[tuple[int, bytes]]:
    """Return times in ns and frames: 40 datagrams of three flows."""
    frames = []
    for i in range(40):
        size = 60 + 7 * i
        addresses = bytes((10, 0, 0, 1, 192, 0, 2, 1))
        head = struct.pack(">BBHHHBBH", 0x45, i % 4, size, 0, 0, 64, 17, 0) + addresses
        ports = struct.pack(">HHHH", 5000 + i % 3, 9, size - 20, 0)
        ethernet = bytes(12) + b"\x08\x00" if link_type == ETHERNET else b""
        frames.append((1_000_000 * i, ethernet + head + ports + bytes(size - 28)))
    return frames


def convert(path: Path, out: Path, *options: str) -> Path:
    """Convert a capture with editcap."""
    line = ["editcap", *options, str(path), str(out)]
    subprocess.run(line, check=True, capture_output=True)
    return out


@dataclass(frozen=True)
class Row:
    """Fields of a packet."""

    ns: int
    flow: tuple[str, ...]
    size: int
    traffic: int
    ack: int


def dissected(path: Path, *options: str) -> list[Row]:
    """Return the IP packets of a capture as tshark reads them, in order of time."""
    fields = [word for field in FIELDS for word in ("-e", field)]
    line = ["tshark", "-r", str(path), "-Y", "ip or ipv6", "-T", "fields", "-E", "occurrence=f",
            "-o", "ip.defragment:FALSE", *options, *fields]  # fmt: skip
    text = subprocess.run(line, check=True, capture_output=True, text=True).stdout
    rows = [_row(line.split("\t")) for line in text.splitlines()]
    return sorted(rows, key=lambda row: row.ns)


def _row(values: list[str]) -> Row:
    (epoch, _, length, plen, field, tclass, src, dst, src6, dst6, tsp, tdp, usp, udp,
     flags, payload, ack) = values  # fmt: skip
    seconds, _, part = epoch.partition(".")
    # An extension header of IPv6 hides the protocol from the field of tshark.
    protocol = "tcp" if tsp else "udp" if usp else "icmp"
    pure = payload == "0" and int(flags or "0", 16) & 0x3F == 0x10
    return Row(
        ns=int(seconds) * 10**9 + int(part.ljust(9, "0")),
        flow=(src or src6, dst or dst6, protocol, tsp or usp, tdp or udp),
        size=int(length) if length else int(plen) + 40,
        traffic=int(field or tclass, 16),
        ack=int(ack) if pure else -1,
    )
