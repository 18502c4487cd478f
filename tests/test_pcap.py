"""Captures of simulations: what tshark reads in them is what the simulator counts."""

import os
import shutil
import struct
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sojourn as sj
from conftest import Command
from live_link import packets
from sojourn._util import captures
from sojourn._util.captures import Selection

pytestmark = pytest.mark.skipif(
    shutil.which("tshark") is None and not os.environ.get("CI"), reason="tshark is not installed"
)

BULK = {"name": "bulk", "stop": "8s"}

ONE_WAY: dict[str, Any] = {
    "duration": "10s",
    "warmup": "0s",
    "links": {"up": {"rate": "8mbit", "delay": "5ms", "qdisc": "droptail(limit=40p)"}},
    "flows": [
        {"name": "linux", "count": 2, "path": ["up"], "rtt": "uniform(20ms, 60ms)", "source": BULK},
        {
            "name": "rfc",
            "path": ["up"],
            "rtt": "30ms",
            "source": BULK,
            "tcp": "newreno(profile=rfc)",
        },
        {
            "name": "ns2",
            "path": ["up"],
            "rtt": "30ms",
            "source": BULK,
            "tcp": "sack(profile=ns2, packet=1000B)",
        },
        {"name": "udp", "path": ["up"], "source": {"name": "cbr", "rate": "500kbit"}},
    ],
}

TWO_WAY: dict[str, Any] = {
    "duration": "10s",
    "warmup": "0s",
    "links": {
        "down": {"rate": "20mbit", "delay": "5ms", "qdisc": "fq_codel(ecn=true)"},
        "up": {"rate": "2mbit", "delay": "5ms", "loss": 0.005, "qdisc": "codel"},
    },
    "flows": [
        {
            "name": "get",
            "count": 3,
            "path": ["down"],
            "return_path": ["up"],
            "rtt": "40ms",
            "tcp": "cubic(ecn=true, header=72B)",
            "source": BULK,
        },
        {
            "name": "put",
            "path": ["up"],
            "return_path": ["down"],
            "rtt": "40ms",
            "source": BULK,
        },
        {
            "name": "web",
            "path": ["down"],
            "return_path": ["up"],
            "rtt": "30ms",
            "source": {"name": "poisson", "interval": "200ms", "size": "20kB", "stop": "7s"},
        },
        {
            "name": "quic",
            "path": ["down"],
            "return_path": ["up"],
            "rtt": "30ms",
            "tcp": "cubic(profile=quic)",
            "source": BULK,
        },
        {"name": "call", "path": ["up"], "rtt": "40ms", "source": {"name": "call"}},
    ],
}


def rows(path: Path, *fields: str, shown: str = "") -> list[tuple[str, ...]]:
    """Return the fields of the packets that a display filter selects, as tshark reads them."""
    line = ["tshark", "-r", str(path), "-T", "fields", "-E", "occurrence=f"]
    line += ["-Y", shown] if shown else []
    for protocol in ("ip", "tcp", "udp"):
        line += ["-o", f"{protocol}.check_checksum:TRUE"]
    line += [word for field in fields for word in ("-e", field)]
    text = subprocess.run(line, check=True, capture_output=True, text=True).stdout
    return [tuple(line.split("\t")) for line in text.splitlines()]


def count(path: Path, shown: str) -> int:
    """Return the number of packets that a display filter selects."""
    return len(rows(path, "frame.number", shown=shown))


def whole(path: Path, out: Path) -> Path:
    """Write the packets of a capture with their payload, which is zero, as pcap."""
    data = bytearray(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 101))
    raw, at = path.read_bytes(), 0
    while at < len(raw):
        kind, length = struct.unpack_from("<II", raw, at)
        if kind == 6:
            _, high, low, captured, size = struct.unpack_from("<IIIII", raw, at + 8)
            seconds, part = divmod(high << 32 | low, 10**9)
            packet = raw[at + 28 : at + 28 + captured]
            data += struct.pack("<IIII", seconds, part, size, size) + packet.ljust(size, b"\0")
        at += length
    out.write_bytes(data)
    return out


def resent(path: Path) -> int:
    """Return the number of retransmissions that tshark sees.

    It takes a retransmission for a late arrival if a new segment was sent less than 3 ms or a
    round-trip time ago.
    """
    return count(path, "tcp.analysis.retransmission or tcp.analysis.out_of_order")


