"""Lines derived from files of tools: 30 lines with known truth, every format, before and after."""

import gzip
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sojourn as sj
from conftest import Command
from live_link import FAR, link
from sojourn.line.files import read

STEP_S = 0.2


def simulated(links: dict[str, Any], way: str, rtt_ms: float, seed: int = 1) -> sj.Result:
    """Return a run of four transfers in one direction, which begin after 5 s."""
    there, back = ("up", "down") if way == "upload" else ("down", "up")
    load = {"name": "load", "count": 4, "path": [there], "return_path": [back]}
    load |= {"rtt": f"{rtt_ms * 1e3:.0f}us", "tcp": "linux_cubic"}
    load |= {"source": {"name": "bulk", "start": "5s"}}
    tree = {"duration": "70s", "sample": f"{STEP_S * 1e3:.0f}ms", "seed": seed}
    return sj.simulate({**tree, "links": links, "flows": [load]})


def series(result: sj.Result, rtt_ms: float) -> tuple[list[float], list[float]]:
    """Return goodput in Mbit/s and round-trip times in ms of a run, as a tool samples them."""
    goodput = result.groups["load"].series.delivered_bytes * 8e-6 / STEP_S
    queues = [np.nan_to_num(one.series.sojourn_s) * 1e3 for one in result.links.values()]
    return goodput.tolist(), (rtt_ms + np.sum(queues, axis=0)).tolist()


def flent(path: Path, links: dict[str, Any], rtt_ms: float, seed: int = 1) -> list[Path]:
    """Write a file of flent for a download and one for an upload."""
    files = []
    for way in ("download", "upload"):
        result = simulated(links, way, rtt_ms, seed)
        goodput, ping = series(result, rtt_ms)
        results = {f"TCP {way} BE": goodput, "Ping (ms) ICMP": ping, f"TCP {way} sum": goodput}
        tree = {"version": 4, "x_values": result.time_s.tolist(), "results": results}
        files.append(path / f"{way}-{seed}.flent.gz")
        files[-1].write_bytes(gzip.compress(json.dumps(tree).encode()))
    return files


def line_of(down: float, up: float, rtt_ms: float, buffers_ms: tuple[float, float]) -> Any:
    """Return the links of a line with drop-tail, with rates in Mbit/s."""
    return {
        name: {
            "rate": f"{mbit}mbit",
            "delay": f"{rtt_ms / 4 * 1e3:.0f}us",
            "qdisc": {"name": "droptail", "limit": f"{max(ms * mbit * 125, 6056):.0f}B"},
        }
        for name, mbit, ms in (("down", down, buffers_ms[0]), ("up", up, buffers_ms[1]))
    }


@pytest.mark.parametrize("first", [0, 10, 20])
def test_thirty_random_lines_are_found_again(first: int, tmp_path: Path) -> None:
    """Rates within 5 %, buffers within 20 %, the round-trip time within 1 %."""
    rng = random.Random(f"lines {first}")
    for seed in range(first + 1, first + 11):
        down = round(10 ** rng.uniform(0.7, 2.0), 1)
        up = round(max(1.0, down / rng.choice([1, 2, 5, 10])), 2)
        rtt_ms = rng.uniform(8, 120)
        buffers = (rng.uniform(60, 500), rng.uniform(80, 900))
        line = sj.line.measure(*flent(tmp_path, line_of(down, up, rtt_ms, buffers), rtt_ms, seed))
        assert line.down_bps is not None
        assert line.up_bps is not None
        assert line.rtt_s is not None
        assert line.down_bps.value == pytest.approx(down * 1e6, rel=0.05)
        assert line.up_bps.value == pytest.approx(up * 1e6, rel=0.05)
        assert line.rtt_s.value == pytest.approx(rtt_ms / 1e3, rel=0.01)
        for one, ms in zip((line.down_buffer_s, line.up_buffer_s), buffers, strict=True):
            assert one is not None
            assert one.value == pytest.approx(ms / 1e3, rel=0.2)
        assert line.drop_tail == {"down": True, "up": True}


