"""Files for other tools: flent opens ours; the log of mm-link has its format."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sojourn as sj
from conftest import Command
from sojourn.result.exchange import FLENT_TESTS
from sojourn.scenario import named


def run(name: str, **options: str) -> sj.Result:
    """Return the result of a named scenario with a packet log."""
    tree = {**named.tree(name, {"rate": "2mbit", **options}), "packet_log": True}
    return sj.simulate(tree)


@pytest.mark.parametrize("name", FLENT_TESTS)
def test_flent_opens_the_file(name: str, tmp_path: Path) -> None:
    """Its summary has the means of our series; no series of the test is missing."""
    result = run(name)
    file = tmp_path / f"{name}.flent.gz"
    sj.write_flent(result, file)
    command = [sys.executable, "-m", "flent", str(file), "-f", "summary"]
    out = subprocess.run(command, check=True, capture_output=True, text=True)
    assert f"Summary of {name} test run" in out.stdout
    lines = dict(re.findall(r"^ (\S.*?)\s*:\s+([\d.]+) ", out.stdout, re.MULTILINE))
    way = "download" if name == "tcp_ndown" else "upload"
    link = result.links["down" if way == "download" else "up"]
    mean = float(lines[f"TCP {way} sum"])
    assert mean <= 2.0
    assert mean > 0.5 * link["utilisation"] * 2
    assert float(lines["Ping (ms) ICMP"]) > 50.0, "the propagation time is part of it"
    assert "No data" not in out.stdout + out.stderr
    assert "Missing" not in out.stderr


def test_flent_draws_the_file(tmp_path: Path) -> None:
    """The default figure of rrul."""
    sj.write_flent(run("rrul"), tmp_path / "rrul.flent.gz")
    figure = tmp_path / "rrul.png"
    command = [sys.executable, "-m", "flent", str(tmp_path / "rrul.flent.gz")]
    subprocess.run(
        [*command, "-p", "all_scaled", "-o", str(figure)], check=True, capture_output=True
    )
    assert figure.read_bytes()[:4] == b"\x89PNG"


def test_series_are_those_of_the_result(tmp_path: Path) -> None:
    """Sums of goodput are the bytes delivered; equal runs give equal files."""
    result = run("tcp_nup")
    for file in ("a.flent.gz", "b.flent.gz"):
        sj.write_flent(result, tmp_path / file)
    tree = json.loads(gzip.decompress((tmp_path / "a.flent.gz").read_bytes()))
    step = tree["metadata"]["STEP_SIZE"]
    bits = sum(tree["results"]["TCP upload::1"]) * step * 1e6
    delivered = float(result.flows["upload.0"].series["delivered_bytes"].sum()) * 8
    assert bits == pytest.approx(delivered, rel=1e-3)
    assert all(len(v) == len(tree["x_values"]) for v in tree["results"].values())
    first, second = (
        gzip.decompress((tmp_path / f).read_bytes()) for f in ("a.flent.gz", "b.flent.gz")
    )
    assert first.replace(b"a.flent.gz", b"b.flent.gz") == second


def test_the_log_has_the_format_of_mm_link(tmp_path: Path) -> None:
    """Every line; each arrival departs, is dropped, or waits at the end; times ascend."""
    result = run("drop_and_back", rtt="40ms")
    log = tmp_path / "down.log"
    sj.write_mahimahi(result, log)
    lines = log.read_text().splitlines()
    assert "# base timestamp: 0" in lines[:6]
    events = lines[5:]
    form = r"(\d+) (?:\+ \d+|# 1504|- \d+ \d+)|# (\d+) d 1 \d+"
    matches = [re.fullmatch(form, line) for line in events]
    assert all(matches)
    times = [int(m[1] or m[2]) for m in matches if m]
    assert times == sorted(times)
    kinds = {kind: sum(f" {kind} " in line for line in events) for kind in "+-d"}
    departed = [line.split() for line in events if " - " in line]
    assert kinds["+"] >= kinds["-"] + kinds["d"]
    assert kinds["+"] - kinds["-"] - kinds["d"] <= result.links["down"]["queue_mean_packets"] + 100
    assert all(0 <= int(delay) <= int(at) for at, _, _, delay in departed)
    capacity = 1504 * 8 * sum(" # " in line and " d " not in line for line in events)
    assert capacity == pytest.approx(2e6 * 15 - 1e6 * 2, rel=0.01), "half of the rate for 2 s"


def test_the_command_writes_both(tmp_path: Path, sojourn: Command) -> None:
    """Samples and packet log are recorded on request."""
    flent, log = tmp_path / "t.flent.gz", tmp_path / "mm.log"
    options = ("--rate", "1mbit", "--flent", flent, "--mahimahi", log)
    assert sojourn("run", "tcp_ndown", *options)[0] == 0
    assert flent.exists()
    assert log.exists()
    for arguments, message in (
        (("run", "voip", "--flent", flent), "is not a test that flent plots, allowed: rrul"),
        (("run", "rrul", "--flent", tmp_path / "a.json"), "must end in .flent.gz"),
        (("run", "rrul", "--mahimahi", tmp_path), "is a directory"),
    ):
        code, out, err = sojourn(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err
