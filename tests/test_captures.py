"""Packet captures as arrivals of a replay: the fields that tshark reads, and refusals."""

import gzip
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from conftest import Command
from sojourn._util import captures
from sojourn._util.captures import Selection
from support.captures import (
    ETHERNET,
    LINK_TYPES,
    RAW,
    block,
    convert,
    dissected,
    one_way,
    pcapng,
    write,
)

needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None and not os.environ.get("CI"), reason="tshark is not installed"
)

BOTH = Selection(direction="both")


def datagram(source: int, port: int, tos: int, size: int) -> bytes:
    """Return an IPv4 packet with UDP of `size` bytes."""
    addresses = bytes((10, 0, 0, source, 192, 0, 2, 1))
    header = struct.pack(">BBHHHBBH", 0x45, tos, size, 0, 0, 64, 17, 0) + addresses
    return header + struct.pack(">HHHH", port, 9, size - 20, 0) + bytes(size - 28)


PACKETS = [
    (1_000_000, datagram(1, 5000, 2, 1500)),
    (3_500_000, datagram(2, 5000, 0, 100)),
    (2_000_000, datagram(1, 5000, 46 << 2, 200)),  # out of order
    (4_000_000, datagram(1, 6000, 1, 300)),
]
"""Times in us and packets."""


def pcap(path: Path, link_type: int = RAW) -> Path:
    """Write the packets as pcap, with raw IP."""
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, link_type)
    for at_us, packet in PACKETS:
        seconds, us = divmod(at_us, 1_000_000)
        data += struct.pack("<IIII", seconds, us, len(packet), len(packet)) + packet
    path.write_bytes(data)
    return path


def test_a_capture_is_replayed(tmp_path: Path, sojourn: Command) -> None:
    """In order of time, with sizes of IP packets; flows are numbered as they appear."""
    path, out = pcap(tmp_path / "a b.pcap"), tmp_path / "out.csv"
    options = ["--qdisc", "droptail", "--rate", "1mbit", "--out", out]
    code, printed, err = sojourn("replay", path, *options)
    assert (code, err) == (0, "")
    assert printed.startswith("4 packets: 4 sent")
    table = pl.read_csv(out)
    assert table.select("i", "t_us", "flow", "size_B", "ecn_out").to_dict(as_series=False) == {
        "i": [0, 1, 2, 3],
        "t_us": [0, 1_000_000, 2_500_000, 3_000_000],
        "flow": [0, 0, 1, 2],
        "size_B": [1500, 200, 100, 300],
        "ecn_out": [2, 0, 0, 1],
    }


@needs_tshark
@pytest.mark.parametrize("link_type", LINK_TYPES)
@pytest.mark.parametrize("form", ["pcap", "pcapng", "snapped", "gzipped"])
def test_packets_have_the_fields_that_tshark_reads(
    link_type: int, form: str, tmp_path: Path
) -> None:
    """Random frames with VLAN tags, PPPoE, IPv6 extensions and options of IPv4."""
    for seed in range(4):
        path = whole = write(tmp_path / "one.pcap", link_type, 100 * link_type + seed)
        if form == "pcapng":
            path = convert(whole, tmp_path / "one.pcapng", "-F", "pcapng")
        elif form == "snapped":
            path = convert(whole, tmp_path / "cut.pcap", "-F", "nsecpcap", "-s", "118")
        elif form == "gzipped":
            path = tmp_path / "one.pcap.gz"
            path.write_bytes(gzip.compress(whole.read_bytes()))
        ours, theirs = captures.read(path, BOTH), dissected(whole)
        assert len(theirs) > 60
        assert ours.t_ns.tolist() == [row.ns - theirs[0].ns for row in theirs]
        assert ours.size.tolist() == [row.size for row in theirs]
        assert ours.ecn.tolist() == [row.traffic & 3 for row in theirs]
        assert ours.headers[0].tolist() == [row.traffic >> 2 for row in theirs]
        assert ours.headers[3].tolist() == [row.ack for row in theirs]
        pairs = {(number, row.flow) for number, row in zip(ours.flow.tolist(), theirs, strict=True)}
        assert len({number for number, _ in pairs}) == len(pairs) == len({f for _, f in pairs})
        hosts = {(n, row.flow[0]) for n, row in zip(ours.headers[1].tolist(), theirs, strict=True)}
        assert len(hosts) == len({n for n, _ in hosts}) == len({name for _, name in hosts})


