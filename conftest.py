"""Shared fixtures: a small scenario, and the command run in this process."""

import ctypes
import gc
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sojourn.cli.main import main

os.environ.pop("COLUMNS", None)  # a terminal's width, which would change tables

for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    # Background jobs of a script, and nohup, ignore these; commands of the tests must not.
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)

SMALL = """\
name = "small"
duration = "3s"
warmup = "1s"
seed = 1

[links.up]
rate = "5mbit"
delay = "10ms"
qdisc = { name = "codel", limit = "100kB", target = "5ms" }

[[flows]]
name = "bulk"
count = 2
source = { name = "bulk", start = "uniform(0s, 500ms)" }
tcp = { name = "newreno", packet = "1500B" }
path = ["up"]
rtt = "30ms"

[[flows]]
name = "short"
source = { name = "transfers", size = "20kB", gap = "exponential(100ms)" }
path = ["up"]
rtt = "30ms"

[[flows]]
name = "call"
source = { name = "cbr", rate = "64kbit", packet = "200B" }
path = ["up"]
rtt = "30ms"
"""
"""Two uploads, short transfers and a call over one link; a run of some milliseconds."""

EXAMPLES = Path(__file__).parent / "examples"

Command = Callable[..., tuple[int, str, str]]


def pytest_configure(config: pytest.Config) -> None:
    """Run each process of `pytest -n 4 -m live` in a network namespace of its own, as root.

    Live tests wait most of the time, so several processes take less time, and the links and
    addresses of one do not disturb the others. Cycles are collected more seldom than by default:
    tests make millions of objects in trees, which need no search for cycles.
    """
    gc.set_threshold(100_000, 50, 100)
    worker = hasattr(config, "workerinput")
    if not worker or config.getoption("markexpr") != "live" or os.geteuid() != 0:
        return
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


LONG = (
    *("test_nat_policy", "test_live_qdiscs", "test_emulate", "test_line_measure", "test_line_walk"),
    *("test_live", "test_nat", "test_live_start"),
    *("test_additions", "test_mutated_options", "test_paper", "test_recommend_kernel"),
    "test_netem",
)
"""Files that take longest: first those with live tests, then others."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the processes of `pytest -n` start with LONG, so that none of them ends late."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda it: LONG.index(it.path.stem) if it.path.stem in LONG else len(LONG))


CLONE_NEWNET = 0x40000000
"""Flag of unshare(2): a new network namespace."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests with the mark `live` where a live link is impossible.

    `make test` runs them apart from the others, because they measure time.
    """
    for mark in item.iter_markers("live"):
        from live_link import require  # copies the environment, so not before the change above

        require(*mark.args, **mark.kwargs)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return the file of the small scenario."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def sojourn(capsys: pytest.CaptureFixture[str]) -> Command:
    """Return the command as a function from arguments to exit code, stdout and stderr."""

    def command(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return command
