"""Results on object storage: several machines, kills, and a store that is out of reach."""

import json
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import fsspec
import pytest
from moto.server import ThreadedMotoServer

import sojourn as sj
from support.sweep_cases import AXES, CASE, command, csv, described, failed_seeds, failing, ran

URL = "s3://bucket/load"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server with the interface of S3 and an empty bucket, found by the environment."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    urlopen(Request(f"{address}/moto-api/reset", method="POST")).close()  # the store is global
    for name, value in {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "key",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    # File systems of earlier tests have the addresses of their servers.
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    fsspec.filesystem("s3").mkdir("bucket")
    yield URL
    server.stop()


def names() -> list[str]:
    """Return the names of the parts."""
    system = fsspec.filesystem("s3")
    system.invalidate_cache()
    return sorted(Path(path).name for path in system.find("bucket") if path.endswith(".parquet"))


def test_machines_write_shards_into_one_place(s3: str, tmp_path: Path) -> None:
    """Tables are equal to the undivided sweep; nothing is run twice; no copy is left."""
    folder = described(tmp_path)
    sweep = folder / "sweep.toml"
    lines = [command("sweep", sweep, "--out", s3, "--shard", f"{n}/3") for n in (1, 2, 3)]
    started = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for line in lines]
    for process in started:
        assert f"sojourn results {s3}" in process.communicate()[0]
        assert process.returncode == 0
    assert len(names()) == 3, "small parts of a machine are merged"
    ran("sweep", sweep, "--out", folder / "whole")
    assert sj.results(s3).equals(sj.results(folder / "whole"))
    again = ran("sweep", sweep, "--out", s3)
    assert "0 of 30 runs made" in again.stdout
    shown = ran("results", s3, "--by", "qdisc")
    assert shown.stdout == ran("results", folder / "whole", "--by", "qdisc").stdout
    assert ran("plot", s3, "--y", "sojourn_p99", "--out", folder / "f.png").returncode == 2
    done = ran(
        "plot", s3, "--y", "sojourn_p99", "--x", "n", "--by", "qdisc", "--out", folder / "f.png"
    )
    assert done.returncode == 0
    collected = ran("sweep", "collect", s3, "--out", folder / "here")
    assert collected.returncode == 0
    assert csv(folder / "here") == csv(folder / "whole")


def test_python_writes_and_reads(s3: str, tmp_path: Path) -> None:
    """As with a folder; failures are there too, and are repeated."""
    table = sj.sweep(CASE, AXES, seeds=2, out=s3)
    assert len(table) == len(sj.results(s3)) == 8
    sweep = failing(tmp_path)
    place = f"{s3}-failing"
    done = ran("sweep", sweep, "--out", place, "--trust")
    assert done.returncode == 1
    assert f"the others are in {place}, the same command" in done.stderr
    lost = failed_seeds(place)
    assert lost
    (tmp_path / "fails").unlink()
    again = ran("sweep", sweep, "--out", place, "--trust")
    assert f"{len(lost)} of 24 runs made" in again.stdout
    assert len(sj.results(place)) == 24


def wait_for_upload() -> None:
    """Wait until parts are there, and half a second has added none: an upload is over."""
    until = time.monotonic() + 60
    before = names()
    while time.monotonic() < until:
        time.sleep(0.5)
        if before and before == names():
            return
        before = names()


def test_a_kill_loses_only_the_last_seconds(s3: str, tmp_path: Path) -> None:
    """A sweep continues from what was uploaded."""
    folder = described(tmp_path)
    (folder / "case.json").write_text(json.dumps({**CASE, "duration": "200s"}))
    few = (folder / "sweep.toml").read_text()
    (folder / "sweep.toml").write_text(few.replace("seeds = 5", "seeds = 10_000"))
    line = command("sweep", folder / "sweep.toml", "--out", s3, "--jobs", 1)
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for_upload()
        process.send_signal(signal.SIGKILL)
    kept = sj.results(s3)
    assert 0 < len(kept) < 60_000
    (folder / "sweep.toml").write_text(few)
    there = len(kept.filter(kept["seed"] <= 5))
    assert there > 0
    again = ran("sweep", folder / "sweep.toml", "--out", s3)
    assert f"{30 - there} of 30 runs made" in again.stdout


def test_places_out_of_reach_are_one_line(s3: str, tmp_path: Path) -> None:
    """No bucket, no such protocol, no results, another scenario."""
    folder = described(tmp_path)
    sweep = folder / "sweep.toml"
    sj.sweep({**CASE, "duration": "3s"}, AXES, out=s3)
    cases: list[tuple[list[Any], str]] = [
        (["sweep", sweep, "--out", "s3://none/load"], "s3://none/load: "),
        (["results", "s3://bucket/other"], "s3://bucket/other: there are no results"),
        (["results", "gopher://bucket/other"], "gopher://bucket/other: "),
        (["sweep", sweep, "--out", s3], f"{s3}: holds the runs of a sweep of another scenario"),
    ]
    for arguments, message in cases:
        done = ran(*arguments)
        assert done.returncode == 2, done
        assert done.stderr.startswith(f"sojourn: {message}"), done.stderr
        assert done.stderr.count("\n") == 1


def test_runs_that_cannot_be_uploaded_are_kept(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their folder is named, and can be collected."""

    async def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    system = fsspec.get_filesystem_class("s3")
    monkeypatch.setattr(system, "_pipe_file", refused)
    system.clear_instance_cache()
    with pytest.raises(sj.InputError, match=r"permission denied; the runs are in (\S+)$") as error:
        sj.sweep(CASE, AXES, out=s3)
    folder = str(error.value).rpartition(" ")[2]
    assert len(sj.results(folder)) == 4
    assert [path.name for path in tmp_path.iterdir()] == [Path(folder).name]
