"""A live link of which any process is killed leaves nothing behind.

Each round starts a link under load and sends SIGKILL to a random process of it at a random moment.
Then devices, routes, namespaces and processes must be as before. There are four rounds, or
`SOJOURN_ROUNDS` times four (`make kill` runs 52).
"""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from live_link import ENVIRONMENT, FAR, Found, arguments, python, traces

pytestmark = pytest.mark.live

ROUNDS = 4 * int(os.environ.get("SOJOURN_ROUNDS", "1"))
SEED = int(os.environ.get("SOJOURN_SEED", "1"))

LOAD = """
import os, socket, sys
for _ in range(3):
    if os.fork() == 0:
        break
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    try:
        s.sendto(bytes(1000), (sys.argv[1], 9))
    except OSError:
        pass
"""
"""Four processes that send as fast as possible, without end."""


SCENARIO = """
duration = "100s"
links.up = { rate = "20mbit", delay = "5ms", qdisc = "fq_codel" }
[[flows]]
name = "long"
count = 20
path = ["up"]
tcp = "cubic"
"""


def below(pid: int) -> list[int]:
    """Return `pid` and the processes that descend from it."""
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *(p for child in children for p in below(int(child)))]
    return []


def started(pid: int, deadline: float) -> bool:
    """Wait until the link and its load run; return False at the deadline."""
    while time.monotonic() < deadline:
        if len(below(pid)) >= 7:  # the link, unshare, the init process, four of the load
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("number", range(ROUNDS))
def test_nothing_is_left_of_a_link_that_is_killed(number: int) -> None:
    """No device, route, namespace or process."""
    rng = random.Random(SEED * 1000 + number)
    token = f"token-{os.getpid()}-{number}"
    before = traces(token)
    line = arguments(
        ["--rate", "50mbit", "--delay", "5ms", "--qdisc", "fq_codel"],
        python(LOAD, FAR, token),
        "tun" if number % 4 < 2 else "veth",
    )
    with subprocess.Popen(
        line, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        if number % 2:
            # Every second link is killed during its start.
            time.sleep(rng.uniform(0, 1.0))
        else:
            assert started(process.pid, time.monotonic() + 60)
            time.sleep(rng.uniform(0, 0.3))
        parts = below(process.pid)
        victim = rng.choice(parts)
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        if number % 2 or victim in parts[3:]:
            # The victim may have been a tool that is not needed, or part of the load: also kill the
            # link.
            process.kill()
    deadline = time.monotonic() + 60
    while (left := _new(before, traces(token))) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == {}


@pytest.mark.live(tun=True)
@pytest.mark.parametrize("number", range(ROUNDS // 2))
def test_a_killed_run_on_real_packets_leaves_nothing(number: int, tmp_path: Path) -> None:
    """Only its descriptors and threads keep its networks alive."""
    token = f"token-{os.getpid()}-run-{number}"
    file = tmp_path / f"{token}.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    before = traces(token)
    line = [sys.executable, "-m", "sojourn", "run", str(file), "--engine", "live"]
    with subprocess.Popen(
        line, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        time.sleep(random.Random(SEED * 1000 + number).uniform(0, 3))
        process.kill()
    deadline = time.monotonic() + 60
    while (left := _new(before, traces(token))) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == {}


def _new(before: Found, after: Found) -> Found:
    """Return the entries of `after` that are not in `before`."""
    return {what: new for what in before if (new := after[what] - before[what])}
