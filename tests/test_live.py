"""Packets of the kernel's TCP, UDP and ping across a live link.

Bounds are physical limits of rate and delay. The additional delay depends on the machine;
`make bench-live` measures it.
"""

import hashlib
import json
import os
import re
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from conftest import Command
from live_link import (
    ENVIRONMENT,
    FAR,
    FAR6,
    arguments,
    lacking,
    lacking_tun,
    link,
    packets,
    python,
    summary_of,
    without_waiting,
)
from sojourn.scenario.draft import Draft

pytestmark = pytest.mark.live

BOTH_ENDS = pytest.mark.parametrize("ends", ["tun", "veth"])

SIZE = 400_000
"""Bytes of a transfer."""

SEND = """
import socket, sys
host, port, size, control = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
with socket.create_connection((host, port)) as s:
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    s.sendall(bytes(i * i % 251 for i in range(size)))
    s.shutdown(socket.SHUT_WR)
    print(s.recv(100).decode())
"""

FETCH = """
import hashlib, socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as s:
    data = b"".join(iter(lambda: s.recv(65536), b""))
    print(len(data), hashlib.sha256(data).hexdigest())
"""

FLOOD = """
import socket, sys, time
host, port, count, size, tos, wait_ms = sys.argv[1], *map(int, sys.argv[2:])
with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as s:
    level, option = (socket.IPPROTO_IPV6, socket.IPV6_TCLASS) if ":" in host else (
        socket.IPPROTO_IP, socket.IP_TOS)
    s.setsockopt(level, option, tos)
    for i in range(count):
        s.sendto(i.to_bytes(size - (48 if ":" in host else 28), "big"), (host, port))
        if i % 20 == 0:
            time.sleep(0.002)
    time.sleep(wait_ms / 1000)
"""
"""Sends at up to 40 times 2 Mbit/s, so that a slow machine also overloads the link."""

WAIT_MS = 600
"""Time to wait after sending; 100 kB of queue take 400 ms at 2 Mbit/s."""


def content() -> bytes:
    """Return the data of a transfer."""
    return bytes(i * i % 251 for i in range(SIZE))


