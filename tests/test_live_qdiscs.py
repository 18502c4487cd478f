"""Disciplines that read DSCP, ECN field and hosts, on the headers of real packets."""

import socket
import threading
from pathlib import Path

import polars as pl
import pytest

from live_link import FAR, FAR6, link, packets, python, summary_of

pytestmark = pytest.mark.live

BURST = """
import socket, sys, time
port = int(sys.argv[1])
sockets = {}
for number, word in enumerate(sys.argv[2:]):
    host, source, tos, times = word.split("/")
    key = host, source
    if key not in sockets:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        s = sockets[key] = socket.socket(family, socket.SOCK_DGRAM)
        s.bind(("", int(source)))
    else:
        s = sockets[key]
    level, option = (41, 67) if ":" in host else (0, 1)  # IPV6_TCLASS, IP_TOS
    s.setsockopt(level, option, int(tos))
    for _ in range(int(times)):
        s.sendto(number.to_bytes(4, "big") + bytes(940), (host, port))
time.sleep(2.5)
"""
"""Sends packets of 1 kB as fast as possible: words HOST/PORT/TOS/NUMBER; ends after 2.5 s."""

UPLOAD = """
import socket, struct, sys
open("/proc/sys/net/ipv4/tcp_ecn", "w").write("1\\n")
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as s:
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    s.sendall(bytes(int(sys.argv[3])))
    s.shutdown(socket.SHUT_WR)
    s.recv(1)
    info = s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 250)
    retransmitted, = struct.unpack_from("I", info, 100)
    marked, = struct.unpack_from("I", info, 196)
    print(retransmitted, marked)
"""
"""Uploads zeros with CUBIC and ECN; prints retransmissions, and packets whose marks were echoed."""


def order(qdisc: str, tmp_path: Path, *words: str) -> list[int]:
    """Send a burst through a link of 8 Mbit/s; return the numbers of the words in departure order.

    The times of departure are virtual, so the order does not depend on the machine, provided that
    the burst is sent faster than the link sends it. PORT in `qdisc` is the destination port.
    """
    capture = tmp_path / "burst.pcapng"
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sink:
        sink.bind(("::", 0))
        port = sink.getsockname()[1]
        client = python(BURST, port, *words)
        qdisc = qdisc.replace("PORT", str(port))
        options = ["--rate", "8mbit", "--qdisc", qdisc, "--pcap", str(capture), "--json"]
        up = summary_of(link(options, client))["links"]["up"]
    assert up["malformed_packets"] == 0
    left = [
        (ns, packet) for ns, packet, comment in packets(capture) if comment.startswith("delivered")
    ]
    left = [(ns, packet) for ns, packet in left if len(packet) > 900]
    left.sort(key=lambda row: row[0])
    return [int.from_bytes(packet[-944:-940], "big") for _, packet in left]


def last(numbers: list[int], number: int) -> float:
    """Return the position of the last packet of a word, as a share of all packets."""
    return max(i for i, one in enumerate(numbers) if one == number) / len(numbers)


EF, CS1, ECT0, ECT1 = 46 << 2, 8 << 2, 2, 1


@pytest.mark.parametrize("host", [FAR, FAR6])
def test_cake_reads_the_dscp(host: str, tmp_path: Path) -> None:
    """Packets with EF overtake CS0 packets of their own flow, unless there is one tin."""
    burst = f"{host}/4000/0/200", f"{host}/4000/{EF}/10", f"{host}/4000/0/10"
    tins = order("cake(tins=diffserv4)", tmp_path, *burst)
    assert last(tins, 1) < 0.7 < last(tins, 2)
    one = order("cake(tins=besteffort)", tmp_path, *burst)
    assert one == sorted(one)
    assert last(one, 1) > 0.9


@pytest.mark.parametrize("host", [FAR, FAR6])
def test_dualpi2_reads_the_ecn_field(host: str, tmp_path: Path) -> None:
    """Packets with ECT(1) join the other queue and overtake; those with ECT(0) do not."""
    for tos, overtakes in ((ECT1, True), (ECT0, False)):
        burst = f"{host}/4000/0/200", f"{host}/4000/{tos}/10", f"{host}/4000/0/10"
        numbers = order("dualpi2", tmp_path, *burst)
        assert (last(numbers, 1) < 0.7) == overtakes


