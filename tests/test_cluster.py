"""A real Dask cluster on this machine: the same table, also if a worker is killed."""

import importlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sojourn as sj
from sojourn.sweeps.store import Store
from support.sweep_cases import AXES, CASE, command, described, failed_seeds, failing, ran

# Among the development packages, so never skipped. It has no types.
distributed: Any = importlib.import_module("distributed")

pytestmark = pytest.mark.filterwarnings("ignore")

ROOT = Path(__file__).parent.parent

OWN = ROOT / "examples"


@pytest.fixture(scope="module")
def cluster():  # type: ignore[no-untyped-def]
    """Start three workers, each in its own process."""
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as three:
        yield three


def test_a_cluster_gives_the_same_table(cluster, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """The command, given the scheduler's address, stores the same rows."""
    folder = described(tmp_path)
    address = cluster.scheduler_address
    out = ("--out", folder / "cluster", "--cluster", address)
    done = ran("sweep", folder / "sweep.toml", *out)
    assert "30 of 30 runs made" in done.stdout, done.stderr
    ran("sweep", folder / "sweep.toml", "--out", folder / "threads")
    assert Store(folder / "cluster").rows().equals(Store(folder / "threads").rows())
    again = ran("sweep", folder / "sweep.toml", *out)
    assert "0 of 30 runs made" in again.stdout


def test_an_evaluation_on_a_cluster_gives_the_same_scorecard(cluster, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Also of a discipline in Python, which the workers get with its source."""
    own = f"{ROOT / 'examples/my_aqm.py'}:HeadDrop(target=20ms)"
    words = ("evaluate", "--qdisc", f"codel,{own}", "--rate", "1mbit", "--quick", "--only", "A1,E5")
    done = ran(*words, "--out", tmp_path / "cluster", "--cluster", cluster.scheduler_address)
    assert "24 of 24 runs made" in done.stdout, done.stderr
    assert "24 runs on the cluster" in done.stderr
    ran(*words, "--out", tmp_path / "threads")
    lines = [pl.read_parquet(tmp_path / one / "lines.parquet") for one in ("cluster", "threads")]
    assert lines[0].equals(lines[1])


def test_controls_and_sources_in_python_reach_the_workers(cluster) -> None:  # type: ignore[no-untyped-def]
    """A sweep over classes of files gives the same rows on a cluster."""
    flow = {"name": "one", "path": ["up"], "rtt": "30ms", "source": f"{OWN}/my_source.py:MyFlows"}
    case = {"duration": "3s", "links": {"up": {"rate": "5mbit"}}, "flows": [flow]}
    axes = {
        "flows.one.tcp": [f"{OWN}/my_control.py:{name}" for name in ("MyReno", "DelayTarget")],
        "flows.one.source.largest": ["20kB", "200kB"],
    }
    with distributed.Client(cluster) as client:
        there = sj.sweep(case, axes=axes, executor=client.get_executor())
    assert there.equals(sj.sweep(case, axes=axes))
    assert there["goodput_bps"].n_unique() > 2


def test_a_worker_that_is_killed_loses_nothing(cluster, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Other workers repeat the runs of a worker killed midway."""
    longer = {**CASE, "duration": "30s"}
    alone = sj.sweep(longer, AXES, seeds=10)
    with distributed.Client(cluster) as client:
        first = next(iter(cluster.workers.values()))

        def kill() -> None:
            while len(list(tmp_path.glob("*.parquet"))) < 1:
                time.sleep(0.01)
            os.kill(first.pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        executor = client.get_executor(pure=False, retries=2)
        table = sj.sweep(longer, AXES, seeds=10, executor=executor, out=tmp_path)
        killer.join()
    assert table.equals(alone)


def test_ctrl_c_leaves_the_cluster_usable(cluster, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Ctrl-C cancels the pending runs."""
    import subprocess

    folder = described(tmp_path)
    sweep = (folder / "sweep.toml").read_text().replace("seeds = 5", "seeds = 3000")
    (folder / "sweep.toml").write_text(sweep)
    address = cluster.scheduler_address
    running = subprocess.Popen(
        command("sweep", folder / "sweep.toml", "--out", folder / "out", "--cluster", address),
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list((folder / "out").glob("*.parquet")):
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert errors.splitlines()[-1].startswith("sojourn: interrupted; finished runs are in")
    with distributed.Client(cluster) as client:
        assert client.submit(abs, -3).result(timeout=30) == 3


def test_a_run_that_kills_its_worker_has_failed(cluster, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Dask repeats it on other workers; the other runs go on."""
    file = failing(tmp_path, "os._exit(3)", seeds=4)
    address = cluster.scheduler_address
    done = ran("sweep", file, "--trust", "--out", tmp_path / "out", "--cluster", address)
    assert done.returncode == 1, done.stderr
    seeds = failed_seeds(tmp_path / "out")
    assert seeds
    assert f"{8 - len(seeds)} of 8 runs made, {len(seeds)} failed" in done.stdout
    assert done.stderr.count("WorkerDied: the worker process died, also when") == len(seeds)


def test_a_lost_scheduler_is_one_line(tmp_path: Path) -> None:
    """Finished runs are stored, and the same command continues."""
    import subprocess
    import sys

    folder = described(tmp_path)
    sweep = (folder / "sweep.toml").read_text().replace("seeds = 5", "seeds = 3000")
    (folder / "sweep.toml").write_text(sweep)
    program = (
        "import distributed, time\n"
        "if __name__ == '__main__':\n"
        "    one = distributed.LocalCluster(n_workers=1, dashboard_address=None, silence_logs=50)\n"
        "    print(one.scheduler_address, flush=True)\n"
        "    time.sleep(600)\n"
    )
    (tmp_path / "scheduler.py").write_text(program)
    line = [sys.executable, str(tmp_path / "scheduler.py")]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=quiet, text=True) as scheduler:
        assert scheduler.stdout is not None
        address = scheduler.stdout.readline().strip()
        running = subprocess.Popen(
            command("sweep", folder / "sweep.toml", "--out", folder / "out", "--cluster", address),
            stderr=subprocess.PIPE,
            text=True,
        )
        while not list((folder / "out").glob("*.parquet")):
            time.sleep(0.05)
        scheduler.kill()
        _, errors = running.communicate(timeout=120)
    assert running.returncode == 1
    kept = len(Store(folder / "out").rows())
    assert 0 < kept < 18000
    assert errors == (
        f"sojourn: the scheduler of the Dask cluster is lost; {kept} of 18000 runs are in "
        f"{folder / 'out'}, the same command continues\n"
    )