def test_the_scenario_of_a_line_has_the_measured_delay(tmp_path: Path) -> None:
    """A simulation of a measured line is measured again: rates, buffers, grade."""
    links = line_of(50, 10, 30, (150, 300))
    line = sj.line.measure(*flent(tmp_path, links, 30))
    tree = sj.line.scenario(line)
    again = sj.line.measure(*flent(tmp_path, tree["links"], 30, seed=2))
    for one, other in ((line.down_bps, again.down_bps), (line.up_buffer_s, again.up_buffer_s)):
        assert one is not None
        assert other is not None
        assert other.value == pytest.approx(one.value, rel=0.1)
    assert again.grade() == line.grade()
    figure = sj.line.draw(line, tmp_path / "line.png")
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["load down", "load up"]
    assert (tmp_path / "line.png").stat().st_size > 10_000


def test_load_in_both_directions_gives_the_sum_of_the_buffers(tmp_path: Path) -> None:
    """RRUL loads both directions at once: their delays cannot be told apart."""
    result = sj.simulate("rrul")
    every = {name: f.series.delivered_bytes * 8e-6 / STEP_S for name, f in result.flows.items()}
    queues = [np.nan_to_num(one.series.sojourn_s) * 1e3 for one in result.links.values()]
    ping = (50 + np.sum(queues, axis=0)).tolist()
    results = {f"TCP {name}": v.tolist() for name, v in every.items() if "load" in name}
    path = tmp_path / "rrul.flent.gz"
    tree = {"x_values": result.time_s.tolist(), "results": results | {"Ping (ms) ICMP": ping}}
    path.write_bytes(gzip.compress(json.dumps(tree).encode()))
    line = sj.line.measure(path)
    assert line.both_buffer_s is not None
    assert line.down_buffer_s is line.up_buffer_s is None
    assert line.down_bps is not None
    assert line.down_bps.value == pytest.approx(20e6, rel=0.05)
    limits = [one["qdisc"]["limit"] for one in sj.line.scenario(line)["links"].values()]
    assert len(limits) == 2


PING = """\
PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.
[1700000000.000000] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=20.1 ms
[1700000000.200000] 64 bytes from 192.0.2.1: icmp_seq=2 ttl=57 time=20.4 ms
[1700000000.600000] 64 bytes from 192.0.2.1: icmp_seq=4 ttl=57 time=20.2 ms

--- 192.0.2.1 ping statistics ---
4 packets transmitted, 3 received, 25% packet loss, time 600ms
"""
BUSYBOX = "64 bytes from 192.0.2.1: seq=0 ttl=57 time=20.125 ms\n64 bytes from 192.0.2.1: seq=2 ttl=57 time=30 ms\n"  # noqa: E501


def iperf(*, reverse: bool, mbit: float) -> str:
    """Return what `iperf3 -J` prints."""
    stream = {"rtt": 0 if reverse else 65_000}
    intervals = [
        {"streams": [stream], "sum": {"start": n, "end": n + 1, "bits_per_second": mbit * 1e6}}
        for n in range(12)
    ]
    return json.dumps({"start": {"test_start": {"reverse": int(reverse)}}, "intervals": intervals})


def irtt() -> str:
    """Return what `irtt client -o` writes."""
    trips = [
        {"delay": {"rtt": 20_000_000} if n % 5 else {}, "lost": "false",
         "timestamps": {"client": {"send": {"wall": 10**18 + n * 10**7}}}}
        for n in range(50)
    ]  # fmt: skip
    return json.dumps({"round_trips": trips})


def test_files_of_ping_iperf3_and_irtt(tmp_path: Path) -> None:
    """Each form is known by its contents; times and units are as the tools write them."""
    for name, text in (("ping", PING), ("busybox", BUSYBOX), ("irtt", irtt())):
        (tmp_path / name).write_text(text)
    ping = read(tmp_path / "ping")
    assert ping.time_s == pytest.approx([0.0, 0.2, 0.6])
    assert ping.rtt_s == pytest.approx([0.0201, 0.0204, 0.0202])
    assert read(tmp_path / "busybox").time_s == pytest.approx([0.0, 2.0])
    trips = read(tmp_path / "irtt")
    assert trips.time_s[-1] == pytest.approx(0.49)
    assert np.isfinite(trips.rtt_s).sum() == 40
    for name, reverse in (("down.json", True), ("up.json", False)):
        (tmp_path / name).write_text(iperf(reverse=reverse, mbit=95 if reverse else 9.5))
    line = sj.line.measure(tmp_path / "down.json", tmp_path / "up.json", idle=[tmp_path / "ping"])
    assert line.down_bps is not None
    assert line.down_bps.value == pytest.approx(95e6 * 1500 / 1448)
    assert line.up_bps is not None
    assert line.up_bps.value == pytest.approx(9.5e6 * 1500 / 1448)
    # The sender of an upload measures round-trip times itself.
    assert line.up_delay_s is not None
    assert line.up_delay_s.value == pytest.approx(0.065 - 0.0201, rel=0.01)
    assert line.down_delay_s is None


