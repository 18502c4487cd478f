"""Workers and the scheduler of a Dask cluster die at random; nothing is lost, nothing made twice.

Two deaths of two workers in CI; `make faults-cluster`: 50 deaths of eight workers.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sojourn as sj
from sojourn.sweeps.store import Store
from support.processes import free_port
from support.sweep_cases import AXES, CASE, command

DEATHS = int(os.environ.get("SOJOURN_DEATHS", "2"))
WORKERS = 8 if DEATHS > 8 else 2

SCHEDULERS = 0.2
"""Share of the deaths that are the scheduler's."""


SWEEP = """
scenario = "case.json"
seeds = {seeds}
[axes]
qdisc = {{ set = "up.qdisc", values = ["droptail", "codel"] }}
"bulk.count" = [1, 3]
"""


class Cluster:
    """A scheduler and workers, each a process; one that ends is started again, as by Slurm."""

    def __init__(self) -> None:
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.scheduler = self._scheduler()
        self.workers = [self._worker() for _ in range(WORKERS)]

    def _dask(self, *words: str) -> subprocess.Popen[bytes]:
        line = [sys.executable, "-m", "dask", *words, "--no-dashboard"]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(line, stdout=quiet, stderr=quiet)

    def _scheduler(self) -> subprocess.Popen[bytes]:
        return self._dask("scheduler", "--host", "127.0.0.1", "--port", str(self.port))

    def _worker(self) -> subprocess.Popen[bytes]:
        return self._dask("worker", self.address, "--no-nanny", "--nthreads", "1")

    def mend(self) -> None:
        """Start what has ended."""
        if self.scheduler.poll() is not None:
            self.scheduler = self._scheduler()
        self.workers = [one if one.poll() is None else self._worker() for one in self.workers]

    def kill_one(self, chance: random.Random) -> None:
        """Kill a worker or the scheduler."""
        victim = self.scheduler if chance.random() < SCHEDULERS else chance.choice(self.workers)
        victim.kill()
        victim.wait()

    def end(self) -> None:
        """End all processes."""
        for one in (self.scheduler, *self.workers):
            one.kill()
            one.wait()


@contextmanager
def running() -> Iterator[Cluster]:
    """Start a cluster, and end it."""
    cluster = Cluster()
    try:
        yield cluster
    finally:
        cluster.end()


def test_deaths_lose_nothing(tmp_path: Path) -> None:
    """The table is as on one machine. A command ends well, or names the loss in one line."""
    seeds = 40 if DEATHS > 8 else 15
    link = {"rate": "50mbit", "delay": "5ms", "qdisc": {"name": "codel"}}
    longer = {**CASE, "duration": "200s", "links": {"up": link}}
    (tmp_path / "case.json").write_text(json.dumps(longer))
    (tmp_path / "sweep.toml").write_text(SWEEP.format(seeds=seeds))
    alone = sj.sweep(longer, AXES, seeds=seeds, out=tmp_path / "alone")
    chance, deaths, rounds = random.Random(1), 0, 0
    with running() as cluster:
        while deaths < DEATHS:
            out = tmp_path / f"round-{rounds}"
            deaths += one_sweep(cluster, tmp_path / "sweep.toml", out, chance, DEATHS - deaths)
            table = Store(out).rows()
            assert table["key"].n_unique() == len(table) == len(alone)
            assert sj.results(out).equals(sj.results(tmp_path / "alone"))
            rounds += 1
    print(f"{deaths} deaths in {rounds} sweeps of {len(alone)} runs over {WORKERS} workers")


def one_sweep(cluster: Cluster, sweep: Path, out: Path, chance: random.Random, most: int) -> int:
    """Repeat the command until all runs are made, killing processes; return the deaths."""
    deaths = 0
    line = command("sweep", sweep, "--out", out, "--cluster", cluster.address)
    for _ in range(20 + 2 * most):
        cluster.mend()
        going = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        due = time.monotonic() + 2.0 + 3.0 * chance.random()
        while going.poll() is None:
            time.sleep(0.05)
            if deaths < most and time.monotonic() > due and list(out.glob("*.parquet")):
                cluster.kill_one(chance)
                deaths += 1
                cluster.mend()
                due = time.monotonic() + 3.0 * chance.random()
        _, errors = going.communicate()
        if going.returncode == 0:
            return deaths
        assert going.returncode == 1, errors
        last = errors.splitlines()[-1]
        assert "the same command continues" in last or "WorkerDied" in errors, errors
        assert "Traceback" not in errors
    raise AssertionError("the sweep does not come to its end")
