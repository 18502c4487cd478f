"""Files of limited size: every reader refuses more in one line; pipes and devices are read."""

import gzip
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

import sojourn as sj
from conftest import Command
from sojourn._util import parquet
from sojourn._util.parquet import check_table
from sojourn._util.reading import FILE_MAX, bytes_of_file

TOO_LARGE = "larger than 1 MB, the limit of files; the environment variable SOJOURN_FILE_MAX"

RUN = """\
duration = "1s"
[links.up]
rate = "5mbit"
{trace}
[[flows]]
name = "f"
path = ["up"]
{source}
"""


@pytest.fixture(autouse=True)
def _limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FILE_MAX, "1MB")


def scenario(folder: Path, trace: str = "", source: str = "") -> Path:
    """Write a scenario that names files; return its path."""
    path = folder / "run.toml"
    path.write_text(RUN.format(trace=trace, source=source))
    return path


def arrivals(folder: Path) -> Path:
    """Write a recording of one packet; return its path."""
    path = folder / "arrivals.csv"
    path.write_text("i,t_us,flow,size_B\n0,0,0,1500\n")
    return path


def feed(pipe: Path) -> None:
    """Write zeros to a pipe until it is closed."""
    with suppress(BrokenPipeError), pipe.open("wb", buffering=0) as into:
        while True:
            into.write(bytes(1 << 16))


def refused(result: tuple[int, str, str], name: object, text: str = TOO_LARGE) -> None:
    """Check that a command refused a file by its size, in one line."""
    code, _, err = result
    assert (code, err.count("\n")) == (2, 1), err
    assert f"{name}: {text}" in err, err


READERS: dict[str, Callable[[Path, Path], tuple[object, ...]]] = {
    "trace": lambda folder, file: ("run", scenario(folder, f'trace = "{file}"')),
    "bins": lambda folder, file: (
        "run", scenario(folder, f'trace = {{ file = "{file}", bin_ms = 5 }}')
    ),
    "source": lambda folder, file: (
        "run", scenario(folder, source=f'source = {{ name = "trace", path = "{file}" }}')
    ),
    "replay": lambda folder, file: (
        "replay", file, "--qdisc", "codel", "--rate", "1mbit", "--out", folder / "out.csv"
    ),
    "follow": lambda folder, file: (
        "replay", arrivals(folder), "--qdisc", "codel", "--rate", "1mbit",
        "--out", folder / "out.csv", "--follow", file
    ),
    "tc": lambda _, file: ("tc", "import", file),
}  # fmt: skip
"""A command that reads a file, by what the file is."""

OF_REGULAR_FILES: dict[str, Callable[[Path, Path], tuple[object, ...]]] = {
    "run": lambda _, file: ("run", file),
    "compare": lambda _, file: ("compare", file, "--qdisc", "codel,pie"),
    "explain": lambda _, file: ("explain", file),
    "export": lambda _, file: ("tc", "export", file),
    "line": lambda _, file: ("recommend", "--rtt", "9ms", "--up", "1mbit", "--down", file),
}
"""Commands that look at the name or the kind of the file first."""


