"""Unusual packets cross a live link; malformed packets are counted and dropped."""

import socket

import pytest

from live_link import FAR, FAR6, link, python, summary_of
from support.packets import checksum

pytestmark = pytest.mark.live

RAW = """
import socket, sys
kind = int(sys.argv[1])
device = "sj-near"
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW if kind else socket.SOCK_DGRAM, 0)
for i, text in enumerate(sys.argv[2:]):
    data = bytes.fromhex(text)
    protocol = 0x86dd if data[:1] and data[0] >> 4 == 6 else 0x0800
    out.sendto(data, (device, protocol))
import time
time.sleep(0.5)
"""
"""Program that writes packets, given in hexadecimal, to the device inside."""


def v4(payload: bytes, protocol: int = 17, fragment: int = 0, options: bytes = b"") -> bytes:
    """Return an IPv4 packet from inside to outside."""
    words = 5 + len(options) // 4
    head = bytes([0x40 | words, 0]) + (words * 4 + len(payload)).to_bytes(2, "big")
    head += b"\x12\x34" + fragment.to_bytes(2, "big") + bytes([64, protocol, 0, 0])
    head += socket.inet_aton("198.18.0.2") + socket.inet_aton(FAR) + options
    return head[:10] + checksum(head) + head[12:] + payload


def v6(payload: bytes, first: int) -> bytes:
    """Return an IPv6 packet from inside to outside."""
    near, far = (socket.inet_pton(socket.AF_INET6, FAR6[:-1] + end) for end in "21")
    return (
        b"\x60\0\0\0" + len(payload).to_bytes(2, "big") + bytes([first, 64]) + near + far + payload
    )


def udp(port: int, data: bytes, v6_too: bool = False) -> bytes:
    """Return a UDP datagram: without a checksum for IPv4, with the mandatory one for IPv6."""
    head = (4000).to_bytes(2, "big") + port.to_bytes(2, "big")
    head += (8 + len(data)).to_bytes(2, "big") + b"\0\0"
    if not v6_too:
        return head + data
    near, far = (socket.inet_pton(socket.AF_INET6, FAR6[:-1] + end) for end in "21")
    pseudo = near + far + (8 + len(data)).to_bytes(4, "big") + b"\0\0\0\x11"
    return head[:6] + checksum(pseudo + head + data) + data


def cross(
    packets: list[bytes], port: int, sink: socket.socket
) -> tuple[dict[str, int], list[bytes]]:
    """Write packets inside; return the summary of `up`, and the data that arrived at the sink."""
    client = python(RAW, 0, *(packet.hex() for packet in packets))
    up = summary_of(link(["--rate", "100mbit", "--json"], client))["links"]["up"]
    sink.setblocking(False)
    payloads = []
    while True:
        try:
            payloads.append(sink.recv(65_536))
        except BlockingIOError:
            return up, payloads


def sink_of(family: int) -> socket.socket:
    """Return a UDP socket at the far end."""
    sink = socket.socket(family, socket.SOCK_DGRAM)
    sink.bind(("", 0))
    return sink


def test_extension_headers_and_fragments_of_ipv6_cross() -> None:
    """Hop-by-hop options, destination options, and a datagram in two fragments."""
    with sink_of(socket.AF_INET6) as sink:
        port = sink.getsockname()[1]
        whole = udp(port, b"x" * 1600, v6_too=True)
        one, two = whole[:1000], whole[1000:]
        pad = b"\x01\x04\0\0\0\0"
        packets = [
            v6(b"\x11\0" + pad + udp(port, b"hop", v6_too=True), 0),
            v6(b"\x3c\0" + pad + b"\x11\0" + pad + udp(port, b"two", v6_too=True), 0),
            v6(b"\x11\0\0\x01\0\0\0\x09" + one, 44),
            v6(b"\x11\0" + (1000).to_bytes(2, "big") + b"\0\0\0\x09" + two, 44),
        ]
        up, payloads = cross(packets, port, sink)
    assert payloads == [b"hop", b"two", b"x" * 1600]
    assert (up["arrived_packets"], up["delivered_packets"], up["malformed_packets"]) == (4, 4, 0)


def test_fragments_and_options_of_ipv4_cross() -> None:
    """Also fragments out of order, and a fragment of an incomplete datagram."""
    with sink_of(socket.AF_INET) as sink:
        port = sink.getsockname()[1]
        whole = udp(port, b"y" * 1600)
        packets = [
            v4(udp(port, b"options"), options=b"\x01\x01\x01\x00"),
            v4(whole[1000:], fragment=1000 // 8),
            v4(whole[:1000], fragment=0x2000),
            v4(b"z" * 24, fragment=0x2000 | 200),
        ]
        up, payloads = cross(packets, port, sink)
    assert sorted(payloads) == [b"options", b"y" * 1600]
    assert (up["arrived_packets"], up["delivered_packets"], up["malformed_packets"]) == (4, 4, 0)


def test_malformed_packets_are_counted_and_dropped() -> None:
    """Truncated packets, other IP versions, bad extension headers; a good packet still crosses."""
    with sink_of(socket.AF_INET) as sink:
        port = sink.getsockname()[1]
        good4, good6 = v4(udp(port, b"good")), v6(udp(port, b"good", v6_too=True), 17)
        bad = [good4[:cut] for cut in (1, 19, 20, 27)] + [good6[:cut] for cut in (1, 39, 41)]
        bad += [b"\x50" + good4[1:], b"\x41" + good4[1:], b"\xff" * 64]
        bad += [v6(b"\x11\xff", 0), v6((b"\x00\0" + b"\x01\x04\0\0\0\0") * 9, 0)]
        up, payloads = cross([*bad, good4], port, sink)
    assert payloads == [b"good"]
    assert up["malformed_packets"] == len(bad)
    assert (up["arrived_packets"], up["delivered_packets"]) == (1, 1)


@pytest.mark.parametrize(("host", "family"), [(FAR, socket.AF_INET), (FAR6, socket.AF_INET6)])
def test_errors_of_icmp_come_back(host: str, family: int) -> None:
    """A datagram to a closed port is answered, and the sender gets the error."""
    with socket.socket(family, socket.SOCK_DGRAM) as taken:
        taken.bind(("", 0))
        port = taken.getsockname()[1]
    client = """
import socket, sys
s = socket.socket(int(sys.argv[3]), socket.SOCK_DGRAM)
s.settimeout(20)
s.connect((sys.argv[1], int(sys.argv[2])))
s.send(b"anyone?")
try:
    s.recv(10)
except ConnectionRefusedError:
    print("refused")
"""
    done = link(
        ["--rate", "100mbit", "--delay", "5ms", "--json"], python(client, host, port, int(family))
    )
    down = summary_of(done)["links"]["down"]
    assert done.stdout.startswith("refused\n")
    assert (down["arrived_packets"], down["malformed_packets"]) == (1, 0)