@contextmanager
def server(host: str) -> Iterator[socket.socket]:
    """Listen at the far end, on a port that the kernel chooses."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listening:
        listening.bind(("::" if ":" in host else "", 0))
        listening.listen()
        listening.settimeout(60)
        yield listening


def receive(listening: socket.socket, into: list[tuple[float, bytes]]) -> threading.Thread:
    """Accept a connection, read to its end, answer with the length; record duration and data."""

    def work() -> None:
        connection, _ = listening.accept()
        with connection:
            start = time.monotonic()
            data = b"".join(iter(lambda: connection.recv(65536), b""))
            into.append((time.monotonic() - start, data))
            connection.sendall(str(len(data)).encode())

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.live("ping")
@BOTH_ENDS
@pytest.mark.parametrize("host", [FAR, FAR6])
def test_a_ping_takes_at_least_twice_the_delay(host: str, ends: str) -> None:
    """With IPv4 and IPv6."""
    ping = ["ping", "-c", "5", "-i", "0.1", host]
    done = link(["--rate", "10mbit", "--delay", "25ms"], ping, ends)
    times = [float(ms) for ms in re.findall(r"time=([\d.]+) ms", done.stdout)]
    assert done.returncode == 0, done.stderr
    assert len(times) == 5
    # 84 bytes (104 of IPv6) take 67 us to send, there and back.
    assert min(times) >= 50.13
    assert ("ends are veth pairs" in done.stderr) == (ends == "veth")


@pytest.mark.parametrize("host", [FAR, FAR6])
@pytest.mark.parametrize("control", ["reno", "cubic", "bbr"])
def test_an_upload_is_complete_and_not_faster_than_the_link(host: str, control: str) -> None:
    """With each congestion control of the kernel."""
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    if control not in known:
        pytest.skip(f"the kernel has no {control}, only {' '.join(known)}")
    got: list[tuple[float, bytes]] = []
    with server(host) as listening:
        thread = receive(listening, got)
        client = python(SEND, host, listening.getsockname()[1], SIZE, control)
        done = link(["--rate", "20mbit", "--delay", "5ms", "--qdisc", "fq_codel", "--json"], client)
        thread.join()
    up = summary_of(done)["links"]["up"]
    assert done.stdout.startswith(str(SIZE))
    [(took, data)] = got
    assert data == content()
    # The first packet need not wait for the others; all of them but the first take this long.
    assert took >= (SIZE - 20_000) * 8 / 20e6
    assert up["departed_bytes"] >= SIZE
    assert up["malformed_packets"] == up["refused_packets"] == 0
    assert up["departed_bytes"] * 8 <= 20e6 * up["duration_s"] + 1500 * 8


@BOTH_ENDS
def test_a_download_crosses_the_link_that_down_describes(ends: str) -> None:
    """`--down` does not affect the other direction."""
    with server(FAR) as listening:

        def work() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(content())

        thread = threading.Thread(target=work)
        thread.start()
        options = ["--rate", "5mbit", "--down", "rate=30mbit", "--down", "qdisc=pie", "--json"]
        options += ["--down", "delay=3ms", "--down", "qdisc.target=10ms"]
        done = link(options, python(FETCH, FAR, listening.getsockname()[1]), ends)
        thread.join()
    tree = summary_of(done)
    assert done.stdout.splitlines()[0] == f"{SIZE} {hashlib.sha256(content()).hexdigest()}"
    assert tree["spec"]["up"]["rate"] == "5mbit"
    assert tree["spec"]["down"]["qdisc"]["target"] == "10ms"
    assert tree["links"]["down"]["qdisc"] == "pie"
    assert tree["links"]["down"]["departed_bytes"] >= SIZE > tree["links"]["up"]["departed_bytes"]


@BOTH_ENDS
@pytest.mark.parametrize(("host", "ecn"), [(FAR, 0), (FAR, 2), (FAR6, 2)])
def test_every_packet_of_a_flood_is_accounted_for(
    host: str, ecn: int, ends: str, tmp_path: Path
) -> None:
    """Summary, receiver and capture agree on sent, dropped and marked packets."""
    count, size = 1500, 1000
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    numbers, marks = set(), 0
    pcap = tmp_path / "flood.pcapng"
    with socket.socket(family, socket.SOCK_DGRAM) as sink:
        sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_000_000)
        level, option = (
            (socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS)
            if family == socket.AF_INET6
            else (socket.IPPROTO_IP, socket.IP_RECVTOS)
        )
        sink.setsockopt(level, option, 1)
        sink.bind(("::" if ":" in host else "", 0))
        client = python(FLOOD, host, sink.getsockname()[1], count, size, ecn, WAIT_MS)
        options = ["--rate", "2mbit", "--qdisc", "codel", "--set", "limit=100kB"]
        options += ["--set", "ecn=true", "--pcap", str(pcap), "--json"]
        up = summary_of(link(options, client, ends))["links"]["up"]
        sink.setblocking(False)
        while True:
            try:
                data, more, _, _ = sink.recvmsg(2000, 100)
            except BlockingIOError:
                break
            numbers.add(int.from_bytes(data, "big"))
            marks += sum(payload[0] & 3 == 3 for _, _, payload in more)
    # The kernel delivered them, so their checksums are correct.
    assert len(numbers) == up["delivered_packets"] == up["departed_packets"]
    assert up["arrived_packets"] == up["departed_packets"] + up["dropped_packets"] == count
    assert up["dropped_packets"] > 0
    assert marks == up["marked_packets"]
    assert (marks > 0) == (ecn > 0)
    assert up["departed_bytes"] * 8 <= 2e6 * up["duration_s"] + size * 8
    blocks = packets(pcap)
    assert sum("dropped" in comment for _, _, comment in blocks) == up["dropped_packets"]
    assert (
        sum(comment.startswith("delivered") for _, _, comment in blocks) >= up["delivered_packets"]
    )
    assert {len(packet) for _, packet, comment in blocks if "dropped" in comment} == {size}
    now = time.time_ns()
    assert all(now - 60_000_000_000 < ns < now for ns, _, _ in blocks)


@pytest.mark.parametrize("qdisc", ["codel", "red", "fq_codel"])
def test_a_replayed_packet_log_gives_the_same_decisions(
    qdisc: str, tmp_path: Path, sojourn: Command
) -> None:
    """A live link and `sojourn replay` make identical decisions."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("", 0))
        client = python(FLOOD, FAR, sink.getsockname()[1], 1500, 1000, 2, WAIT_MS)
        parameters = ["--set", "limit=100kB", "--set", "ecn=true"]
        options = ["--rate", "2mbit", "--qdisc", qdisc, *parameters]
        up = summary_of(link([*options, "--packet-log", str(tmp_path), "--json"], client))["links"][
            "up"
        ]
    packet_log, out = tmp_path / "up.csv", tmp_path / "again.csv"
    again = ["--follow", packet_log] if qdisc == "red" else []  # RED is randomised
    code, _, err = sojourn("replay", packet_log, *options, *again, "--out", out)
    assert code == 0
    assert not again or err == f"sojourn: {packet_log}: 0 of 1500 decisions diverge\n"
    live, replayed = pl.read_csv(packet_log), pl.read_csv(out)
    assert live["marked"].sum() == up["marked_packets"] > 0
    for column in ("i", "t_us", "flow", "size_B", "dropped", "marked"):
        assert replayed[column].to_list() == live[column].to_list(), column


