"""The files of examples/cluster start real clusters here: Slurm's commands are scripts."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import sojourn as sj
from support.processes import free_port
from support.sweep_cases import AXES, CASE, described

EXAMPLES = Path(__file__).parent.parent / "examples"

BIN = Path(sys.executable).parent

SLURM = {
    "sbatch": 'bash "$1" > /dev/null 2>&1 &\necho "Submitted batch job $!"\n',
    "scancel": 'for job in "$@"; do pkill -P "$job"; kill "$job"; done\n',
    "squeue": "echo\n",
}
"""Slurm as dask-jobqueue uses it: a job is a process of this machine, its number the process's."""


def test_kubernetes_makes_the_sweep(tmp_path: Path) -> None:
    """The commands of the pods, with this machine's address and a folder for the bucket."""
    described(tmp_path)
    kinds = list(yaml.safe_load_all((EXAMPLES / "cluster/kubernetes.yaml").read_text()))
    port = str(free_port())
    here = {"tcp://scheduler:8786": f"tcp://127.0.0.1:{port}", "8786": port,
            "/sweep/sweep.toml": str(tmp_path / "sweep.toml"),
            "s3://bucket/load": str(tmp_path / "load")}  # fmt: skip
    lines = {kind["metadata"]["name"]: command(kind, here) for kind in kinds[1:]}
    assert kinds[0]["metadata"]["name"] == "scheduler"
    assert kinds[0]["spec"]["ports"][0]["port"] == 8786
    quiet = subprocess.DEVNULL
    names = ("scheduler", "workers", "workers")
    pods = [subprocess.Popen(lines[name], stdout=quiet, stderr=quiet) for name in names]
    try:
        done = subprocess.run(lines["sweep"], capture_output=True, text=True, check=False)
    finally:
        for pod in pods:
            pod.kill()
            pod.wait()
    assert "30 of 30 runs made" in done.stdout, done.stderr


def command(kind: dict[str, Any], here: dict[str, str]) -> list[str]:
    """Return the command of the pods of a kind."""
    (container,) = kind["spec"]["template"]["spec"]["containers"]
    program, *words = (here.get(word, word) for word in container["command"])
    return [str(BIN / program), *words]


def test_slurm_makes_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each job has as many workers as cores; the table is as on one machine."""
    for name, text in SLURM.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}")
        (tmp_path / name).chmod(0o755)
    program = (EXAMPLES / "cluster/slurm.py").read_text()
    for ours, small in {
        "JOBS, CORES = 4, 32": "JOBS, CORES = 2, 1",
        "64GB": "1GB",
        '"sweep-base.toml"': repr(CASE),
        '{"bottleneck.qdisc": ["codel", "pie"], "bulk.count": [4, 16]}': repr(AXES),
        "seeds=100": "seeds=3",
    }.items():
        assert program.count(ours) == 1
        program = program.replace(ours, small)
    (tmp_path / "slurm.py").write_text(program)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    line = [sys.executable, "-W", "ignore", "slurm.py"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sj.results(tmp_path / "load").height == 12