def test_intervals_that_iperf3_omits_do_not_count(tmp_path: Path) -> None:
    """With -O the first seconds, often faster than the rest, are in the file all the same."""
    tree = json.loads(iperf(reverse=True, mbit=20))
    for one in tree["intervals"][:8]:
        one["sum"] |= {"omitted": True, "bits_per_second": 90e6}
    (tmp_path / "down.json").write_text(json.dumps(tree))
    assert read(tmp_path / "down.json").down_bps == pytest.approx([20e6] * 4)


def test_the_rate_of_an_upload_is_a_mean(tmp_path: Path) -> None:
    """Iperf3 counts what it writes into the buffer of its socket: 2, 0 or 1 Mbit in a second."""
    tree = json.loads(iperf(reverse=False, mbit=0))
    for n, one in enumerate(tree["intervals"]):
        one["sum"]["bits_per_second"] = (2e6, 0.9e6, 0.7e6)[n % 3]
    (tmp_path / "up.json").write_text(json.dumps(tree))
    (tmp_path / "ping.txt").write_text(PING)
    line = sj.line.measure(upload=[tmp_path / "up.json", tmp_path / "ping.txt"])
    assert line.up_bps is not None
    # 20 % of the 12 samples are slow start.
    mean = sum((2e6, 0.9e6, 0.7e6)[n % 3] for n in range(2, 12)) / 10
    assert line.up_bps.value == pytest.approx(mean * 1500 / 1448)
    assert "10 samples of what the sender wrote" in line.up_bps.note


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.flent.gz",
            gzip.compress(bytes(range(256)), mtime=0)[:60],  # the name of the test has it
            "the compressed file is damaged or cut",
        ),
        ("a.json", b"{}", "is neither a data file of flent"),
        ("a.txt", b"hello", "is neither a data file of flent"),
        ("a.json", b'{"error": "unable to connect"}', "iperf3 failed"),
        ("a.json", b'{"intervals": [{}], "start": {"test_start": {}}}', "is damaged"),
        (
            "a.json",
            b'{"intervals": [{}], "start": {"test_start": {"protocol": "UDP"}}}',
            'is a test of "UDP": only TCP fills a line by itself',
        ),
        ("a.json", b'{"x_values": [], "results": {}}', "has no sample"),
        ("a.json", b'{"x_values": [1, "b"], "results": {}}', "is damaged"),
    ],
)
def test_bad_files_are_refused(
    name: str, content: bytes, message: str, tmp_path: Path, sojourn: Command
) -> None:
    """One line with the file and the reason."""
    (tmp_path / name).write_bytes(content)
    code, _, err = sojourn("line", "measure", tmp_path / name)
    assert code == 2
    assert err.count("\n") == 1
    assert name in err
    assert message in err


def test_the_command_measures_and_verifies(tmp_path: Path, sojourn: Command) -> None:
    """A table, a scenario that runs, a figure; and a verdict with an exit code."""
    bloated = flent(tmp_path, line_of(50, 10, 30, (400, 600)), 30)
    code, out, err = sojourn(
        "line", "measure", *bloated, "--out", tmp_path / "line.toml", "--plot", tmp_path / "f.png"
    )
    assert (code, err) == (0, "")
    assert "idle round trip" in out
    assert "grade F by the delay" in out
    assert sojourn("run", tmp_path / "line.toml", "--set", "duration=15s")[0] == 0
    assert (tmp_path / "f.png").stat().st_size > 10_000
    code, out, _ = sojourn("line", "measure", *bloated, "--json")
    assert json.loads(out)["grade"] == "F"
    (tmp_path / "after").mkdir()
    links = line_of(47.5, 9.5, 30, (400, 600))
    for one in links.values():
        one["qdisc"] = "fq_codel"
    better = flent(tmp_path / "after", links, 30)
    pairs = [word for f in bloated for word in ("--before", f)]
    pairs += [word for f in better for word in ("--after", f)]
    code, out, _ = sojourn("line", "verify", *pairs, "--plot", tmp_path / "change.png")
    assert (code, "all of it holds" in out) == (0, True)
    assert "grade F before" in out
    turned = [{"--before": "--after", "--after": "--before"}.get(str(w), w) for w in pairs]
    code, out, _ = sojourn("line", "verify", *turned)
    assert (code, "not all of it holds" in out) == (1, True)
    assert sojourn("line", "verify", *pairs, "--limit", "1us")[0] == 1
    assert "no file to read" in sojourn("line", "measure")[2]