def test_a_wire_loses_packets_and_a_trace_changes_the_rate(tmp_path: Path) -> None:
    """As in the simulator."""
    trace = tmp_path / "rate.csv"
    trace.write_text("t_s,rate_bps\n0,0\n1.5,20000000\n")
    log = tmp_path / "log.jsonl"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("", 0))
        client = python(FLOOD, FAR, sink.getsockname()[1], 400, 500, 0, 2000)
        options = ["--trace", str(trace), "--loss", "0.2", "--log", str(log), "--json"]
        done = link(options, client)
    tree = summary_of(done)
    up = tree["links"]["up"]
    assert tree["spec"]["up"]["rate"] == "20mbit"
    assert 40 <= up["lost_on_wire_packets"] <= 120
    assert up["delivered_packets"] + up["lost_on_wire_packets"] == up["departed_packets"] == 400
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    sent = [(r["time_s"], r["departed_packets"]) for r in rows if r["name"] == "up"]
    assert sum(n for at, n in sent if at < 1.45) == 0  # at no rate nothing is sent
    assert sum(n for at, n in sent) > 0
    assert "up   trace of 2 rates (20.0 mbit at most), 0s" in done.stderr
    assert "20.0 % loss on the wire; hidden" in done.stderr


def test_a_full_packet_is_one_opportunity_of_a_mahimahi_trace(tmp_path: Path) -> None:
    """One packet of 1500 bytes per opportunity, as in mm-link. Framing counts for each packet."""
    trace, pcap = tmp_path / "cell", tmp_path / "cell.pcapng"
    trace.write_text("".join(f"{ms}\n" for ms in range(1, 1001)))
    # Without 4 bytes of framing each, the 376th full packet, and 11 short ones, would share one.
    for size, most in ((1500, 1), (148, 10)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
            sink.bind(("", 0))
            client = python(FLOOD, FAR, sink.getsockname()[1], 800, size, 0, 1500)
            options = ["--trace", str(trace), "--pcap", str(pcap), "--json"]
            up = summary_of(link(options, client))["links"]["up"]
        assert up["delivered_packets"] == 800
        records = packets(pcap)
        left_ns = [
            ns
            for ns, packet, comment in records
            if len(packet) == size and comment.startswith("delivered")
        ]
        # Virtual times of the link, which do not depend on the machine.
        assert {(ns - left_ns[0]) % 1_000_000 for ns in left_ns} == {0}
        assert max(Counter(left_ns).values()) == most


@pytest.mark.live("ping")
@BOTH_ENDS
def test_links_are_nested(ends: str) -> None:
    """A packet crosses both."""
    ping = ["ping", "-c", "3", "-i", "0.1", FAR]
    inner = arguments(["--rate", "10mbit", "--delay", "10ms"], ping)
    done = link(["--rate", "10mbit", "--delay", "20ms"], inner, ends)
    times = [float(ms) for ms in re.findall(r"time=([\d.]+) ms", done.stdout)]
    assert len(times) == 3, done.stderr
    assert min(times) >= 60


def test_two_links_at_once_have_different_addresses() -> None:
    """The second link uses the next block of addresses."""
    line = arguments(["--rate", "10mbit"], ["sh", "-c", "echo $SOJOURN_FAR; read end"])
    pipe = subprocess.PIPE
    with subprocess.Popen(
        line, env=ENVIRONMENT, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    ) as first:
        assert first.stdout is not None
        far = first.stdout.readline().strip()
        second = link(["--rate", "10mbit"], ["sh", "-c", "echo $SOJOURN_FAR"])
        first.communicate("end\n")
    assert (far, second.stdout.strip()) == (FAR, "198.18.16.1")


def test_a_log_has_the_columns_of_a_simulation(tmp_path: Path, small: Path) -> None:
    """The same names, types and order, in JSON lines and Parquet."""
    case = Draft.read(small).tree | {"sample": "100ms"}
    simulated = sj.simulate(case).frame("series").filter(pl.col("kind") == "link")
    columns = [c.name for c in simulated if c.null_count() < len(c)]
    lines, table = tmp_path / "log.jsonl", tmp_path / "log.parquet"
    for path in (lines, table):
        options = ["--rate", "5mbit", "--qdisc", "codel", "--log", str(path), "--sample", "20ms"]
        assert link(options, ["sleep", "0.3"]).returncode == 0
    frame = pl.read_parquet(table)
    assert frame.columns == columns
    assert frame.schema == simulated.select(columns).schema
    assert frame["name"].unique().sort().to_list() == ["down", "up"]
    assert json.loads(pl.read_parquet_metadata(table)["sojourn.links"])["up"]["rate"] == "5mbit"
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert list(rows[0]) == columns
    times = [row["time_s"] for row in rows if row["name"] == "up"]
    assert times == pytest.approx([0.02 * (i + 1) for i in range(len(times))])
    assert len(times) >= 15


def test_addresses_and_exit_code_of_the_command() -> None:
    """A command that a signal ends has the code of a shell."""
    script = 'echo "$SOJOURN_NEAR $SOJOURN_FAR $SOJOURN_NEAR6 $SOJOURN_FAR6"; exit 7'
    done = link(["--rate", "10mbit"], ["sh", "-c", script])
    assert done.returncode == 7
    assert done.stdout.split() == [
        "198.18.0.2",
        FAR,
        "fd00:736f:6a6f::c612:2",
        "fd00:736f:6a6f::c612:1",
    ]
    assert done.stderr.startswith("up   10mbit, 0s, droptail (limit 1000p), which is 1.20 s")
    assert "hidden queues: none" in done.stderr
    killed = link(["--rate", "10mbit"], ["sh", "-c", "kill -9 $$"])
    assert killed.returncode == 128 + 9


def test_the_command_is_not_run_by_a_shell(tmp_path: Path) -> None:
    """Its arguments arrive unchanged."""
    words = ["$(touch x)", "a b", ";true", "*", ""]
    done = link(["--rate", "10mbit"], python("import sys; print(sys.argv[1:])", *words))
    assert done.stdout == f"{words}\n"
    assert not (tmp_path / "x").exists()


def test_sigterm_ends_link_and_command() -> None:
    """With exit code 128 + 15."""
    line = arguments(["--rate", "10mbit"], ["sh", "-c", "echo ready; sleep 1000"])
    with subprocess.Popen(
        line, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.stdout.read() == ""  # no process has the pipe open
        assert process.wait() == 128 + 15


def test_missing_rights_are_named() -> None:
    """In one line, with exit code 2."""
    # Also drop the right to create a user namespace that maps root.
    line = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    line += arguments(["--rate", "10mbit"], ["true"])
    if os.getuid() != 0 or lacking("setpriv"):
        pytest.skip("requires root and setpriv, to drop rights")
    done = subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    errors = without_waiting(done.stderr)
    assert re.fullmatch(r"sojourn: real packets require root .*\n", errors)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rate", "10"], "--rate: 10 has no unit"),
        (["--delay", "5ms"], "--rate: is missing"),
        (["--rate", "1mbit", "--set", "traget=5ms"], '--set traget: unknown parameter "traget"'),
        (["--rate", "1mbit", "--set", "target"], "--set target: write it as KEY=VALUE"),
        (["--rate", "1mbit", "--qdisc", "cdoel"], '--qdisc: unknown discipline "cdoel", did you'),
        (["--rate", "1mbit", "--up", "rte=1mbit"], '--up rte=1mbit: unknown key "rte", did you'),
        (["--rate", "1mbit", "--up", "rate=3mbps"], '--up: rate: "3mbps" is ambiguous'),
        (["--rate", "1mbit", "--loss", "2"], "--loss: 2 is out of range"),
        (["--rate", "1mbit", "--sample", "1us", "--log", "x.jsonl"], "sample: 1us is out of range"),
        (["--rate", "1mbit", "--trace", "nowhere"], "--trace: nowhere: no such file"),
        (["--up", "trace=5", "--down", "rate=1mbit"], "--up: rate: is missing"),
        (["--rate", "1mbit", "--log", "x.csv"], "x.csv: the name must end in .jsonl or .parquet"),
        (["--rate", "1mbit", "--watch"], "--watch: requires standard error to be a terminal"),
    ],
)
def test_bad_input_is_refused_in_a_line(sojourn: Command, options: list[str], message: str) -> None:
    """With the name of the option."""
    code, out, err = sojourn("link", *options, "--", "true")
    assert (code, out) == (2, "")
    assert err.startswith(f"sojourn: {message}"), err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["pfc", "rdma", "roce"])
