"""Sweeps for tests: a scenario, its axes, the command that runs them, and runs that fail."""

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import sojourn as sj
from sojourn.cli.main import main
from sojourn.sweeps.store import Store

CASE: dict[str, Any] = {
    "duration": "2s",
    "warmup": "500ms",
    "links": {"up": {"rate": "5mbit", "delay": "5ms", "qdisc": {"name": "codel"}}},
    "flows": [
        {
            "name": "bulk",
            "count": 2,
            "path": ["up"],
            "rtt": "uniform(20ms, 40ms)",
            "source": {"name": "bulk", "start": "uniform(0s, 100ms)"},
        }
    ],
}

AXES = {"qdisc": {"set": "up.qdisc", "values": ["droptail", "codel"]}, "bulk.count": [1, 3]}

SWEEP = """
scenario = "case.json"
seeds = 5
[axes]
qdisc = { set = "up.qdisc", values = ["droptail", "codel"] }
n = { set = "bulk.count", values = [1, 2, 4] }
"""


def described(folder: Path) -> Path:
    """Return a folder with a sweep file."""
    (folder / "case.json").write_text(json.dumps(CASE))
    (folder / "sweep.toml").write_text(SWEEP)
    return folder


def command(*arguments: Any) -> list[str]:
    """Return the command line of sojourn."""
    return [str(Path(sys.executable).with_name("sojourn")), *map(str, arguments)]


def ran(*arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, which takes half a second to start."""
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False)


def called(*arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    words = [str(argument) for argument in arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def csv(directory: Path) -> str:
    """Return the stored runs as text."""
    return Store(directory).rows().write_csv()


FAILING_CLASS = """
import os
from pathlib import Path
import sojourn as sj

class Own(sj.Aqm):
    \"\"\"Fails in some runs while the file `fails` exists.\"\"\"
    def start(self):
        self.n = 0
    def on_enqueue(self, packet, queue):
        self.n += 1
        if self.n == 300 and queue.random() < 0.3 and Path({folder!r}, "fails").exists():
            {fails}
        return sj.PASS
"""

RAISES = 'raise ValueError("unlucky")'

SEEDS = 12


def failing(folder: Path, fails: str = RAISES, seeds: int = SEEDS) -> Path:
    """Write a sweep over a discipline that fails at some seeds, and drop-tail; return its file."""
    (folder / "own.py").write_text(FAILING_CLASS.format(folder=str(folder), fails=fails))
    (folder / "case.json").write_text(json.dumps(CASE))
    (folder / "fails").touch()
    values = f'{{ tail = "droptail", own = "{folder}/own.py:Own" }}'
    (folder / "sweep.toml").write_text(
        f'scenario = "case.json"\nseeds = {seeds}\n'
        f'[axes]\nqdisc = {{ set = "up.qdisc", values = {values} }}\n'
    )
    return folder / "sweep.toml"


def failed_seeds(out: str | Path) -> list[int]:
    """Return the seeds of the failed runs in a store."""
    return sorted(sj.results(out, failed=True)["seed"].to_list())