@pytest.mark.parametrize("host", [FAR, FAR6])
def test_filters_read_protocol_and_ports(host: str, tmp_path: Path) -> None:
    """Packets that match go to the first band of prio and overtake, whatever the other flow is."""
    burst = f"{host}/4000/0/200", f"{host}/4001/0/10", f"{host}/4000/0/10"
    for matches, overtakes in (
        ("sport=4001", True),
        ("protocol=udp, dport=PORT, sport=4001-4005", True),
        ("protocol=tcp, sport=4001", False),
        ("dport=4001", False),
    ):
        numbers = order(f"prio(flows=2, filters=0({matches}) 1)", tmp_path, *burst)
        assert len(numbers) == 220
        assert (last(numbers, 1) < 0.7) == overtakes, matches


def test_filters_share_a_link_among_flows_by_port(tmp_path: Path) -> None:
    """Two UDP flows have the rates of their classes of htb, in which fq_codel queues them."""
    classes = "rates=8mbit 6mbit 2mbit, children=[fq_codel(target=1s)]"
    filters = "filters=2(protocol=udp, dport=PORT, sport=4001) 3(protocol=udp)"
    words = f"{FAR}/4000/0/150", f"{FAR}/4001/0/150"
    numbers = order(f"htb({classes}, {filters})", tmp_path, *words)
    begin = numbers[20:100]
    assert sum(begin) / len(begin) == pytest.approx(0.75, abs=0.1)


def test_cake_shares_among_hosts_by_their_addresses(tmp_path: Path) -> None:
    """One flow to one host gets as much as four flows to another one; not without host fairness."""
    for isolation, share in (("dual_dsthost", 0.5), ("flows", 0.2)):
        # All flows have packets from the start; one of them has as many as the four others.
        words = [f"{FAR6}/4000/0/150", *(f"{FAR}/{4001 + i}/0/60" for i in range(4))]
        numbers = order(f"cake(isolation={isolation}, tins=besteffort)", tmp_path, *words)
        begin = [one == 0 for one in numbers[160:260]]
        assert sum(begin) / len(begin) == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize("qdisc", ["dualpi2", "cake", "fq_codel(ecn=true)"])
@pytest.mark.parametrize("host", [FAR, FAR6])
def test_cubic_of_the_kernel_is_marked_in_place_of_dropped(
    host: str, qdisc: str, tmp_path: Path
) -> None:
    """The sender hears of the marks. Only packets without data, which have no ECT, are dropped."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listening:
        listening.bind(("::" if ":" in host else "", 0))
        listening.listen()
        listening.settimeout(60)

        def work() -> None:
            connection, _ = listening.accept()
            with connection:
                while connection.recv(65536):
                    pass
                connection.sendall(b".")

        thread = threading.Thread(target=work)
        thread.start()
        client = python(UPLOAD, host, listening.getsockname()[1], 2_500_000)
        options = ["--rate", "10mbit", "--delay", "10ms", "--qdisc", qdisc, "--json"]
        options += ["--packet-log", str(tmp_path)]
        done = link(options, client)
        thread.join()
    tree = summary_of(done)
    up = tree["links"]["up"]
    retransmitted, echoed = map(int, done.stdout.splitlines()[0].split())
    assert up["marked_packets"] > 0
    assert echoed > 0
    dropped = pl.read_csv(tmp_path / "up.csv").filter(pl.col("dropped") == 1)
    assert dropped["ecn"].to_list() == [0] * up["dropped_packets"]
    assert up["dropped_packets"] <= 2  # SYN and FIN
    # When the machine stalls, the sender may take packets for lost.
    assert retransmitted <= up["dropped_packets"] or not tree["trusted"]
    assert up["malformed_packets"] == up["refused_packets"] == 0
