"""Packet captures are refused with the command that converts them."""

import os
import shutil
import struct
import subprocess
from pathlib import Path

import polars as pl
import pytest

from conftest import Command
from sojourn.engines import captures


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


def pcap(path: Path) -> Path:
    """Write the packets as pcap, with raw IP."""
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 101)
    for at_us, packet in PACKETS:
        seconds, us = divmod(at_us, 1_000_000)
        data += struct.pack("<IIII", seconds, us, len(packet), len(packet)) + packet
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("magic", captures.MAGIC)
def test_a_capture_is_refused_with_the_way_round(
    magic: bytes, tmp_path: Path, sojourn: Command
) -> None:
    """In one line, for pcap and pcapng."""
    path = tmp_path / "a b.pcap"
    path.write_bytes(magic + bytes(100))
    out = tmp_path / "out.csv"
    code, _, err = sojourn("replay", path, "--qdisc", "codel", "--rate", "1mbit", "--out", out)
    assert code == 2
    assert err.startswith(f"sojourn: {path}: is a packet capture; convert it to CSV")
    assert err.count("\n") == 1
    assert not out.exists()


@pytest.mark.skipif(
    shutil.which("tshark") is None and not os.environ.get("CI"), reason="tshark is not installed"
)
def test_the_command_of_the_message_converts_the_capture(tmp_path: Path, sojourn: Command) -> None:
    """As printed, for a name with a space. A replay accepts the result."""
    path = pcap(tmp_path / "a b.pcap")
    out = tmp_path / "out.csv"
    options = ["--qdisc", "codel", "--rate", "1mbit", "--out", out]
    _, _, err = sojourn("replay", path, *options)
    command = err.strip()[err.index("tshark") :]
    subprocess.run(["sh", "-c", command], check=True, stderr=subprocess.DEVNULL)
    table = pl.read_csv(path.with_suffix(".csv"))
    assert table.to_dict(as_series=False) == {
        "i": [1, 2, 3, 4],
        "t_us": [0.0, 1e6, 2.5e6, 3e6],
        "flow": [0, 0, 1, 2],
        "size_B": [1500, 200, 100, 300],
        "ecn": [2, 0, 0, 1],
        "dscp": [0, 46, 0, 0],
    }
    code, _, err = sojourn("replay", path.with_suffix(".csv"), *options)
    assert code == 0, err


def test_rows_of_tshark_become_columns() -> None:
    """The program of awk alone, which needs no tshark."""
    if shutil.which("awk") is None:
        pytest.skip("awk is not installed")
    rows = [
        ["0.000001500", "1500", "2", "0", "10.0.0.1", "192.0.2.1", "6", "5000", "80", "", ""],
        ["0.250000000", "60", "0", "46", "10.0.0.1", "192.0.2.1", "17", "", "", "5000", "80"],
        ["0.300000000", "40", "0", "0", "10.0.0.1", "192.0.2.1", "6", "5000", "80", "", ""],
    ]
    text = "".join("\t".join(row) + "\n" for row in rows)
    done = subprocess.run(
        ["awk", captures.ROWS], input=text, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "i,t_us,flow,size_B,ecn,dscp",
        "1,1.500,0,1500,2,0",
        "2,250000.000,1,60,0,46",
        "3,300000.000,0,40,0,0",
    ]