@pytest.mark.parametrize("reader", READERS)
def test_devices_and_pipes_are_read_to_the_limit(
    sojourn: Command, tmp_path: Path, reader: str
) -> None:
    """A device without an end, and a pipe that is written for ever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=feed, args=(pipe,))
    for file in (Path("/dev/zero"), pipe):
        arguments = READERS[reader](tmp_path, file)
        if file == pipe:
            writer.start()
        refused(sojourn(*arguments), file)
    writer.join()


@pytest.mark.parametrize("reader", [*READERS, *OF_REGULAR_FILES])
def test_large_files_are_not_read(sojourn: Command, tmp_path: Path, reader: str) -> None:
    """A file of 50 GB without contents."""
    file = tmp_path / "large.json"
    with file.open("wb") as sparse:
        sparse.truncate(50_000_000_000)
    refused(sojourn(*(READERS | OF_REGULAR_FILES)[reader](tmp_path, file)), file)


@pytest.mark.parametrize("reader", ["source", "replay", "follow"])
def test_compressed_files_have_the_limit(sojourn: Command, tmp_path: Path, reader: str) -> None:
    """A gzip file of 60 kB that becomes 60 MB."""
    file = tmp_path / "bomb.csv.gz"
    file.write_bytes(gzip.compress(b"time_s,size_bytes\n" + b"0,1500\n" * 9_000_000))
    assert file.stat().st_size < 100_000
    refused(sojourn(*READERS[reader](tmp_path, file)), f"{file}: decompressed")


def test_toml_has_a_tenth_of_the_limit(sojourn: Command, small: Path, tmp_path: Path) -> None:
    """A scenario and a sweep in TOML, of which the memory is a hundred times the size."""
    text = small.read_text() + "#" * 100_000 + "\n"
    file = tmp_path / "large.toml"
    file.write_text(text)
    limit = "larger than 100000 bytes, the limit of TOML files"
    refused(sojourn("run", file), file, limit)
    refused(sojourn("sweep", file, "--out", tmp_path / "out"), file, limit)


def test_standard_input_has_the_limit() -> None:
    """`tc import` reads a pipe and a device on standard input."""
    program: list[str | Path] = [Path(sys.executable).with_name("sojourn"), "tc", "import"]
    with Path("/dev/zero").open("rb") as zeros:
        done = subprocess.run(program, stdin=zeros, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"sojourn: standard input: {TOO_LARGE}")
    raw = subprocess.run(program, input=b"qdisc \xff", capture_output=True)
    assert raw.stderr == b"sojourn: standard input: this is not text in UTF-8\n"
    text = "qdisc tbf 1: dev eth0 root rate 1Mbit burst 5Kb lat 50ms"
    done = subprocess.run(program, input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_stored_results_have_the_limit(
    sojourn: Command, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JSON files of a folder, and the number of rows of its tables."""
    folder = tmp_path / "run"
    assert sojourn("run", small, "--out", folder)[0] == 0
    summary = (folder / "summary.json").read_bytes()
    (folder / "summary.json").write_bytes(summary + b" " * 1_000_000)
    for command in ("explain", "results"):
        refused(sojourn(command, folder), folder / "summary.json")
    with pytest.raises(sj.InputError, match="the limit of files"):
        sj.load_result(folder)
    (folder / "summary.json").write_bytes(summary)
    assert sj.load_result(folder).flows
    frame = pl.select(pl.repeat(1, 40_000_000).alias("start_s"), pl.lit(2).alias("flow"))
    frame.write_parquet(folder / "fct.parquet", compression="zstd")
    assert (folder / "fct.parquet").stat().st_size < 1_000_000
    check_table(folder / "fct.parquet", folder / "fct.parquet")  # 640 MB are allowed
    monkeypatch.setattr(parquet, "TABLE_BYTES", 500_000_000)
    with pytest.raises(sj.InputError, match=r"40000000 rows of 2 columns, more than 0\.5 GB"):
        sj.load_result(folder)


def test_the_limit_can_be_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Units of the variable, its default, and values that are no sizes."""
    file = tmp_path / "file"
    file.write_bytes(b"x" * 2500)
    for limit, fits in (("2kB", False), ("3kB", True), ("2MB", True), ("1GB", True), ("", True)):
        monkeypatch.setenv(FILE_MAX, limit)
        if fits:
            assert bytes_of_file(file) == b"x" * 2500
        else:
            with pytest.raises(sj.InputError, match=r"larger than 2000 bytes, the limit of files"):
                bytes_of_file(file)
    monkeypatch.delenv(FILE_MAX)
    with pytest.raises(sj.InputError, match=r"larger than 100 MB"):
        bytes_of_file(Path("/dev/zero"))
    for limit in ("1", "1 GB", "-1GB", "1.5GB", "inf", "1gb", "9999999GB"):
        monkeypatch.setenv(FILE_MAX, limit)
        with pytest.raises(sj.InputError, match=re.escape(f'{FILE_MAX}: "{limit}" is not a size')):
            bytes_of_file(file)


def test_a_pipe_is_read_whole(sojourn: Command, tmp_path: Path) -> None:
    """A pipe with a short text, as of a process substitution of a shell."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = "qdisc tbf 1: dev eth0 root rate 1Mbit burst 5Kb lat 50ms"
    writer = threading.Thread(target=pipe.write_text, args=(text,))
    writer.start()
    code, out, err = sojourn("tc", "import", pipe)
    writer.join()
    assert (code, err) == (0, "")
    assert "1mbit" in out


ROWS = range(1, 2001)
CONTENTS = {
    "trace": "".join(f"{n}\n" for n in ROWS),
    "bins": "".join(f"{n}\n" for n in ROWS),
    "source": "time_s,size_bytes\n" + "".join(f"{n / 1000},1500\n" for n in ROWS),
    "replay": "i,t_us,flow,size_B\n" + "".join(f"{n},{n},0,1500\n" for n in ROWS),
    "follow": "i,dropped,marked,note\n0,0,0," + "x" * 10_000,
    "tc": "tc qdisc add dev eth0 root pie\n" + "# a comment\n" * 1000,
}
"""Valid contents, longer than what a buffered read takes from a pipe."""


@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_is_read_once(sojourn: Command, tmp_path: Path, reader: str) -> None:
    """A second look at a pipe lacks bytes, or waits for ever."""
    text = CONTENTS[reader].encode()
    assert 8192 < len(text) < 60_000  # one write
    out, into = os.pipe()
    os.write(into, text)
    os.close(into)
    code, _, err = sojourn(*READERS[reader](tmp_path, Path(f"/dev/fd/{out}")))
    os.close(out)
    assert code == 0, err