def program(folder: Path, name: str, code: str) -> None:
    """Write a program in Python that stands for a tool."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\nimport sys\n{code}\n")
    path.chmod(0o755)


def test_programs_are_run_and_their_faults_are_named(
    tmp_path: Path, sojourn: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--to` runs ping idle, then iperf3 and ping in both directions."""
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = sojourn("line", "measure", "--to", "192.0.2.1")
    assert code == 2
    assert "ping is not installed" in err
    program(tmp_path, "ping", f"print({PING!r})")
    texts = [iperf(reverse=True, mbit=95), iperf(reverse=False, mbit=9.5)]
    program(tmp_path, "iperf3", f"print({texts[0]!r} if '-R' in sys.argv else {texts[1]!r})")
    keep = tmp_path / "raw"
    code, out, err = sojourn(
        "line", "measure", "--to", "192.0.2.1", "--seconds", "2", "--keep", keep, "--json"
    )
    assert (code, err) == (0, "")
    tree = json.loads(out)
    assert tree["down_bps"]["value"] > tree["up_bps"]["value"] > 9e6
    assert sorted(one.name for one in keep.iterdir()) == [
        "download-iperf3.json", "download-ping.txt", "idle-ping.txt", "upload-iperf3.json",
        "upload-ping.txt",
    ]  # fmt: skip
    again = sj.line.measure(keep)
    assert again.down_bps is not None
    assert again.down_bps.value == tree["down_bps"]["value"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(sj.InputError, match="has no file like"):
        sj.line.measure(tmp_path / "empty")
    program(tmp_path, "ping", "sys.exit('ping: unknown host')")
    code, _, err = sojourn("line", "measure", "--to", "192.0.2.1", "--seconds", "2")
    assert (code, "ping failed: ping: unknown host" in err) == (2, True)
    assert "is not a host" in sojourn("line", "measure", "--to", "-c")[2]


ATTEMPTS = 3
"""Attempts of a measurement on a machine that does other work and cannot keep up."""


def measured(qdisc: str, folder: Path) -> Any:
    """Return what is measured over a link of 24 and 8 Mbit/s."""
    options = ["--rate", "8mbit", "--delay", "5ms", "--qdisc", qdisc]
    options += ["--down", "rate=24mbit", "--down", "delay=5ms", "--down", f"qdisc={qdisc}"]
    words = ["-m", "sojourn", "line", "measure", "--to", FAR, "--seconds", "6", "--json"]
    done = link(options, [sys.executable, *words, "--keep", str(folder)])
    assert done.returncode == 0, done.stderr
    text = done.stdout
    return json.loads(text[text.index("{") : text.rindex("\n}") + 2])


@pytest.mark.live("iperf3", "ping")
def test_a_bloated_line_is_measured_and_a_change_verified(tmp_path: Path) -> None:
    """Real packets: rates within 10 %, the grade rises from drop-tail to fq_codel."""
    server = subprocess.Popen(["iperf3", "-s"], stdout=subprocess.DEVNULL)
    try:
        for attempt in range(ATTEMPTS):
            grades, rates = [], []
            for name, qdisc in (("before", "droptail(limit=150kB)"), ("after", "fq_codel")):
                tree = measured(qdisc, tmp_path / f"{name}-{attempt}")
                grades.append(tree["grade"])
                rates.append([tree[f"{way}_bps"]["value"] for way in ("down", "up")])
            near = np.allclose(rates, [24e6, 8e6], rtol=0.1)
            if near and grades[0] in ("C", "D") and grades[1] in ("A+", "A"):
                return
        pytest.fail(f"rates {rates}, grades {grades}")
    finally:
        server.kill()
        server.wait()
