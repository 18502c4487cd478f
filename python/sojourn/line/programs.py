"""Measurements by ping and iperf3: the idle line, then a download and an upload."""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from sojourn._sojourn import InputError
from sojourn._util.inputs import shown

PROGRAMS = ("ping", "iperf3")

WRITE = "8K"
"""Bytes of a write of iperf3. An upload is counted by its writes into the buffer of the socket:
with the default, 128 KiB, a second of a slow uplink has a write more or less."""

STREAMS = 4
"""Number of connections of iperf3."""

PERIOD_S = 0.2
"""Time between two pings, the shortest that ping allows everybody."""

START_S = 30
"""Time that a program may take longer than its measurement."""


def measured(host: str, seconds: int) -> dict[str, bytes]:
    """Measure the line to a host on which `iperf3 -s` runs.

    Ping runs on the idle line, then iperf3 and ping at the same time, first down, then up. Returns
    what they wrote, by names of files that begin with the role: "upload-iperf3.json".

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
    count = str(round(seconds / PERIOD_S))
    ping = ["ping", "-n", "-D", "-i", str(PERIOD_S), "-c", count, "-w", str(seconds), host]
    load = ["iperf3", "-c", host, "-J", "-t", str(seconds), "-P", str(STREAMS)]
    texts = {"idle-ping.txt": _output(ping, seconds)}
    with ThreadPoolExecutor(1) as pool:
        for role, words in (("download", [*load, "-R"]), ("upload", [*load, "-l", WRITE])):
            pinging = pool.submit(_output, ping, seconds)
            texts[f"{role}-iperf3.json"] = _output(words, seconds)
            texts[f"{role}-ping.txt"] = pinging.result()
    return texts


def _output(words: list[str], seconds: int) -> bytes:
    """Run a program. iperf3 says in its output what went wrong, ping on standard error."""
    try:
        done = subprocess.run(words, capture_output=True, timeout=seconds + START_S, check=False)
    except subprocess.TimeoutExpired:
        reason = f"did not end {START_S} s after its measurement"
        raise InputError(f"--to: {words[0]} {reason}") from None
    if done.returncode != 0 and done.stderr.strip():
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1]
        raise InputError(f"--to: {words[0]} failed: {reason}")
    return done.stdout