def test_tshark_counts_what_the_simulator_counts(tmp_path: Path) -> None:
    """Retransmissions, connections, bytes, drops; for four kinds of sender."""
    path = tmp_path / "up.pcapng"
    result = sj.simulate(ONE_WAY, pcap=path)
    flows = list(result.flows.values())
    again = sum(flow.retransmitted_packets or 0 for flow in flows)
    assert again > 50
    assert resent(path) == again
    senders = [name for name in result.flows if not name.startswith("udp")]
    assert len({row[0] for row in rows(path, "tcp.stream", shown="tcp")}) == len(senders) == 4
    assert count(path, "_ws.malformed") == 0
    for doubt in ("ack_lost_segment", "lost_segment", "window_full", "zero_window", "keep_alive"):
        assert count(path, f"tcp.analysis.{doubt}") == 0, doubt
    assert count(path, "tcp.flags.syn == 1 and tcp.flags.ack == 0") == 4
    assert count(path, "tcp.flags.syn == 1 and tcp.flags.ack == 1") == 4
    # Everything was acknowledged: the last ack counts the bytes that were delivered.
    acked: dict[str, int] = {}
    for stream, ack in rows(path, "tcp.stream", "tcp.ack", shown="tcp.srcport == 40001"):
        acked[stream] = max(acked.get(stream, 0), int(ack) - 1)
    delivered = sorted(round(result.flows[name].goodput_bps * 10 / 8) for name in senders)
    assert sorted(acked.values()) == delivered
    link = result.links["up"]
    outbound = [comment for _, _, comment in packets(path) if comment]
    fates = Counter(comment.split(",")[0] for comment in outbound)
    assert fates == {
        "left": link.departed_packets,
        "dropped: the buffer is full": link.dropped_packets,
    }


@pytest.mark.parametrize("link", ["down", "up"])
def test_headers_are_valid(link: str, tmp_path: Path) -> None:
    """Checksums, with the payload; IPv6, ECN, SACK, timestamps, QUIC and UDP."""
    path = tmp_path / "a.pcapng"
    result = sj.simulate(TWO_WAY, pcap=path, pcap_link=link)
    full = whole(path, tmp_path / "full.pcap")
    assert count(full, "_ws.malformed") == 0
    for protocol in ("ip", "tcp", "udp"):
        good = count(full, f"{protocol}.checksum.status == 1")
        everything = "not icmp" if protocol == "ip" else protocol
        assert good == count(
            full, f"{everything} and not ipv6.dst" if protocol == "ip" else everything
        )
        assert good > 100
    assert count(path, "ipv6 and tcp") > 1000
    assert count(path, "tcp.options.sack_le") > (3 if link == "down" else 20)
    assert count(path, "tcp.options.timestamp.tsecr > 0") > 1000
    assert count(path, "tcp.flags.syn == 1 and tcp.options.wscale.shift == 14") > 30
    marked = count(path, "(ip.dsfield.ecn == 3 or ipv6.tclass.ecn == 3) and frame.comment")
    assert marked == (result.links["down"].marked_packets if link == "down" else 0)
    sizes = [int(size) for (size,) in rows(path, "frame.len", shown="frame.comment")]
    of_link = result.links[link]
    # SACK blocks without timestamps take 4 bytes more than the simulator counts.
    assert abs(sum(sizes) / of_link.arrived_bytes - 1) < 0.005


def test_every_connection_is_a_stream(tmp_path: Path) -> None:
    """Short transfers, each on a connection of its own."""
    path = tmp_path / "a.pcapng"
    result = sj.simulate(TWO_WAY, pcap=path, pcap_link="down")
    streams = {row[0] for row in rows(path, "tcp.stream", shown="tcp")}
    connections = result.frame("fct").height + 3 + 1
    assert connections > 30
    assert len(streams) == connections
    assert count(path, "tcp.flags.syn == 1 and tcp.flags.ack == 0") >= connections


