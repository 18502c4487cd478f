"""Shared fixtures: a small scenario, and the command run in this process."""

import os
import signal
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


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests with the mark `live` where a live link is impossible.

    `make test` runs them alone: they take the first free block of addresses of the machine, and
    measure time. It runs the others in two processes.
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
