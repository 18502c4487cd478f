"""Measurements by ping and iperf3: the idle line, then a download and an upload."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from sojourn._sojourn import InputError
from sojourn._util.inputs import shown

PROGRAMS = ("ping", "iperf3")

STREAMS = 4
"""Number of connections of iperf3."""

PERIOD_S = 0.2
"""Time between two pings, the shortest that ping allows everybody."""

START_S = 30
"""Time that a program may take longer than its measurement."""


def measured(host: str, seconds: int, keep: Path | None = None) -> dict[str, list[Path]]:
    """Measure the line to a host on which `iperf3 -s` runs; return the files by role.

    Ping runs on the idle line, then iperf3 and ping at the same time, first down, then up. The
    roles have the names that `measure_line` has. The files are in `keep`, or in a temporary folder.

    Raises
    ------
    InputError
        If a program is missing or fails.
    """
    if host.startswith("-"):
        raise InputError(f"--to: {shown(host)} is not a host")
    for program in PROGRAMS:
        if shutil.which(program) is None:
            raise InputError(
                f"--to: {program} is not installed; give files that other tools wrote instead"
            )
    folder = Path(tempfile.mkdtemp(prefix="sojourn-line-")) if keep is None else keep
    folder.mkdir(parents=True, exist_ok=True)
    files = {role: [folder / f"{role}-ping.txt"] for role in ("idle", "download", "upload")}
    _wait(_ping(host, seconds, files["idle"][0]), seconds, "ping")
    for role, words in (("download", ["-R"]), ("upload", [])):
        ping = _ping(host, seconds, files[role][0])
        report = folder / f"{role}-iperf3.json"
        load = _start(
            ["iperf3", "-c", host, "-J", "-t", str(seconds), "-P", str(STREAMS), *words], report
        )
        _wait(load, seconds, "iperf3")
        _wait(ping, seconds, "ping")
        files[role].append(report)
    return files


def _ping(host: str, seconds: int, output: Path) -> "subprocess.Popen[bytes]":
    count = round(seconds / PERIOD_S)
    words = ["ping", "-n", "-D", "-i", str(PERIOD_S), "-c", str(count), "-w", str(seconds), host]
    return _start(words, output)


def _start(words: list[str], output: Path) -> "subprocess.Popen[bytes]":
    with output.open("wb") as file:
        return subprocess.Popen(words, stdout=file, stderr=subprocess.PIPE)


def _wait(process: "subprocess.Popen[bytes]", seconds: int, program: str) -> None:
    """Wait for a program. iperf3 says in its report what went wrong, ping on standard error."""
    try:
        _, errors = process.communicate(timeout=seconds + START_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise InputError(f"--to: {program} did not end {START_S} s after its measurement") from None
    if process.returncode != 0 and errors.strip():
        reason = errors.decode("utf-8", "replace").strip().splitlines()[-1]
        raise InputError(f"--to: {program} failed: {reason}")