@pytest.mark.parametrize("at", ["arrival", "departure"])
def test_times_are_those_of_the_packet_log(at: str, tmp_path: Path) -> None:
    """To the nanosecond, with the time in the queue in the comment."""
    path = tmp_path / "a.pcapng"
    logged = {**ONE_WAY, "duration": "3s", "packet_log": True}
    result = sj.simulate(logged, pcap=path, pcap_at=at)
    log = result.frame("packet_log")
    first, last = ("arrived_s", "left_s") if at == "arrival" else ("left_s", "arrived_s")
    ours = np.array([ns for ns, _, comment in packets(path) if comment])
    assert (np.diff(ours) >= 0).all()
    assert np.allclose(ours / 1e9, np.sort(log[first].to_numpy()), rtol=0, atol=1e-9)
    word = "later" if at == "arrival" else "after"
    comments = [comment for _, _, comment in packets(path) if comment]
    assert all(word in comment for comment in comments)
    numbers = [comment.split(",")[1].replace("after", "").split()[0] for comment in comments]
    waited = np.sort(np.array(numbers, float) / 1e3)
    assert np.allclose(waited, np.sort((log[last] - log[first]).abs().to_numpy()), atol=2e-9)


def test_a_capture_changes_no_result(tmp_path: Path) -> None:
    """Summary, series and packet log are the same in every value."""
    for scenario in (ONE_WAY, TWO_WAY):
        logged = {**scenario, "packet_log": True, "sample": "100ms", "duration": "4s"}
        plain = sj.simulate(logged)
        for link in logged["links"]:
            captured = sj.simulate(logged, pcap=tmp_path / "a.pcapng", pcap_link=link)
            assert captured.summary == plain.summary
            for table in ("packet_log", "series", "fct"):
                assert captured.frame(table).equals(plain.frame(table)), table


def test_a_capture_is_replayed_as_it_was(tmp_path: Path, sojourn: Command) -> None:
    """The discipline of the run decides again as it did."""
    path, out = tmp_path / "a.pcapng", tmp_path / "out.csv"
    for at in ("arrival", "departure"):
        result = sj.simulate(ONE_WAY, pcap=path, pcap_at=at)
        capture = captures.read(path, Selection(direction="out"))
        assert len(capture.t_ns) == result.links["up"].arrived_packets
        options = ["--qdisc", "droptail(limit=40p)", "--rate", "8mbit", "--out", out, "--force"]
        code, _, err = sojourn("replay", path, *options)
        assert code == 2
        assert "--direction in, --direction out" in err
        code, _, err = sojourn("replay", path, *options, "--direction", "out")
        assert (code, err) == (0, "")
        dropped = int(pl.read_csv(out)["dropped"].sum())
        # Packets that arrive at one time have lost their order, if departures were captured.
        assert abs(dropped - result.links["up"].dropped_packets) <= (0 if at == "arrival" else 5)


REFUSED = {
    ("--pcap", "a.pcap"): "must end in .pcapng",
    ("--pcap", "a.pcapng", "--pcap-link", "upp"): '--pcap-link: unknown link "upp", did you mean',
    ("--pcap", "a.pcapng", "--pcap-at", "noon"): '--pcap-at: "noon" is neither arrival nor',
    ("--pcap-link", "up"): "--pcap-link: has no effect without --pcap",
    ("--pcap-at", "arrival"): "--pcap-at: has no effect without --pcap",
    ("--pcap", "a.pcapng", "--threads", "2"): "--pcap: is for a simulation on one thread",
    ("--pcap", "missing/a.pcapng"): "missing",
}


@pytest.mark.parametrize("options", REFUSED)
def test_bad_options_are_refused(
    options: tuple[str, ...],
    tmp_path: Path,
    sojourn: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In one line, before the run."""
    monkeypatch.chdir(tmp_path)
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        'duration = "1s"\n[links.up]\nrate = "1mbit"\n[[flows]]\nname = "f"\npath = ["up"]\n'
    )
    code, _, err = sojourn("run", scenario, *options)
    assert code == 2
    assert REFUSED[options] in err
    assert err.count("\n") == 1
    assert not (tmp_path / "a.pcapng").exists()


def test_a_full_disk_ends_the_run_with_a_message(sojourn: Command, tmp_path: Path) -> None:
    """As for every other output."""
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        'duration = "1s"\n[links.up]\nrate = "1mbit"\n[[flows]]\nname = "f"\npath = ["up"]\n'
    )
    link = tmp_path / "full.pcapng"
    link.symlink_to("/dev/full")
    code, _, err = sojourn("run", scenario, "--pcap", link)
    assert code != 0
    assert "no space" in err.lower()
    assert err.count("\n") == 1
