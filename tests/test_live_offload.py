"""Large packets of the kernel's TCP are split for the link, and joined again when they leave."""

import hashlib
import json
import socket
import sys
import threading
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from live_link import FAR, FAR6, link, packets, python, summary_of
from support.packets import checksum

pytestmark = pytest.mark.live(tun=True)

SIZE = 3_000_000
"""Bytes of a transfer."""

SEND = """
import hashlib, socket, sys
open("/proc/sys/net/ipv4/tcp_ecn", "w").write("1\\n")
data = bytes(i * i % 251 for i in range(int(sys.argv[3])))
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as s:
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    s.sendall(data)
    s.shutdown(socket.SHUT_WR)
    assert s.recv(100).decode() == hashlib.sha256(data).hexdigest()
"""
"""Sends bytes with ECN, and checks what the server says it received."""


def writes() -> int:
    """Return the packets that the kernel has received from the device outside."""
    for line in Path("/proc/net/dev").read_text(encoding="ascii").splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == "sj-far0":
            return int(counts.split()[1])
    raise AssertionError("there is no device sj-far0")


def serve(listening: socket.socket, seen: list[int]) -> threading.Thread:
    """Accept a connection, read to its end, answer with a hash; record the number of writes."""

    def work() -> None:
        connection, _ = listening.accept()
        with connection:
            data = b"".join(iter(lambda: connection.recv(65536), b""))
            seen.append(writes())
            connection.sendall(hashlib.sha256(data).hexdigest().encode())

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def listener(host: str) -> socket.socket:
    """Listen outside, on a port that the kernel chooses."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.bind(("::" if ":" in host else "", 0))
    listening.listen()
    listening.settimeout(60)
    return listening


@pytest.mark.parametrize("host", [FAR, FAR6])
@pytest.mark.parametrize("qdisc", ["droptail", "fq_codel"])
def test_the_link_sees_each_packet_and_the_kernel_gets_many_at_once(host: str, qdisc: str) -> None:
    """The data is complete; the packets are full ones; fewer writes than packets."""
    seen: list[int] = []
    with listener(host) as listening:
        thread = serve(listening, seen)
        client = python(SEND, host, listening.getsockname()[1], SIZE)
        # At this rate, the packets of one read are due at the same time.
        done = link(["--rate", "40gbit", "--qdisc", qdisc, "--json"], client)
        thread.join()
    up = summary_of(done)["links"]["up"]
    assert up["malformed_packets"] == up["refused_packets"] == up["kernel_dropped_packets"] == 0
    payload = 1500 - 32 - (40 if ":" in host else 20)
    assert SIZE / payload <= up["delivered_packets"] <= 1.2 * SIZE / payload + 100
    assert seen[0] < 0.5 * up["delivered_packets"]


@pytest.mark.parametrize("host", [FAR, FAR6])
def test_packets_are_those_of_a_kernel_that_splits_by_itself(host: str, tmp_path: Path) -> None:
    """The outer link has no offload, so the kernel splits and completes what the inner one joined.

    Lengths, checksums and marks in the capture of the outer link are correct.
    """
    pcap = tmp_path / "outer.pcapng"
    codel = "codel(target=50us, interval=1ms, ecn=true)"
    with listener(host) as listening:
        seen: list[int] = []
        thread = serve(listening, seen)
        client = python(SEND, host, listening.getsockname()[1], SIZE)
        # A rate that a busy machine fills, too: without a queue there are no marks.
        inner = [sys.executable, "-m", "sojourn", "link", "--rate", "100mbit", "--qdisc", codel]
        done = link(
            ["--rate", "10gbit", "--pcap", str(pcap), "--json"],
            [*inner, "--json", "--", *client],
        )
        thread.join()
    assert done.returncode == 0, done.stderr
    within, end = json.JSONDecoder().raw_decode(done.stdout)
    inner_up, outer_up = within["links"]["up"], json.loads(done.stdout[end:])["links"]["up"]
    captured = [packet for _, packet, _ in packets(pcap)]
    sent = [Segment.of(packet) for packet in captured if is_sent(packet, host)]
    assert len(sent) == inner_up["delivered_packets"]
    # If the inner link ends before the server closes, the kernel between the links answers by ICMP.
    answers = [len(packet) for packet in captured if is_sent(packet, host, ICMP)]
    assert outer_up["arrived_packets"] == len(sent) + len(answers)
    assert outer_up["arrived_bytes"] == inner_up["departed_bytes"] + sum(answers)
    assert all(one.valid for one in sent)
    assert sum(one.ecn == 3 for one in sent) == inner_up["marked_packets"] > 0
    data = {one.sequence: one for one in sent if one.payload}
    assert sum(one.payload for one in data.values()) == SIZE
    # Retransmissions may split the data in other ways.
    assert max(one.payload for one in sent) == 1500 - 32 - (40 if ":" in host else 20)
    # CWR is sent once per congestion event; a copy on each segment would be more than the marks.
    assert 0 < sum(one.cwr for one in sent) <= inner_up["marked_packets"]
    if host == FAR:
        # The kernel acknowledges the end of a closed connection with identification 0.
        last = max(i for i, one in enumerate(sent) if one.payload)
        numbers = [one.identification for one in sent[3 : last + 1]]
        missing = [(b - a - 1) % 65536 for a, b in pairwise(numbers)]
        assert sum(missing) <= inner_up["dropped_packets"]


TCP, ICMP = (6, 6), (1, 58)
"""Protocol numbers with IPv4 and with IPv6."""


def is_sent(packet: bytes, host: str, protocol: tuple[int, int] = TCP) -> bool:
    """Return True for a packet to `host`."""
    if ":" in host:
        there = packet[24:40] == socket.inet_pton(socket.AF_INET6, host)
        return packet[6] == protocol[1] and there
    return packet[9] == protocol[0] and packet[16:20] == socket.inet_aton(host)


@dataclass(frozen=True)
class Segment:
    """A TCP packet."""

    sequence: int
    payload: int
    ecn: int
    cwr: bool
    identification: int
    """Of IPv4; 0 of IPv6."""
    valid: bool
    """True if lengths and checksums are correct."""

    @staticmethod
    def of(packet: bytes) -> "Segment":
        """Parse a packet without IP options."""
        if packet[0] >> 4 == 4:
            ip, length = 20, int.from_bytes(packet[2:4], "big")
            addresses, ecn = packet[12:20], packet[1] & 3
            sum_of_ip = checksum(packet[:20])
        else:
            ip, length = 40, 40 + int.from_bytes(packet[4:6], "big")
            addresses, ecn = packet[8:40], packet[1] >> 4 & 3
            sum_of_ip = b"\0\0"
        tcp = packet[ip:]
        sum_of_tcp = checksum(addresses + b"\0\6" + len(tcp).to_bytes(2, "big") + tcp)
        return Segment(
            sequence=int.from_bytes(tcp[4:8], "big"),
            payload=len(tcp) - (tcp[12] >> 4) * 4,
            ecn=ecn,
            cwr=bool(tcp[13] & 0x80 and not tcp[13] & 2),
            identification=int.from_bytes(packet[4:6], "big") if ip == 20 else 0,
            valid=length == len(packet) <= 1500 and sum_of_ip == sum_of_tcp == b"\0\0",
        )