@needs_tshark
@pytest.mark.parametrize(
    ("selection", "display"),
    [
        (Selection(destination="10.0.0.2"), "ip.dst == 10.0.0.2"),
        (Selection(source="10.0.0.0/30"), "ip.src == 10.0.0.0/30"),
        (Selection(source="2001:db8::2", destination="2001:db8::/64"), "ipv6.src == 2001:db8::2"),
        (Selection("out", "10.0.0.1"), "sll.pkttype == 4 and ip.src == 10.0.0.1"),
        (Selection("in", destination="10.0.0.1"), "sll.pkttype == 0 and ip.dst == 10.0.0.1"),
    ],
)
def test_selected_packets_are_those_of_a_display_filter(
    selection: Selection, display: str, tmp_path: Path
) -> None:
    """Hosts, networks and directions."""
    path = write(tmp_path / "one.pcap", 113, 5, 400)
    both = Selection(selection.direction or "both", selection.source, selection.destination)
    ours = captures.read(path, both).size.tolist()
    theirs = [row.size for row in dissected(path, "-Y", display)]
    assert 10 < len(theirs) < 200
    assert ours == theirs


def test_the_length_before_capture_counts_where_the_header_states_none(tmp_path: Path) -> None:
    """Segments for a network card to cut state a length of 0."""
    packet = bytearray(datagram(1, 5000, 0, 1500))
    packet[2:4] = bytes(2)
    frame = bytes(12) + b"\x08\x00" + bytes(packet[:100])
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 100, ETHERNET)
    data += struct.pack("<IIII", 0, 0, len(frame), 14 + 40_000) + frame
    (tmp_path / "a.pcap").write_bytes(data)
    assert captures.read(tmp_path / "a.pcap").size.tolist() == [40_000]


REFUSED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "truncated": (lambda raw: raw[:-5], "is truncated: it ends within a block, after 3 packets"),
    "empty": (lambda raw: raw[:24], "has no packets"),
    "link type": (
        lambda raw: raw[:20] + struct.pack("<I", 105) + raw[24:],
        "has frames of link type 105; supported are Ethernet, raw IP",
    ),
    "zstd": (lambda raw: bytes.fromhex("28b52ffd") + raw, "is compressed with zstd; decompress"),
    "other": (lambda raw: b"hello" + raw, "is not a packet capture (pcap or pcapng)"),
    "gzip": (lambda raw: gzip.compress(raw)[:-20], "this gzip file is damaged"),
    "no IP": (
        lambda raw: raw[:24] + struct.pack("<IIII", 0, 0, 4, 4) + b"\x10abc",
        "has 1 frame, none with an IP packet",
    ),
    "size": (
        lambda raw: raw[:24] + struct.pack("<IIII", 0, 0, 1 << 30, 60) + bytes(60),
        "is truncated: it ends within a block, after 0 packets",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_files_are_refused_in_one_line(case: str, tmp_path: Path, sojourn: Command) -> None:
    """The message names the file and the reason, and nothing is written."""
    damage, message = REFUSED[case]
    path, out = pcap(tmp_path / "a.pcap"), tmp_path / "out.csv"
    path.write_bytes(damage(path.read_bytes()))
    code, _, err = sojourn("replay", path, "--qdisc", "red", "--rate", "1mbit", "--out", out)
    assert code == 2
    assert err.startswith(f"sojourn: {path}: {message}")
    assert err.count("\n") == 1
    assert not out.exists()


OPTIONS = {
    ("--to", "10.0.0"): "--to: 10.0.0 is not an address",
    ("--from", "1.2.3.4"): "none of its 4 IP packets is chosen",
    ("--direction", "up"): '--direction: "up" is none of in, out, both',
    ("--direction", "in"): "does not say which packets came in and went out",
}


@pytest.mark.parametrize("options", OPTIONS)
def test_bad_selections_are_refused(
    options: tuple[str, str], tmp_path: Path, sojourn: Command
) -> None:
    """An address, a direction, and a selection without packets."""
    path, out = pcap(tmp_path / "a.pcap"), tmp_path / "out.csv"
    line = ["--qdisc", "red", "--rate", "1mbit", "--out", out]
    code, _, err = sojourn("replay", path, *line, *options)
    assert code == 2
    assert OPTIONS[options] in err
    arrivals = tmp_path / "a.csv"
    arrivals.write_text("i,t_us,flow,size_B\n0,0,0,1500\n")
    code, _, err = sojourn("replay", arrivals, *line, "--from", "1.2.3.4")
    assert code == 2
    assert "only packets of a capture can be selected" in err


def test_both_directions_are_refused_unless_chosen(tmp_path: Path) -> None:
    """They cross two queues."""
    there, back = datagram(1, 9, 0, 500), bytearray(datagram(1, 9, 0, 60))
    back[12:20] = back[16:20] + back[12:16]
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, RAW)
    for at, packet in enumerate((there, bytes(back))):
        data += struct.pack("<IIII", at, 0, len(packet), len(packet)) + packet
    path = tmp_path / "two.pcap"
    path.write_bytes(data)
    message = r"both directions; choose one \(--to 10\.0\.0\.1, --from 10\.0\.0\.1\)"
    with pytest.raises(sj.InputError, match=message):
        captures.read(path)
    assert captures.read(path, BOTH).size.tolist() == [500, 60]
    assert captures.read(path, Selection(destination="10.0.0.1")).size.tolist() == [60]


