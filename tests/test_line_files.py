"""Files of crusader and of tc, shapers that are stated, and lines that are described."""

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import sojourn as sj
from conftest import Command
from sojourn.line import crusader
from sojourn.line.files import read
from test_line_measure import line_of, series, simulated


def duration(seconds: float) -> dict[str, int]:
    """Return a duration as crusader writes it."""
    nanos = round(seconds * 1e9)
    return {"secs": nanos // 10**9, "nanos": nanos % 10**9}


def result(links: Any, rtt_ms: float) -> dict[str, Any]:
    """Return a result of crusader: a download, and an upload 70 s later."""
    groups: list[dict[str, Any]] = []
    pings: list[dict[str, Any]] = []
    for n, way in enumerate(("download", "upload")):
        goodput, ping = series(simulated(links, way, rtt_ms), rtt_ms)
        totals = np.cumsum([0.0, *goodput]) * 0.2e6 / 8
        data = [{"time": duration(70 * n + 0.2 * k), "bytes": int(b)} for k, b in enumerate(totals)]
        streams = [{"data": data[25:]}]  # the transfers begin after 5 s
        groups.append({"download": way == "download", "both": False, "streams": streams})
        for k, ms in enumerate(ping):
            lost = k % 50 == 49
            latency = {"total": None if lost else duration(ms / 1e3), "up": duration(0)}
            sent = duration(70 * n + 0.2 * k)
            pings.append({"index": len(pings), "sent": sent, "latency": latency})
    pings[7]["latency"] = None
    return {"version": 2, "stream_groups": groups, "pings": pings, "test_data": []}


def literal(data: bytes) -> bytes:
    """Return a literal of Snappy."""
    size = len(data) - 1
    head = bytes([size << 2]) if size < 60 else bytes([61 << 2]) + size.to_bytes(2, "little")
    return head + data


def varint(value: int) -> bytes:
    """Return a number with seven bits per byte."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def frame(kind: int, body: bytes) -> bytes:
    """Return a frame; a checksum, which is not read, comes before the contents."""
    whole = b"sNaPpY" if kind == 0xFF else bytes(4) + body
    return bytes([kind]) + len(whole).to_bytes(3, "little") + whole


def written(tree: Any, version: int = 2) -> bytes:
    """Return a file of crusader, half of its frames plain and half compressed."""
    data = msgspec.msgpack.encode(tree)
    chunks = [data[n : n + 60_000] for n in range(0, len(data), 60_000)]
    frames = [
        frame(1, one) if n % 2 else frame(0, varint(len(one)) + literal(one))
        for n, one in enumerate(chunks)
    ]
    head = crusader.MAGIC + version.to_bytes(8, "little")
    return head + frame(0xFF, b"") + b"".join(frames)


def test_a_result_of_crusader_is_the_line_that_it_measured(tmp_path: Path) -> None:
    """Rates within 5 %, buffers within 20 %; the JSON of the same result gives the same."""
    tree = result(line_of(50, 10, 30, (150, 300)), 30)
    file = tmp_path / "test.crr"
    file.write_bytes(written(tree))
    line = sj.line.measure(file)
    assert line.down_bps is not None
    assert line.up_bps is not None
    assert line.rtt_s is not None
    assert line.down_bps.value == pytest.approx(50e6, rel=0.05)
    assert line.up_bps.value == pytest.approx(10e6, rel=0.05)
    assert line.rtt_s.value == pytest.approx(0.03, rel=0.01)
    for one, seconds in ((line.down_buffer_s, 0.15), (line.up_buffer_s, 0.3)):
        assert one is not None
        assert one.value == pytest.approx(seconds, rel=0.2)
    text = tmp_path / "test.json"
    text.write_text(json.dumps(tree))
    again = sj.line.measure(text)
    assert again.down_bps == line.down_bps
    assert line.sources == ("test.crr (crusader)",)


def test_blocks_of_snappy_have_literals_and_copies() -> None:
    """Copies of all three kinds, also of bytes that the same copy writes."""
    block = varint(30) + literal(b"abcdef")
    block += bytes([(8 - 4) << 2 | 1, 6])  # 8 bytes from 6 back: abcdefab
    block += bytes([(6 - 1) << 2 | 2, 1, 0])  # 6 times the last byte
    block += bytes([(10 - 1) << 2 | 3, 20, 0, 0, 0])  # 10 bytes from 20 back: abcdefabcd
    assert crusader._block(block) == b"abcdefabcdefabbbbbbbabcdefabcd"
    with pytest.raises(ValueError, match="wrong size"):
        crusader._block(varint(7) + literal(b"abcdef"))
    with pytest.raises(ValueError, match="before the beginning"):
        crusader._block(varint(9) + literal(b"a") + bytes([(8 - 4) << 2 | 1, 6]))


def test_damaged_results_of_crusader_are_refused(tmp_path: Path) -> None:
    """Random cuts and changed bytes: a measurement or one line of a message."""
    whole = written(result(line_of(5, 1, 30, (80, 80)), 30))
    rng, file = random.Random(3), tmp_path / "test.crr"
    messages = []
    for n in range(60):
        data = bytearray(whole[: rng.randrange(20, len(whole))] if n % 2 else whole)
        data[rng.randrange(8, len(data))] ^= 1 << rng.randrange(8)
        file.write_bytes(data)
        try:
            read(file)
        except sj.InputError as error:
            messages.append(str(error))
    assert len(messages) > 20
    assert not any("\n" in one for one in messages)
    file.write_bytes(written({}, version=0))
    with pytest.raises(sj.InputError, match="version 0 of crusader's format is not read"):
        read(file)


def tc(*qdiscs: dict[str, Any]) -> str:
    """Return what `tc -s -j qdisc show` prints."""
    plain = {"dev": "lo", "kind": "noqueue", "root": True, "options": {}}
    return json.dumps([plain, *qdiscs])


CAKE: dict[str, Any] = {
    "dev": "eth0",
    "kind": "cake",
    "root": True,
    "options": {"bandwidth": 1_187_500},
    "drops": 12,
    "overlimits": 90,
    "tins": [{"peak_delay_us": 7300, "ecn_mark": 2}],
}


@pytest.mark.parametrize(
    ("qdiscs", "text"),
    [
        ([CAKE], "eth0: cake shapes at 9.50 mbit, longest queueing delay 7.30 ms; it holds"),
        ([{**CAKE, "drops": 0, "overlimits": 0, "tins": []}], "the queue is elsewhere"),
        ([{**CAKE, "options": {"bandwidth": "unlimited"}}], "no qdisc limits the rate"),
        ([{"dev": "p", "kind": "tbf", "root": True, "options": {"rate": 125000}}], "at 1.00 mbit"),
        ([{"dev": "p", "kind": "htb", "root": True, "options": {}}], "with the rates of its"),
        ([{"dev": "p", "kind": "fq_codel", "root": True, "options": {}}], "no qdisc limits"),
    ],
)
def test_shapers_of_tc_are_stated(
    qdiscs: list[dict[str, Any]], text: str, tmp_path: Path, sojourn: Command
) -> None:
    """Next to a measurement: device, rate, and whether the queue was there."""
    (tmp_path / "tc.json").write_text(tc(*qdiscs))
    ping = "\n".join(f"[{n}.0] 64 bytes from x: icmp_seq={n} time=20 ms" for n in range(1, 30))
    (tmp_path / "ping.txt").write_text(ping)
    words = ("line", "measure", tmp_path / "tc.json", "--idle", tmp_path / "ping.txt")
    code, out, err = sojourn(*words)
    assert (code, err) == (0, "")
    assert text in out
    assert text in json.loads(sojourn(*words, "--json")[1])["shapers"][0]
    (tmp_path / "tc.json").write_text("[]")
    assert "is no output of tc -s -j qdisc show" in sojourn(*words)[2]


def test_a_queue_that_does_not_fill_its_buffer_is_stated(tmp_path: Path) -> None:
    """From the delay under load alone; drop-tail is not named."""
    for qdisc, is_stated in (("fq_codel", True), (None, False)):
        links = line_of(20, 5, 30, (150, 300))
        for one in links.values():
            one["qdisc"] = qdisc or one["qdisc"]
        file = tmp_path / "test.json"
        file.write_text(json.dumps(result(links, 30)))
        texts = sj.line.measure(file).shapers
        assert [text.split(":")[0] for text in texts] == ["download", "upload"] * is_stated


def test_a_described_line_has_its_framing(tmp_path: Path, sojourn: Command) -> None:
    """A full packet takes 33 cells of ATM; the file is one of a line."""
    path = tmp_path / "line.toml"
    words = ("line", "describe", "--down", "8mbit", "--up", "1mbit", "--rtt", "30ms")
    code, out, err = sojourn(*words, "--link-layer", "adsl-pppoe", "--buffer", "50ms/300ms",
                             "--out", path)  # fmt: skip
    assert (code, err) == (0, "")
    assert str(path) in out
    options = sj.line.options(path)
    assert options["buffer"] == "50kB/37500B"
    run = sj.simulate(path)
    assert run.links["up"]["utilisation"] > 0.99
    payload = run.groups["upload"]["goodput_bps"] * 1500 / 1448
    assert payload < 1e6 * 1500 / (33 * 53) * 1.001
    assert run.links["up"]["sojourn_p99_s"] == pytest.approx(0.35, abs=0.06)
    assert "one time, like 30ms" in sojourn(*words[:-1], "9ms..20ms", "--out", path)[2]
    assert "unknown link layer" in sojourn(*words, "--link-layer", "adsk", "--out", path)[2]