def test_an_option_named_like_a_missing_feature_names_the_substitute(
    name: str, sojourn: Command
) -> None:
    """As the table of missing features does. Other unknown options name the nearest."""
    code, out, err = sojourn("link", "--rate", "1mbit", f"--{name}", "5ms", "--", "true")
    assert (code, out) == (2, "")
    assert err.startswith(f'sojourn: --{name}: "{name}" (lossless Ethernet and RDMA) ')
    assert "is not available; use " in err
    code, out, err = sojourn("link", "--lose", "2%", "--", "true")
    assert (code, out) == (2, "")
    assert "--loss" in err


def test_json_is_written_to_a_file_apart_from_the_output_of_the_command(
    tmp_path: Path, sojourn: Command
) -> None:
    """The report is the object of --json, and explain reads it."""
    path = tmp_path / "report.json"
    options = ["--rate", "10mbit", "--json-to", str(path)]
    done = link(options, ["sh", "-c", "echo '{ not JSON'; exit 3"])
    assert (done.returncode, done.stdout) == (3, "{ not JSON\n")
    report = json.loads(path.read_text())
    assert report["exit_code"] == 3
    assert report["spec"]["up"]["rate"] == "10mbit"
    both = link([*options, "--json"], ["true"])
    assert json.loads(both.stdout) == json.loads(path.read_text())
    assert report.keys() == json.loads(both.stdout).keys()
    code, out, _ = sojourn("explain", path)
    assert (code, out.splitlines()[0]) == (0, "live link")