def test_frames_without_ip_are_counted(tmp_path: Path, sojourn: Command) -> None:
    """The command says how many are left out."""
    path, out = write(tmp_path / "a.pcap", ETHERNET, 3), tmp_path / "out.csv"
    capture = captures.read(path, BOTH)
    assert 5 < capture.other < 30
    assert capture.other + len(capture.t_ns) == 120
    line = ["--qdisc", "red", "--rate", "1mbit", "--out", out, "--direction", "both"]
    code, _, err = sojourn("replay", path, *line)
    assert code == 0
    assert err == f"sojourn: {path}: {capture.other} frames without an IP packet left out\n"


def test_pcapng_times_have_the_resolution_and_offset_of_their_interface(tmp_path: Path) -> None:
    """Powers of ten and of two, in both byte orders, with times of several interfaces."""
    for order in "<>":
        data = block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)
        for resolution, offset in ((9, 0), (3, 5), (0x80 | 10, -1)):
            options = struct.pack(f"{order}HHB3x", 9, 1, resolution)
            options += struct.pack(f"{order}HHqHH", 14, 8, offset, 0, 0)
            data += block(1, struct.pack(f"{order}HHI", RAW, 0, 0) + options, order)
        packet = datagram(1, 9, 0, 40)
        for interface, time in ((0, 7_000_000_123), (1, 2_500), (2, 8 * 1024 + 512)):
            head = (interface, time >> 32, time & 0xFFFFFFFF, 40, 40)
            data += block(6, struct.pack(f"{order}IIIII", *head) + packet, order)
        path = tmp_path / "a.pcapng"
        path.write_bytes(data)
        # 7.000000123 s, 2.5 s + 5 s, 8.5 s - 1 s.
        assert captures.read(path).t_ns.tolist() == [0, 499_999_877, 499_999_877]


def test_our_own_captures_have_times_of_arrival(tmp_path: Path) -> None:
    """The comment of a drop says how long the packet waited, in files of ours alone."""
    own = captures.read(pcapng(tmp_path / "own.pcapng", "sojourn 0.1.0"))
    other = captures.read(pcapng(tmp_path / "other.pcapng"))
    assert other.t_ns.tolist() == [1_000_000 * i for i in range(40)]
    # Every second packet waited for 2.125 ms, the others for 0.125 ms.
    arrived = sorted((i - 2 * (i % 2)) * 1_000_000 for i in range(40))
    assert own.t_ns.tolist() == [at - arrived[0] for at in arrived]
    assert sorted(own.size.tolist()) == sorted(other.size.tolist())
    assert own.size.tolist() != other.size.tolist()


def test_a_capture_is_the_traffic_of_a_scenario(tmp_path: Path) -> None:
    """One flow sends all packets, or each flow of a group its own."""
    path = one_way(tmp_path / "a.pcap")
    source = sj.load_trace(path)
    assert source.flow is None
    assert source.size_bytes == [60 + 7 * i for i in range(40)]
    flow = {"name": "f", "path": ["up"], "source": {"name": "trace", "path": str(path)}}
    scenario = {"duration": "1s", "links": {"up": {"rate": "10mbit"}}, "flows": [flow]}
    assert sj.simulate(scenario).links["up"].arrived_packets == 40
