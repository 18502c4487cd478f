"""Jitter, reordering, duplication, corruption and a limit on real packets of ping and UDP."""

import re
import socket
from collections import Counter

import numpy as np
import pytest

from live_link import FAR, link, python, summary_of

pytestmark = pytest.mark.live

PINGS = 600

BURST = """
import socket, sys, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    for i in range(int(sys.argv[3])):
        s.sendto(i.to_bytes(400, "big"), (sys.argv[1], int(sys.argv[2])))
        time.sleep(0.001)
    time.sleep(0.5)
"""


def pings(*options: str) -> tuple[list[int], np.ndarray, dict[str, int]]:
    """Sequence numbers in order of the answers, round-trip times in ms, summary of the link up."""
    command = ["ping", "-n", "-i", "0.003", "-c", str(PINGS), "-W", "1", FAR]
    done = link(["--rate", "100mbit", "--json", *options], command)
    answers = re.findall(r"icmp_seq=(\d+) .*time=([\d.]+) ms", done.stdout)
    up = summary_of(done)["links"]["up"]
    return [int(n) for n, _ in answers], np.array([float(ms) for _, ms in answers]), up


def test_jitter_delays_and_reorders_pings() -> None:
    """Normal jitter of 10 ms around 50 ms in one direction."""
    jitter = "jitter={ size = '10ms', distribution = 'normal' }"
    numbers, times, up = pings("--up", "delay=50ms", "--up", jitter)
    assert len(numbers) == PINGS
    assert abs(np.median(times) - 50) < 4
    assert 7.5 < times.std() < 14
    assert up["reordered_packets"] > PINGS // 4
    late = sum(n < max(numbers[:i], default=0) for i, n in enumerate(numbers))
    assert abs(late - up["reordered_packets"]) < PINGS // 10  # the way back keeps the order


def test_ordered_jitter_reorders_nothing() -> None:
    """The same without overtaking."""
    jitter = "jitter={ size = '10ms', reorders = false }"
    numbers, _, up = pings("--up", "delay=30ms", "--up", jitter)
    assert numbers == sorted(numbers)
    assert up["reordered_packets"] == 0


def test_copies_lost_and_corrupt_packets_are_counted() -> None:
    """Ping sees the numbers that the link counted; the kernel drops corrupt packets."""
    options = ("--up", "duplicate=0.2", "--up", "corrupt=0.1", "--up", "loss={p13=0.05, p31=0.5}")
    numbers, _, up = pings(*options, "--delay", "5ms")
    answered = Counter(numbers)
    twice = sum(count - 1 for count in answered.values())
    assert up["duplicated_packets"] > 60
    assert up["corrupted_packets"] > 30
    assert up["lost_on_wire_packets"] > 20
    assert up["duplicated_packets"] - up["corrupted_packets"] <= twice
    assert twice <= up["duplicated_packets"]
    missing = PINGS - len(answered)
    assert 0 < missing <= up["lost_on_wire_packets"] + up["corrupted_packets"]


def test_a_limit_and_overhead_hold() -> None:
    """50 packets in 200 ms of 1000 per second; 400 + 28 bytes become ten cells at 4 Mbit/s."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("", 0))
        client = python(BURST, FAR, sink.getsockname()[1], 1000)
        limited = link(
            ["--rate", "100mbit", "--delay", "200ms", "--in-flight-limit", "50p", "--json"], client
        )
        framed = link(["--rate", "4mbit", "--overhead", "44 atm", "--json"], client)
    up = summary_of(limited)["links"]["up"]
    assert 0.5 < up["lost_on_wire_packets"] / up["departed_packets"] < 0.85
    busy = summary_of(framed)["links"]["up"]
    cells = busy["departed_packets"] * 530 * 8 / 4e6
    assert busy["departed_packets"] == 1000
    assert busy["utilisation"] * busy["duration_s"] == pytest.approx(cells, rel=0.05)


def test_a_tcp_transfer_over_an_impaired_link_is_intact() -> None:
    """The kernel's TCP repairs everything; segmentation offload keeps wrong bits wrong."""
    with socket.create_server(("", 0)) as server:
        server.settimeout(60)
        send = (
            "import socket, sys\n"
            "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
            "s.sendall(bytes(i * i % 251 for i in range(600_000)))\n"
            "s.shutdown(1)\n"
            "s.recv(1)\n"
        )
        import threading

        got = bytearray()

        def serve() -> None:
            peer, _ = server.accept()
            with peer:
                peer.settimeout(60)
                while part := peer.recv(65536):
                    got.extend(part)

        thread = threading.Thread(target=serve)
        thread.start()
        options = ["--rate", "50mbit", "--delay", "5ms", "--jitter", "2ms", "--json"]
        options += ["--corrupt", "1%", "--duplicate", "2%", "--loss", "0.5%"]
        done = link(options, python(send, FAR, server.getsockname()[1]))
        thread.join()
    assert bytes(got) == bytes(i * i % 251 for i in range(600_000))
    assert summary_of(done)["links"]["up"]["corrupted_packets"] > 0