def test_quiet_prints_the_output_of_the_command_only() -> None:
    """With -q, standard error has warnings at most."""
    done = link(["--rate", "10mbit", "-q"], ["sh", "-c", "echo out; echo err >&2"])
    assert done.stdout == "out\n"
    errors = [line for line in done.stderr.splitlines() if not line.startswith("not to be trusted")]
    assert errors == ["err"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--log D/x.jsonl --json-to D/x.jsonl", "--json-to: D/x.jsonl is a file of --log as well"),
        ("--packet-log D --json-to D/up.csv", "--json-to: D/up.csv is a file of --packet-log as"),
        ("--json-to D/x --watch-to D/x", "--watch-to: D/x is a file of --json-to as well"),
        ("--json-to D", "D: is a directory"),
        ("--json-to D/no/x", "D/no/x: no such file or directory"),
    ],
)
def test_outputs_that_exclude_each_other_are_refused(
    options: str, message: str, tmp_path: Path, sojourn: Command
) -> None:
    """Before anything is created."""
    words = options.replace("D", str(tmp_path)).split()
    code, _, err = sojourn("link", "--rate", "1mbit", *words, "--", "true")
    assert code == 2
    assert err.startswith(f"sojourn: {message.replace('D', str(tmp_path))}")


def test_live_tests_are_not_skipped_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """In CI, a missing tool is an error if the rights are there."""
    monkeypatch.delenv("CI", raising=False)
    assert lacking("no-such-tool-1") == "the program no-such-tool-1 is not installed"
    if os.geteuid() != 0 or lacking_tun():
        pytest.skip("the rule is for root with /dev/net/tun")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(AssertionError, match=r"must run in CI.*no-such-tool-2 is not installed"):
        lacking("no-such-tool-2")


def test_an_unknown_command_is_refused_before_the_link_is_created(sojourn: Command) -> None:
    """With the exit code of a shell."""
    code, _, err = sojourn("link", "--rate", "1mbit", "--", "no-such-command")
    assert (code, err) == (127, "sojourn: no-such-command: command not found\n")
